"""The settings of each algorithm: what is theirs alone. What all share is in `config`."""

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, TypeAlias

import jax
from jaxtyping import Array, Float

from icmape.learning import renamed

Scalar: TypeAlias = float | Float[Array, ""]
"""A number in the settings: a float, or a traced value in a compiled program."""


def traced(settings: type, *names: str) -> None:
    """Register settings as a pytree: these fields are traced values, all others are static."""
    others = [f.name for f in fields(settings) if f.name not in names]

    def flatten(instance: Any) -> tuple[list, tuple]:
        return [getattr(instance, name) for name in names], tuple(getattr(instance, name) for name in others)

    def unflatten(fixed: tuple, values: Any) -> Any:
        instance: Any = object.__new__(settings)  # not its constructor, which takes plain numbers
        for name, value in zip((*names, *others), (*values, *fixed), strict=True):
            object.__setattr__(instance, name, value)
        return instance

    jax.tree_util.register_pytree_node(settings, flatten, unflatten)


@dataclass(frozen=True)
class OffPolicy:
    """What algorithms that learn from replayed episodes have in common."""

    RENAMED: ClassVar[dict[str, str]] = renamed.ALGORITHM
    clip_targets: bool = True
    """Clip bootstrapped values to what any policy can reach: confidence r gains at most 1-r and loses at most r."""
    gae_lambda: float = 0.7
    """λ of the λ-returns along stored episodes; 0 gives one-step targets. Traces are cut at exploratory actions."""
    stop_obey_prob: float = 0.5
    """Probability that a STOP is executed in exploratory episodes; otherwise the episode continues."""
    target_update_rate: float = 0.02
    """Polyak rate of the target networks."""


@dataclass(frozen=True)
class PaperTD3(OffPolicy):
    """The paper's literal recipe: confidence is paid at the stop only, one-step targets, a learned value of STOP."""

    kind: ClassVar[str] = "td3-paper"
    clip_targets: bool = False
    gae_lambda: float = 0.0
    stop_obey_prob: float = 1.0
    gumbel_temperature: float = 1.0
    """Temperature of the Gumbel-Softmax."""
    actor_value: Literal["q1", "min"] = "q1"
    """Critic that the actors maximise: the first, or the minimum of both."""
    policy_delay: int = 2
    """Critic updates per actor update."""
    stop_consistency_coef: float = 0.0
    """Weight of a penalty that makes every agent prefer STOP where the team stopped (the paper's appendix)."""


@dataclass(frozen=True)
class Value(OffPolicy):
    """Deep Q-learning on local histories, relative to stopping: an agent's STOP is worth exactly 0.

    Summed over agents it is value decomposition (VDN), mixed by a monotonic network QMIX, unsummed independent
    Q-learning; for a single agent the sum and its absence are Double DQN.
    """

    kind: ClassVar[str] = "value"
    epsilon: float = 0.25
    """Initial probability of a random action in exploratory episodes; STOP is never random."""
    epsilon_final: float = 0.05
    """The same at the end of training (linear decay)."""
    mixing: str = "sum"
    """Team value: "sum" of the agents' values (VDN); "qmix", a monotonic network of them; or "none", each agent learns
    it alone (independent Q-learning)."""
    mixing_size: int = 32
    """Hidden units of the mixing network (qmix)."""
    balance_coef: float = 0.0
    """Weight of a penalty on unequal shares of the team value. The sum does not determine the shares, but any agent
    below 0 stops the team."""
    optimistic_init: float = 0.3
    """Initial team value of continuing, above STOP's 0, so that early episodes are long enough."""


@dataclass(frozen=True)
class SoftStops:
    """What actors with soft stops have in common.

    Episodes are played past every STOP. What stopping would have paid is known in each round, so the returns average
    over who stops when, and no STOP need be drawn to learn from it.
    """

    RENAMED: ClassVar[dict[str, str]] = renamed.ALGORITHM
    gae_lambda: float = 0.6
    """λ of the returns."""
    ent_coef: float = 0.01
    """Initial entropy coefficient of the actions (without STOP)."""
    ent_coef_final: float = 3e-4
    """The same at the end of training (geometric decay)."""
    truth_weight: float = 1.0
    """Initial weight of p(H*) in the potential; the rest is confidence. It falls to 0 by two thirds of training."""
    log_truth_weight: float = 0.0
    """Fraction of that weight given to 0.15 log p(H*), the log-probability of the truth, which rises from the first
    reading on."""
    stop_kl_coef: float = 0.3
    """Initial weight of the Kullback-Leibler divergence of each agent's stopping probability from a constant one, with
    which the team stops once in the plan's length. In units of the standard deviation of the advantages. It keeps
    stopping stochastic while values are learned."""
    stop_anneal_fraction: float = 0.7
    """Fraction of training after which `stop_kl_coef` and `random_terminations` are 0 (linear decay)."""
    random_terminations: float = 3.0
    """Initial expected number of random terminations within the plan's length. They make the policy sample first what
    is most informative."""
    min_round_weight: float = 0.05
    """Lower bound of the weight of a round in the losses of actions and values."""
    min_stop_prob: float = 0.02
    """Lower bound of the weight of an agent's stopping decision: the probability that the round is reached and that the
    decision is pivotal."""
    target_update_rate: float = 0.05
    """Polyak rate of the averaged networks."""


@dataclass(frozen=True)
class PPO(SoftStops):
    """Proximal policy optimization: stochastic actors, one centralized value, fresh episodes only."""

    kind: ClassVar[str] = "ppo"
    clip_eps: float = 0.2
    """Clipping range of the probability ratio."""
    update_epochs: int = 3
    """Epochs over the episodes just played."""
    num_minibatches: int = 4
    """Minibatches per epoch."""


@dataclass(frozen=True)
class TD3(SoftStops):
    """Twin delayed actor-critic on replayed episodes: two centralized critics, stochastic actors that climb them."""

    kind: ClassVar[str] = "td3"
    gae_lambda: float = 0.9
    target_update_rate: float = 0.02
    policy_delay: int = 2
    """Critic updates per actor update."""
    actor_value: Literal["q1", "min"] = "q1"
    """Critic that the actors maximise: the first, or the minimum of both."""


@dataclass(frozen=True)
class Frozen:
    """A policy that does not learn: only the inference network is trained, on what the policy samples."""

    RENAMED: ClassVar[dict[str, str]] = renamed.ALGORITHM
    kind: ClassVar[str] = "frozen"
    policy: str = "uniform"
    """"uniform" (random actions), a policy that the problem names, or a team file whose policy is used."""
    target_update_rate: float = 0.02
    """Polyak rate of the averaged inference network."""


traced(PaperTD3, "gae_lambda", "stop_obey_prob", "target_update_rate", "gumbel_temperature")
traced(Value, "gae_lambda", "epsilon", "epsilon_final", "stop_obey_prob", "target_update_rate")
for _soft in (PPO, TD3):
    traced(_soft, *(f.name for f in fields(_soft) if f.type is float))
traced(Frozen, "target_update_rate")

Algorithm = TD3 | PaperTD3 | Value | PPO | Frozen
