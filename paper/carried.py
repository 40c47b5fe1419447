"""Smaller copies of checkpoints, to be carried to another machine.

A checkpoint is a header and arrays. A smaller copy has only the newest episodes of the replay; if that does not
suffice, networks in 16 bits; and at last no replay and one set of networks in 8 bits, from which all others begin.
"""

import io
import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import ml_dtypes
import numpy as np

from icmape.learning.checkpoints import Checkpoint, pack_checkpoint

EPISODES = ".replay.episodes"
POSITION, SIZE = ".replay.position", ".replay.size"
LEARNER = ".learner"
MOMENTS = (".mu", ".nu")  # of Adam, which may be too small for float16
ROUNDED = "rounded"  # in the header: names of leaves in 16 bits
CAPACITY = "capacity"  # in the header: rows of the whole replay
LEAVES = "whole"  # in the header: names of all leaves, of which some are not stored
STEP = "/step"  # after the name of a leaf in 8 bits: the step of each of its rows
LARGE = 2048  # numbers of a leaf that is worth rounding to 8 bits
AVERAGES = {
    ".learner.actors": ".learner.target_actors",
    ".learner.critics": ".learner.target_critics",
    ".learner.mixing": ".learner.target_mixing",
    ".learner.inference": ".learner.slow_inference",
}
"""Networks that learn, and their running averages."""
BEST = {".best.policy.actors": ".learner.target_actors", ".best.inference": ".learner.slow_inference"}
Arrays = dict[str, np.ndarray]


class Size(StrEnum):
    """How much of a checkpoint is carried."""

    WHOLE = "whole"
    THINNED = "thinned"
    ROUNDED = "rounded"
    SMALL = "small"


MEANING = {
    Size.WHOLE: "a resumed run is bit for bit the same on a CPU",
    Size.THINNED: "a resumed run learns from the newest episodes until its replay has filled again",
    Size.ROUNDED: "the same, and its networks begin from weights that were rounded to 16 bits",
    Size.SMALL: "a resumed run has an empty replay, and its networks begin from their averages, rounded to 8 bits",
}


def arrays_of(checkpoint: Checkpoint) -> Arrays:
    """The arrays of a checkpoint, by name."""
    file = io.BytesIO(checkpoint.leaves)
    return {name: np.load(file, allow_pickle=False) for name in checkpoint.header["leaves"]}


def _packed(header: dict[str, Any], arrays: Arrays) -> bytes:
    """The content of a checkpoint with a right SHA-256."""
    file = io.BytesIO()
    for name in header["leaves"]:
        np.save(file, arrays[name])
    return pack_checkpoint(header, file.getvalue())


def shrink(checkpoint: Checkpoint, size: Size, episodes: int = 512) -> bytes:
    """A smaller copy of a checkpoint, with at most so many episodes of each replay."""
    if size is Size.WHOLE:
        return pack_checkpoint(checkpoint.header, checkpoint.leaves)
    header, arrays = dict(checkpoint.header), arrays_of(checkpoint)
    replay = [name for name in arrays if name.startswith(EPISODES)]
    if replay:
        capacity = arrays[replay[0]].shape[1]
        kept = 0 if size is Size.SMALL else int(min(episodes, arrays[SIZE].min()))
        newest = (arrays[POSITION][:, None] - kept + np.arange(kept)) % capacity
        for name in replay:
            arrays[name] = np.stack([rows[which] for rows, which in zip(arrays[name], newest, strict=True)])
        arrays[SIZE] = np.full_like(arrays[SIZE], kept)
        arrays[POSITION] = np.full_like(arrays[POSITION], kept % capacity)
        header[CAPACITY] = capacity
    if size is Size.ROUNDED:
        header[ROUNDED] = [name for name in arrays if name.startswith(LEARNER) and arrays[name].dtype == np.float32]
        for name in header[ROUNDED]:
            arrays[name] = _rounded(name, arrays[name])
    if size is Size.SMALL:
        header[LEAVES], arrays = list(arrays), _small(arrays)
        header["leaves"] = list(arrays)
    return _packed(header, arrays)


def restore(checkpoint: Checkpoint) -> bytes:
    """The checkpoint that training reads, from a smaller copy: its replay holds the newest episodes and room."""
    header, arrays = dict(checkpoint.header), arrays_of(checkpoint)
    if LEAVES in header:
        header["leaves"] = header.pop(LEAVES)
        arrays = _whole(header["leaves"], arrays)
    for name in header.pop(ROUNDED, ()):
        arrays[name] = _widened(name, arrays[name])
    capacity = header.pop(CAPACITY, None)
    for name in [name for name in arrays if name.startswith(EPISODES) and capacity]:
        kept = arrays[name]
        room = np.zeros((kept.shape[0], capacity - kept.shape[1], *kept.shape[2:]), kept.dtype)
        arrays[name] = np.concatenate([kept, room], axis=1)
    return _packed(header, arrays)


def _small(arrays: Arrays) -> Arrays:
    """Without networks whose average is there, and without first moments; other large leaves in 8 bits.

    The best team's are kept as what they differ by from the averages, which is less, so that their steps are finer.
    """
    stored: Arrays = {}
    for name, values in arrays.items():
        if _other(name, AVERAGES) in arrays or _has(name, ".mu"):
            continue
        if values.dtype != np.float32 or values.size < LARGE or not name.startswith((LEARNER, *BEST)):
            stored[name] = values
        elif _has(name, ".nu"):  # the exponent alone: a step is made of its root, and changes by a fifth at most
            stored[name] = (values.view(np.uint32) >> 23).astype(np.uint8)
        else:
            difference = values - _average(name, stored)
            step = np.max(np.abs(difference), axis=-1, keepdims=True) / 127.0
            stored[name] = np.round(difference / np.where(step > 0, step, 1.0)).astype(np.int8)
            stored[name + STEP] = step
    return stored


def _whole(names: Sequence[str], stored: Arrays) -> Arrays:
    """All leaves, from those that are stored."""
    arrays: Arrays = {}
    for name in names:
        if name + STEP in stored:
            arrays[name] = _average(name, stored) + stored[name] * stored[name + STEP]
        elif name in stored and _has(name, ".nu") and stored[name].dtype == np.uint8:
            exponents = stored[name].astype(np.uint32)
            arrays[name] = np.where(exponents > 0, exponents << 23 | 1 << 22, 0).astype(np.uint32).view(np.float32)
        elif name in stored:
            arrays[name] = stored[name]
        elif _has(name, ".mu"):
            arrays[name] = np.zeros(stored[name.replace(".mu", ".nu")].shape, np.float32)
    for name in names:
        if name not in arrays:
            arrays[name] = arrays[_other(name, AVERAGES)]
    return arrays


def _average(name: str, stored: Arrays) -> np.ndarray | float:
    """What a leaf of the best team differs from: the average as it is restored. 0 for other leaves."""
    average = _other(name, BEST)
    return stored[average] * stored[average + STEP] if average + STEP in stored else 0.0


def _other(name: str, pairs: dict[str, str]) -> str:
    """The leaf that belongs to this one, in another network; empty if there is none."""
    for mine, other in pairs.items():
        if re.match(rf"{re.escape(mine)}[.\[]", name):
            return other + name.removeprefix(mine)
    return ""


def _has(name: str, part: str) -> bool:
    return part in re.findall(r"\.\w+", name)


def _rounded(name: str, values: np.ndarray) -> np.ndarray:
    """In 16 bits: of float16 where that keeps large and small values, else the first half of each float32."""
    if _is_moment(name):
        return values.astype(ml_dtypes.bfloat16).view(np.uint16)
    return np.clip(values, -65504.0, 65504.0).astype(np.float16)


def _widened(name: str, values: np.ndarray) -> np.ndarray:
    if _is_moment(name):
        return values.view(ml_dtypes.bfloat16).astype(np.float32)
    return values.astype(np.float32)


def _is_moment(name: str) -> bool:
    return any(_has(name, part) for part in MOMENTS)
