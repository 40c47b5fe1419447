"""Small hotspot problems that several tests share: made-up fields on 36 cells, and a few readings in files."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from icmape.zoo.hotspot.data.readings import Readings
from icmape.zoo.hotspot.hotspot import Hotspot
from icmape.zoo.hotspot.region import Grid, make_grid

YEARS = (2001, 2002, 2003, 2004)
SMALL: dict[str, Any] = {
    "synthetic": 0,
    "rows": 6,
    "columns": 6,
    "fit": 30,
    "agents": 2,
    "k": 2,
    "horizon": 6,
    "years": YEARS,
    "training_years": YEARS,
}


@cache
def small_hotspot(**changes: Any) -> Hotspot:
    """Two crews, 34 valid cells of 36, the two highest of which are right."""
    return Hotspot(**{**SMALL, **changes})


REGION: dict[str, Any] = {"latitudes": (38.0, 39.0), "longitudes": (-77.0, -76.0), "rows": 3, "columns": 3}
FROM_FILES: dict[str, Any] = {
    **REGION,
    "fit": 15,
    "agents": 2,
    "k": 2,
    "repeats": 3,
    "horizon": 5,
    "years": (2001, 2002),
    "training_years": (2001, 2002),
}
"""Goes with `few_readings`: two years to learn from, and 2019."""


def region() -> Grid:
    """Nine cells of a third of a degree."""
    return make_grid(REGION["latitudes"], REGION["longitudes"], REGION["rows"], REGION["columns"])


@cache
def few_readings() -> Readings:
    """25 readings in each of 2001, 2002 and 2019, at ten stations that leave the north-east corner empty."""
    chance = np.random.default_rng(5)
    latitude, longitude = chance.uniform(38.02, 38.64, 10), chance.uniform(-76.98, -76.02, 10)
    latitude[:3], longitude[:3] = 38.9, [-76.9, -76.6, -76.5]
    station = np.concatenate([np.r_[np.arange(10), chance.integers(0, 10, 15)] for _ in range(3)])
    day = np.repeat(np.array(["2001-05-01", "2002-05-01", "2019-05-01"], "datetime64[D]"), 25)
    value = np.exp(chance.normal(size=10)[station] + 0.3 * chance.normal(size=75)).round(3)
    names = np.array([f"S{number}" for number in range(10)])
    return Readings(names[station], latitude[station], longitude[station], day, value)


def write(folder: Path, readings: Readings, change: Callable[[Readings], Readings] | None = None) -> list[str]:
    """The readings as a result export in a folder: what a problem's `data` names."""
    shown = readings if change is None else change(readings)
    header = (
        "MonitoringLocationIdentifier,ActivityStartDate,CharacteristicName,ResultMeasureValue,"
        "ResultMeasure/MeasureUnitCode,LatitudeMeasure,LongitudeMeasure"
    )
    columns = shown.station, shown.day, shown.value, shown.latitude, shown.longitude
    rows = [f"{s},{d},Nitrate,{v},mg/l as N,{a},{o}" for s, d, v, a, o in zip(*columns, strict=True)]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "result.csv").write_text("\n".join([header, *rows]) + "\n")
    return [str(folder)]
