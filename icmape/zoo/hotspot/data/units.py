"""Conversion of units of nitrate, in all common spellings, to mg/L as N.

A concentration of nitrate is the mass of its nitrogen ("as N") or of the whole ion ("as NO3", 4.43 times as much). The
unit may say which, or another column, or the name of what was measured, or nothing.
"""

import re
from typing import NamedTuple

NITROGEN = 14.0067
"""Grams per mole."""
SHARE_OF_NITROGEN = {"N": 1.0, "NO3": NITROGEN / 62.0049, "NO2": NITROGEN / 46.0055}
"""Basis → mass of nitrogen in one unit of mass."""

_BASES = {
    **dict.fromkeys(("n", "no3-n", "no3n", "no2-n", "no2n", "no2+no3-n", "no3+no2-n", "nitrogen"), "N"),
    **dict.fromkeys(("no3", "nitrate"), "NO3"),
    **dict.fromkeys(("no2", "nitrite"), "NO2"),
}
# The analyte's own name: says what was measured, not by which mass
_NO_BASIS = frozenset(("", "none", "na", "null", "no2+no3", "no3+no2", "unknown", "notapplicable", "notreported"))

_SCALES = {"g": 1e3, "m": 1.0, "u": 1e-3, "n": 1e-6}
_VOLUMES = {"l": 1.0, "liter": 1.0, "litre": 1.0, "dm3": 1.0, "ml": 1e3, "m3": 1e-3}
_BASIS = "|".join(re.escape(name) for name in sorted(_BASES, key=len, reverse=True))
_PER_VOLUME = re.compile(
    rf"(?P<prefix>[mun]?)(?P<amount>g|mol|eq)-?(?P<inner>{_BASIS})?/(?P<volume>{'|'.join(_VOLUMES)})"
    rf"-?(?:as)?(?P<outer>{_BASIS})?"
)
_SHORT_NAMES = {"ppm": "mg/l", "ppb": "ug/l", "mm": "mmol/l", "um": "umol/l", "nm": "nmol/l"}
_SHORT = re.compile(rf"(?P<name>{'|'.join(_SHORT_NAMES)})-?(?:as)?(?P<outer>{_BASIS})?")
_PER_MASS = re.compile(r"[mun]?g.*/[mk]?g.*")


class UnitError(ValueError):
    """A unit that cannot become mg/L as N; its text is the reason in the account."""


class Unit(NamedTuple):
    """A parsed unit."""

    name: str
    """Written one way, with the basis: `ug/L as NO3`."""
    factor: float
    """A value times this is mg/L as N."""
    basis: str
    """N, NO3 or NO2; an amount of substance (umol/L) counts as N."""
    assumed: bool
    """Whether nothing said the basis."""


def unit_of(unit: str, speciation: str = "", named: str = "", default: str = "N") -> Unit:
    """The unit that a row's texts state.

    Args:
        unit: Text of the unit column. A basis in it outweighs what the other texts say.
        speciation: Text of the speciation column: `as N`, `as NO3`.
        named: Basis that the characteristic's name says, as in `Nitrate as N`.
        default: Basis where nothing says one; `drop` refuses such a row.
    """
    scale, name, in_unit = _scale(unit)
    if "g/" not in name:  # one nitrogen and one charge in each ion: moles and equivalents of it are moles of N
        return Unit(name, scale * NITROGEN, "N", assumed=False)
    basis = in_unit or _speciation(speciation) or named
    assumed = not basis
    if assumed and default == "drop":
        raise UnitError("basis of the unit not stated (as N, as NO3)")
    basis = basis or default
    return Unit(f"{name} as {basis}", scale * SHARE_OF_NITROGEN[basis], basis, assumed)


def _scale(text: str) -> tuple[float, str, str]:
    """How many mg/L (or mmol/L, meq/L) one of this unit is, its name without a basis, and the basis or nothing."""
    plain = re.sub(r"[\s*_()]+", "", text).lower().replace("µ", "u").replace("μ", "u").replace("mcg", "ug")
    if plain in ("", "na", "none", "null"):
        raise UnitError("unit not stated")
    if (short := _SHORT.fullmatch(plain)) is not None:
        plain = _SHORT_NAMES[short["name"]] + (short["outer"] or "")
    match = _PER_VOLUME.fullmatch(plain)
    if match is None:
        if _PER_MASS.fullmatch(plain):
            raise UnitError(f"unit per mass, not a concentration in water: {text.strip()}")
        raise UnitError(f"unit not known: {text.strip()}")
    amount, volume = match["prefix"] + match["amount"], match["volume"]
    scale = _SCALES[match["prefix"] or "g"] * _VOLUMES[volume]
    name = f"{amount}/{'L' if _VOLUMES[volume] == 1.0 else volume}"
    return scale, name, _BASES.get(match["outer"] or match["inner"] or "", "")


def _speciation(text: str) -> str:
    plain = re.sub(r"\s+", "", text).lower().removeprefix("as")
    if plain in _NO_BASIS:
        return ""
    if plain not in _BASES:
        raise UnitError(f"basis not known: {text.strip()}")
    return _BASES[plain]
