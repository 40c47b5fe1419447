"""`icmape train` and `icmape resume`."""

import dataclasses
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import jax
import tyro

from icmape.api import with_display
from icmape.baselines.by_name import find_policies
from icmape.cli.following import PORT_HELP, WATCH_HELP, Following, TrackerName, following
from icmape.cli.options import RATES, train_options
from icmape.errors import UserError
from icmape.imports import is_path, named_code
from icmape.learning.check_config import check
from icmape.learning.config import DEFAULT_ALGORITHM, Config, with_algorithm
from icmape.learning.phases import SETTINGS, begin
from icmape.learning.presets import preset, presets
from icmape.learning.run import Callback, Run, check_run, parted, resume_run, train_run
from icmape.learning.run_folder import read_config, write_config
from icmape.locks import check_free, only_writer
from icmape.play.processes import WHERE, is_first, join
from icmape.play.team_files import about
from icmape.plot.terminal import say
from icmape.problem import Centralized, Problem, Unreliable
from icmape.problem.entry import problem_name
from icmape.problem.spec import build_named, check_changes, find_class, load_class, split_kind
from icmape.tracking import tracked_with
from icmape.tracking.watch import PORT


class Choice(NamedTuple):
    """A flag that is read before the settings, because the settings depend on it."""

    help: str
    value: str | None  # placeholder of its value; None: a flag without a value


CHOICES = {
    "algorithm": Choice("How to learn (`icmape list` names all); by default the preset's choice.", "NAME"),
    "problem": Choice("Train on a problem of your own instead of a PRESET.", "module:Class"),
    "config": Choice("Repeat the run with this config.json instead of a PRESET.", "FILE"),
    "centralized": Choice("One agent sees all observations and chooses all actions.", None),
    **{name: Choice(text, "RATE") for name, text in RATES.items()},
    "distributed": Choice("This is one of several processes of the run, of which the first one writes.", WHERE),
}


HELP = {"-h", "--help", "--help-all"}
RESUME_TRACK_HELP = (
    "Trackers to log to: by default those that the run had, of which it goes on in the same runs; none: no tracker."
)
MAIN_CHOICES = ("algorithm", "problem", "config")
"""Flags that the short help shows."""


def train_command(arguments: list[str]) -> int:
    """Train a team for a preset or a problem of your own."""
    name, choices, settings = _split_train(arguments)
    asked = HELP & set(settings)
    if not name and not choices and asked:
        name = next(iter(presets()))  # help shows the defaults of this preset
    if "distributed" in choices and not asked:
        if not any(word.partition("=")[0] == "--out" for word in settings):
            raise UserError("several processes of a run need the same folder: give --out")
        join(choices["distributed"])
    start = _starting_point(name, choices)
    settings = [_spelled_out(_check_name(word, start.config), start.problem) for word in settings]
    description = f"Train a team. PRESET is one of {', '.join(presets())}."
    short = bool(asked) and "--help-all" not in asked
    if short:
        description += " These are the main settings; --help-all shows all."
    options = _with_choices(train_options(start.problem, start.arguments, start.config, short), short)
    words = ["--help"] if asked else settings
    args = tyro.cli(options, prog="icmape train PRESET", description=description, args=words)
    problem = _make(start.problem, dataclasses.asdict(args.problem))
    if any(start.rates.values()):
        problem = Unreliable(problem, **start.rates)
    if start.centralized:
        problem = Centralized(problem)
    config = Config(**{f.name: getattr(args, f.name) for f in dataclasses.fields(Config)})
    folder = args.out or _free_folder(start.label)
    named = named_code(arguments) | (set() if "config" in choices else {start.config.teacher.policy})  # of a preset
    began = time.monotonic()

    def work(tell: Callback | None) -> Run:
        begin("settings", "checking the problem and the settings", SETTINGS)
        check_run(problem, config, folder if is_first() else None, overwrite=args.overwrite)  # before compilation
        policies = find_policies(problem, config, named=named)
        if is_first():
            held.enter_context(only_writer(folder))
        options: dict[str, Any] = {"overwrite": args.overwrite, "policies": policies, "devices": args.devices}
        return train_run(problem, config, folder, callback=tell, **options)

    trackers, port = (args.track, args.watch_port if args.watch else None) if is_first() else ((), None)
    with following(folder, config, trackers, port) as follow, ExitStack() as held:
        return _run(work, config, folder, began, args.quiet, follow)


def _run(
    work: Callable[[Callback | None], Run], config: Config, folder: Path, began: float, quiet: bool, follow: Following
) -> int:
    """Train or resume with a display, and save teams and curves."""
    try:
        run = parted(with_display(work, config, follow.report, progress=is_first() and not quiet))
    except KeyboardInterrupt:
        if (folder / "config.json").exists():
            say(f"stopped; go on with `icmape resume {folder}`")
        raise
    if not is_first():
        return run.exit_code
    code = _finish(run, folder, time.monotonic() - began, follow)
    follow.stay(run)
    return code


def _split_train(arguments: list[str]) -> tuple[str | None, dict[str, str], list[str]]:
    """The preset, the flags of `CHOICES` and the other settings. A flag without a value has the value ""."""
    settings: list[str] = []
    choices: dict[str, str] = {}
    words = iter(arguments)
    for word in words:
        flag, _, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or flag not in CHOICES:
            settings.append(word)
            continue
        if flag in choices:
            raise UserError(f"--{flag} is given twice")
        if CHOICES[flag].value is None and "=" in word:
            raise UserError(f"--{flag} takes no value; given {value!r}")
        if CHOICES[flag].value is not None and "=" not in word:
            value = next(words, "")
        if CHOICES[flag].value is not None and (not value or value.startswith("--")):
            raise UserError(f"--{flag} needs a value ({CHOICES[flag].value})")
        choices[flag] = value
    name = settings.pop(0) if settings and not settings[0].startswith("-") else None
    return name, choices, settings


def _check_name(word: str, config: Config) -> str:
    """Refuse old names of settings; the error names the new one."""
    if not word.startswith("--"):
        return word
    *sections, name = word.removeprefix("--").partition("=")[0].replace("-", "_").split(".")
    owner: Any = config
    for section in sections:
        if not hasattr(owner, section):
            name = ".".join([*sections, name])
            break
        owner = getattr(owner, section)
    if name in getattr(owner, "RENAMED", {}):
        new = ".".join([*sections[: 0 if "." in name else None], owner.RENAMED[name]]).replace("_", "-")
        raise UserError(f"{word.partition('=')[0]} is called --{new} now")
    return word


def _spelled_out(word: str, problem: type[Problem]) -> str:
    """`--data` is short for `--problem.data`; likewise for all arguments that depend on this machine."""
    flag, equals, value = word.partition("=")
    short = flag.startswith("--") and flag.removeprefix("--") in problem.LOCAL
    return f"--problem.{flag.removeprefix('--')}{equals}{value}" if short else word


def _with_choices(options: Any, short: bool = False) -> Any:
    """The settings with the flags of `CHOICES`, for the help text only: these flags have been read already."""

    def row(flag: str, choice: Choice) -> tuple[str, Any, Any]:
        kind: Any = str | None if choice.value else Annotated[bool, tyro.conf.FlagCreatePairsOff]
        shown = tyro.conf.arg(name=flag, metavar=choice.value, help=choice.help, help_behavior_hint="")
        return f"_{flag}", Annotated[kind, shown], dataclasses.field(default=None if choice.value else False)

    rows = [row(flag, choice) for flag, choice in CHOICES.items() if not short or flag in MAIN_CHOICES]
    first = dataclasses.make_dataclass("Choices", rows, frozen=True, kw_only=True)
    return dataclasses.make_dataclass("TrainOptions", [], bases=(options, first), frozen=True, kw_only=True)


class Start(NamedTuple):
    """Defaults of the settings."""

    problem: type[Problem]
    arguments: dict[str, Any]
    config: Config
    label: str  # names the run's folder
    centralized: bool
    rates: dict[str, float]  # of failures


def _starting_point(name: str | None, choices: dict[str, str]) -> Start:
    """Defaults from a preset, a problem class or the configuration of another run."""
    sources = [part for part in (name, choices.get("config") or choices.get("problem")) if part]
    if len(sources) > 1:
        raise UserError(f"give one of PRESET, --problem and --config; given {', '.join(sources)}")
    centralized, algorithm = "centralized" in choices, choices.get("algorithm")
    rates = {name: _rate(name, choices[name]) for name in RATES if name in choices}
    if "config" in choices:
        kind, defaults, config = read_config(Path(choices["config"]))
        config = with_algorithm(config, choices["algorithm"]) if "algorithm" in choices else config
        inner, adapters = split_kind(kind)  # not built yet: later flags may give the path of its data
        own = choices.get("problem", inner)
        if own != inner:
            raise UserError(f"{choices['config']} is for the problem {inner}; given was --problem {own}")
        problem_class = find_class(inner, [choices["problem"]] if "problem" in choices else [])
        check_changes(problem_class, defaults)
        defaults, label = {**problem_class.UNSAID, **defaults}, kind.rpartition(":")[2].lower()
        rates = {**adapters.get("unreliable", {}), **rates}
        return Start(problem_class, defaults, config, label, centralized or adapters["centralized"], rates)
    if "problem" in choices:
        problem_class = load_class(choices["problem"])
        config = with_algorithm(Config(), algorithm or DEFAULT_ALGORITHM)
        return Start(problem_class, {}, config, problem_class.__name__.lower(), centralized, rates)
    if name is None:
        raise UserError(f"give a PRESET ({', '.join(presets())}), --problem module:Class or --config FILE")
    chosen = preset(name)
    config = chosen.config(algorithm or (DEFAULT_ALGORITHM if centralized else None))  # a single agent needs no teacher
    return Start(chosen.problem, chosen.arguments, config, name, centralized, rates)


def _rate(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise UserError(f"--{name} takes a probability, such as 0.1; given {text}") from error


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


@dataclasses.dataclass(frozen=True, kw_only=True)
class ResumeOptions:
    """Continue a run from its last checkpoint, bit for bit on the CPU."""

    run: tyro.conf.Positional[Path]
    """The run's folder."""
    iterations: int | None = None
    """A new length of training. Schedules are stretched to it, so the result differs from that of the old length."""
    minutes: float | None = None
    """Stop and save after this much wall time."""
    data: tuple[str, ...] = ()
    """New path of the measurements, if they were moved."""
    problem: str | None = None
    """module:Class of the run's problem, if it is not part of icmape: its code is imported only if it is named here."""
    teacher: Annotated[str | None, tyro.conf.arg(name="teacher.policy")] = None
    """module:Class of the run's teacher, if it has one that is not part of icmape; as --problem."""
    devices: int | None = None
    """Number of accelerators; by default all that JAX finds."""
    track: Annotated[tuple[TrackerName | Literal["none"], ...], tyro.conf.arg(help=RESUME_TRACK_HELP)] = ()
    watch: Annotated[bool, tyro.conf.FlagCreatePairsOff, tyro.conf.arg(help=WATCH_HELP)] = False
    watch_port: Annotated[int, tyro.conf.arg(help=PORT_HELP)] = PORT
    quiet: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """No progress display."""


def resume_command(arguments: list[str]) -> int:
    """Continue a run."""
    args = tyro.cli(ResumeOptions, prog="icmape resume", args=arguments)
    folder = args.run
    if not (folder / "config.json").exists():
        raise UserError(f"{folder} holds no run: expected {folder / 'config.json'}")
    kind, problem_arguments, config = read_config(folder / "config.json")
    named = [name for name in (args.problem, args.teacher) if name]
    problem = build_named(kind, {**problem_arguments, **({"data": list(args.data)} if args.data else {})}, named)
    config = dataclasses.replace(config, minutes=args.minutes)
    if args.iterations is not None:
        config = dataclasses.replace(config, iterations=args.iterations)
        check(config, problem)
    teams = [folder / f"team-{seed}.safetensors" for seed in config.seeds]
    if _iterations_behind(teams) >= config.iterations:
        say(f"{folder} is already finished: all {config.iterations:,} iterations are done, and its teams are saved")
        problem_too = f" --problem {args.problem}" if args.problem else ""
        teacher_too = f" --teacher.policy {args.teacher}" if args.teacher else ""
        say(f"judge them with `icmape evaluate {folder}{problem_too}`")
        say(f"train longer with `icmape resume {folder}{problem_too}{teacher_too} --iterations N`")
        return 0
    check_free(folder)
    began = time.monotonic()

    def work(tell: Callback | None) -> Run:
        policies = find_policies(problem, config, named=named)
        held.enter_context(only_writer(folder))
        if args.iterations is not None:
            write_config(folder, problem, config)
        return resume_run(problem, config, folder, callback=tell, policies=policies, devices=args.devices)

    trackers = () if args.track == ("none",) else tracked_with(folder, args.track or None)
    port = args.watch_port if args.watch else None
    with following(folder, config, trackers, port, resumed=True) as follow, ExitStack() as held:
        return _run(work, config, folder, began, args.quiet, follow)


def _iterations_behind(teams: Iterable[Path]) -> int:
    """Iterations of training behind all these teams; -1 if a team is missing or does not record it."""
    try:
        return min(int(about(path).card["iterations"]) for path in teams)
    except (UserError, KeyError, TypeError, ValueError):
        return -1


def _finish(run: Run, folder: Path, seconds: float, follow: Following) -> int:
    """Save teams and curves, and print a summary."""
    from icmape.learning.run_teams import save_teams
    from icmape.learning.validation import judging_worlds, standard_error
    from icmape.plot.training_curves import draw_curves

    paths = save_teams(run, folder)
    picture = draw_curves(folder)
    follow.finish(run, picture)
    failed = run.faults()
    for index, seed in enumerate(run.config.seeds):
        best = run.state(index).best
        note = f"FAILED ({failed[seed]} not finite)" if seed in failed else ""
        if int(best.iteration) == 0:
            say(f"seed {seed}: {note or 'not validated yet'}  {paths[seed]}")
            continue
        accuracy, worlds = float(best.accuracy), judging_worlds(run.config, best.policy)
        say(
            f"seed {seed}: validation accuracy {accuracy:.3f} (standard error {standard_error(accuracy, worlds):.3f}, "
            f"{worlds:,} worlds) at τ {float(best.tau):.2f} (iteration {int(best.iteration):,}) {note} {paths[seed]}"
        )
        for which, delta in enumerate(run.config.deltas if run.states.family is not None else ()):
            other = jax.tree.map(lambda x, which=which: x[which], run.state(index).family)
            say(
                f"  δ = {delta:g}: accuracy {float(other.accuracy):.3f} at τ {float(other.tau):.2f} "
                f"{folder / f'delta-{delta:g}' / paths[seed].name}"
            )
        for remark in run.remarks.get(seed, []):
            say(f"  it did not learn as it should: {remark}")
    curves = f"; curves: {picture}" if picture else ""
    say(
        f"{run.iteration:,} of {run.config.iterations:,} iterations, {run.seconds:.0f} s of training, "
        f"{seconds:.0f} s this time with compilation{curves}"
    )
    if run.finished and not failed:
        given = _own_code(run.problem)
        say(f"next: `icmape certify {folder}{given}`, `icmape report {folder}{given}`")
    if not run.finished and len(failed) < len(run.config.seeds):
        teacher = run.config.teacher.policy
        given = _own_code(run.problem) + (f" --teacher.policy {teacher}" if is_path(teacher) else "")
        say(f"not finished: go on with `icmape resume {folder}{given}`")
    return run.exit_code


def _own_code(problem: Problem) -> str:
    """The flag that names the class of a problem that is not part of icmape."""
    kind = problem_name(type(problem.unwrapped))
    return f" --problem {kind}" if ":" in kind else ""
