"""Physical lines of an export and the records they form. A stray quote costs its own line, never those after it."""

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


def fits(fields: list[str], width: int) -> bool:
    """Whether a record has the header's number of fields; more of them are forgiven if they are empty."""
    return len(fields) == width or (len(fields) > width and not any(fields[width:]))


class Lines:
    """The lines of a file, decoded and counted. They end with LF, CR or both."""

    def __init__(self, file: str, stream: Any):
        mark = stream.read(4)
        stream.seek(0)
        encoding = "utf-32" if mark in _UTF_32 else "utf-16" if mark[:2] in _UTF_16 else "utf-8-sig"
        errors = "surrogateescape" if encoding == "utf-8-sig" else "strict"
        self._text = io.TextIOWrapper(stream, encoding, errors, newline="")
        self._waiting: list[str] = []
        self.file, self.read = file, 0
        self.recoded = 0
        """Lines with bytes that are not UTF-8; these bytes were read as Latin-1."""
        self.taken: list[str] = []
        """The lines of the present record."""

    def close(self) -> None:
        """Close the file."""
        self._text.close()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        self.taken.append(self._waiting.pop() if self._waiting else self._next())
        return self.taken[-1]

    def _next(self) -> str:
        try:
            line = self._text.readline(LONGEST_LINE + 1)
        except UnicodeError as error:
            raise UserError(f"{self.file} is not the UTF-16 or UTF-32 it begins as; save it as UTF-8") from error
        if not line:
            raise StopIteration
        self.read += 1
        if len(line) > LONGEST_LINE or self.read > MOST_LINES:
            raise UserError(
                f"line {self.read:,} of {self.file} is too long or one too many; expected at most {MOST_LINES:,} lines "
                f"of at most {LONGEST_LINE:,} letters: give a CSV export, or split it"
            )
        if not line.isascii() and _UNDECODED.search(line):
            self.recoded += 1
            line = _UNDECODED.sub(lambda byte: chr(ord(byte[0]) - 0xDC00), line)
        return line

    def records(self, delimiter: str, width: int, is_row: Callable[[list[str]], bool]) -> Iterator[list[str] | None]:
        """The fields of each record, whose lines are in `taken`; None for a line with a stray quote.

        A quoted text over several lines is taken for one only if it makes a record of the right width, and none of its
        further lines is a row by itself; otherwise its first line is dropped, and reading goes on at the second.
        """
        reader = csv.reader(self, delimiter=delimiter, strict=True)
        while True:
            self.taken = []
            fields, problem = None, ""
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                problem = str(error)
            if len(self.taken) > 1 or fields is None:
                # the last line of a text in the first column has all the other fields, too
                inner = self.taken[1:-1] if fields and set(fields[0]) & {"\r", "\n"} else self.taken[1:]
                swallowed = any(is_row(next(csv.reader([line], delimiter=delimiter), [])) for line in inner)
                if "unexpected end" in problem and not swallowed:
                    raise UserError(f"{self.file} ends inside a quoted text: it was cut off; download it again")
                if fields is None or swallowed or not fits(fields, width):
                    self._waiting += reversed(self.taken[1:])
                    del self.taken[1:]
                    fields = None
            yield fields
