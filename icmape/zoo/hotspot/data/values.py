"""Parsing of value columns: numbers, non-detects and other texts."""

import math
from functools import lru_cache
from typing import NamedTuple

NOTHING = frozenset(("", "_", "-", "--", ".", "na", "n/a", "null", "none", "nan", "nr", "not reported"))
"""Texts that stand for no value."""
NOT_DETECTED = frozenset(
    ("nd", "n.d.", "non-detect", "nondetect", "non detect", "not detected", "bdl", "below detection limit")
)
"""Texts that say that nothing was found."""
NOTHING_FOUND = "not detected|below.*detect|detect.*below"
"""In a detection condition: nothing was found, so that a number beside it can only be a limit."""
BELOW_A_LIMIT = f"{NOTHING_FOUND}|below|between|not quantified"
"""In a detection condition: a limit was not reached; a number beside it is an estimate and counts."""


class Written(NamedTuple):
    """What a text says: a number, or below a number (`<0.5`), above one (`>5`), below an unnamed limit, or nothing."""

    kind: str
    """number, below, above, nothing or unknown."""
    number: float = math.nan


@lru_cache(maxsize=65536)
def written(text: str) -> Written:
    """Parse a text of a value column."""
    plain = " ".join(text.lower().split())
    if plain in NOTHING:
        return Written("nothing")
    if plain in NOT_DETECTED:
        return Written("below")
    sign = plain[0] if plain[0] in "<>" else ""
    number = number_of(plain[1:].lstrip("= ") if sign else plain)
    if math.isnan(number) and not (sign == "<" and plain[1:].strip().isalpha()):
        return Written("unknown")
    return Written({"<": "below", ">": "above", "": "number"}[sign], number)


@lru_cache(maxsize=65536)
def number_of(text: str) -> float:
    """A number, or NaN. A comma may be of thousands or of decimals, so a number with one is none."""
    try:
        return float(text) if "_" not in text else math.nan  # Python reads 1_000
    except ValueError:
        return math.nan
