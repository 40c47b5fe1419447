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
from icmape.networks import EncoderKind
from icmape.problems import Problem


@dataclass(frozen=True)
class Network:
    """Sizes of the networks."""

    encoder: EncoderKind = "paper+last"
    """What an encoder returns: the gated pooling ("paper"), or that and the last hidden state ("paper+last")."""
    width: int = 64
    """Width of embedding, LSTM and hidden layers."""
    shared: bool = True
    """One actor for all agents, told who it is; otherwise each agent has weights of its own."""
    stop_bias: float = -4.0
    """Where STOP's score starts: low, so that early episodes are long enough to learn from."""


@dataclass(frozen=True)
class TD3:
    """Twin delayed actor-critic. The defaults are our recipe; `td3-paper` sets the literal one."""

    shaping: Literal["potential", "terminal"] = "potential"
    """"potential": each round pays the gain in confidence minus the cost, values are relative to stopping now.
    "terminal": confidence is paid at the stop only."""
    stop_value: Literal["known", "learned"] = "known"
    """Whether the value of STOP is what it is by definition, or an output of the critic."""
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
    joint_gradient: bool = False
    """Actor gradients through all agents' relaxed actions, or through the agent's own only."""
    actor_value: Literal["q1", "min"] = "q1"
    """Critic that the actors climb: the first, or the smaller of both."""
    actor_every: int = 2
    """Critic updates per actor update."""
    polyak: float = 0.02
    """Rate at which target networks follow."""
    temperature: float = 1.0
    """Temperature of the Gumbel-Softmax."""
    logit_penalty: float = 1e-3
    """Weight of the squared actor scores, which keeps the softmax from saturating."""
    stop_consistency: float = 0.0
    """Weight of a penalty that asks every agent to prefer STOP where the team stopped (the paper's appendix)."""


@dataclass(frozen=True)
class Dual:
    """The price of a round (ζ), which rises while the team is surer than it needs to be."""

    rate: float = 3e-3
    """Step size η per iteration."""
    limit: float = 0.1
    """Largest price."""
    start: float = 0.0
    """Price at the start."""
    signal: Literal["confidence", "correctness", "pooled"] = "correctness"
    """What is held at the target: mean confidence, or the share of right answers, at the stop of greedy episodes; or
    the mean confidence over all rounds of the replayed batch ("pooled", the paper's)."""
    margin: float = 0.01
    """How far above 1-δ to aim, so that a certificate is usually granted."""


@dataclass(frozen=True)
class Config:
    """A training run."""

    delta: float = 0.1
    """δ: the answer must be right with probability 1-δ."""
    seeds: tuple[int, ...] = (215,)
    """One team is trained per seed, all in one program."""
    iterations: int = 1000
    """Length of training. An iteration plays `worlds` episodes and makes `updates` gradient steps."""
    minutes: float | None = None
    """Stop and save after this much wall time, if sooner; `icmape resume` goes on from there."""
    worlds: int = 64
    """Episodes played per iteration."""
    greedy_share: float = 0.5
    """Share of them played without any noise: they steer ζ and give the metrics."""
    updates: int = 4
    """Gradient steps per iteration."""
    batch: int = 64
    """Episodes per gradient step; every round of each is trained on."""
    replay: int = 4096
    """Episodes kept."""
    warmup: int = 256
    """Episodes played before learning starts (a batch at least)."""
    actor_rate: float = 1e-3
    """Adam's step size for the actors."""
    critic_rate: float = 1e-3
    """Adam's step size for the critics."""
    inference_rate: float = 1e-3
    """Adam's step size for the inference network."""
    rate_end: float = 0.1
    """Share of these step sizes left at the end of training (linear in between)."""
    clip: float = 1.0
    """Largest norm of a gradient."""
    network: Network = field(default_factory=Network)
    algorithm: TD3 = field(default_factory=TD3)
    dual: Dual = field(default_factory=Dual)
    validate_every: int = 50
    """Iterations between validations, which keep the best team so far."""
    validation_worlds: int = 2048
    """Worlds per validation."""
    chunk: int = 10
    """Iterations per compiled call; between calls the run can be logged, saved and interrupted."""
    checkpoint_minutes: float = 1.0
    """Wall time between checkpoints."""


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

ALGORITHMS: dict[str, dict[str, Any]] = {
    "td3": {
        "algorithm": TD3(),
        "network.encoder": Network.encoder,
        "network.stop_bias": Network.stop_bias,
        "dual.signal": Dual.signal,
        "dual.margin": Dual.margin,
        "dual.limit": Dual.limit,
    },
    "td3-paper": {
        "algorithm": PAPER_TD3,
        "network.encoder": "paper",
        "network.stop_bias": 0.0,
        "dual.signal": "pooled",
        "dual.margin": 0.0,
        "dual.limit": 1e6,
    },
}
"""What a name given to `--algorithm` changes."""


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
        if dataclasses.is_dataclass(current) and isinstance(value, Mapping):
            value = override(current, value, f"{section}{head}.")
        else:
            value = _coerce(section + name, value, typing.get_type_hints(type(config))[head])
        config = dataclasses.replace(config, **{head: value})
    return config


def to_dict(config: Config) -> dict[str, Any]:
    """Plain values, for JSON."""
    return dataclasses.asdict(config)


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
    if origin is types.UnionType:
        return None if value is None else _coerce(name, value, options[0])
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise UserError(f"{name} must be {kind.__name__}; given {value!r}")
    return value


def check(config: Config, problem: Problem) -> None:
    """Refuse what cannot work, before anything compiles."""
    if problem.horizon < 2:
        raise UserError(f"a problem needs at least two rounds; its horizon is {problem.horizon}")
    if not 0 < config.delta < 1:
        raise UserError(f"delta must lie strictly between 0 and 1; given {config.delta}")
    if not config.seeds or len(set(config.seeds)) != len(config.seeds):
        raise UserError(f"seeds must be one or more different integers; given {list(config.seeds)}")
    if not all(0 <= seed < 2**31 for seed in config.seeds):
        raise UserError(f"seeds must lie in 0..{2**31 - 1}; given {list(config.seeds)}")
    for name, low, high in RANGES:
        value = _at(config, name)
        if value is not None and not low <= value <= high:
            raise UserError(f"{name} must be {_range_in_words(low, high)}; given {value}")
    if config.batch > config.replay:
        raise UserError(f"a batch of {config.batch} episodes does not fit a replay of {config.replay}: raise replay")
    if config.worlds > config.replay:
        raise UserError(f"{config.worlds} worlds per iteration do not fit a replay of {config.replay}: raise replay")
    if round(config.worlds * config.greedy_share) < 1:
        raise UserError(
            f"greedy_share {config.greedy_share} of {config.worlds} worlds leaves no greedy episode to steer ζ and to "
            "measure: raise it"
        )


TINY, HUGE = 1e-12, 1e12
RANGES: tuple[tuple[str, float, float], ...] = (
    *((name, 1, HUGE) for name in ("iterations", "worlds", "updates", "batch", "replay", "chunk")),
    *((name, 1, HUGE) for name in ("validate_every", "validation_worlds", "network.width", "algorithm.actor_every")),
    *((name, 0, HUGE) for name in ("warmup", "checkpoint_minutes", "dual.rate", "dual.limit", "dual.start")),
    *((name, 0, HUGE) for name in ("algorithm.logit_penalty", "algorithm.stop_consistency")),
    *((name, 0, 1) for name in ("greedy_share", "rate_end", "dual.margin", "algorithm.trace", "algorithm.noise")),
    *((name, 0, 1) for name in ("algorithm.noise_end", "algorithm.keep_stop")),
    *((name, TINY, HUGE) for name in ("actor_rate", "critic_rate", "inference_rate", "clip", "minutes")),
    ("algorithm.temperature", TINY, HUGE),
    ("algorithm.polyak", TINY, 1),
    ("network.stop_bias", -HUGE, HUGE),
)
"""Settings and the ends of their ranges; what is not a number lies in none."""


def _at(config: Config, name: str) -> Any:
    for part in name.split("."):
        config = getattr(config, part)
    return config


def _range_in_words(low: float | int, high: float | int) -> str:
    if high == 1:
        return "between 0 and 1" if low == 0 else "above 0 and at most 1"
    return {TINY: "positive and finite", -HUGE: "finite"}.get(low, f"at least {low:g} and finite")
