"""Files in the folder of a run. They remain readable if the process is killed at any time.

RUN/config.json      problem and settings; training with it repeats the run
RUN/metrics.jsonl    one line per seed and chunk
RUN/checkpoint.eqx   the complete training state
RUN/team-SEED.safetensors
"""

import io
import json
import os
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

import equinox as eqx
import jax

from icmape.errors import UserError
from icmape.io import write_atomically

LARGEST = 1e30  # of a number in a row of metrics
MAGIC = b"icmape-checkpoint-1\n"


def save_checkpoint(path: Path, header: dict[str, Any], states: Any) -> None:
    """Write a header in JSON, then the leaves of the state."""
    buffer = io.BytesIO()
    text = json.dumps(header).encode()
    buffer.write(MAGIC + struct.pack("<I", len(text)) + text)
    eqx.tree_serialise_leaves(buffer, _plain_keys(states))
    write_atomically(path, buffer.getvalue())


def load_checkpoint(path: Path, like: Any) -> tuple[dict[str, Any], Any]:
    """The header and the state; `like` has the state's structure, shapes and types."""
    try:
        with open(path, "rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise UserError(f"{path} is not a checkpoint that this version of icmape can read")
            (length,) = struct.unpack("<I", file.read(4))
            header = json.loads(file.read(length))
            leaves = eqx.tree_deserialise_leaves(file, jax.eval_shape(_plain_keys, like))
    except (OSError, RuntimeError, ValueError, EOFError, struct.error) as error:
        raise UserError(f"{path} cannot be read: {error}") from error
    return header, _restore_keys(leaves, like)


def _plain_keys(tree: Any) -> Any:
    """Random keys as integers."""
    is_key = lambda x: hasattr(x, "dtype") and jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key)  # noqa: E731
    return jax.tree.map(lambda x: jax.random.key_data(x) if is_key(x) else x, tree)


def _restore_keys(tree: Any, like: Any) -> Any:
    def restore(leaf: Any, wanted: Any) -> Any:
        if jax.dtypes.issubdtype(wanted.dtype, jax.dtypes.prng_key):
            return jax.random.wrap_key_data(leaf)
        return leaf

    return jax.tree.map(restore, tree, like)


class MetricsFile:
    """Lines of JSON. A resumed run removes an incomplete last line and writes no line twice."""

    def __init__(self, path: Path):
        self.path = path
        self.written = {(row["seed"], row["iteration"]) for row in read_metrics(path)}
        if path.exists():
            data = path.read_bytes()
            with open(path, "r+b") as file:
                file.truncate(data.rfind(b"\n") + 1)
        self._file = open(path, "ab")  # noqa: SIM115 (open as long as the run)

    def write(self, row: dict[str, Any]) -> None:
        """Append a row, unless the file already has it."""
        if (row["seed"], row["iteration"]) in self.written:
            return
        self.written.add((row["seed"], row["iteration"]))
        self._file.write(json.dumps(row).encode() + b"\n")
        self._file.flush()

    def close(self) -> None:
        """Flush to disk and close."""
        os.fsync(self._file.fileno())
        self._file.close()


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """All complete rows; other lines are skipped."""
    rows = []
    for line in path.read_bytes().splitlines(keepends=True) if path.exists() else []:
        with suppress(ValueError, RecursionError):
            row = json.loads(line)
            if line.endswith(b"\n") and _is_row(row):
                rows.append(row)
    return rows


def _is_row(row: Any) -> bool:
    """Whether this is a row of metrics: finite numbers or null by name, seed and iteration among them."""
    if not isinstance(row, dict) or not all(type(row.get(name)) is int for name in ("seed", "iteration")):
        return False
    numbers = [value for value in row.values() if value is not None]
    return all(type(value) in (int, float) and abs(value) <= LARGEST for value in numbers)  # NaN is not
