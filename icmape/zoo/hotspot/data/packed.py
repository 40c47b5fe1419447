"""Files of exports, plain, gzipped or zipped. How much they hold is bounded before it is read."""

import gzip
import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from icmape.errors import UserError

EXPECTED = (
    "expected exports of the Water Quality Portal as CSV, plain, gzipped or zipped: results (profile "
    "resultPhysChem or narrowResult; `icmape data fetch` gets them) and the station table that goes with them"
)
MOST_BYTES = 2 * 2**30
"""Of one file, unpacked."""
MOST_TIMES = 100
"""Unpacked bytes for each packed one: exports come to about 20, the formats allow 1,000."""
FREE_BYTES = 2**26
"""Up to here the ratio does not matter."""
MOST_TABLES = 1000
"""In one archive."""
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)
"""Of packing, in an archive. LZMA is none: a file says how much memory it takes."""
_ZIP_MARKS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_PACKED = (".gz", ".zip", ".bz2", ".xz", ".7z", ".zst", ".tar", ".tgz", ".rar")


def files_in(path: Path) -> list[Path]:
    """The file, or the tables of a folder. Names that begin with a dot are those of other programs."""
    if not path.exists():
        raise UserError(f"{path} does not exist; {EXPECTED}")
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise UserError(f"{path} is neither a file nor a folder; {EXPECTED}")
    tables = (".csv", ".csv.gz", ".zip")
    files = sorted(f for f in path.iterdir() if f.name.lower().endswith(tables) and not f.name.startswith("."))
    if not files:
        raise UserError(f"the folder {path} holds no .csv, .csv.gz or .zip; {EXPECTED}")
    if strange := [file for file in files if not file.is_file()]:
        raise UserError(f"{strange[0]} is no file; {EXPECTED}")
    return files


def streams(path: Path, shown: str) -> Iterator[tuple[str, Any]]:
    """Name and content of each table in a file. The kind of file is detected from its content."""
    with path.open("rb") as raw:
        head, size = raw.read(4), path.stat().st_size
        raw.seek(0)
        if head in _ZIP_MARKS:
            with _damage_told():
                archive = zipfile.ZipFile(raw)
            for member in _members(archive, shown, size):
                with _damage_told():
                    opened = archive.open(member)
                yield f"{shown}/{member.filename}", opened
            return
        _check_size(shown, size)
        if head[:2] != b"\x1f\x8b":
            yield shown, raw
            return
        unpacked, count = gzip.GzipFile(fileobj=raw), 0
        while piece := unpacked.read(2**20):
            count += len(piece)
            packed = raw.tell()
            _check_size(shown, count * size // packed if count > MOST_BYTES else 0)
            _check_ratio(shown, count, packed)
        unpacked.seek(0)
        yield shown, unpacked


@contextmanager
def _damage_told() -> Iterator[None]:
    """What `zipfile` raises where a damaged archive leads it astray, as the error that it has for damage."""
    try:
        yield
    except (struct.error, ValueError, RuntimeError, LookupError, OverflowError) as error:
        raise zipfile.BadZipFile(str(error)) from error


def _members(archive: zipfile.ZipFile, shown: str, size: int) -> list[zipfile.ZipInfo]:
    """The tables of an archive. Those that macOS adds hold no text."""
    named = [(Path(member.filename), member) for member in archive.infolist() if not member.is_dir()]
    ours = [(path, member) for path, member in named if not path.name.startswith(".") and "__MACOSX" not in path.parts]
    if inner := [path for path, _ in ours if path.suffix.lower() in _PACKED]:
        raise UserError(f"{shown} holds {inner[0]}, which is packed itself: unpack it and give what was in it")
    members = [member for path, member in ours if path.suffix.lower() == ".csv"]
    if not members:
        raise UserError(f"{shown} holds no .csv; {EXPECTED}")
    if any(member.flag_bits & 1 for member in members):
        raise UserError(f"{shown} is encrypted: unpack it and give what was in it; {EXPECTED}")
    if any(member.compress_type not in METHODS for member in members):
        raise UserError(
            f"{shown} is packed by a method that is not read (expected: deflate): unpack it, and pack it anew"
        )
    if len(members) > MOST_TABLES:
        raise UserError(f"{shown} holds {len(members):,} tables; expected at most {MOST_TABLES:,}: give fewer")
    unpacked = sum(member.file_size for member in members)
    _check_size(shown, unpacked)
    _check_ratio(shown, unpacked, size)
    return members


def _check_size(file: str, size: int) -> None:
    if size > MOST_BYTES:
        raise UserError(
            f"{file} holds about {size / 2**30:.3g} GiB when unpacked; expected at most {MOST_BYTES / 2**30:.3g} GiB "
            "in a file: fetch fewer years at a time, or split it"
        )


def _check_ratio(file: str, unpacked: int, packed: int) -> None:
    if unpacked > max(FREE_BYTES, MOST_TIMES * packed):
        raise UserError(
            f"{file} holds more than {MOST_TIMES} times its size when unpacked, as no export does: look what it is, "
            "and give it unpacked if it is one"
        )
