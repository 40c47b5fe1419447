"""Output of `icmape data check`: the account of all rows, and a summary of the readings."""

from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text

from icmape.plot.terminal import out, say
from icmape.zoo.hotspot.data.readings import Account, Readings

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)


def print_account(account: Account) -> None:
    """Rows read, dropped for each reason and kept, for each file where there are several; then what was changed."""
    rows = _table("", "rows", "for example")
    rows.add_row("rows read", f"{account.read:,}", "")
    for reason, count in account.dropped.items():
        rows.add_row(f"  {reason}", f"-{count:,}", "; ".join(account.examples.get(reason, ())))
    rows.add_row(*(Text(cell, style="bold") for cell in ("rows kept", f"{account.kept:,}", "")))
    if account.averaged:
        rows.add_row("readings: station-days, averaged", f"{account.readings:,}", "")
    out.print(rows, "")
    if len(account.files) > 1:
        out.print(_files(account), "")
    _print_lines(account)
    if account.changed:
        changed = _table("changed on kept rows", "rows")
        for change, count in account.changed.items():
            changed.add_row(change, f"{count:,}")
        out.print(changed, "")


def _print_lines(account: Account) -> None:
    """Unusual lines of files, station files included."""
    for file in (*account.files, *account.station_files):
        unusual = {kind: count for kind, count in file.other_lines.items() if kind != "header"}
        if file in account.station_files:
            unusual |= {kind: count for kind, count in file.dropped.items() if kind.startswith("line with")}
        if file.recoded:
            unusual["with bytes that are not UTF-8, read as Latin-1"] = file.recoded
        if unusual:
            counts = ", ".join(f"{count:,} {kind}" for kind, count in unusual.items())
            out.print(f"{file.file} has {file.lines:,} lines: {counts}", "")


def _files(account: Account) -> Table:
    files = _table("file", "read", "dropped", "kept")
    for file in account.files:
        files.add_row(file.file, f"{file.read:,}", f"{file.read - file.kept:,}", f"{file.kept:,}")
    return files


def print_readings(readings: Readings) -> None:
    """Readings and stations of each year, and quantiles of the values."""
    years = _table("year", "readings", "stations", "median mg/L as N")
    for entry in summary(readings)["years"]:
        years.add_row(str(entry["year"]), f"{entry['readings']:,}", f"{entry['stations']:,}", f"{entry['median']:.3g}")
    out.print(years, "")
    values = _table("share of readings below", "mg/L as N")
    for share, value in summary(readings)["quantiles"].items():
        values.add_row(f"{float(share):.0%}", f"{value:.4g}")
    out.print(values, "")
    north, east = readings.latitude, readings.longitude
    say(
        f"{len(np.unique(readings.station)):,} stations between {north.min():.3f} and {north.max():.3f} north, "
        f"{east.min():.3f} and {east.max():.3f} east"
    )


def summary(readings: Readings) -> dict[str, Any]:
    """The same as plain numbers."""
    years = []
    for year in np.unique(readings.year):
        year_readings = readings.of_years([int(year)])
        stations, median = len(np.unique(year_readings.station)), float(np.median(year_readings.value))
        years.append({"year": int(year), "readings": len(year_readings), "stations": stations, "median": median})
    quantiles = {str(share): float(value) for share, value in zip(QUANTILES, _quantiles(readings), strict=True)}
    return {"years": years, "quantiles": quantiles, "stations": len(np.unique(readings.station))}


def _quantiles(readings: Readings) -> np.ndarray:
    return np.quantile(readings.value, QUANTILES)


def _table(*columns: str) -> Table:
    """Numbers to the right; the first column, and examples, to the left."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in columns:
        is_text = name in (columns[0], "for example")
        table.add_column(name, justify="left" if is_text else "right", overflow="fold", no_wrap=name == "rows")
    return table
