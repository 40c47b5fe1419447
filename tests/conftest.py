"""Tests run with shapes checked, without silent promotion of types or ranks, and with warnings as errors."""

import gc
import os
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as icmape sets it, before anything else is imported
# tests compile much and run little, in all processes: with no optimisation that takes half of the time
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1"  # each worker has a core
    + (" --xla_cpu_use_fusion_emitters=false" if tuple(map(int, version("jaxlib").split(".")[:2])) < (0, 11) else ""),
)
# programs stay compiled from one session to the next, for all workers, clones and processes that tests start
os.environ.setdefault("XDG_CACHE_HOME", str(Path.home() / ".cache"))
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", os.environ["XDG_CACHE_HOME"] + "/icmape-tests")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")

import jax
import pytest
from jaxtyping import install_import_hook

from tests.browser import started_browser

install_import_hook("icmape", "beartype.beartype")

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

CACHE = Path(os.environ["XDG_CACHE_HOME"]) / "icmape-tests"  # not what somebody set for all programs
LONGEST = (  # the longest first; with the others, of a few seconds each, workers end at the same time
    *(
        "learning/test_processes.py",
        "learning/test_run.py",
        "learning/test_algorithms.py",
        "learning/test_devices.py",
        "sweeps/test_sweeps.py",
        "learning/test_train.py",
        "zoo/signal/test_seekers.py",
    ),
    *("learning/test_maps.py", "cli/test_own.py", "learning/test_teacher.py", "learning/test_hotspot_learners.py"),
    *("baselines/test_greedy.py", "evaluation/test_diagnosis.py", "learning/test_td3.py", "paper/test_killed.py"),
    *("zoo/signal/test_field_posterior.py", "zoo/hotspot/test_monitors.py", "problem/test_contract.py"),
    *("learning/test_plan.py", "zoo/signal/test_signal.py", "learning/test_dynamic_program.py"),
)
MOST_BYTES = 1_000_000_000  # a session writes about a tenth


def pytest_sessionstart(session: pytest.Session) -> None:
    """The programs that were not used for longest make room, before any worker starts.

    JAX's own bound takes a lock that processes wait for, and reads the whole folder for every program that it writes.
    """
    if hasattr(session.config, "workerinput"):
        return
    total = 0
    with suppress(FileNotFoundError):  # another clone may be at it, too
        for path in sorted(CACHE.glob("*"), key=lambda path: path.stat().st_atime, reverse=True):
            total += path.stat().st_size
            if total > MOST_BYTES:
                path.unlink()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The order in which workers take files (with --no-loadscope-reorder, as `make test` has it)."""
    places = {Path(__file__).parent / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


def pytest_collection_finish() -> None:
    """All that was imported stays, and what tracing leaves is looked through less often: a tenth of the time."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.fixture(scope="module", autouse=True)
def room() -> Iterator[None]:
    """For the programs of the next module."""
    from icmape.compiling import make_room  # after the hook

    yield
    make_room()


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    """A browser for the tests of a module."""
    started = started_browser()
    yield started
    started.quit()
