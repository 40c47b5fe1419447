"""How well programs are compiled for a CPU, where compiling may take longer than running."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import jax

ONCE = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}
"""XLA's options for what runs once: a quarter of the time to compile, three times the time to run."""
SHORT = {"xla_backend_optimization_level": 1, "xla_cpu_use_fusion_emitters": False}
"""For what runs a few hundred times: two thirds of the time to compile, a seventh more to run."""


def on_cpu(options: dict[str, Any]) -> dict[str, Any] | None:
    """These options if a CPU computes; accelerators compile everything alike."""
    return options if jax.default_backend() == "cpu" else None


class Compiled:
    """A jitted function with options for CPUs, which it looks up when it is first called."""

    def __init__(self, function: Callable, options: dict[str, Any], **jit_options: Any):
        self.function, self.options, self.jit_options = function, options, jit_options
        self.__doc__ = function.__doc__

    @cached_property
    def jitted(self) -> Any:
        """The jitted function."""
        return jax.jit(self.function, compiler_options=on_cpu(self.options), **self.jit_options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the function returns."""
        return self.jitted(*args, **kwargs)

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """As that of a jitted function."""
        return self.jitted.lower(*args, **kwargs)


def compiled(options: dict[str, Any], **jit_options: Any) -> Callable[[Callable], Compiled]:
    """A decorator: `jax.jit` with these options of XLA on CPUs."""
    return lambda function: Compiled(function, options, **jit_options)
