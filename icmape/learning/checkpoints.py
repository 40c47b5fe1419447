"""Checkpoints of a run: the last two, each with the settings that it belongs to and a SHA-256 of its content.

The file: a line with its format, the SHA-256 (32 bytes) of all that follows, the length of a header in JSON, the
header, and the leaves of the training state as arrays, which the header names in their order.
"""

import hashlib
import io
import json
import logging
import os
import struct
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax

from icmape.errors import UserError
from icmape.io import prepared, read_bounded, sync_folder
from icmape.learning.config import Config
from icmape.memory import SHARE, machine_bytes
from icmape.problem import Problem
from icmape.problem.spec import describe
from icmape.settings import override, to_dict

log = logging.getLogger("icmape")

MAGIC = b"icmape-checkpoint-2\n"
OLD = b"icmape-checkpoint-1\n"  # without a SHA-256
NEWEST, PREVIOUS = "checkpoint.eqx", "checkpoint-previous.eqx"
FREE = ("learning.iterations", "learning.minutes", "learning.checkpoint_minutes")
"""Settings that may change under a checkpoint; so may arguments that refer to this machine (`Problem.LOCAL`)."""


class DamagedError(UserError):
    """A file that is not what was written."""


class Checkpoint(NamedTuple):
    """A checkpoint whose content was checked."""

    path: Path
    header: dict[str, Any]
    leaves: bytes

    def states(self, like: Any) -> Any:
        """The training state; `like` has its structure, shapes and types."""
        try:
            leaves = eqx.tree_deserialise_leaves(io.BytesIO(self.leaves), jax.eval_shape(_plain_keys, like))
        except (RuntimeError, ValueError, EOFError, TypeError) as error:
            raise UserError(
                f"{self.path} does not fit this problem and these settings: {error}; was the problem's code changed?"
            ) from error
        return _restore_keys(leaves, like)


def save_checkpoint(path: Path, header: dict[str, Any], states: Any) -> None:
    """Write a checkpoint. The one before is kept beside it."""
    leaves, plain = io.BytesIO(), _plain_keys(states)
    eqx.tree_serialise_leaves(leaves, plain)
    named = jax.tree_util.tree_leaves_with_path(plain)
    names = [jax.tree_util.keystr(where) for where, leaf in named if eqx.is_array_like(leaf)]
    with prepared(path, pack_checkpoint({**header, "leaves": names}, leaves.getvalue())) as temporary:
        if path.exists():
            os.replace(path, path.with_name(PREVIOUS))
        os.replace(temporary, path)
    sync_folder(path.parent)


def pack_checkpoint(header: dict[str, Any], leaves: bytes) -> bytes:
    """The content of a file, from a header and leaves."""
    text = json.dumps(header).encode()
    body = struct.pack("<I", len(text)) + text + leaves
    return MAGIC + hashlib.sha256(body).digest() + body


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint; `DamagedError` if its content is not what was written."""
    try:
        return unpack_checkpoint(read_bounded(path, int(SHARE * machine_bytes())), path)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error


def unpack_checkpoint(data: bytes, path: Path) -> Checkpoint:
    """The same of the content of a file; `path` is its name in errors."""
    if data.startswith(OLD):
        raise UserError(
            f"{path} is a checkpoint of icmape 0.11 or older: finish the run with that version, or train again"
        )
    start = len(MAGIC) + hashlib.sha256().digest_size
    body = data[start:]
    if not data.startswith(MAGIC) or hashlib.sha256(body).digest() != data[len(MAGIC) : start]:
        raise DamagedError(f"{path} is damaged: its content does not have the SHA-256 that it was written with")
    (length,) = struct.unpack("<I", body[:4])
    return Checkpoint(path, json.loads(body[4 : 4 + length]), body[4 + length :])


def has_checkpoint(folder: Path) -> bool:
    """Whether a run has a checkpoint, whole or not."""
    return any((folder / name).exists() for name in (NEWEST, PREVIOUS))


def delete_checkpoints(folder: Path) -> None:
    """Delete the checkpoints of a run."""
    for name in (NEWEST, PREVIOUS):
        (folder / name).unlink(missing_ok=True)


def last_checkpoint(folder: Path) -> Checkpoint:
    """The last whole checkpoint of a run. The one before takes the place of a damaged one, and this is told."""
    damage = []
    for path in (folder / NEWEST, folder / PREVIOUS):
        if not path.exists():  # a process that was killed between two renames leaves only the second
            continue
        try:
            checkpoint = read_checkpoint(path)
        except DamagedError as error:
            damage.append(str(error))
            continue
        if damage:
            iteration = checkpoint.header["iteration"]
            log.warning("%s; going on from the checkpoint before it, of iteration %d", damage[0], iteration)
        return checkpoint
    raise UserError(
        f"{'; '.join(damage)}; no whole checkpoint is left: train again with "
        f"`icmape train --config {folder / 'config.json'} --out {folder} --overwrite`"
    )


def keep(checkpoint: Checkpoint) -> None:
    """Make a checkpoint the newest one, so that the next one does not replace it by one that is damaged."""
    if checkpoint.path.name == PREVIOUS:
        os.replace(checkpoint.path, checkpoint.path.with_name(NEWEST))


def settings_of(problem: Problem, config: Config) -> dict[str, Any]:
    """Problem and settings of a run, as in a file."""
    content: dict[str, Any] = json.loads(json.dumps({"problem": describe(problem), "learning": to_dict(config)}))
    return content


def check_settings(checkpoint: Checkpoint, problem: Problem, config: Config) -> None:
    """Refuse to go on with other settings than those of the checkpoint."""
    free = {*FREE, *(f"problem.arguments.{name}" for name in problem.unwrapped.LOCAL)}
    stored, current = _flat(_completed(checkpoint.header["settings"])), _flat(settings_of(problem, config))
    changed = [
        f"{name} was {json.dumps(stored.get(name))} and is {json.dumps(current.get(name))}"
        for name in sorted({*stored, *current} - free)
        if stored.get(name) != current.get(name)
    ]
    if changed:
        names = ", ".join(name.rpartition(".")[2] for name in FREE)
        raise UserError(
            f"{checkpoint.path} belongs to other settings: {'; '.join(changed)}. Restore config.json and plan.json, or "
            f"train the new settings in another folder (only {names} and paths of data may change)"
        )


def _completed(settings: dict[str, Any]) -> dict[str, Any]:
    """With the defaults of settings that the version which wrote them did not have."""
    try:
        return {**settings, "learning": json.loads(json.dumps(to_dict(override(Config(), settings["learning"]))))}
    except (UserError, KeyError, TypeError):  # it had others, which are told by their names
        return settings


def _flat(tree: dict[str, Any], inside: str = "") -> dict[str, Any]:
    """Nested settings by dotted names."""
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        flat |= _flat(value, f"{inside}{name}.") if isinstance(value, dict) else {f"{inside}{name}": value}
    return flat


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
