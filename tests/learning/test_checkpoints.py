"""Damage to a checkpoint is noticed, whatever it is; the one before is used, and other settings are refused."""

import hashlib
import io
import logging
import random
import struct
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape import UserError
from icmape.learning.checkpoints import (
    FREE,
    MAGIC,
    NEWEST,
    PREVIOUS,
    DamagedError,
    check_settings,
    keep,
    last_checkpoint,
    read_checkpoint,
    save_checkpoint,
    settings_of,
)
from icmape.learning.config import Config
from icmape.settings import override
from icmape.zoo.bandit.bandit import Bandit

PROBLEM = Bandit(arms=2, players=2, horizon=5)
STATE = {"key": jax.random.key(3), "weights": jnp.arange(60.0), "count": jnp.int32(4)}
LIKE = jax.eval_shape(lambda: STATE)


def save(folder: Path, iteration: int) -> Path:
    header = {"iteration": iteration, "seconds": 1.5, "settings": settings_of(PROBLEM, Config())}
    save_checkpoint(folder / NEWEST, header, STATE | {"count": jnp.int32(iteration)})
    return folder / NEWEST


def flipped(data: bytes, bit: int) -> bytes:
    damaged = bytearray(data)
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


def header_size(data: bytes) -> int:
    """Everything before the state: the format, the SHA-256, and the header in JSON."""
    start = len(MAGIC) + 32
    return start + 4 + int.from_bytes(data[start : start + 4], "little")


def test_every_flipped_bit_is_noticed(tmp_path: Path) -> None:
    """40 anywhere, 40 in what comes before the state, and every bit of the format and the SHA-256."""
    path = save(tmp_path, 8)
    data = path.read_bytes()
    dice = random.Random(0)
    bits = [*dice.sample(range(8 * len(data)), 40), *dice.sample(range(8 * header_size(data)), 40)]
    noticed = 0
    for bit in (*bits, *range(8 * (len(MAGIC) + 32))):
        path.write_bytes(flipped(data, bit))
        with pytest.raises(DamagedError, match=f"{path} is damaged"):
            read_checkpoint(path)
        noticed += 1
    assert noticed == 80 + 8 * (len(MAGIC) + 32)


@pytest.mark.parametrize(
    "damage", [lambda d: d[:-1], lambda d: d + b"\0", lambda d: d[:60], lambda d: b"", bytes.upper]
)
def test_a_cut_or_longer_file_is_noticed(tmp_path: Path, damage) -> None:
    path = save(tmp_path, 8)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DamagedError):
        read_checkpoint(path)


def test_the_one_before_takes_the_place_of_a_damaged_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """And it is kept when the next one is written."""
    for iteration in (4, 6, 8):
        path = save(tmp_path, iteration)
    assert [read_checkpoint(tmp_path / name).header["iteration"] for name in (NEWEST, PREVIOUS)] == [8, 6]
    path.write_bytes(flipped(path.read_bytes(), 3000))
    with caplog.at_level(logging.WARNING):
        found = last_checkpoint(tmp_path)
    assert (found.header["iteration"], int(found.states(LIKE)["count"])) == (6, 6)
    assert [record.getMessage() for record in caplog.records] == [
        f"{path} is damaged: its content does not have the SHA-256 that it was written with; going on from the "
        "checkpoint before it, of iteration 6"
    ]
    assert last_checkpoint(tmp_path).header["iteration"] == 6, "of several processes each finds the same"
    keep(found)
    save(tmp_path, 10)
    assert [read_checkpoint(tmp_path / name).header["iteration"] for name in (NEWEST, PREVIOUS)] == [10, 6]


def test_a_kill_between_two_renames_loses_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = save(tmp_path, 4)
    path.rename(tmp_path / PREVIOUS)
    keep(found := last_checkpoint(tmp_path))
    assert found.header["iteration"] == 4
    assert caplog.records == []
    assert [file.name for file in tmp_path.iterdir()] == [NEWEST]


def test_without_a_whole_one_it_says_how_to_start_again(tmp_path: Path) -> None:
    save(tmp_path, 4)
    save(tmp_path, 6)
    for name in (NEWEST, PREVIOUS):
        (tmp_path / name).write_bytes(b"icmape")
    with pytest.raises(UserError, match=rf"{NEWEST} is damaged.*{PREVIOUS} is damaged.*train --config .* --overwrite"):
        last_checkpoint(tmp_path)


def test_one_of_an_older_version_is_told(tmp_path: Path) -> None:
    (tmp_path / NEWEST).write_bytes(b"icmape-checkpoint-1\n" + bytes(100))
    with pytest.raises(UserError, match=r"is a checkpoint of icmape 0\.11 or older"):
        last_checkpoint(tmp_path)


def test_a_changed_configuration_is_refused_with_what_differs(tmp_path: Path) -> None:
    checkpoint = read_checkpoint(save(tmp_path, 4))
    check_settings(checkpoint, PROBLEM, Config())
    with pytest.raises(
        UserError, match=r"other settings: learning\.delta was 0\.1 and is 0\.2; learning\.network\.hid"
    ):
        check_settings(checkpoint, PROBLEM, override(Config(), {"delta": 0.2, "network.hidden_size": 8}))
    with pytest.raises(
        UserError, match=r"learning\.max_rounds was null and is 4\. Restore config\.json and plan\.json"
    ):
        check_settings(checkpoint, PROBLEM, replace(Config(), max_rounds=4))
    with pytest.raises(UserError, match=r"problem\.arguments\.arms was 2 and is 3\. "):
        check_settings(checkpoint, Bandit(arms=3, players=2, horizon=5), Config())


def test_a_setting_that_an_earlier_version_did_not_have_has_its_default(tmp_path: Path) -> None:
    settings = settings_of(PROBLEM, Config())
    del settings["learning"]["certificate_worlds"]
    save_checkpoint(tmp_path / NEWEST, {"iteration": 1, "seconds": 1.0, "settings": settings}, STATE)
    check_settings(read_checkpoint(tmp_path / NEWEST), PROBLEM, Config())
    with pytest.raises(UserError, match=r"certificate_worlds was 10000 and is 20000"):
        check_settings(read_checkpoint(tmp_path / NEWEST), PROBLEM, replace(Config(), certificate_worlds=20_000))


def test_the_length_of_training_and_how_often_it_is_saved_may_change(tmp_path: Path) -> None:
    checkpoint = read_checkpoint(save(tmp_path, 4))
    changes = {"iterations": 999, "minutes": 3.0, "checkpoint_minutes": 9.0}
    assert {f"learning.{name}" for name in changes} == set(FREE)
    check_settings(checkpoint, PROBLEM, override(Config(), changes))


class Marker:
    """Pickled, it would write a file when it is loaded."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def test_no_code_is_loaded_from_a_checkpoint(tmp_path: Path) -> None:
    """Its leaves are arrays: pickled objects are refused, though the SHA-256 is right."""
    path = save(tmp_path, 4)
    whole = read_checkpoint(path)
    leaf = io.BytesIO()
    np.save(leaf, np.array([Marker(tmp_path / "ran")], dtype=object), allow_pickle=True)
    data = path.read_bytes()
    start = len(MAGIC) + 32
    body = data[start : header_size(data)] + leaf.getvalue() + whole.leaves
    assert struct.unpack("<I", body[:4])[0] == header_size(data) - start - 4
    path.write_bytes(MAGIC + hashlib.sha256(body).digest() + body)
    with pytest.raises(UserError, match="does not fit this problem"):
        read_checkpoint(path).states(LIKE)
    assert not (tmp_path / "ran").exists()
