"""Smaller copies of checkpoints, to be carried to another machine.

A checkpoint is a header and arrays. A smaller copy has only the newest episodes of the replay and, if that does not
suffice, networks in 16 bits.
"""

import io
import re
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
Arrays = dict[str, np.ndarray]


class Size(StrEnum):
    """How much of a checkpoint is carried."""

    WHOLE = "whole"
    THINNED = "thinned"
    ROUNDED = "rounded"


MEANING = {
    Size.WHOLE: "a resumed run is bit for bit the same on a CPU",
    Size.THINNED: "a resumed run learns from the newest episodes until its replay has filled again",
    Size.ROUNDED: "the same, and its networks begin from weights that were rounded to 16 bits",
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
        kept = int(min(episodes, arrays[SIZE].min()))
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
    return _packed(header, arrays)


def restore(checkpoint: Checkpoint) -> bytes:
    """The checkpoint that training reads, from a smaller copy: its replay holds the newest episodes and room."""
    header, arrays = dict(checkpoint.header), arrays_of(checkpoint)
    for name in header.pop(ROUNDED, ()):
        arrays[name] = _widened(name, arrays[name])
    capacity = header.pop(CAPACITY, None)
    for name in [name for name in arrays if name.startswith(EPISODES) and capacity]:
        kept = arrays[name]
        room = np.zeros((kept.shape[0], capacity - kept.shape[1], *kept.shape[2:]), kept.dtype)
        arrays[name] = np.concatenate([kept, room], axis=1)
    return _packed(header, arrays)


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
    return any(part in MOMENTS for part in re.findall(r"\.\w+", name))
