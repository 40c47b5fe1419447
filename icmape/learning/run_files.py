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

MAGIC = b"icmape-checkpoint-1\n"


def save_checkpoint(path: Path, header: dict[str, Any], states: Any) -> None:
    """Write a header in JSON, which names the leaves, then the leaves of the state."""
    buffer = io.BytesIO()
    plain = _plain_keys(states)
    leaves = jax.tree_util.tree_leaves_with_path(plain)
    names = [jax.tree_util.keystr(where) for where, leaf in leaves if eqx.is_array(leaf)]
    buffer.write(packed_header({**header, "leaves": names}))
    eqx.tree_serialise_leaves(buffer, plain)
    write_atomically(path, buffer.getvalue())


def packed_header(header: dict[str, Any]) -> bytes:
    """The beginning of a checkpoint."""
    text = json.dumps(header).encode()
    return MAGIC + struct.pack("<I", len(text)) + text


def read_header(file: io.BufferedReader, path: Path) -> dict[str, Any]:
    """The header of a checkpoint; the leaves follow."""
    if file.read(len(MAGIC)) != MAGIC:
        raise UserError(f"{path} is not a checkpoint that this version of icmape can read")
    (length,) = struct.unpack("<I", file.read(4))
    header: dict[str, Any] = json.loads(file.read(length))
    return header


def load_checkpoint(path: Path, like: Any) -> tuple[dict[str, Any], Any]:
    """The header and the state; `like` has the state's structure, shapes and types."""
    try:
        with open(path, "rb") as file:
            header = read_header(file, path)
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
    return parse_metrics(path.read_bytes()) if path.exists() else []


def parse_metrics(content: bytes) -> list[dict[str, Any]]:
    """All complete rows in the content of a metrics file."""
    rows = []
    for line in content.splitlines(keepends=True):
        with suppress(ValueError):
            row = json.loads(line)
            if line.endswith(b"\n") and isinstance(row, dict) and {"seed", "iteration"} <= row.keys():
                rows.append(row)
    return rows
