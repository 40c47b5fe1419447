"""Names of characteristics that the portal and its providers use."""

from functools import lru_cache
from typing import NamedTuple

NITRATE = "Nitrate"
BOTH = "Nitrate + Nitrite"

SPELLINGS = {
    BOTH: "inorganic nitrogen (nitrate and nitrite); inorganic nitrogen (nitrate and nitrite) as n; nitrate + nitrite; "
    "nitrite + nitrate; nitrate plus nitrite; nitrite plus nitrate; nitrate and nitrite; nitrate/nitrite; "
    "nitrate-nitrite; nitrogen, nitrite (no2) + nitrate (no3) as n; nitrate + nitrite as n; nitrate+nitrite; "
    "nitrate+nitrite as n; no2+no3; no3+no2; nox",
    NITRATE: "nitrate; nitrate as n; nitrate as no3; nitrate as nitrogen; nitrate-n; nitrate-nitrogen; "
    "nitrate nitrogen; nitrogen, nitrate (no3) as n; nitrogen, nitrate (no3) as no3; no3; no3-n",
}
"""What is measured → its names in small letters, parted by semicolons."""

# The portal matches names to the letter, and its providers do not all use the same ones
PORTAL_NAMES = {
    NITRATE: ("Nitrate",),
    BOTH: (
        "Inorganic nitrogen (nitrate and nitrite)",
        "Nitrate + Nitrite",
        "Inorganic nitrogen (nitrate and nitrite) ***retired***use Nitrate + Nitrite",
    ),
}

_KIND_OF = {spelling: kind for kind, spellings in SPELLINGS.items() for spelling in spellings.split("; ")}
_N_ENDINGS = (" as n", "-n", " as nitrogen", "-nitrogen", "nitrate nitrogen")


class Characteristic(NamedTuple):
    """A characteristic by its one name, and the basis that the name it was given says, or nothing."""

    kind: str
    basis: str = ""


@lru_cache(maxsize=4096)
def characteristic_of(name: str) -> Characteristic:
    """The characteristic that a name stands for; one that is not known stands for itself, in small letters."""
    old, _, rest = name.partition("***")
    plain = " ".join(old.lower().split())
    if plain not in _KIND_OF and "use " in rest:  # retired, and the portal says in favour of what
        plain = " ".join(rest.rpartition("use ")[2].lower().split())
    basis = "N" if plain.endswith(_N_ENDINGS) else "NO3" if plain.endswith(" as no3") else ""
    return Characteristic(_KIND_OF.get(plain, plain), basis)


def names_to_ask_for(characteristics: tuple[str, ...]) -> tuple[str, ...]:
    """All names under which the portal holds these characteristics."""
    names = (PORTAL_NAMES.get(characteristic_of(name).kind, (name,)) for name in characteristics)
    return tuple(dict.fromkeys(name for several in names for name in several))
