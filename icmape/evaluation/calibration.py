"""Calibration: agreement of confidence and accuracy, with a test."""

import dataclasses
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

BINS = 10
RARE = 1e-4
ENOUGH = 5.0  # expected variance of right answers in a bin, below which the normal approximation is poor
ENOUGH_EPISODES = 50.0  # limit if the variance is estimated from episodes


class Bin(NamedTuple):
    """Answers whose confidence lies in [low, high)."""

    low: float
    high: float
    size: int
    confidence: float | None  # mean; None in an empty bin
    accuracy: float | None
    error: float | None = None  # standard error of the accuracy, clustered by episode

    @property
    def gap(self) -> float:
        """Confidence minus accuracy."""
        return 0.0 if self.confidence is None or self.accuracy is None else self.confidence - self.accuracy


@dataclass(frozen=True)
class Calibration:
    """Agreement of confidence and accuracy. `p_value` tests the gaps in all bins against perfect calibration."""

    bins: tuple[Bin, ...]
    ece: float
    largest_gap: float
    brier: float  # mean squared difference between confidence and correctness
    log_loss: float | None  # nats: of the true answer under the whole posterior
    p_value: float | None  # None if no bin has enough data
    count: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**dataclasses.asdict(self), "bins": [row._asdict() for row in self.bins]}

    @staticmethod
    def from_dict(values: dict[str, Any]) -> "Calibration":
        """The inverse of `to_dict`."""
        return Calibration(**{**values, "bins": tuple(Bin(**row) for row in values["bins"])})


def calibrate(
    confidence: np.ndarray,
    correct: np.ndarray,
    log_loss: np.ndarray | None = None,
    episode: np.ndarray | None = None,
    bins: int = BINS,
) -> Calibration:
    """Calibration of answers. `episode` is the episode of each answer, as clusters of dependent answers."""
    confidence, right = np.asarray(confidence, np.float64), np.asarray(correct, np.float64)
    which = bin_of(confidence, bins)
    counts = np.bincount(which, minlength=bins)
    sure, hits = (np.bincount(which, weights=values, minlength=bins) for values in (confidence, right))
    errors = _errors(right, which, hits / np.maximum(counts, 1), episode)
    rows = tuple(
        Bin(i / bins, (i + 1) / bins, int(n), *((sure[i] / n, hits[i] / n, errors[i] / n) if n else (None, None)))
        for i, n in enumerate(counts.tolist())
    )
    return Calibration(
        rows,
        bin_error(rows),
        max(abs(row.gap) for row in rows),
        float(np.mean((confidence - right) ** 2)) if len(right) else 0.0,
        None if log_loss is None else float(np.mean(log_loss)),
        gap_p_value(confidence, right, which, episode),
        len(confidence),
    )


def _errors(right: np.ndarray, which: np.ndarray, share: np.ndarray, episode: np.ndarray | None) -> np.ndarray:
    """Standard errors of the numbers of right answers in all bins."""
    owner = np.arange(len(which)) if episode is None else np.unique(episode, return_inverse=True)[1]
    pair, place = np.unique(owner * len(share) + which, return_inverse=True)
    sums = np.bincount(place, weights=right - share[which])
    return np.sqrt(np.bincount(pair % len(share), weights=sums**2, minlength=len(share)))


def bin_of(confidence: np.ndarray, bins: int = BINS) -> np.ndarray:
    """The index of the bin of each confidence, among bins of equal width."""
    return np.minimum((np.asarray(confidence) * bins).astype(int), bins - 1)


def bin_error(rows: tuple[Bin, ...]) -> float:
    """Expected calibration error: mean over bins of |confidence - accuracy|, weighted by their sizes."""
    return sum(row.size * abs(row.gap) for row in rows) / max(sum(row.size for row in rows), 1)


def calibration_error(confidence: np.ndarray, correct: np.ndarray, bins: int = BINS) -> float:
    """Expected calibration error (ECE)."""
    which = bin_of(confidence, bins)
    gaps = np.bincount(which, weights=np.asarray(confidence, np.float64) - correct, minlength=bins)
    return float(np.abs(gaps).sum() / max(len(which), 1))


def gap_p_value(
    confidence: np.ndarray, right: np.ndarray, which: np.ndarray, episode: np.ndarray | None = None
) -> float | None:
    """The p-value of the gaps under perfect calibration.

    The sums of (right - confidence) in all bins then have mean 0, and a quadratic form in them is χ² distributed. Their
    covariance is known for independent answers, and otherwise estimated from episodes. Bins with too little variance
    are excluded, unless their unlikely outcomes are too many by a Poisson test at level 1e-4.
    """
    if len(confidence) == 0:
        return None
    bins = int(which.max()) + 1
    owner = np.arange(len(which)) if episode is None else np.unique(episode, return_inverse=True)[1]
    _, pair, alike = np.unique(owner * bins + which, return_inverse=True, return_counts=True)
    share = confidence * (1 - confidence) / alike[pair]  # the answers of an episode in one bin count as one
    doubt = np.bincount(which, weights=share, minlength=bins)
    counted = (doubt >= (ENOUGH if episode is None else ENOUGH_EPISODES))[which]
    p_excluded = 1.0 if counted.all() else _surprises(confidence[~counted], right[~counted], owner[~counted])
    if p_excluded < RARE:
        return p_excluded
    if not counted.any():
        return None
    sums = _sums((right - confidence)[counted], which[counted], owner[counted])
    variances = doubt[np.unique(which[counted])]
    return _chi_square(sums.sum(axis=0), np.diag(variances) if episode is None else sums.T @ sums)


def _sums(gaps: np.ndarray, which: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """Sums of gaps by episode and non-empty bin."""
    _, place = np.unique(which, return_inverse=True)
    sums = np.zeros((int(owner.max()) + 1, int(place.max()) + 1))
    np.add.at(sums, (owner, place), gaps)
    return sums


def _chi_square(total: np.ndarray, covariance: np.ndarray) -> float:
    from scipy import stats

    statistic = float(total @ np.linalg.pinv(covariance, hermitian=True) @ total)
    return float(stats.chi2.sf(statistic, int(np.linalg.matrix_rank(covariance, hermitian=True))))


def _surprises(confidence: np.ndarray, right: np.ndarray, owner: np.ndarray) -> float:
    """The p-value of the number of unlikely outcomes, by the first answer of each episode.

    The first one, because the selection of the last answer depends on later data.
    """
    from scipy import stats

    first = np.unique(owner, return_index=True)[1]
    sure, hit = confidence[first], right[first] > 0.5
    surprising = np.where(sure > 0.5, ~hit, hit)
    return float(stats.poisson.sf(surprising.sum() - 1, np.minimum(sure, 1 - sure).sum()))
