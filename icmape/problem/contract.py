"""The contract of a problem: worlds, actions, observations, memory, hypotheses.

Every function is pure and written for one world; `vmap` is applied outside. A problem is a frozen pytree: its sizes are
static and the parameters of its prior are leaves, so that a sweep over a prior is a `vmap` over problems.
"""

import inspect
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer, Key, PyTree

from icmape.errors import UserError
from icmape.problem.hypotheses import HypothesisSpace
from icmape.problem.ranges import Range
from icmape_agent.display import Display

RENAMED = {
    "memory": "init_memory",
    "remember": "update_memory",
    "view": "features",
    "team_view": "team_features",
    "allowed": "action_mask",
    "offered": "learner_action_mask",
}


class Features(NamedTuple):
    """Inputs of a network at one round: a token for the recurrent encoder, and a grid if the problem has one."""

    token: Float[Array, "features"]
    grid: Float[Array, "channels rows columns"] | None = None
    fresh: Bool[Array, ""] | None = None  # if False, encoders keep their state; None: always fresh


class Problem(eqx.Module):
    """A prior over worlds, the dynamics of observations, and the hypotheses to identify.

    A subclass sets the four fields and writes `sample`, `start`, `step`, `init_memory`, `update_memory` and `features`;
    the rest is optional. Every argument of its constructor must be readable as an attribute of the same name (see
    `arguments`), so that a saved team can describe its problem. `check_problem` reports violations.
    """

    agents: eqx.AbstractVar[int]
    actions: eqx.AbstractVar[int]  # of each agent, without STOP
    horizon: eqx.AbstractVar[int]  # T: STOP is forced in round T-1
    hypotheses: eqx.AbstractVar[HypothesisSpace]

    UNSAID: ClassVar[dict[str, Any]] = {}
    """Values of arguments that older files do not contain."""
    LOCAL: ClassVar[frozenset[str]] = frozenset()
    """Arguments that refer to this machine, such as data files. Team files omit them (None)."""
    WORLDS_FROM: ClassVar[str] = ""
    """Where to get the local data, for error messages."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Refuse the names that methods had before version 0.11, and give the new ones."""
        super().__init_subclass__(**options)
        for old, new in RENAMED.items():
            if old in vars(cls):
                raise TypeError(f"{cls.__name__}.{old} is called {new} now")

    @classmethod
    def found_locally(cls) -> dict[str, Any]:
        """Values of LOCAL arguments whose default location exists on this machine."""
        return {}

    @classmethod
    def lacks(cls, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """The LOCAL arguments without which a problem of a file has no worlds. Nothing is built."""
        return ()

    # -- the world

    @abstractmethod
    def sample(self, *, key: Key[Array, ""]) -> Any:
        """A world M ~ P: any pytree with an attribute `hypothesis` (H*). The agents never see it."""

    @abstractmethod
    def start(self, world: Any, *, key: Key[Array, ""]) -> tuple[PyTree, PyTree]:
        """The state before round 0 and the first joint observation, which may be uninformative."""

    @abstractmethod
    def step(
        self, world: Any, state: PyTree, actions: Int[Array, "agents"], *, key: Key[Array, ""]
    ) -> tuple[PyTree, PyTree]:
        """Execute a joint action: the next state and the joint observation.

        Observations are pytrees in storage types (int8, float16 ...) with a leading agent axis. Agent i sees only
        `obs[i]`.
        """

    # -- memory, updated round by round

    @abstractmethod
    def init_memory(self, agent: Integer[Array, ""], observation: PyTree) -> PyTree:
        """The memory of an agent after its first observation."""

    @abstractmethod
    def update_memory(
        self, memory: PyTree, agent: Integer[Array, ""], action: Integer[Array, ""], observation: PyTree
    ) -> PyTree:
        """The memory of an agent after one more action and observation of its own."""

    @abstractmethod
    def features(self, memory: PyTree) -> Features:
        """The inputs of an actor, from its own memory."""

    def action_mask(self, memory: PyTree) -> Bool[Array, "actions"]:
        """The actions that an agent may take. They depend on its own memory only."""
        return jnp.ones(self.actions, bool)

    @property
    def has_action_mask(self) -> bool:
        """Whether `action_mask` is written, so that some actions may not be allowed."""
        return type(self).action_mask is not Problem.action_mask

    def learner_action_mask(self, memory: PyTree) -> Bool[Array, "actions"]:
        """The action mask in training: it may exclude allowed actions that are known to be useless."""
        return self.action_mask(memory)

    def team_features(self, memories: PyTree) -> Features:
        """The inputs of critic and inference, from all memories (leading agent axis): concatenated tokens and grids."""
        views = jax.vmap(self.features)(memories)
        grid = views.grid
        return Features(
            views.token.reshape(-1),
            None if grid is None else grid.reshape((-1, *grid.shape[2:])),
        )

    # -- what goes wrong (`Unreliable`)

    def miss_memory(self, memory: PyTree, agent: Integer[Array, ""], action: Integer[Array, ""]) -> PyTree:
        """The memory of an agent after an action whose reading never arrived; action -1: it did nothing.

        Its features must not show an earlier reading as a new one. The default is the memory as it was, for which
        `Unreliable` shows a token of zeros. Where features are sums of all readings, write this and return the memory.
        """
        return memory

    @property
    def reads_missed(self) -> bool:
        """Whether networks read the features of a round without a reading; otherwise encoders skip that round.

        They must if features tell something new, such as a position, or if agents keep time together to share out
        actions. Agents that skip rounds stop later, as they have fewer readings.
        """
        return False

    def step_some(
        self,
        world: Any,
        state: PyTree,
        actions: Int[Array, "agents"],
        acting: Bool[Array, "agents"],
        *,
        key: Key[Array, ""],
    ) -> tuple[PyTree, PyTree]:
        """As `step`, if only some agents act. By default the others act too, and their observations are dropped."""
        return self.step(world, state, actions, key=key)

    @property
    def agents_interact(self) -> bool:
        """Whether what an agent does changes what the readings of others say, so that they cannot be read without it.

        By default it does where `step_some` is written.
        """
        return self.agents > 1 and type(self).step_some is not Problem.step_some

    def stop_mask(self, memory: PyTree) -> Bool[Array, ""]:
        """Whether the STOP of an agent is heard."""
        return jnp.array(True)

    def relay(
        self, state: PyTree, chosen: Int[Array, "agents"], *, key: Key[Array, ""]
    ) -> tuple[PyTree, Int[Array, "agents"], Bool[Array, ""]]:
        """Send the stop bit of agents that chose STOP: state, choices, and whether the episode ends in this round."""
        return state, chosen, jnp.any(chosen == self.actions)

    @property
    def stops_at_once(self) -> bool:
        """Whether an episode ends in the round in which an agent chooses STOP."""
        return True

    @property
    def has_partial_beliefs(self) -> bool:
        """Whether the exact posterior takes rounds with missing readings."""
        return self.agents == 1 or type(self).update_partial_belief is not Problem.update_partial_belief

    def update_partial_belief(
        self,
        belief: PyTree,
        actions: Integer[Array, "agents"],
        observation: PyTree,
        acted: Bool[Array, "agents"],
        arrived: Bool[Array, "agents"],
    ) -> PyTree:
        """Belief after a round in which some agents acted, and the readings of some of these arrived.

        The other rows of `actions` and `observation` are arbitrary.
        """
        if self.agents > 1:
            raise UserError(
                f"the posterior of {type(self).__name__} takes no rounds with missing readings: write "
                "update_partial_belief(belief, actions, observation, acted, arrived) for it"
            )
        return choose(arrived[0], self.update_belief(belief, actions, observation), belief)

    # -- adapters

    @property
    def unwrapped(self) -> "Problem":
        """The problem without any adapter around it."""
        return self

    def agent_actions(self, actions: Integer[Array | np.ndarray, "*batch agents"]) -> Int[np.ndarray, "*batch agents"]:
        """Actions (and STOP) of the agents of the unwrapped problem, from stored actions."""
        return np.asarray(actions).astype(np.int32)

    def agent_observations(self, observations: PyTree) -> PyTree:
        """Observations of the agents of the unwrapped problem, from stored observations of one episode."""
        return observations

    # -- optional

    @property
    def observation_range(self) -> PyTree:
        """The values that observations may have: a `Range` for all, or one for each part of the joint observation.

        Readings from outside that are not in it are refused (`icmape/play/readings.py`).
        """
        return Range()

    @property
    def readings(self) -> int:
        """Number of readings that one action of one agent returns."""
        return 1

    @property
    def first_readings(self) -> int:
        """Number of readings that each agent has before round 0."""
        return 0

    @property
    def shows_first(self) -> bool:
        """Whether the first observation is informative, so that acting requires it."""
        return False

    @property
    def cells(self) -> Int[np.ndarray, "hypotheses"] | None:
        """The grid cell of each hypothesis, counted row by row, if hypotheses are places on the grid."""
        return None

    @property
    def remark(self) -> str:
        """A short remark on its worlds, shown next to every result."""
        return ""

    @property
    def question(self) -> str:
        """What the team is asked, as one question to a reader: the heading of its report."""
        return "Which hypothesis is true?"

    def action_name(self, action: int) -> str:
        """The name of an action for display."""
        return str(action)

    def answer_name(self, answer: Any) -> str:
        """The name of an answer (a decision or the true hypothesis) for display."""
        values = np.asarray(answer)
        return str(values.item()) if values.ndim == 0 else ", ".join(map(str, values.tolist()))

    @property
    def display(self) -> Display:
        """How people see actions and readings: words, and where actions are. Pages of `icmape serve` draw it."""
        return Display()

    @property
    def explanation(self) -> str:
        """What readings say about the question, in a sentence for people who play (`icmape app`)."""
        return ""

    @property
    def given(self) -> str:
        """The data that the prior over worlds is conditional on, in words."""
        return ""

    @property
    def has_worlds(self) -> bool:
        """Whether worlds can be sampled: False if the data that they come from is missing."""
        return True

    @property
    def fixed_ground(self) -> bool:
        """Whether a grid cell is the same place in every world, so that its properties can be learned."""
        return False

    @property
    def paper_inference(self) -> str:
        """The kind of inference network in the paper: recurrent, or convolutional if hypotheses are cells."""
        return "recurrent"

    @property
    def patch(self) -> int:
        """Side of the tiles in which encoders read a grid, such as the size of an observed window."""
        return 5

    @property
    def posterior(self) -> str:
        """Whether `log_posterior` is "exact" for this prior, "misspecified" (computed for another one), or "none"."""
        return "none"

    def belief(self, first: PyTree | None = None) -> PyTree:
        """Sufficient statistics of the exact posterior: before any data, or after the first observation."""
        raise UserError(f"{type(self).__name__} has no exact posterior")

    def update_belief(self, belief: PyTree, actions: Integer[Array, "agents"], observation: PyTree) -> PyTree:
        """Belief after one more round of all agents."""
        raise UserError(f"{type(self).__name__} has no exact posterior")

    def log_posterior(self, belief: PyTree) -> Float[Array, "..."]:
        """Scores over the hypotheses, as the hypothesis space reads them: log-probabilities, or log-odds for TopK."""
        raise UserError(f"{type(self).__name__} has no exact posterior")

    @property
    def has_own_beliefs(self) -> bool:
        """Whether the data of one agent alone give a posterior: for one agent, or with `update_own_belief`."""
        return self.agents == 1 or type(self).update_own_belief is not Problem.update_own_belief

    def own_belief(self, agent: Integer[Array, ""], first: PyTree) -> PyTree:
        """Belief of one agent after its first observation: the prior, unless it is the only agent."""
        return self.belief(_alone(first)) if self.agents == 1 else self.belief()

    def update_own_belief(
        self, belief: PyTree, agent: Integer[Array, ""], action: Integer[Array, ""], observation: PyTree
    ) -> PyTree:
        """Belief of one agent after one more action and observation of its own."""
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
        """The reward of the environment in a round."""
        raise UserError(f"{type(self).__name__} has no environment reward")


def choose(condition: Bool[Array, ""], yes: PyTree, no: PyTree) -> PyTree:
    """One of two trees of the same layout."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)


def _alone(tree: PyTree) -> PyTree:
    """Add the agent axis of a team of one agent."""
    return jax.tree.map(lambda row: row[None], tree)


def check_worlds(problem: Problem) -> None:
    """Raise `UserError` if the worlds of a problem come from data that is missing."""
    if not problem.has_worlds:
        raise UserError(
            f"the worlds of this {type(problem).__name__} come from measurements that its file does not hold (to act "
            f"on new readings none are needed; in Python: load(..., data=[folder])). {problem.unwrapped.WORLDS_FROM}"
        )


def arguments(problem: Problem) -> dict[str, Any]:
    """The constructor arguments that rebuild this problem, as plain values."""
    names = [p.name for p in inspect.signature(type(problem)).parameters.values()]
    return {name: _plain(getattr(problem, name)) for name in names}


def _plain(value: Any) -> Any:
    if isinstance(value, jax.Array | np.ndarray | np.generic):
        array = np.asarray(value)
        if array.ndim > 0:
            return [_plain(item) for item in array]
        # the shortest decimal of the float32: 0.3, not 0.30000001192
        return float(str(array[()])) if array.dtype.kind == "f" else array.item()
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
