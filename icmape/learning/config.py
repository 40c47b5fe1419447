"""Every setting of a training run, with its default, in one place.

Frozen dataclasses: unknown names are errors, in Python, in a file and on the command line alike.
"""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, NamedTuple, cast

from icmape.errors import known_name
from icmape.learning import renamed
from icmape.learning.algorithms import PPO, TD3, Algorithm, Frozen, PaperTD3, Value, traced
from icmape.networks.sizes import Network
from icmape.play.named_policies import named_policies
from icmape.settings import override


@dataclass(frozen=True)
class Dual:
    """The dual variable ζ: the cost of one round. It rises while accuracy exceeds the target and falls below it."""

    RENAMED: ClassVar[dict[str, str]] = renamed.DUAL
    rule: Literal["multiplicative", "additive"] = "multiplicative"
    """Update rule: "multiplicative" (starts once accuracy has come within 0.02 of the target) or "additive" (the
    paper's, from the first iteration)."""
    lr: float = 0.5
    """Step size η per iteration. The multiplicative rule clips the error to ±0.02."""
    max: float = 1.0
    """Upper bound of ζ."""
    init: float | None = None
    """Initial ζ; none: 0.25 / length of the plan, or 0.25 / horizon without a plan."""
    signal: Literal["confidence", "correctness", "pooled"] = "correctness"
    """Quantity held at the target: "correctness" or "confidence" at the stop, or "pooled", the mean confidence over all
    rounds of the replayed batch (the paper's)."""
    margin: float = 0.01
    """Added to the target 1-δ, so that a certificate is usually granted."""


@dataclass(frozen=True)
class Plan:
    """First phase of training: non-adaptive schedules learned by policy gradient, together with the inference
    network."""

    RENAMED: ClassVar[dict[str, str]] = renamed.PLAN
    iterations: int = 150
    """Iterations of the phase; 0 disables it."""
    num_plans: int = 4
    """Schedules learned in parallel; the best one is kept."""
    num_envs: int = 128
    """Episodes per schedule and iteration."""
    gradient_steps: int = 4
    """Gradient steps of the inference network per iteration. Together they use every episode once."""
    init_rounds: int = 16
    """Length of the first schedules; doubled until the target is reached."""
    lr: float = 0.05
    """Learning rate of the logits (Adam); it falls linearly to one fifth."""
    ent_coef: float = 5e-3
    """Initial entropy coefficient; it falls linearly to 0."""
    follow_prob: float = 0.6
    """Initial probability that an actor takes the plan's action (TD3, PPO), used only if the plan reaches the
    target."""
    window: float = 0.35
    """Relative width of the window of episode lengths over which confidence is maximised."""


@dataclass(frozen=True)
class Teacher:
    """Imitation of another policy at the start of training (TD3, PPO)."""

    policy: str = ""
    """A baseline by name, a team file, or module:Class; its agents must act on their own histories. Empty: none."""
    weight: float = 0.0
    """Initial weight of the imitation loss -log π(teacher's action); the rest is the actors' own loss. 0 disables
    imitation."""
    until: float = 0.4
    """Fraction of training after which the weight is 0 (linear decay)."""
    stop: bool = True
    """Imitate the teacher's STOP too, if it has one."""


@dataclass(frozen=True)
class Config:
    """A training run."""

    RENAMED: ClassVar[dict[str, str]] = renamed.RUN
    delta: float = 0.1
    """Allowed error probability δ: the answer must be right with probability 1-δ."""
    deltas: tuple[float, ...] = ()
    """Further δ. The best team for each is kept from the same training, with its stopping threshold moved."""
    seeds: tuple[int, ...] = (215,)
    """One team is trained per seed, all in one compiled program."""
    population_size: int = 1
    """Teams trained in parallel per seed; the best by validation is kept. They share the seed's plan and differ in
    initial weights and training worlds."""
    iterations: int = 200
    """Iterations of training. Each one plays `num_envs` episodes and updates the networks."""
    minutes: float | None = None
    """Wall-time limit; the run is saved and `icmape resume` continues it."""
    num_envs: int = 256
    """Episodes played per iteration."""
    greedy_fraction: float = 0.0
    """Fraction of them played greedily; they drive ζ and the metrics. PPO and TD3 do not need them."""
    gradient_steps: int = 4
    """Gradient steps per iteration on replayed episodes; in PPO those of the inference network only."""
    batch_size: int = 64
    """Episodes per gradient step. Every round of each episode is used."""
    buffer_size: int = 256
    """Capacity of the replay buffer in episodes."""
    max_rounds: int | None = None
    """Longest episode in training and afterwards; STOP is forced in its last round. None: 1.4 × length of the plan + 3,
    or the horizon without a plan."""
    learning_starts: int = 128
    """Episodes played before the first gradient step (at least one batch)."""
    actor_lr: float = 2e-3
    """Learning rate of the actors (Adam; TD3, PPO)."""
    critic_lr: float = 2e-3
    """Learning rate of critics and values (Adam)."""
    inference_lr: float = 3e-3
    """Learning rate of the inference network (Adam)."""
    final_lr_fraction: float = 0.1
    """Learning rates at the end of training, as a fraction of the initial ones (linear decay)."""
    max_grad_norm: float = 1.0
    """Gradients are clipped to this norm."""
    reward: Literal["confidence", "environment"] = "confidence"
    """Reward of a round: gain in confidence, or the problem's own payoff with STOP worth 0 (an ablation)."""
    posterior: Literal["auto", "network", "exact"] = "auto"
    """Posterior that the reward comes from: the inference network's, or exact Bayes ("auto": exact if its belief is
    small). The network is trained in both cases and gives the team's answers."""
    stopping: Literal["learned", "threshold"] = "learned"
    """Who stops: the agents, or the inference network's confidence reaching 1-δ (an ablation)."""
    cost: Literal["dual", "none"] = "dual"
    """Whether a round costs ζ, or nothing (an ablation)."""
    network: Network = field(default_factory=Network)
    algorithm: Algorithm = field(default_factory=PPO)
    dual: Dual = field(default_factory=Dual)
    plan: Plan = field(default_factory=Plan)
    teacher: Teacher = field(default_factory=Teacher)
    validation_interval: int = 25
    """Iterations between validations; the best validated team is kept."""
    validation_episodes: int = 2048
    """Episodes per validation."""
    settling_episodes: int = 32768
    """Episodes in the final judgement of the best team: at least those of a validation; whole batches of 2,048."""
    certificate_worlds: int = 10_000
    """Worlds of the certificate that teams will ask for. Stops aim above 1-δ so that nine in ten are granted: 0.0088
    above 0.9 for 10,000 worlds, 0.0044 for 40,000."""
    iterations_per_call: int = 10
    """Iterations per compiled call. Logging, checkpoints and interrupts happen between calls."""
    finetune_fraction: float = 0.0
    """Final fraction of training in which the best team plays greedily and only the inference network is trained."""
    checkpoint_minutes: float = 1.0
    """Wall time between checkpoints."""

    def for_programs(self) -> "Config":
        """The settings as programs take them: seeds are inputs of their own, so other seeds need no other program."""
        return replace(self, seeds=(0,) * len(self.seeds))

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


class NamedAlgorithm(NamedTuple):
    """What a name given to `--algorithm` stands for."""

    summary: str
    family: str  # whose settings in a preset it shares
    changes: dict[str, Any]


FAMILIES = ("on_policy", "off_policy", "frozen")
ALGORITHMS: dict[str, NamedAlgorithm] = {
    "td3": NamedAlgorithm(
        "twin centralized critics, decentralized actors, learned off-policy",
        "off_policy",
        {**COMMON, "algorithm": TD3(), "greedy_fraction": 0.0},
    ),
    "td3-paper": NamedAlgorithm(
        "TD3 by the paper's literal recipe",
        "off_policy",
        {
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
    ),
    "ppo": NamedAlgorithm(
        "stochastic decentralized actors, a centralized value, learned on-policy", "on_policy", {**COMMON, **ON_POLICY}
    ),
    "guided": NamedAlgorithm(
        "PPO that imitates another policy at first (teacher.policy: a baseline, a team's file, module:Class)",
        "on_policy",
        {**COMMON, **ON_POLICY, "teacher.weight": 1.0},
    ),
    "vdn": NamedAlgorithm(
        "value decomposition: the agents' Q-values add up to the team's",
        "off_policy",
        {**COMMON, "algorithm": Value(mixing="sum", balance_coef=0.1)},
    ),
    "qmix": NamedAlgorithm(
        "value decomposition: a network that increases in every agent's Q-value gives the team's",
        "off_policy",
        {**COMMON, "algorithm": Value(mixing="qmix")},
    ),
    "iql": NamedAlgorithm(
        "independent Q-learning (Double DQN per agent)", "off_policy", {**COMMON, "algorithm": Value(mixing="none")}
    ),
    "dqn": NamedAlgorithm(  # for one agent vdn, iql and dqn are the same
        "Double DQN; meant with --centralized", "off_policy", {**COMMON, "algorithm": Value(mixing="none")}
    ),
    "random": NamedAlgorithm(
        "random actions, an inference network trained on them, a threshold stop; or any fixed policy",
        "frozen",
        {**FROZEN, "algorithm": Frozen(policy="uniform")},
    ),
}
"""Policies that problems name are algorithms too (`algorithms`)."""


def algorithms() -> dict[str, NamedAlgorithm]:
    """Every algorithm by name."""
    fixed = {
        name: NamedAlgorithm(
            f"as random, with another policy: {policy.summary}",
            "frozen",
            {**FROZEN, "algorithm": Frozen(policy=name), **policy.settings},
        )
        for name, policy in named_policies().items()
    }
    return ALGORITHMS | {name: named for name, named in fixed.items() if name not in ALGORITHMS}


def with_algorithm(config: Config, name: str) -> Config:
    """The configuration with the settings of a named algorithm."""
    if name in ALGORITHMS:
        return cast(Config, override(config, ALGORITHMS[name].changes))
    return cast(Config, override(config, algorithms()[known_name(name, algorithms(), "algorithm")].changes))


def split_sizes(config: Config) -> dict[str, int]:
    """The numbers of episodes that the devices of a seed share, by the settings that they come from."""
    drawn = config.num_envs - config.greedy_worlds
    if not isinstance(config.algorithm, PPO):
        return {"num_envs": config.num_envs, "batch_size": config.batch_size}
    parts = {"num_minibatches": config.algorithm.num_minibatches, "gradient_steps": config.gradient_steps}
    return {"num_envs": config.num_envs} | {f"num_envs / {name}": drawn // count for name, count in parts.items()}
