"""Options of commands on fields: the region, its measurements and the kernel."""

import hashlib
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from icmape.errors import UserError
from icmape.zoo.hotspot.data.source import read_with_account
from icmape.zoo.hotspot.hotspot import Hotspot
from icmape.zoo.hotspot.hotspot_arguments import read_history
from icmape.zoo.hotspot.region import Grid, make_grid
from icmape.zoo.hotspot.statistics import rich_years

DEFAULTS = {name: argument.default for name, argument in inspect.signature(Hotspot).parameters.items()}
TRAINING = f"{min(DEFAULTS['training_years'])}-{max(DEFAULTS['training_years'])}"


@dataclass(frozen=True, kw_only=True)
class Region:
    """A region divided into cells; by default that of the preset `nitrate`."""

    latitudes: tuple[float, float] = DEFAULTS["latitudes"]
    """South and north edge, in degrees."""
    longitudes: tuple[float, float] = DEFAULTS["longitudes"]
    """West and east edge, in degrees."""
    rows: int = DEFAULTS["rows"]
    """Of the grid, from north to south."""
    columns: int = DEFAULTS["columns"]
    """Of the grid, from west to east."""
    characteristic: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """What was measured; may be repeated. By default nitrate, and nitrate + nitrite."""
    average: bool = DEFAULTS["average"]
    """Average the readings of one station on one day."""
    training_years: tuple[str, ...] = (TRAINING,)
    """Years that decide which cells are valid, such as 2001-2018."""
    synthetic: int | None = None
    """Seed of synthetic measurements, instead of files."""

    def problem(self, files: Sequence[Path], command: str, **kernel: Any) -> Hotspot:
        """The monitoring problem of this region, with every year that has enough readings."""
        training = parse_years(self.training_years)
        if bool(files) == (self.synthetic is not None):
            raise UserError(
                f"give exports or folders of them, or else --synthetic SEED: icmape data {command} data/wqp"
            )
        source: dict[str, Any] = {
            "data": tuple(map(str, files)) or None,
            "synthetic": self.synthetic,
            "characteristics": self.characteristic or DEFAULTS["characteristics"],
            "average": self.average,
        }
        area = {name: getattr(self, name) for name in ("latitudes", "longitudes", "rows", "columns")}
        years = self._years(source, make_grid(**area))
        return Hotspot(**source, **area, years=years, training_years=training, **kernel)

    def _years(self, source: dict[str, Any], grid: Grid) -> list[int]:
        """Years with enough readings for a field."""
        rules = (source["characteristics"], self.average)
        history = read_history(source["data"], self.synthetic, rules, grid)
        assert history is not None  # there are files, or a seed
        usable = rich_years(history, DEFAULTS["fit"])
        if not usable:
            counts = ", ".join(f"{year} ({int(n):,})" for year, n in zip(history.years, history.count, strict=True))
            raise UserError(
                f"no year has {DEFAULTS['fit']} readings in the region, as many as a field is fitted to; there are "
                f"{counts}. Choose a larger region, or add data"
            )
        return usable


@dataclass(frozen=True, kw_only=True)
class KernelSettings:
    """Kernel of the fields; by default that of the preset `nitrate`."""

    length: float = DEFAULTS["length"]
    """Of the Matérn-3/2 kernel, in cells."""
    variance: float = DEFAULTS["variance"]
    """Of the field, in log(1 + concentration)."""
    noise: float = DEFAULTS["noise"]
    """Variance of a reading around the field."""

    @property
    def kernel(self) -> dict[str, float]:
        """These settings as arguments of the problem."""
        return {"length": self.length, "variance": self.variance, "noise": self.noise}


EXPORTS = "Results and stations: exports of the Water Quality Portal (.csv, .csv.gz, .zip) or folders of them."
Files = Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(help=EXPORTS)]


def parse_years(words: Sequence[str]) -> list[int]:
    """Years from `2001-2023`, `2001 2005-2007` or `2019`; commas are accepted too."""
    years: set[int] = set()
    for word in ",".join(words).replace(" ", ",").split(","):
        if not word:
            continue
        first, dash, last = word.partition("-")
        if not first.isdigit() or not (last if dash else first).isdigit():
            raise UserError(f"years are written 2001-2023, or 2001 2005-2007; given {word!r}")
        span = range(int(first), int(last if dash else first) + 1)
        if not span:
            raise UserError(f"a range of years goes upwards; given {word!r}")
        years.update(span)
    return sorted(years)


def described_files(problem: Hotspot) -> list[dict[str, Any]]:
    """Names, hashes and row counts of the files that were read, without their folders."""
    if problem.data is None:
        return []
    results = read_with_account(problem.data, problem.characteristics, problem.average)[1].files
    sources = [Path(path) for path in problem.data]
    files = [file for path in sources for file in (sorted(path.iterdir()) if path.is_dir() else [path])]
    tables = {file.resolve(): file for file in files if file.name.lower().endswith((".csv", ".csv.gz", ".zip"))}
    described = []
    for path, shown in tables.items():
        inside = [account for account in results if f"{account.file}/".startswith(f"{shown}/")]
        content = {"file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
        counts = {name: sum(getattr(account, name) for account in inside) for name in ("read", "kept")}
        described.append({**content, **({f"rows_{name}": n for name, n in counts.items()} if inside else {})})
    return described
