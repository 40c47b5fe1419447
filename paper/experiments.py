"""The paper's settings and methods, as data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from icmape.errors import UserError, nearest
from icmape.evaluation.robustness import Sweep
from icmape.learning.presets import preset
from icmape.problem import Problem
from icmape.zoo.bandit.bandit_sweeps import CAPACITIES, MEANS
from icmape.zoo.signal.signal_sweeps import DISTANCE, INTENSITY

SEEDS = (215, 219, 321)
MAIN = "icmape"  # role of our method


@dataclass(frozen=True)
class Method:
    """A method. `role` is its name in the paper; `folder` holds its run.

    A method with a `level` is not trained: our teams stop once the posterior of all data reaches that level.
    """

    role: str
    label: str
    algorithm: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    centralized: bool = False
    folder_name: str = ""
    level: float | None = None
    fewer_worlds: str = ""  # why it simulates fewer than the setting's budget

    @property
    def folder(self) -> str:
        """Folder of its run, inside the setting's folder."""
        return self.folder_name or self.role


@dataclass(frozen=True)
class Scale:
    """A setting at one size: its problem, baselines and numbers of episodes."""

    preset: str
    arguments: Mapping[str, Any] = field(default_factory=dict)  # of the problem; replace the preset's
    sweeps: tuple[Sweep, ...] = ()
    baselines: tuple[str, ...] = ()
    seeds: tuple[int, ...] = SEEDS
    episodes: int = 10_000
    worlds: int | None = None  # that each method simulates for a team, those of its plan and all members included
    exact: int | None = None  # episodes evaluated with the exact posterior too; none: the default
    sweep_episodes: int = 2_000
    baseline_episodes: int = 10_000
    curve_episodes: int = 10_000  # of all methods at equal accuracy, which share their worlds
    certificate_worlds: int = 10_000
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # of training, by algorithm; "": for all

    def problem(self, **changes: Any) -> Problem:
        """The problem at this size."""
        chosen = preset(self.preset)
        return chosen.problem(**{**chosen.arguments, **self.arguments, **changes})


@dataclass(frozen=True)
class Setting:
    """A problem of the paper, with its methods."""

    name: str
    short: str  # in tables
    title: str
    full: Scale
    quick: Scale
    methods: tuple[Method, ...]
    central: str  # centralized baseline, for the price of decentralization
    schedule: str  # best non-adaptive baseline, for the adaptivity gap
    rule: str  # best decentralized rule without learning
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # other arguments, for evaluation only
    needs_data: bool = False
    trials: tuple[Method, ...] = ()  # changed settings, which are no rows of the paper; run when named
    problem: str = ""  # the heading under which the page shows it; by default its title

    def scale(self, quick: bool) -> Scale:
        """Full or quick size."""
        return self.quick if quick else self.full

    def method(self, role: str) -> Method | None:
        """The method or trial with a role, if there is one."""
        return next((method for method in (*self.methods, *self.trials) if method.role == role), None)

    @property
    def main(self) -> Method:
        """Our method."""
        return next(method for method in self.methods if method.role == MAIN)


SLOW = "about a second of a CPU core for a world"


def _baselines(*roles: str) -> tuple[Method, ...]:
    return tuple(BASELINES[role] for role in roles)


BASELINES: dict[str, Method] = {
    method.role: method
    for method in (
        Method("td3", "ICMAPE-TD3", "td3"),
        Method("ppo", "ICMAPE-PPO", "ppo"),
        Method("td3-paper", "TD3, the paper's recipe to the letter", "td3-paper"),
        Method("vdn", "ICMAPE-VDN", "vdn"),
        Method("iql", "independent Q-learning", "iql"),
        Method("random", "random actions, learned inference", "random"),
        Method("thompson", "Thompson sampling (corrected)", "thompson", fewer_worlds=SLOW),
        Method("thompson-paper", "Thompson sampling (the paper's rule)", "thompson-paper", fewer_worlds=SLOW),
        Method("gp-map", "GP prior map", "gp-map"),
        Method("gp-map-top6", "GP prior map, 6 highest cells", "gp-map-top6"),
        Method("gp-map-top20", "GP prior map, 20 highest cells", "gp-map-top20"),
        Method("central-td3", "centralized TD3", "td3", centralized=True),
        Method("central-dqn", "centralized DQN", "dqn", centralized=True),
        Method("environment", "environment reward (TD3)", "td3", {"reward": "environment"}),
        Method("threshold", "fixed-threshold stop (TD3)", "td3", {"stopping": "threshold"}),
        Method("no-cost", "no sampling cost (TD3)", "td3", {"cost": "none"}),
    )
}
ABLATION = ("environment", "threshold", "no-cost")
LATER = ("td3-paper", *ABLATION)  # trained after the other methods
STOPPED = Method("our-threshold", "ours, stopped by everyone's posterior at 0.9", "", level=0.9)


def _ours(algorithm: str) -> Method:
    return Method(MAIN, f"ours ({algorithm})", algorithm, folder_name=algorithm)


SCHEDULES = ("open-loop", "open-loop-local-stop", "open-loop-global-stop")
BANDIT_RULES = ("random", *SCHEDULES, "local-adaptive", "central-greedy")
SIGNAL_RULES = ("random", "sweep", "sweep-local-stop", "thompson", "thompson-paper", "local-greedy", "central-greedy")
HOTSPOT_RULES = (
    *("central-adaptive", "local-adaptive", "reading-list", "list-local-stop"),
    *("random", "gp-map", "gp-map-top6", "gp-map-top20"),
)
BANDIT_WORLDS = 600 * 2048 + 600 * 4 * 1024  # of training and of the plan
SIGNAL_WORLDS = 320 * 2048 + 200 * 4 * 256
HOTSPOT_WORLDS = 600 * 2048 + 600 * 4 * 512
CERTIFIED: dict[str, Mapping[str, Any]] = {"": {"certificate_worlds": 40_000, "settling_episodes": 98_304}}
"""Stops aim at 0.9044. On CERTIFICATE_WORLDS 0.9016 are needed, reached in 98 of 100 cases."""
CERTIFICATE_WORLDS = 100_000
ONE_MEMBER: dict[str, Mapping[str, Any]] = {"ppo": {"population_size": 1, "iterations": 600}}
"""The preset's population learns from three times as many worlds as other methods."""
NO_PLAN: dict[str, Any] = {"plan.iterations": 0}
FREE: dict[str, Any] = {"plan.follow_prob": 0.0}
FOLLOW: dict[str, Any] = {"plan.follow_prob": 0.9}
SLOW_ACTORS: dict[str, Any] = {"gradient_steps": 8, "actor_lr": 3e-4, "algorithm.policy_delay": 4}
LOG: dict[str, Any] = {"algorithm.log_truth_weight": 1.0}
QUICK: dict[str, Any] = {
    "seeds": SEEDS[:1],
    "episodes": 2_000,
    "exact": 200,
    "sweep_episodes": 500,
    "baseline_episodes": 2_000,
    "curve_episodes": 1_000,
    "certificate_worlds": 2_000,
}
QUICK_PLAN: dict[str, Any] = {"plan.iterations": 40, "plan.num_plans": 2, "plan.num_envs": 64}
"""Where a round takes long. The preset's plan would take ten times as many worlds as the training that follows.
Policies that do not learn have no plan."""
QUICK_LEARNERS: dict[str, Mapping[str, Any]] = dict.fromkeys(("td3", "vdn", "iql"), QUICK_PLAN)
QUICK_BANDIT: dict[str, Mapping[str, Any]] = {
    "": {"iterations": 150, "validation_episodes": 1024, "settling_episodes": 8192, "validation_interval": 50},
    "guided": {"iterations": 200, "validation_interval": 25},
    "ppo": {"iterations": 150, "validation_interval": 25},
}
QUICK_SIGNAL: dict[str, Mapping[str, Any]] = {
    "": {
        "iterations": 60,
        "validation_episodes": 512,
        "settling_episodes": 2048,
        "validation_interval": 30,
    },
    **QUICK_LEARNERS,
    "ppo": {"iterations": 100, "validation_interval": 20, **QUICK_PLAN},
    "thompson-paper": {"network.inference": "default"},  # the paper's convolutions take most of an hour on a CPU
}
QUICK_HOTSPOT: dict[str, Mapping[str, Any]] = {
    "": {
        "iterations": 60,
        "num_envs": 64,
        "batch_size": 32,
        "buffer_size": 1024,
        "validation_episodes": 256,
        "settling_episodes": 2048,
        "validation_interval": 30,
    },
    **QUICK_LEARNERS,
    "guided": {"iterations": 60, "num_envs": 128, "batch_size": 64, "validation_interval": 20, **QUICK_PLAN},
}
QUICK_GROUND: dict[str, Any] = {"horizon": 10}


def _bandit(name: str) -> Scale:
    return Scale(
        name,
        {},
        (MEANS, CAPACITIES),
        BANDIT_RULES,
        sweep_episodes=10_000,
        worlds=BANDIT_WORLDS,
        settings={**CERTIFIED, **ONE_MEMBER},
        certificate_worlds=CERTIFICATE_WORLDS,
    )


def _quick_bandit(arguments: Mapping[str, Any]) -> Scale:
    sweeps = MEANS.thinned(3), CAPACITIES
    return Scale("bandit-quick", arguments, sweeps, BANDIT_RULES, settings=QUICK_BANDIT, **QUICK)


A3P5 = Setting(
    "a3p5",
    "A3P5",
    "bandit A3P5 (3 arms, 5 players)",
    _bandit("bandit-a3p5"),
    _quick_bandit({}),
    (
        _ours("guided"),
        STOPPED,
        *_baselines("td3", "ppo", "vdn", "iql", "random", "central-td3", "central-dqn", "td3-paper", *ABLATION),
    ),
    central="central-greedy",
    schedule="open-loop",
    rule="local-adaptive",
    problem="Bandit",
    trials=(
        Method("ppo-no-plan", "PPO without the plan", "ppo", NO_PLAN),
        Method("ppo-no-kl", "PPO without the stops' KL penalty", "ppo", {"algorithm.stop_kl_coef": 0.0}),
        Method("guided-two", "guided, two members", "guided", {"population_size": 2}),
        Method("td3-slow", "TD3, slow actors, more critic steps", "td3", SLOW_ACTORS),
        Method("td3-free", "TD3, the plan not followed", "td3", FREE),
        Method("td3-follow", "TD3, the plan followed more", "td3", FOLLOW),
        Method("td3-follow-slow", "TD3, the plan followed more, slow actors", "td3", {**FOLLOW, **SLOW_ACTORS}),
        Method("td3-free-slow", "TD3, the plan not followed, slow actors", "td3", {**FREE, **SLOW_ACTORS}),
    ),
)
A5P3 = Setting(
    "a5p3",
    "A5P3",
    "bandit A5P3 (5 arms, 3 players)",
    _bandit("bandit-a5p3"),
    _quick_bandit({"arms": 3, "players": 2}),
    (_ours("guided"), STOPPED, *_baselines("td3", "vdn", "iql", "random")),
    central="central-greedy",
    schedule="open-loop",
    rule="local-adaptive",
    problem="Bandit",
    trials=(
        Method("ppo-log", "PPO, log p(H*) shaping", "ppo", {**LOG, "algorithm.stop_kl_coef": 0.1, **FREE}),
        Method("ppo-log-plan", "PPO, log p(H*) shaping, follows the plan", "ppo", LOG),
    ),
)
SIGNAL = Setting(
    "signal",
    "signal",
    "source localization",
    Scale(
        "signal",
        sweeps=(INTENSITY, DISTANCE),
        baselines=SIGNAL_RULES,
        sweep_episodes=1_000,
        baseline_episodes=2_000,
        curve_episodes=2_000,
        worlds=SIGNAL_WORLDS,
        settings=CERTIFIED,
        certificate_worlds=CERTIFICATE_WORLDS,
    ),
    Scale(
        "signal-quick",
        sweeps=(INTENSITY.thinned(3), Sweep("distance", {"exact_distance": (5, 10, 15, 20)})),
        baselines=("random",),
        settings=QUICK_SIGNAL,
        **QUICK,
    ),
    (_ours("ppo"), *_baselines("td3", "vdn", "iql", "random", "thompson", "thompson-paper")),
    central="central-greedy",
    schedule="sweep",
    rule="local-greedy",
    problem="Source localization",
)
NITRATE_BASELINES = _baselines("td3", "vdn", "iql", "random", "gp-map", "gp-map-top6", "gp-map-top20")


def _nitrate(name: str, title: str, small: Mapping[str, Any]) -> Setting:
    quick = Scale("nitrate-synthetic", small, baselines=("random",), settings=QUICK_HOTSPOT, **QUICK)
    return Setting(
        name,
        name,
        title,
        Scale(
            name,
            baselines=HOTSPOT_RULES,
            baseline_episodes=1_000,
            curve_episodes=2_000,
            worlds=HOTSPOT_WORLDS,
            settings=CERTIFIED,
            certificate_worlds=CERTIFICATE_WORLDS,
        ),
        quick,
        (_ours("guided"), *NITRATE_BASELINES),
        central="central-adaptive",
        schedule="reading-list",
        rule="list-local-stop",
        variants={"2019": {"years": [2019]}},
        needs_data=True,
        problem="Nitrate hotspots",
    )


NITRATE = _nitrate("nitrate", "nitrate hotspots (five readings a query)", QUICK_GROUND)
NITRATE_N1 = _nitrate("nitrate-n1", "nitrate hotspots (one reading a query)", {**QUICK_GROUND, "repeats": 1})

SETTINGS: dict[str, Setting] = {entry.name: entry for entry in (A3P5, A5P3, SIGNAL, NITRATE, NITRATE_N1)}


def setting_named(name: str) -> Setting:
    """A setting by name."""
    if name not in SETTINGS:
        raise UserError(f"unknown setting {name!r}: {nearest(name, SETTINGS)}")
    return SETTINGS[name]
