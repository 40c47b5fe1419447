"""Exports of water-quality data: damaged tables, and rows that a tired hand typed."""

import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

from fuzz.byte_mutations import MUTATIONS, damaged
from fuzz.cases import Case, Judge, Target, must_refuse
from icmape.zoo.hotspot.data.exports import read_exports
from icmape.zoo.hotspot.data.readings import Account, Readings

HEADER = (
    "OrganizationIdentifier,MonitoringLocationIdentifier,ActivityStartDate,CharacteristicName,MethodSpeciationName,"
    "ResultMeasureValue,ResultMeasure/MeasureUnitCode,ResultCommentText,LatitudeMeasure,LongitudeMeasure"
)
COLUMN = {name: place for place, name in enumerate(HEADER.split(","))}
ROWS = 40
DROPPED_VALUES = (
    *(
        "1e308",
        "1e400",
        "inf",
        "-inf",
        "nan",
        "-1",
        "-0.001",
        "2,0",
        "1.000,5",
        "2.0.0",
        "1_0",
        "0x10",
        "two",
        "<",
        ">",
    ),
    *("2.0\0", "1e10", "--5", "2 0", "NaN", "None", "#REF!", "<-3", "1/2", "٣٫٥", "9" * 400),
)
DROPPED_DAYS = (
    *(
        "1899-12-31",
        "2999-01-01",
        "0001-01-01",
        "2019-13-01",
        "2019-02-30",
        "07.05.2019",
        "2019",
        "May 7",
        "43592",
        "0",
    ),
    *("2019-05-071", "-2019-05-07", "13/13/2019", "9999-12-31", "2019-05-07x", "20190507", ""),
)
DROPPED_UNITS = (
    "",
    "�g/l as N",
    "Âµg/l as N",
    "mg/kg as N",
    "m/l",
    "%",
    "deg C",
    "mg",
    "æg/l",
    "?g/l",
    "mg/l as P",
    "g" * 400,
)
DROPPED_PLACES = ("", "91", "-90.1", "nan", "inf", "1e308", "39,1", "N39.1", "39°06'", "181", "0x27", "39.1.1")


class Given(NamedTuple):
    """Files by name."""

    files: dict[str, bytes]


class Read(NamedTuple):
    """What was read: a value for each station and day, and the account."""

    values: dict[tuple[str, str], float]
    account: Account


def row(number: int) -> list[str]:
    """A row whose station, day and value are its own."""
    day = f"20{10 + number % 10}-{1 + number % 12:02d}-{1 + number % 28:02d}"
    unit = ("mg/l as N", "µg/l as N")[number % 2]
    comment = ("", '"after rain, high"', 'pipe 5"', '"said ""clear"""')[number % 4]
    place = (f"{39 + number / 100:.2f}", f"{-76 - number / 100:.2f}")
    return ["ORG", f"S{number}", day, "Nitrate", "", f"{1 + number / 8}", unit, comment, *place]


def table(rows: list[list[str]], header: str = HEADER, end: str = "\n") -> str:
    """A file of rows."""
    return end.join([header, *map(",".join, rows), ""])


def whole_rows() -> list[list[str]]:
    """All rows."""
    return [row(number) for number in range(ROWS)]


def reader(folder: Path) -> Callable[[Given], Read]:
    """Write the files and read them."""

    def run(given: Given) -> Read:
        for path in folder.iterdir():
            path.unlink()
        for name, data in given.files.items():
            (folder / name).write_bytes(data)
        readings, account = read_exports([folder])
        return Read(_values(readings), account)

    return run


def _values(readings: Readings) -> dict[tuple[str, str], float]:
    days, values = readings.day.astype(str).tolist(), readings.value.tolist()
    return dict(zip(zip(readings.station.tolist(), days, strict=True), values, strict=True))


def keeps(expected: dict[tuple[str, str], float], lines: int | None = None, only: bool = False) -> Judge:
    """The account adds up to the lines, these readings are among those read (or all of them); values are possible."""

    def judge(read: Read) -> str | None:
        read.account.check()
        for file in (*read.account.files, *read.account.station_files):
            if file.kept + sum(file.dropped.values()) + sum(file.other_lines.values()) != file.lines:
                return f"the account of {file.file} does not add up to {file.lines} lines"
        counted = read.account.files[0].lines
        if lines is not None and counted != lines:
            return f"{counted} lines in the account, {lines} in the file"
        values = np.array(list(read.values.values()))
        if not (np.isfinite(values).all() and (values >= 0).all() and (values <= 1e6).all()):
            return f"values that cannot be: {values[~np.isfinite(values) | (values < 0) | (values > 1e6)]}"
        changed = {
            key: (value, read.values.get(key)) for key, value in expected.items() if read.values.get(key) != value
        }
        if changed:
            return f"rows that were not touched have other values: {changed}"
        if only and len(read.values) != len(expected):
            return f"readings that should have been dropped: {sorted(set(read.values) - set(expected))}"
        return None

    return judge


def physical_lines(data: bytes) -> int:
    """Lines that end with LF, CR or both, and what follows the last end."""
    ends = re.findall(rb"\r\n|\r|\n", data)
    return len(ends) + (not data.endswith((b"\r", b"\n")) and bool(data))


def make(folder: Path) -> Target:
    """The target."""
    run = reader(folder)
    rows = whole_rows()
    data = table(rows).encode()
    values = run(Given({"result.csv": data})).values
    assert len(values) == ROWS
    of_row = {f"S{number}": key for number in range(ROWS) for key in values if key[0] == f"S{number}"}
    ours = {line: of_row[fields[1]] for line, fields in zip(data.splitlines()[1:], rows, strict=True)}

    def bytes_damaged(mutation: str) -> Callable[[Random], Case]:
        def make_case(random: Random) -> Case:
            """The header stays: without it a column may be lost, which nothing can tell from one that never was."""
            start = len(HEADER) + 1
            body = damaged(data[start:], mutation, random)
            lines = set(re.split(rb"\r\n|\r|\n", body))
            untouched = (
                {} if mutation == "bits flipped" else {key: values[key] for line, key in ours.items() if line in lines}
            )
            given = data[:start] + body
            return Case(Given({"result.csv": given}), keeps(_alone(untouched, body, ours), physical_lines(given)))

        return make_case

    def one_field(column: str, options: tuple[str, ...]) -> Callable[[Random], Case]:
        def make_case(random: Random) -> Case:
            number, text = random.randrange(ROWS), random.choice(options)
            changed = [list(fields) for fields in rows]
            changed[number][COLUMN[column]] = f'"{text}"' if "," in text else text
            expected = {key: value for key, value in values.items() if key != of_row[f"S{number}"]}
            given = table(changed).encode()
            return Case(Given({"result.csv": given}), keeps(expected, ROWS + 1, only=True))

        return make_case

    def quotes(random: Random) -> Case:
        lines, touched = data.decode().split("\n"), set()
        for _ in range(random.randint(1, 4)):
            at = random.randrange(1, ROWS + 1)
            place = random.randrange(len(lines[at]) + 1)
            lines[at] = lines[at][:place] + random.choice(['"', '""', '","']) + lines[at][place:]
            touched.add(at)
        given = "\n".join(lines).encode()
        expected = {
            of_row[f"S{number}"]: values[of_row[f"S{number}"]] for number in range(ROWS) if number + 1 not in touched
        }
        return Case(Given({"result.csv": given}), keeps(expected, ROWS + 1))

    def quotes_in_pairs(random: Random) -> Case:
        """A quote before a field, and one behind that field of a later row; behind the first one it is a letter.

        The day may stand in the second of its two columns.
        """
        filled = [place for place, field in enumerate(row(0)) if field]
        column, start = random.choice([0, *filled]), random.randrange(ROWS - 3)
        end = start + random.randint(1, 3)
        changed = [list(fields) for fields in rows]
        changed[start][column] = '"' + changed[start][column]
        changed[end][column] += '"'
        touched = {f"S{start}"} | ({f"S{end}"} if column else set())
        expected = {key: value for key, value in values.items() if key[0] not in touched}
        names = HEADER
        if random.random() < 0.5:
            names = f"{HEADER.replace('ActivityStartDate', 'Activity_StartDate')},ActivityStartDate"
            changed = [[*fields, ""] for fields in changed]
        others_kept = keeps(expected, ROWS + 1)

        def judge(read: Read) -> str | None:
            if read.account.files[0].other_lines != {"header": 1}:
                return f"rows were taken for something else: {read.account.files[0].other_lines}"
            return others_kept(read)

        return Case(Given({"result.csv": table(changed, names).encode()}), judge)

    def header(random: Random) -> Case:
        names = HEADER.split(",")
        needed = random.choice(names[1:4] + names[5:7])
        kind = random.randrange(4)
        if kind == 0:
            names[names.index(needed)] = random.choice(["", "x" * 100_000, needed + "_", "ResultComment"])
        elif kind == 1:
            names.append(needed)
        elif kind == 2:
            names[0] = '"' + names[0]
        else:
            names.append("x" * 140_000)
        return Case(Given({"result.csv": table(rows, ",".join(names)).encode()}), must_refuse)

    def order_of_columns(random: Random) -> Case:
        order = random.sample(range(len(COLUMN)), len(COLUMN))
        shuffled = [[fields[place] for place in order] for fields in (HEADER.split(","), *rows)]
        given = "\n".join(map(",".join, shuffled)).encode()
        return Case(Given({"result.csv": given}), keeps(values, ROWS + 1, only=True))

    def encodings(random: Random) -> Case:
        encoding = random.choice(
            ["utf-8-sig", "utf-16", "utf-32", "latin-1", "cp1252", "utf-16-le", "utf-32-be", "mixed"]
        )
        text = data.decode()
        if encoding == "mixed":
            lines = [line.encode(random.choice(["utf-8", "latin-1"])) for line in text.split("\n")]
            return Case(Given({"result.csv": b"\n".join(lines)}), keeps(values, ROWS + 1, only=True))
        return Case(Given({"result.csv": text.encode(encoding)}), keeps(values, ROWS + 1, only=True))

    def line_ends(random: Random) -> Case:
        ends = random.choice([["\r"], ["\r\n"], ["\n", "\r\n"], ["\r\r\n"], ["\n\n"], ["\n", "\r"], ["\n\r"]])
        given = "".join(line + random.choice(ends) for line in data.decode().splitlines()).encode()
        return Case(Given({"result.csv": given}), keeps(values, physical_lines(given), only=True))

    def huge(random: Random) -> Case:
        number, column = random.randrange(ROWS), random.choice(list(COLUMN))
        changed = [list(fields) for fields in rows]
        changed[number][COLUMN[column]] = random.choice("9x ") * random.choice([300, 5000, 100_000, 200_000])
        expected = {key: value for key, value in values.items() if key != of_row[f"S{number}"]}
        return Case(Given({"result.csv": table(changed).encode()}), keeps(expected, ROWS + 1))

    mutations: dict[str, Callable[[Random], Case]] = {name: bytes_damaged(name) for name in MUTATIONS}
    mutations |= {
        "value that is none": one_field("ResultMeasureValue", DROPPED_VALUES),
        "day that is none": one_field("ActivityStartDate", DROPPED_DAYS),
        "unit that is none": one_field("ResultMeasure/MeasureUnitCode", DROPPED_UNITS),
        "latitude that is none": one_field("LatitudeMeasure", DROPPED_PLACES[:9] + DROPPED_PLACES[10:]),
        "stray quotes": quotes,
        "stray quotes in pairs": quotes_in_pairs,
        "header": header,
        "order of columns": order_of_columns,
        "encoding": encodings,
        "line ends": line_ends,
        "huge field": huge,
    }
    return Target(run, mutations)


def _alone(
    untouched: dict[tuple[str, str], float], body: bytes, ours: dict[bytes, Any]
) -> dict[tuple[str, str], float]:
    """Of untouched rows those whose station occurs nowhere else: a piece of a row may be another row of its station."""
    pieces = [key for line, key in ours.items() if key in untouched and body.count(f",{key[0]},".encode()) == 1]
    return {key: untouched[key] for key in pieces}
