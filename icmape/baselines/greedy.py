"""Rules that take what tells most one round ahead, for any problem with an exact posterior."""

from typing import ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Integer, Key, PyTree

from icmape.baselines.imagined import Imagined, imagine
from icmape.play.inference import ExactInference
from icmape.play.open_loop import offset, turn
from icmape.play.own_readings import OwnReadings
from icmape.play.policy import Round, actions_for
from icmape.play.stop import LearnedStop, Threshold
from icmape.play.team import Team
from icmape.problem import Problem

APART = 1e-6  # between scores of actions: enough to order them, too little to matter to a stop


class Mind(NamedTuple):
    """What is known, and where the imagined worlds stand."""

    belief: PyTree
    states: PyTree


class CentralGreedy(eqx.Module):
    """Team scope: everyone's readings in one head. Agents choose in turn, each the best beside the others' choices.

    They begin with the best of these joint actions: taking turns, and all doing the same. Never stops by itself.
    """

    imagined: Imagined
    kind: Literal["any-central-greedy"] = eqx.field(static=True, default="any-central-greedy")

    def start(self) -> Mind:
        """The prior."""
        return Mind(self.imagined.problem.belief(), self.imagined.start())

    def decide(self, state: Mind, seen: Round, *, key: Key[Array, ""]) -> tuple[Mind, Float[Array, "agents choices"]]:
        """The joint action that leaves least entropy, as far as a change of one agent's action can tell."""
        problem, imagined = self.imagined.problem, self.imagined
        belief, scores = ExactInference().step(problem, state.belief, seen)
        taken = jnp.broadcast_to(jnp.maximum(seen.actions, 0), (imagined.count, problem.agents))
        states = jax.lax.cond(
            seen.number == 0, lambda: state.states, lambda: imagined.moved(state.states, taken, seen.number)
        )
        drawn = imagined.likely(scores, seen.number)

        def worth(joint: Int[Array, "agents"]) -> Float[Array, ""]:
            same = jnp.broadcast_to(joint, (drawn.shape[0], problem.agents))
            update = lambda actions, observation: problem.update_belief(belief, actions, observation)  # noqa: E731
            return imagined.worth(states, drawn, same, seen.number, update)

        allowed = jax.vmap(lambda memory: actions_for(problem, self, memory))(seen.memories)

        def improve(joint: Int[Array, "agents"], agent: Int[Array, ""]) -> tuple[Int[Array, "agents"], None]:
            options = jax.vmap(lambda action: joint.at[agent].set(action))(jnp.arange(problem.actions))
            best = jnp.argmax(jnp.where(allowed[agent], jax.lax.map(worth, options), -jnp.inf))
            return joint.at[agent].set(best.astype(joint.dtype)), None

        starts = _starts(problem, allowed, seen.number)
        best = starts[jnp.argmax(jax.lax.map(worth, starts))]
        joint, _ = jax.lax.scan(improve, best, jnp.arange(problem.agents))
        return Mind(belief, states), jax.nn.one_hot(joint, problem.actions + 1)


def _starts(
    problem: Problem, allowed: Bool[Array, "agents actions"], number: Integer[Array, ""]
) -> Int[Array, "starts agents"]:
    """Joint actions to begin with: turns, and every action by all; where that is not open, the next one that is."""

    def nearest(agent: Int[Array, ""], shift: Int[Array, ""]) -> Int[Array, ""]:
        return jnp.argmax(jnp.where(allowed[agent], turn(problem, agent, shift), -jnp.inf)).astype(jnp.int32)

    agents = jnp.arange(problem.agents)
    turns = jax.vmap(lambda agent: nearest(agent, number))(agents)
    together = lambda action: jax.vmap(lambda agent: nearest(agent, action - agent * offset(problem)))(agents)  # noqa: E731
    return jnp.concatenate([turns[None], jax.vmap(together)(jnp.arange(problem.actions))])


class LocalGreedy(OwnReadings):
    """Each agent has the exact posterior of its own data, takes what tells it most, and stops when that is sure enough.

    What the others do is not known to it: in the worlds that it imagines they act at random.
    """

    stops_by_confidence: ClassVar[bool] = False
    imagined: Imagined
    level: Float[Array, ""]
    kind: Literal["any-local-greedy"] = eqx.field(static=True, default="any-local-greedy")

    @property
    def agents(self) -> int:
        """As many as the problem has."""
        return self.imagined.problem.agents

    def start_agent(self) -> Mind:
        """The prior."""
        return Mind(self.imagined.problem.belief(), self.imagined.start())

    def decide_own(
        self, state: Mind, agent: Integer[Array, ""], seen: Round, *, key: Key[Array, ""]
    ) -> tuple[Mind, Float[Array, "choices"]]:
        """What leaves least entropy of one's own posterior; STOP when that is above the level."""
        problem, imagined, number = self.imagined.problem, self.imagined, seen.number
        others, acted = imagined.others(number), jnp.maximum(seen.actions, 0)
        mind = jax.lax.cond(
            number == 0,
            lambda: Mind(problem.own_belief(agent, seen.observation), state.states),
            lambda: Mind(
                problem.update_own_belief(state.belief, agent, acted, seen.observation),
                imagined.moved(state.states, others.at[:, agent].set(acted), number),
            ),
        )
        scores = problem.log_posterior(mind.belief)
        drawn = imagined.likely(scores, number)

        def worth(action: Int[Array, ""]) -> Float[Array, ""]:
            def update(joint: Int[Array, "agents"], observation: PyTree) -> PyTree:
                own = jax.tree.map(lambda row: row[agent], observation)
                return problem.update_own_belief(mind.belief, agent, joint[agent], own)

            return imagined.worth(mind.states, drawn, others[drawn].at[:, agent].set(action), number, update)

        found = jax.vmap(worth)(jnp.arange(problem.actions))
        behind = jnp.max(found) - found
        ordered = -APART * behind / jnp.maximum(jnp.max(behind), APART)
        return mind, jnp.append(ordered, problem.hypotheses.confidence(scores) - self.level)


def central_greedy(problem: Problem, delta: float) -> Team:
    """With a level that is to be set."""
    return Team(problem, CentralGreedy(imagine(problem)), Threshold(1 - delta), ExactInference(), delta)


def local_greedy(problem: Problem, delta: float) -> Team:
    """The same, for problems with a posterior of one agent's data alone."""
    return Team(problem, LocalGreedy(imagine(problem), jnp.float32(0)), LearnedStop(), ExactInference(), delta)
