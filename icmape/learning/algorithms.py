"""The settings of each algorithm: what is theirs alone. What all share is in `config`."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class OffPolicy:
    """What algorithms that learn from replayed episodes have in common."""

    bounded: bool = True
    """Keep bootstrapped values inside what any policy can reach: confidence gains at most 1-r, loses at most r."""
    trace: float = 0.7
    """λ of the returns along stored episodes; 0 gives one-step targets. Traces are cut where an agent explored."""
    noise: float = 0.25
    """Chance that an exploring agent takes a random action in a round."""
    noise_end: float = 0.05
    """The same at the end of training (linear in between)."""
    noise_on_stop: bool = False
    """Whether random actions include STOP. With N agents even a little of it ends almost every episode early."""
    keep_stop: float = 0.5
    """Chance that exploring worlds obey a greedy STOP; otherwise they go on, so that later rounds stay known."""
    polyak: float = 0.02
    """Rate at which target networks follow."""


@dataclass(frozen=True)
class TD3(OffPolicy):
    """Twin delayed actor-critic. The defaults are our recipe; `td3-paper` sets the literal one."""

    shaping: Literal["potential", "terminal"] = "potential"
    """"potential": each round pays the gain in confidence minus the cost, values are relative to stopping now.
    "terminal": confidence is paid at the stop only."""
    stop_value: Literal["known", "learned"] = "known"
    """Whether the value of STOP is what it is by definition, or an output of the critic."""
    joint_gradient: bool = False
    """Actor gradients through all agents' relaxed actions, or through the agent's own only."""
    actor_value: Literal["q1", "min"] = "q1"
    """Critic that the actors climb: the first, or the smaller of both."""
    actor_every: int = 2
    """Critic updates per actor update."""
    temperature: float = 1.0
    """Temperature of the Gumbel-Softmax."""
    logit_penalty: float = 1e-3
    """Weight of the squared actor scores, which keeps the softmax from saturating."""
    stop_consistency: float = 0.0
    """Weight of a penalty that asks every agent to prefer STOP where the team stopped (the paper's appendix)."""


@dataclass(frozen=True)
class Value(OffPolicy):
    """Deep Q-learning on local histories, relative to stopping: an agent's STOP is worth exactly 0.

    Summed over agents it is value decomposition (VDN), unsummed independent Q-learning, and for a single agent both are
    Double DQN.
    """

    mixing: Literal["sum", "none"] = "sum"
    """Whether the team's value is the sum of the agents' ("sum": VDN), or each agent learns it by itself ("none")."""
    balance: float = 0.0
    """Weight of a pull of every agent's value towards an equal share of the team's, where they are summed. The sum
    leaves open who carries it, but whoever falls below 0 stops for all."""
    optimism: float = 0.3
    """Where the team's value of going on starts: above STOP's 0, so that early episodes are long enough."""


@dataclass(frozen=True)
class PPO:
    """Proximal policy optimization: stochastic actors, one centralized value, fresh episodes only."""

    clip: float = 0.2
    """How far a probability may move in one iteration before its gradient is cut."""
    epochs: int = 2
    """Passes over the episodes just played."""
    minibatches: int = 4
    """Gradient steps per pass."""
    trace: float = 0.95
    """λ of the returns."""
    entropy: float = 0.02
    """Weight of the actors' entropy over actions (STOP apart) at the start of training."""
    entropy_end: float = 3e-4
    """The same at the end (geometric in between)."""
    truth_share: float = 0.15
    """Share of log p(H*) in the potential at the start. Denser than confidence early on, but it moves the optimum: it
    falls to 0 by two thirds of training."""
    stop_floor: float = 5e-3
    """Probability of STOP below which actors are pulled back up: while rounds are still free nothing speaks for
    stopping, and what is never drawn is never learned. Its square at the end of training (geometric in between)."""
    floor_weight: float = 0.05
    """Weight of that pull."""
    least_say: float = 0.1
    """Weight of an agent's going on or stopping where the others stop for sure: were it 0, a team whose agents all stop
    could never unlearn it."""
    keep_stop: float = 0.5
    """Chance that a drawn STOP is obeyed. Otherwise the episode goes on, though it is judged as if it had ended: what
    lies behind a STOP that has become certain would never be seen again."""
    polyak: float = 0.05
    """Rate at which the averaged team follows, per iteration."""


@dataclass(frozen=True)
class Frozen:
    """A policy that does not learn: only the inference network is trained, on what the policy samples."""

    policy: str = "uniform"
    """"uniform" (every action equally likely), "thompson" or "thompson-paper" (source localization), or a team file
    whose policy is to be used."""
    polyak: float = 0.02
    """Rate at which the averaged inference network follows."""


Algorithm = TD3 | Value | PPO | Frozen

KINDS: dict[str, type] = {"td3": TD3, "value": Value, "ppo": PPO, "frozen": Frozen}
"""How files name them."""

PAPER_TD3 = TD3(
    shaping="terminal",
    stop_value="learned",
    bounded=False,
    trace=0.0,
    noise_on_stop=True,
    keep_stop=1.0,
    joint_gradient=True,
    logit_penalty=0.0,
)
"""The paper's literal recipe."""
