"""What goes wrong in the field: readings get lost, agents fall silent for good, a stop bit comes a round late."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer, Key, PyTree

from icmape.errors import UserError
from icmape.problem.adapter import Adapter
from icmape.problem.centralized import MOST, Centralized
from icmape.problem.contract import Features, Problem, choose
from icmape.problem.hypotheses import HypothesisSpace
from icmape.problem.ranges import BIT, Range, observation_layout
from icmape_agent.display import Display

FAILURES = 2  # folded into the keys of the problem inside, whose own draws stay as they are
NOTHING = -1  # the action of an agent that did nothing


class Received(NamedTuple):
    """What came of an agent's action in a round."""

    reading: PyTree  # zeros unless it arrived
    acted: Bool[Array, "*agents"]
    arrived: Bool[Array, "*agents"]
    silent: Bool[Array, "*agents"]  # from the next round on


class UnreliableState(NamedTuple):
    """The state of the problem inside, and who still acts."""

    inner: PyTree
    silent: Bool[Array, "agents"]
    senders: Bool[Array, "agents"]  # of a stop bit that is under way
    heard: Bool[Array, "agents"]  # who got that bit in time


class UnreliableMemory(NamedTuple):
    """The memory of the problem inside, and what became of the last round."""

    inner: PyTree
    arrived: Bool[Array, ""]
    silent: Bool[Array, ""]


class Unreliable(Adapter):
    """A problem in which readings, agents and stop bits fail at random, independently of the world.

    Features have the shapes of the problem inside, so that a team trained without failures plays with them, and
    conversely. At rates of 0 every episode is that of the problem inside.

    Args:
        problem: the problem without failures; a `Centralized` one goes around this adapter.
        lost: probability that a reading never arrives, for each agent and round. The action was executed.
        silent: probability that an agent falls silent for good, before each of its rounds. It takes no more actions,
            and its STOP is not heard.
        late: probability that a stop bit reaches an agent one round late. The agent acts in that round, and its reading
            counts.
    """

    problem: Problem
    agents: int = eqx.field(static=True)
    actions: int = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    hypotheses: HypothesisSpace
    lost: Float[Array, ""]
    silent: Float[Array, ""]
    late: Float[Array, ""]

    def __init__(self, problem: Problem, lost: float = 0.0, silent: float = 0.0, late: float = 0.0):
        _check(problem, {"lost": lost, "silent": silent, "late": late})
        self.problem = problem
        self.agents, self.actions, self.horizon = problem.agents, problem.actions, problem.horizon
        self.hypotheses = problem.hypotheses
        self.lost, self.silent, self.late = jnp.float32(lost), jnp.float32(silent), jnp.float32(late)

    @property
    def rates(self) -> dict[str, float]:
        """The three probabilities."""
        return {name: float(str(getattr(self, name))) for name in ("lost", "silent", "late")}

    @property
    def remark(self) -> str:
        """The rates that are not 0."""
        words = {"lost": "readings lost {:g}", "silent": "agents falling silent {:g}", "late": "stop bits late {:g}"}
        failing = [words[name].format(rate) for name, rate in self.rates.items() if rate > 0]
        return ", ".join([self.problem.remark] * bool(self.problem.remark) + failing)

    # -- the world

    def start(self, world: Any, *, key: Key[Array, ""]) -> tuple[UnreliableState, Received]:
        """The first observations always arrive."""
        inner, first = self.problem.start(world, key=key)
        silent = self._happens(self.silent, jax.random.fold_in(key, FAILURES))
        nobody = jnp.zeros(self.agents, bool)
        return UnreliableState(inner, silent, nobody, nobody), Received(first, ~nobody, ~nobody, silent)

    def step(
        self, world: Any, state: UnreliableState, actions: Integer[Array, "agents"], *, key: Key[Array, ""]
    ) -> tuple[UnreliableState, Received]:
        """Execute the actions of the agents that still act; some of their readings arrive."""
        for_loss, for_silence = jax.random.split(jax.random.fold_in(key, FAILURES))
        acting = ~state.silent & ~state.heard
        inner, seen = self.problem.step_some(world, state.inner, actions, acting, key=key)
        arrived = acting & ~self._happens(self.lost, for_loss)
        silent = state.silent | self._happens(self.silent, for_silence)
        reading = jax.vmap(lambda here, row: choose(here, row, jax.tree.map(jnp.zeros_like, row)))(arrived, seen)
        return state._replace(inner=inner, silent=silent), Received(reading, acting, arrived, silent)

    def relay(
        self, state: UnreliableState, chosen: Int[Array, "agents"], *, key: Key[Array, ""]
    ) -> tuple[UnreliableState, Int[Array, "agents"], Bool[Array, ""]]:
        """The bit reaches each agent now or a round later. The episode ends once all agents have it that still act."""
        under_way, stopping = jnp.any(state.senders), chosen == self.actions
        late = self._happens(self.late, key) & ~stopping & ~state.silent
        sent, delayed = jnp.any(stopping), jnp.any(late)
        starting = ~under_way & sent & delayed
        repeated = jnp.where(state.senders, self.actions, jnp.minimum(chosen, self.actions - 1))
        after = state._replace(senders=stopping & starting, heard=~late & starting)
        return (
            choose(under_way, state, after),
            jnp.where(under_way, repeated, chosen).astype(chosen.dtype),
            under_way | (sent & ~delayed),
        )

    @property
    def stops_at_once(self) -> bool:
        """Unless bits may be late."""
        return float(self.late) == 0

    def _happens(self, rate: Float[Array, ""], key: Key[Array, ""]) -> Bool[Array, "agents"]:
        return jax.random.uniform(key, (self.agents,)) < rate

    # -- memory

    def init_memory(self, agent: Integer[Array, ""], observation: Received) -> UnreliableMemory:
        """That of the problem inside."""
        inner = self.problem.init_memory(agent, observation.reading)
        return UnreliableMemory(inner, observation.arrived, observation.silent)

    def update_memory(
        self, memory: UnreliableMemory, agent: Integer[Array, ""], action: Integer[Array, ""], observation: Received
    ) -> UnreliableMemory:
        """With the reading if it arrived, else as the problem inside remembers a missing one."""
        action = action.astype(jnp.int32)
        seen = self.problem.update_memory(memory.inner, agent, action, observation.reading)
        missed = self.problem.miss_memory(memory.inner, agent, jnp.where(observation.acted, action, NOTHING))
        return UnreliableMemory(choose(observation.arrived, seen, missed), observation.arrived, observation.silent)

    def features(self, memory: UnreliableMemory) -> Features:
        """Those of the problem inside, with a token of zeros instead of one that was shown before."""
        view = self.problem.features(memory.inner)
        token = jnp.where(memory.arrived, view.token, 0.0) if self._keeps_memories() else view.token
        return Features(token, view.grid, memory.arrived | self.problem.reads_missed)

    def team_features(self, memories: UnreliableMemory) -> Features:
        """Those of the problem inside. Without any reading in the last round, they are as those of one agent."""
        own_way = type(self.problem).team_features is not Problem.team_features
        view = self.problem.team_features(memories.inner) if own_way else Problem.team_features(self, memories)
        return Features(view.token, view.grid, jnp.any(memories.arrived) | self.problem.reads_missed)

    def _keeps_memories(self) -> bool:
        """Whether a memory without a new reading is the last one."""
        return type(self.problem).miss_memory is Problem.miss_memory

    def action_mask(self, memory: UnreliableMemory) -> Bool[Array, "actions"]:
        """That of the problem inside."""
        return self.problem.action_mask(memory.inner)

    def learner_action_mask(self, memory: UnreliableMemory) -> Bool[Array, "actions"]:
        """That of the problem inside."""
        return self.problem.learner_action_mask(memory.inner)

    def stop_mask(self, memory: UnreliableMemory) -> Bool[Array, ""]:
        """Silent agents are not heard."""
        return ~memory.silent

    # -- exact Bayes: failures do not depend on the world, so a missing reading has no likelihood

    @property
    def posterior(self) -> str:
        """That of the problem inside, if it takes missing readings."""
        return self.problem.posterior if self.problem.has_partial_beliefs else "none"

    def belief(self, first: Received | None = None) -> PyTree:
        """That of the problem inside."""
        return self.problem.belief(None if first is None else first.reading)

    def update_belief(self, belief: PyTree, actions: Integer[Array, "agents"], observation: Received) -> PyTree:
        """That of the problem inside, from the readings that arrived."""
        taken = jnp.minimum(actions, jnp.asarray(self.actions - 1, actions.dtype))
        reading, acted, arrived, _ = observation
        return self.problem.update_partial_belief(belief, taken, reading, acted, arrived)

    def own_belief(self, agent: Integer[Array, ""], first: Received) -> PyTree:
        """That of the problem inside."""
        return self.problem.own_belief(agent, first.reading)

    def update_own_belief(
        self, belief: PyTree, agent: Integer[Array, ""], action: Integer[Array, ""], observation: Received
    ) -> PyTree:
        """That of the problem inside, unless the reading is missing."""
        told = self.problem.update_own_belief(belief, agent, action, observation.reading)
        return choose(observation.arrived, told, belief)

    # -- names and properties

    @property
    def observation_range(self) -> PyTree:
        """That of the problem inside, with the zeros of a reading that did not arrive; marks are true or false."""
        declared, layout = self.problem.observation_range, observation_layout(self.problem)
        ranges = jax.tree.map(lambda _: declared, layout) if isinstance(declared, Range) else declared
        marks: Any = BIT
        return Received(jax.tree.map(_with_zero, ranges), marks, marks, marks)

    @property
    def display(self) -> Display:
        """Words only: readings have other parts than those of the problem inside."""
        inside = self.problem.display
        return Display(agent=inside.agent, verb=inside.verb)

    has_partial_beliefs = Problem.has_partial_beliefs
    has_payoff = Problem.has_payoff  # payoffs are computed from observations, and a lost reading was paid too

    def payoff(self, world: Any, observation: Received) -> Float[Array, ""]:
        """Not defined: an observation does not hold the payoffs of lost readings."""
        raise UserError("there is no environment reward when readings get lost")

    def agent_observations(self, observations: Received) -> PyTree:
        """Without the marks of what is missing; a missing reading is zeros."""
        return self.problem.agent_observations(observations.reading)


def _with_zero(declared: Range) -> Range:
    return Range(np.minimum(declared.low, 0), np.maximum(declared.high, 0), declared.whole)


def failing(problem: Problem, lost: float = 0.0, silent: float = 0.0, late: float = 0.0) -> Problem:
    """A problem with these rates instead of its own; without the adapter if all are 0."""
    bare = reliable(problem)
    if (lost, silent, late) == (0, 0, 0):
        return bare
    if isinstance(bare, Centralized):
        return Centralized(Unreliable(bare.problem, lost, silent, late), limit=MOST)
    return Unreliable(bare, lost, silent, late)


def reliable(problem: Problem) -> Problem:
    """A problem without its `Unreliable` adapter, if it has one."""
    if isinstance(problem, Centralized) and isinstance(problem.problem, Unreliable):
        return Centralized(problem.problem.problem, limit=MOST)
    return problem.problem if isinstance(problem, Unreliable) else problem


def takes_missing(problem: Problem) -> Problem:
    """A problem that says which readings are missing: itself if it does, else with an adapter whose rates are 0."""
    if isinstance(problem, Centralized):
        inner = takes_missing(problem.problem)
        return problem if inner is problem.problem else Centralized(inner, limit=MOST)
    return problem if isinstance(problem, Unreliable) else Unreliable(problem)


def _check(problem: Problem, rates: dict[str, float]) -> None:
    if not isinstance(problem, Problem):
        raise UserError(f"Unreliable takes an instance of a problem, as in Unreliable(Bandit()); given {problem!r}")
    if isinstance(problem, Unreliable):
        raise UserError("this problem is unreliable already: give its rates to the problem inside")
    if isinstance(problem, Centralized):
        raise UserError("readings get lost on their way from single agents: use Centralized(Unreliable(problem))")
    for name, rate in rates.items():
        if not 0 <= rate <= 1:
            raise UserError(f"{name} is a probability, from 0 to 1; given {rate}")
