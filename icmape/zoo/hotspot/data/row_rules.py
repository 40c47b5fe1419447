"""Rules that decide which rows of exports are readings, applied column by column."""

from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache

import numpy as np
import pandas as pd

from icmape.errors import UserError
from icmape.zoo.hotspot.data.names import BOTH, NITRATE, characteristic_of
from icmape.zoo.hotspot.data.units import SHARE_OF_NITROGEN, Unit, UnitError, unit_of
from icmape.zoo.hotspot.data.values import BELOW_A_LIMIT, NOTHING_FOUND, number_of, written

FIRST_DAY = "1900-01-01"
"""Earlier dates are mistakes, as are those after today."""
HIGHEST = 1e6
"""mg/L as N: a kilogram of nitrogen in a litre, which is more than any solution holds."""
QUALITY_CONTROL = {
    "quality control: blank": "blank",
    "quality control: replicate of another sample": "replicate|duplicate|split",
    "quality control: spike, reference or other": "quality control|spike|reference|calibration",
}
"""Reason → words in the type of an activity that is no sample of the water."""
LONGEST_NAME = 100
"""Of a station, in letters: the longest name decides how much memory all of them take."""
MOST_UNITS = 30
"""Units that are reasons of their own: a column out of place would make as many of them as it has texts."""
LONG_NAME = f"name of a station longer than {LONGEST_NAME} letters"
NO_STATION = "no station named"
NO_PLACE = "coordinates missing or impossible"


@dataclass(frozen=True)
class Rules:
    """Rules for exports."""

    characteristics: tuple[str, ...] = ("Nitrate", "Inorganic nitrogen (nitrate and nitrite)")
    """What counts, in any of the names that the portal has for it."""
    media: tuple[str, ...] = ("Water",)
    """Sampled media that count; a row that names none counts too."""
    nondetect: float = 0.5
    """A non-detect counts as this share of its detection limit."""
    average: bool = True
    """Average what one station has on one day: its samples and depths are near-copies."""
    basis: str = "N"
    """What a mass is taken to be of where nothing says it: N, NO3 or NO2; `drop` leaves such rows out."""

    def __post_init__(self) -> None:
        if not self.characteristics or not self.media:
            raise UserError("rules for exports need at least one characteristic and one medium; given none")
        if not all(map(str.strip, (*self.characteristics, *self.media))):
            raise UserError(f"characteristics and media have names; given {self.characteristics} and {self.media}")
        if not 0 <= self.nondetect <= 1:
            raise UserError(f"nondetect is a share of the detection limit, from 0 to 1; given {self.nondetect:g}")
        if self.basis not in (*SHARE_OF_NITROGEN, "drop"):
            raise UserError(f"basis must be one of {', '.join(SHARE_OF_NITROGEN)} or drop; given {self.basis!r}")

    @property
    def kinds(self) -> dict[str, int]:
        """Characteristic → how far back it stands where one sample is reported in several forms.

        Nitrate + nitrite is first: it is what laboratories measure and most rows hold; nitrate is computed from it.
        """
        requested = [characteristic_of(name).kind for name in self.characteristics]
        order = [*(kind for kind in (BOTH, NITRATE) if kind in requested), *requested]
        return {kind: place for place, kind in enumerate(dict.fromkeys(order))}


class Ledger:
    """For each row, whether it is kept, the reason if not, and changes to it."""

    def __init__(self, rows: pd.DataFrame):
        self.rows = rows
        self.kept = np.ones(len(rows), dtype=bool)
        self.reason, self.example = np.full((2, len(rows)), "", dtype=object)
        self.changes: list[np.ndarray] = []
        """For each kind of change its name on the rows where it was made, else blank."""

    def drop(self, mask: pd.Series | np.ndarray, reason: str | pd.Series, example: str | pd.Series = "") -> None:
        """Drop those of these rows that are still kept."""
        hit = self.kept & np.asarray(mask, dtype=bool)
        self.kept &= ~hit
        self.reason[hit] = reason if isinstance(reason, str) else reason[hit]
        self.example[hit] = example if isinstance(example, str) else example[hit]

    def change(self, mask: pd.Series | np.ndarray, name: str | pd.Series) -> None:
        """Record a change to these rows."""
        self.changes.append(pd.Series(name, self.rows.index, dtype=object).where(mask, "").to_numpy())


def judge(ledger: Ledger, rules: Rules, stations: pd.DataFrame) -> pd.DataFrame:
    """Drop rows that are no readings, each for the first reason that applies; the samples that all rows come to.

    `stations` has latitude and longitude by station, NaN if its table gives no such place on Earth.
    """
    rows = ledger.rows
    kind = rows["characteristic"].map(lambda name: characteristic_of(name).kind)
    ledger.drop(~kind.isin(rules.kinds), "another characteristic", _filled(rows["characteristic"], "(blank)"))
    media = ["", *(medium.lower() for medium in rules.media)]
    ledger.drop(~rows["medium"].str.lower().isin(media), "another medium", rows["medium"])
    ledger.change(rows["medium"] == "", f"medium not stated, taken as {media[1]}")
    for reason, words in QUALITY_CONTROL.items():
        ledger.drop(_says(rows["activity_type"], words), reason, rows["activity_type"])
    ledger.drop(rows["status"].str.lower() == "rejected", "result rejected by its provider", rows["status"])
    samples = _located(ledger, stations)
    day = pd.Series(np.array([day_of(text) for text in rows["day"]], dtype="datetime64[s]"), rows.index)
    ledger.drop(day.isna(), "date missing or not understood", _filled(rows["day"], "(blank)"))
    ledger.drop((day < FIRST_DAY) | (day > pd.Timestamp.now()), "date before 1900 or in the future", rows["day"])
    return samples.assign(day=day, kind=kind, **_measured(ledger, rules))


def _located(ledger: Ledger, stations: pd.DataFrame) -> pd.DataFrame:
    """Stations and their places. A station table's place outweighs the one in a result."""
    rows = ledger.rows
    ledger.drop(rows["station"] == "", NO_STATION)
    ledger.drop(rows["station"].str.len() > LONGEST_NAME, LONG_NAME, rows["station"].str[:LONGEST_NAME])
    station_places, row_places = stations.reindex(rows["station"]).set_axis(rows.index), places(rows)
    unplaced, stated = station_places["latitude"].isna(), (rows["latitude"] != "") | (rows["longitude"] != "")
    ledger.drop(
        unplaced & stated & row_places["latitude"].isna(), NO_PLACE, rows["latitude"] + ", " + rows["longitude"]
    )
    ledger.drop(unplaced & ~stated & rows["station"].isin(stations.index), NO_PLACE, rows["station"])
    ledger.drop(unplaced & ~stated, "station in no station table", rows["station"])
    ledger.change(unplaced, "station in no station table, its place taken from the result")
    return row_places.where(unplaced, station_places, axis=0).assign(station=rows["station"])


def _measured(ledger: Ledger, rules: Rules) -> dict[str, pd.Series]:
    """Values in mg/L as N, the bases that they were given in, and whether anything was found."""
    rows = ledger.rows
    kind = rows["value"].map(lambda text: written(text).kind)
    number = rows["value"].map(lambda text: written(text).number).astype(float)
    limit = rows["limit"].map(number_of).astype(float)
    ledger.drop(kind == "unknown", "value not understood", rows["value"])
    ledger.drop((kind == "nothing") & ~_says(rows["condition"], BELOW_A_LIMIT), "no value", rows["condition"])
    detected = kind.isin(["number", "above"]) & ~_says(rows["condition"], NOTHING_FOUND)
    # `<0.5` names the limit; else its own columns do; else the number beside "Not Detected" is the limit
    by_column = ~detected & ~((kind == "below") & (number > 0)) & (limit > 0)
    limited = by_column | (kind.isin(["below", "number"]) & (number > 0))
    ledger.drop(~detected & ~limited, "non-detect without a limit", _filled(rows["value"], rows["condition"]))
    number = number.mask(by_column, limit)
    ledger.drop(number < 0, "negative value", rows["value"])
    unit = rows["unit"].mask(by_column, rows["limit_unit"])
    unit = _filled(unit, rows["limit_unit"].mask(by_column, rows["unit"]))
    named = rows["characteristic"].map(lambda name: characteristic_of(name).basis)
    texts = pd.DataFrame({"unit": unit, "speciation": rows["speciation"], "named": named})
    distinct = texts.drop_duplicates().to_numpy()
    stated = [_unit(unit, speciation, basis, rules.basis) for unit, speciation, basis in distinct]
    stated = _few_reasons(stated)
    units = pd.DataFrame(stated, columns=Unit._fields).astype({"factor": float, "assumed": bool})
    units = units.iloc[texts.groupby(list(texts), sort=False).ngroup()].set_axis(rows.index)
    ledger.drop(units["factor"].isna(), units["name"])
    ledger.drop(number * units["factor"] > HIGHEST, "value beyond any concentration", rows["value"])
    ledger.change(~detected, f"non-detect, taken as {rules.nondetect:g} of its limit")
    ledger.change(kind == "above", "above the range of the method, taken at its upper limit")
    ledger.change(units["assumed"], f"basis not stated, taken as {rules.basis}")
    ledger.change(units["factor"] != 1.0, "converted from " + units["name"])
    value = number.where(detected, number * rules.nondetect) * units["factor"]
    return {"value": value, "basis": units["basis"], "detected": detected}


def _filled(texts: pd.Series, otherwise: str | pd.Series) -> pd.Series:
    return texts.where(texts != "", otherwise)


def _says(texts: pd.Series, words: str) -> pd.Series:
    return texts.str.contains(words, case=False).astype(bool)


def _unit(unit: str, speciation: str, named: str, default: str) -> Unit:
    """The unit; if it is none the reason is its name, and its factor NaN."""
    try:
        return unit_of(unit, speciation, named, default)
    except UnitError as error:
        return Unit(str(error), np.nan, "", assumed=False)


def _few_reasons(units: list[Unit]) -> list[Unit]:
    """The first units that are none keep their names; the others are one reason together."""
    unknown = dict.fromkeys(unit.name for unit in units if np.isnan(unit.factor))
    named = set(list(unknown)[:MOST_UNITS])
    other = Unit("unit not known: more than can be listed", np.nan, "", assumed=False)
    return [other if np.isnan(unit.factor) and unit.name not in named else unit for unit in units]


@lru_cache(maxsize=65536)
def day_of(text: str) -> date | None:
    """A day as the portal writes it (2019-05-07, perhaps a time after it) or as American spreadsheets do (5/7/2019)."""
    for form, day in (("%Y-%m-%d", text[:10] if text[10:11] in ("", " ", "T") else ""), ("%m/%d/%Y", text)):
        try:
            return datetime.strptime(day, form).date()
        except ValueError:
            continue
    return None


def places(rows: pd.DataFrame) -> pd.DataFrame:
    """Degrees out of text; NaN if there is no such place, or it is 0, 0, where no station is but many blanks."""
    degrees = rows[["latitude", "longitude"]].map(number_of).astype(float)
    possible = (degrees.abs() <= [90, 180]).all(axis=1) & (degrees != 0).any(axis=1)
    return degrees.where(possible)
