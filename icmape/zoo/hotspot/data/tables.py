"""Result and station tables from files, folders and archives, for all profiles of the portal."""

import csv
import gzip
import io
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from lzma import LZMAError
from math import isfinite
from operator import itemgetter
from pathlib import Path
from typing import Any

import pandas as pd

from icmape.errors import UserError
from icmape.zoo.hotspot.data.lines import fits, read_lines, records
from icmape.zoo.hotspot.data.values import number_of

MOST_BYTES = 2 * 2**30
"""Of one file, unpacked; more is refused before it is read."""
CUT_OFF = "ERROR: INCOMPLETE DATA"
"""What the portal writes into an answer that it could not finish, which it sends as a good one."""
WRONG_WIDTH = "line with another number of fields than the header"
STRAY_QUOTE = "line with a stray quote"
EXPECTED = (
    "expected exports of the Water Quality Portal as CSV, plain, gzipped or zipped: results (profile "
    "resultPhysChem or narrowResult; `icmape data fetch` gets them) and the station table that goes with them"
)
_NAMES = """
station MonitoringLocationIdentifier Location_Identifier
day ActivityStartDate Activity_StartDate
characteristic CharacteristicName Result_Characteristic
value ResultMeasureValue Result_Measure
unit ResultMeasure/MeasureUnitCode Result_MeasureUnit
speciation MethodSpeciationName MethodSpecificationName Result_MethodSpeciation
condition ResultDetectionConditionText Result_ResultDetectionCondition
limit DetectionQuantitationLimitMeasure/MeasureValue DetectionLimit_MeasureA
limit_unit DetectionQuantitationLimitMeasure/MeasureUnitCode DetectionLimit_MeasureUnitA
medium ActivityMediaName Activity_Media
activity_type ActivityTypeCode Activity_TypeCode
status ResultStatusIdentifier Result_MeasureStatusIdentifier
organization OrganizationIdentifier Org_Identifier
activity ActivityIdentifier Activity_ActivityIdentifier
time ActivityStartTime/Time Activity_StartTime
depth ActivityDepthHeightMeasure/MeasureValue ResultDepthHeightMeasure/MeasureValue Activity_DepthHeightMeasure \
      ResultDepthHeight_Measure
identifier ResultIdentifier Result_MeasureIdentifier
latitude LatitudeMeasure ActivityLocation/LatitudeMeasure Location_LatitudeStandardized Location_Latitude
longitude LongitudeMeasure ActivityLocation/LongitudeMeasure Location_LongitudeStandardized Location_Longitude
"""
COLUMNS = {names[0]: names[1:] for names in map(str.split, _NAMES.strip().splitlines())}
"""Our column → its names in the portal's profiles. Of several in one file the first filled one counts."""
RESULT_NEEDS = ("station", "day", "characteristic", "value", "unit")
STATION_NEEDS = ("station", "latitude", "longitude")

_DAY = re.compile(r"\s*(\d{4}-\d\d?-\d\d?|\d\d?/\d\d?/\d{4})")


class NotAnExport(UserError):
    """A file that lacks the columns of results and of stations."""


@dataclass(frozen=True)
class Table:
    """One file: its rows and its other lines."""

    file: str
    is_result: bool
    has_places: bool
    rows: pd.DataFrame
    """Texts, stripped, one column for each of `COLUMNS`; blank where the file has none."""
    broken: list[tuple[str, str]]
    """Lines that should be rows and are none: why, and how they begin."""
    lines: int
    """Physical lines in all."""
    other_lines: dict[str, int]
    """Kind → lines that are neither a row nor broken."""
    recoded: int
    """Lines with bytes that are not UTF-8; these bytes were read as Latin-1."""


def read_tables(paths: Sequence[str | Path]) -> Iterator[Table]:
    """The tables of all files, those of folders and archives included; a file that is named twice is read once."""
    files: dict[Path, str] = {}
    for file in (file for source in paths for file in _files(Path(source))):
        files.setdefault(file.resolve(), str(file))
    for path, shown in files.items():
        try:
            for name, stream in _streams(path, shown):
                table = _read_table(name, stream)
                if table.rows.empty and not table.broken:
                    raise UserError(
                        f"{name} holds a header and no rows: the query found nothing; widen its years or "
                        "characteristics, or leave the file out"
                    )
                yield table
        except (EOFError, OSError, zlib.error, LZMAError, zipfile.BadZipFile, NotImplementedError) as error:
            raise UserError(f"{shown} is broken ({error}), perhaps cut off: delete it and download it again") from error


def parse_table(file: str, data: bytes) -> Table:
    """The table in a file's bytes; an error if it is none, or not whole."""
    return _read_table(file, io.BytesIO(data))


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise UserError(f"{path} does not exist; {EXPECTED}")
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.iterdir() if file.name.lower().endswith((".csv", ".csv.gz", ".zip")))
    if not files:
        raise UserError(f"the folder {path} holds no .csv, .csv.gz or .zip; {EXPECTED}")
    return files


def _streams(path: Path, shown: str) -> Iterator[tuple[str, Any]]:
    """Name and content of each table in a file. The kind of file is detected from its content."""
    with path.open("rb") as raw:
        head, size = raw.read(4), path.stat().st_size
        if head == b"PK\x03\x04":
            with zipfile.ZipFile(raw) as archive:
                members = [member for member in archive.infolist() if member.filename.lower().endswith(".csv")]
                if not members or any(member.flag_bits & 1 for member in members):
                    problem = "is encrypted: unpack it and give what was in it" if members else "holds no .csv"
                    raise UserError(f"{shown} {problem}; {EXPECTED}")
                _check_size(shown, sum(member.file_size for member in members))
                for member in members:
                    yield f"{shown}/{member.filename}", archive.open(member)
            return
        raw.seek(0)
        _check_size(shown, size)
        if head[:2] != b"\x1f\x8b":
            yield shown, raw
            return
        unpacked, count = gzip.GzipFile(fileobj=raw), 0
        while piece := unpacked.read(2**20):
            count += len(piece)
            _check_size(shown, count * size // raw.tell() if count > MOST_BYTES else 0)
        unpacked.seek(0)
        yield shown, unpacked


def _check_size(file: str, size: int) -> None:
    if size > MOST_BYTES:
        raise UserError(
            f"{file} holds about {size / 2**30:.3g} GiB when unpacked; expected at most {MOST_BYTES / 2**30:.3g} GiB "
            "in a file: fetch fewer years at a time, or split it"
        )


def _read_table(file: str, stream: Any) -> Table:
    lines, recoded = read_lines(file, stream)
    head = next((number for number, line in enumerate(lines) if line.strip()), None)
    if head is None:
        raise UserError(f"{file} is empty; {EXPECTED}")
    if "\0" in lines[head]:
        raise UserError(f"{file} holds zero bytes, so it is no text, or UTF-16 without its mark; save it as UTF-8")
    delimiter = max(",\t;", key=lines[head].count)
    try:
        header = next(csv.reader([lines[head]], delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise UserError(f"{file} has a stray quote in its header ({error}); {EXPECTED}") from error
    columns, width = _columns(header), len(header)
    is_result = _is_result(file, columns)

    def is_row(fields: list[str]) -> bool:
        """Whether fields are those of a row: a day for a result, a place for a station."""
        if not fits(fields, width):
            return False
        if is_result:
            return _DAY.match(fields[columns["day"][0]]) is not None
        return all(isfinite(number_of(fields[columns[name][0]])) for name in STATION_NEEDS[1:])

    rows: list[tuple[str, ...]] = []
    broken: list[tuple[str, str]] = []
    other_lines = Counter({"header": 1, "blank": head})
    interned: dict[str, str] = {}  # equal texts are stored once: exports repeat themselves in every column
    take = itemgetter(*(at for places in columns.values() for at in places))
    for taken, fields in records(file, lines[head + 1 :], delimiter, width, is_row):
        other_lines["further lines of a quoted text"] += len(taken) - 1
        if fields is None:
            broken.append((STRAY_QUOTE, taken[0].strip()[:60]))
        elif fits(fields, width):
            texts = tuple(map(str.strip, take(fields)))
            rows.append(tuple(map(interned.setdefault, texts, texts)))
        elif not any(fields):
            other_lines["blank"] += 1
        elif fields[0].startswith(CUT_OFF):
            raise UserError(f"{file} is not whole: the portal ended it with {fields[0][:60]!r}; download it again")
        else:
            broken.append((WRONG_WIDTH, " | ".join(fields)[:60]))
    has_places = {"latitude", "longitude"} <= columns.keys()
    return Table(file, is_result, has_places, _frame(rows, columns), broken, len(lines), dict(+other_lines), recoded)


def _frame(rows: list[tuple[str, ...]], columns: dict[str, list[int]]) -> pd.DataFrame:
    """A column of texts for each of `COLUMNS`, of each row the first that is filled."""
    places = [at for options in columns.values() for at in options]
    texts = pd.DataFrame(rows, columns=places, dtype=object)
    frame = pd.DataFrame("", index=texts.index, columns=list(COLUMNS), dtype=object)
    for name, options in columns.items():
        for at in options:
            frame[name] = frame[name].where(frame[name] != "", texts[at])
    return frame


def _columns(header: list[str]) -> dict[str, list[int]]:
    """Where each of `COLUMNS` stands in a file. R writes `.` for `/`."""
    at = {name.strip().lower().replace(".", "/"): index for index, name in reversed(list(enumerate(header)))}
    columns = {column: [at[name.lower()] for name in names if name.lower() in at] for column, names in COLUMNS.items()}
    return {column: places for column, places in columns.items() if places}


def _is_result(file: str, columns: dict[str, list[int]]) -> bool:
    """Whether a file holds results, or else stations; if neither, say what it lacks."""
    if all(column in columns for column in RESULT_NEEDS):
        return True
    like_results = [column for column in RESULT_NEEDS[1:] if column in columns]
    if not like_results and all(column in columns for column in STATION_NEEDS):
        return False
    kind, needs = ("result", RESULT_NEEDS) if like_results else ("station", STATION_NEEDS)
    missing = ", ".join(COLUMNS[column][0] for column in needs if column not in columns)
    raise NotAnExport(f"{file} looks like no {kind} export: it has no column {missing}; {EXPECTED}")
