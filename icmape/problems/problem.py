"""The contract of a problem: what is unknown, what can be tried, what is seen and remembered.

Every function is pure and written for one world; `vmap` is applied outside. A problem is a frozen pytree: its sizes are
static, the parameters of its prior are leaves, so that a sweep over a prior is a `vmap` over problems.
"""

import importlib
import inspect
import json
from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer, Key, PyTree

from icmape.errors import UserError
from icmape.problems.hypotheses import HypothesisSpace


class View(NamedTuple):
    """What a network reads at one round: a token for the recurrent encoder, and a grid where the problem has one."""

    token: Float[Array, "features"]
    grid: Float[Array, "channels rows columns"] | None = None


class Problem(eqx.Module):
    """A prior over worlds, a way to sample from them, and the question asked of them.

    A subclass sets the four fields and writes `sample`, `start`, `step`, `memory`, `remember` and `view`; the rest is
    optional. Every argument of its constructor must be readable as an attribute of the same name (see `arguments`), so
    that a saved team can name its problem. `check_problem` tells what is wrong with one.
    """

    agents: eqx.AbstractVar[int]
    actions: eqx.AbstractVar[int]  # of each agent, STOP not counted
    horizon: eqx.AbstractVar[int]  # T: STOP is forced in round T-1
    hypotheses: eqx.AbstractVar[HypothesisSpace]

    UNSAID: ClassVar[dict[str, Any]] = {}
    """Arguments that files from before they existed leave out, and what was meant."""
    LOCAL: ClassVar[frozenset[str]] = frozenset()
    """Arguments that name things of this machine, such as files of data: a team's file leaves them out (as None)."""
    WORLDS_FROM: ClassVar[str] = ""
    """Where such things are to be had, for those who lack them."""

    # -- the world

    @abstractmethod
    def sample(self, *, key: Key[Array, ""]) -> Any:
        """A world M ~ P: any pytree with an attribute `hypothesis` (H*). The agents never see it."""

    @abstractmethod
    def start(self, world: Any, *, key: Key[Array, ""]) -> tuple[PyTree, PyTree]:
        """The state before round 0 and the first joint observation, which may carry nothing."""

    @abstractmethod
    def step(
        self, world: Any, state: PyTree, actions: Int[Array, "agents"], *, key: Key[Array, ""]
    ) -> tuple[PyTree, PyTree]:
        """Execute a joint action: the next state and the joint observation.

        Observations are pytrees in storage types (int8, float16 ...) with a leading agent axis; agent i sees `obs[i]`
        and nothing else.
        """

    # -- what is remembered, in running sums or tokens, never recomputed from the start

    @abstractmethod
    def memory(self, agent: Integer[Array, ""], observation: PyTree) -> PyTree:
        """What an agent remembers after its first observation."""

    @abstractmethod
    def remember(
        self, memory: PyTree, agent: Integer[Array, ""], action: Integer[Array, ""], observation: PyTree
    ) -> PyTree:
        """Memory after one more round of the agent's own."""

    @abstractmethod
    def view(self, memory: PyTree) -> View:
        """What an actor reads of its own memory."""

    def allowed(self, memory: PyTree) -> Bool[Array, "actions"]:
        """The actions that an agent with this memory may take: it must know that by itself."""
        return jnp.ones(self.actions, bool)

    def offered(self, memory: PyTree) -> Bool[Array, "actions"]:
        """Those among them that learners choose from: all, unless some are known to be of no use to them."""
        return self.allowed(memory)

    def team_view(self, memories: PyTree) -> View:
        """What critic and inference read of all memories (leading agent axis): tokens and channels side by side."""
        views = jax.vmap(self.view)(memories)
        grid = views.grid
        return View(
            views.token.reshape(-1),
            None if grid is None else grid.reshape((-1, *grid.shape[2:])),
        )

    # -- optional

    @property
    def readings(self) -> int:
        """Single readings that one action of one agent returns."""
        return 1

    @property
    def first_readings(self) -> int:
        """Single readings that each agent has before round 0."""
        return 0

    @property
    def shows_first(self) -> bool:
        """Whether the first observation says anything, so that no agent can act without it."""
        return False

    @property
    def cells(self) -> Int[np.ndarray, "hypotheses"] | None:
        """Where hypotheses are places on the views' grid: the cell of each, counted row by row."""
        return None

    @property
    def remark(self) -> str:
        """What whoever reads a number about it must know of its worlds, in a word or two."""
        return ""

    def action_name(self, action: int) -> str:
        """What an action is called where people read it."""
        return str(action)

    @property
    def given(self) -> str:
        """What the prior over worlds is conditional on, in words: data that they are made from."""
        return ""

    @property
    def has_worlds(self) -> bool:
        """Whether worlds can be drawn: not where they come from data that is not at hand."""
        return True

    @property
    def fixed_ground(self) -> bool:
        """Whether a cell of the grid is the same place in every world, so that there is something to know about it."""
        return False

    @property
    def paper_inference(self) -> str:
        """The kind of inference network that the paper uses for it: recurrent, or convolutional where it has cells."""
        return "recurrent"

    @property
    def patch(self) -> int:
        """Side of the tiles in which encoders read a grid: what changes together, such as a window that is seen."""
        return 5

    @property
    def posterior(self) -> str:
        """Whether `log_posterior` is "exact" for this prior, "misspecified" (computed for another one), or "none"."""
        return "none"

    def belief(self, first: PyTree | None = None) -> PyTree:
        """Sufficient statistics of the exact posterior: before any data, or after the first observation."""
        raise UserError(f"{type(self).__name__} has no exact posterior")

    def update_belief(self, belief: PyTree, actions: Integer[Array, "agents"], observation: PyTree) -> PyTree:
        """Belief after one more round of everyone."""
        raise UserError(f"{type(self).__name__} has no exact posterior")

    def log_posterior(self, belief: PyTree) -> Float[Array, "..."]:
        """Scores over the hypotheses, as the hypothesis space reads them: log-probabilities, or log-odds for TopK."""
        raise UserError(f"{type(self).__name__} has no exact posterior")

    def payoff(self, world: Any, observation: PyTree) -> Float[Array, ""]:
        """The environment's own reward in a round."""
        raise UserError(f"{type(self).__name__} has no environment reward")


def inner_of(problem: Any) -> Problem:
    """The problem itself, or the one inside an adapter."""
    inner: Problem = getattr(problem, "problem", problem)
    return inner


def check_worlds(problem: Problem) -> None:
    """Refuse a problem whose worlds come from data that is not at hand."""
    if not problem.has_worlds:
        raise UserError(
            f"the worlds of this {type(problem).__name__} come from measurements that its file does not hold (to act "
            f"on new readings none are needed; in Python: load(..., data=[folder])). {inner_of(problem).WORLDS_FROM}"
        )


def arguments(problem: Problem) -> dict[str, Any]:
    """The constructor's arguments that make this problem again, as plain values."""
    names = [p.name for p in inspect.signature(type(problem)).parameters.values()]
    return {name: _plain(getattr(problem, name)) for name in names}


def _plain(value: Any) -> Any:
    if isinstance(value, jax.Array | np.ndarray | np.generic):
        array = np.asarray(value)
        # the shortest decimal that is the same float32: 0.3, not 0.30000001192
        return float(str(array[()])) if array.ndim == 0 and array.dtype.kind == "f" else array.tolist()
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def load_class(path: str) -> type[Problem]:
    """The problem class that `module:Class` names."""
    module_name, _, class_name = path.partition(":")
    if not class_name or not module_name:
        raise UserError(f"--problem {path}: expected module:Class, for example my_package.my_module:MyProblem")
    try:
        found = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, TypeError, ValueError) as error:
        raise UserError(f"--problem {path}: cannot import {module_name} ({error}); is it on PYTHONPATH?") from error
    except AttributeError as error:
        raise UserError(f"--problem {path}: {module_name} has no class {class_name}") from error
    if not (isinstance(found, type) and issubclass(found, Problem)):
        raise UserError(f"--problem {path}: {class_name} is not a subclass of icmape.Problem")
    return found


def check_problem(problem: Problem) -> None:
    """Run one world under jit and raise `UserError` with everything that breaks the contract."""
    if not isinstance(problem, Problem):
        raise UserError(f"expected an instance of a subclass of icmape.Problem; given {problem!r}")
    faults = _size_faults(problem)
    if not faults:
        try:
            faults = _start_faults(problem) or _episode_faults(problem)
        except UserError:
            raise
        except Exception as error:  # the author's own code may fail in any way: name it instead of hiding it
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
    """An adapter's argument is a problem, which has plain arguments of its own."""
    if isinstance(value, Problem):
        return arguments(value)
    raise TypeError(f"{type(value).__name__} is not a plain value")


def _start_faults(problem: Problem) -> list[str]:
    """What is seen first, before anything is mapped over it."""

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

    @jax.jit  # as training does: what is not an array must be a static field
    def one_round(problem: Problem) -> tuple:
        world = problem.sample(key=key)
        state, first = problem.start(world, key=key)
        memories = jax.vmap(problem.memory)(agents, first)
        allowed, offered = jax.vmap(problem.allowed)(memories), jax.vmap(problem.offered)(memories)
        actions = jnp.argmax(offered, axis=1)
        after, observation = problem.step(world, state, actions, key=key)
        later = jax.vmap(problem.remember)(memories, agents, actions, observation)
        views = jax.vmap(problem.view)(memories), jax.vmap(problem.view)(later)
        teams = problem.team_view(memories), problem.team_view(later)
        scores = jnp.zeros(problem.hypotheses.shape)
        likelihood = problem.hypotheses.log_likelihood(scores, world.hypothesis)
        return (allowed, offered), (state, after), (first, observation), (memories, later), views, teams, likelihood

    masks, states, observations, memories, views, teams, _ = one_round(problem)
    faults = []
    for name, mask in zip(("allowed", "offered"), masks, strict=True):
        if mask.shape != (problem.agents, problem.actions) or mask.dtype != bool:
            faults.append(f"{name}() must be bool ({problem.actions},); it is {mask.dtype} {mask.shape[1:]}")
        elif not bool(jnp.all(jnp.any(mask, axis=1))):
            faults.append(f"{name}() leaves an agent without any action")
    pairs = {"state": states, "observation": observations, "memory": memories, "view": views, "team view": teams}
    for name, (before, after) in pairs.items():
        if _layout(before) != _layout(after):
            faults.append(f"{name} changes its structure, shapes or types between rounds")
    faults += _grid_faults(problem, views[0].grid, teams[0].grid)
    return faults + (_belief_faults(problem, observations) if problem.posterior != "none" else [])


def _grid_faults(problem: Problem, own: Array | None, team: Array | None) -> list[str]:
    """Maps are channels, rows and columns; those of the team lie on the same grid, and so do hypotheses with cells."""
    if team is None:
        faults = [] if own is None else ["an agent's view has a grid and the team's has none"]
        return faults + (["cells are places on a grid, but team_view has none"] if problem.cells is not None else [])
    if team.ndim != 3 or (own is not None and (own.ndim != 4 or own.shape[2:] != team.shape[1:])):
        shapes = f"{None if own is None else own.shape[1:]} and {team.shape}"
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
    same = _layout(before) == _layout(belief) == _layout(later)
    faults = [] if same else ["belief changes its structure, shapes or types"]
    if scores.shape != problem.hypotheses.shape:
        faults.append(f"log_posterior must have the shape {problem.hypotheses.shape}")
    return faults


def _layout(tree: PyTree) -> tuple:
    leaves, structure = jax.tree.flatten(tree)
    return structure, [(jnp.shape(leaf), jnp.result_type(leaf)) for leaf in leaves]
