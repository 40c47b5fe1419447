"""Options of the XLA compiler on CPUs, where compiling may take longer than running, and its cache on disk."""

import os
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import jax

ONCE = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}
"""XLA's options for programs that run once: a quarter of the compile time, three times the run time."""
SHORT = {"xla_backend_optimization_level": 1, "xla_cpu_use_fusion_emitters": False}
"""For programs that run a few hundred times: two thirds of the compile time, a seventh more run time."""


MOST_MAPS = 25_000  # Linux allows a process 65,530; the next run may need many of them


def make_room() -> None:
    """Drop compiled programs if there are very many: each takes memory maps, and XLA crashes when none are left."""
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > MOST_MAPS:
        jax.clear_caches()


def on_cpu(options: dict[str, Any]) -> dict[str, Any] | None:
    """Those of these options that XLA_FLAGS does not set and this XLA knows on a CPU; None on accelerators."""
    if jax.default_backend() != "cpu":
        return None
    flags = os.environ.get("XLA_FLAGS", "")
    return {name: value for name, value in options.items() if f"--{name}=" not in flags and knows(name, value)}


@cache
def knows(name: str, value: Any) -> bool:
    """Whether this version of XLA takes an option: they come and go, and one that it does not know is an error."""
    try:
        jax.jit(lambda: 0).lower().compile(compiler_options={name: value})
    except jax.errors.JaxRuntimeError as error:
        if "No such compile option" not in str(error):
            raise
        return False
    return True


def memory_of(program: Any) -> int | None:
    """Bytes that a compiled program takes on its device: arguments, results and intermediate values."""
    try:
        sizes = program.memory_analysis()
        needed = sizes.argument_size_in_bytes + sizes.output_size_in_bytes + sizes.temp_size_in_bytes
        return int(needed - sizes.alias_size_in_bytes)
    except (AttributeError, TypeError, NotImplementedError, RuntimeError):  # the backend does not say
        return None


class Compiled:
    """A jitted function with compiler options for CPUs. The backend is looked up at the first call."""

    def __init__(self, function: Callable, options: dict[str, Any], **jit_options: Any):
        self.function, self.options, self.jit_options = function, options, jit_options
        self.__doc__ = function.__doc__

    @cached_property
    def jitted(self) -> Any:
        """The jitted function."""
        return jax.jit(self.function, compiler_options=on_cpu(self.options), **self.jit_options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the jitted function."""
        return self.jitted(*args, **kwargs)

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """`lower` of the jitted function."""
        return self.jitted.lower(*args, **kwargs)

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Output shapes without compiling. `jax.eval_shape` takes no function with options."""
        return self.jitted.eval_shape(*args, **kwargs)


def compiled(options: dict[str, Any], **jit_options: Any) -> Callable[[Callable], Compiled]:
    """A decorator: `jax.jit` with these compiler options on CPUs."""
    return lambda function: Compiled(function, options, **jit_options)


def use_compilation_cache() -> None:
    """Keep compiled programs on disk, so that later starts are fast. A cache that is already set is kept."""
    if jax.config.values["jax_compilation_cache_dir"] is None:
        folder = Path.home() / ".cache" / "icmape" / "jax"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            return  # nowhere to write: compile every time
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 1.0)
