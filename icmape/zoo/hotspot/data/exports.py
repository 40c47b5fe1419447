"""Water-quality exports to readings. Every row of every result file has one fate, and the account tells it."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from icmape.errors import UserError
from icmape.zoo.hotspot.data.readings import Account, FileAccount, Readings
from icmape.zoo.hotspot.data.row_rules import Dropped, Judge, Place, Rules, Sample, place_of
from icmape.zoo.hotspot.data.tables import EXPECTED, Row, Table, read_tables

__all__ = ["Rules", "read_exports"]

KEPT = "kept"
BROKEN = "line with another number of fields than the header"
REPEATED = "repeat of a row that was read before"
SAME_SAMPLE = "the same sample in another form"
EXAMPLES = 3


@dataclass
class _Book:
    """One fate for each row of one result file, and the samples of the rows that are kept."""

    file: str
    fates: list[str] = field(default_factory=list)
    samples: dict[int, Sample] = field(default_factory=dict)


def read_exports(paths: Sequence[str | Path], rules: Rules = Rules()) -> tuple[Readings, Account]:
    """Readings out of result and station files or folders of them, and the account of all rows."""
    if not paths:
        raise UserError(f"give files or folders to read; {EXPECTED}")
    results, judge = _open(paths, rules)
    books, examples = _judge_all(results, judge)
    _choose_forms(books, judge.kinds)
    samples = [sample for book in books for sample in book.samples.values()]
    readings = _readings(samples, rules.average)
    account = Account(
        files=tuple(_close(book, table) for book, table in zip(books, results, strict=True)),
        changed=dict(Counter(change for sample in samples for change in sample.changes).most_common()),
        examples={reason: tuple(texts) for reason, texts in examples.items()},
        readings=len(readings),
        averaged=rules.average,
    )
    account.check()
    if not samples:
        raise UserError(_nothing_left(account, rules))
    return readings, account


def _open(paths: Sequence[str | Path], rules: Rules) -> tuple[list[Table], Judge]:
    """Result tables, and a judge who knows the stations of all station tables; of two entries the first counts."""
    tables = list(read_tables(paths))
    results = [table for table in tables if table.is_result]
    if not results:
        raise UserError(f"only station tables in {', '.join(map(str, paths))}; {EXPECTED}")
    places: dict[str, Place | None] = {}
    for row in (row for table in tables if not table.is_result for row in table.rows):
        if places.get(row.station) is None:
            places[row.station] = place_of(row.latitude, row.longitude)
    if not places and not any(table.has_places for table in results):
        raise UserError(
            f"no station table among {', '.join(map(str, paths))}, and the results carry no coordinates: add the "
            "station export of the same query (`icmape data fetch` gets both)"
        )
    return results, Judge(rules, rules.kinds, places)


def _judge_all(results: list[Table], judge: Judge) -> tuple[list[_Book], dict[str, list[str]]]:
    """A fate for every row, and up to three different examples of what was dropped for each reason."""
    books, seen = [], _Seen()
    examples: dict[str, list[str]] = defaultdict(list)

    def drop(book: _Book, reason: str, example: str) -> None:
        book.fates.append(reason)
        if example and example not in examples[reason] and len(examples[reason]) < EXAMPLES:
            examples[reason].append(example)

    for table in results:
        book = _Book(table.file)
        seen.next_file()
        for row in table.rows:
            if seen.before(row):
                drop(book, REPEATED, row.identifier)
                continue
            try:
                book.samples[len(book.fates)] = judge.sample(row)
                book.fates.append(KEPT)
            except Dropped as dropped:
                drop(book, dropped.reason, dropped.example)
        for line in table.broken:
            drop(book, BROKEN, line)
        books.append(book)
    return books, {reason: texts for reason, texts in examples.items() if texts}


class _Seen:
    """Rows met so far. Those with an identifier are met once. Those without may be equal within a file (two depths
    with one value), so the second of a kind repeats only the second of its kind in another file.
    """

    def __init__(self) -> None:
        self._known: set[tuple[Row, int] | tuple[str, str]] = set()
        self._in_file: Counter[Row] = Counter()

    def next_file(self) -> None:
        """From here on rows are of another file."""
        self._in_file = Counter()

    def before(self, row: Row) -> bool:
        """Whether this row was met; now it is."""
        if row.identifier:
            key: tuple[Row, int] | tuple[str, str] = (row.organization, row.identifier)
        else:
            self._in_file[row] += 1
            key = (row, self._in_file[row])
        known = key in self._known
        self._known.add(key)
        return known


def _choose_forms(books: list[_Book], kinds: Mapping[str, int]) -> None:
    """Of a sample that is reported in several forms keep the best one.

    A value is better than a non-detect; then nitrate + nitrite than nitrate; then as N than converted from as NO3.
    """

    def rank(sample: Sample) -> tuple[bool, int, bool]:
        kind, basis = sample.form
        return (not sample.detected, kinds[kind], basis != "N")

    best: dict[tuple[str, ...], Sample] = {}
    for sample in (sample for book in books for sample in book.samples.values()):
        best[sample.bottle] = min(best.get(sample.bottle, sample), sample, key=rank)
    for book in books:
        for at, sample in list(book.samples.items()):
            if sample.form != best[sample.bottle].form:
                book.fates[at] = SAME_SAMPLE
                del book.samples[at]


def _readings(samples: Iterable[Sample], average: bool) -> Readings:
    """Sorted by day and station, so that the order of files does not matter."""
    visits: dict[tuple, list[Sample]] = defaultdict(list)
    for number, sample in enumerate(samples):
        visits[(sample.day, sample.station, 0 if average else number)].append(sample)
    groups = [visits[visit] for visit in sorted(visits)]
    return Readings(
        station=np.array([group[0].station for group in groups], dtype=np.str_),
        latitude=np.array([group[0].place[0] for group in groups], dtype=np.float64),
        longitude=np.array([group[0].place[1] for group in groups], dtype=np.float64),
        day=np.array([group[0].day for group in groups], dtype="datetime64[D]"),
        value=np.array([math.fsum(one.value for one in group) / len(group) for group in groups], dtype=np.float64),
    )


def _close(book: _Book, table: Table) -> FileAccount:
    fates = Counter(book.fates)
    kept = fates.pop(KEPT, 0)
    return FileAccount(table.file, len(table.rows) + len(table.broken), kept, dict(fates.most_common()))


def _nothing_left(account: Account, rules: Rules) -> str:
    largest = [f"{reason}: {count}" for reason, count in list(account.dropped.items())[:3]]
    shown = ", ".join(account.examples.get(next(iter(account.dropped)), ()))
    return (
        f"none of {account.read:,} rows is a reading of {' or '.join(rules.characteristics)} in "
        f"{' or '.join(rules.media)}; dropped: {'; '.join(largest)}"
        + (f" (the first: {shown})" if shown else "")
        + "; check that results and stations are of one query, and which characteristics and media you ask for"
    )
