"""Physical lines of an export and their records. A stray quote invalidates its own line only."""

import csv
import io
import re
from collections.abc import Callable, Iterator
from typing import Any

from icmape.errors import UserError

MOST_LINES = 5_000_000
"""Of one file."""
LONGEST_LINE = 2**17
"""In letters; it is also the longest field that Python's csv reads."""

_UTF_32, _UTF_16 = (b"\xff\xfe\0\0", b"\0\0\xfe\xff"), (b"\xff\xfe", b"\xfe\xff")
_UNDECODED = re.compile("[\udc80-\udcff]")


def read_lines(file: str, stream: Any) -> tuple[list[str], int]:
    """The lines of a file, which end with LF, CR or both; in how many of them bytes were not UTF-8.

    Such a byte is read as Latin-1, and only that byte.
    """
    mark = stream.read(4)
    stream.seek(0)
    encoding = "utf-32" if mark in _UTF_32 else "utf-16" if mark[:2] in _UTF_16 else "utf-8-sig"
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


def fits(fields: list[str], width: int) -> bool:
    """Whether a record has the header's number of fields; more of them are forgiven if they are empty."""
    return len(fields) == width or (len(fields) > width and not any(fields[width:]))


def records(
    file: str, lines: list[str], delimiter: str, width: int, is_row: Callable[[list[str]], bool]
) -> Iterator[tuple[list[str], list[str] | None]]:
    """The lines of each record and its fields; a line with a stray quote is a record of its own, without fields.

    A quoted text over several lines is taken for one only if it makes a record of the right width, and none of its
    further lines is a row by itself; otherwise its first line is dropped, and reading goes on at the second.
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
            # the last line of a text in the first column has all the other fields, too
            inner = taken[1:-1] if fields and set(fields[0]) & {"\r", "\n"} else taken[1:]
            swallowed = any(is_row(next(csv.reader([line], delimiter=delimiter), [])) for line in inner)
            if "unexpected end" in problem and not swallowed:
                raise UserError(f"{file} ends inside a quoted text: it was cut off; download it again")
            if fields is None or swallowed or not fits(fields, width):
                fields, taken, first = None, taken[:1], start + 1
                rest = map(lines.__getitem__, range(first, len(lines)))
                reader = csv.reader(rest, delimiter=delimiter, strict=True)
        start += len(taken)
        yield taken, fields
