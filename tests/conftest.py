"""Tests run with shapes checked, without silent promotion of types or ranks, and with warnings as errors."""

import os
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as icmape sets it, before anything else is imported
# tests compile much and run little: with no optimisation that takes half of the time
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false")
# programs stay compiled from one session to the next, for all workers and for the processes that tests start
CACHE = Path(__file__).parents[1] / ".jax_cache"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")

import jax
import pytest
from jaxtyping import install_import_hook

install_import_hook("icmape", "beartype.beartype")

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

MOST_BYTES = 1_000_000_000  # a session writes about a tenth


def pytest_sessionstart(session: pytest.Session) -> None:
    """The programs that were not used for longest make room, before any worker starts.

    JAX's own bound takes a lock that processes wait for, and reads the whole folder for every program that it writes.
    """
    if hasattr(session.config, "workerinput"):
        return
    total = 0
    for path in sorted(CACHE.glob("*"), key=lambda path: path.stat().st_atime, reverse=True):
        total += path.stat().st_size
        if total > MOST_BYTES:
            path.unlink()


@pytest.fixture(scope="module", autouse=True)
def room() -> Iterator[None]:
    """For the programs of the next module."""
    from icmape.compiling import make_room  # after the hook

    yield
    make_room()
