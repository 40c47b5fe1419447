"""The settings of each algorithm: what is theirs alone. What all share is in `config`."""

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, TypeAlias

import jax
from jaxtyping import Array, Float

from icmape.learning import renamed

Scalar: TypeAlias = float | Float[Array, ""]
"""A setting as it stands in a file, or as a compiled program is given it."""


def traced(settings: type, *names: str) -> None:
    """Let these settings be values that a compiled program is given; all others are part of the program."""
    others = [f.name for f in fields(settings) if f.name not in names]

    def flatten(it: Any) -> tuple[list, tuple]:
        return [getattr(it, name) for name in names], tuple(getattr(it, name) for name in others)

    def unflatten(fixed: tuple, given: Any) -> Any:
        made: Any = object.__new__(settings)  # not its constructor, which takes plain numbers
        for name, value in zip((*names, *others), (*given, *fixed), strict=True):
            object.__setattr__(made, name, value)
        return made

    jax.tree_util.register_pytree_node(settings, flatten, unflatten)


@dataclass(frozen=True)
class OffPolicy:
    """What algorithms that learn from replayed episodes have in common."""

    RENAMED: ClassVar[dict[str, str]] = renamed.ALGORITHM
    clip_targets: bool = True
    """Keep bootstrapped values inside what any policy can reach: confidence gains at most 1-r, loses at most r."""
    gae_lambda: float = 0.7
    """λ of the returns along stored episodes; 0 gives one-step targets. Traces are cut where an agent explored."""
    stop_obey_prob: float = 0.5
    """Chance that exploring worlds obey a STOP; otherwise they go on, so that later rounds stay known."""
    target_update_rate: float = 0.02
    """Rate at which target networks follow."""


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
    """Critic that the actors climb: the first, or the smaller of both."""
    policy_delay: int = 2
    """Critic updates per actor update."""
    stop_consistency_coef: float = 0.0
    """Weight of a penalty that asks every agent to prefer STOP where the team stopped (the paper's appendix)."""


@dataclass(frozen=True)
class Value(OffPolicy):
    """Deep Q-learning on local histories, relative to stopping: an agent's STOP is worth exactly 0.

    Summed over agents it is value decomposition (VDN), unsummed independent Q-learning, and for a single agent both are
    Double DQN.
    """

    kind: ClassVar[str] = "value"
    epsilon: float = 0.25
    """Chance that an exploring agent takes a random action in a round; STOP is never one."""
    epsilon_final: float = 0.05
    """The same at the end of training (linear in between)."""
    mixing: Literal["sum", "none"] = "sum"
    """Whether the team's value is the sum of the agents' ("sum": VDN), or each agent learns it by itself ("none")."""
    balance_coef: float = 0.0
    """Weight of a pull of every agent's value towards an equal share of the team's, where they are summed. The sum
    leaves open who carries it, but whoever falls below 0 stops for all."""
    optimistic_init: float = 0.3
    """Where the team's value of going on starts: above STOP's 0, so that early episodes are long enough."""


@dataclass(frozen=True)
class SoftStops:
    """What actors with soft stops have in common.

    Episodes are played past every STOP. What stopping would have paid is known in each round, so the returns average
    over who stops when, and no STOP need be drawn to learn from it.
    """

    RENAMED: ClassVar[dict[str, str]] = renamed.ALGORITHM
    gae_lambda: float = 0.6
    """λ of the returns: how much comes from what followed, the rest from the values."""
    ent_coef: float = 0.01
    """Weight of the actors' entropy over actions (STOP apart) at the start of training."""
    ent_coef_final: float = 3e-4
    """The same at the end (geometric in between)."""
    truth_weight: float = 1.0
    """Share of the probability of the truth in the potential at the start, the rest being confidence; it falls to 0 by
    two thirds of training."""
    log_truth_weight: float = 0.0
    """Share of 0.15 log p(H*) in what stands for the truth there: it rises from the first reading on, where p(H*)
    itself stays flat until almost all is known."""
    stop_kl_coef: float = 0.3
    """Weight, at the start, of the Kullback-Leibler divergence of each agent's probability of stopping from a constant
    one, with which the team stops about once in the plan's length; it falls to 0 by `stop_anneal_fraction`. It is in
    units of the returns' spread around the values, and so shrinks while these learn. While it holds, an agent's stop is
    a soft function of what going on is worth to it, so that it learns from its history before it becomes a clock."""
    stop_anneal_fraction: float = 0.7
    """Part of training by which `stop_kl_coef` and `random_terminations` have fallen to 0 (linearly)."""
    random_terminations: float = 3.0
    """Expected number of random terminations within the plan's length at the start; it falls to 0 by
    `stop_anneal_fraction`. They make the policy sample first what is most informative."""
    min_round_weight: float = 0.05
    """Least weight of a round in the losses of actions and values, however unlikely it is to be reached."""
    min_stop_prob: float = 0.02
    """Least weight of an agent's stop in a round, however unlikely that round, or that its stop decides."""
    target_update_rate: float = 0.05
    """Rate at which averaged networks follow."""


@dataclass(frozen=True)
class PPO(SoftStops):
    """Proximal policy optimization: stochastic actors, one centralized value, fresh episodes only."""

    kind: ClassVar[str] = "ppo"
    clip_eps: float = 0.2
    """How far a probability may move in one iteration before its gradient is cut."""
    update_epochs: int = 3
    """Passes over the episodes just played."""
    num_minibatches: int = 4
    """Gradient steps per pass."""


@dataclass(frozen=True)
class TD3(SoftStops):
    """Twin delayed actor-critic on replayed episodes: two centralized critics, stochastic actors that climb them."""

    kind: ClassVar[str] = "td3"
    gae_lambda: float = 0.9
    target_update_rate: float = 0.02
    policy_delay: int = 2
    """Critic updates per actor update."""
    actor_value: Literal["q1", "min"] = "q1"
    """Critic that the actors climb: the first, or the smaller of both."""


@dataclass(frozen=True)
class Frozen:
    """A policy that does not learn: only the inference network is trained, on what the policy samples."""

    RENAMED: ClassVar[dict[str, str]] = renamed.ALGORITHM
    kind: ClassVar[str] = "frozen"
    policy: str = "uniform"
    """"uniform" (every action equally likely), "thompson" or "thompson-paper" (source localization), or a team file
    whose policy is to be used."""
    target_update_rate: float = 0.02
    """Rate at which the averaged inference network follows."""


traced(PaperTD3, "gae_lambda", "stop_obey_prob", "target_update_rate", "gumbel_temperature")
traced(Value, "gae_lambda", "epsilon", "epsilon_final", "stop_obey_prob", "target_update_rate")
for _soft in (PPO, TD3):
    traced(_soft, *(f.name for f in fields(_soft) if f.type is float))
traced(Frozen, "target_update_rate")

Algorithm = TD3 | PaperTD3 | Value | PPO | Frozen
