"""Options of `icmape train`, derived from the settings and from the problem's constructor."""

import dataclasses
import inspect
import re
import typing
from pathlib import Path
from typing import Annotated, Any

import tyro

from icmape.cli.following import PORT_HELP, TRACK_HELP, WATCH_HELP, TrackerName
from icmape.learning.config import Config
from icmape.problem import Problem
from icmape.tracking.watch import PORT

RATES = {
    "lost": "Probability that a reading never arrives, for each agent and round.",
    "silent": "Probability that an agent falls silent for good, before each of its rounds.",
    "late": "Probability that a stop bit reaches an agent one round late.",
}
"""Rates of failures (`icmape.Unreliable`), and their help."""


MAIN = ("out", "seeds", "delta", "iterations", "minutes", "num_envs", "overwrite")
"""Settings that the short help shows, beside the choices."""


def train_options(problem_class: type[Problem], defaults: dict[str, Any], config: Config, short: bool = False) -> Any:
    """A dataclass of all settings: those of `Config`, of the problem (its constructor's arguments) and of the run.

    With `short`, only the main ones are shown, and accepted: for the help text.
    """
    fields: list[Any] = [
        (name, Annotated[kind, tyro.conf.arg(help=help_of(Config, name))], _default(getattr(config, name)))
        for name, kind in (typing.get_type_hints(Config) | {"algorithm": type(config.algorithm)}).items()
        if name in {field.name for field in dataclasses.fields(Config)}
    ]
    settings = _problem_settings(problem_class, defaults)
    flag = tyro.conf.FlagCreatePairsOff
    folder = Annotated[Path | None, tyro.conf.arg(help="Folder of the run; by default a new one under runs/.")]
    replace = Annotated[bool, flag, tyro.conf.arg(help="Replace the run that the folder holds.")]
    devices = Annotated[int | None, tyro.conf.arg(help="Number of accelerators; by default all that JAX finds.")]
    quiet = Annotated[bool, flag, tyro.conf.arg(help="No progress display.")]
    fields += [
        ("out", folder, _default(None)),
        ("overwrite", replace, _default(False)),
        ("devices", devices, _default(None)),
        ("quiet", quiet, _default(False)),
        ("track", Annotated[tuple[TrackerName, ...], tyro.conf.arg(help=TRACK_HELP)], _default(())),
        ("watch", Annotated[bool, flag, tyro.conf.arg(help=WATCH_HELP)], _default(False)),
        ("watch_port", Annotated[int, tyro.conf.arg(help=PORT_HELP)], _default(PORT)),
    ]
    needed = [f.name for f in dataclasses.fields(settings) if f.default is dataclasses.MISSING]
    fields.append(("problem", settings, dataclasses.field() if needed else _default(settings())))
    if short:
        fields = sorted((field for field in fields if field[0] in MAIN), key=lambda field: MAIN.index(field[0]))
    return dataclasses.make_dataclass("TrainOptions", fields, frozen=True, kw_only=True)


def _default(value: Any) -> Any:
    return dataclasses.field(default=value)


def help_of(owner: type, name: str) -> str:
    """The string under a field in its class's source, or in that of a base class."""
    for base in owner.__mro__[:-1]:
        match = re.search(rf'^    {name}: [^\n]*\n    """(.*?)"""', inspect.getsource(base), re.S | re.M)
        if match:
            return " ".join(match.group(1).split())
    return ""


def _problem_settings(problem_class: type[Problem], defaults: dict[str, Any]) -> type:
    """A problem's constructor as a dataclass, with help texts from the `Args:` of its docstring."""
    document = (inspect.getdoc(problem_class) or "").partition("Args:\n")[2]
    explained = dict(re.findall(r"^ {4}(\w+): (.*?)(?=^ {4}\w|\Z)", document, re.S | re.M))
    fields: list[Any] = []
    for parameter in inspect.signature(problem_class).parameters.values():
        value = defaults.get(parameter.name, parameter.default)
        value = tuple(value) if isinstance(value, list) else value  # a default must not be mutable
        text = " ".join(explained.get(parameter.name, "").split())
        default = dataclasses.field() if value is inspect.Parameter.empty else _default(value)
        fields.append((parameter.name, Annotated[parameter.annotation, tyro.conf.arg(help=text)], default))
    return dataclasses.make_dataclass("ProblemSettings", fields, frozen=True, kw_only=True)
