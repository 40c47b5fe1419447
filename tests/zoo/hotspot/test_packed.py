"""Archives and folders as they come from the field, and those that somebody made to do harm."""

import bz2
import gzip
import os
import struct
import zipfile
from pathlib import Path

import pytest

from fuzz.targets.archives import zipped
from icmape.errors import UserError
from icmape.zoo.hotspot.data import packed
from icmape.zoo.hotspot.data.exports import read_exports
from icmape.zoo.hotspot.data.readings import Account, Readings
from tests.zoo.hotspot.test_lines import HEADER, lines_of, read_bytes, row

TABLE = f"{HEADER}\n{row(0)}\n{row(1)}\n".encode()


def read_archive(
    folder: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED
) -> tuple[Readings, Account]:
    return read_bytes(folder, zipped(members, method))


@pytest.mark.parametrize("kind", ["gzip", "zip"])
def test_what_holds_a_thousand_times_its_size_is_refused_before_it_is_kept(tmp_path: Path, kind: str) -> None:
    """70 MB of equal rows in less than 300 kB."""
    bomb = f"{HEADER}\n".encode() + f"{row(0)}\n".encode() * (70_000_000 // len(row(0)))
    data = gzip.compress(bomb) if kind == "gzip" else zipped({"result.csv": bomb})
    assert len(data) < 300_000
    with pytest.raises(UserError, match="holds more than 100 times its size when unpacked"):
        read_bytes(tmp_path, data)


def test_a_size_that_a_zip_states_wrongly_is_noticed(tmp_path: Path) -> None:
    data = zipped({"result.csv": TABLE})
    at = data.index(b"PK\x01\x02") + 24
    smaller = data[:at] + struct.pack("<I", len(TABLE) - 20) + data[at + 4 :]
    with pytest.raises(UserError, match=r"is broken \(Bad CRC-32"):
        read_bytes(tmp_path, smaller)
    huge = data[:at] + struct.pack("<I", 2**32 - 2) + data[at + 4 :]
    with pytest.raises(UserError, match="holds about 4 GiB when unpacked"):
        read_bytes(tmp_path, huge)


def test_tables_packed_twice_are_not_left_out_without_a_word(tmp_path: Path) -> None:
    members = {"result.csv": TABLE, "more/result-2019.csv.gz": gzip.compress(TABLE)}
    with pytest.raises(UserError, match=r"holds more/result-2019.csv.gz, which is packed itself: unpack it"):
        read_archive(tmp_path, members)
    with pytest.raises(UserError, match=r"holds inner.zip, which is packed itself"):
        read_archive(tmp_path, {"inner.zip": zipped({"result.csv": TABLE})})
    with pytest.raises(UserError, match=r"zero bytes|no column"):
        read_bytes(tmp_path, gzip.compress(gzip.compress(TABLE)))


def test_an_archive_of_very_many_tables_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "MOST_TABLES", 2)
    tables = {f"{name}.csv": TABLE for name in "abc"}
    with pytest.raises(UserError, match="holds 3 tables; expected at most 2"):
        read_archive(tmp_path, tables)
    _, account = read_archive(tmp_path, {name: tables[name] for name in ("a.csv", "b.csv")})
    assert [file.lines for file in account.files] == [3, 3]


def test_a_method_whose_memory_the_file_decides_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="packed by a method that is not read"):
        read_archive(tmp_path, {"result.csv": TABLE}, zipfile.ZIP_LZMA)
    _, account = read_archive(tmp_path, {"result.csv": TABLE}, zipfile.ZIP_BZIP2)
    assert lines_of(account) == 3


def test_what_other_programs_put_beside_a_table_is_passed_over(tmp_path: Path) -> None:
    extra = {"__MACOSX/._result.csv": b"\0\5\x16\7", "data/._result.csv": b"\0", "README.txt": b"who, when"}
    _, account = read_archive(tmp_path, {"data/result.csv": TABLE, **extra})
    assert lines_of(account) == 3
    (tmp_path / "._result.csv").write_bytes(b"\0\5\x16\7")
    _, account = read_exports([tmp_path])
    assert lines_of(account) == 3


@pytest.mark.parametrize("cut", range(0, 400, 7))
def test_a_zip_with_a_hole_is_refused_or_whole(tmp_path: Path, cut: int) -> None:
    """Bytes are overwritten anywhere: what is read is what was written, or nothing."""
    data = bytearray(zipped({"result.csv": TABLE}))
    start = cut % len(data)
    data[start : start + 3] = b"\xff\xff\xff"[: len(data) - start]
    try:
        readings, _ = read_bytes(tmp_path, bytes(data))
    except UserError:
        return
    assert readings.station.tolist() == ["S0", "S1"]


def test_only_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    for path in (tmp_path / "pipe.csv", Path("/dev/zero")):
        with pytest.raises(UserError, match="is neither a file nor a folder"):
            read_exports([path])
    with pytest.raises(UserError, match=r"pipe.csv is no file"):
        read_exports([tmp_path])
    with pytest.raises(UserError, match=r"no column|zero bytes"):
        read_bytes(tmp_path, bz2.compress(TABLE))
