"""Calibration without bins: the isotonic fit of right answers to confidence, and how far chance would take it.

The fit is that of Dimitriadis, Gneiting and Jordan (2021), "Stable reliability diagrams for probabilistic classifiers":
the step function, never falling, that is nearest to the answers. The band holds 95 % of the fits to answers that are
right exactly as often as their confidence says.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from icmape.evaluation.calibration import Calibration
from icmape.plot.charts import Axis, Curves, Panel, Series, method_strokes

RESAMPLED = 200  # fits of the band
POINTS = 80  # of the band
LEVEL = 0.95
EQUAL = 1e-9


class Fit(NamedTuple):
    """The step function by its corners, and the band at some of the confidences."""

    confidence: Float[np.ndarray, corners]
    share: Float[np.ndarray, corners]
    band: Float[np.ndarray, "points 3"]  # confidence, low, high
    usual: float  # share of the band's points at which 95 % of honest teams are outside at most


def isotonic(confidence: Float[np.ndarray, answers], right: np.ndarray) -> Float[np.ndarray, answers]:
    """Shares of right answers that never fall with the confidence, nearest to the answers; sorted by confidence."""
    from scipy.optimize import isotonic_regression

    values, where, sizes = np.unique(confidence, return_inverse=True, return_counts=True)
    means = np.bincount(where, weights=np.asarray(right, float)) / sizes
    fitted: np.ndarray = isotonic_regression(means, weights=sizes).x
    return np.repeat(fitted, sizes) if len(values) else np.zeros(0)


def fit(confidence: Float[np.ndarray, answers], right: Bool[np.ndarray, answers], seed: int = 0) -> Fit:
    """The fit and its band. The band's draws depend on the seed alone."""
    order = np.argsort(confidence, kind="stable")
    sure, hit = np.asarray(confidence, float)[order], np.asarray(right)[order]
    share = isotonic(sure, hit)
    corners = np.flatnonzero(np.diff(share, prepend=-1.0, append=2.0)[: len(share)])
    corners = np.unique([*corners, len(sure) - 1])
    chance = np.random.default_rng(seed)
    shown = np.unique(np.linspace(0, len(sure) - 1, POINTS).astype(int))
    fits = np.stack([isotonic(sure, chance.uniform(size=len(sure)) < sure)[shown] for _ in range(RESAMPLED)])
    low, high = np.quantile(fits, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    left = np.mean((fits < low - EQUAL) | (fits > high + EQUAL), axis=1)
    usual = float(np.quantile(left, LEVEL))
    return Fit(sure[corners], share[corners], np.stack([sure[shown], low, high], axis=1), usual)


def fit_of_bins(calibration: Calibration) -> Fit:
    """The fit to bins, where the answers themselves are not stored: each answer has the mean confidence of its bin."""
    bins = [one for one in calibration.bins if one.confidence is not None and one.accuracy is not None]
    sizes = [one.size for one in bins]
    hits = [round(one.size * (one.accuracy or 0.0)) for one in bins]
    right = np.concatenate([np.arange(size) < hit for size, hit in zip(sizes, hits, strict=True)])
    return fit(np.repeat([one.confidence or 0.0 for one in bins], sizes), right)


def outside(found: Fit) -> tuple[float, float]:
    """The shares of the band's points at which the fit lies below it, and above it."""
    at = np.searchsorted(found.confidence, found.band[:, 0], side="right") - 1
    share = found.share[at]
    return float(np.mean(share < found.band[:, 1] - EQUAL)), float(np.mean(share > found.band[:, 2] + EQUAL))


def honest(found: Fit) -> bool:
    """Whether the fit leaves the band no more than that of 95 in 100 teams that are right as often as they say."""
    return sum(outside(found)) <= found.usual


def honesty_words(found: Fit, surplus: float = 0.0) -> str:
    """Whether the fit stays in the band, and on which side it leaves it.

    `surplus` is by how much the team is too sure on average, if that is more than noise.
    """
    below, above = outside(found)
    if not honest(found):
        if below > above:
            return "Where the steps lie below the shaded band, the team is surer than it should be."
        return "Where the steps lie above the shaded band, the team is right more often than it says."
    said = "The team is right about as often as it says"
    if surplus:
        kind = "too sure" if surplus > 0 else "right more often than it says"
        said = f"On average over all answers the team is {kind}; no confidence stands out"
    if below + above == 0:
        return f"{said}: the steps stay in the shaded band."
    return (
        f"{said}: the steps leave the shaded band at {100 * (below + above):.0f}\u00a0% of the answers, and 95 in 100 "
        f"teams that are right as often as they say do so at up to {100 * found.usual:.0f}\u00a0%."
    )


def honesty_chart(title: str, label: str, found: Fit, below: str, mark: str = "") -> Curves:
    """The fit as steps, the band, and the line of a team that is right as often as it says."""
    ((colour, _),) = method_strokes([label])
    left = _tenth(found.confidence[0])
    bottom = _tenth(min(left, found.band[:, 1].min(), found.share[0]))
    series = [
        Series(
            "right as often as it says; shaded: 95 % of such teams",
            [(left, left), (1.0, 1.0)],
            "var(--ink)",
            dash="5 4",
            band=[(float(x), float(a), float(b)) for x, a, b in found.band],
        ),
        Series(label, list(zip(found.confidence.tolist(), found.share.tolist(), strict=True)), colour, shape="step"),
    ]
    x = Axis("how sure the team says it is when it stops", left, 1.0, percent=True)
    y = Axis("share of right answers", bottom, 1.0, percent=True)
    return Curves(title, below, mark, [Panel(x, y, series)])


def _tenth(value: float) -> float:
    """The tenth below a share, and at most 0.9."""
    return min(0.9, np.floor(10 * float(value)).item() / 10)
