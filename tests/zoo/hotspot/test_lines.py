"""Every physical line of a file is in the account, whatever is wrong with the file; what cannot be read is refused."""

import gzip
import io
import re
import struct
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from icmape import memory
from icmape.errors import UserError
from icmape.zoo.hotspot.data import lines
from icmape.zoo.hotspot.data import packed as packing
from icmape.zoo.hotspot.data.exports import read_exports
from icmape.zoo.hotspot.data.readings import Account, Readings
from icmape.zoo.hotspot.data.tables import read_tables

HEADER = (
    "MonitoringLocationIdentifier,ActivityStartDate,CharacteristicName,ResultMeasureValue,"
    "ResultMeasure/MeasureUnitCode,ResultCommentText,LatitudeMeasure,LongitudeMeasure"
)
PLACE = "39.1,-76.5"
STRAY = ('"rain', 'rain"')
"""Texts of two lines which together are one quoted text."""


def row(number: int, comment: str = "", value: str = "2.0", unit: str = "mg/l as N") -> str:
    return f"S{number},2019-05-07,Nitrate,{value},{unit},{comment},{PLACE}"


def read(folder: Path, *rows: str | bytes, end: str = "\n") -> tuple[Readings, Account]:
    data = b"".join(line if isinstance(line, bytes) else (line + end).encode() for line in (HEADER, *rows))
    return read_bytes(folder, data)


def read_bytes(folder: Path, data: bytes) -> tuple[Readings, Account]:
    (folder / "result.csv").write_bytes(data)
    return read_exports([folder / "result.csv"])


def lines_of(account: Account) -> int:
    """Physical lines that the account speaks of."""
    (file,) = account.files
    assert file.kept + sum(file.dropped.values()) + sum(file.other_lines.values()) == file.lines
    return file.lines or 0


# -- quotes


@pytest.mark.parametrize(("column", "apart"), [*((column, 200) for column in range(8)), (5, 1), (5, 4000)])
def test_two_stray_quotes_cost_their_own_lines_only(tmp_path: Path, column: int, apart: int) -> None:
    """A quote before a field and one behind the same field some lines later make one valid field of all between."""
    rows = [row(number, "good") for number in range(5000)]
    for number, quoted in ((10, '"{}'), (10 + apart, '{}"')):
        fields = rows[number].split(",")
        fields[column] = quoted.format(fields[column])
        rows[number] = ",".join(fields)
    readings, account = read(tmp_path, *rows)
    assert lines_of(account) == account.read + 1 == 5001
    assert account.dropped["line with a stray quote"] == 1
    untouched = {f"S{number}" for number in range(5000)} - {"S10", f"S{10 + apart}"}
    assert untouched <= set(readings.station.tolist())


@pytest.mark.parametrize("stray", ['"', '"" "', '"b"c', 'x,"y', '"2019-05-07"x'])
def test_a_stray_quote_does_not_reach_the_next_line(tmp_path: Path, stray: str) -> None:
    legitimate = row(3, '"Denver, CO"')
    readings, account = read(tmp_path, row(0), row(1, stray), row(2), legitimate, row(4))
    assert lines_of(account) == 6
    assert account.dropped == {"line with a stray quote": 1}
    assert readings.station.tolist() == ["S0", "S2", "S3", "S4"]


def test_a_stray_quote_at_every_line_is_counted_at_every_line(tmp_path: Path) -> None:
    _, account = read(tmp_path, *(row(number, '"a"b') for number in range(50)), row(50))
    assert lines_of(account) == 52
    assert account.dropped == {"line with a stray quote": 50}
    assert account.examples["line with a stray quote"][0].startswith("S0,2019-05-07")


def test_a_quote_inside_an_unquoted_field_is_a_letter(tmp_path: Path) -> None:
    _, account = read(tmp_path, row(0, '5" pipe'), row(1, 'the "old" weir'))
    assert (account.kept, lines_of(account)) == (2, 3)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_quoted_texts_may_hold_commas_quotes_and_line_ends(tmp_path: Path, end: str) -> None:
    comments = ['"a, b, c"', '"said ""high"""', f'"first{end}second, with commas{end}{end}last"', '"1,2,3,4,5,6,7,8"']
    _, account = read(tmp_path, *(row(number, comment) for number, comment in enumerate(comments)), end=end)
    assert (account.read, account.kept) == (4, 4)
    assert account.files[0].other_lines == {"header": 1, "further lines of a quoted text": 3}
    assert lines_of(account) == 8


def test_a_text_over_several_lines_may_stand_in_the_first_column(tmp_path: Path) -> None:
    readings, account = read(tmp_path, '"S\n0"' + row(0)[2:], row(1))
    assert readings.station.tolist() == ["S\n0", "S1"]
    assert lines_of(account) == 4


@pytest.mark.parametrize("apart", [1, 2])
@pytest.mark.parametrize("header", [HEADER, f"OrganizationIdentifier,{HEADER}"])
def test_pairs_of_stray_quotes_in_the_first_column_cost_a_line_each(tmp_path: Path, header: str, apart: int) -> None:
    """The line of the first quote is a row without it; the second quote stands inside an unquoted field."""
    before = "ORG," if header != HEADER else ""
    rows = [f"{before}{row(number)}" for number in range(30)]
    for number in range(0, 30, 3):
        rows[number] = f'"{rows[number]}'
        rows[number + apart] = rows[number + apart].replace(",", '",', 1)
    readings, account = read_bytes(tmp_path, "\n".join([header, *rows]).encode())
    assert lines_of(account) == 31
    assert (account.read, account.kept) == (30, 20)
    assert account.dropped == {"line with a stray quote": 10}
    assert account.files[0].other_lines == {"header": 1}
    kept = {f"S{number}" for number in range(30) if number % 3}
    assert {station.rstrip('"') for station in readings.station.tolist()} == kept


@pytest.mark.parametrize("blank", ["", "  "])
def test_a_day_in_the_second_of_two_columns_tells_a_row(tmp_path: Path, blank: str) -> None:
    """ActivityStartDate is blank, Activity_StartDate is filled, and every second line has a stray quote."""
    header = f"ActivityStartDate,{HEADER.replace('ActivityStartDate', 'Activity_StartDate')}"
    rows = [f"{blank},{row(number, STRAY[number % 2])}" for number in range(30)]
    readings, account = read_bytes(tmp_path, "\n".join([header, *rows]).encode())
    assert lines_of(account) == 31
    assert account.dropped == {"line with a stray quote": 15}
    assert account.files[0].other_lines == {"header": 1}
    assert set(readings.station.tolist()) == {f"S{number}" for number in range(1, 30, 2)}


@pytest.mark.parametrize("degrees", [",,39.1,-76.5", "39.1,,,-76.5", "39.1,-76.5,,"])
def test_a_place_in_the_second_of_two_columns_tells_a_station(tmp_path: Path, degrees: str) -> None:
    header, *rows = (",".join(line.split(",")[:5]) for line in (HEADER, *map(row, range(30))))
    (tmp_path / "result.csv").write_text("\n".join([header, *rows]))
    names = ("LatitudeStandardized", "LongitudeStandardized", "Latitude", "Longitude")
    header = ",".join(("Location_Identifier", "Location_Name", *(f"Location_{name}" for name in names)))
    stations = [f"S{number},{STRAY[number % 2]},{degrees}" for number in range(30)]
    (tmp_path / "station.csv").write_text("\n".join([header, *stations]))
    _, account = read_exports([tmp_path])
    (file,) = account.station_files
    assert file.kept + sum(file.dropped.values()) + sum(file.other_lines.values()) == file.lines == 31
    assert (file.kept, file.dropped, file.other_lines) == (15, {"line with a stray quote": 15}, {"header": 1})
    assert (account.kept, account.dropped) == (15, {"station in no station table": 15})


def test_stations_are_not_swallowed_either(tmp_path: Path) -> None:
    header, *rows = (",".join(line.split(",")[:5]) for line in (HEADER, *map(row, range(9))))
    (tmp_path / "result.csv").write_text("\n".join([header, *rows]))
    places = [f"S{number},39.1,-76.5,{'river' if number % 4 else chr(34) + 'river'}" for number in range(9)]
    table = "\n".join(["MonitoringLocationIdentifier,LatitudeMeasure,LongitudeMeasure,Name", *places, places[1], ""])
    (tmp_path / "station.csv").write_text(table)
    _, account = read_exports([tmp_path])
    assert account.dropped == {"station in no station table": 3}
    (stations,) = account.station_files
    assert stations.lines == 11
    assert (stations.kept, stations.dropped) == (6, {"line with a stray quote": 3, "another entry of a station": 1})


def test_a_file_that_ends_in_a_quoted_text_is_cut_off(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="ends inside a quoted text"):
        read(tmp_path, row(0), row(1), b'S2,2019-05-07,Nitrate,2.0,mg/l as N,"a text\nthat goes')
    with pytest.raises(UserError, match="stray quote in its header"):
        read_bytes(tmp_path, f'"{HEADER}\n{row(0)}\n'.encode())


def test_blank_lines_are_counted(tmp_path: Path) -> None:
    _, account = read_bytes(tmp_path, f"\n{HEADER}\n\n{row(0)}\n,,\n{row(1)}\nshort\n\n".encode())
    assert account.files[0].other_lines == {"header": 1, "blank": 4}
    assert account.dropped == {"line with another number of fields than the header": 1}
    assert lines_of(account) == 8


def test_a_file_of_broken_lines_only_is_refused_with_their_number(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none of 2 rows is a reading .*: line with another number of fields"):
        read(tmp_path, "short", "x,y")


# -- bytes


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "utf-16-be", "utf-16-le", "utf-32-be"])
def test_files_with_a_byte_order_mark_are_decoded(tmp_path: Path, encoding: str) -> None:
    mark = "\ufeff" if encoding.endswith("e") else ""
    readings, account = read_bytes(tmp_path, f"{mark}{HEADER}\n{row(0, unit='µg/l as N')}\n".encode(encoding))
    assert readings.value == pytest.approx([0.002])
    assert lines_of(account) == 2


def test_text_that_cannot_be_decoded_is_refused(tmp_path: Path) -> None:
    text = f"{HEADER}\n{row(0)}\n"
    with pytest.raises(UserError, match=r"holds zero bytes.*save it as UTF-8"):
        read_bytes(tmp_path, text.encode("utf-16-le"))
    with pytest.raises(UserError, match="is not the UTF-16 it begins as"):
        read_bytes(tmp_path, text.encode("utf-16")[:-1])


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
def test_lines_end_in_three_ways(tmp_path: Path, end: str) -> None:
    readings, account = read(tmp_path, row(0), row(1), end=end)
    assert len(readings) == 2
    assert lines_of(account) == 3


def test_a_stray_byte_changes_its_own_letter_only(tmp_path: Path) -> None:
    """In Latin-1 µ is one byte. Two bytes read as Latin-1 would be Âµg/l, a unit that nobody knows."""
    stray = row(1, "M?ller", unit="µg/l as N").encode().replace(b"?", b"\xfc") + b"\n"
    latin = row(2, unit="µg/l as N").encode("latin-1") + b"\n"
    readings, account = read(tmp_path, row(0, unit="µg/l as N"), stray, latin, row(3, "Müller"))
    assert readings.value == pytest.approx([0.002, 0.002, 0.002, 2.0])
    assert account.changed["converted from ug/L as N"] == 3
    assert account.files[0].recoded == 2
    assert lines_of(account) == 5


def test_zero_bytes_cost_their_own_lines_only(tmp_path: Path) -> None:
    """A disk that lost power leaves them in the middle or at the end."""
    hole = row(1).encode().replace(b"2019", b"\0\0\0\0") + b"\n"
    readings, account = read(tmp_path, row(0), hole, row(2), b"\0" * 4096)
    assert readings.station.tolist() == ["S0", "S2"]
    assert account.dropped == {"line with zero bytes": 2}
    assert lines_of(account) == 5


def test_lines_of_two_encodings_are_counted(tmp_path: Path) -> None:
    """A file whose second half was appended by a program that writes UTF-16: no line of it is a row."""
    tail = "".join(f"{row(number)}\n" for number in range(2, 5)).encode("utf-16-le")
    readings, account = read(tmp_path, row(0), row(1), tail)
    assert readings.station.tolist() == ["S0", "S1"]
    assert account.dropped["line with zero bytes"] == account.read - 2
    assert lines_of(account) == 3 + tail.count(b"\n") + 1


def test_a_column_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    rows = [f"{HEADER},resultmeasurevalue", f"{row(0)},9.0"]
    with pytest.raises(UserError, match="has the column ResultMeasureValue more than once: delete all but one"):
        read_bytes(tmp_path, "\n".join(rows).encode())
    _, account = read_bytes(tmp_path, f"{HEADER},Other,Other\n{row(0)},1,2\n".encode())
    assert account.kept == 1


def test_decimal_commas_are_not_guessed(tmp_path: Path) -> None:
    german = [HEADER.replace(",", ";"), *(row(n).replace(",", ";") for n in range(3))]
    german[2] = german[2].replace("2.0", "2,0")
    german[3] = german[3].replace("39.1", "39,1")
    _, account = read_bytes(tmp_path, "\n".join(german).encode())
    assert account.dropped == {"value not understood": 1, "coordinates missing or impossible": 1}
    assert lines_of(account) == 4


# -- sizes


@pytest.mark.parametrize("where", [0, 1])
def test_a_line_longer_than_any_is_refused(tmp_path: Path, where: int) -> None:
    written = [HEADER, row(0), row(1)]
    written[where] += "," * 2**20
    with pytest.raises(UserError, match=rf"line {where + 1} of .* is too long .*at most 131,072 letters"):
        read_bytes(tmp_path, "\n".join(written).encode())


def test_more_lines_than_are_read_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MOST_LINES", 3)
    assert len(read(tmp_path, row(0), row(1))[0]) == 2
    with pytest.raises(UserError, match=r"line 4 of .* one too many; expected at most 3 lines"):
        read(tmp_path, row(0), row(1), row(2))


def packed(kind: str, data: bytes) -> bytes:
    if kind == "gzip":
        return gzip.compress(data)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("result.csv", data)
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["plain", "gzip", "zip"])
def test_a_file_is_refused_before_it_is_read_if_it_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    data = f"{HEADER}\n{row(0)}\n".encode()
    bomb = data + b"\n" * 8_000_000
    monkeypatch.setattr(packing, "MOST_BYTES", 4_000_000)
    assert len(read_bytes(tmp_path, data if kind == "plain" else packed(kind, data))[0]) == 1
    with pytest.raises(UserError, match=r"GiB when unpacked; expected at most .* split it") as refused:
        read_bytes(tmp_path, bomb if kind == "plain" else packed(kind, bomb))
    said = re.search(r"about ([\d.]+) GiB", str(refused.value))
    assert said is not None
    assert 3_900_000 < float(said[1]) * 2**30 < 8_100_000


@pytest.mark.parametrize("letter", ["x", "ü", "語", "🦀"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_an_estimate_of_memory_is_an_upper_one(tmp_path: Path, letter: str, encoding: str) -> None:
    """Lines of one wide letter and many narrow ones; each text of a row occurs once."""
    path = tmp_path / "result.csv"
    rows = (row(n, letter + "x" * 2000, f"1.{n:040}", f"mg/l {letter}{n:0200}") for n in range(300))
    path.write_bytes("\n".join([HEADER, row(300), *rows]).encode(encoding))
    with path.open("rb") as stream:
        estimate = lines.bytes_to_read(stream, "utf-8-sig" if encoding == "utf-8" else encoding)
    tracemalloc.start()
    (table,) = read_tables([path])
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (len(table.rows), table.lines) == (301, 302)
    assert held < estimate < 12 * held


@pytest.mark.parametrize("kind", ["plain", "gzip", "zip"])
def test_text_that_does_not_fit_in_memory_is_refused_before_it_is_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """One letter of four bytes in each line makes four times the text: the same lines without it fit."""
    monkeypatch.setattr(memory, "machine_bytes", lambda: 30_000_000)
    texts = ["\n".join([HEADER, *(row(n, c + "x" * 100_000) for n in range(60))]).encode() for c in "x🦀"]
    narrow, wide = (data if kind == "plain" else packed(kind, data) for data in texts)
    _, account = read_bytes(tmp_path, narrow)
    assert (lines_of(account), account.kept) == (61, 60)
    (tmp_path / "result.csv").write_bytes(wide)
    tracemalloc.start()
    with pytest.raises(
        UserError, match=r"reading .*result.csv.* would take about 48.\d MB, .* 30.0 MB .*: fetch fewer"
    ):
        read_exports([tmp_path])
    assert tracemalloc.get_traced_memory()[1] < 6_000_000
    tracemalloc.stop()


def test_archives_that_cannot_be_unpacked_are_refused(tmp_path: Path) -> None:
    data = bytearray(packed("zip", f"{HEADER}\n{row(0)}\n".encode()))
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):  # the flags say that the member is encrypted
        start = data.index(mark) + at
        data[start : start + 2] = struct.pack("<H", 1)
    with pytest.raises(UserError, match="is encrypted: unpack it"):
        read_bytes(tmp_path, bytes(data))
    with pytest.raises(UserError, match=r"holds no \.csv"):
        read_bytes(tmp_path, packed("zip", b"").replace(b"result.csv", b"result.txt"))
    with pytest.raises(UserError, match=r"is broken .*cut off"):
        read_bytes(tmp_path, packed("zip", f"{HEADER}\n{row(0)}\n".encode())[:-9])


def test_sums_stay_finite(tmp_path: Path) -> None:
    """Two values of 1e308 have no sum; they are beyond any concentration, and the third is kept."""
    readings, account = read(tmp_path, row(0, value="1e308"), row(0, value="1e308"), row(0, value="3"))
    assert readings.value.tolist() == [3.0]
    assert account.dropped == {"value beyond any concentration": 2}


def test_pandas_is_loaded_with_the_first_file_only() -> None:
    """Training on made-up worlds needs no pandas."""
    code = "import sys, icmape, icmape.cli, icmape.zoo.hotspot.data.source; assert 'pandas' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0
