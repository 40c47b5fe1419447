"""Worlds in which people play: what is hidden, the first observations, and what chance draws in every round.

World number n is that of the same number in `icmape evaluate`, with the same chances in every round, so that the
network's own episode there is the one that `icmape.play` plays.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from icmape.app.simulator import simulator
from icmape.errors import UserError
from icmape.evaluation.single import Played
from icmape.play.episodes import world_keys
from icmape.play.rollout import Episode, action_type
from icmape.play.team import Team
from icmape.plot.drawing import Drawing
from icmape.plot.drawings import drawing_of
from icmape.problem import Problem
from icmape.problem.unreliable import reliable

MOST_FACTS = 12  # numbers of a part of the world that are shown as text
DIGITS = 3


class Worlds(NamedTuple):
    """Worlds, and the program of a round in them."""

    function: dict[str, Any]
    constants: dict[str, np.ndarray]  # that the program reads
    arrays: dict[str, list[np.ndarray]]
    """With a leading axis of worlds: the parts of "world", "state" (before round 0), "first" (the first joint
    observation) and "draws" (of each round)."""
    truths: list[dict[str, Any]]  # for people
    parts: list[str]  # names of the parts of an answer, if it has several
    values: list[str]  # and of their values
    shows: str  # what a posterior on a map means; empty without a map


def draw_worlds(team: Team, count: int, seed: int) -> Worlds:
    """Worlds 0 to count - 1 of this seed."""
    problem = team.problem
    if reliable(problem) is not problem or problem.unwrapped is not problem:
        raise UserError("in an app agents act for themselves, and nothing is lost: give a team of a plain problem")
    keys = world_keys(seed, jnp.arange(count))
    for_world, for_start, for_rounds = jnp.unstack(jax.vmap(lambda key: jax.random.split(key, 3))(keys), axis=1)
    # one by one, as in a batch the last bits of a field may differ
    world = jax.lax.map(lambda key: problem.sample(key=key), for_world)
    state, first = jax.vmap(lambda w, key: problem.start(w, key=key))(world, for_start)
    constants: dict[str, np.ndarray] = {}
    start: tuple[Any, Any] = jax.tree.map(lambda leaf: leaf[0], (world, state))
    round_ = simulator(problem, start[0], start[1], constants)

    def drawn(key: Any) -> list[Any]:
        """What chance draws in all rounds, from the keys of `icmape.play.rollout`."""
        steps = jax.vmap(lambda t: jax.random.split(jax.random.fold_in(key, t), 3)[2])(jnp.arange(problem.horizon - 1))
        return jax.vmap(round_.draw)(steps)

    trees = {"world": world, "state": state, "first": first, "draws": jax.jit(jax.vmap(drawn))(for_rounds)}
    arrays = {name: [np.asarray(leaf) for leaf in jax.tree.leaves(tree)] for name, tree in trees.items()}
    one = lambda tree, number: jax.tree.map(lambda leaf: np.asarray(leaf[number]), tree)  # noqa: E731
    drawings = [unplayed(team, one(world, number), one(first, number)) for number in range(count)]
    truths = [truth(drawing) for drawing in drawings]
    ground = drawings[0].ground()
    shows = "" if ground is None else ground.shows
    return Worlds(round_.function, constants, arrays, truths, *_names(drawings[0]), shows)


def unplayed(team: Team, world: Any, first: Any) -> Drawing:
    """The drawing of a world in which everybody stopped before any reading."""
    problem = team.problem
    scores = np.zeros((1, *problem.hypotheses.shape), np.float32)
    nothing = np.zeros(1, np.float32)
    episode = Episode(
        jnp.full((1, problem.agents), problem.actions, action_type(problem)),
        jax.tree.map(lambda leaf: leaf[None], first),
        jnp.zeros(1, bool),
        jnp.int32(0),
        world.hypothesis,
        jnp.array(True),
    )
    decision = np.asarray(problem.hypotheses.decide(jnp.asarray(scores[0])))[None]
    parts = (scores, nothing, decision, nothing, team.delta, team.stop.kind, team.inference.kind, scores[0])
    return drawing_of(Played(problem, world, episode, *parts))


def truth(drawing: Drawing) -> dict[str, Any]:
    """What people are shown of a world afterwards."""
    problem, world = drawing.played.problem, drawing.played.world
    return {
        "answer": drawing.answer(world.hypothesis),
        "hypothesis": np.atleast_1d(world.hypothesis).tolist(),
        "marks": _marks(drawing),
        "facts": [fact for name, leaf in _parts(world) if (fact := _fact(drawing.hidden(name), leaf))],
        "fields": [[name, [digits(x) for x in leaf]] for name, leaf in _parts(world) if _is_field(problem, leaf)],
    }


def _names(drawing: Drawing) -> tuple[list[str], list[str]]:
    """Names of the parts of an answer and of their values, if there are several parts."""
    shape = drawing.played.problem.hypotheses.shape
    if len(shape) < 2:
        return [], []
    return [drawing.part(part) for part in range(shape[0])], [drawing.value(value) for value in range(shape[1])]


def digits(value: Any) -> float | None:
    """A rounded number; none if it is not finite."""
    return float(f"{float(value):.{DIGITS}g}") if math.isfinite(value) else None


def _marks(drawing: Drawing) -> list[list[Any]]:
    """Hidden places and what they are, by the number of the hypothesis that stands for the place."""
    ground = drawing.ground()
    return [] if ground is None else [[ground.cells.index(cell), label] for cell, label in ground.truths]


def _parts(world: Any) -> list[tuple[str, np.ndarray]]:
    """Parts of a world by name, without the hypothesis."""
    named = jax.tree_util.tree_flatten_with_path(world)[0]
    keystr = jax.tree_util.keystr
    parts = [(keystr(path, simple=True, separator="."), np.asarray(leaf)) for path, leaf in named]
    return [(name, leaf) for name, leaf in parts if name != "hypothesis"]


def _fact(name: str, leaf: np.ndarray) -> list[str] | None:
    """A part of few numbers, in words."""
    is_number = leaf.dtype.kind == "f" and 0 < leaf.size <= MOST_FACTS
    return [name, ", ".join(f"{x:.{DIGITS - 1}f}" for x in leaf.reshape(-1))] if is_number else None


def _is_field(problem: Problem, leaf: np.ndarray) -> bool:
    """Whether a part of the world has a number for each action, too many for words."""
    return leaf.dtype.kind == "f" and leaf.shape == (problem.actions,) and leaf.size > MOST_FACTS
