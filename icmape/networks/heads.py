"""Actor, critic and value networks: an encoder each, with layers on its summaries.

They depend on a problem only by its sizes and the shapes of its features.
"""

from functools import partial
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Integer, Key, PyTree

from icmape.networks.encoder import Encoder
from icmape.networks.encoders import make_encoder
from icmape.networks.shapes import view_shapes
from icmape.problem import Features, Problem

StopScore = Literal["learned", "zero", "apart"]
SURE = 1e9  # larger than any other score


class Actor(eqx.Module):
    """Scores over an agent's actions and STOP (the last one), from its own features and its identity.

    The score of STOP is an output with initial bias `bias` ("learned"); or it is 0 and the actions have that bias
    ("zero"); or it is an output relative to the best action, whose score is shifted to 0 ("apart"). With `rounds` > 0
    the actor reads the number of the round, adds a `schedule` to the scores of the actions, and stops in the last
    round.
    """

    encoder: Encoder
    head: eqx.nn.Linear
    schedule: Float[Array, "rounds agents actions"]
    agents: int = eqx.field(static=True)
    stop: StopScore = eqx.field(static=True)
    rounds: int = eqx.field(static=True)

    def __init__(
        self,
        problem: Problem,
        width: int,
        kind: str,
        bias: float,
        stop: StopScore = "learned",
        rounds: int = 0,
        *,
        key: Key[Array, ""],
    ):
        for_encoder, for_head = jax.random.split(key)
        self.agents, self.stop, self.rounds = problem.agents, stop, rounds
        shapes, more = view_shapes(problem, "agent"), problem.agents + (rounds > 0)
        self.encoder = make_encoder(shapes, problem.patch, width, kind, problem.horizon, more, key=for_encoder)
        head = eqx.nn.Linear(self.encoder.size, problem.actions + (stop != "zero"), key=for_head)
        self.schedule = jnp.zeros((rounds, problem.agents, problem.actions))
        which = slice(None) if stop == "zero" else slice(-1, None)
        self.head = eqx.tree_at(lambda layer: layer.bias, head, replace_fn=lambda old: old.at[which].set(bias))

    def start(self) -> PyTree:
        """The state before the first round."""
        return self.encoder.start()

    def step(
        self, state: PyTree, view: Features, agent: Integer[Array, ""], number: Integer[Array, ""]
    ) -> tuple[PyTree, Float[Array, "choices"]]:
        """Scores after one more round."""
        state, summary = self.encoder.step(state, self._inputs(view, agent, number))
        return state, self._scores(summary, agent, number)

    def unroll(self, views: Features, agent: Integer[Array, ""]) -> Float[Array, "rounds choices"]:
        """Scores at every round of a history (features with a leading axis of rounds)."""
        numbers = jnp.arange(views.token.shape[0])
        inputs = jax.vmap(self._inputs, in_axes=(0, None, 0))(views, agent, numbers)
        return jax.vmap(self._scores, in_axes=(0, None, 0))(self.encoder.unroll(inputs), agent, numbers)

    def stopping_at(self, margin: Float[Array, ""]) -> "Actor":
        """A copy that stops where the score of STOP exceeds that of the best action by more than `margin`."""
        which = (..., slice(None)) if self.stop == "zero" else (..., slice(-1, None))
        move = margin if self.stop == "zero" else -margin
        return eqx.tree_at(lambda actor: actor.head.bias, self, replace_fn=lambda old: old.at[which].add(move))

    def _scores(
        self, summary: Float[Array, "summary"], agent: Integer[Array, ""], number: Integer[Array, ""]
    ) -> Float[Array, "choices"]:
        outputs = self.head(summary)
        actions, stop = (outputs, jnp.zeros(())) if self.stop == "zero" else (outputs[:-1], outputs[-1])
        if self.rounds > 0:
            actions = actions + self.schedule[jnp.minimum(number, self.rounds - 1), agent]
            stop = jnp.where(number >= self.rounds - 1, SURE, stop)
        if self.stop == "apart":
            actions = actions - jnp.max(actions)
        return jnp.append(actions, stop)

    def _inputs(self, view: Features, agent: Integer[Array, ""], number: Integer[Array, ""]) -> Features:
        parts = [view.token, jax.nn.one_hot(agent, self.agents)]
        if self.rounds > 0:
            parts.append((number.astype(jnp.float32) / self.rounds)[None])
        return view._replace(token=jnp.concatenate(parts))


class Actors(eqx.Module):
    """One actor per agent, with shared weights or separate ones (then every leaf has a leading agent axis)."""

    actor: Actor
    shared: bool = eqx.field(static=True)

    def __init__(
        self,
        problem: Problem,
        width: int,
        kind: str,
        bias: float,
        shared: bool,
        stop: StopScore = "learned",
        rounds: int = 0,
        *,
        key: Key[Array, ""],
    ):
        self.shared = shared
        make = partial(Actor, problem, width, kind, bias, stop, rounds)
        if shared:
            self.actor = make(key=key)
        else:
            self.actor = eqx.filter_vmap(lambda k: make(key=k))(jax.random.split(key, problem.agents))

    @property
    def agents(self) -> int:
        """Number of agents."""
        return self.actor.agents

    def pick(self, agent: Integer[Array, ""] | int) -> Actor:
        """The actor of one agent."""
        return self.actor if self.shared else jax.tree.map(lambda x: x[agent], self.actor)

    def step(
        self, states: PyTree, views: Features, number: Integer[Array, ""]
    ) -> tuple[PyTree, Float[Array, "agents choices"]]:
        """Scores of all agents in a round, each from its own features."""
        numbers = jnp.broadcast_to(number, (self.agents,))
        return self._map(Actor.step, states, views, jnp.arange(self.actor.agents), numbers)

    def unroll(self, views: Features) -> Float[Array, "agents rounds choices"]:
        """Scores of all agents at all rounds (features: agents, rounds, ...)."""
        return self._map(Actor.unroll, views, jnp.arange(self.actor.agents))

    def scaled(self, share: float) -> "Actors":
        """A copy with the weights of the last layer scaled, so that initial scores are nearly equal."""
        return eqx.tree_at(lambda actors: actors.actor.head.weight, self, replace_fn=lambda weight: share * weight)

    def following(self, schedule: Float[Array, "rounds agents actions"]) -> "Actors":
        """A copy with a schedule added to the scores; rounds beyond the schedule get 0."""
        room = self.actor.schedule
        rows = min(schedule.shape[0], self.actor.rounds)
        filled = jnp.zeros(room.shape[-3:]).at[:rows].set(schedule[:rows])
        return eqx.tree_at(lambda actors: actors.actor.schedule, self, jnp.broadcast_to(filled, room.shape))

    def stopping_at(self, margin: Float[Array, ""]) -> "Actors":
        """A copy with another stopping threshold (`Actor.stopping_at`)."""
        return eqx.tree_at(lambda actors: actors.actor, self, self.actor.stopping_at(margin))

    def _map(self, method: Any, *args: Any) -> Any:
        if not self.shared and jax.default_backend() == "cpu":  # products with stacked weights are slow on CPUs
            each = [method(self.pick(i), *jax.tree.map(lambda x, i=i: x[i], args)) for i in range(self.agents)]
            return jax.tree.map(lambda *rows: jnp.stack(rows), *each)
        weights = None if self.shared else eqx.if_array(0)
        return eqx.filter_vmap(method, in_axes=(weights, *(eqx.if_array(0) for _ in args)))(self.actor, *args)


class Critic(eqx.Module):
    """Values of the actions of each agent, given the history of the team and the actions of the others."""

    encoder: Encoder
    hidden: eqx.nn.Linear
    output: eqx.nn.Linear
    agents: int = eqx.field(static=True)
    choices: int = eqx.field(static=True)

    def __init__(self, problem: Problem, width: int, kind: str, choices: int, *, key: Key[Array, ""]):
        keys = jax.random.split(key, 3)
        self.agents, self.choices = problem.agents, choices
        self.encoder = make_encoder(
            view_shapes(problem, "team"), problem.patch, width, kind, problem.horizon, key=keys[0]
        )
        inputs = self.encoder.size + problem.agents * choices + problem.agents
        self.hidden = eqx.nn.Linear(inputs, width, key=keys[1])
        self.output = eqx.nn.Linear(width, choices, key=keys[2])

    def summaries(self, views: Features) -> Float[Array, "rounds summary"]:
        """Summaries of the history of the team, at every round."""
        return self.encoder.unroll(views)

    def values(
        self, summary: Float[Array, "summary"], joint: Float[Array, "agents choices"]
    ) -> Float[Array, "agents choices"]:
        """The values of all choices of each agent; its own row of `joint` is masked."""
        identity = jnp.eye(self.agents)
        others = joint[None] * (1.0 - identity)[:, :, None]  # agents, agents, choices
        per_agent = jnp.concatenate([others.reshape(self.agents, -1), identity], axis=1)
        # the product of the first layer with the summary is the same for all agents: computed once
        split = summary.shape[0]
        bias = self.hidden.bias
        assert bias is not None  # built with one
        shared = self.hidden.weight[:, :split] @ summary + bias
        hidden = jax.nn.gelu(per_agent @ self.hidden.weight[:, split:].T + shared[None])
        return jax.vmap(self.output)(hidden)


class TeamValue(eqx.Module):
    """The value of the history of the team."""

    encoder: Encoder
    hidden: eqx.nn.Linear
    output: eqx.nn.Linear

    def __init__(self, problem: Problem, width: int, kind: str, *, key: Key[Array, ""]):
        keys = jax.random.split(key, 3)
        self.encoder = make_encoder(
            view_shapes(problem, "team"), problem.patch, width, kind, problem.horizon, key=keys[0]
        )
        self.hidden = eqx.nn.Linear(self.encoder.size, width, key=keys[1])
        self.output = eqx.nn.Linear(width, "scalar", key=keys[2])

    def unroll(self, views: Features) -> Float[Array, "rounds"]:
        """The value at every round."""
        return jax.vmap(lambda s: self.output(jax.nn.gelu(self.hidden(s))))(self.encoder.unroll(views))
