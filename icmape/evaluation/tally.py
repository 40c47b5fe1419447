"""Sums over played episodes, from which metrics follow. Sums of batches add up, so nothing else has to be kept."""

import math
from dataclasses import dataclass, field

import numpy as np

from icmape.evaluation.calibration import BINS, bin_of
from icmape.play.episodes import Episodes, Judged


@dataclass
class Answers:
    """Sums over the answers of one inference: in all rounds, and at the stops of its episodes."""

    episodes: int = 0
    answers: int = 0  # of all rounds
    right: int = 0  # at the stop
    confidence: float = 0.0  # at the stop
    log_loss: float = 0.0  # in all rounds
    gaps: np.ndarray = field(default_factory=lambda: np.zeros(BINS))  # confidence less right answers, by confidence

    def add(self, episodes: Episodes, judged: Judged) -> None:
        """Add episodes, of which an inference judged the first ones."""
        count = len(judged.correct)
        exists = episodes.exists[:count]
        sure = np.asarray(judged.confidence[exists], np.float64)
        self.episodes += count
        self.answers += len(sure)
        self.right += int(episodes.at_stop(judged.correct).sum())
        self.confidence += float(episodes.at_stop(judged.confidence).sum(dtype=np.float64))
        self.log_loss += float(judged.log_loss[exists].sum(dtype=np.float64))
        self.gaps += np.bincount(bin_of(sure), weights=sure - judged.correct[exists], minlength=BINS)

    @property
    def accuracy(self) -> float:
        """The fraction of right answers at the stop."""
        return self.right / self.episodes

    @property
    def ece(self) -> float:
        """Expected calibration error over all rounds."""
        return float(np.abs(self.gaps).sum() / max(self.answers, 1))

    @property
    def mean_log_loss(self) -> float:
        """Nats per answer, over all rounds."""
        return self.log_loss / self.answers


class Tally:
    """Sums over episodes of one team."""

    def __init__(self, horizon: int):
        self.stops = np.zeros(horizon, np.int64)  # episodes that stopped in each round
        self.team = Answers()
        self.exact: Answers | None = None
        self.own = Answers()  # of the team, on the episodes that the exact posterior judged

    def add(self, episodes: Episodes) -> "Tally":
        """Add episodes. Those that the exact posterior judged come first."""
        self.stops += np.bincount(np.asarray(episodes.played.stop), minlength=len(self.stops))
        self.team.add(episodes, episodes.team)
        if episodes.exact is not None:
            judged = len(episodes.exact.correct)
            self.exact = self.exact or Answers()
            self.exact.add(episodes, episodes.exact)
            self.own.add(episodes, Judged(*(column[:judged] for column in episodes.team)))
        return self

    @property
    def episodes(self) -> int:
        """Number of episodes."""
        return self.team.episodes

    @property
    def tau(self) -> float:
        """Mean number of rounds, including the stop."""
        return float(self.stops @ np.arange(1, len(self.stops) + 1)) / self.episodes

    @property
    def tau_deviation(self) -> float:
        """Standard deviation of the number of rounds."""
        away = np.arange(1, len(self.stops) + 1) - self.tau
        return math.sqrt(float(self.stops @ away**2) / self.episodes)

    @property
    def forced(self) -> float:
        """The fraction of episodes that the horizon ended."""
        return float(self.stops[-1]) / self.episodes
