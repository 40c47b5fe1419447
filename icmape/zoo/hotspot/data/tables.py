"""Result and station tables from files, folders and archives, for all profiles of the portal."""

import csv
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
from icmape.zoo.hotspot.data.packed import EXPECTED, files_in, streams
from icmape.zoo.hotspot.data.values import number_of

CUT_OFF = "ERROR: INCOMPLETE DATA"
"""What the portal writes into an answer that it could not finish, which it sends as a good one."""
WRONG_WIDTH = "line with another number of fields than the header"
STRAY_QUOTE = "line with a stray quote"
ZERO_BYTES = "line with zero bytes"
LONG_TEXT = "line with a text that is too long"
LONGEST_TEXT = 250
"""In letters, in a column that is read."""
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
    for file in (file for source in paths for file in files_in(Path(source))):
        files.setdefault(file.resolve(), str(file))
    for path, shown in files.items():
        try:
            for name, stream in streams(path, shown):
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
    columns, width = _columns(file, header), len(header)
    is_result = _is_result(file, columns)

    def is_row(fields: list[str]) -> bool:
        """Whether fields are those of a row: a day for a result, a place for a station."""
        if not fits(fields, width):
            return False
        if is_result:
            return _DAY.match(_filled(fields, columns["day"])) is not None
        return all(isfinite(number_of(_filled(fields, columns[name]))) for name in STATION_NEEDS[1:])

    rows: list[tuple[str, ...]] = []
    broken: list[tuple[str, str]] = []
    other_lines = Counter({"header": 1, "blank": head})
    interned: dict[str, str] = {}  # equal texts are stored once: exports repeat themselves in every column
    take = itemgetter(*(at for places in columns.values() for at in places))
    for taken, fields in records(file, lines[head + 1 :], delimiter, width, is_row):
        other_lines["further lines of a quoted text"] += len(taken) - 1
        if "\0" in "".join(taken):
            broken.append((ZERO_BYTES, taken[0].replace("\0", "").strip()[:60]))
        elif fields is None:
            broken.append((STRAY_QUOTE, taken[0].strip()[:60]))
        elif fits(fields, width):
            texts = tuple(map(str.strip, take(fields)))
            if max(map(len, texts)) > LONGEST_TEXT:
                broken.append((LONG_TEXT, taken[0].strip()[:60]))
                continue
            rows.append(tuple(map(interned.setdefault, texts, texts)))
        elif not any(fields):
            other_lines["blank"] += 1
        elif fields[0].startswith(CUT_OFF):
            raise UserError(f"{file} is not whole: the portal ended it with {fields[0][:60]!r}; download it again")
        else:
            broken.append((WRONG_WIDTH, " | ".join(fields)[:60]))
    has_places = {"latitude", "longitude"} <= columns.keys()
    return Table(file, is_result, has_places, _frame(rows, columns), broken, len(lines), dict(+other_lines), recoded)


def _filled(fields: list[str], places: list[int]) -> str:
    """The first field of these places that is filled; blank if none is."""
    return next((fields[at] for at in places if fields[at].strip()), "")


def _frame(rows: list[tuple[str, ...]], columns: dict[str, list[int]]) -> pd.DataFrame:
    """A column of texts for each of `COLUMNS`, of each row the first that is filled."""
    places = [at for options in columns.values() for at in options]
    texts = pd.DataFrame(rows, columns=places, dtype=object)
    frame = pd.DataFrame("", index=texts.index, columns=list(COLUMNS), dtype=object)
    for name, options in columns.items():
        for at in options:
            frame[name] = frame[name].where(frame[name] != "", texts[at])
    return frame


def _columns(file: str, header: list[str]) -> dict[str, list[int]]:
    """Where each of `COLUMNS` stands in a file. R writes `.` for `/`."""
    names = [name.strip().lower().replace(".", "/") for name in header]
    columns = {}
    for column, options in COLUMNS.items():
        for option in options:
            if names.count(option.lower()) > 1:
                raise UserError(f"{file} has the column {option} more than once: delete all but one of them")
        places = [names.index(option.lower()) for option in options if option.lower() in names]
        if places:
            columns[column] = places
    return columns


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
