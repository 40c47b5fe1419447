"""The contract of a problem: what is unknown, what can be tried, what is seen and remembered.

Every function is pure and written for one world; `vmap` is applied outside. A problem is a frozen pytree: its sizes are
static, the parameters of its prior are leaves, so that a sweep over a prior is a `vmap` over problems.
"""

import inspect
from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer, Key, PyTree

from icmape.errors import UserError
from icmape.problem.hypotheses import HypothesisSpace

RENAMED = {
    "memory": "init_memory",
    "remember": "update_memory",
    "view": "features",
    "team_view": "team_features",
    "allowed": "action_mask",
    "offered": "learner_action_mask",
}


class Features(NamedTuple):
    """What a network reads at one round: a token for the recurrent encoder, and a grid where the problem has one."""

    token: Float[Array, "features"]
    grid: Float[Array, "channels rows columns"] | None = None


class Problem(eqx.Module):
    """A prior over worlds, a way to sample from them, and the question asked of them.

    A subclass sets the four fields and writes `sample`, `start`, `step`, `init_memory`, `update_memory` and `features`;
    the rest is optional. Every argument of its constructor must be readable as an attribute of the same name (see
    `arguments`), so that a saved team can name its problem. `check_problem` tells what is wrong with one.
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

    def __init_subclass__(cls, **options: Any) -> None:
        """Refuse what methods were called before version 0.11, with the new name."""
        super().__init_subclass__(**options)
        for old, new in RENAMED.items():
            if old in vars(cls):
                raise TypeError(f"{cls.__name__}.{old} is called {new} now")

    @classmethod
    def found_locally(cls) -> dict[str, Any]:
        """Arguments among LOCAL whose usual place on this machine holds something."""
        return {}

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
    def init_memory(self, agent: Integer[Array, ""], observation: PyTree) -> PyTree:
        """What an agent remembers after its first observation."""

    @abstractmethod
    def update_memory(
        self, memory: PyTree, agent: Integer[Array, ""], action: Integer[Array, ""], observation: PyTree
    ) -> PyTree:
        """Memory after one more round of the agent's own."""

    @abstractmethod
    def features(self, memory: PyTree) -> Features:
        """What an actor reads of its own memory."""

    def action_mask(self, memory: PyTree) -> Bool[Array, "actions"]:
        """The actions that an agent with this memory may take: it must know that by itself."""
        return jnp.ones(self.actions, bool)

    def learner_action_mask(self, memory: PyTree) -> Bool[Array, "actions"]:
        """Those among them that learners choose from: all, unless some are known to be of no use to them."""
        return self.action_mask(memory)

    def team_features(self, memories: PyTree) -> Features:
        """What critic and inference read of all memories (leading agent axis): tokens and channels side by side."""
        views = jax.vmap(self.features)(memories)
        grid = views.grid
        return Features(
            views.token.reshape(-1),
            None if grid is None else grid.reshape((-1, *grid.shape[2:])),
        )

    # -- seen from outside

    @property
    def unwrapped(self) -> "Problem":
        """The problem without any adapter around it."""
        return self

    def agent_actions(self, actions: Integer[Array | np.ndarray, "*batch agents"]) -> Int[np.ndarray, "*batch agents"]:
        """Actions (and STOP) of the agents of the unwrapped problem, made of stored ones."""
        return np.asarray(actions).astype(np.int32)

    def agent_observations(self, observations: PyTree) -> PyTree:
        """What each of these agents saw, made of stored observations of one episode."""
        return observations

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

    def answer_name(self, answer: Any) -> str:
        """What an answer (a decision, or a true hypothesis) is called where people read it."""
        values = np.asarray(answer)
        return str(values.item()) if values.ndim == 0 else ", ".join(map(str, values.tolist()))

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

    @property
    def has_own_beliefs(self) -> bool:
        """Whether one agent's data alone make a posterior: if there is one agent, or `update_own_belief` is written."""
        return self.agents == 1 or type(self).update_own_belief is not Problem.update_own_belief

    def own_belief(self, agent: Integer[Array, ""], first: PyTree) -> PyTree:
        """Belief of one agent after its first observation: the prior, unless it is the only agent."""
        return self.belief(_alone(first)) if self.agents == 1 else self.belief()

    def update_own_belief(
        self, belief: PyTree, agent: Integer[Array, ""], action: Integer[Array, ""], observation: PyTree
    ) -> PyTree:
        """Belief of one agent after one more round of its own, whatever the others do."""
        if self.agents > 1:
            raise UserError(
                f"{type(self).__name__} has no posterior of one agent's data alone: write update_own_belief(belief, "
                "agent, action, observation) for it"
            )
        return self.update_belief(belief, action[None], _alone(observation))

    @property
    def has_payoff(self) -> bool:
        """Whether `payoff` is written."""
        return type(self).payoff is not Problem.payoff

    def payoff(self, world: Any, observation: PyTree) -> Float[Array, ""]:
        """The environment's own reward in a round."""
        raise UserError(f"{type(self).__name__} has no environment reward")


def _alone(tree: PyTree) -> PyTree:
    """The rows of a team of one."""
    return jax.tree.map(lambda row: row[None], tree)


def check_worlds(problem: Problem) -> None:
    """Refuse a problem whose worlds come from data that is not at hand."""
    if not problem.has_worlds:
        raise UserError(
            f"the worlds of this {type(problem).__name__} come from measurements that its file does not hold (to act "
            f"on new readings none are needed; in Python: load(..., data=[folder])). {problem.unwrapped.WORLDS_FROM}"
        )


def arguments(problem: Problem) -> dict[str, Any]:
    """The constructor's arguments that make this problem again, as plain values."""
    names = [p.name for p in inspect.signature(type(problem)).parameters.values()]
    return {name: _plain(getattr(problem, name)) for name in names}


def _plain(value: Any) -> Any:
    if isinstance(value, jax.Array | np.ndarray | np.generic):
        array = np.asarray(value)
        if array.ndim > 0:
            return [_plain(item) for item in array]
        # the shortest decimal that is the same float32: 0.3, not 0.30000001192
        return float(str(array[()])) if array.dtype.kind == "f" else array.item()
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
