"""How well programs are compiled for a CPU, where compiling may take longer than running."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import jax

ONCE = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}
"""XLA's options for what runs once: a quarter of the time to compile, three times the time to run."""
SHORT = {"xla_backend_optimization_level": 1, "xla_cpu_use_fusion_emitters": False}
"""For what runs a few hundred times: two thirds of the time to compile, a seventh more to run."""


MOST_MAPS = 25_000  # of the 65,530 that Linux allows a process, as one run may need many


def make_room() -> None:
    """Forget compiled programs if there are very many: each takes memory maps, and XLA dies of having none left."""
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > MOST_MAPS:
        jax.clear_caches()


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

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The same: nothing is compiled. `jax.eval_shape` takes no function with options."""
        return self.jitted.eval_shape(*args, **kwargs)


def compiled(options: dict[str, Any], **jit_options: Any) -> Callable[[Callable], Compiled]:
    """A decorator: `jax.jit` with these options of XLA on CPUs."""
    return lambda function: Compiled(function, options, **jit_options)


def use_compilation_cache() -> None:
    """Keep compiled programs on disk, so that the second start is fast. Respects a cache that is already set."""
    if jax.config.values["jax_compilation_cache_dir"] is None:
        folder = Path.home() / ".cache" / "icmape" / "jax"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            return  # nowhere to write: compile every time
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 1.0)
