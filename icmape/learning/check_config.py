"""Validation of settings, alone and together with a problem, before anything is compiled."""

from typing import Any

from icmape.errors import UserError, known_name
from icmape.learning.algorithms import PPO, Frozen, PaperTD3, SoftStops, Value
from icmape.learning.check_memory import check_memory
from icmape.learning.config import Config
from icmape.learning.mixing import MIXINGS
from icmape.networks import check_inference, encoder_named
from icmape.play.named_policies import named_policies
from icmape.problem import Problem


def check(config: Config, problem: Problem) -> None:
    """Raise `UserError` for settings that cannot work."""
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
    if config.batch_size > config.buffer_size:
        raise UserError(
            f"a batch of {config.batch_size} episodes does not fit a buffer_size of {config.buffer_size}: raise it"
        )
    if config.num_envs > config.buffer_size:
        raise UserError(
            f"{config.num_envs} episodes an iteration do not fit a buffer_size of {config.buffer_size}: raise it"
        )
    explorers = config.num_envs - config.greedy_worlds
    if isinstance(config.algorithm, SoftStops) and explorers < 1:
        raise UserError(f"greedy_fraction {config.greedy_fraction} leaves no drawn episode to learn from: lower it")
    if isinstance(config.algorithm, PPO) and (explorers < 1 or explorers % config.algorithm.num_minibatches):
        raise UserError(
            f"{explorers} drawn episodes do not split into {config.algorithm.num_minibatches} minibatches: change "
            "num_envs, greedy_fraction or algorithm.num_minibatches"
        )
    frozen = config.algorithm.policy if isinstance(config.algorithm, Frozen) else ""
    if (frozen == "uniform" or frozen in named_policies()) and config.stopping == "learned":
        raise UserError(f"a {frozen} policy never stops by itself: set stopping to threshold")
    if not problem.stops_at_once and isinstance(config.algorithm, Value | PaperTD3):
        raise UserError("this algorithm learns from stops that end the episode at once: leave out late, or choose ppo")
    _check_teacher(config)
    _check_plan(config, problem)
    encoder_named(config.network.encoder)
    if isinstance(config.algorithm, Value):
        known_name(config.algorithm.mixing, MIXINGS, "algorithm.mixing")
    check_inference(problem, config.network.inference)
    if config.reward == "environment" and not problem.has_payoff:
        name = type(problem.unwrapped).__name__
        raise UserError(f"{name} has no payoff, so there is no environment reward to learn from")
    if config.greedy_worlds < 1 and not isinstance(config.algorithm, SoftStops):
        raise UserError(
            f"greedy_fraction {config.greedy_fraction} of num_envs {config.num_envs} leaves no greedy episode to "
            "steer ζ and to measure: raise it"
        )
    check_memory(config, problem)


def _check_teacher(config: Config) -> None:
    teacher = config.teacher
    if teacher.weight > 0 and not teacher.policy:
        raise UserError(
            "there is nobody to follow: name a baseline or a team's file with --teacher.policy, or choose an algorithm "
            "that needs no teacher, such as ppo (which sets teacher.weight to 0)"
        )
    if teacher.policy and teacher.weight == 0:
        raise UserError(
            f"teacher.policy is {teacher.policy!r}, but teacher.weight is 0: with --algorithm guided it is 1"
        )
    if teacher.policy and not isinstance(config.algorithm, SoftStops | PaperTD3):
        raise UserError("only actors can follow a teacher: choose td3 or ppo, or leave teacher.policy empty")


def _check_plan(config: Config, problem: Problem) -> None:
    plan = config.plan
    if plan.iterations > 0 and plan.num_plans * plan.num_envs % plan.gradient_steps:
        raise UserError(
            f"{plan.num_plans} plans of {plan.num_envs} worlds do not split into {plan.gradient_steps} gradient steps: "
            "change plan.num_envs or plan.gradient_steps"
        )
    if config.posterior == "exact" and problem.posterior != "exact":
        raise UserError(
            f"this {type(problem).__name__} has no exact posterior to learn from (it says {problem.posterior!r}): set "
            "posterior to network"
        )
    explorers = config.num_envs - config.greedy_worlds
    if isinstance(config.algorithm, PPO) and explorers % config.gradient_steps:
        raise UserError(
            f"{explorers} drawn episodes do not split into {config.gradient_steps} gradient steps of the "
            "inference network: change num_envs, greedy_fraction or gradient_steps"
        )


TINY, HUGE = 1e-12, 1e12
MOST = 2**31 - 1  # of what is counted in 32 bits
RANGES: tuple[tuple[str, float, float], ...] = (
    *((name, 1, MOST) for name in ("population_size", "iterations", "num_envs", "gradient_steps", "batch_size")),
    *((name, 1, MOST) for name in ("buffer_size", "iterations_per_call", "validation_interval")),
    *((name, 1, MOST) for name in ("validation_episodes", "settling_episodes", "certificate_worlds")),
    ("max_rounds", 2, MOST),
    *((name, 1, MOST) for name in ("network.hidden_size", "algorithm.policy_delay", "algorithm.mixing_size")),
    ("learning_starts", 0, MOST),
    *((name, 0, HUGE) for name in ("checkpoint_minutes", "dual.lr", "dual.max", "dual.init")),
    ("algorithm.stop_consistency_coef", 0, HUGE),
    *((name, 0, 1) for name in ("greedy_fraction", "final_lr_fraction", "dual.margin", "teacher.weight")),
    ("finetune_fraction", 0, 0.9),
    *((f"algorithm.{name}", 0, 1) for name in ("gae_lambda", "epsilon", "epsilon_final", "stop_obey_prob")),
    *(
        (f"algorithm.{name}", 0, 1)
        for name in ("truth_weight", "log_truth_weight", "min_round_weight", "min_stop_prob")
    ),
    *((name, 1, MOST) for name in ("algorithm.update_epochs", "algorithm.num_minibatches")),
    *((name, TINY, HUGE) for name in ("actor_lr", "critic_lr", "inference_lr", "max_grad_norm", "minutes")),
    *((f"algorithm.{name}", TINY, HUGE) for name in ("gumbel_temperature", "clip_eps", "ent_coef", "ent_coef_final")),
    ("algorithm.optimistic_init", -HUGE, HUGE),
    *((f"algorithm.{name}", TINY, 1) for name in ("target_update_rate", "stop_anneal_fraction")),
    *((f"algorithm.{name}", 0, HUGE) for name in ("stop_kl_coef", "random_terminations", "balance_coef")),
    *((f"plan.{name}", 1, MOST) for name in ("num_plans", "num_envs", "gradient_steps", "init_rounds")),
    ("plan.iterations", 0, MOST),
    *((f"plan.{name}", 0, HUGE) for name in ("ent_coef", "window")),
    ("plan.lr", TINY, HUGE),
    ("plan.follow_prob", 0, 1),
    ("teacher.until", TINY, 1),
    ("network.stop_bias", -HUGE, HUGE),
)
"""Settings with the lower and upper ends of their ranges. NaN is in no range."""


def _at(config: Any, name: str) -> Any:
    """A setting by its dotted name; None if the algorithm has no such setting."""
    head, _, tail = name.partition(".")
    value = getattr(config, head, None)
    return _at(value, tail) if tail else value


def _range_in_words(low: float | int, high: float | int) -> str:
    if high == MOST:
        return f"at least {low:g} and at most {high:,}"
    if high < HUGE and low == 0 and high != 1:
        return f"between 0 and {high:g}"
    if high == 1:
        return "between 0 and 1" if low == 0 else "above 0 and at most 1"
    return {TINY: "positive and finite", -HUGE: "finite"}.get(low, f"at least {low:g} and finite")
