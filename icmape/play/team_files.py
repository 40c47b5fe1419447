"""Team files: safetensors files with all that acting needs. Loading executes no code from the file."""

import json
import logging
import os
from collections.abc import Collection
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from icmape.errors import UserError, nearest
from icmape.io import file_digest, read_bounded, write_atomically
from icmape.networks import Actors, Inference, InferenceKind, InferenceNetwork, StopScore, make_inference
from icmape.networks.sizes import Network
from icmape.play.inference import ExactInference, NetworkInference
from icmape.play.named_policies import named_policy
from icmape.play.open_loop import FixedLogits, Schedule, Uniform
from icmape.play.policy import LearnedPolicy, Policy
from icmape.play.programs.describe import team_program
from icmape.play.stop import FixedLength, LearnedStop, Threshold
from icmape.play.team import Team
from icmape.problem import Problem, spec
from icmape.settings import override
from icmape_agent.files import FORMAT, KEY
from icmape_agent.program import PREFIX
from icmape_agent.sealing import BLANK, SEAL, UNSEALED, VERSION, is_whole, sealed

log = logging.getLogger("icmape")

STOP_SCORES: dict[str, StopScore] = {"learned": "learned", "values": "zero", "apart": "apart"}
"""Kinds of learned policies in files, and the kind of their score of STOP (`networks.heads.Actor`)."""


FILE_NAMES = {"width": "hidden_size", "shared": "share_weights"}
"""Names of network settings in files, and in `Network`."""


def save(team: Team, path: str | os.PathLike[str], *, half: Collection[str] = ()) -> None:
    """Write a team, atomically.

    The weights of parts in `half` ("policy", "inference") are stored in 16 bits; computations use 32 bits.
    """
    from safetensors.numpy import save as encode

    tensors = {name: np.ascontiguousarray(leaf) for name, leaf in team_tensors(team).items()}
    for name, tensor in tensors.items():
        if tensor.dtype == np.float32 and name.startswith(tuple(half)) and half:
            tensors[name] = tensor.astype(np.float16)
    metadata = {
        "format": FORMAT,
        "version": VERSION,
        SEAL: BLANK,
        "problem": json.dumps(spec.describe(team.problem, local=False)),
        "parts": json.dumps(_describe(team)),
        "delta": json.dumps(team.delta),
        "card": team.card,
    }
    program = team_program(team, team_tensors(team))
    metadata[KEY] = program.text
    tensors |= program.tensors
    write_atomically(Path(path), sealed(encode(tensors, metadata=metadata)))


def load(source: str | os.PathLike[str], problem: Problem | type[Problem] | None = None, **changes: Any) -> Team:
    """Read a team from a file, or a pretrained one by name.

    `changes` replace arguments of its problem: `data=...` if worlds come from local files, or the parameters of another
    prior for an evaluation.

    A file never causes an import: for a problem that is not part of icmape, pass its class (built with the arguments in
    the file) or an instance as `problem`. For a centralized team, pass the inner problem or a `Centralized` one.
    """
    path = _find(source)
    metadata, tensors = _read(path)
    if metadata["version"] == UNSEALED:
        log.warning("%s was written by icmape 0.11 or older, without a SHA-256: damage to it is not noticed", path)
    try:
        described = json.loads(metadata["problem"])
        parts, delta, card = json.loads(metadata["parts"]), json.loads(metadata["delta"]), metadata["card"]
        built = spec.build(described, problem, changes)
        skeleton = eqx.filter_eval_shape(lambda: _build(built, parts))
        _check_card(json.loads(card), delta)
    except UserError as error:
        raise UserError(str(error) if str(path) in str(error) else f"{path}: {error}") from error
    except (KeyError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
        if changes:
            raise UserError(f"{path}: its problem cannot be built with {changes}: {error}") from error
        raise UserError(
            f"{path}: its description cannot be read ({error}); was it written by another version?"
        ) from error
    policy, stop, inference = _fill(path, skeleton, tensors)
    if policy is None:
        policy = _named_policy(path, built, parts["policy"])
    return Team(built, policy, stop, inference, delta, card)


class About(NamedTuple):
    """The metadata of a team file."""

    path: Path
    problem: dict[str, Any]  # as `problem.spec` writes it
    delta: float
    card: dict[str, Any]

    @property
    def digest(self) -> str:
        """A hash of the file, or of the file with 32-bit weights that it was rounded from."""
        return str(self.card.get("rounded_from") or file_digest(self.path))


def about(source: str | os.PathLike[str]) -> About:
    """The metadata of a team file or a pretrained team; nothing is built."""
    path = _find(source)
    metadata = _read(path)[0]
    try:
        problem, delta, card = (json.loads(metadata[name]) for name in ("problem", "delta", "card"))
        spec.full_kind(problem)
        _check_card(card, delta)
        return About(path, {**problem, "arguments": dict(problem["arguments"])}, float(delta), dict(card))
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        raise UserError(
            f"{path}: its description cannot be read ({error}); was it written by another version?"
        ) from error


def _check_card(card: Any, delta: Any) -> None:
    """Raise ValueError for an error probability or a card that no team has."""
    if not (isinstance(delta, float) and 0 < delta < 1):
        raise ValueError(f"delta is {delta!r}")
    if not isinstance(card, dict):
        raise ValueError("its card holds no values by name")
    for name in ("seconds", "environment_steps"):
        value: Any = card.get(name) or 0
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise ValueError(f"{name} of its card is {value!r}")


def pretrained() -> list[str]:
    """Names of the teams that come with icmape."""
    folder = resources.files("icmape.play") / "pretrained"
    return sorted(f.name.removesuffix(".safetensors") for f in folder.iterdir()) if folder.is_dir() else []


def _find(source: str | os.PathLike[str]) -> Path:
    path = Path(source)
    if path.is_file():
        return path
    if str(source) in pretrained():
        return Path(str(resources.files("icmape.play") / "pretrained" / f"{source}.safetensors"))
    if path.is_dir():
        raise UserError(f"{path} is a folder; expected a team file (a run's teams are {path}/team-SEED.safetensors)")
    names = pretrained()
    if path.parent != Path("."):  # a path: suggest no names
        raise UserError(f"no team file or run's folder {source}")
    hint = nearest(str(source), names) if names else "no pretrained teams come with this version"
    raise UserError(f"no team file {source}, and no pretrained team of that name: {hint}")


def _read(path: Path) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """Metadata and tensors of a team file whose content was checked."""
    from safetensors import SafetensorError
    from safetensors.numpy import load as decode

    try:
        data = read_bounded(path)
        tensors = decode(data)  # checks the layout, that of the header too
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    except (SafetensorError, KeyError, ValueError, RecursionError) as error:
        raise UserError(f"{path} is not a whole team file: {error}") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error}") from error
    metadata: dict[str, str] = header.get("__metadata__") or {}
    if metadata.get("format") != FORMAT:
        raise UserError(f"{path} is a safetensors file, but not a team of icmape's")
    version = metadata.get("version")
    if version not in (VERSION, UNSEALED):
        raise UserError(
            f"{path} has team format {version}, this icmape reads {UNSEALED} and {VERSION}: use the version that wrote "
            "it, or train again"
        )
    if version == VERSION and not is_whole(data, str(metadata.get(SEAL))):
        raise UserError(
            f"{path} is damaged or was edited: its content does not have the SHA-256 that it was written with; "
            "copy it again from where it came from"
        )
    return metadata, {name: tensor for name, tensor in tensors.items() if not name.startswith(PREFIX)}


def _describe(team: Team) -> dict[str, Any]:
    policy, stop, inference = team.policy, team.stop, team.inference
    parts: dict[str, Any] = {"stop": {"kind": stop.kind}, "inference": {"kind": inference.kind}}
    if isinstance(policy, LearnedPolicy):
        encoder = policy.actors.actor.encoder
        parts["policy"] = {
            "kind": {stop: kind for kind, stop in STOP_SCORES.items()}[policy.actors.actor.stop],
            "encoder": encoder.kind,
            "width": encoder.width,
            "shared": policy.actors.shared,
            "rounds": policy.actors.actor.rounds,
        }
    elif isinstance(policy, Schedule):
        parts["policy"] = {"kind": "schedule", "rounds": policy.table.shape[0]}
    elif isinstance(policy, Uniform):
        parts["policy"] = {"kind": "uniform"}
    elif isinstance(policy, FixedLogits):
        parts["policy"] = {"kind": "map", "name": policy.kind}
    elif _is_named(policy):
        parts["policy"] = {"kind": "baseline", "name": policy.kind}
    else:
        raise UserError(f"a team file cannot hold a {type(policy).__name__} policy")
    if isinstance(stop, FixedLength):
        parts["stop"]["rounds"] = stop.rounds
    if isinstance(stop, Threshold):
        parts["stop"]["level"] = stop.level
    if not isinstance(inference, NetworkInference | ExactInference):
        raise UserError(f"a team file cannot hold an inference by a {inference.kind}: it is made from data")
    if isinstance(inference, NetworkInference):
        parts["inference"] |= _describe_network(inference.network)
    return parts


def _describe_network(network: InferenceNetwork) -> dict[str, Any]:
    encoder = {"encoder": network.encoder.kind} if isinstance(network, Inference) else {}
    kind = {} if isinstance(network, Inference) else {"inference": network.kind}  # recurrent: no key
    return {**encoder, "width": network.width, **kind}


PARTS = {
    "policy": {"kind", "encoder", "width", "shared", "rounds", "name", "inference"},
    "stop": {"kind", "rounds", "level"},
    "inference": {"kind", "encoder", "width", "inference"},
}
"""The names that the description of each part of a team may have."""


def _build(problem: Problem, parts: dict[str, Any]) -> tuple:
    """The parts of a team with arbitrary weights, for their shapes."""
    key = jax.random.key(0)

    def network(described: dict[str, Any]) -> Network:
        settings = {FILE_NAMES.get(k, k): v for k, v in described.items() if k not in ("kind", "rounds")}
        return cast(Network, override(Network(), settings))

    policy: Any
    kind = parts["policy"]["kind"]
    if kind in STOP_SCORES:
        net, rounds = network(parts["policy"]), int(parts["policy"].get("rounds", 0))  # older actors: 0
        shape = net.hidden_size, net.encoder, 0.0, net.share_weights, STOP_SCORES[kind], rounds
        policy = LearnedPolicy(Actors(problem, *shape, key=key))
    elif kind == "schedule":
        rows = parts["policy"]["rounds"]
        policy = Schedule(jnp.zeros((rows, problem.agents), jnp.int32), problem.actions + 1)
    elif kind == "uniform":
        policy = Uniform(problem.agents, problem.actions + 1)
    elif kind == "map":
        policy = FixedLogits(problem.agents, jnp.zeros(problem.actions), parts["policy"]["name"])
    elif kind in ("baseline", "reference"):  # "reference" before version 0.11
        policy = None
    else:
        raise ValueError(f"unknown policy {kind!r}")
    stops = {
        "learned": lambda: LearnedStop(),
        "length": lambda: FixedLength(_within(parts["stop"]["rounds"], int, 0, problem.horizon)),
        "threshold": lambda: Threshold(float(_within(parts["stop"]["level"], (int, float), 0, 1))),
    }
    if unknown := [name for name, known in PARTS.items() if not set(parts[name]) <= known] or set(parts) - set(PARTS):
        raise ValueError(f"an unknown part or setting in {', '.join(sorted(unknown))}")
    inferences = {
        "exact": lambda net: ExactInference(),
        "network": lambda net: NetworkInference(_network(problem, net, parts["inference"], key=key)),
    }
    inference = inferences[parts["inference"]["kind"]](network(parts["inference"]))
    return policy, stops[parts["stop"]["kind"]](), inference


def _within(value: Any, kind: type | tuple[type, ...], low: int, high: int) -> Any:
    """A number of a stop, if it is one that a team can have."""
    fits = isinstance(value, kind) and not isinstance(value, bool)
    if not fits or not low <= float(value) <= high:
        raise ValueError(f"a stop at {value!r}")
    return value


def _network(problem: Problem, net: Network, described: dict[str, Any], *, key: Key[Array, ""]) -> InferenceNetwork:
    kind: InferenceKind = described.get("inference", "recurrent")
    return make_inference(problem, net.hidden_size, net.encoder, kind, key=key)


def _is_named(policy: Any) -> bool:
    """Whether a policy is built from the problem alone, so that a file stores its name only."""
    return bool(getattr(policy, "from_problem", False))


def _named_policy(path: Path, problem: Problem, described: dict[str, Any]) -> Policy:
    policy = named_policy(str(described.get("name")), problem)
    if policy is None:
        raise UserError(f"{path}: unknown policy {described.get('name')!r}; was it written by another version?")
    return policy


def team_tensors(team: Team) -> dict[str, Any]:
    """The tensors of a team by their names in its file."""
    named = _named((None if _is_named(team.policy) else team.policy, team.stop, team.inference))
    return {name: leaf for name, leaf in named.items() if leaf.size}  # an empty schedule is not stored


def _named(parts: tuple) -> dict[str, Any]:
    leaves = jax.tree_util.tree_flatten_with_path(parts)[0]
    names = ("policy", "stop", "inference")
    return {names[path[0].idx] + jax.tree_util.keystr(path[1:]): leaf for path, leaf in leaves}


def _fill(path: Path, skeleton: tuple, tensors: dict[str, np.ndarray]) -> tuple:
    expected = _named(skeleton)
    tensors = {name: np.zeros(x.shape, x.dtype) for name, x in expected.items() if not x.size} | tensors
    if set(expected) != set(tensors):
        odd = sorted(set(expected) ^ set(tensors))
        raise UserError(f"{path}: its tensors do not fit its description ({odd[0]} and {len(odd) - 1} more)")
    for name, shape in expected.items():
        tensor = tensors[name]
        if tensor.dtype == np.float16 and shape.dtype == np.float32:
            tensor = tensors[name] = tensor.astype(np.float32)
        if tensor.shape != shape.shape or tensor.dtype != shape.dtype:
            raise UserError(
                f"{path}: {name} is {tensor.dtype}{list(tensor.shape)}, its problem and sizes need "
                f"{shape.dtype}{list(shape.shape)}"
            )
        if not np.all(np.isfinite(tensor)):
            raise UserError(f"{path}: {name} holds numbers that are not finite")
    leaves = [jnp.asarray(tensors[name]) for name in expected]
    return jax.tree.unflatten(jax.tree.structure(skeleton), leaves)
