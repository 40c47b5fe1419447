"""Result and station tables out of files, folders and archives, whatever profile of the portal they came from."""

import csv
import gzip
import io
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from icmape.errors import UserError

CUT_OFF = "ERROR: INCOMPLETE DATA"
"""What the portal writes into an answer that it could not finish, which it sends as a good one."""

EXPECTED = (
    "expected exports of the Water Quality Portal as CSV, plain, gzipped or zipped: results (profile "
    "resultPhysChem or narrowResult; `icmape data fetch` gets them) and the station table that goes with them"
)


class NotAnExport(UserError):
    """A file that lacks the columns of results and of stations."""


class Row(NamedTuple):
    """One result, as text; what its file has no column for is blank."""

    station: str
    day: str
    characteristic: str
    value: str
    unit: str
    speciation: str
    condition: str
    limit: str
    limit_unit: str
    medium: str
    activity_type: str
    status: str
    organization: str
    activity: str
    time: str
    depth: str
    identifier: str
    latitude: str
    longitude: str


# Names of one thing in the portal's profiles: legacy, then WQX 3.0. Of several in one file the first filled one counts.
COLUMNS: dict[str, tuple[str, ...]] = {
    "station": ("MonitoringLocationIdentifier", "Location_Identifier"),
    "day": ("ActivityStartDate", "Activity_StartDate"),
    "characteristic": ("CharacteristicName", "Result_Characteristic"),
    "value": ("ResultMeasureValue", "Result_Measure"),
    "unit": ("ResultMeasure/MeasureUnitCode", "Result_MeasureUnit"),
    "speciation": ("MethodSpeciationName", "MethodSpecificationName", "Result_MethodSpeciation"),
    "condition": ("ResultDetectionConditionText", "Result_ResultDetectionCondition"),
    "limit": ("DetectionQuantitationLimitMeasure/MeasureValue", "DetectionLimit_MeasureA"),
    "limit_unit": ("DetectionQuantitationLimitMeasure/MeasureUnitCode", "DetectionLimit_MeasureUnitA"),
    "medium": ("ActivityMediaName", "Activity_Media"),
    "activity_type": ("ActivityTypeCode", "Activity_TypeCode"),
    "status": ("ResultStatusIdentifier", "Result_MeasureStatusIdentifier"),
    "organization": ("OrganizationIdentifier", "Org_Identifier"),
    "activity": ("ActivityIdentifier", "Activity_ActivityIdentifier"),
    "time": ("ActivityStartTime/Time", "Activity_StartTime"),
    "depth": (
        "ActivityDepthHeightMeasure/MeasureValue",
        "ResultDepthHeightMeasure/MeasureValue",
        "Activity_DepthHeightMeasure",
        "ResultDepthHeight_Measure",
    ),
    "identifier": ("ResultIdentifier", "Result_MeasureIdentifier"),
    "latitude": (
        "LatitudeMeasure",
        "ActivityLocation/LatitudeMeasure",
        "Location_LatitudeStandardized",
        "Location_Latitude",
    ),
    "longitude": (
        "LongitudeMeasure",
        "ActivityLocation/LongitudeMeasure",
        "Location_LongitudeStandardized",
        "Location_Longitude",
    ),
}
RESULT_NEEDS = ("station", "day", "characteristic", "value", "unit")
STATION_NEEDS = ("station", "latitude", "longitude")


@dataclass(frozen=True)
class Table:
    """One file's rows. Those with more or fewer fields than the header are counted, not read."""

    file: str
    is_result: bool
    has_places: bool
    rows: list[Row]
    broken: list[str]


def read_tables(paths: Sequence[str | Path]) -> Iterator[Table]:
    """The tables of all files, those of folders and archives included; a file that is named twice is read once."""
    files: dict[Path, str] = {}
    for file in (file for given in paths for file in _files(Path(given))):
        files.setdefault(file.resolve(), str(file))
    for path, shown in files.items():
        for name, data in _contents(path, shown):
            table = parse_table(name, data)
            if not table.rows and not table.broken:
                raise UserError(
                    f"{name} holds a header and no rows: the query found nothing; widen its years or characteristics, "
                    "or leave the file out"
                )
            yield table


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise UserError(f"{path} does not exist; {EXPECTED}")
    if not path.is_dir():
        return [path]
    found = sorted(file for file in path.iterdir() if file.name.lower().endswith((".csv", ".csv.gz", ".zip")))
    if not found:
        raise UserError(f"the folder {path} holds no .csv, .csv.gz or .zip; {EXPECTED}")
    return found


def _contents(path: Path, shown: str) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of each table in a file. What kind of file it is, its content says, not its name."""
    data = path.read_bytes()
    try:
        if data.startswith(b"PK\x03\x04"):
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                for member in archive.namelist():
                    if member.lower().endswith(".csv"):
                        yield f"{shown}/{member}", archive.read(member)
        elif data.startswith(b"\x1f\x8b"):
            yield shown, gzip.decompress(data)
        else:
            yield shown, data
    except (EOFError, OSError, zlib.error, zipfile.BadZipFile) as error:
        raise UserError(f"{shown} is broken ({error}), perhaps cut off: delete it and download it again") from error


def parse_table(file: str, data: bytes) -> Table:
    """The table in a file's bytes; an error if it is none, or not whole."""
    if not data.strip():
        raise UserError(f"{file} is empty; {EXPECTED}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    first_line = text.partition("\n")[0]
    delimiter = max(",\t;", key=first_line.count)
    where = _columns(next(csv.reader([first_line], delimiter=delimiter), []))
    is_result = _is_result(file, where)
    rows, broken = _rows(file, text, delimiter, where)
    return Table(file, is_result, {"latitude", "longitude"} <= where.keys(), rows, broken)


def _columns(header: list[str]) -> dict[str, tuple[int, ...]]:
    """Where each field of a row stands in the file. R writes `.` for `/`."""
    at = {name.strip().lower().replace(".", "/"): index for index, name in reversed(list(enumerate(header)))}
    found = {field: tuple(at[name.lower()] for name in names if name.lower() in at) for field, names in COLUMNS.items()}
    return {field: places for field, places in found.items() if places}


def _is_result(file: str, where: dict[str, tuple[int, ...]]) -> bool:
    """Whether a file holds results, or else stations; if neither, say what it lacks."""
    if all(field in where for field in RESULT_NEEDS):
        return True
    like_results = [field for field in RESULT_NEEDS if field in where and field != "station"]
    if not like_results and all(field in where for field in STATION_NEEDS):
        return False
    needs = RESULT_NEEDS if like_results else STATION_NEEDS
    missing = ", ".join(COLUMNS[field][0] for field in needs if field not in where)
    kind = "result" if like_results else "station"
    raise NotAnExport(f"{file} looks like no {kind} export: it has no column {missing}; {EXPECTED}")


def _rows(file: str, text: str, delimiter: str, where: dict[str, tuple[int, ...]]) -> tuple[list[Row], list[str]]:
    try:
        try:
            return _split(file, csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True), where)
        except csv.Error as error:
            if "unexpected end" in str(error):
                raise UserError(f"{file} ends inside a quoted text: it was cut off; download it again") from error
            # quotes where none belong, as in a file that was edited by hand: read as far as possible
            return _split(file, csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), where)
    except csv.Error as error:
        raise UserError(f"{file} cannot be read as CSV: {error}; download it again") from error


def _split(file: str, lines: Iterator[list[str]], where: dict[str, tuple[int, ...]]) -> tuple[list[Row], list[str]]:
    width = len(next(lines))
    take = _taker(where)
    rows, broken = [], []
    for line in lines:
        if len(line) == width or (len(line) > width and not any(line[width:])):
            rows.append(take(line))
        elif any(line):
            if line[0].startswith(CUT_OFF):
                raise UserError(f"{file} is not whole: the portal ended it with {line[0][:60]!r}; download it again")
            broken.append(" | ".join(line)[:60])
    return rows, broken


def _taker(where: dict[str, tuple[int, ...]]) -> Callable[[list[str]], Row]:
    """A function that picks a row's fields. Equal texts are stored once: exports repeat themselves in every column."""
    places = [where.get(field, ()) for field in Row._fields]
    known: dict[str, str] = {}

    def take(line: list[str]) -> Row:
        texts = []
        for options in places:
            text = ""
            for at in options:
                if text := line[at].strip():
                    break
            texts.append(known.setdefault(text, text))
        return Row._make(texts)

    return take
