"""Options of `icmape train`, derived from the settings and from the problem's constructor."""

import dataclasses
import inspect
import re
import typing
from pathlib import Path
from typing import Annotated, Any

import tyro

from icmape.learning.config import Config
from icmape.problem import Problem

RATES = {
    "lost": "Probability that a reading never arrives, for each agent and round.",
    "silent": "Probability that an agent falls silent for good, before each of its rounds.",
    "late": "Probability that a stop bit reaches an agent one round late.",
}
"""Rates of failures (`icmape.Unreliable`), and their help."""


def train_options(problem_class: type[Problem], defaults: dict[str, Any], config: Config) -> Any:
    """A dataclass of all settings: those of `Config`, of the problem (its constructor's arguments) and of the run."""
    fields: list[Any] = [
        (name, Annotated[kind, tyro.conf.arg(help=help_of(Config, name))], _default(getattr(config, name)))
        for name, kind in (typing.get_type_hints(Config) | {"algorithm": type(config.algorithm)}).items()
        if name in {field.name for field in dataclasses.fields(Config)}
    ]
    settings = _problem_settings(problem_class, defaults)
    flag = tyro.conf.FlagCreatePairsOff
    folder = Annotated[Path | None, tyro.conf.arg(help="Folder of the run; by default a new one under runs/.")]
    replace = Annotated[bool, flag, tyro.conf.arg(help="Replace the run that the folder holds.")]
    quiet = Annotated[bool, flag, tyro.conf.arg(help="No progress display.")]
    fields += [
        ("out", folder, _default(None)),
        ("overwrite", replace, _default(False)),
        ("quiet", quiet, _default(False)),
    ]
    needed = [f.name for f in dataclasses.fields(settings) if f.default is dataclasses.MISSING]
    fields.append(("problem", settings, dataclasses.field() if needed else _default(settings())))
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
