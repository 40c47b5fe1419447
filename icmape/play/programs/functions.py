"""The functions of a team that a light agent runs: one agent's rounds, and the inference on the data of all."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from icmape.errors import UserError
from icmape.play.inference import NetworkInference
from icmape.play.missing import Marks, received
from icmape.play.policy import LocalPolicy
from icmape.play.programs.builder import Builder, Node, Refusal
from icmape.play.programs.lowering import kind_of, lower
from icmape.play.stop import Threshold
from icmape.play.team import Team, decide
from icmape.problem import Problem
from icmape.problem.ranges import observation_layout
from icmape.problem.unreliable import reliable, takes_missing

Bounds = tuple[int, int]
MarkedInputs = tuple[Any, ...]
"""Who acted and whose reading arrived; nothing in functions that need every reading."""


class CannotTrace(UserError):
    """A function of a team that no program can be made for; the message is a clause that says why."""


def agent_functions(team: Team, named: dict[str, Any], tensors: dict[str, np.ndarray], misses: bool) -> dict[str, Any]:
    """The first round of one agent, and every later one. Both return its state, scores and masks.

    With `misses`, a later round may be one without a reading.
    """
    if not isinstance(team.policy, LocalPolicy) or isinstance(team.stop, Threshold):
        raise CannotTrace("it acts or stops on everyone's data")
    reading, marks = _row(_zeros(team.problem)), (jnp.array(True),) * 2 * misses
    team = _saying(team, misses)
    problem = team.problem

    def thought(
        team: Team, memory: PyTree, mind: PyTree, agent: Array, number: Array, last: Array, seen: PyTree
    ) -> Any:
        found = decide(team, mind, agent, memory, number, last, seen)
        return (memory, found.state), found.scores, found.offered, found.allowed

    def open_(team: Team, agent: Array, first: PyTree) -> Any:
        first = _observed(team, first, marks)
        memory = team.problem.init_memory(agent, first)
        return thought(team, memory, team.policy.start_agent(), agent, jnp.int32(0), jnp.int32(-1), first)

    def move(
        team: Team, agent: Array, number: Array, action: Array, seen: PyTree, marks: MarkedInputs, state: PyTree
    ) -> Any:
        seen = _observed(team, seen, marks)
        memory = team.problem.update_memory(state[0], agent, action, seen)
        return thought(team, memory, state[1], agent, number, action, seen)

    which, count = (jnp.int32(0), (0, problem.agents - 1)), (jnp.int32(0), (0, problem.horizon - 1))
    act = jnp.int32(0), (0, problem.actions - 1)
    state = jax.eval_shape(lambda: open_(team, jnp.int32(0), reading)[0])
    return {
        "open": _trace(team, open_, named, tensors, [which, (reading, None)]),
        "move": _trace(team, move, named, tensors, [which, count, act, (reading, None), (marks, None), (state, None)]),
    }


def inference_functions(
    team: Team, named: dict[str, Any], tensors: dict[str, np.ndarray], misses: bool
) -> dict[str, Any]:
    """The state after the first observations, after one more round, and the answer from a state.

    With `misses`, readings of that round may be missing.
    """
    readings, marks = _zeros(team.problem), (jnp.ones(team.problem.agents, bool),) * 2 * misses
    team = _saying(team, misses)
    problem = team.problem
    begin_from, add_seen, scores = (_network if isinstance(team.inference, NetworkInference) else _belief)()

    def begin(team: Team, first: PyTree) -> PyTree:
        return begin_from(team, _observed(team, first, marks))

    def add(team: Team, actions: Array, readings: PyTree, marks: MarkedInputs, state: PyTree) -> PyTree:
        return add_seen(team, actions, _observed(team, readings, marks), state)

    def answer(team: Team, state: PyTree) -> tuple[Array, ...]:
        space, found = team.problem.hypotheses, scores(team, state)
        probabilities = jnp.exp(space.log_probabilities(found))
        return found, probabilities, space.decide(found).astype(jnp.int32), space.confidence(found)

    state = jax.eval_shape(lambda: begin(team, readings))
    acted = jnp.zeros(problem.agents, jnp.int32), (0, problem.actions - 1)
    return {
        "begin": _trace(team, begin, named, tensors, [(readings, None)]),
        "add": _trace(team, add, named, tensors, [acted, (readings, None), (marks, None), (state, None)]),
        "answer": _trace(team, answer, named, tensors, [(state, None)]),
    }


def _network() -> tuple[Callable[..., Any], ...]:
    """The state is what the network reads next: the memories, and its own state before it reads them.

    So the scores are computed for the last round only.
    """

    def begin(team: Any, first: PyTree) -> PyTree:
        memories = jax.vmap(team.problem.init_memory)(jnp.arange(team.problem.agents), first)
        return memories, team.inference.start(team.problem)

    def add(team: Any, actions: Array, readings: PyTree, state: PyTree) -> PyTree:
        memories, mind = state
        mind, _ = team.inference.network.step(mind, team.problem.team_features(memories))
        agents = jnp.arange(team.problem.agents)
        return jax.vmap(team.problem.update_memory)(memories, agents, actions, readings), mind

    def scores(team: Any, state: PyTree) -> Array:
        found: Array = team.inference.network.step(state[1], team.problem.team_features(state[0]))[1]
        return found

    return begin, add, scores


def _belief() -> tuple[Callable[..., Any], ...]:
    """The state is the belief."""

    def begin(team: Any, first: PyTree) -> PyTree:
        return team.inference.belief(team.problem, first)

    def add(team: Any, actions: Array, readings: PyTree, state: PyTree) -> PyTree:
        return team.inference.update(team.problem, state, actions, readings)

    def scores(team: Any, state: PyTree) -> Array:
        found: Array = team.inference.scores(team.problem, state)
        return found

    return begin, add, scores


def _trace(
    team: Team,
    function: Callable[..., Any],
    named: dict[str, Any],
    tensors: dict[str, np.ndarray],
    inputs: Sequence[tuple[PyTree, Bounds | None]],
) -> dict[str, Any]:
    """The program of a function of a team and inputs; `named` are the team's tensors by their names in its file."""
    leaves, structure = jax.tree.flatten(team)
    places = {id(leaf): name for name, leaf in named.items()}
    names = {i: places[id(leaf)] for i, leaf in enumerate(leaves) if id(leaf) in places}

    def call(weights: dict[int, Array], *values: PyTree) -> Any:
        return function(jax.tree.unflatten(structure, [weights.get(i, x) for i, x in enumerate(leaves)]), *values)

    weights = {i: leaves[i] for i in names}
    closed = jax.make_jaxpr(call)(weights, *(value for value, _ in inputs))
    build = Builder(tensors)
    given: list[Node | Refusal] = [build.tensor(names[i], _kind(leaves[i])) for i in sorted(weights)]
    for value, bounds in inputs:
        given += [build.input(_kind(leaf), bounds) for leaf in jax.tree.leaves(value)]
    outputs = lower(build, closed.jaxpr, closed.consts, given)
    refused = [output for output in outputs if isinstance(output, Refusal)]
    if refused:
        raise CannotTrace(refused[0].reason)
    return build.describe([output for output in outputs if isinstance(output, Node)])


def _kind(leaf: Any) -> Any:
    kind = kind_of(leaf)
    if kind is None:
        raise CannotTrace(f"programs have no numbers of type {leaf.dtype}")
    return kind


def _saying(team: Team, misses: bool) -> Team:
    """A team whose problem says what is missing, if readings may be."""
    return replace(team, problem=takes_missing(team.problem)) if misses else team


def _observed(team: Team, reading: PyTree, marks: MarkedInputs) -> PyTree:
    """Readings as the problem of a team has them."""
    return received(team.problem, reading, Marks(*marks)) if marks else reading


def _zeros(problem: Problem) -> PyTree:
    """A joint observation of zeros, without marks of what is missing."""
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), observation_layout(reliable(problem)))


def _row(joint: PyTree) -> PyTree:
    """One agent's part of a joint observation."""
    return jax.tree.map(lambda x: x[0], joint)
