"""A single episode of an evaluation, with its world and posterior."""

from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from icmape.errors import UserError
from icmape.play.episodes import RESERVED, check_seed, world_keys
from icmape.play.inference import ExactInference, NetworkInference, TeamInference
from icmape.play.rollout import Episode, play_greedy
from icmape.play.rollout import world_key as episode_world_key
from icmape.play.stop import Behaviour
from icmape.play.team import Team
from icmape.problem import Problem, check_worlds

Posterior = Literal["network", "exact"]
WORLDS = 2**31  # numbered in 32 bits


class Played(NamedTuple):
    """A greedy episode, its world, and the posterior of an inference at every round.

    The episode of a centralized team is given as that of the inner agents.
    """

    problem: Problem
    world: Any
    episode: Episode
    probabilities: np.ndarray  # rounds, then the shape of the hypothesis space
    confidence: np.ndarray  # rounds
    decisions: np.ndarray  # rounds ...
    correct: np.ndarray  # rounds
    delta: float
    stop_rule: str  # kind of the team's stop
    posterior: str  # kind of the inference
    final: np.ndarray  # its scores at the stop

    @property
    def rounds(self) -> int:
        """τ: played rounds, including the stop."""
        return int(self.episode.stop) + 1

    @property
    def stopped(self) -> list[int]:
        """Agents that chose STOP, or were forced to."""
        return np.flatnonzero(self.episode.actions[self.rounds - 1] == self.problem.actions).tolist()

    @property
    def forced(self) -> bool:
        """Whether the horizon ended the episode."""
        return self.rounds == self.problem.horizon


def play_one(team: Team, world: int = 0, seed: int = 0, posterior: Posterior | None = None) -> Played:
    """The episode of `play(team, ..., seed)` in this world, by the inference of the team unless given."""
    inference = choose_inference(team, posterior)
    key = world_key(world, seed)
    drawn, episode = _play(team.problem, team.behaviour(), key)
    read = _read(team.problem, inference, episode)
    probabilities, confidence, decisions, correct, scores = (np.asarray(x)[: int(episode.stop) + 1] for x in read)
    return Played(
        *_unwrapped(team.problem, *jax.tree.map(np.asarray, (drawn, episode))),
        probabilities,
        confidence,
        decisions,
        correct,
        team.delta,
        team.stop.kind,
        inference.kind,
        scores[-1],
    )


def choose_inference(team: Team, posterior: Posterior | None) -> TeamInference:
    """The inference of the team, or the one that `posterior` selects."""
    if posterior == "network" and not isinstance(team.inference, NetworkInference):
        raise UserError("this team has no inference network: its answers come from the exact posterior")
    if posterior != "exact":
        return team.inference
    if team.problem.posterior == "none":
        raise UserError(f"{type(team.problem).__name__} has no exact posterior: leave the network's")
    return ExactInference()


def world_key(world: int, seed: int) -> Key[Array, ""]:
    """The key of one episode of an evaluation."""
    if not 0 <= world < WORLDS:
        raise UserError(f"worlds are numbered from 0 to {WORLDS - 1}; given {world}")
    if seed < -WORLDS:
        raise UserError(f"seeds lie in {-WORLDS}..{RESERVED - 1}; given {seed}")
    if seed >= RESERVED:
        check_seed(seed)
    return world_keys(seed, jnp.array([world]))[0]


@eqx.filter_jit
def draw_world(problem: Problem, key: Key[Array, ""]) -> Any:
    """The world of a rollout with this key."""
    check_worlds(problem)
    return problem.sample(key=episode_world_key(key))


@eqx.filter_jit
def _play(problem: Problem, behaviour: Behaviour, key: Key[Array, ""]) -> tuple[Any, Episode]:
    episode = jax.tree.map(lambda x: x[0], play_greedy(problem, behaviour, key[None]))
    return draw_world(problem, key), episode


@eqx.filter_jit
def _read(problem: Problem, inference: TeamInference, episode: Episode) -> tuple[Array, Array, Array, Array, Array]:
    """Probabilities, confidence, decision, whether it is right, and scores, for every round."""
    space = problem.hypotheses

    def judge(scores: Array) -> tuple[Array, Array, Array, Array, Array]:
        decision = space.decide(scores)
        right = space.correct(decision, episode.hypothesis)
        return jnp.exp(space.log_probabilities(scores)), space.confidence(scores), decision, right, scores

    return jax.vmap(judge)(inference.unroll(problem, episode))


def _unwrapped(problem: Problem, world: Any, episode: Episode) -> tuple[Problem, Any, Episode]:
    """Problem, world and episode of the inner agents, without adapters."""
    return (
        problem.unwrapped,
        world,
        episode._replace(
            actions=jnp.asarray(problem.agent_actions(episode.actions)),
            observations=problem.agent_observations(episode.observations),
        ),
    )
