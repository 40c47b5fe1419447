"""One update of the paper's TD3 over every prefix of a batch of episodes: in one pass, or each prefix encoded alone.

Both are the library's own `paper_td3.update` (inference, both critics, actors, targets) on the same episodes with the
same weights. Only the encoders differ: the other way hands every D_t to the encoder as a sequence of its own, padded
and masked. Padding everything to the horizon would waste more; lengths are grouped, each padded to its group's longest.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from benchmarks.timing import Measurement, alternate, assert_same, median_ratio
from icmape.learning import paper_td3
from icmape.learning.config import Config
from icmape.learning.off_policy import Step
from icmape.learning.presets import preset
from icmape.networks import RecurrentEncoder, TokenEncoder
from icmape.networks.recurrent import EncoderState
from icmape.play.policy import LearnedPolicy
from icmape.play.rollout import Episode, Noise, rollout
from icmape.problem import Problem

EPISODES = 16
GROUPS = 3  # of prefix lengths; more of them gain little and take long to compile


class OneByOne(TokenEncoder):
    """An encoder that shares nothing between the prefixes of a history."""

    encoder: RecurrentEncoder
    kind: str = eqx.field(static=True, default="one by one")

    @property
    def width(self) -> int:
        return self.encoder.width

    @property
    def size(self) -> int:
        return self.encoder.size

    def start(self) -> EncoderState:
        return self.encoder.start()

    def step_token(self, state: EncoderState, token: jax.Array) -> tuple[EncoderState, jax.Array]:
        return self.encoder.step_token(state, token)

    def unroll_tokens(self, tokens: jax.Array) -> jax.Array:
        """The summaries of all prefixes, each from its own sequence."""
        ends = jnp.array_split(jnp.arange(tokens.shape[0]), GROUPS)
        longest = [tokens.shape[0] - sum(len(later) for later in ends[group + 1 :]) for group in range(GROUPS)]
        groups = [
            jax.vmap(partial(self.encode, tokens[:size]))(group_ends)
            for size, group_ends in zip(longest, ends, strict=True)
        ]
        return jnp.concatenate(groups)

    def encode(self, tokens: jax.Array, end: jax.Array) -> jax.Array:
        """The summary of the prefix that ends with token `end`."""
        exists = jnp.arange(tokens.shape[0]) <= end
        padded = jnp.where(exists[:, None], tokens, 0.0)  # its own copy: vmap would share the work otherwise

        def read(carry: tuple, row: tuple) -> tuple:
            token, real = row
            return jax.tree.map(partial(jnp.where, real), self.encoder.step_token(carry[0], token), carry), None

        nothing = self.encoder.start(), jnp.zeros(self.encoder.size)
        return jax.lax.scan(read, nothing, (padded, exists))[0][1]


def measure(quick: bool = False) -> Measurement:
    """How many times faster one pass over each episode is."""
    repeats = 3 if quick else 5
    a3p5 = preset("bandit-a3p5")
    problem, config = a3p5.build(), a3p5.config("td3-paper")
    learner = paper_td3.init(problem, config, keep_gradients(), key=jax.random.key(0))
    episodes = full_episodes(problem, learner)
    update = jax.jit(partial(gradients, problem, config))
    apart = encode_one_by_one(learner)
    ways: dict[str, Callable[[], Any]] = {
        "one pass": lambda: update(learner, episodes),
        "each prefix alone": lambda: update(apart, episodes),
    }
    difference = assert_same("learning", *(way() for way in ways.values()), tolerance=1e-3)
    samples = alternate(ways, repeats)
    sizes = {
        "episodes": EPISODES,
        "rounds": problem.horizon,
        "agents": problem.agents,
        "width": config.network.hidden_size,
    }
    notes = {"largest_relative_difference": difference, "groups_of_lengths": GROUPS}
    return Measurement(median_ratio(samples), sizes, samples, repeats, notes)


def gradients(problem: Problem, config: Config, learner: paper_td3.Learner, episodes: Episode) -> Any:
    """What one update computes: the gradients of actors, critics and inference."""
    cost, rate, number = jnp.float32(0.01), jnp.float32(1.0), jnp.int32(paper_td3.settings(config).actor_every - 1)
    key = jax.random.key(2)  # the number is that of an update in which the actors have their turn
    step = Step(keep_gradients(), cost, number, rate, jnp.float32(0), None)
    after, _ = paper_td3.update(problem, config, learner, episodes, step, key=key)
    moments = after.actor_moments, after.critic_moments, after.inference_moments
    return [leaf for leaf in jax.tree.leaves(moments) if leaf.size]  # actors without a clock have an empty schedule


def keep_gradients() -> optax.GradientTransformation:
    """An optimizer that goes nowhere and remembers the gradient, so that an update can be compared exactly."""
    zeros = partial(jax.tree.map, jnp.zeros_like)
    return optax.GradientTransformation(zeros, lambda gradient, state, parameters=None: (zeros(gradient), gradient))


def full_episodes(problem: Problem, learner: paper_td3.Learner) -> Episode:
    """Explored episodes up to the horizon, where every prefix exists."""
    noise = Noise(jnp.full(EPISODES, 0.2), jnp.zeros(EPISODES))
    keys = jax.random.split(jax.random.key(1), EPISODES)
    play = jax.jit(lambda actors: rollout(problem, LearnedPolicy(actors), noise, keys, jnp.zeros(EPISODES, bool)))
    return play(learner.actors)


def encode_one_by_one(learner: paper_td3.Learner) -> paper_td3.Learner:
    """The same learner with every encoder in it told not to share."""
    is_encoder = lambda x: isinstance(x, RecurrentEncoder)  # noqa: E731
    return jax.tree.map(lambda x: OneByOne(x) if is_encoder(x) else x, learner, is_leaf=is_encoder)
