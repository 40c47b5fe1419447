"""Options of XLA for programs that run little: another speed, the same result."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape import compiling
from icmape.compiling import ONCE, SHORT, compiled, make_room, on_cpu


@pytest.fixture(autouse=True)
def no_flags(monkeypatch):
    """As it is shipped: the session's own flags make all programs quicker to compile."""
    monkeypatch.delenv("XLA_FLAGS")


def test_the_result_is_the_same():
    assert SHORT["xla_backend_optimization_level"] > ONCE["xla_backend_optimization_level"]

    def function(x, power):
        return jnp.sum(jnp.tanh(x @ x.T) ** power)

    x = jnp.linspace(-1.0, 1.0, 12).reshape(3, 4)
    plain = float(jax.jit(function, static_argnames="power")(x, 2))
    for options in (ONCE, SHORT):
        program = compiled(options, static_argnames="power")(function)
        np.testing.assert_allclose(program(x, 2), plain, rtol=1e-6)
        assert program.eval_shape(x, 2) == jax.ShapeDtypeStruct((), jnp.float32)
        np.testing.assert_allclose(program.lower(x, 2).compile()(x), plain, rtol=1e-6)


def test_accelerators_get_none_of_them(monkeypatch):
    assert on_cpu(SHORT) == SHORT
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert on_cpu(SHORT) is None


def test_programs_are_forgotten_when_there_are_very_many(monkeypatch):
    cleared = []
    monkeypatch.setattr(jax, "clear_caches", lambda: cleared.append(True))
    make_room()
    assert not cleared
    monkeypatch.setattr(compiling, "MOST_MAPS", 1)
    make_room()
    assert len(cleared) == int(Path("/proc/self/maps").exists())


def test_an_option_that_xla_does_not_know_is_left_out() -> None:
    options = {"xla_backend_optimization_level": 0, "xla_cpu_an_option_of_the_future": True}
    assert on_cpu(options) == {"xla_backend_optimization_level": 0}
    assert compiled(options)(lambda x: x + 1)(1) == 2


def test_what_the_user_set_is_not_changed(monkeypatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=false --xla_backend_optimization_level=3")
    assert on_cpu(SHORT) == {"xla_cpu_use_fusion_emitters": False}
