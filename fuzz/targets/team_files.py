"""Team files: damaged ones, and ones that somebody made."""

import copy
import json
import struct
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import jax
import numpy as np

from fuzz import tree_mutations as trees
from fuzz.byte_mutations import MUTATIONS, damaged
from fuzz.cases import Case, Target, equal, must_refuse
from icmape.play import team_files
from icmape.play.team import Team

STRUCTURES = ("problem", "parts", "delta", "card")
HUGE = (10**9, 10**20, 2**31, 2**63)
STRANGE: dict[tuple[str, ...], tuple[Any, ...]] = {
    ("problem", "kind"): ("", "os:system", "evil:Problem", None, [], "signal", "centralized-bandit"),
    ("problem", "arguments"): (None, [], "x", {"arm": 2}, {"arms": 2, "__class__": 1}),
    ("problem", "arguments", "arms"): (*HUGE, -1, 0, 1.5, "2", None, True, [2], 3),
    ("problem", "arguments", "horizon"): (*HUGE, -1, 0, "20", None, [1]),
    ("problem", "arguments", "mean_low"): (float("nan"), 2.0, -1.0, "0.3", None, 1e308),
    ("problem", "centralized"): ("yes", 1, None, True),
    ("parts", "policy", "kind"): ("", "evil", None, [], {}, "schedule", "baseline", "map"),
    ("parts", "policy", "width"): (*HUGE, 0, -1, "32", None, 31, 2.5),
    ("parts", "policy", "encoder"): ("x", None, [], 3, "os:system"),
    ("parts", "policy", "rounds"): (*HUGE, -5, "x", None, [], 1.5),
    ("parts", "inference", "width"): (*HUGE, 0, -1, "32", None, 31),
    ("parts", "inference", "kind"): ("exactly", None, [], ""),
    ("parts", "stop", "kind"): ("x", None, [], "threshold", "length"),
    ("parts", "policy"): (None, [], "x", {}, {"kind": "learned"}),
    ("delta",): (0, 1, -0.1, 2.0, "0.1", None, [0.1], float("nan"), float("inf"), True),
    ("card",): (None, [], "x", 3, "{", float("nan")),
}
"""Entry of the metadata → values that it cannot have."""


def make(folder: Path) -> Target:
    """The target."""
    path = folder / "team.safetensors"
    team = team_files.load("bandit-quick")
    team_files.save(team, path)
    data = path.read_bytes()
    header, body = _split(data)
    texts = header["__metadata__"]
    metadata = {name: json.loads(text) if name in STRUCTURES else text for name, text in texts.items()}

    def run(given: bytes) -> dict[str, Any]:
        """All that a team is made of."""
        path.write_bytes(given)
        return contents(team_files.load(path))

    original = run(data)
    assert equal(run(_sealed(_joined(_described(header, metadata), body))), original), "a checksum can be made anew"

    def same(result: dict[str, Any]) -> str | None:
        """No byte of a file is without meaning: a changed one is noticed."""
        return "a changed file was taken for whole" + ("" if equal(result, original) else ", and it is another team")

    def of_bytes(mutation: str) -> Callable[[Random], Case]:
        return lambda random: Case(damaged(data, mutation, random), same)

    def described(random: Random) -> Case:
        at = random.choice(list(STRANGE))
        return Case(_joined(_with(header, metadata, at, random.choice(STRANGE[at])), body), must_refuse)

    def sealed(random: Random) -> Case:
        """The same by somebody who knows the format, so that checksums are right."""
        at = random.choice(list(STRANGE))
        return Case(_sealed(_joined(_with(header, metadata, at, random.choice(STRANGE[at])), body)), must_refuse)

    def typo(random: Random) -> Case:
        paths = [("problem", "arguments", name) for name in metadata["problem"]["arguments"]]
        at = random.choice(
            [*paths, ("problem", "arguments"), ("problem", "kind"), ("parts", "policy"), ("parts", "stop", "kind")]
        )
        tree = trees.renamed(metadata, at, trees.typo(at[-1], random))
        return Case(_sealed(_joined(_described(header, tree), body)), must_refuse)

    def tensors(random: Random) -> Case:
        """Tensors of other shapes, types, places or names, or with numbers that are not finite."""
        changed, content = copy.deepcopy(header), bytearray(body)
        name = random.choice([name for name in header if name != "__metadata__"])
        entry, kind = changed[name], random.randrange(7)
        start, end = entry["data_offsets"]
        if kind == 0:
            entry["shape"] = random.choice([[], [0], [10**9, 10**9], [-1], [*entry["shape"][::-1], 1], [2**63]])
        elif kind == 1:
            entry["dtype"] = random.choice(["I32", "F64", "BOOL", "X", "", "F8_E4M3", "BF16"])
        elif kind == 2:
            entry["data_offsets"] = random.choice(
                [[end, start], [0, 10**12], [-1, 5], [start, start], [0, 0], ["a", 1]]
            )
        elif kind == 3:
            changed[name + "x"] = changed.pop(name)
        elif kind == 4:
            del changed[name]
        elif kind == 5:
            changed["extra"] = entry
        else:
            content[start : start + 4] = struct.pack("<f", random.choice([float("nan"), float("inf")]))
        return Case(_sealed(_joined(changed, bytes(content))), must_refuse)

    def headers(random: Random) -> Case:
        """Lengths of the header that are not its own; headers that are no JSON, or very deep."""
        size = random.choice([0, 1, 2**63, 2**64 - 1, len(data) * 2, 100])
        deep = trees.nested(100_000).encode()
        options = [struct.pack("<Q", size) + data[8:], struct.pack("<Q", len(deep)) + deep, data[:8], data[:9]]
        options.append(_joined({**header, "__metadata__": {**texts, "card": "[" * 100_000}}, body))
        return Case(random.choice(options), must_refuse)

    def another_team(random: Random) -> Case:
        """The tensors of one team with the description of another."""
        problem = random.choice(
            [{**metadata["problem"]["arguments"], "players": 4}, {**metadata["problem"]["arguments"], "arms": 3}]
        )
        tree = trees.replaced(metadata, ("problem", "arguments"), problem)
        return Case(_sealed(_joined(_described(header, tree), body)), must_refuse)

    mutations: dict[str, Callable[[Random], Case]] = {name: of_bytes(name) for name in MUTATIONS}
    mutations |= {
        "description": described,
        "description, checksum made anew": sealed,
        "names with typos, checksum made anew": typo,
        "tensors, checksum made anew": tensors,
        "headers": headers,
        "another team's description, checksum made anew": another_team,
    }
    return Target(run, mutations)


def contents(team: Team) -> dict[str, Any]:
    """Weights, problem, δ and card."""
    leaves = {jax.tree_util.keystr(at): np.asarray(leaf) for at, leaf in jax.tree_util.tree_flatten_with_path(team)[0]}
    return {**leaves, "problem": str(team.problem), "delta": team.delta, "card": team.card}


def _split(data: bytes) -> tuple[dict[str, Any], bytes]:
    (size,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + size]), data[8 + size :]


def _joined(header: dict[str, Any], body: bytes) -> bytes:
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + body


def _with(header: dict[str, Any], metadata: dict[str, Any], at: trees.Path, value: Any) -> dict[str, Any]:
    return _described(header, trees.replaced(metadata, at, value))


def _described(header: dict[str, Any], metadata: dict[str, Any]) -> dict[str, Any]:
    """The header with this metadata, in which structures are JSON in texts."""
    texts = {name: json.dumps(value) if name in STRUCTURES else value for name, value in metadata.items()}
    return {**header, "__metadata__": texts}


def _sealed(data: bytes) -> bytes:
    """The file with the checksum that belongs to its content, as a program would write it that knows how."""
    header, body = _split(data)
    metadata = {**header["__metadata__"], team_files.SEAL: team_files.BLANK}
    return team_files.sealed(_joined({**header, "__metadata__": metadata}, body))
