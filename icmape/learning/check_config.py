"""What settings must be, for themselves and with a problem: refused before anything compiles."""

from typing import Any

from icmape.errors import UserError
from icmape.learning.algorithms import PPO, Frozen, PaperTD3, SoftStops, Value
from icmape.learning.config import Config
from icmape.networks.grid import ENCODERS
from icmape.networks.inference_kinds import check_inference
from icmape.play.named_policies import named_policies
from icmape.problem.contract import Problem
from icmape.problem.entry import only


def check(config: Config, problem: Problem) -> None:
    """Refuse what cannot work, before anything compiles."""
    if problem.horizon < 2:
        raise UserError(f"a problem needs at least two rounds; its horizon is {problem.horizon}")
    if not 0 < config.delta < 1:
        raise UserError(f"delta must lie strictly between 0 and 1; given {config.delta}")
    if not all(0 < delta < 1 for delta in config.deltas) or len({config.delta, *config.deltas}) <= len(config.deltas):
        raise UserError(
            f"deltas must be different numbers between 0 and 1, other than delta ({config.delta}); given "
            f"{list(config.deltas)}"
        )
    learned = config.stopping == "learned" and config.cost == "dual" and config.reward == "confidence"
    if config.deltas and not (learned and isinstance(config.algorithm, SoftStops | Value | PaperTD3)):
        raise UserError("deltas need stops that are learned, with a price and the confidence reward: leave them out")
    if not config.seeds or len(set(config.seeds)) != len(config.seeds):
        raise UserError(f"seeds must be one or more different integers; given {list(config.seeds)}")
    if not all(0 <= seed < 2**31 for seed in config.seeds):
        raise UserError(f"seeds must lie in 0..{2**31 - 1}; given {list(config.seeds)}")
    for name, low, high in RANGES:
        value = _at(config, name)
        if value is not None and not low <= value <= high:
            raise UserError(f"{name} must be {_range_in_words(low, high)}; given {value}")
    if config.batch > config.replay:
        raise UserError(f"a batch of {config.batch} episodes does not fit a replay of {config.replay}: raise replay")
    if config.worlds > config.replay:
        raise UserError(f"{config.worlds} worlds per iteration do not fit a replay of {config.replay}: raise replay")
    explorers = config.worlds - config.greedy_worlds
    if isinstance(config.algorithm, SoftStops) and explorers < 1:
        raise UserError(f"greedy_share {config.greedy_share} leaves no drawn episode to learn from: lower it")
    if isinstance(config.algorithm, PPO) and (explorers < 1 or explorers % config.algorithm.minibatches):
        raise UserError(
            f"{explorers} drawn episodes do not split into {config.algorithm.minibatches} minibatches: change worlds, "
            "greedy_share or algorithm.minibatches"
        )
    frozen = config.algorithm.policy if isinstance(config.algorithm, Frozen) else ""
    if (frozen == "uniform" or frozen in named_policies()) and config.stopping == "learned":
        raise UserError(f"a {frozen} policy never stops by itself: set stopping to threshold")
    _check_guide(config)
    _check_plan(config, problem)
    only(config.network.encoder, ENCODERS, "network.encoder")
    check_inference(problem, config.network.inference)
    if config.reward == "environment" and not problem.has_payoff:
        name = type(problem.unwrapped).__name__
        raise UserError(f"{name} has no payoff, so there is no environment reward to learn from")
    if config.greedy_worlds < 1 and not isinstance(config.algorithm, SoftStops):
        raise UserError(
            f"greedy_share {config.greedy_share} of {config.worlds} worlds leaves no greedy episode to steer ζ and to "
            "measure: raise it"
        )


def _check_guide(config: Config) -> None:
    guide = config.guide
    if guide.share > 0 and not guide.policy:
        raise UserError(
            "there is nobody to follow: name a reference or a team's file with --guide.policy, or choose an algorithm "
            "that needs no guide, such as ppo (which sets guide.share to 0)"
        )
    if guide.policy and guide.share == 0:
        raise UserError(f"guide.policy is {guide.policy!r}, but guide.share is 0: with --algorithm guided it is 1")
    if guide.policy and not isinstance(config.algorithm, SoftStops | PaperTD3):
        raise UserError("only actors can follow a guide: choose td3 or ppo, or leave guide.policy empty")


def _check_plan(config: Config, problem: Problem) -> None:
    plan = config.plan
    if plan.iterations > 0 and plan.plans * plan.worlds % plan.updates:
        raise UserError(
            f"{plan.plans} plans of {plan.worlds} worlds do not split into {plan.updates} gradient steps: change "
            "plan.worlds or plan.updates"
        )
    if config.posterior == "exact" and problem.posterior != "exact":
        raise UserError(
            f"this {type(problem).__name__} has no exact posterior to learn from (it says {problem.posterior!r}): set "
            "posterior to network"
        )
    explorers = config.worlds - config.greedy_worlds
    if isinstance(config.algorithm, PPO) and explorers % config.updates:
        raise UserError(
            f"{explorers} drawn episodes do not split into {config.updates} gradient steps of the inference network: "
            "change worlds, greedy_share or updates"
        )


TINY, HUGE = 1e-12, 1e12
RANGES: tuple[tuple[str, float, float], ...] = (
    *((name, 1, HUGE) for name in ("members", "iterations", "worlds", "updates", "batch", "replay", "chunk")),
    ("rounds", 2, HUGE),
    *((name, 1, HUGE) for name in ("validate_every", "validation_worlds", "network.width", "algorithm.actor_every")),
    *((name, 0, HUGE) for name in ("warmup", "checkpoint_minutes", "dual.rate", "dual.limit", "dual.start")),
    ("algorithm.stop_consistency", 0, HUGE),
    *((name, 0, 1) for name in ("greedy_share", "rate_end", "dual.margin", "guide.share")),
    ("polish", 0, 0.9),
    *((f"algorithm.{name}", 0, 1) for name in ("trace", "noise", "noise_end", "keep_stop", "truth_share", "log_share")),
    *((name, 1, HUGE) for name in ("algorithm.epochs", "algorithm.minibatches")),
    *((name, TINY, HUGE) for name in ("actor_rate", "critic_rate", "inference_rate", "clip", "minutes")),
    *((f"algorithm.{name}", TINY, HUGE) for name in ("temperature", "clip", "entropy", "entropy_end")),
    ("algorithm.optimism", -HUGE, HUGE),
    *((f"algorithm.{name}", TINY, 1) for name in ("polyak", "stop_soft")),
    *((f"algorithm.{name}", 0, 1) for name in ("behind", "least_say")),
    *((f"algorithm.{name}", 0, HUGE) for name in ("stop_temperature", "early_ends", "balance")),
    *((f"plan.{name}", 1, HUGE) for name in ("plans", "worlds", "updates", "rounds")),
    *((f"plan.{name}", 0, HUGE) for name in ("iterations", "entropy", "window")),
    ("plan.rate", TINY, HUGE),
    ("plan.follow", 0, 1),
    ("guide.until", TINY, 1),
    ("network.stop_bias", -HUGE, HUGE),
)
"""Settings and the ends of their ranges; what is not a number lies in none."""


def _at(config: Any, name: str) -> Any:
    """A setting by its dotted name; none where this algorithm has no such setting."""
    head, _, rest = name.partition(".")
    value = getattr(config, head, None)
    return _at(value, rest) if rest else value


def _range_in_words(low: float | int, high: float | int) -> str:
    if high < HUGE and low == 0 and high != 1:
        return f"between 0 and {high:g}"
    if high == 1:
        return "between 0 and 1" if low == 0 else "above 0 and at most 1"
    return {TINY: "positive and finite", -HUGE: "finite"}.get(low, f"at least {low:g} and finite")
