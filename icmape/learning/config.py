"""Every setting of a training run, with its default, in one place.

Frozen dataclasses: unknown names are errors, in Python, in a file and on the command line alike.
"""

import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from icmape.errors import UserError, nearest
from icmape.learning.algorithms import KINDS, PPO, TD3, Algorithm, Frozen, PaperTD3, Value, traced
from icmape.networks import EncoderKind, InferenceKind


@dataclass(frozen=True)
class Network:
    """Sizes of the networks."""

    encoder: EncoderKind = "paper+last"
    """What an encoder returns: the gated pooling ("paper"), or that and the last hidden state ("paper+last")."""
    width: int = 64
    """Width of embedding, LSTM and hidden layers."""
    shared: bool = True
    """One actor for all agents, told who it is; otherwise each agent has weights of its own."""
    inference: InferenceKind = "default"
    """Kind of the inference network: recurrent, or, where hypotheses are cells of a map, convolutional (sees 5×5
    cells), correlating (every cell hears from every other one, by how far it is), pairwise (by which two they are) or
    dense (all cells at once; fast on a CPU). "paper" is the paper's for the problem; "default" is pairwise where cells
    are the same places in all worlds, else correlating, and recurrent where there are none."""
    stop_bias: float = -4.0
    """Where STOP's score starts: low, so that early episodes are long enough. Value learners have none."""


@dataclass(frozen=True)
class Dual:
    """The price of a round (ζ), which rises while the team is surer than it needs to be."""

    rule: Literal["scaled", "added"] = "scaled"
    """How the price moves: by a factor, once the team has first come near its target ("scaled"); or by a sum, from the
    start ("added", the paper's)."""
    rate: float = 0.5
    """Step size η per iteration; "scaled" takes it times at most 0.02."""
    limit: float = 1.0
    """Largest price."""
    start: float | None = None
    """Price at the start; none: a quarter of a round's share in the plan's length, or of the horizon's without one."""
    signal: Literal["confidence", "correctness", "pooled"] = "correctness"
    """What is held at the target: mean confidence, or the share of right answers, at the stop (of greedy episodes where
    stops are drawn); or the mean confidence over all rounds of the replayed batch ("pooled", the paper's)."""
    margin: float = 0.01
    """How far above 1-δ to aim, so that a certificate is usually granted."""


@dataclass(frozen=True)
class Plan:
    """The first phase: non-adaptive schedules, and an inference network that learns beside them."""

    iterations: int = 150
    """Length of the phase; 0: none."""
    plans: int = 4
    """Schedules that are learned side by side, of which the best is kept."""
    worlds: int = 128
    """Episodes of each per iteration."""
    updates: int = 4
    """Gradient steps of the inference network per iteration; together they read every episode once."""
    rounds: int = 16
    """Rounds of data in the first try; twice as many in the next, until the target is reached."""
    rate: float = 0.05
    """Adam's step size for the logits of a schedule; a fifth of it at the end."""
    entropy: float = 5e-3
    """Weight of their entropy at the start; 0 at the end."""
    follow: float = 0.6
    """Probability with which actors take the plan's actions at first, before they see (TD3, PPO), if it reaches the
    target; below that of one action among all alike, nothing is taken over."""
    window: float = 0.35
    """What is maximised: confidence around the length at which the target is reached, within this share of it."""


@dataclass(frozen=True)
class Guide:
    """A policy to learn from first, before the team finds its own way (TD3, PPO)."""

    policy: str = ""
    """A reference by name or a team file, whose agents decide from their own histories; empty for none."""
    share: float = 0.0
    """Share of -log π(the guide's choice) in the actors' loss at the start of training, the rest being their own
    objective; 0: nobody is followed."""
    until: float = 0.4
    """Part of training by which that share has fallen to 0 (linearly)."""
    stop: bool = True
    """Whether its STOP is followed too, if it has one; otherwise the team finds out by itself when to stop."""


@dataclass(frozen=True)
class Config:
    """A training run."""

    delta: float = 0.1
    """δ: the answer must be right with probability 1-δ."""
    deltas: tuple[float, ...] = ()
    """Other δ to have teams for, out of the same training: it keeps the best team for each, its stops moved to that
    accuracy."""
    seeds: tuple[int, ...] = (215,)
    """One team is trained per seed, all in one program."""
    members: int = 1
    """Teams trained side by side for each seed; the one that validates best is kept. They share the seed's plan and
    differ in their networks' first weights and in the worlds they see."""
    iterations: int = 200
    """Length of training. An iteration plays `worlds` episodes and learns from them and from the replay."""
    minutes: float | None = None
    """Stop and save after this much wall time, if sooner; `icmape resume` goes on from there."""
    worlds: int = 256
    """Episodes played per iteration."""
    greedy_share: float = 0.0
    """Share of them played without any noise: they steer ζ and give the metrics. PPO and TD3 need none."""
    updates: int = 4
    """Gradient steps per iteration on replayed episodes; in PPO those of the inference network only."""
    batch: int = 64
    """Episodes per gradient step; every round of each is trained on."""
    replay: int = 256
    """Episodes kept."""
    rounds: int | None = None
    """Longest episode, where STOP is forced, in training and ever after; none: 1.4 times the plan's length and three
    more, or the problem's horizon without a plan. Where teams stop long before the horizon, that saves most of the
    time."""
    warmup: int = 128
    """Episodes played before learning starts (a batch at least)."""
    actor_rate: float = 2e-3
    """Adam's step size for the actors (TD3, PPO)."""
    critic_rate: float = 2e-3
    """Adam's step size for critics and values."""
    inference_rate: float = 3e-3
    """Adam's step size for the inference network."""
    rate_end: float = 0.1
    """Share of these step sizes left at the end of training (linear in between)."""
    clip: float = 1.0
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
    guide: Guide = field(default_factory=Guide)
    validate_every: int = 25
    """Iterations between validations, which keep the best team so far."""
    validation_worlds: int = 2048
    """Worlds per validation."""
    chunk: int = 10
    """Iterations per compiled call; between calls the run can be logged, saved and interrupted."""
    polish: float = 0.0
    """Share of training, at its end, in which the best team plays greedily and only the inference network learns."""
    checkpoint_minutes: float = 1.0
    """Wall time between checkpoints."""

    @property
    def greedy_worlds(self) -> int:
        """How many of an iteration's episodes are greedy: the first ones."""
        return round(self.worlds * self.greedy_share)


traced(Dual, "rate", "limit", "start", "margin")
traced(Plan, "rate", "entropy", "window", "follow")
traced(Guide, "share", "until")
traced(
    Config,
    *("iterations", "actor_rate", "critic_rate", "inference_rate", "rate_end"),
    *("algorithm", "dual", "plan", "guide"),
)

DEFAULT_ALGORITHM = "ppo"
COMMON = {
    "worlds": 64,
    "greedy_share": 0.5,
    "replay": 4096,
    "actor_rate": 1e-3,
    "critic_rate": 1e-3,
    "inference_rate": 1e-3,
    "network.encoder": Network.encoder,
    "network.inference": Network.inference,
    "network.stop_bias": Network.stop_bias,
    "dual.signal": Dual.signal,
    "dual.margin": Dual.margin,
    "dual.limit": Dual.limit,
    "dual.rule": Dual.rule,
    "dual.rate": Dual.rate,
    "dual.start": Dual.start,
    "plan.iterations": Plan.iterations,
    "posterior": Config.posterior,
    "stopping": Config.stopping,
    "guide.share": Guide.share,
    "guide.policy": Guide.policy,
}
ON_POLICY = {
    "algorithm": PPO(),
    "worlds": Config.worlds,
    "greedy_share": Config.greedy_share,
    "replay": Config.replay,
    "actor_rate": Config.actor_rate,
    "critic_rate": Config.critic_rate,
    "inference_rate": Config.inference_rate,
}
FROZEN = {**COMMON, "plan.iterations": 0, "posterior": "network", "stopping": "threshold"}
ALGORITHMS: dict[str, dict[str, Any]] = {
    "td3": {**COMMON, "algorithm": TD3(), "greedy_share": 0.0},
    "td3-paper": {
        **COMMON,
        "algorithm": PaperTD3(),
        "network.encoder": "paper",
        "network.inference": "paper",
        "network.stop_bias": 0.0,
        "dual.signal": "pooled",
        "dual.margin": 0.0,
        "dual.limit": 1e6,
        "dual.rule": "added",
        "dual.rate": 5e-3,
        "dual.start": 0.0,
        "plan.iterations": 0,
        "posterior": "network",
    },
    "ppo": {**COMMON, **ON_POLICY},
    "guided": {**COMMON, **ON_POLICY, "guide.share": 1.0},
    "vdn": {**COMMON, "algorithm": Value(mixing="sum", balance=0.1)},
    "iql": {**COMMON, "algorithm": Value(mixing="none")},
    "random": {**FROZEN, "algorithm": Frozen(policy="uniform")},
    "thompson": {**FROZEN, "algorithm": Frozen(policy="thompson")},
    "thompson-paper": {**FROZEN, "algorithm": Frozen(policy="thompson-paper"), "network.inference": "paper"},
}
"""What a name given to `--algorithm` changes."""
for _map in ("gp-map", "gp-map-top6", "gp-map-top20"):
    ALGORITHMS[_map] = {**FROZEN, "algorithm": Frozen(policy=_map)}
ALGORITHMS["dqn"] = ALGORITHMS["iql"]  # for one agent (a centralized team) vdn, iql and dqn are the same

NEVER_STOP = ("uniform", "thompson", "thompson-paper", "gp-map", "gp-map-top6", "gp-map-top20")
"""Frozen policies by name, all of which leave the stop to the inference."""

SUMMARIES = {
    "td3": "twin critics on everyone's history, decentralized actors, learned off-policy",
    "td3-paper": "the same by the paper's literal recipe",
    "ppo": "stochastic decentralized actors, a centralized value, learned on-policy",
    "guided": "ppo that first learns what another policy would do (guide.policy: a reference, or a team's file)",
    "vdn": "value decomposition: the agents' Q-values add up to the team's",
    "iql": "independent Q-learning (Double DQN per agent)",
    "dqn": "Double DQN; meant with --centralized",
    "random": "random actions, an inference network trained on them, a threshold stop; or any frozen policy",
    "thompson": "the same with Thompson sampling, which reads others' positions (source localization)",
    "thompson-paper": "the same by the paper's literal rule",
    "gp-map": "the same with cells drawn in proportion to a field fitted to the past (hotspots)",
    "gp-map-top6": "the same among that field's six highest cells",
    "gp-map-top20": "the same among its twenty highest",
}


def with_algorithm(config: Config, name: str) -> Config:
    """The configuration with the settings of a named algorithm."""
    if name not in ALGORITHMS:
        raise UserError(f"unknown algorithm {name!r}: {nearest(name, ALGORITHMS)}")
    return override(config, ALGORITHMS[name])


def override(config: Any, changes: Mapping[str, Any], section: str = "") -> Any:
    """A copy with settings changed: nested mappings, or names with dots ("network.width")."""
    for name, value in changes.items():
        head, _, rest = name.partition(".")
        known = {f.name: f for f in dataclasses.fields(config)}
        if head not in known:
            raise UserError(f"unknown setting {section + name!r}: {nearest(head, known)}")
        if rest:
            value = {rest: value}
        current = getattr(config, head)
        if isinstance(current, Algorithm) and isinstance(value, Mapping) and "kind" in value:
            current, value = _of_kind(current, **value)
        if dataclasses.is_dataclass(current) and isinstance(value, Mapping):
            value = override(current, value, f"{section}{head}.")
        else:
            value = _coerce(section + name, value, typing.get_type_hints(type(config))[head])
        config = dataclasses.replace(config, **{head: value})
    return config


def _of_kind(current: Algorithm, kind: Any, **rest: Any) -> tuple[Algorithm, dict[str, Any]]:
    """The settings that changes apply to: those at hand if they are of this kind, else its defaults."""
    if kind not in KINDS:
        raise UserError(f"unknown algorithm.kind {kind!r}: {nearest(str(kind), KINDS)}")
    return current if type(current) is KINDS[kind] else KINDS[kind](), rest


def to_dict(config: Config) -> dict[str, Any]:
    """Plain values, for JSON. An algorithm's settings name their kind."""
    plain = dataclasses.asdict(config)
    kind = next(name for name, made in KINDS.items() if type(config.algorithm) is made)
    return plain | {"algorithm": {"kind": kind, **plain["algorithm"]}}


def _coerce(name: str, value: Any, kind: Any) -> Any:
    """Check a value against its annotation; JSON's lists become tuples and its ints floats where that is meant."""
    origin, options = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        if value in options:
            return value
        raise UserError(f"{name} must be one of {', '.join(map(str, options))}; given {value!r}")
    if origin is tuple:
        items = (value,) if isinstance(value, int) else value
        if isinstance(items, str) or not hasattr(items, "__iter__"):
            raise UserError(f"{name} must be a list of {options[0].__name__}; given {value!r}")
        return tuple(_coerce(name, item, options[0]) for item in items)
    if origin is types.UnionType and all(map(dataclasses.is_dataclass, options)):
        if isinstance(value, options):
            return value
        raise UserError(f"{name} must be the settings of an algorithm, such as {{'kind': 'td3'}}; given {value!r}")
    if origin is types.UnionType:
        return None if value is None else _coerce(name, value, options[0])
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise UserError(f"{name} must be {kind.__name__}; given {value!r}")
    return value
