"""One training run in several processes, such as one a host: `jax.distributed` with a few words."""

import hashlib
import re
from collections.abc import Mapping

import jax
import numpy as np

from icmape.errors import UserError

WHERE = "HOST:PORT,PROCESSES,NUMBER, or auto"
PATTERN = re.compile(r"(?P<address>[^,\s]+:\d+),(?P<count>\d+),(?P<number>\d+)")


def join(where: str) -> None:
    """Join the other processes of the run, before anything is computed.

    `where` is the address of the first process, the number of processes and that of this one, from 0; or "auto" where
    JAX finds them by itself (Slurm, Open MPI, TPU).
    """
    if where == "auto":
        return _come_together()
    match = PATTERN.fullmatch(where)
    if match is None or not int(match["number"]) < int(match["count"]):
        raise UserError(f"the processes of a run are {WHERE}; given {where!r}")
    _come_together(match["address"], int(match["count"]), int(match["number"]))


def _come_together(address: str | None = None, count: int | None = None, number: int | None = None) -> None:
    try:
        jax.distributed.initialize(address, count, number)
    except (RuntimeError, ValueError) as error:
        raise UserError(f"the processes of the run did not come together: {error}") from error


def part() -> None:
    """Let the other processes of the run end; all of them must call this.

    What follows concerns the first process alone. Without this the others wait for its end, and after five minutes JAX
    aborts all of them.
    """
    if jax.process_count() > 1:
        jax.distributed.shutdown()


def is_first() -> bool:
    """Whether this process writes files; the others only compute."""
    return int(jax.process_index()) == 0


def differing(parts: Mapping[str, bytes]) -> list[str]:
    """The names of parts that are not the same in all processes, which all must ask with the same names."""
    from jax.experimental import multihost_utils

    digests = np.stack([np.frombuffer(hashlib.sha256(part).digest(), np.uint32) for part in parts.values()])
    everywhere = multihost_utils.process_allgather(digests).reshape(-1, *digests.shape)
    return [name for index, name in enumerate(parts) if np.any(everywhere[:, index] != everywhere[:1, index])]


def agreed(flag: bool) -> bool:
    """Whether any process says so. All of them must ask."""
    if jax.process_count() == 1:
        return flag
    from jax.experimental import multihost_utils

    return bool(np.any(multihost_utils.process_allgather(np.array(flag))))
