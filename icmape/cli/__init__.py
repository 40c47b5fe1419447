"""The command line."""

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import cast

from icmape.errors import UserError, error_line, known_name, log_printable
from icmape.imports import is_path, load_object, named_code
from icmape.search_path import without_matplotlibrc
from icmape.version import __version__

__all__ = ["main"]

USAGE = """usage: icmape COMMAND ...

  list                                pretrained teams with their numbers, presets, algorithms, baselines
  train PRESET [settings]             train a team: icmape train bandit-quick --seeds 215 219 321 --out runs/mine
  train --problem module:Class        the same for a problem of your own
  train --config RUN/config.json      repeat a run
  resume RUN                          continue a run that was interrupted
  sweep FILE.toml                     many runs: seeds, settings, problems; on this machine, Slurm or Ray
  evaluate TEAM|RUN|NAME              evaluate a team file, a run's teams or a pretrained team on fresh worlds
  evaluate PRESET --baseline NAME     evaluate a baseline that does not learn
  certify TEAM|RUN|NAME               a guarantee on a team's accuracy; fails if it is below 1-δ
  retarget TEAM|RUN|NAME --delta D    the same team for another δ: a new stopping threshold, no training
  export TEAM|NAME --to light|onnx|js a team for devices without JAX: NumPy only, ONNX, JavaScript
  play TEAM|NAME                      one episode: a log, a picture of all rounds, an animation
  session FOLDER start|ask|tell|...   a team at work: readings in, actions and an answer out, kept in a journal
  check-prior TEAM FOLDER ...         do recorded sessions look like the worlds that the team was trained on?
  serve TEAM|FOLDER                   a session over the network: a page for each agent and one for the coordinator
  agent TEAM I --mqtt HOST ...        one agent of a team as a device at an MQTT broker
  coordinate FOLDER --mqtt HOST ...   the session of a team at an MQTT broker
  app [TEAM|NAME ...] --out FILE.html one HTML file to play in beside a team's agents, without a network
  diagnose TEAM|NAME                  which part limits a team: inference, stop or sampling
  compare RUN TEAM NAME FILE.json ... methods in one table, and a figure of accuracy against τ
  report TEAM RUN NAME ...            one HTML page: curves, calibration, robustness, replays of episodes
  reproduce [SETTING ...] [--quick]   every table and figure of the paper, with the paper's numbers and the limits
  data fetch|check|years|map|fit      measurements: download, check, and fit fields to them

`icmape COMMAND --help` explains every setting."""


def problem_entry() -> ModuleType:
    """`icmape.problem.entry`, imported when a command needs it: help and the first line on the screen come before."""
    return import_module("icmape.problem.entry")


def problem_commands() -> dict[str, Callable[[list[str]], int]]:
    """Commands of problems."""
    return {
        name: command
        for entry in problem_entry().entries().values()
        for name, command in entry.part("commands", {}).items()
    }


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
COMMANDS = {
    "list": "listing:list_command",
    "train": "train:train_command",
    "resume": "train:resume_command",
    "sweep": "sweep:sweep_command",
    "evaluate": "evaluate:evaluate_command",
    "certify": "certify:certify_command",
    "retarget": "retarget:retarget_command",
    "app": "app:app_command",
    "export": "export:export_command",
    "play": "play:play_command",
    "diagnose": "diagnose:diagnose_command",
    "compare": "compare:compare_command",
    "report": "report:report_command",
    "session": "session:session_command",
    "check-prior": "check_prior:check_prior_command",
    "serve": "serve:serve_command",
    "agent": "devices:agent_command",
    "coordinate": "devices:coordinate_command",
}
"""Modules of this package and their functions; a command imports only what it needs."""


def command_named(name: str) -> Callable[[list[str]], int]:
    """The function of a command."""
    if name in COMMANDS:
        module, _, function = COMMANDS[name].partition(":")
        return cast(Callable[[list[str]], int], getattr(import_module(f"icmape.cli.{module}"), function))
    others = {"reproduce": reproduce_command, **problem_commands()}
    known_name(name, {*COMMANDS, *others}, "command")
    return others[name]


@contextmanager
def loading(name: str) -> Iterator[None]:
    """Say on a terminal that a command's code is being imported; the line is taken away afterwards."""
    if not sys.stderr.isatty() or name not in COMMANDS:
        yield
        return
    print(f"loading icmape {name}: 1 s, up to 10 s the first time", end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        print("\r\x1b[2K", end="", file=sys.stderr, flush=True)


def with_encoders(arguments: list[str]) -> list[str]:
    """Import the encoders that `--network.encoder module:Class ...` names, for any command: teams may have them.

    Commands without settings do not get to see the flag.
    """
    paths: list[str] = []
    others: list[str] = []
    wanted = also = False  # whether the next word is a value of the flag, or may be one more
    for word in arguments:
        flag, equals, value = word.partition("=")
        if flag == "--network.encoder":
            paths += [value] if equals else []
            wanted, also = not equals, True
        elif wanted or (also and is_path(word)):
            paths.append(word)
            wanted = False
        else:
            others.append(word)
            also = False
    for path in paths:
        if ":" in path:
            import_module("icmape.networks").name_encoder(path)
    return arguments if arguments[0] in ("train", "sweep") else others


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
        with loading(arguments[0]):
            if named_code(arguments):
                problem_entry().import_from_here()
            arguments = with_encoders(arguments)
            command = command_named(arguments[0])
        return command(arguments[1:])
    except BrokenPipeError:  # the reader closed the pipe: `icmape list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (UserError, OSError) as error:
        print(error_line(error), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
