"""Readings from water-quality exports. Every row is kept, or dropped for one reason; the account counts both."""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from icmape.errors import UserError
from icmape.zoo.hotspot.data.readings import Account, FileAccount, Readings
from icmape.zoo.hotspot.data.row_rules import NO_PLACE, NO_STATION, Ledger, Rules, judge, places
from icmape.zoo.hotspot.data.tables import COLUMNS, EXPECTED, Table, read_tables

__all__ = ["Rules", "read_exports"]

EXAMPLES = 3
LONGEST_EXAMPLE = 120


def read_exports(paths: Sequence[str | Path], rules: Rules = Rules()) -> tuple[Readings, Account]:
    """Readings out of result and station files or folders of them, and the account of all rows."""
    if not paths:
        raise UserError(f"give files or folders to read; {EXPECTED}")
    tables, shown = list(read_tables(paths)), ", ".join(map(str, paths))
    results = [table for table in tables if table.is_result]
    if not results:
        raise UserError(f"only station tables in {shown}; {EXPECTED}")
    stations, station_files = _stations([table for table in tables if not table.is_result])
    if stations.empty and not any(table.has_places for table in results):
        raise UserError(
            f"no station table among {shown}, and the results carry no coordinates: add the station export of the same "
            "query (`icmape data fetch` gets both)"
        )
    ledger = _ledger(results)
    ledger.drop(_repeated(ledger.rows), "repeat of a row that was read before", ledger.rows["identifier"])
    samples = judge(ledger, rules, stations)
    ledger.drop(_other_forms(ledger, samples, rules), "the same sample in another form")
    readings = _readings(samples[ledger.kept], rules.average)
    files, examples = _close(ledger, results)
    changes = np.stack(ledger.changes, axis=1)[ledger.kept].ravel().tolist()
    account = Account(
        files=files,
        station_files=station_files,
        changed=dict(Counter(filter(None, changes)).most_common()),
        examples=examples,
        readings=len(readings),
        averaged=rules.average,
    )
    account.check()
    if not account.kept:
        raise UserError(_nothing_left(account, rules))
    return readings, account


def _ledger(tables: list[Table]) -> Ledger:
    """All rows of some tables, with the number of its table for each."""
    frames = [table.rows.assign(file=number) for number, table in enumerate(tables)]
    return Ledger(pd.concat(frames or [pd.DataFrame(columns=list(COLUMNS), dtype=object)], ignore_index=True))


def _stations(tables: list[Table]) -> tuple[pd.DataFrame, tuple[FileAccount, ...]]:
    """Latitude and longitude by station, NaN if no table gives a place; of several entries the first place counts."""
    ledger = _ledger(tables)
    station, degrees = ledger.rows["station"], places(ledger.rows)
    ledger.drop(station == "", NO_STATION)
    ledger.drop(degrees["latitude"].isna(), NO_PLACE)
    ledger.drop(station.where(ledger.kept).duplicated(), "another entry of a station")
    best = degrees.assign(station=station).sort_values("latitude", key=pd.isna, kind="stable")
    return best.drop_duplicates("station").set_index("station"), _close(ledger, tables)[0]


def _repeated(rows: pd.DataFrame) -> pd.Series:
    """Whether a row was met before. With an identifier it is met once. Without, it may be equal to others of its file
    (two depths with one value), so the second of a kind repeats only the second of its kind in another file.
    """
    named = rows["identifier"] != ""
    turn = rows.groupby(list(rows), sort=False).cumcount()
    keys = rows.drop(columns="file").assign(turn=turn)
    by_name = keys.duplicated(["organization", "identifier"])
    return by_name.where(named, keys.duplicated())


def _other_forms(ledger: Ledger, samples: pd.DataFrame, rules: Rules) -> np.ndarray:
    """Whether a row is its sample in another form than the best one.

    A value is better than a non-detect; then nitrate + nitrite than nitrate; then as N than converted from as NO3.
    """
    rows = ledger.rows
    when = rows["time"].where(rows["time"] != "", rows["activity"])  # not all providers give a time
    keys = [rows["organization"], rows["station"], rows["day"], when, rows["depth"]]
    bottle = rows.groupby(keys, sort=False).ngroup().to_numpy()
    form = samples.groupby(["kind", "basis"], sort=False).ngroup().to_numpy()
    place = samples["kind"].map(rules.kinds)
    order = np.lexsort((samples["basis"] != "N", place, ~samples["detected"], ~ledger.kept, bottle))
    best = order[np.unique(bottle[order], return_index=True)[1]]
    return form != form[best][bottle]


def _readings(samples: pd.DataFrame, average: bool) -> Readings:
    """Sorted by day and station, so that the order of files does not matter."""
    samples = samples.sort_values(["day", "station"], kind="stable")
    first = ~samples.duplicated(["day", "station"]).to_numpy() | (not average)
    starts, values, visits = np.flatnonzero(first), samples["value"].tolist(), samples[first]
    ends = np.append(starts, len(values))[1:]
    means = [math.fsum(values[start:end]) / (end - start) for start, end in zip(starts, ends, strict=True)]
    return Readings(
        station=np.array(visits["station"].tolist(), dtype=np.str_),
        latitude=visits["latitude"].to_numpy(),
        longitude=visits["longitude"].to_numpy(),
        day=visits["day"].to_numpy().astype("datetime64[D]"),
        value=np.array(means, dtype=np.float64),
    )


def _close(ledger: Ledger, tables: list[Table]) -> tuple[tuple[FileAccount, ...], dict[str, tuple[str, ...]]]:
    """The account of each file, and up to three different examples of what was dropped for each reason."""
    files: list[FileAccount] = []
    examples: dict[str, tuple[str, ...]] = {}
    for number, table in enumerate(tables):
        in_file = ledger.rows["file"] == number
        dropped = [*zip(ledger.reason[in_file], ledger.example[in_file], strict=True), *table.broken]
        fates = Counter(reason for reason, _ in dropped)
        kept = fates.pop("", 0)
        counts = dict(fates.most_common())
        files.append(FileAccount(table.file, len(dropped), kept, counts, table.lines, table.other_lines, table.recoded))
        for reason, example in dict.fromkeys(dropped):
            previous, example = examples.get(reason, ()), example[:LONGEST_EXAMPLE]
            if example and example not in previous and len(previous) < EXAMPLES:
                examples[reason] = (*previous, example)
    return tuple(files), examples


def _nothing_left(account: Account, rules: Rules) -> str:
    largest = [f"{reason}: {count}" for reason, count in list(account.dropped.items())[:3]]
    shown = ", ".join(account.examples.get(next(iter(account.dropped)), ()))
    return (
        f"none of {account.read:,} rows is a reading of {' or '.join(rules.characteristics)} in "
        f"{' or '.join(rules.media)}; dropped: {'; '.join(largest)}"
        + (f" (the first: {shown})" if shown else "")
        + "; check that results and stations are of one query, and which characteristics and media you ask for"
    )
