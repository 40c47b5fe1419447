"""The journal of a session: an append-only file of JSON lines, on the disk before anything is acknowledged.

Every line holds a SHA-256 of itself and of the line before it. A last line without its end, which a killed process
leaves, is cut. A change anywhere else is noticed and named by its line.
"""

import errno
import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from icmape_agent.session.refusal import Refusal, UserError

NAME = "journal.jsonl"
TEAM = "team.txt"
"""Where the team of a journal is whose header does not say it: a team file or a pretrained team's name."""
Entry = dict[str, Any]
_MARK = ',"sum":"'
_SUM = 32  # hexadecimal digits of a line's SHA-256 that are kept
_TAIL = len(_MARK) + _SUM + len('"}')


class Line(NamedTuple):
    """An entry, its running hash, and the length of the file up to its end."""

    entry: Entry
    digest: str
    end: int


class Contents(NamedTuple):
    """The whole lines of a journal, and how many bytes of an unfinished one follow."""

    lines: list[Line]
    torn: int


def encode(entry: Entry, before: str) -> tuple[bytes, str]:
    """A line of the file and its running hash."""
    body = json.dumps(entry, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    digest = _digest(body, before)
    return f'{body[:-1]}{_MARK}{digest}"}}\n'.encode(), digest


def read(path: Path) -> Contents:
    """All whole lines of a journal. A damaged line is an error that names it."""
    *ended, rest = path.read_bytes().split(b"\n")
    lines: list[Line] = []
    for raw in ended:
        if not _added(lines, raw):
            raise UserError(_damaged(path, lines))
    torn = 0 if _added(lines, rest) else len(rest)  # a line that lacks nothing but its end is whole
    if torn and _added(list(lines), rest[:-1]):  # a line that was cut has nothing behind its checksum
        raise UserError(_damaged(path, lines))
    if not lines:
        raise UserError(f"{path} holds no whole line, so it is no journal of a session: start one in another folder")
    return Contents(lines, torn)


def _damaged(path: Path, lines: list[Line]) -> str:
    return f"{path}: line {len(lines) + 1} is damaged: its checksum does not fit; restore the file from a copy"


def _added(lines: list[Line], raw: bytes) -> bool:
    """Add the next line to those before it, if its checksum fits."""
    before, start = (lines[-1].digest, lines[-1].end) if lines else ("", 0)
    try:
        text = raw.decode()
        body, tail = text[:-_TAIL] + "}", text[-_TAIL:]
        digest = _digest(body, before)
        if tail != f'{_MARK}{digest}"}}':
            return False
        entry = json.loads(body)
    except (ValueError, RecursionError):
        return False
    if isinstance(entry, dict):
        lines.append(Line(entry, digest, start + len(raw) + 1))
    return isinstance(entry, dict)


def _digest(body: str, before: str) -> str:
    return hashlib.sha256(f"{before}\n{body}".encode()).hexdigest()[:_SUM]


class Journal:
    """A journal that is open for writing. The caller holds the folder's lock."""

    def __init__(self, path: Path):
        """Open an existing journal, cut an unfinished last line, and flush the rest.

        A process that was killed between a write and its flush leaves whole lines that are not on the disk yet, and
        the same message is acknowledged from here on without another write.
        """
        self.path = path
        self.lines, self.torn = read(path)
        self._file = os.open(path, os.O_RDWR)
        try:
            self._cut()
            os.fsync(self._file)
            flush_folder(path.parent)
        except OSError as error:
            self.close()
            raise UserError(f"{path} cannot be cut behind its last line and flushed: {error.strerror}") from error

    @property
    def entries(self) -> Sequence[Entry]:
        """All entries, the header first."""
        return [line.entry for line in self.lines]

    def append(self, entry: Entry) -> None:
        """Write an entry and flush it to the disk. If that fails, nothing is recorded, and a later call may succeed."""
        last = self.lines[-1]
        data, digest = encode(entry, last.digest)
        try:
            self._cut()  # what an earlier failure left
            _write(self._file, data, last.end)
            os.fsync(self._file)
        except OSError as error:
            self._try_to_cut()
            why = f"cannot be written ({error.strerror}), so nothing was recorded"
            raise Refusal(
                "storage",
                f"{self.path} {why}: make room or mend the disk, and send the message again",
                to_agents=f"the journal {why}: send the message again later",
            ) from error
        self.lines.append(Line(json.loads(json.dumps(entry)), digest, last.end + len(data)))

    def _cut(self) -> None:
        """Remove what follows the last whole line, or end it."""
        end, size = self.lines[-1].end, os.fstat(self._file).st_size
        if size == end:
            return
        if size < end - 1:
            raise OSError(errno.EIO, "another program shortened the file")
        if size < end:
            _write(self._file, b"\n", end - 1)
        os.ftruncate(self._file, end)
        os.fsync(self._file)

    def _try_to_cut(self) -> None:
        try:
            self._cut()
        except OSError:
            return  # the next call tries again, and so does the next opening

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def create(folder: Path, header: Entry) -> Path:
    """A new journal with its first line, for its owner only. It appears as a whole, and its folder is flushed too."""
    path, part = folder / NAME, folder / f".{NAME}.part"
    data, _ = encode(header, "")
    try:
        file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.fchmod(file, 0o600)  # of a file that was there before too
            _write(file, data, 0)
            os.fsync(file)
        finally:
            os.close(file)
        os.replace(part, path)
        flush_folder(folder)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise UserError(f"{path} cannot be written: {error.strerror}") from error
    return path


def source_of(folder: Path) -> str | None:
    """Where the team of a session is, if its journal or the file beside it says so; None without a journal, too."""
    if not (folder / NAME).is_file():
        return None
    source: str | None = read(folder / NAME).lines[0].entry.get("source")
    if source is None and (folder / TEAM).is_file():
        source = (folder / TEAM).read_text(encoding="utf-8", errors="replace").strip() or None
    return source


def remember_team(folder: Path, source: str) -> None:
    """Write where the team is, beside a journal whose header does not say it and cannot be changed."""
    part = folder / f".{TEAM}.part"
    try:
        part.write_text(f"{source}\n", encoding="utf-8")
        os.replace(part, folder / TEAM)
    except OSError as error:
        raise UserError(f"{folder / TEAM} cannot be written: {error.strerror}") from error


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, each flushed to the disk.

    So is the last one that is there: a process that made it may have been killed before it was flushed.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    there = next(path for path in (folder, *folder.parents) if path not in missing)
    try:
        with suppress(PermissionError):  # a folder that somebody else made
            flush_folder(there.parent)
        for path in reversed(missing):
            path.mkdir(exist_ok=True)
            flush_folder(path.parent)
        if not folder.is_dir():
            raise UserError(f"{folder} is not a folder: give another one for the session")
    except OSError as error:
        raise UserError(f"{folder} cannot be made: {error.strerror}") from error


def flush_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write(file: int, data: bytes, offset: int) -> None:
    """Write all bytes at a place in the file."""
    while data:
        count = os.pwrite(file, data, offset)
        data, offset = data[count:], offset + count
