"""The command line."""

import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path

from icmape.cli.certify import certify_command
from icmape.cli.compare import compare_command
from icmape.cli.diagnose import diagnose_command
from icmape.cli.evaluate import evaluate_command
from icmape.cli.export import export_command
from icmape.cli.listing import list_command
from icmape.cli.play import play_command
from icmape.cli.report import report_command
from icmape.cli.retarget import retarget_command
from icmape.cli.session import session_command
from icmape.cli.train import resume_command, train_command
from icmape.errors import UserError, error_line, known_name, log_printable
from icmape.imports import load_object, named_code
from icmape.problem.entry import entries, import_from_here
from icmape.search_path import without_matplotlibrc
from icmape.version import __version__

__all__ = ["main"]

USAGE = """usage: icmape COMMAND ...

  list                                presets, algorithms, baselines and pretrained teams
  train PRESET [settings]             train a team: icmape train bandit-quick --seeds 215 219 321 --out runs/mine
  train --problem module:Class        the same for a problem of your own
  train --config RUN/config.json      repeat a run
  resume RUN                          continue a run that was interrupted
  evaluate TEAM|RUN|NAME              evaluate a team file, a run's teams or a pretrained team on fresh worlds
  evaluate PRESET --baseline NAME     evaluate a baseline that does not learn
  certify TEAM|RUN|NAME               a guarantee on a team's accuracy; fails if it is below 1-δ
  retarget TEAM|RUN|NAME --delta D    the same team for another δ: a new stopping threshold, no training
  export TEAM|NAME --to light|onnx|js a team for devices without JAX: NumPy only, ONNX, JavaScript
  play TEAM|NAME                      one episode: a log, a picture of all rounds, an animation
  session FOLDER start|ask|tell|...   a team at work: readings in, actions and an answer out, kept in a journal
  diagnose TEAM|NAME                  which part limits a team: inference, stop or sampling
  compare RUN TEAM NAME FILE.json ... methods in one table, and a figure of accuracy against τ
  report TEAM RUN NAME ...            one HTML page: curves, calibration, robustness, replays of episodes
  reproduce [SETTING ...] [--quick]   every table and figure of the paper, with the paper's numbers and the limits
  data fetch|check|years|map|fit      measurements: download, check, and fit fields to them

`icmape COMMAND --help` explains every setting."""


def problem_commands() -> dict[str, Callable[[list[str]], int]]:
    """Commands of problems."""
    return {name: command for entry in entries().values() for name, command in entry.part("commands", {}).items()}


def reproduce_command(arguments: list[str]) -> int:
    """`icmape reproduce`, whose code is in a clone of the repository but not in the package."""
    clone = Path(__file__).resolve().parents[2]
    if not (clone / "paper" / "command.py").exists():
        raise UserError("`icmape reproduce` needs a clone of the repository: what it does is not part of the package")
    if str(clone) not in sys.path:
        sys.path.append(str(clone))
    command: Callable[[list[str]], int] = load_object("paper.command:reproduce_command", "reproduce")
    return command(arguments)


RENAMED = {"--reference": "--baseline", "--references": "--baselines", "--reference-episodes": "--baseline-episodes"}
COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "list": list_command,
    "train": train_command,
    "resume": resume_command,
    "evaluate": evaluate_command,
    "certify": certify_command,
    "retarget": retarget_command,
    "export": export_command,
    "play": play_command,
    "diagnose": diagnose_command,
    "compare": compare_command,
    "report": report_command,
    "session": session_command,
    "reproduce": reproduce_command,
}


def main(arguments: list[str] | None = None) -> int:
    """The `icmape` command; returns the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    log_printable(logging.WARNING)
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        return 0 if arguments else 2
    if arguments[0] == "--version":
        print(f"icmape {__version__}")
        return 0
    try:
        for word in arguments[1:]:
            if (flag := word.partition("=")[0]) in RENAMED:
                raise UserError(f"{flag} is called {RENAMED[flag]} now")
        without_matplotlibrc()
        if named_code(arguments):
            import_from_here()
        commands = COMMANDS if arguments[0] in COMMANDS else {**COMMANDS, **problem_commands()}
        return commands[known_name(arguments[0], commands, "command")](arguments[1:])
    except BrokenPipeError:  # the reader closed the pipe: `icmape list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (UserError, OSError) as error:
        print(error_line(error), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
