"""Teams: policy, stopping rule and inference for one problem; agents that act online."""

from __future__ import annotations

import inspect
import os
import reprlib
from collections.abc import Collection
from dataclasses import replace
from typing import Any, NamedTuple, SupportsIndex

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Integer, PyTree

from icmape.errors import UserError
from icmape.imports import load_object
from icmape.play.answer import Answer
from icmape.play.inference import TeamInference
from icmape.play.missing import (
    Marks,
    check_inference,
    check_takes_missed,
    marks_of,
    padded,
    received,
    remembered,
    says_missing,
)
from icmape.play.own_readings import OwnReadings
from icmape.play.policy import LocalPolicy, Round, actions_for
from icmape.play.readings import Gate, check_allowed, refuse_masked
from icmape.play.rollout import Episode, action_type
from icmape.play.stop import Behaviour, FixedLength, LearnedStop, Stop, Threshold
from icmape.problem import Problem, arguments
from icmape.problem.unreliable import Received, failing, takes_missing
from icmape_agent.missing import refuse_after_stop

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
            check_inference(self.inference)
        return replace(self, problem=failing(self.problem, lost, silent, late))

    def agent(self, index: int, first: PyTree = None) -> Agent:
        """One agent, ready to act. `first` is its observation before round 0, if the problem has one."""
        return Agent(self, index, first)

    def act(self, agent: int, actions: Any = (), observations: Any = (), first: PyTree = None) -> int:
        """The next action of an agent, given its own past actions and observations; `STOP` ends the episode.

        An observation is None if it never came. The cost is one step per past round; `team.agent(i)` keeps its memory
        between rounds instead.
        """
        actor = self.agent(agent, first)
        if not isinstance(actions, list | tuple) and getattr(actions, "ndim", 0) != 1:
            raise UserError(f"actions must be a list of an agent's past actions; given {reprlib.repr(actions)}")
        if isinstance(observations, list) and len(observations) != len(actions):
            raise UserError(f"{len(actions)} actions do not match {len(observations)} observations")
        numbers = [actor.gate.action(action) for action in actions]
        seen, arrived = actor.gate.some_readings(actor.number, len(numbers), observations)
        for number, action in enumerate(numbers):
            reading = jax.tree.map(lambda x, number=number: x[number], seen)
            actor.update(action, reading, np.asarray(arrived[number]))
        return actor.act()

    def posterior(self, actions: Any, observations: Any, first: PyTree = None) -> Answer:
        """The answer from the data of all agents: actions (rounds, agents) and their observations.

        None stands for a reading that never came; an agent that did nothing in a round has None for its action too.
        """
        gate = Gate(self.problem)
        rows, acted = gate.some_joint_actions(actions)
        gate.first(first)
        readings, arrived = gate.some_joint_readings(len(rows), observations)
        episode, team = self._episode(gate, rows, readings, first), self
        if says_missing(self.problem) or not (acted.all() and arrived.all()):
            check_inference(self.inference)
            team = replace(self, problem=takes_missing(self.problem))
            marks = padded(marks_of(acted, arrived), self.problem.horizon)
            episode = episode._replace(observations=received(team.problem, episode.observations, marks))
        check_allowed(team.problem, episode, acted)
        scores = _scores_at(team, episode, jnp.int32(len(rows)))
        space = self.problem.hypotheses
        confidence, decision = float(space.confidence(scores)), np.asarray(space.decide(scores))
        probabilities = jnp.exp(space.log_probabilities(scores))
        if not np.isfinite(confidence) or not np.isfinite(probabilities).all():
            raise UserError(
                f"the {self.inference.kind} inference gives no finite scores for this data: no answer of this "
                f"{gate.title} explains all of it, so check the readings and who read them"
            )
        return Answer(
            probabilities,
            decision,
            self.problem.answer_name(decision),
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

    def _episode(self, gate: Gate, rows: np.ndarray, observations: PyTree, first: PyTree) -> Episode:
        """An episode padded to the horizon, so that any number of rounds uses one compiled program."""
        problem, horizon = self.problem, self.problem.horizon
        start = gate.nothing() if first is None else gate.joint(first)

        def pad(start: np.ndarray, seen: np.ndarray) -> Array:
            out = np.zeros((horizon, *start.shape), start.dtype)
            out[0] = start
            out[1 : len(rows) + 1] = seen
            return jnp.asarray(out)

        taken = np.zeros((horizon, problem.agents), action_type(problem))
        taken[: len(rows)] = rows
        return Episode(
            jnp.asarray(taken),
            jax.tree.map(pad, start, observations),
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

    def session(self, folder: str | os.PathLike[str], **options: Any) -> Any:
        """Ask and tell with a journal in a folder: a new session, or the one that is there (`open_session`)."""
        return _deferred("icmape.play.sessions:session")(self, folder, **options)

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
        self.team, self.gate = team, Gate(team.problem)
        self.number, self.round, self._stopped = self.gate.agent(index), 0, False
        self.index = jnp.int32(self.number)
        self.gate.first(first)
        if first is None:
            seen = jax.tree.map(lambda x: x[0], self.gate.nothing())
        else:
            seen = self.gate.reading(self.number, first)
        seen = received(team.problem, jax.tree.map(jnp.asarray, seen), self._marks())
        self.memory = team.problem.init_memory(self.index, seen)
        self._think(team.policy.start_agent(), -1, seen)

    @property
    def scores(self) -> Float[Array, choices]:
        """Scores over the actions and STOP (the last one)."""
        return self._thought.scores

    def act(self) -> int:
        """The greedy action; `STOP` ends the episode for all agents."""
        action = self.choice()
        self._stopped = action == STOP
        return action

    def choice(self) -> int:
        """What `act` returns, without ending the episode where it is `STOP`."""
        stop = self.team.stop
        last = stop.rounds if isinstance(stop, FixedLength) else self.team.problem.horizon - 1
        if self.round >= min(last, self.team.problem.horizon - 1):
            return STOP
        scores = np.asarray(self.scores)
        if np.isnan(scores).any():
            raise UserError(f"the scores of agent {self.number} are not finite after {self.round} rounds")
        best = int(np.argmax(np.where(self._thought.offered, scores[:-1], -np.inf)))
        return STOP if isinstance(stop, LearnedStop) and scores[-1] > scores[best] else best

    def see(self, action: SupportsIndex, observation: PyTree) -> None:
        """Update the memory with an own action and its observation.

        A centralized team's observation holds None for each agent whose reading never came.
        """
        self._check_going()
        self.update(self.gate.action(action), *self.gate.some_reading(self.number, observation))

    def missed(self, action: SupportsIndex | None = None) -> None:
        """Update the memory with an own action (by default that of `act`) whose reading never came."""
        self._check_going()
        if action is None and self.choice() == STOP:
            refuse_after_stop(self.number, self.round)
        taken = self.choice() if action is None else self.gate.action(action)
        nothing = jax.tree.map(lambda x: x[0], self.gate.nothing())
        self.update(taken, nothing, np.zeros(self.gate.inner, bool))

    def update(self, action: int, reading: PyTree, arrived: Bool[np.ndarray, "*inner"]) -> None:
        """Update the memory with an action and a reading in the layout of the gate, if the action was allowed."""
        self.gate.rounds(self.round + 1)
        if self.team.problem.has_action_mask and not self._thought.allowed[action]:
            refuse_masked(action, f"agent {self.number} in round {self.round}")
        self.take(action, self._marked(jax.tree.map(jnp.asarray, reading), arrived))

    def take(self, action: int, observation: PyTree) -> None:
        """Update the memory with an action and an observation in the layout of the team's problem."""
        self.round += 1
        self.memory = self.team.problem.update_memory(self.memory, self.index, jnp.int32(action), observation)
        self._think(self._thought.state, action, observation)

    def _check_going(self) -> None:
        if self._stopped:
            raise UserError(f"agent {self.number} chose STOP in round {self.round}: the episode is over")

    def _marks(self) -> Marks:
        everyone = np.ones(self.gate.inner, bool)
        return Marks(everyone, everyone)

    def _marked(self, reading: PyTree, arrived: Bool[np.ndarray, "*inner"]) -> PyTree:
        """A reading in the layout of the team's problem, which learns to say what is missing when something is."""
        if not arrived.all() and not says_missing(self.team.problem):
            check_takes_missed(self.team.policy)
            self.memory = remembered(self.team.problem, self.memory)
            self.team = replace(self.team, problem=takes_missing(self.team.problem))
        return received(self.team.problem, reading, self._marks()._replace(arrived=arrived))

    def _think(self, state: PyTree, action: int, observation: PyTree) -> None:
        number, last = jnp.int32(self.round), jnp.int32(action)
        self._thought = decide(self.team, state, self.index, self.memory, number, last, observation)


class Thought(NamedTuple):
    """An agent's scores in a round, and the actions that its policy chooses from and that the problem allows."""

    state: PyTree
    scores: Float[Array, choices]
    offered: Bool[Array, actions]
    allowed: Bool[Array, actions]


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
def decide(
    team: Team,
    state: PyTree,
    agent: Integer[Array, ""],
    memory: PyTree,
    index: Integer[Array, ""],
    action: Integer[Array, ""],
    observation: PyTree,
) -> Thought:
    """What an agent thinks in a round, from its own memory and the state of its policy."""
    key = jax.random.fold_in(jax.random.fold_in(jax.random.key(0), agent), index)
    view = team.problem.features(memory)
    if isinstance(team.policy, OwnReadings):
        decided = team.policy.decide_own(state, agent, Round(index, view, action, observation, memory), key=key)
    else:
        decided = team.policy.decide_agent(state, agent, view, index, key=key)
    masks = actions_for(team.problem, team.policy, memory), team.problem.action_mask(memory)
    return Thought(*decided, *masks)


@eqx.filter_jit
def _scores_at(team: Team, episode: Episode, index: Integer[Array, ""]) -> Float[Array, ...]:
    return team.inference.unroll(team.problem, episode)[index]
