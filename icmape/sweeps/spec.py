"""The file of a sweep: TOML that says what all runs share, and a grid of what varies."""

import itertools
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from icmape.errors import UserError
from icmape.io import read_bounded

KEYS = {"preset", "problem", "algorithm", "episodes", "evaluation_seed", "settings", "arguments", "grid", "also"}
VARYING = {"preset", "problem", "algorithm", "seed"}
LONGEST_NAME = 80
MOST_RUNS = 100_000


@dataclass(frozen=True)
class Run:
    """One run of a sweep. `point` is what varies; the name of its folder comes from it."""

    name: str
    preset: str | None  # or a problem
    problem: str | None  # module:Class
    algorithm: str | None
    arguments: dict[str, Any]  # of the problem
    settings: dict[str, Any]  # of the training, flat
    point: dict[str, Any]
    episodes: int  # of its evaluation
    evaluation_seed: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return dict(self.__dict__)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> "Run":
        """The inverse of `to_dict`. The name becomes that of a folder, so it may not lead elsewhere."""
        run = Run(**values)
        if not isinstance(run.name, str) or not re.fullmatch(r"\d{3,}[A-Za-z0-9._=-]*", run.name):
            raise ValueError(f"{run.name!r} is no name of a run")
        return run


def read_spec(path: Path) -> list[Run]:
    """All runs of the file of a sweep, in its order."""
    try:
        content = tomllib.loads(read_bounded(path).decode())
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is no TOML: {error}") from error
    try:
        return runs_of(content)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


def runs_of(content: Mapping[str, Any]) -> list[Run]:
    """The runs of the content of such a file."""
    if unknown := sorted(set(content) - KEYS):
        raise UserError(f"unknown key {unknown[0]!r}; a sweep has {', '.join(sorted(KEYS))}")
    common = {name: content[name] for name in ("preset", "problem", "algorithm") if name in content}
    common |= _flat(content.get("settings", {}), "") | _flat(content.get("arguments", {}), "arguments.")
    if not isinstance(content.get("also", []), list):
        raise UserError(f"also needs a list of tables, each under [[also]]; given {content['also']!r}")
    points = [*_grid(content.get("grid", {})), *(_flat(point, "") for point in content.get("also", []))]
    sizes = {"episodes": content.get("episodes", 10_000), "evaluation_seed": content.get("evaluation_seed", 0)}
    for name, value in sizes.items():
        if type(value) is not int or value < (1 if name == "episodes" else 0):
            raise UserError(f"{name} is a number; given {value!r}")
    runs = [_run(number, common, point, sizes) for number, point in enumerate(points or [{}])]
    if len({json.dumps(run.point, sort_keys=True) for run in runs}) < len(runs):
        raise UserError("two runs are the same: a value stands twice in the grid, or in [[also]] as well")
    return runs


def _grid(grid: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """All combinations of the lists of a grid, the last one varying fastest."""
    flat = _flat(grid, "")
    for name, values in flat.items():
        if not isinstance(values, list) or not values:
            raise UserError(f"grid: {name} needs a list of values; given {values!r}")
    count = 1
    for values in flat.values():
        count *= len(values)
    if count > MOST_RUNS:
        raise UserError(f"the grid has {count:,} combinations; at most {MOST_RUNS:,}")
    for values in itertools.product(*flat.values()) if flat else ():
        yield dict(zip(flat, values, strict=True))


def _flat(table: Any, prefix: str) -> dict[str, Any]:
    """Nested tables as dotted names."""
    if not isinstance(table, Mapping):
        raise UserError(f"expected a table; given {table!r}")
    flat: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            _check_value(f"{prefix}{name}", value)
            flat[f"{prefix}{name}"] = value
    return flat


def _check_value(name: str, value: Any) -> None:
    """TOML also has dates, and a NaN, which is no value of a run: it never equals itself."""
    if isinstance(value, list):
        for part in value:
            _check_value(name, part)
    elif not isinstance(value, bool | int | float | str) or value != value:
        raise UserError(f"{name} takes numbers, text, true and false, and lists of these; given {value!s:.60}")


def _run(number: int, common: Mapping[str, Any], point: dict[str, Any], sizes: dict[str, int]) -> Run:
    whole = {**common, **point}
    named = {name: whole.pop(name, None) for name in ("preset", "problem", "algorithm")}
    if (named["preset"] is None) == (named["problem"] is None):
        raise UserError("every run needs one of preset and problem (module:Class)")
    if wrong := [name for name, value in named.items() if value is not None and not isinstance(value, str)]:
        raise UserError(f"{wrong[0]} is a name; given {named[wrong[0]]!r}")
    if "seed" in whole:
        whole["seeds"] = [whole.pop("seed")]
    arguments = {name.partition(".")[2]: value for name, value in whole.items() if name.startswith("arguments.")}
    settings = {name: value for name, value in whole.items() if not name.startswith("arguments.")}
    settings = {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}
    kind = named["preset"], named["problem"], named["algorithm"]
    return Run(_name(number, point), *kind, arguments, settings, point, sizes["episodes"], sizes["evaluation_seed"])


def _name(number: int, point: Mapping[str, Any]) -> str:
    """A folder's name: the number of the run, and what varies as far as there is room."""
    words = "_".join(f"{name.removeprefix('arguments.')}-{value}" for name, value in point.items())
    return f"{number:03d}_{re.sub(r'[^A-Za-z0-9._=-]+', '-', words)}"[:LONGEST_NAME].rstrip("_-.")
