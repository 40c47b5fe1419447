"""What counts as a reading: the rules for exports, and what they make of one row."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from typing import NamedTuple

from icmape.errors import UserError
from icmape.zoo.hotspot.data.names import BOTH, NITRATE, Characteristic, characteristic_of
from icmape.zoo.hotspot.data.tables import Row
from icmape.zoo.hotspot.data.units import SHARE_OF_NITROGEN, Unit, UnitError, unit_of
from icmape.zoo.hotspot.data.values import Written, below_a_limit, nothing_found, number_of, written

Place = tuple[float, float]
"""Latitude and longitude in degrees."""


@dataclass(frozen=True)
class Rules:
    """What to take from exports, and how."""

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
        if not 0 <= self.nondetect <= 1:
            raise UserError(f"nondetect is a share of the detection limit, from 0 to 1; given {self.nondetect:g}")
        if self.basis not in (*SHARE_OF_NITROGEN, "drop"):
            raise UserError(f"basis must be one of {', '.join(SHARE_OF_NITROGEN)} or drop; given {self.basis!r}")

    @property
    def kinds(self) -> dict[str, int]:
        """Characteristic → how far back it stands where one sample is reported in several forms.

        Nitrate + nitrite is first: it is what laboratories measure and most rows hold; nitrate is computed from it.
        """
        given = [characteristic_of(name).kind for name in self.characteristics]
        order = [*(kind for kind in (BOTH, NITRATE) if kind in given), *given]
        return {kind: place for place, kind in enumerate(dict.fromkeys(order))}


class Dropped(Exception):
    """A row's fate: why it is no reading, and the text that shows it."""

    def __init__(self, reason: str, example: str = ""):
        super().__init__(reason)
        self.reason, self.example = reason, example


class Sample(NamedTuple):
    """A row that counts."""

    station: str
    place: Place
    day: date
    value: float
    bottle: tuple[str, ...]
    """What tells this sample from others; rows that share it are one sample in several forms."""
    form: tuple[str, str]
    """Characteristic and basis."""
    detected: bool
    changes: tuple[str, ...]


@dataclass(frozen=True)
class Judge:
    """Decides what a row is; remembers where stations are."""

    rules: Rules
    kinds: Mapping[str, int]
    places: Mapping[str, Place | None]
    """Station → where it is; None if its table gives no such place on Earth."""

    def sample(self, row: Row) -> Sample:
        """The sample of a row, or Dropped."""
        characteristic = self._characteristic(row)
        changes = self._check_kind(row)
        place = self._place(row, changes)
        day = day_of(row.day)
        if day is None:
            raise Dropped("date missing or not understood", row.day or "(blank)")
        value, unit, detected = self._value(row, characteristic.basis, changes)
        when = row.time or row.activity  # not all providers give a time; the same time at one depth is one bottle
        bottle = (row.organization, row.station, row.day, when, row.depth)
        form = (characteristic.kind, unit.basis)
        return Sample(row.station, place, day, value, bottle, form, detected, tuple(changes))

    def _characteristic(self, row: Row) -> Characteristic:
        characteristic = characteristic_of(row.characteristic)
        if characteristic.kind not in self.kinds:
            raise Dropped("another characteristic", row.characteristic or "(blank)")
        return characteristic

    def _check_kind(self, row: Row) -> list[str]:
        """Drop what is no sample of this water; the changes made so far."""
        if row.medium and row.medium.lower() not in (medium.lower() for medium in self.rules.media):
            raise Dropped("another medium", row.medium)
        if fate := not_a_sample(row.activity_type):
            raise Dropped(fate, row.activity_type)
        if row.status.lower() == "rejected":
            raise Dropped("result rejected by its provider", row.status)
        return [] if row.medium else ["medium not stated, taken as " + self.rules.media[0].lower()]

    def _place(self, row: Row, changes: list[str]) -> Place:
        if not row.station:
            raise Dropped("no station named")
        if (known := self.places.get(row.station)) is not None:
            return known
        if row.latitude or row.longitude:
            if (own := place_of(row.latitude, row.longitude)) is None:
                raise Dropped("coordinates missing or impossible", f"{row.latitude}, {row.longitude}")
            changes.append("station in no station table, its place taken from the result")
            return own
        if row.station in self.places:
            raise Dropped("coordinates missing or impossible", row.station)
        raise Dropped("station in no station table", row.station)

    def _value(self, row: Row, named_basis: str, changes: list[str]) -> tuple[float, Unit, bool]:
        """Value in mg/L as N, the unit it was given in, and whether it was found at all."""
        said = written(row.value)
        if said is None:
            raise Dropped("value not understood", row.value)
        if said.kind == "nothing" and not below_a_limit(row.condition):
            raise Dropped("no value", row.condition)
        detected = said.kind in ("number", "above") and not nothing_found(row.condition)
        number, unit_text = (said.number, row.unit or row.limit_unit) if detected else _limit(row, said)
        assert number is not None
        if number < 0:
            raise Dropped("negative value", row.value)
        unit = self._unit(unit_text, row.speciation, named_basis)
        if not detected:
            changes.append(f"non-detect, taken as {self.rules.nondetect:g} of its limit")
            number *= self.rules.nondetect
        if said.kind == "above":
            changes.append("above the range of the method, taken at its upper limit")
        if unit.assumed:
            changes.append(f"basis not stated, taken as {unit.basis}")
        if unit.factor != 1.0:
            changes.append(f"converted from {unit.name}")
        return number * unit.factor, unit, detected

    def _unit(self, text: str, speciation: str, named_basis: str) -> Unit:
        try:
            return unit_of(text, speciation, named_basis, self.rules.basis)
        except UnitError as error:
            raise Dropped(str(error)) from error


def _limit(row: Row, said: Written) -> tuple[float, str]:
    """The limit that a non-detect stayed below, and its unit: `<0.5` says it, else the limit's own columns do."""
    if said.kind == "below" and said.number is not None and said.number > 0:
        return said.number, row.unit or row.limit_unit
    limit = number_of(row.limit)
    if limit is not None and limit > 0:
        return limit, row.limit_unit or row.unit
    if said.kind == "number" and said.number is not None and said.number > 0:
        return said.number, row.unit or row.limit_unit  # "Not Detected" beside a number: the number is the limit
    raise Dropped("non-detect without a limit", row.value or row.condition)


@lru_cache(maxsize=256)
def not_a_sample(activity_type: str) -> str:
    """Why an activity of this type is no sample of the water, or nothing."""
    plain = activity_type.lower()
    if "blank" in plain:
        return "quality control: blank"
    if any(word in plain for word in ("replicate", "duplicate", "split")):
        return "quality control: replicate of another sample"
    if any(word in plain for word in ("quality control", "spike", "reference", "calibration")):
        return "quality control: spike, reference or other"
    return ""


@lru_cache(maxsize=65536)
def day_of(text: str) -> date | None:
    """A day as the portal writes it (2019-05-07, perhaps a time after it) or as American spreadsheets do (5/7/2019)."""
    for form, length in (("%Y-%m-%d", 10), ("%m/%d/%Y", None)):
        try:
            return datetime.strptime(text[:length], form).date()
        except ValueError:
            continue
    return None


def place_of(latitude: str, longitude: str) -> Place | None:
    """Degrees out of text; None if there is no such place, or it is 0, 0, where no station is but many blanks."""
    north, east = number_of(latitude), number_of(longitude)
    if north is None or east is None or abs(north) > 90 or abs(east) > 180 or math.hypot(north, east) == 0:
        return None
    return north, east
