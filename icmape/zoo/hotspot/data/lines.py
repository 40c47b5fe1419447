"""Physical lines of an export and their records. A stray quote invalidates its own line only."""

import csv
import io
import re
from collections.abc import Callable, Iterator
from typing import Any

from icmape.errors import UserError
from icmape.memory import check_fits

MOST_LINES = 5_000_000
"""Of one file."""
LONGEST_LINE = 2**17
"""In letters; it is also the longest field that Python's csv reads."""
ROW_BYTES = 1500
"""Of memory for a line besides its letters: measured with rows of ten texts each that no other row has."""

_PIECE = 2**16
_UTF_32, _UTF_16 = (b"\xff\xfe\0\0", b"\0\0\xfe\xff"), (b"\xff\xfe", b"\xfe\xff")
_UNDECODED = re.compile("[\udc80-\udcff]")
_FOUR_BYTES, _TWO_BYTES = re.compile(rb"[\xf0-\xf4][\x80-\xbf]{3}"), re.compile(rb"[\xc4-\xf4][\x80-\xbf]")
"""Of memory that a letter takes, by its bytes in UTF-8. Up to U+00FF it is one."""


def read_lines(file: str, stream: Any) -> tuple[list[str], int]:
    """The lines of a file, which end with LF, CR or both; in how many of them bytes were not UTF-8.

    Such a byte is read as Latin-1, and only that byte.
    """
    mark = stream.read(4)
    stream.seek(0)
    encoding = "utf-32" if mark in _UTF_32 else "utf-16" if mark[:2] in _UTF_16 else "utf-8-sig"
    check_fits(f"reading {file}", bytes_to_read(stream, encoding), "fetch fewer years at a time, or split it")
    errors = "surrogateescape" if encoding == "utf-8-sig" else "strict"
    lines: list[str] = []
    recoded = 0
    with io.TextIOWrapper(stream, encoding, errors, newline="") as text:
        try:
            while line := text.readline(LONGEST_LINE + 1):
                if not line.isascii() and _UNDECODED.search(line):
                    line = _UNDECODED.sub(lambda byte: chr(ord(byte[0]) - 0xDC00), line)
                    recoded += 1
                lines.append(line)
                if len(line) > LONGEST_LINE or len(lines) > MOST_LINES:
                    raise UserError(
                        f"line {len(lines):,} of {file} is too long or one too many; expected at most {MOST_LINES:,} "
                        f"lines of at most {LONGEST_LINE:,} letters: give a CSV export, or split it"
                    )
        except UnicodeError as error:
            raise UserError(f"{file} is not the {encoding.upper()} it begins as; save it as UTF-8") from error
    return lines, recoded


def bytes_to_read(stream: Any, encoding: str) -> int:
    """An upper estimate of the memory that reading a stream takes, before it is decoded: for lines, and fields of them.

    In memory all letters of a line take as many bytes as its widest one: one letter of four makes four of each.
    """
    size = 0
    while piece := stream.read(_PIECE):
        piece += stream.readline(4 * LONGEST_LINE + 1)  # the rest of the last line
        size += 2 * len(piece) * _width(piece, encoding) + ROW_BYTES * max(piece.count(b"\n"), piece.count(b"\r"))
    stream.seek(0)
    return size + ROW_BYTES


def _width(piece: bytes, encoding: str) -> int:
    """Bytes of memory for each byte of some lines, at most."""
    if encoding != "utf-8-sig":
        return 1 if encoding == "utf-32" else 2  # four for each letter
    if piece.isascii():
        return 1
    return 4 if _FOUR_BYTES.search(piece) else 2 if _TWO_BYTES.search(piece) else 1


def fits(fields: list[str], width: int) -> bool:
    """Whether a record has the header's number of fields; more of them are forgiven if they are empty."""
    return len(fields) == width or (len(fields) > width and not any(fields[width:]))


def records(
    file: str, lines: list[str], delimiter: str, width: int, is_row: Callable[[list[str]], bool]
) -> Iterator[tuple[list[str], list[str] | None]]:
    """The lines of each record and its fields; a line with a stray quote is a record of its own, without fields.

    A quoted text over several lines is taken for one only if it makes a record of the right width, and none of its
    lines is a row by itself; otherwise its first line is dropped, and reading goes on at the second.
    """
    start = first = 0
    reader = csv.reader(iter(lines), delimiter=delimiter, strict=True)
    while start < len(lines):
        fields, problem = None, ""
        try:
            fields = next(reader)
        except csv.Error as error:
            problem = str(error)
        taken = lines[start : first + reader.line_num]
        if fields is None or len(taken) > 1:
            # the last line of a text in the first column has all the other fields, too; so has its first line,
            # without the quote that it begins with, if that quote is stray
            in_first_column = fields is not None and set(fields[0]) & {"\r", "\n"}
            alone = [taken[0][1:], *taken[1:-1]] if in_first_column else taken[1:]
            swallowed = any(is_row(next(csv.reader([line], delimiter=delimiter), [])) for line in alone)
            if "unexpected end" in problem and not swallowed:
                raise UserError(f"{file} ends inside a quoted text: it was cut off; download it again")
            if fields is None or swallowed or not fits(fields, width):
                fields, taken, first = None, taken[:1], start + 1
                rest = map(lines.__getitem__, range(first, len(lines)))
                reader = csv.reader(rest, delimiter=delimiter, strict=True)
        start += len(taken)
        yield taken, fields
