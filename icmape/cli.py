"""The command line: parse, call, print."""

import dataclasses
import json
import logging
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

from icmape import __version__
from icmape.api import with_display
from icmape.errors import UserError, nearest
from icmape.learning.__main__ import make_problem
from icmape.learning.config import ALGORITHMS, Config, check, with_algorithm
from icmape.learning.files import write_atomically
from icmape.learning.run import Run, read_config, resume_run, train_run, write_config
from icmape.options import train_options
from icmape.presets import PRESETS, preset, problem_name
from icmape.problems import Problem, load_class
from icmape.teams import load, shipped

out = Console()
USAGE = """usage: icmape COMMAND ...

  list                              presets, algorithms and shipped teams
  train PRESET [settings]           train a team: icmape train bandit-quick --seeds 215 219 321 --out runs/mine
  train --problem module:Class      the same for a problem of your own
  train --config RUN/config.json    the same again
  resume RUN                        go on with a run that was interrupted
  evaluate TEAM|RUN|NAME            judge a team file, a run's teams or a shipped team on fresh worlds

`icmape COMMAND --help` explains every setting."""


def main(arguments: list[str] | None = None) -> int:
    """The `icmape` command; returns the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    if "" not in sys.path:
        sys.path.insert(0, "")  # problems in the folder one stands in, as `python -m` would find them
    commands: dict[str, Callable[[list[str]], int]] = {
        "list": list_command,
        "train": train_command,
        "resume": resume_command,
        "evaluate": evaluate_command,
    }
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        return 0 if arguments else 2
    if arguments[0] == "--version":
        print(f"icmape {__version__}")
        return 0
    try:
        if arguments[0] not in commands:
            raise UserError(f"unknown command {arguments[0]!r}: {nearest(arguments[0], commands)}")
        return commands[arguments[0]](arguments[1:])
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


# -- list


def list_command(arguments: list[str]) -> int:
    """Presets, algorithms and shipped teams."""
    tyro.cli(_nothing, prog="icmape list", description="Presets, algorithms and shipped teams.", args=arguments)
    table = Table("preset", "problem", "what it is", box=None, header_style="bold")
    for name, entry in PRESETS.items():
        table.add_row(name, problem_name(entry.problem), entry.summary)
    out.print(table)
    out.print("\n[bold]algorithms[/]  " + ", ".join(ALGORITHMS))
    out.print("[bold]shipped teams[/]  " + (", ".join(shipped()) or "none yet"))
    return 0


def _nothing() -> None:
    """No settings."""


# -- train


def train_command(arguments: list[str]) -> int:
    """Train a team for a preset or a problem of one's own."""
    name, choices, rest = _split_train(arguments)
    if not name and not choices and {"-h", "--help"} & set(rest):
        name = next(iter(PRESETS))  # help shows the settings with some preset's defaults
    problem_class, defaults, config, label = _starting_point(name, choices)
    if choices.get("algorithm"):
        config = with_algorithm(config, choices["algorithm"])
    options = train_options(problem_class, defaults, config)
    description = (
        "Train a team. PRESET is one of " + ", ".join(PRESETS) + "; instead of it, --problem module:Class trains on a "
        "problem of your own and --config FILE repeats a run. --algorithm is one of " + ", ".join(ALGORITHMS) + "."
    )
    given = tyro.cli(options, prog="icmape train PRESET", description=description, args=rest)
    problem = _make(problem_class, dataclasses.asdict(given.problem))
    config = Config(**{f.name: getattr(given, f.name) for f in dataclasses.fields(Config)})
    folder = given.out or _free_folder(label)
    began = time.monotonic()
    run = with_display(
        lambda tell: train_run(
            problem, config, folder, problem_kind=problem_name(problem_class), overwrite=given.overwrite, callback=tell
        ),
        config,
        None,
        progress=not given.quiet,
    )
    return _finish(run, folder, time.monotonic() - began)


def _split_train(arguments: list[str]) -> tuple[str | None, dict[str, str], list[str]]:
    """The preset and the three flags that decide what the settings are, before the settings themselves."""
    rest, choices = list(arguments), {}
    for flag in ("algorithm", "problem", "config"):
        for index, word in enumerate(rest):
            if word == f"--{flag}":
                if index + 1 >= len(rest):
                    raise UserError(f"--{flag} needs a value")
                choices[flag] = rest[index + 1]
                del rest[index : index + 2]
                break
            if word.startswith(f"--{flag}="):
                choices[flag] = word.partition("=")[2]
                del rest[index]
                break
    name = rest.pop(0) if rest and not rest[0].startswith("-") else None
    return name, choices, rest


def _starting_point(name: str | None, choices: dict[str, str]) -> tuple[type[Problem], dict[str, Any], Config, str]:
    """The problem's class and arguments, the settings, and a name for the run's folder."""
    given = [part for part in (name, choices.get("problem"), choices.get("config")) if part]
    if len(given) > 1:
        raise UserError(f"give one of PRESET, --problem and --config; given {', '.join(given)}")
    if "config" in choices:
        kind, defaults, config = read_config(Path(choices["config"]))
        return type(make_problem(kind, defaults)), defaults, config, kind.rpartition(":")[2].lower()
    if "problem" in choices:
        found = load_class(choices["problem"])
        return found, {}, Config(), found.__name__.lower()
    if name is None:
        raise UserError(f"give a PRESET ({', '.join(PRESETS)}), --problem module:Class or --config FILE")
    chosen = preset(name)
    return chosen.problem, chosen.arguments, chosen.config(), name


def _make(problem_class: type[Problem], arguments: dict[str, Any]) -> Problem:
    try:
        return problem_class(**arguments)
    except (TypeError, ValueError) as error:
        raise UserError(f"{problem_class.__name__} cannot be built: {error}") from error


def _free_folder(label: str) -> Path:
    number = 1
    while (Path("runs") / f"{label}-{number}").exists():
        number += 1
    return Path("runs") / f"{label}-{number}"


# -- resume


def resume_command(arguments: list[str]) -> int:
    """Go on with a run."""

    def resume(
        run: tyro.conf.Positional[Path],
        iterations: int | None = None,
        minutes: float | None = None,
        quiet: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    ) -> tuple[Path, int | None, float | None, bool]:
        """Go on with a run from its last checkpoint, bit for bit on the CPU.

        Args:
            run: The run's folder.
            iterations: A new length of training. Schedules stretch to it, so the result is not that of the old length.
            minutes: Stop and save after this much wall time.
            quiet: No progress display.
        """
        return run, iterations, minutes, quiet

    folder, iterations, minutes, quiet = tyro.cli(resume, prog="icmape resume", args=arguments)
    if not (folder / "config.json").exists():
        raise UserError(f"{folder} holds no run: expected {folder / 'config.json'}")
    kind, problem_arguments, config = read_config(folder / "config.json")
    problem = make_problem(kind, problem_arguments)
    config = dataclasses.replace(config, minutes=minutes)
    if iterations is not None:
        config = dataclasses.replace(config, iterations=iterations)
        check(config, problem)
        write_config(folder, problem, kind, config)
    began = time.monotonic()
    run = with_display(
        lambda tell: resume_run(problem, config, folder, callback=tell), config, None, progress=not quiet
    )
    return _finish(run, folder, time.monotonic() - began)


def _finish(run: Run, folder: Path, seconds: float) -> int:
    """Teams, curves and a last word."""
    from icmape.reporting.curves import draw_curves
    from icmape.teams.from_run import save_teams

    paths = save_teams(run, folder)
    picture = draw_curves(folder)
    failed = run.faults()
    for index, seed in enumerate(run.config.seeds):
        best = run.state(index).best
        note = f"FAILED ({failed[seed]} not finite)" if seed in failed else ""
        if int(best.iteration) == 0:
            note = note or "not validated yet"
            out.print(f"seed {seed}: {note}  {paths[seed]}", soft_wrap=True, highlight=False)
            continue
        out.print(
            f"seed {seed}: validation accuracy {float(best.accuracy):.3f} at τ {float(best.tau):.2f} "
            f"(iteration {int(best.iteration):,}) {note} {paths[seed]}",
            soft_wrap=True,
            highlight=False,
        )
    where = f"; curves: {picture}" if picture else ""
    out.print(
        f"{run.iteration:,} of {run.config.iterations:,} iterations, {run.seconds:.0f} s of training, "
        f"{seconds:.0f} s this time with compilation{where}",
        soft_wrap=True,
        highlight=False,
    )
    if not run.finished and len(failed) < len(run.config.seeds):
        out.print(f"not finished: go on with `icmape resume {folder}`", soft_wrap=True, highlight=False)
    return run.exit_code


# -- evaluate


def evaluate_command(arguments: list[str]) -> int:
    """Judge teams on fresh worlds."""

    def evaluate(
        team: tyro.conf.Positional[str],
        episodes: int = 10_000,
        seed: int = 0,
        out: Path | None = None,
        problem: str | None = None,
    ) -> tuple[str, int, int, Path | None, str | None]:
        """Judge a team on fresh worlds with greedy actors.

        Args:
            team: A team file, a run's folder (all its teams), or the name of a shipped team.
            episodes: Number of worlds.
            seed: Seed of the worlds; they are never those of training, whatever the seed.
            out: Also write the numbers to this JSON file.
            problem: module:Class of a problem that is not part of icmape, if the team was trained on one.
        """
        return team, episodes, seed, out, problem

    name, episodes, seed, file, problem_path = tyro.cli(evaluate, prog="icmape evaluate", args=arguments)
    if episodes < 1:
        raise UserError(f"an evaluation needs at least one episode; given {episodes}")
    if file is not None and file.is_dir():
        raise UserError(f"--out {file} is a folder; expected the name of a JSON file")
    problem = None
    if problem_path is not None:
        problem = load_class(problem_path)
    results = {}
    for path in _team_paths(name):
        team = load(path, problem)
        with _episode_bar(episodes) as tick:
            result = team.evaluate(episodes=episodes, seed=seed, tick=tick)
        out.print(f"[bold]{path}[/]", soft_wrap=True)
        out.print(str(result), highlight=False, soft_wrap=True)
        results[Path(path).stem] = {"team": Path(path).stem, **result.to_dict(), "provenance": json.loads(team.card)}
    if file is not None:
        content = next(iter(results.values())) if len(results) == 1 else {"teams": results, **_over_teams(results)}
        write_atomically(file, json.dumps(content, indent=2).encode() + b"\n")
        out.print(f"written to {file}", highlight=False, soft_wrap=True)
    return 0


def _team_paths(name: str) -> list[str]:
    folder = Path(name)
    if not folder.is_dir():
        if name in PRESETS and name not in shipped() and not folder.exists():
            raise UserError(f"no trained team ships for {name} yet: make one with `icmape train {name}`")
        return [name]
    found = sorted(map(str, folder.glob("team-*.safetensors")))
    if not found:
        raise UserError(
            f"{folder} holds no teams (team-SEED.safetensors): is its run finished? `icmape resume {folder}`"
        )
    return found


def _over_teams(results: dict[str, dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Mean and standard deviation over teams of what is a number for each of them."""
    names = ("accuracy", "tau", "rounds", "readings", "forced", "ece", "no_data_accuracy")
    columns = {name: [result[name] for result in results.values()] for name in names}
    return {
        "mean": {name: statistics.fmean(values) for name, values in columns.items()},
        "spread": {name: statistics.stdev(values) for name, values in columns.items()},
    }


def _episode_bar(episodes: int) -> Any:
    """A progress bar on a terminal; elsewhere nothing."""
    if not out.is_terminal:
        return nullcontext()
    from rich.progress import Progress

    bar = Progress(console=out, transient=True)
    task = bar.add_task("playing", total=episodes)

    class Ticking:
        def __enter__(self) -> Callable[[int], None]:
            bar.start()
            return lambda count: bar.advance(task, count)

        def __exit__(self, *_: object) -> None:
            bar.stop()

    return Ticking()


if __name__ == "__main__":
    sys.exit(main())
