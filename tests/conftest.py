"""Tests run with shapes checked, without silent promotion of types or ranks, and with warnings as errors."""

import os
from collections.abc import Iterator

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as icmape sets it, before anything else is imported
# tests compile much and run little: with less optimisation that takes two thirds of the time
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=1 --xla_cpu_use_fusion_emitters=false")

import jax
import pytest
from jaxtyping import install_import_hook

install_import_hook("icmape", "beartype.beartype")

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture(scope="session", autouse=True)
def compilation_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Programs compiled once per session, wherever they are used again (also by commands that tests start)."""
    folder = tmp_path_factory.mktemp("jax-cache")
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)


@pytest.fixture(scope="module", autouse=True)
def room() -> Iterator[None]:
    """For the programs of the next module."""
    from icmape.compiling import make_room  # after the hook

    yield
    make_room()
