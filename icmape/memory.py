"""The memory of this machine, and sizes that cannot fit in it."""

import os
from contextlib import suppress
from functools import cache
from pathlib import Path

from icmape.errors import UserError

SHARE = 0.8  # of the memory that an estimate may take: programs need some more than what is counted
UNITS = ("kB", "MB", "GB", "TB")
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # of a container


@cache
def machine_bytes() -> int:
    """The memory of this machine, or of the container that the process runs in."""
    sizes = []
    with suppress(ValueError, OSError, AttributeError):
        sizes.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for path in LIMITS:
        with suppress(ValueError, OSError):
            sizes.append(int(Path(path).read_text()))
    return min(sizes, default=2**63)


def check_fits(what: str, size: int | float, way_out: str) -> None:
    """Raise `UserError` with the estimate if something of this size (in bytes) does not fit in memory."""
    if size > SHARE * machine_bytes():
        estimate, memory = in_units(size), in_units(machine_bytes())
        raise UserError(f"{what} would take about {estimate}, and this machine has {memory} of memory: {way_out}")


def in_units(size: int | float) -> str:
    """A number of bytes in words: 1.5 GB."""
    power = 1 if size < 1e9 else 2 if size < 1e12 else 3
    value = size / 1000 ** (power + 1)
    return f"{value:,.1f} {UNITS[power]}" if value < 1e6 else f"{value:.0e} {UNITS[power]}"
