"""Whether an inference is as often right as it says."""

import dataclasses
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

BINS = 10
RARE = 1e-4
ENOUGH = 5.0  # expected variance of right answers in a bin, below which the normal law says little


class Bin(NamedTuple):
    """Answers whose confidence lies in [low, high)."""

    low: float
    high: float
    size: int
    confidence: float | None  # mean; none in an empty bin
    accuracy: float | None

    @property
    def gap(self) -> float:
        """Confidence less accuracy."""
        return 0.0 if self.confidence is None or self.accuracy is None else self.confidence - self.accuracy


@dataclass(frozen=True)
class Calibration:
    """How confidence and accuracy agree. `p_value` is that of the gaps in all bins, if confidence were right."""

    bins: tuple[Bin, ...]
    ece: float
    largest_gap: float
    brier: float  # mean squared difference between confidence and being right
    log_loss: float | None  # nats: of the true answer under the whole posterior
    p_value: float | None  # none where no bin holds enough to tell
    count: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**dataclasses.asdict(self), "bins": [one._asdict() for one in self.bins]}

    @staticmethod
    def from_dict(values: dict[str, Any]) -> "Calibration":
        """What `to_dict` wrote."""
        return Calibration(**{**values, "bins": tuple(Bin(**one) for one in values["bins"])})


def calibrate(
    confidence: np.ndarray,
    correct: np.ndarray,
    log_loss: np.ndarray | None = None,
    episode: np.ndarray | None = None,
    bins: int = BINS,
) -> Calibration:
    """Calibration of answers. `episode` says which answers belong together: those of one episode are alike."""
    confidence, right = np.asarray(confidence, np.float64), np.asarray(correct, np.float64)
    which = bin_of(confidence, bins)
    counts = np.bincount(which, minlength=bins)
    sure, hits = (np.bincount(which, weights=values, minlength=bins) for values in (confidence, right))
    rows = tuple(
        Bin(i / bins, (i + 1) / bins, int(n), float(sure[i] / n) if n else None, float(hits[i] / n) if n else None)
        for i, n in enumerate(counts)
    )
    own = np.arange(len(confidence)) if episode is None else episode
    return Calibration(
        rows,
        bin_error(rows),
        max(abs(one.gap) for one in rows),
        float(np.mean((confidence - right) ** 2)) if len(right) else 0.0,
        None if log_loss is None else float(np.mean(log_loss)),
        gap_p_value(confidence, right, which, own),
        len(confidence),
    )


def bin_of(confidence: np.ndarray, bins: int = BINS) -> np.ndarray:
    """Which of equal bins each confidence is in; 1 is in the last."""
    return np.minimum((np.asarray(confidence) * bins).astype(int), bins - 1)


def bin_error(rows: tuple[Bin, ...]) -> float:
    """Expected calibration error: mean over bins of |confidence - accuracy|, weighted by their sizes."""
    return sum(one.size * abs(one.gap) for one in rows) / max(sum(one.size for one in rows), 1)


def calibration_error(confidence: np.ndarray, correct: np.ndarray, bins: int = BINS) -> float:
    """Expected calibration error, alone."""
    which = bin_of(confidence, bins)
    gaps = np.bincount(which, weights=np.asarray(confidence, np.float64) - correct, minlength=bins)
    return float(np.abs(gaps).sum() / max(len(which), 1))


def gap_p_value(confidence: np.ndarray, right: np.ndarray, which: np.ndarray, episode: np.ndarray) -> float | None:
    """How likely gaps as large as these are if every answer is right with the probability that it states.

    Then the sums of (right - confidence) in all bins have mean 0, and a covariance that episodes, which are
    independent, tell: a quadratic form in them is χ² distributed. Bins that are few or all but certain are left out of
    it, unless there are more surprises in them than Poisson's law lets happen once in 10,000 times.
    """
    if len(confidence) == 0:
        return None
    bins = int(which.max()) + 1
    _, owner = np.unique(episode, return_inverse=True)
    _, pair, alike = np.unique(owner * bins + which, return_inverse=True, return_counts=True)
    share = confidence * (1 - confidence) / alike[pair]  # an episode's answers in one bin count as one
    kept = np.bincount(which, weights=share, minlength=bins) >= ENOUGH
    counted = kept[which]
    rest = 1.0 if counted.all() else _surprises(confidence[~counted], right[~counted], owner[~counted])
    if rest < RARE:
        return rest
    return _gaps(right[counted] - confidence[counted], which[counted], owner[counted]) if counted.any() else None


def _gaps(gaps: np.ndarray, which: np.ndarray, owner: np.ndarray) -> float:
    """Of the sums in all bins, with the covariance that episodes tell."""
    from scipy import stats

    _, place = np.unique(which, return_inverse=True)
    sums = np.zeros((int(owner.max()) + 1, int(place.max()) + 1))
    np.add.at(sums, (owner, place), gaps)
    covariance, total = sums.T @ sums, sums.sum(axis=0)
    statistic = float(total @ np.linalg.pinv(covariance, hermitian=True) @ total)
    return float(stats.chi2.sf(statistic, int(np.linalg.matrix_rank(covariance, hermitian=True))))


def _surprises(confidence: np.ndarray, right: np.ndarray, owner: np.ndarray) -> float:
    """Of so many outcomes that were held to be unlikely, by the last answer of each episode."""
    from scipy import stats

    last = np.unique(owner[::-1], return_index=True)[1]
    sure, hit = confidence[::-1][last], right[::-1][last] > 0.5
    surprising = np.where(sure > 0.5, ~hit, hit)
    return float(stats.poisson.sf(surprising.sum() - 1, np.minimum(sure, 1 - sure).sum()))
