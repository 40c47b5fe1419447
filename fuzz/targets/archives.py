"""Packed exports: damaged, nested, encrypted, or larger than they say; and station tables that do not fit."""

import gzip
import io
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random

from fuzz.byte_mutations import MUTATIONS, damaged
from fuzz.cases import Case, Target, must_refuse
from fuzz.targets.exports import COLUMN, HEADER, ROWS, Given, keeps, reader, table, whole_rows

STATION_HEADER = "MonitoringLocationIdentifier,LatitudeMeasure,LongitudeMeasure"
BOMB = 80_000_000
FLAGS = {b"PK\x03\x04": 6, b"PK\x01\x02": 8}
"""Mark of a header in a zip → where its flags stand."""


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """An archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def make(folder: Path) -> Target:
    """The target."""
    run = reader(folder)
    rows = [fields[: COLUMN["LatitudeMeasure"]] for fields in whole_rows()]
    results = table(rows, ",".join(HEADER.split(",")[: COLUMN["LatitudeMeasure"]])).encode()
    places = [[f"S{number}", f"{39 + number / 100:.2f}", f"{-76 - number / 100:.2f}"] for number in range(ROWS)]
    stations = table(places, STATION_HEADER).encode()
    values = run(Given({"a.csv": results, "b.csv": stations})).values
    assert len(values) == ROWS
    packed = {"gzip": gzip.compress(results, mtime=0), "zip": zipped({"a.csv": results, "b.csv": stations})}
    line = results.splitlines(keepends=True)
    bomb = line[0] + line[1] * (BOMB // len(line[1]))
    bombs = {"gzip": gzip.compress(bomb, 1, mtime=0), "zip": zipped({"a.csv": bomb, "b.csv": stations})}
    all_of_it = keeps(values, ROWS + 1, only=True)

    def files(kind: str, data: bytes) -> Given:
        return Given({"a.csv.gz": data, "b.csv": stations} if kind == "gzip" else {"a.zip": data})

    def archive_damaged(kind: str, mutation: str) -> Callable[[Random], Case]:
        """Checksums cover the content: what is read is all of it."""
        return lambda random: Case(files(kind, damaged(packed[kind], mutation, random)), all_of_it)

    def stated(random: Random) -> Case:
        """Sizes, checksums, flags, methods and places that a zip states of its members."""
        data = bytearray(packed["zip"])
        for mark, start in FLAGS.items():
            at = data.index(mark) + start
            offset, form = random.choice([(0, "<H"), (2, "<H"), (8, "<I"), (12, "<I"), (16, "<I"), (34, "<I")])
            value = random.choice([0, 1, 8, 14, 99, 0x41, 2**16 - 1, 10**6, 2**32 - 1]) % 2 ** (
                8 * struct.calcsize(form)
            )
            if at + offset + 4 < len(data):
                struct.pack_into(form, data, at + offset, value)
        return Case(files("zip", bytes(data)), all_of_it)

    def bombed(random: Random) -> Case:
        kind = random.choice(["gzip", "zip", "names", "many"])
        if kind in bombs:
            return Case(files(kind, bombs[kind]), must_refuse)
        if kind == "many":
            return Case(files("zip", zipped({f"{number}.csv": results for number in range(1500)})), must_refuse)
        long = [["S" + "0" * 240, *fields[1:]] if number == 0 else fields for number, fields in enumerate(places)]
        expected = {key: value for key, value in values.items() if key[0] != "S0"}
        given = {
            "a.csv": results.replace(b",S0,", b",S" + b"0" * 240 + b","),
            "b.csv": table(long, STATION_HEADER).encode(),
        }
        return Case(Given(given), keeps(expected, ROWS + 1, only=True))

    def nested(random: Random) -> Case:
        options = [
            files("gzip", gzip.compress(packed["gzip"])),
            files("zip", zipped({"inner.zip": packed["zip"]})),
            files("zip", zipped({"a.csv.gz": packed["gzip"], "b.csv": stations, "c.csv": results})),
            files("zip", zipped({"a.csv": results, "b.csv": stations}, zipfile.ZIP_LZMA)),
            files("zip", zipped({"a.txt": results})),
            files("zip", zipped({})),
        ]
        return Case(random.choice(options), must_refuse)

    def arranged(random: Random) -> Case:
        """Ways in which the same tables may be given: none changes what they hold."""
        extra = {"__MACOSX/._a.csv": b"\0\5", "._b.csv": b"\0", "notes.txt": b"x"}
        parts = [line[0] + b"".join(line[1:20]), line[0] + b"".join(line[20:])]
        options = [
            files("zip", zipped({"x/a.csv": results, "../b.csv": stations, **extra})),
            files("gzip", packed["gzip"] + gzip.compress(b"")),
            Given({"a.csv": parts[0], "A.csv.gz": gzip.compress(parts[1]), "b.csv": stations, "._a.csv": b"\0"}),
            Given({"a.csv": results, "b.csv": stations.replace(b",", b"\t")}),
            Given({"z.csv": stations, "y.zip": zipped({"a.csv": results})}),
        ]
        return Case(random.choice(options), keeps(values, only=True))

    def stations_missing(random: Random) -> Case:
        """Rows of stations that no table has, or has in no place, are dropped, and no others."""
        left = random.sample(range(ROWS), random.randint(1, ROWS - 1))
        lost = set(range(ROWS)) - set(left)
        rest = [places[number] for number in left]
        if random.random() < 0.5:
            rest += [
                [f"S{number}", random.choice(["", "91", "39,1", "nan"]).replace(",", "."), "1e9"] for number in lost
            ]
        expected = {key: value for key, value in values.items() if int(key[0][1:]) not in lost}
        return Case(
            Given({"a.csv": results, "b.csv": table(rest, STATION_HEADER).encode()}), keeps(expected, ROWS + 1, True)
        )

    def stations_damaged(random: Random) -> Case:
        data = damaged(stations, random.choice(list(MUTATIONS)), random)
        return Case(Given({"a.csv": results, "b.csv": data}), keeps({}, ROWS + 1))

    mutations: dict[str, Callable[[Random], Case]] = {
        f"{kind}: {name}": archive_damaged(kind, name)
        for kind in packed
        for name in MUTATIONS
        if name != "something appended"
    }
    mutations |= {
        "zip: what it states": stated,
        "bombs": bombed,
        "nested or strange": nested,
        "arranged otherwise": arranged,
        "stations missing": stations_missing,
        "stations damaged": stations_damaged,
    }
    return Target(run, mutations)
