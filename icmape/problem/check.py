"""Check that a problem fulfils its contract: run one world, and test an exact posterior in simulations."""

import json
from math import prod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key, PyTree

from icmape.compiling import ONCE, compiled
from icmape.errors import UserError
from icmape.problem.contract import Problem, arguments
from icmape.problem.hypotheses import HypothesisSpace
from icmape.problem.ranges import observation_layout
from icmape.problem.simulate import random_rounds, range_faults
from icmape_agent.display import check_display, describe_display

WORLDS = 4096  # in which a posterior is tested
LARGE = 2**16  # bytes of a belief or a world, above which the test would take too long
ERRORS = 4.5  # standard errors between confidence and accuracy; a false alarm has probability 1e-5

_SIMULATED: dict[tuple[str, type, type, str], list[str]] = {}


def check_problem(problem: Problem, *, simulate: bool = True) -> None:
    """Run one world under jit and raise `UserError` with all violations of the contract.

    If the posterior is declared exact and its belief is small, `simulate` also plays a few thousand worlds with random
    actions: the mean confidence must equal the accuracy. This is done once per problem and process.
    """
    if not isinstance(problem, Problem):
        raise UserError(f"expected an instance of a subclass of icmape.Problem; given {problem!r}")
    faults = _size_faults(problem)
    if not faults:
        try:
            faults = _start_faults(problem) or _episode_faults(problem) + _display_faults(problem)
            if simulate and not faults:
                faults = _range_faults(problem) or _posterior_faults(problem)
        except UserError:
            raise
        except Exception as error:  # the author's code may raise anything: report it
            faults = [f"one world could not be run under jit: {type(error).__name__}: {error}"]
    if faults:
        raise UserError(f"{type(problem).__name__} breaks the contract of a problem: " + "; ".join(faults))


def _size_faults(problem: Problem) -> list[str]:
    faults = []
    for name, least in (("agents", 1), ("actions", 1), ("horizon", 2)):
        value = getattr(problem, name, None)
        if not isinstance(value, int) or value < least:
            faults.append(f"{name} must be an int of at least {least}, and static; it is {value!r}")
    if not isinstance(getattr(problem, "hypotheses", None), HypothesisSpace):
        faults.append("hypotheses must be a HypothesisSpace (Categorical, Factored, TopK)")
    try:
        again = type(problem)(**arguments(problem))
        if not eqx.tree_equal(problem, again, typematch=True):
            faults.append("building it again from `arguments(problem)` gives another problem")
        json.dumps(arguments(problem), default=_inner_arguments)
    except (AttributeError, TypeError) as error:
        faults.append(f"every constructor argument must be a plain value and an attribute of the same name ({error})")
        return faults
    for inside in arguments(problem).values():
        if isinstance(inside, Problem):
            faults += [f"the {type(inside).__name__} inside: {fault}" for fault in _size_faults(inside)]
    return faults


def _inner_arguments(value: Any) -> Any:
    """The arguments of a problem that is itself an argument of an adapter."""
    if isinstance(value, Problem):
        return arguments(value)
    raise TypeError(f"{type(value).__name__} is not a plain value")


def _start_faults(problem: Problem) -> list[str]:
    """Faults of the first observation and of the hypothesis, found before anything is vmapped over them."""

    def begin(key: Key[Array, ""]) -> tuple:
        world = problem.sample(key=key)
        return problem.start(world, key=key)[1], world.hypothesis

    first, truth = jax.eval_shape(begin, jax.random.key(0))
    faults = [
        f"observations need a leading agent axis of {problem.agents}; one has shape {leaf.shape}"
        for leaf in jax.tree.leaves(first)
        if leaf.shape[:1] != (problem.agents,)
    ]
    if not jnp.issubdtype(truth.dtype, jnp.integer):
        faults.append(f"world.hypothesis must be of an integer type; it is {truth.dtype}")
    return faults


def _episode_faults(problem: Problem) -> list[str]:
    key = jax.random.key(0)
    agents = jnp.arange(problem.agents)

    @jax.jit  # as in training: a field that is not an array must be static
    def one_round(problem: Problem) -> tuple:
        world = problem.sample(key=key)
        state, first = problem.start(world, key=key)
        memories = jax.vmap(problem.init_memory)(agents, first)
        allowed, offered = jax.vmap(problem.action_mask)(memories), jax.vmap(problem.learner_action_mask)(memories)
        actions = jnp.argmax(offered, axis=1)
        after, observation = problem.step(world, state, actions, key=key)
        later = jax.vmap(problem.update_memory)(memories, agents, actions, observation)
        views = jax.vmap(problem.features)(memories), jax.vmap(problem.features)(later)
        teams = problem.team_features(memories), problem.team_features(later)
        scores = jnp.zeros(problem.hypotheses.shape)
        likelihood = problem.hypotheses.log_likelihood(scores, world.hypothesis)
        return (allowed, offered), (state, after), (first, observation), (memories, later), views, teams, likelihood

    masks, states, observations, memories, views, teams, _ = one_round(problem)
    faults = []
    for name, mask in zip(("action_mask", "learner_action_mask"), masks, strict=True):
        if mask.shape != (problem.agents, problem.actions) or mask.dtype != bool:
            faults.append(f"{name}() must be bool ({problem.actions},); it is {mask.dtype} {mask.shape[1:]}")
        elif not bool(jnp.all(jnp.any(mask, axis=1))):
            faults.append(f"{name}() leaves an agent without any action")
    pairs = {
        "state": states,
        "observation": observations,
        "memory": memories,
        "features": views,
        "team features": teams,
    }
    for name, (before, after) in pairs.items():
        if layout(before) != layout(after):
            faults.append(f"{name} changes its structure, shapes or types between rounds")
    faults += _grid_faults(problem, views[0].grid, teams[0].grid)
    return faults + (_belief_faults(problem, observations) if problem.posterior != "none" else [])


def _display_faults(problem: Problem) -> list[str]:
    """Faults of what people are shown."""
    shapes = [leaf.shape[1:] for leaf in jax.tree.leaves(observation_layout(problem))]
    try:
        check_display(describe_display(problem.display), problem, shapes, prod(problem.hypotheses.shape))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        return [f"its display does not fit: {error}"]
    return []


def _grid_faults(problem: Problem, agent: Array | None, team: Array | None) -> list[str]:
    """Grids are (channels, rows, columns). Agents, team and the cells of hypotheses share rows and columns."""
    if team is None:
        faults = [] if agent is None else ["an agent's features have a grid and the team's have none"]
        return faults + (
            ["cells are places on a grid, but team_features has none"] if problem.cells is not None else []
        )
    if team.ndim != 3 or (agent is not None and (agent.ndim != 4 or agent.shape[2:] != team.shape[1:])):
        shapes = f"{None if agent is None else agent.shape[1:]} and {team.shape}"
        return [f"grids must be channels, rows, columns, the same for all; they are {shapes}"]
    cells, size = problem.cells, team.shape[1] * team.shape[2]
    if cells is not None and (cells.shape != problem.hypotheses.shape or cells.min() < 0 or cells.max() >= size):
        return [f"cells must name a cell of the grid (0..{size - 1}) for each of {problem.hypotheses.shape} hypotheses"]
    return []


def _belief_faults(problem: Problem, observations: tuple) -> list[str]:
    def beliefs(problem: Problem) -> tuple:
        before, belief = problem.belief(), problem.belief(observations[0])
        later = problem.update_belief(belief, jnp.zeros(problem.agents, jnp.int32), observations[1])
        return before, belief, later, problem.log_posterior(before)

    before, belief, later, scores = jax.eval_shape(beliefs, problem)
    same = layout(before) == layout(belief) == layout(later)
    faults = [] if same else ["belief changes its structure, shapes or types"]
    if scores.shape != problem.hypotheses.shape:
        faults.append(f"log_posterior must have the shape {problem.hypotheses.shape}")
    return faults


def _range_faults(problem: Problem) -> list[str]:
    """Compare simulated observations with their declared range, once per problem and process."""
    cache_key = ("range", *_identity(problem))
    if cache_key not in _SIMULATED and problem.has_worlds:
        _SIMULATED[cache_key] = range_faults(problem)
    return _SIMULATED.get(cache_key, [])


def _identity(problem: Problem) -> tuple[type, type, str]:
    return type(problem), type(problem.unwrapped), json.dumps(arguments(problem), default=_inner_arguments)


def _posterior_faults(problem: Problem) -> list[str]:
    """Compare confidence with accuracy, if the posterior is declared exact and the test is cheap."""
    if problem.posterior != "exact" or not problem.has_worlds:
        return []
    key = jax.random.key(0)
    if max(map(tree_bytes, jax.eval_shape(lambda: (problem.belief(), problem.sample(key=key))))) > LARGE:
        return []
    cache_key = ("posterior", *_identity(problem))
    if cache_key not in _SIMULATED:
        confidence, correct = map(np.asarray, _simulated(problem, jax.random.split(key, WORLDS)))
        _SIMULATED[cache_key] = _gap_faults(confidence, correct)
    return _SIMULATED[cache_key]


def _gap_faults(
    confidence: Float[np.ndarray, "worlds rounds"], correct: Bool[np.ndarray, "worlds rounds"]
) -> list[str]:
    """Report the worst round in which confidence and accuracy differ by more than sampling noise.

    The bound is Bernstein's, because rare errors are not normally distributed.
    """
    sure = confidence.astype(np.float64)
    if not np.all(np.isfinite(sure)):
        return ["log_posterior gives no finite confidence after a few rounds of random actions"]
    gap = np.abs(np.sum(correct - sure, axis=0))
    spread = np.sqrt(np.sum(np.maximum(sure * (1 - sure), 0.0), axis=0))
    beyond = gap - (ERRORS * spread + ERRORS**2 / 3)
    worst = int(np.argmax(beyond))
    if beyond[worst] <= 0:
        return []
    return [
        f"its posterior is not exact: after {worst} rounds of random actions in {len(sure):,} worlds its mean "
        f"confidence is {sure[:, worst].mean():.3f} and its accuracy {correct[:, worst].mean():.3f}, which are equal "
        'for an exact one (one that is meant to differ is "misspecified")'
    ]


@compiled(ONCE)
def _simulated(
    problem: Problem, keys: Key[Array, "worlds"]
) -> tuple[Float[Array, "worlds rounds"], Bool[Array, "worlds rounds"]]:
    """Confidence of the posterior and correctness of its answer, before each of a few rounds of random actions."""
    space = problem.hypotheses

    def judge(belief: PyTree, truth: Array) -> tuple[Array, Array]:
        scores = problem.log_posterior(belief)
        sure = jnp.where(jnp.any(jnp.isnan(scores)), jnp.nan, space.confidence(scores))
        return sure, space.correct(space.decide(scores), truth)

    def play_world(key: Key[Array, ""]) -> tuple[Array, Array]:
        world, first, actions, seen = random_rounds(problem, key)

        def advance(belief: PyTree, taken: tuple) -> tuple[PyTree, tuple[Array, Array]]:
            belief = problem.update_belief(belief, *taken)
            return belief, judge(belief, world.hypothesis)

        belief = problem.belief(first)
        _, later = jax.lax.scan(advance, belief, (actions, seen))
        return jax.tree.map(lambda x, xs: jnp.append(x[None], xs), judge(belief, world.hypothesis), later)

    return jax.vmap(play_world)(keys)


def tree_bytes(tree: PyTree) -> int:
    """Memory of all leaves (arrays or their shapes)."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def layout(tree: PyTree) -> tuple:
    """Structure of a pytree, and shape and type of each leaf."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, [(jnp.shape(leaf), jnp.result_type(leaf)) for leaf in leaves]
