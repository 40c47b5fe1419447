"""Greedy rules: least expected posterior entropy one round ahead, for any problem with an exact posterior."""

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

APART = 1e-6  # range of the scores of actions: they are ordered, but do not affect the stop


class Mind(NamedTuple):
    """The belief, and the states of the imagined worlds."""

    belief: PyTree
    states: PyTree


class CentralGreedy(eqx.Module):
    """Centralized rule on the data of all agents: coordinate ascent over the actions of the agents.

    It begins with the best of these joint actions: round robin, and the same action by all. It never chooses STOP.
    """

    imagined: Imagined
    kind: Literal["any-central-greedy"] = eqx.field(static=True, default="any-central-greedy")

    def start(self) -> Mind:
        """The prior."""
        return Mind(self.imagined.problem.belief(), self.imagined.start())

    def decide(self, state: Mind, seen: Round, *, key: Key[Array, ""]) -> tuple[Mind, Float[Array, "agents choices"]]:
        """The joint action with the least expected entropy, by coordinate ascent."""
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
    """Initial joint actions: round robin, and each action by all agents; masked actions are replaced by the next."""

    def nearest(agent: Int[Array, ""], shift: Int[Array, ""]) -> Int[Array, ""]:
        return jnp.argmax(jnp.where(allowed[agent], turn(problem, agent, shift), -jnp.inf)).astype(jnp.int32)

    agents = jnp.arange(problem.agents)
    turns = jax.vmap(lambda agent: nearest(agent, number))(agents)
    together = lambda action: jax.vmap(lambda agent: nearest(agent, action - agent * offset(problem)))(agents)  # noqa: E731
    return jnp.concatenate([turns[None], jax.vmap(together)(jnp.arange(problem.actions))])


class LocalGreedy(OwnReadings):
    """Each agent uses the exact posterior of its own data: least expected entropy, and STOP above a confidence level.

    It does not know the actions of the others: in imagined worlds they act at random.
    """

    stops_by_confidence: ClassVar[bool] = False
    imagined: Imagined
    level: Float[Array, ""]
    kind: Literal["any-local-greedy"] = eqx.field(static=True, default="any-local-greedy")

    @property
    def agents(self) -> int:
        """The agents of the problem."""
        return self.imagined.problem.agents

    def start_agent(self) -> Mind:
        """The prior."""
        return Mind(self.imagined.problem.belief(), self.imagined.start())

    def decide_own(
        self, state: Mind, agent: Integer[Array, ""], seen: Round, *, key: Key[Array, ""]
    ) -> tuple[Mind, Float[Array, "choices"]]:
        """Scores by the expected entropy of the own posterior; STOP if its confidence is above the level."""
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
                reading = jax.tree.map(lambda row: row[agent], observation)
                return problem.update_own_belief(mind.belief, agent, joint[agent], reading)

            return imagined.worth(mind.states, drawn, others[drawn].at[:, agent].set(action), number, update)

        values = jax.vmap(worth)(jnp.arange(problem.actions))
        behind = jnp.max(values) - values
        ordered = -APART * behind / jnp.maximum(jnp.max(behind), APART)
        return mind, jnp.append(ordered, problem.hypotheses.confidence(scores) - self.level)


def central_greedy(problem: Problem, delta: float) -> Team:
    """The team of `CentralGreedy`, with an untuned level."""
    return Team(problem, CentralGreedy(imagine(problem)), Threshold(1 - delta), ExactInference(), delta)


def local_greedy(problem: Problem, delta: float) -> Team:
    """The team of `LocalGreedy`, for problems with a posterior of the data of one agent."""
    return Team(problem, LocalGreedy(imagine(problem), jnp.float32(0)), LearnedStop(), ExactInference(), delta)
