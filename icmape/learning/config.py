"""Every setting of a training run, with its default, in one place.

Frozen dataclasses: unknown names are errors, in Python, in a file and on the command line alike.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, cast

from icmape.learning import renamed
from icmape.learning.algorithms import PPO, TD3, Algorithm, Frozen, PaperTD3, Value, traced
from icmape.networks.sizes import Network
from icmape.play.named_policies import named_policies
from icmape.problem.entry import only
from icmape.settings import override


@dataclass(frozen=True)
class Dual:
    """The price of a round (ζ), which rises while the team is surer than it needs to be."""

    RENAMED: ClassVar[dict[str, str]] = renamed.DUAL
    rule: Literal["multiplicative", "additive"] = "multiplicative"
    """How the price moves: by a factor, once the team has first come near its target ("multiplicative"); or by a
    sum, from the start ("additive", the paper's)."""
    lr: float = 0.5
    """Step size η per iteration; "multiplicative" takes it times at most 0.02."""
    max: float = 1.0
    """Largest price."""
    init: float | None = None
    """Price at the start; none: a quarter of a round's share in the plan's length, or of the horizon's without one."""
    signal: Literal["confidence", "correctness", "pooled"] = "correctness"
    """What is held at the target: mean confidence, or the share of right answers, at the stop (of greedy episodes where
    stops are drawn); or the mean confidence over all rounds of the replayed batch ("pooled", the paper's)."""
    margin: float = 0.01
    """How far above 1-δ to aim, so that a certificate is usually granted."""


@dataclass(frozen=True)
class Plan:
    """The first phase: non-adaptive schedules, and an inference network that learns beside them."""

    RENAMED: ClassVar[dict[str, str]] = renamed.PLAN
    iterations: int = 150
    """Length of the phase; 0: none."""
    num_plans: int = 4
    """Schedules that are learned side by side, of which the best is kept."""
    num_envs: int = 128
    """Episodes of each per iteration."""
    gradient_steps: int = 4
    """Gradient steps of the inference network per iteration; together they read every episode once."""
    init_rounds: int = 16
    """Rounds of data in the first try; twice as many in the next, until the target is reached."""
    lr: float = 0.05
    """Adam's step size for the logits of a schedule; a fifth of it at the end."""
    ent_coef: float = 5e-3
    """Weight of their entropy at the start; 0 at the end."""
    follow_prob: float = 0.6
    """Probability with which actors take the plan's actions at first, before they see (TD3, PPO), if it reaches the
    target; below that of one action among all alike, nothing is taken over."""
    window: float = 0.35
    """What is maximised: confidence around the length at which the target is reached, within this share of it."""


@dataclass(frozen=True)
class Teacher:
    """A policy to learn from first, before the team finds its own way (TD3, PPO)."""

    policy: str = ""
    """A baseline by name or a team file, whose agents decide from their own histories; empty for none."""
    weight: float = 0.0
    """Share of -log π(the teacher's choice) in the actors' loss at the start of training, the rest being their own
    objective; 0: nobody is followed."""
    until: float = 0.4
    """Part of training by which that share has fallen to 0 (linearly)."""
    stop: bool = True
    """Whether its STOP is followed too, if it has one; otherwise the team finds out by itself when to stop."""


@dataclass(frozen=True)
class Config:
    """A training run."""

    RENAMED: ClassVar[dict[str, str]] = renamed.RUN
    delta: float = 0.1
    """δ: the answer must be right with probability 1-δ."""
    deltas: tuple[float, ...] = ()
    """Other δ to have teams for, out of the same training: it keeps the best team for each, its stops moved to that
    accuracy."""
    seeds: tuple[int, ...] = (215,)
    """One team is trained per seed, all in one program."""
    population_size: int = 1
    """Teams trained side by side for each seed; the one that validates best is kept. They share the seed's plan and
    differ in their networks' first weights and in the worlds they see."""
    iterations: int = 200
    """Length of training. An iteration plays `worlds` episodes and learns from them and from the replay."""
    minutes: float | None = None
    """Stop and save after this much wall time, if sooner; `icmape resume` goes on from there."""
    num_envs: int = 256
    """Episodes played per iteration."""
    greedy_fraction: float = 0.0
    """Share of them played without any noise: they steer ζ and give the metrics. PPO and TD3 need none."""
    gradient_steps: int = 4
    """Gradient steps per iteration on replayed episodes; in PPO those of the inference network only."""
    batch_size: int = 64
    """Episodes per gradient step; every round of each is trained on."""
    buffer_size: int = 256
    """Episodes kept."""
    max_rounds: int | None = None
    """Longest episode, where STOP is forced, in training and ever after; none: 1.4 times the plan's length and three
    more, or the problem's horizon without a plan. Where teams stop long before the horizon, that saves most of the
    time."""
    learning_starts: int = 128
    """Episodes played before learning starts (a batch at least)."""
    actor_lr: float = 2e-3
    """Adam's step size for the actors (TD3, PPO)."""
    critic_lr: float = 2e-3
    """Adam's step size for critics and values."""
    inference_lr: float = 3e-3
    """Adam's step size for the inference network."""
    final_lr_fraction: float = 0.1
    """Share of these step sizes left at the end of training (linear in between)."""
    max_grad_norm: float = 1.0
    """Largest norm of a gradient."""
    reward: Literal["confidence", "environment"] = "confidence"
    """What a round pays: the gain in confidence, or (an ablation) the problem's own payoff, with STOP worth 0."""
    posterior: Literal["auto", "network", "exact"] = "auto"
    """Whose confidence is paid: the inference network's, or exact Bayes where the problem has it ("auto": if its belief
    takes little memory). The network learns beside it and is what the team answers with."""
    stopping: Literal["learned", "threshold"] = "learned"
    """Who ends an episode: the agents, or (an ablation) the inference network's confidence reaching 1-δ."""
    cost: Literal["dual", "none"] = "dual"
    """Whether a round costs ζ, or (an ablation) nothing."""
    network: Network = field(default_factory=Network)
    algorithm: Algorithm = field(default_factory=PPO)
    dual: Dual = field(default_factory=Dual)
    plan: Plan = field(default_factory=Plan)
    teacher: Teacher = field(default_factory=Teacher)
    validation_interval: int = 25
    """Iterations between validations, which keep the best team so far."""
    validation_episodes: int = 2048
    """Worlds per validation."""
    iterations_per_call: int = 10
    """Iterations per compiled call; between calls the run can be logged, saved and interrupted."""
    finetune_fraction: float = 0.0
    """Share of training, at its end, in which the best team plays greedily and only the inference network learns."""
    checkpoint_minutes: float = 1.0
    """Wall time between checkpoints."""

    @property
    def greedy_worlds(self) -> int:
        """How many of an iteration's episodes are greedy: the first ones."""
        return round(self.num_envs * self.greedy_fraction)


traced(Dual, "lr", "max", "init", "margin")
traced(Plan, "lr", "ent_coef", "window", "follow_prob")
traced(Teacher, "weight", "until")
traced(
    Config,
    *("iterations", "actor_lr", "critic_lr", "inference_lr", "final_lr_fraction"),
    *("algorithm", "dual", "plan", "teacher"),
)

DEFAULT_ALGORITHM = "ppo"
COMMON = {
    "num_envs": 64,
    "greedy_fraction": 0.5,
    "buffer_size": 4096,
    "actor_lr": 1e-3,
    "critic_lr": 1e-3,
    "inference_lr": 1e-3,
    "network.encoder": Network.encoder,
    "network.inference": Network.inference,
    "network.stop_bias": Network.stop_bias,
    "dual.signal": Dual.signal,
    "dual.margin": Dual.margin,
    "dual.max": Dual.max,
    "dual.rule": Dual.rule,
    "dual.lr": Dual.lr,
    "dual.init": Dual.init,
    "plan.iterations": Plan.iterations,
    "posterior": Config.posterior,
    "stopping": Config.stopping,
    "teacher.weight": Teacher.weight,
    "teacher.policy": Teacher.policy,
}
ON_POLICY = {
    "algorithm": PPO(),
    "num_envs": Config.num_envs,
    "greedy_fraction": Config.greedy_fraction,
    "buffer_size": Config.buffer_size,
    "actor_lr": Config.actor_lr,
    "critic_lr": Config.critic_lr,
    "inference_lr": Config.inference_lr,
}
FROZEN = {**COMMON, "plan.iterations": 0, "posterior": "network", "stopping": "threshold"}
ALGORITHMS: dict[str, dict[str, Any]] = {
    "td3": {**COMMON, "algorithm": TD3(), "greedy_fraction": 0.0},
    "td3-paper": {
        **COMMON,
        "algorithm": PaperTD3(),
        "network.encoder": "paper",
        "network.inference": "paper",
        "network.stop_bias": 0.0,
        "dual.signal": "pooled",
        "dual.margin": 0.0,
        "dual.max": 1e6,
        "dual.rule": "additive",
        "dual.lr": 5e-3,
        "dual.init": 0.0,
        "plan.iterations": 0,
        "posterior": "network",
    },
    "ppo": {**COMMON, **ON_POLICY},
    "guided": {**COMMON, **ON_POLICY, "teacher.weight": 1.0},
    "vdn": {**COMMON, "algorithm": Value(mixing="sum", balance_coef=0.1)},
    "iql": {**COMMON, "algorithm": Value(mixing="none")},
    "dqn": {**COMMON, "algorithm": Value(mixing="none")},  # for one agent vdn, iql and dqn are the same
    "random": {**FROZEN, "algorithm": Frozen(policy="uniform")},
}
"""What a name given to `--algorithm` changes. The names of policies without learning are algorithms too."""

FAMILIES: dict[str, tuple[str, ...]] = {
    "on_policy": ("ppo", "guided"),
    "off_policy": ("td3", "td3-paper", "vdn", "iql", "dqn"),
}
"""Algorithms whose settings in a preset have much in common; all others are "frozen"."""

SUMMARIES = {
    "td3": "twin critics on everyone's history, decentralized actors, learned off-policy",
    "td3-paper": "the same by the paper's literal recipe",
    "ppo": "stochastic decentralized actors, a centralized value, learned on-policy",
    "guided": "ppo that first learns what another policy would do (teacher.policy: a baseline, or a team's file)",
    "vdn": "value decomposition: the agents' Q-values add up to the team's",
    "iql": "independent Q-learning (Double DQN per agent)",
    "dqn": "Double DQN; meant with --centralized",
    "random": "random actions, an inference network trained on them, a threshold stop; or any frozen policy",
}


def algorithms() -> dict[str, str]:
    """Every algorithm by name, with a line on what it is."""
    named = {name: f"random's training with another policy: {p.summary}" for name, p in named_policies().items()}
    return SUMMARIES | named


def family_of(name: str) -> str:
    """Which of the families an algorithm belongs to."""
    return next((family for family, names in FAMILIES.items() if name in names), "frozen")


def with_algorithm(config: Config, name: str) -> Config:
    """The configuration with the settings of a named algorithm."""
    if name in ALGORITHMS:
        return cast(Config, override(config, ALGORITHMS[name]))
    policy = named_policies().get(only(name, algorithms(), "algorithm"))
    assert policy is not None  # it is one or the other
    return cast(Config, override(config, {**FROZEN, "algorithm": Frozen(policy=name), **policy.settings}))
