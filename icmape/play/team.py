"""Teams: policy, stopping rule and inference for one problem; agents that act online."""

from __future__ import annotations

import inspect
import math
import os
import reprlib
from collections.abc import Collection
from dataclasses import replace
from typing import Any, SupportsInt

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer, PyTree

from icmape.errors import UserError
from icmape.imports import load_object
from icmape.play.answer import Answer
from icmape.play.inference import ExactInference, NetworkInference, TeamInference
from icmape.play.missing import (
    Marks,
    check_takes_missed,
    fill,
    inner_agents,
    marks_of,
    padded,
    received,
    remembered,
    says_missing,
    split_actions,
)
from icmape.play.own_readings import OwnReadings
from icmape.play.policy import LocalPolicy, Round, actions_for
from icmape.play.rollout import Episode, action_type
from icmape.play.stop import Behaviour, FixedLength, LearnedStop, Stop, Threshold
from icmape.problem import Problem, arguments
from icmape.problem.unreliable import Received, failing, reliable, takes_missing

STOP = -1
"""The return value of `act` when an agent stops."""


class Team(eqx.Module):
    """A policy, a stopping rule and an inference for a problem."""

    problem: Problem
    policy: Any
    stop: Stop
    inference: TeamInference
    delta: float = eqx.field(static=True, default=0.1)
    card: str = eqx.field(static=True, default="{}")  # JSON: its provenance

    def __repr__(self) -> str:
        """One line: the problem with its sizes, the three parts, and δ."""
        stop = " ".join([self.stop.kind, *(f"{v:g}" for k, v in vars(self.stop).items() if k != "kind")])
        policy = getattr(self.policy, "kind", type(self.policy).__name__.removesuffix("Policy").lower())
        parts = f"policy={policy}, stop={stop}, inference={self.inference.kind}"
        return f"Team({_brief(self.problem)}, {parts}, δ={self.delta:g})"

    def behaviour(self) -> Behaviour:
        """Policy and stopping rule, for rollouts."""
        return Behaviour(self.problem, self.policy, self.stop, self.inference)

    def under(self, lost: float = 0.0, silent: float = 0.0, late: float = 0.0) -> Team:
        """The team with these rates of failures (`icmape.Unreliable`) instead of those of its problem."""
        if lost or silent or late:
            check_takes_missed(self.policy)
            if not isinstance(self.inference, NetworkInference | ExactInference):
                raise UserError(f"the inference by a {self.inference.kind} takes no missing readings")
        return replace(self, problem=failing(self.problem, lost, silent, late))

    def agent(self, index: int, first: PyTree = None) -> Agent:
        """One agent, ready to act. `first` is its observation before round 0, if the problem has one."""
        return Agent(self, index, first)

    def act(self, agent: int, actions: Any = (), observations: Any = (), first: PyTree = None) -> int:
        """The next action of an agent, given its own past actions and observations; `STOP` ends the episode.

        An observation is None if it never came. The cost is one step per past round; `team.agent(i)` keeps its memory
        between rounds instead.
        """
        if len(actions) != len(observations):
            raise UserError(f"{len(actions)} actions do not match {len(observations)} observations")
        actor = self.agent(agent, first)
        for action, observation in zip(actions, observations, strict=True):
            if observation is None:
                actor.missed(action)
            else:
                actor.see(action, observation)
        return actor.act()

    def posterior(self, actions: Any, observations: Any, first: PyTree = None) -> Answer:
        """The answer from the data of all agents: actions (rounds, agents) and their observations.

        None stands for a reading that never came; an agent that did nothing in a round has None for its action too.
        """
        problem = reliable(self.problem)
        actions, acted = split_actions(actions, problem.agents)
        rows = np.asarray(actions, np.int32)
        if rows.size == 0:
            rows = rows.reshape(0, problem.agents)
        if rows.ndim != 2 or rows.shape[1] != problem.agents:
            raise UserError(f"actions must be rounds of {problem.agents} agents each; given shape {rows.shape}")
        if len(rows) >= problem.horizon:
            raise UserError(f"{len(rows)} rounds are more than the horizon allows ({problem.horizon - 1})")
        if rows.size and not (rows.min() >= 0 and rows.max() < problem.actions):
            raise UserError(f"actions must lie in 0..{problem.actions - 1}; given {rows.min()}..{rows.max()}")
        _check_first(problem, first)
        if len(rows) == 0:
            observations = jax.tree.map(lambda x: x[:0], empty_observation(problem))
        nothing = jax.tree.map(lambda x: x[(0,) * (1 + len(inner_agents(problem)))], empty_observation(problem))
        observations, arrived = fill(nothing, observations, (len(rows), problem.agents, *inner_agents(problem)))
        episode, team = self._episode(rows, observations, first), self
        if acted is not None or not arrived.all() or says_missing(self.problem):
            team = replace(self, problem=takes_missing(self.problem))
            marks = padded(marks_of(problem, acted, arrived), problem.horizon)
            episode = episode._replace(observations=received(team.problem, episode.observations, marks))
        scores = _scores_at(team, episode, jnp.int32(len(rows)))
        space = problem.hypotheses
        confidence, decision = float(space.confidence(scores)), np.asarray(space.decide(scores))
        return Answer(
            jnp.exp(space.log_probabilities(scores)),
            decision,
            problem.answer_name(decision),
            confidence,
            np.asarray(scores),
            space,
            lambda: team._reason(episode, confidence),
        )

    def _reason(self, episode: Episode, confidence: float) -> str:
        """Why an episode with this data ends."""
        rounds = int(episode.stop)
        if rounds >= self.problem.horizon - 1:
            return f"the horizon of {self.problem.horizon} rounds is reached"
        if isinstance(self.stop, FixedLength):
            over = "over" if rounds >= self.stop.rounds else "not over yet"
            return f"the agreed {self.stop.rounds} rounds of data are {over}"
        if isinstance(self.stop, Threshold):
            sure = "sure enough" if confidence >= self.stop.level else "not sure enough yet"
            return f"the posterior is {sure}: {confidence:.3f} against {self.stop.level:g}"
        if not isinstance(self.policy, LocalPolicy):
            return "its rule reads everyone's data"
        stopping = [str(agent + 1) for agent in range(self.problem.agents) if self._stops(agent, episode)]
        if not stopping:
            return "nobody would stop yet"
        return f"agents {', '.join(stopping)} stop" if len(stopping) > 1 else f"agent {stopping[0]} stops"

    def _stops(self, agent: int, episode: Episode) -> bool:
        """Whether an agent stops after its own history."""
        seen = [jax.tree.map(lambda x, t=t: x[t, agent], episode.observations) for t in range(int(episode.stop) + 1)]
        first = seen[0].reading if isinstance(seen[0], Received) else seen[0]
        actor = self.agent(agent, first if self.problem.shows_first else None)
        for action, observation in zip(np.asarray(episode.actions[:, agent]), seen[1:], strict=False):
            actor.take(int(action), observation)
        return actor.act() == STOP

    def _episode(self, rows: np.ndarray, observations: Any, first: PyTree) -> Episode:
        """An episode padded to the horizon, so that any number of rounds uses one compiled program."""
        problem, horizon = reliable(self.problem), self.problem.horizon
        nothing = empty_observation(problem)

        def pad(like: Array, start: Any, seen: Any) -> np.ndarray:
            out = np.zeros((horizon, *like.shape), like.dtype)
            out[0] = np.asarray(start)
            values = np.asarray(seen, like.dtype)
            if values.size != len(rows) * like.size:
                raise UserError(f"observations of shape {values.shape} do not match {len(rows)} rounds of actions")
            out[1 : len(rows) + 1] = values.reshape(len(rows), *like.shape)
            return out

        taken = np.zeros((horizon, problem.agents), action_type(problem))
        taken[: len(rows)] = rows
        try:
            seen = jax.tree.map(pad, nothing, nothing if first is None else first, observations)
        except (TypeError, ValueError) as error:
            raise UserError(
                f"an observation of this problem is, for every agent, {in_words(nothing)}; observations have "
                f"leading axes of rounds and agents, `first` one of agents ({error})"
            ) from error
        return Episode(
            jnp.asarray(taken),
            jax.tree.map(jnp.asarray, seen),
            jnp.zeros(horizon, bool),
            jnp.int32(len(rows)),
            jnp.zeros((), jnp.int8),
            jnp.array(True),
        )

    def evaluate(self, episodes: int = 10_000, seed: int = 0, **options: Any) -> Any:
        """Accuracy, τ, calibration and the no-data answer on fresh worlds."""
        return _deferred("icmape.evaluation:evaluate")(self, episodes=episodes, seed=seed, **options)

    def certify(self, **options: Any) -> Any:
        """A lower confidence bound on the accuracy over the prior, from worlds reserved for certificates."""
        return _deferred("icmape.evaluation.certificate:certify")(self, **options)

    def retarget(self, delta: float | None = None, **options: Any) -> Any:
        """The team with its stopping threshold moved to reach accuracy 1-δ on fresh worlds."""
        return _deferred("icmape.learning.retarget:retarget")(self, delta, **options)

    def save(self, path: str | os.PathLike[str], *, half: Collection[str] = ()) -> None:
        """Write a safetensors file, with the weights of the parts in `half` ("policy", "inference") in 16 bits."""
        _deferred("icmape.play.team_files:save")(self, path, half=half)


def _deferred(path: str) -> Any:
    """Import a function of a higher layer when it is called, for a method of `Team`."""
    return load_object(path, "a team's method")


class Agent:
    """One agent of a team that acts online: it reads its own observations only, at constant cost per round."""

    def __init__(self, team: Team, index: int, first: PyTree = None):
        if not isinstance(team.policy, LocalPolicy) or isinstance(team.stop, Threshold):
            raise UserError("this team acts or stops on everyone's data, so no agent of it can act alone")
        if not 0 <= index < team.problem.agents:
            raise UserError(f"agents are numbered 0..{team.problem.agents - 1}; given {index}")
        _check_first(team.problem, first)
        self.team, self.index, self.round = team, jnp.int32(index), 0
        nothing = empty_observation(reliable(team.problem))
        seen = jax.tree.map(lambda x: x[0], nothing) if first is None else _reading(nothing, first)
        seen = received(team.problem, seen, self._marks())
        self.memory = team.problem.init_memory(self.index, seen)
        self._think(team.policy.start_agent(), -1, seen)

    @property
    def scores(self) -> Float[Array, choices]:
        """Scores over the actions and STOP (the last one)."""
        return self._scores

    def act(self) -> int:
        """The greedy action; `STOP` ends the episode for all agents."""
        stop = self.team.stop
        last = stop.rounds if isinstance(stop, FixedLength) else self.team.problem.horizon - 1
        if self.round >= min(last, self.team.problem.horizon - 1):
            return STOP
        allowed = np.asarray(actions_for(self.team.problem, self.team.policy, self.memory))
        scores = np.asarray(self._scores)
        best = int(np.argmax(np.where(allowed, scores[:-1], -np.inf)))
        return STOP if isinstance(stop, LearnedStop) and scores[-1] > scores[best] else best

    def see(self, action: SupportsInt, observation: PyTree) -> None:
        """Update the memory with an own action and its observation.

        A centralized team's observation holds None for each agent whose reading never came.
        """
        self._check_action(int(action))
        problem = reliable(self.team.problem)
        nothing, inner = empty_observation(problem), inner_agents(problem)
        arrived = np.ones(inner, bool)
        if inner:
            observation, arrived = fill(jax.tree.map(lambda x: x[0, 0], nothing), observation, inner)
        self.take(int(action), self._marked(_reading(nothing, observation), arrived))

    def missed(self, action: SupportsInt | None = None) -> None:
        """Update the memory with an own action (by default that of `act`) whose reading never came."""
        taken = self.act() if action is None else int(action)
        if action is None and taken == STOP:
            raise UserError("this agent stopped: after STOP there is no reading to miss")
        self._check_action(taken)
        problem = reliable(self.team.problem)
        nothing = jax.tree.map(lambda x: x[0], empty_observation(problem))
        self.take(taken, self._marked(nothing, np.zeros(inner_agents(problem), bool)))

    def take(self, action: int, observation: PyTree) -> None:
        """Update the memory with an action and an observation in the layout of the team's problem."""
        problem = self.team.problem
        self.round += 1
        self.memory = problem.update_memory(self.memory, self.index, jnp.int32(action), observation)
        self._think(self._state, action, observation)

    def _check_action(self, action: int) -> None:
        if not 0 <= action < self.team.problem.actions:
            raise UserError(f"actions are numbered 0..{self.team.problem.actions - 1}; given {action}")

    def _marks(self) -> Marks:
        everyone = np.ones(inner_agents(self.team.problem), bool)
        return Marks(everyone, everyone)

    def _marked(self, reading: PyTree, arrived: np.ndarray) -> PyTree:
        """A reading in the layout of the team's problem, which learns to say what is missing when something is."""
        if not arrived.all() and not says_missing(self.team.problem):
            check_takes_missed(self.team.policy)
            self.memory = remembered(self.team.problem, self.memory)
            self.team = replace(self.team, problem=takes_missing(self.team.problem))
        return received(self.team.problem, reading, self._marks()._replace(arrived=arrived))

    def _think(self, state: PyTree, action: int, observation: PyTree) -> None:
        number, last = jnp.int32(self.round), jnp.int32(action)
        self._state, self._scores = _decide(self.team, state, self.index, self.memory, number, last, observation)


def _check_first(problem: Problem, first: PyTree) -> None:
    """Raise `UserError` if an informative first observation is missing."""
    if first is None and problem.shows_first:
        raise UserError(
            f"{type(problem).__name__} shows something before round 0: give it as `first`, in the layout of what "
            "`problem.start(world, key=key)` returns second (an agent gets its own row)"
        )


def _brief(problem: Problem) -> str:
    """A problem as a constructor call: leading sizes, and arguments that differ from the defaults."""
    if problem.unwrapped is not problem:
        return f"{type(problem).__name__}({_brief(problem.unwrapped)})"
    shown, leading = [], True
    for parameter in inspect.signature(type(problem)).parameters.values():
        value = arguments(problem)[parameter.name]
        leading = leading and isinstance(value, int)
        if leading:
            shown.append(str(value))
        elif value != (list(parameter.default) if isinstance(parameter.default, tuple) else parameter.default):
            shown.append(f"{parameter.name}={reprlib.repr(value)}")
    return f"{type(problem).__name__}({', '.join(shown)})"


@eqx.filter_jit
def _decide(
    team: Team,
    state: PyTree,
    agent: Integer[Array, ""],
    memory: PyTree,
    index: Integer[Array, ""],
    action: Integer[Array, ""],
    observation: PyTree,
) -> tuple[PyTree, Float[Array, choices]]:
    key = jax.random.fold_in(jax.random.fold_in(jax.random.key(0), agent), index)
    view = team.problem.features(memory)
    if isinstance(team.policy, OwnReadings):
        return team.policy.decide_own(state, agent, Round(index, view, action, observation, memory), key=key)
    return team.policy.decide_agent(state, agent, view, index, key=key)


@eqx.filter_jit
def _scores_at(team: Team, episode: Episode, index: Integer[Array, ""]) -> Float[Array, ...]:
    return team.inference.unroll(team.problem, episode)[index]


def _reading(like: PyTree, observation: PyTree) -> PyTree:
    """An observation of one agent in the layout and the storage types of the problem, checked for overflow."""

    def store(x: Array, y: Any) -> Array:
        value, shape = np.asarray(y), x.shape[1:]
        with np.errstate(over="ignore", invalid="ignore"):
            stored = value.astype(x.dtype)
        lost = ~np.isfinite(stored) if jnp.issubdtype(x.dtype, jnp.floating) else stored != value
        if value.size != math.prod(shape) or np.any(lost):
            raise UserError(f"a reading of this problem is {x.dtype} of shape {shape}; given {reprlib.repr(y)}")
        return jnp.asarray(stored.reshape(shape))

    try:
        return jax.tree.map(store, like, _same_kind(like, observation))
    except (TypeError, ValueError) as error:
        raise UserError(f"a reading of this problem is {in_words(like)}; given {reprlib.repr(observation)}") from error


def _same_kind(like: PyTree, observation: PyTree) -> PyTree:
    """Convert a plain tuple to a named tuple with as many fields."""
    if not hasattr(like, "_fields") or type(observation) is not tuple or len(observation) != len(like):
        return observation
    return type(like)(*observation)


def in_words(like: PyTree) -> str:
    """The layout of the observation of one agent, in words: names, types and shapes."""
    if isinstance(like, tuple) and hasattr(like, "_fields"):
        fields = (f"{name}: {in_words(part)}" for name, part in zip(like._fields, like, strict=True))
        return f"{type(like).__name__}({', '.join(fields)})"
    return f"{like.dtype} of shape {like.shape[1:]}" if hasattr(like, "dtype") else str(type(like).__name__)


def empty_observation(problem: Problem) -> PyTree:
    """An observation of zeros in the problem's layout."""

    def look() -> PyTree:
        key = jax.random.key(0)
        return problem.start(problem.sample(key=key), key=key)[1]

    return jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), jax.eval_shape(look))
