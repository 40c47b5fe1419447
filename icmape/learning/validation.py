"""Validation during training: on separate worlds, with the stopping threshold moved to the target accuracy."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from icmape.learning.algorithms import Scalar
from icmape.learning.config import Config
from icmape.learning.inference_loss import Judged, judge, scores_at_stop
from icmape.learning.returns import masked_mean
from icmape.learning.scores import joint_scores
from icmape.networks import InferenceNetwork
from icmape.play.inference import NetworkInference
from icmape.play.policy import LearnedPolicy, Policy
from icmape.play.rollout import Drawn, Episode, histories, play_greedy, rollout
from icmape.play.stop import Behaviour, Threshold
from icmape.problem import Problem

MEASURED = ("accuracy", "confidence", "tau", "forced")
CERTIFICATE_ERRORS = 1.645 + 1.282  # standard errors above 1-δ: a certificate needs 1.645; with both, 90 % get one
AT_ONCE = 2048  # validation worlds per batch of histories
HALVINGS = 16  # in the bisection of the stopping threshold


class Best(NamedTuple):
    """The best team so far by validation; or a family of teams, one for each δ (leading axis)."""

    policy: Any
    inference: InferenceNetwork
    accuracy: Float[Array, ""]
    tau: Float[Array, ""]
    iteration: Int[Array, ""]


class Seen(NamedTuple):
    """Greedy episodes played to the last round, which give the result of every stopping threshold."""

    lead: Float[Array, "worlds rounds"]  # of STOP over the best action, the maximum over agents
    judged: Judged


def stopping_policy(problem: Problem, config: Config, policy: Any, inference: InferenceNetwork) -> Policy:
    """The policy with the stopping rule of the settings: learned, or a threshold on the confidence of the network."""
    if config.stopping == "learned":
        return policy
    return Behaviour(problem, policy, Threshold(1.0 - config.delta), NetworkInference(inference))


def measure(
    problem: Problem, inference: InferenceNetwork, episodes: Episode, judged: Bool[Array, "worlds"]
) -> dict[str, Float[Array, ""]]:
    """Mean accuracy and confidence at the stop, τ and the fraction of forced stops, over the judged episodes."""

    def judge_episode(episode: Episode) -> tuple:
        scores = scores_at_stop(problem, inference, episode)
        space = problem.hypotheses
        stop = episode.stop.astype(jnp.float32)
        right = space.correct(space.decide(scores), episode.hypothesis).astype(jnp.float32)
        return (
            right,
            space.confidence(scores),
            stop + 1.0,
            (episode.stop == episode.actions.shape[0] - 1).astype(jnp.float32),
        )

    columns = jax.vmap(judge_episode)(episodes)
    return {name: masked_mean(column, judged) for name, column in zip(MEASURED, columns, strict=True)}


def validate(
    problem: Problem,
    config: Config,
    candidate: Best,
    best: Best,
    family: Best | None,
    *,
    keep: Bool[Array, ""],
    key: Key[Array, ""],
) -> tuple[Best, Best | None, dict[str, Float[Array, ""]]]:
    """Judge a team on fresh worlds, with its stopping threshold moved to the target, and keep it if it is the best.

    A team that meets the target is better than one that does not. Among teams that meet it the faster one is better,
    among the others the more accurate one. This is done for every δ of a family. `keep` accepts the candidate anyway.
    """
    keys = jax.random.split(key, config.validation_episodes)
    if not moves_stops(config, candidate.policy):
        playing = stopping_policy(problem, config, candidate.policy, candidate.inference)
        episodes = play_greedy(problem, playing, keys)
        result = measure(problem, candidate.inference, episodes, jnp.ones(keys.shape[0], bool))
        candidate = candidate._replace(accuracy=result["accuracy"], tau=result["tau"])
        return _better(candidate, best, needed_accuracy(config.delta, config.certificate_worlds), keep), family, result
    seen = watch_stops(problem, config, candidate.policy, candidate.inference, keys)
    moved, result = move_stops(candidate, seen, config.delta, config.certificate_worlds)
    best = _better(moved, best, needed_accuracy(config.delta, config.certificate_worlds), keep)

    def validate_member(old: Best, delta: Scalar) -> Best:
        moved = move_stops(candidate, seen, delta, config.certificate_worlds)[0]
        return _better(moved, old, needed_accuracy(delta, config.certificate_worlds), jnp.array(False))

    if family is not None:
        family = jax.vmap(validate_member)(family, jnp.asarray(config.deltas))
    return best, family, result


def moves_stops(config: Config, policy: Any) -> bool:
    """Whether the stopping threshold is moved; ablations are judged with the stops that they learned."""
    whole = config.reward == "confidence" and config.cost == "dual"
    return whole and config.stopping == "learned" and isinstance(policy, LearnedPolicy)


def _better(candidate: Best, best: Best, needed: Float[Array, ""] | float, keep: Bool[Array, ""]) -> Best:
    meets, met = candidate.accuracy >= needed, best.accuracy >= needed
    better = jnp.where(
        meets & met,
        candidate.tau < best.tau,
        jnp.where(meets == met, candidate.accuracy > best.accuracy, meets),
    )
    return select(better | keep, candidate, best)


def move_stops(
    team: Best, seen: Seen, delta: Scalar, certificate_worlds: int
) -> tuple[Best, dict[str, Float[Array, ""]]]:
    """The team with the lowest stopping threshold that reaches the needed accuracy, and its metrics.

    The threshold does not change if none suffices.
    """
    lead, judged = seen
    needed = needed_accuracy(delta, certificate_worlds)
    last = lead.shape[1] - 1

    def at(threshold: Float[Array, ""]) -> dict[str, Float[Array, ""]]:
        stop = jnp.argmax((lead > threshold).at[:, -1].set(True), axis=1)[:, None]
        right, sure = (jnp.take_along_axis(x, stop, axis=1) for x in (judged.correct, judged.confidence))
        columns = right.astype(jnp.float32), sure, stop.astype(jnp.float32) + 1.0, (stop == last).astype(jnp.float32)
        return {name: jnp.mean(column) for name, column in zip(MEASURED, columns, strict=True)}

    def halve(_: Int[Array, ""], ends: tuple) -> tuple:
        low, high = ends
        middle = 0.5 * (low + high)
        enough = at(middle)["accuracy"] >= needed
        return jnp.where(enough, low, middle), jnp.where(enough, middle, high)

    # beyond both ends: many histories may share the extreme lead, and rounding would decide there
    lowest, highest = jnp.min(lead[:, :-1]) - 1.0, jnp.max(lead[:, :-1]) + 1.0
    smallest = jax.lax.fori_loop(0, HALVINGS, halve, (lowest, highest))[1]
    reachable = at(highest)["accuracy"] >= needed
    threshold = jnp.where(reachable, smallest, 0.0)
    result = at(threshold)
    policy = LearnedPolicy(team.policy.actors.stopping_at(threshold))
    return team._replace(policy=policy, accuracy=result["accuracy"], tau=result["tau"]), result


def watch_stops(
    problem: Problem, config: Config, policy: LearnedPolicy, inference: InferenceNetwork, keys: Key[Array, "worlds"]
) -> Seen:
    """Greedy episodes played to the last round, in batches of worlds, because histories take much memory."""

    def watch_part(keys: Key[Array, "part"]) -> Seen:
        everyone = jnp.ones(keys.shape[0], bool)
        noise = Drawn(everyone, jnp.zeros(keys.shape[0]))
        episode = rollout(problem, policy, noise, keys, everyone, rounds=policy.actors.actor.rounds or None)
        seen = jax.vmap(lambda e: histories(problem, e))(episode)
        scores = joint_scores(config, policy.actors, seen)
        lead = jnp.max(scores[..., -1] - jnp.max(scores[..., :-1], axis=-1), axis=-1)
        return Seen(lead, judge(problem, inference, seen.team, episode))

    if keys.shape[0] <= AT_ONCE or keys.shape[0] % AT_ONCE:
        return watch_part(keys)
    parts = jax.lax.map(watch_part, keys.reshape(-1, AT_ONCE))
    return jax.tree.map(lambda x: x.reshape((-1, *x.shape[2:])), parts)


def settle(
    problem: Problem, config: Config, best: Best, family: Best | None, *, key: Key[Array, ""]
) -> tuple[Best, Best | None]:
    """Judge the best teams again on more and other worlds, and move their stopping thresholds accordingly.

    Selection by validation favours teams with lucky sampling noise; fresh worlds remove this bias.
    """
    if not moves_stops(config, best.policy):
        return best, family
    keys = jax.random.split(key, settling_worlds(config))

    def settle_team(best: Best, delta: Scalar) -> Best:
        seen = watch_stops(problem, config, best.policy, best.inference, keys)
        return select(best.iteration > 0, move_stops(best, seen, delta, config.certificate_worlds)[0], best)

    if family is not None:
        family = jax.lax.map(lambda row: settle_team(*row), (family, jnp.asarray(config.deltas)))
    return settle_team(best, config.delta), family


def settling_worlds(config: Config) -> int:
    """The worlds on which the best teams are judged again: whole batches."""
    worlds = max(config.settling_episodes, config.validation_episodes)
    return worlds if worlds <= AT_ONCE else math.ceil(worlds / AT_ONCE) * AT_ONCE


def judging_worlds(config: Config, policy: Any) -> int:
    """The worlds behind the numbers of a finished run's team: ablations are not judged again."""
    return settling_worlds(config) if moves_stops(config, policy) else config.validation_episodes


def standard_error(accuracy: float, worlds: int) -> float:
    """The standard error of an accuracy over so many worlds."""
    return math.sqrt(max(accuracy * (1 - accuracy), 0.0) / worlds)


def rank(accuracy: float, tau: float, config: Config) -> tuple[bool, float]:
    """Orders validated teams, best first: on target and fastest, or else the most accurate."""
    misses = accuracy < float(needed_accuracy(config.delta, config.certificate_worlds))
    return misses, -accuracy if misses else tau


def needed_accuracy(delta: Scalar, certificate_worlds: int) -> Float[Array, ""]:
    """The accuracy that validation requires, so that a certificate on so many worlds will probably be granted."""
    spread = (delta * (1.0 - delta)) ** 0.5
    return jnp.asarray(jnp.minimum(1.0 - delta + spread * CERTIFICATE_ERRORS / certificate_worlds**0.5, 1.0))


def select(condition: Bool[Array, ""], yes: Any, no: Any) -> Any:
    """One of two trees."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)
