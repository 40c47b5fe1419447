"""Results as they are written: numbers, non-detects, and everything that stands where a number should."""

import math
from dataclasses import dataclass
from functools import lru_cache

NOTHING = frozenset(("", "_", "-", "--", ".", "na", "n/a", "null", "none", "nan", "nr", "not reported"))
"""Texts that stand for no value."""
NOT_DETECTED = frozenset(
    ("nd", "n.d.", "non-detect", "nondetect", "non detect", "not detected", "bdl", "below detection limit")
)
"""Texts that say that nothing was found."""


@dataclass(frozen=True)
class Written:
    """What a text says: a number, or below a number (`<0.5`), above one (`>5`), below an unnamed limit, or nothing."""

    kind: str
    """number, below, above or nothing."""
    number: float | None = None


@lru_cache(maxsize=65536)
def written(text: str) -> Written | None:
    """What stands in a value column; None if it cannot be understood."""
    plain = " ".join(text.lower().split())
    if plain in NOTHING:
        return Written("nothing")
    if plain in NOT_DETECTED:
        return Written("below")
    if plain[0] in "<>":
        number = number_of(plain[1:].lstrip("= "))
        if plain[0] == ">":
            return None if number is None else Written("above", number)
        return Written("below", number) if number is not None or plain[1:].strip().isalpha() else None
    number = number_of(plain)
    return None if number is None else Written("number", number)


@lru_cache(maxsize=65536)
def number_of(text: str) -> float | None:
    """A finite number, or None. A comma may be of thousands or of decimals, so a number with one is none."""
    try:
        number = float(text) if "_" not in text else math.nan  # Python reads 1_000
    except ValueError:
        return None
    return number if math.isfinite(number) else None


@lru_cache(maxsize=1024)
def nothing_found(condition: str) -> bool:
    """Whether a detection condition says that nothing was found, so that a number beside it can only be a limit."""
    plain = condition.lower()
    return "not detected" in plain or ("below" in plain and "detect" in plain)


@lru_cache(maxsize=1024)
def below_a_limit(condition: str) -> bool:
    """Whether a detection condition says that a limit was not reached; a number beside it is an estimate and counts."""
    plain = condition.lower()
    return nothing_found(condition) or "below" in plain or "between" in plain or "not quantified" in plain
