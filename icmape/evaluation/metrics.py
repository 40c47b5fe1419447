"""Metrics of a team on fresh worlds, with their uncertainty."""

import dataclasses
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from icmape.compiling import use_compilation_cache
from icmape.errors import UserError
from icmape.evaluation.intervals import wilson_interval
from icmape.evaluation.tally import Tally
from icmape.play.check_policy import check_own
from icmape.play.episodes import Episodes, check_seed, play_parts, sample_truths
from icmape.play.team import Team
from icmape.problem import Problem
from icmape.problem.spec import describe

CONSTANT_WORLDS = 20_000  # at most, for choosing the constant answer, and as many others for judging it
FEWEST_WORLDS = 1_000  # the same, at least


@dataclass(frozen=True)
class Evaluation:
    """Metrics of a team on fresh worlds. τ includes the stop round; rounds and readings count data."""

    accuracy: float
    accuracy_low: float
    accuracy_high: float
    tau: float
    tau_error: float
    rounds: float
    readings: float
    forced: float
    ece: float
    confidence: float
    log_loss: float
    no_data_accuracy: float
    exact: str
    exact_accuracy: float | None
    exact_ece: float | None
    exact_log_loss: float | None
    episodes: int
    seed: int
    delta: float
    exact_episodes: int | None = None  # number judged by the exact posterior, from the first; None: all
    own_log_loss: float | None = None  # of the team, on these episodes

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return dataclasses.asdict(self)

    @property
    def beats_no_data(self) -> bool:
        """Whether the interval of the accuracy lies above the best constant answer, which needs no data."""
        return self.accuracy_low > self.no_data_accuracy

    def _which_episodes(self) -> str:
        return (
            "the same episodes"
            if self.exact_episodes in (None, self.episodes)
            else f"the first {self.exact_episodes:,}"
        )

    def _beside(self) -> str:
        return "" if self.exact_episodes in (None, self.episodes) else f" (the team's {self.own_log_loss:.4f})"

    def __str__(self) -> str:
        half = 1.96 * self.tau_error
        lines = [
            f"accuracy {self.accuracy:.4f}  [{self.accuracy_low:.4f}, {self.accuracy_high:.4f}]   "
            f"right answers; target {1 - self.delta:g}",
            f"τ        {self.tau:.3f}  [{self.tau - half:.3f}, {self.tau + half:.3f}]   rounds, the stop included; "
            f"{self.rounds:.3f} of readings, {self.readings:.2f} readings in all; {self.forced:.2%} ended by the "
            "horizon",
            f"ECE      {self.ece:.4f}   calibration error and log loss ({self.log_loss:.4f}) of the answers after all "
            f"rounds; confidence at the stop {self.confidence:.4f}",
        ]
        if self.exact_accuracy is not None and self.exact_ece is not None and self.exact_log_loss is not None:
            lines.append(
                f"{self.exact} posterior on {self._which_episodes()}: accuracy {self.exact_accuracy:.4f}, "
                f"ECE {self.exact_ece:.4f}, log loss {self.exact_log_loss:.4f}{self._beside()}"
            )
        verdict = "beaten" if self.beats_no_data else "NOT BEATEN"
        lines.append(f"best answer without data: {self.no_data_accuracy:.4f} at τ = 1 ({verdict})")
        return "\n".join([*lines, f"{self.episodes:,} worlds, seed {self.seed}; in brackets 95 % intervals"])


def evaluate(
    team: Team,
    *,
    episodes: int = 10_000,
    seed: int = 0,
    tick: Callable[[int], None] | None = None,
    exact: int | None = None,
) -> Evaluation:
    """Play greedy episodes on fresh worlds and summarise them.

    `exact` is the number of episodes that the exact posterior judges (default: all, or 1,000 if that is slow).
    """
    if episodes < 1:
        raise UserError(f"an evaluation needs at least one episode; given {episodes}")
    check_seed(seed)
    if exact is not None and exact < 0:
        raise UserError(f"exact is a number of episodes; given {exact}")
    check_own(team)
    use_compilation_cache()
    tally = Tally(team.problem.horizon)
    for part in play_parts(team, episodes, seed, tick, exact):
        tally.add(part)
    return _metrics(team, tally, seed)


def summarise(team: Team, episodes: Episodes, seed: int) -> Evaluation:
    """The metrics of played episodes."""
    return _metrics(team, Tally(team.problem.horizon).add(episodes), seed)


def _metrics(team: Team, tally: Tally, seed: int) -> Evaluation:
    low, high = wilson_interval(tally.team.right, tally.episodes)
    rounds = tally.tau - 1
    exact = tally.exact
    return Evaluation(
        accuracy=tally.team.accuracy,
        accuracy_low=low,
        accuracy_high=high,
        tau=tally.tau,
        tau_error=tally.tau_deviation / math.sqrt(tally.episodes),
        rounds=rounds,
        readings=team.problem.agents * (rounds * team.problem.readings + team.problem.first_readings),
        forced=tally.forced,
        ece=tally.team.ece,
        confidence=tally.team.confidence / tally.episodes,
        log_loss=tally.team.mean_log_loss,
        no_data_accuracy=no_data_accuracy(team.problem, seed, constant_worlds(tally.episodes)),
        exact=team.problem.posterior,
        exact_accuracy=exact.accuracy if exact else None,
        exact_ece=exact.ece if exact else None,
        exact_log_loss=exact.mean_log_loss if exact else None,
        episodes=tally.episodes,
        seed=seed,
        delta=team.delta,
        exact_episodes=exact.episodes if exact else 0,
        own_log_loss=tally.own.mean_log_loss if exact else None,
    )


def constant_worlds(episodes: int) -> int:
    """Worlds for the constant answer that is compared with so many episodes: a world may take as long as an episode."""
    return min(max(2 * episodes, FEWEST_WORLDS), CONSTANT_WORLDS)


def no_data_accuracy(problem: Problem, seed: int, worlds: int) -> float:
    """The accuracy of the best constant answer, chosen on so many worlds and judged on as many others; cached."""
    cache_key = json.dumps([describe(problem), seed, worlds])
    if cache_key not in _CONSTANTS:
        _CONSTANTS[cache_key] = _constant_accuracy(problem, seed, worlds)
    return _CONSTANTS[cache_key]


_CONSTANTS: dict[str, float] = {}


def _constant_accuracy(problem: Problem, seed: int, worlds: int) -> float:
    truths = sample_truths(problem, 2 * worlds, seed)
    space = problem.hypotheses
    constant = space.best_constant(truths[:worlds])
    right = jax.vmap(lambda truth: space.correct(constant, truth))(truths[worlds:])
    return float(np.asarray(right).mean())
