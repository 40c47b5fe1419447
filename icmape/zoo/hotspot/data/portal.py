"""Download of exports from the Water Quality Portal, one year at a time, so that it can be continued.

FOLDER/query.json              what was asked for, when, and for each year its files, their rows and their sums
FOLDER/results-YEAR.csv.gz     results, to the letter as the portal sent them
FOLDER/stations-YEAR.csv.gz    the stations of that year's results
"""

import gzip
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from icmape.errors import UserError, nearest
from icmape.io import write_atomically
from icmape.version import __version__
from icmape.zoo.hotspot.data.answers import Connection, Failure, ask, import_quietly
from icmape.zoo.hotspot.data.names import names_to_ask_for

LAST_LEGACY_YEAR = 2023
"""The portal's older service has no results of the USGS from March 2024 on."""
PROFILES = {"legacy": "resultPhysChem", "wqx3": "fullPhysChem"}
"""Service → the profile with units, bases, detection limits, media and kinds of activities."""
TABLES = {"results": "Result", "stations": "Station"}
"""Our name of a table → the portal's."""

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Fetched:
    """Content of a folder after a fetch."""

    folder: Path
    rows: dict[int, int]
    """Year → results."""
    new: tuple[int, ...]
    """Years that were not there before."""


def fetch(
    state: str,
    characteristics: Sequence[str],
    years: Sequence[int],
    folder: str | Path,
    *,
    service: str = "legacy",
    connection: Connection = Connection(),
    tell: Tell = lambda text: None,
    tick: Callable[[int], None] | None = None,
) -> Fetched:
    """Fetch what the folder does not hold yet of a state's results and stations.

    Args:
        state: `MD`, `Maryland` or `US:24`.
        characteristics: What was measured; nitrate's are asked for in all the names that the portal has for them.
        years: Calendar years.
        folder: Where the files go. It holds one query; more years of it can be added later.
        service: `legacy`, or `wqx3`, which is newer, slower and has what the USGS added since March 2024.
        connection: Patience, and where the portal is.
        tell: Called with each thing worth saying.
        tick: Called with 1 after each year.
    """
    query = make_query(state, characteristics, service)
    folder, years = Path(folder), _check_years(years)
    record = _open_folder(folder, query)
    missing = [year for year in years if not _whole(folder, record["years"].get(str(year)))]
    if service == "legacy" and any(year > LAST_LEGACY_YEAR for year in missing):
        tell("the legacy service has no results of the USGS from March 2024 on; `--service wqx3` has them")
    if tick is not None:
        tick(len(years) - len(missing))
    for count, year in enumerate(missing):
        try:
            files = _fetch_year(query, year, connection, first=count == 0, tell=tell)
        except Failure as failure:
            raise UserError(_stopped(failure, year, folder, len(years) - len(missing) + count, len(years))) from failure
        record["years"][str(year)] = _store(folder, year, files)
        _write_log(folder, record)
        tell(f"{year}: {record['years'][str(year)]['results']['rows']:,} results")
        if tick is not None:
            tick(1)
    rows = {year: record["years"][str(year)]["results"]["rows"] for year in years}
    if not any(rows.values()):
        raise UserError(
            f"the portal has no results for {_words(query)} in {_range(years)}; check the years, and the names of "
            "characteristics, which the portal matches to the letter"
        )
    return Fetched(folder, rows, tuple(missing))


def make_query(state: str, characteristics: Sequence[str], service: str = "legacy") -> dict[str, Any]:
    """The query without its years, which identifies a folder."""
    import_quietly()
    from dataretrieval.codes import states

    if service not in PROFILES:
        raise UserError(f"unknown service {service!r}: {nearest(service, PROFILES)}")
    if not characteristics:
        raise UserError("give at least one characteristic; given none")
    try:
        code = states.to_state(state.strip(), to="fips_us")
    except ValueError as error:
        raise UserError(f"unknown state {state!r}: give a name (Maryland), a postal code (MD) or US:24") from error
    names = names_to_ask_for(tuple(characteristics))
    return {"state": code, "characteristics": sorted(names), "service": service, "profile": PROFILES[service]}


def _check_years(years: Sequence[int]) -> list[int]:
    this_year = datetime.now(UTC).year
    if not years or min(years) < 1900 or max(years) > this_year:
        raise UserError(f"years must lie in 1900 to {this_year}; given {_range(sorted(years)) or 'none'}")
    return sorted(set(years))


def _range(years: Sequence[int]) -> str:
    return "" if not years else str(years[0]) if len(years) == 1 else f"{years[0]} to {years[-1]}"


def _open_folder(folder: Path, query: dict[str, Any]) -> dict[str, Any]:
    """The log of a folder that is new, or holds this query."""
    log = folder / "query.json"
    if not log.exists():
        strange = [file.name for file in folder.glob("*") if file.name.endswith((".csv", ".csv.gz", ".zip"))]
        if strange:
            raise UserError(f"{folder} holds {strange[0]}, which no fetch put there: give another folder with --out")
        return {"query": query, "years": {}}
    try:
        record = json.loads(log.read_bytes())
        stored_query, _ = record["query"], record["years"].items()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{log} cannot be read ({error}): delete {folder} and fetch again") from error
    if stored_query != query:
        raise UserError(
            f"{folder} holds another query: {stored_query}; asked for now: {query}; give another folder with --out"
        )
    return record


def _words(query: dict[str, Any]) -> str:
    return f"{query.get('state')}, {' | '.join(query.get('characteristics', ()))}, by {query.get('service')}"


def _whole(folder: Path, year: dict[str, Any] | None) -> bool:
    """Whether all files of a year are there as they were written."""
    if year is None:
        return False
    for table in TABLES:
        name = year[table]["file"]
        if name is not None:
            path = folder / name
            if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != year[table]["sha256"]:
                return False
    return True


def _fetch_year(
    query: dict[str, Any], year: int, connection: Connection, *, first: bool, tell: Tell
) -> dict[str, tuple[bytes, int]]:
    """Table → what the portal sent, and its rows. Both tables, or Failure."""
    parameters = {
        "statecode": query["state"],
        "characteristicName": query["characteristics"],
        "startDateLo": f"01-01-{year}",
        "startDateHi": f"12-31-{year}",
        "mimeType": "csv",
    }
    profile = {"dataProfile": query["profile"]}
    results = ask(TABLES["results"], parameters | profile, query["service"], connection, first=first, tell=tell)
    stations = ask(TABLES["stations"], parameters, query["service"], connection, first=False, tell=tell)
    return {"results": results, "stations": stations}


def _store(folder: Path, year: int, files: dict[str, tuple[bytes, int]]) -> dict[str, Any]:
    """Write a year's files; what the log says of them. A table without rows is not written."""
    entry: dict[str, Any] = {"fetched": datetime.now(UTC).isoformat(timespec="seconds")}
    for table, (body, rows) in files.items():
        name = f"{table}-{year}.csv.gz" if rows else None
        packed = gzip.compress(body, mtime=0)
        entry[table] = {"file": name, "rows": rows, "sha256": hashlib.sha256(packed).hexdigest() if rows else None}
        if name is not None:
            write_atomically(folder / name, packed)
    return entry


def _write_log(folder: Path, record: dict[str, Any]) -> None:
    record["years"] = dict(sorted(record["years"].items()))
    record["written_by"] = {"icmape": __version__, "dataretrieval": version("dataretrieval")}
    write_atomically(folder / "query.json", json.dumps(record, indent=2).encode() + b"\n")


def _stopped(failure: Failure, year: int, folder: Path, done: int, wanted: int) -> str:
    state = f"{done} of {wanted} years are in {folder}" if done else "nothing was written"
    return f"fetching {year}: {failure}; {state}; run the same command again to go on"
