"""Kernels for another region: by maximum likelihood, or for a given posterior variance."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from icmape.errors import UserError
from icmape.zoo.hotspot.fields import FieldModel
from icmape.zoo.hotspot.history import History
from icmape.zoo.hotspot.hotspot import Hotspot
from icmape.zoo.hotspot.statistics import FIELDS, average_variances, rich_years

STARTS = (1.0, 3.0, 9.0)  # lengths in cells: the likelihood may have several maxima, the best of these decides
DIGITS = 4  # of what is chosen: fewer would miss a target
BOUNDS = {"length": (0.1, 100.0), "variance": (1e-4, 100.0), "ratio": (1e-3, 100.0)}
AT_BOUND = 1.01  # factor within which a value counts as at the bound


class Kernel(NamedTuple):
    """A Matérn-3/2 field with noisy readings, in cells and in log(1 + concentration)."""

    length: float
    variance: float
    ratio: float  # of the noise's variance to the field's

    @property
    def noise(self) -> float:
        """Variance of a reading around the field."""
        return self.ratio * self.variance

    @property
    def bounded(self) -> list[str]:
        """Parameters at a bound of the search."""
        inside = {name: low * AT_BOUND < getattr(self, name) < high / AT_BOUND for name, (low, high) in BOUNDS.items()}
        return [name for name, is_inside in inside.items() if not is_inside]

    def rounded(self) -> "Kernel":
        """As it is written down: length, variance and noise with a few digits."""
        length, variance, noise = (float(f"{value:.{DIGITS}g}") for value in (self.length, self.variance, self.noise))
        return Kernel(length, variance, noise / variance)


class Fitted(NamedTuple):
    """A kernel, and the mean log-density of a reading."""

    kernel: Kernel
    likelihood: float


class Search(NamedTuple):
    """Settings of the choice of a kernel."""

    readings: int = 100  # of a subset; as many as a field is fitted to
    subsets: int = 10  # of every year
    seed: int = 0
    length: float | None = None  # held fixed
    ratio: float | None = None  # the same
    target: float | None = None  # average posterior variance


class Choice(NamedTuple):
    """A kernel for a region, and its posterior variances."""

    search: Search
    likely: Fitted
    kernel: Kernel  # rounded
    learned: tuple[int, ...]  # years with readings for the subsets
    variances: dict[int, float]  # average posterior variance, by year with readings for a field

    @property
    def variance(self) -> float:
        """Average posterior variance of the years."""
        return float(np.mean(list(self.variances.values())))


class Subsets(NamedTuple):
    """Readings of several draws: places in cells, values in log(1 + concentration)."""

    places: Float[Array, "subsets readings 2"]
    values: Float[Array, "subsets readings"]


def choose_kernel(problem: Hotspot, years: Sequence[int], search: Search = Search(), fields: int = FIELDS) -> Choice:
    """The most likely kernel of these years' readings, scaled if there is a target variance."""
    history = problem.fields.history
    learned, field_years = (_with(history, years, size) for size in (search.readings, problem.fit))
    subsets = draw_subsets(history, learned, search.readings, search.subsets, search.seed)
    likely = most_likely(subsets, search.length, search.ratio)
    kernel = likely.kernel
    if search.target is not None:
        kernel = match_variance(problem, kernel, search.target, field_years, fields)
    kernel = kernel.rounded()
    return Choice(search, likely, kernel, tuple(learned), kernel_variances(problem, kernel, field_years, fields))


def _with(history: History, years: Sequence[int], size: int) -> list[int]:
    """The years with at least `size` readings."""
    enough = [year for year in years if year in rich_years(history, size)]
    if not enough:
        counts = ", ".join(f"{year} ({int(n):,})" for year, n in zip(history.years, history.count, strict=True))
        raise UserError(f"none of the chosen years has {size} readings; there are {counts}. Choose others")
    return enough


def draw_subsets(history: History, years: Sequence[int], size: int, subsets: int, seed: int) -> Subsets:
    """Some subsets of every year's readings, none of them twice in a subset."""
    chance = np.random.default_rng([0xF17, seed])
    drawn = []
    for year in years:
        stations, values = history.of_year(year)
        for _ in range(subsets):
            rows = chance.choice(len(values), size, replace=False)
            drawn.append((np.asarray(history.places)[stations[rows]], values[rows]))
    places, values = (np.stack(parts) for parts in zip(*drawn, strict=True))
    return Subsets(jnp.asarray(places), jnp.asarray(values))


def log_likelihood(
    length: Float[Array, ""], variance: Float[Array, ""], ratio: Float[Array, ""], subsets: Subsets
) -> Float[Array, ""]:
    """Mean log-density of a reading, each subset taken together and around its own mean, as fields are fitted."""
    try:
        from tinygp import GaussianProcess, kernels
    except ImportError as error:
        raise UserError("fitting a kernel needs tinygp: pip install 'icmape[hotspot]'") from error

    kernel = variance * kernels.Matern32(scale=length, distance=kernels.distance.L2Distance())

    def of_subset(places: Float[Array, "readings 2"], values: Float[Array, "readings"]) -> Float[Array, ""]:
        noise = jnp.full(values.shape, ratio * variance)
        return GaussianProcess(kernel, places, diag=noise, mean=jnp.mean(values)).log_probability(values)

    return jnp.sum(jax.vmap(of_subset)(*subsets)) / subsets.values.size


def most_likely(subsets: Subsets, length: float | None = None, ratio: float | None = None) -> Fitted:
    """The kernel under which the readings are most likely; length and noise-to-signal ratio may be held fixed."""
    pinned = {name: value for name, value in (("length", length), ("ratio", ratio)) if value is not None}
    for name, value in pinned.items():
        if not value > 0:
            raise UserError(f"{name} must be above 0; given {value:g}")
    free = [name for name in Kernel._fields if name not in pinned]
    fixed = {name: jnp.float32(value) for name, value in pinned.items()}

    @jax.jit
    @jax.value_and_grad
    def loss(logs: Float[Array, "free"]) -> Float[Array, ""]:
        chosen = {name: jnp.exp(logs[at]) for at, name in enumerate(free)}
        return -log_likelihood(**fixed, **chosen, subsets=subsets)

    spread = max(float(jnp.var(subsets.values)), BOUNDS["variance"][0])
    lengths = STARTS if length is None else (length,)
    guesses = [{"length": guess, "variance": spread, "ratio": share} for guess in lengths for share in (0.1, 0.5)]
    starts = [np.log([guess[name] for name in free]) for guess in guesses]
    start = min(starts, key=lambda logs: float(loss(jnp.asarray(logs, jnp.float32))[0]))
    logs, lowest = _descend(loss, start, free)
    chosen = dict(zip(free, map(float, np.exp(logs)), strict=True))
    return Fitted(Kernel(**pinned, **chosen), -lowest)


def _descend(
    loss: Callable[[Array], tuple[Array, Array]], start: Float[np.ndarray, "free"], names: Sequence[str]
) -> tuple[Float[np.ndarray, "free"], float]:
    """Quasi-Newton steps, within bounds."""
    from scipy.optimize import minimize

    def in_doubles(logs: Float[np.ndarray, "free"]) -> tuple[float, np.ndarray]:
        value, slope = loss(jnp.asarray(logs, jnp.float32))
        return float(value), np.asarray(slope, float)

    bounds: Any = [tuple(np.log(BOUNDS[name])) for name in names]
    # the loss is computed in single precision: smaller steps than these are noise
    end = minimize(in_doubles, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-6, "gtol": 1e-4})
    if not np.isfinite(end.fun):
        raise UserError("the likelihood of these readings is no number: are there values that `data check` would drop?")
    return end.x, float(end.fun)


def match_variance(
    problem: Hotspot, kernel: Kernel, target: float, years: Sequence[int], fields: int = FIELDS
) -> Kernel:
    """The kernel of the same length and noise-to-signal ratio with this average posterior variance.

    With these two fixed, a posterior variance is proportional to the field's variance, and the posterior mean does not
    depend on it: fields keep their shapes, and only how well they are known changes.
    """
    if not target > 0:
        raise UserError(f"the target of the variance must be above 0; given {target:g}")
    unit = kernel._replace(variance=1.0)
    per_unit = float(np.mean(list(kernel_variances(problem, unit, years, fields).values())))
    return kernel._replace(variance=target / per_unit)


def kernel_variances(problem: Hotspot, kernel: Kernel, years: Sequence[int], fields: int = FIELDS) -> dict[int, float]:
    """Average posterior variance over a problem's valid cells by year, with another kernel."""
    middles = jnp.asarray(problem.grid.middles(problem.cells), jnp.float32)
    model = FieldModel(problem.fields.history, middles, kernel.length, kernel.variance, kernel.noise)
    return average_variances(model, years, problem.fit, fields)
