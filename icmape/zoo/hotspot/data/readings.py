"""Readings from exports, and the account of every row."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

HOW_TO_GET = (
    "give a folder or files with --data (exports of the Water Quality Portal: results and stations), or download them: "
    'icmape data fetch --state MD --characteristic Nitrate --characteristic "Inorganic nitrogen (nitrate and nitrite)" '
    "--years 2001-2023"
)


@dataclass(frozen=True)
class Readings:
    """Values with a place and a day; all arrays have one entry per reading."""

    station: np.ndarray
    """Name of the station, as text."""
    latitude: np.ndarray
    """Degrees north."""
    longitude: np.ndarray
    """Degrees east: negative in America."""
    day: np.ndarray
    """datetime64[D]."""
    value: np.ndarray
    """mg/L as N."""

    def __post_init__(self) -> None:
        sizes = {len(array) for array in vars(self).values()}
        if len(sizes) != 1:
            raise ValueError(f"readings need arrays of one length; given {sorted(sizes)}")

    def __len__(self) -> int:
        return len(self.value)

    @property
    def year(self) -> np.ndarray:
        """The calendar year of each reading, as an integer."""
        return self.day.astype("datetime64[Y]").astype(np.int64) + 1970

    def where(self, keep: np.ndarray) -> "Readings":
        """The readings that a mask, or an index, picks."""
        return Readings(**{name: array[keep] for name, array in vars(self).items()})

    def of_years(self, years: Iterable[int]) -> "Readings":
        """The readings of these years."""
        return self.where(np.isin(self.year, list(years)))


@dataclass(frozen=True)
class FileAccount:
    """Account of the rows and physical lines of one file."""

    file: str
    read: int
    kept: int
    dropped: Mapping[str, int]
    """Reason → rows."""
    lines: int | None = None
    """Physical lines: the rows read, and the others."""
    other_lines: Mapping[str, int] = field(default_factory=dict)
    """Header, blank, or further lines of a quoted text → lines."""
    recoded: int = 0
    """Lines with bytes that are not UTF-8; these bytes were read as Latin-1."""

    def check(self) -> None:
        """Every row was kept, or dropped for one reason; every line is a row, or of another kind."""
        dropped, other_lines = sum(self.dropped.values()), sum(self.other_lines.values())
        assert self.kept + dropped == self.read, f"{self.file}: {self.kept} kept + {dropped} is not {self.read} read"
        if self.lines is not None:
            assert self.read + other_lines == self.lines, (
                f"{self.file}: {self.read} rows + {other_lines} is not {self.lines} lines"
            )


@dataclass(frozen=True)
class Account:
    """Account of every row of every file, and of changes to rows."""

    files: tuple[FileAccount, ...]
    """Those with results: what is read, kept and dropped below is of them."""
    changed: Mapping[str, int] = field(default_factory=dict)
    """Change → kept rows on which it was made."""
    examples: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Reason → up to three of the texts that were dropped for it."""
    readings: int = 0
    """Readings after averaging: station-days, or the rows kept where nothing is averaged."""
    averaged: bool = True
    station_files: tuple[FileAccount, ...] = ()

    @property
    def read(self) -> int:
        """Rows of all result files."""
        return sum(file.read for file in self.files)

    @property
    def kept(self) -> int:
        """Rows that became readings, or part of one."""
        return sum(file.kept for file in self.files)

    @property
    def dropped(self) -> dict[str, int]:
        """Reason → rows over all files, the most frequent first."""
        return dict(sum((Counter(file.dropped) for file in self.files), Counter()).most_common())

    def check(self) -> None:
        """Each row has one fate: kept + dropped is what was read, in every file and in all."""
        for file in (*self.files, *self.station_files):
            file.check()
        assert self.kept + sum(self.dropped.values()) == self.read
        assert self.readings <= self.kept

    def to_dict(self) -> dict[str, Any]:
        """The account as plain JSON."""
        return {"read": self.read, "kept": self.kept, "dropped": self.dropped, **asdict(self)}
