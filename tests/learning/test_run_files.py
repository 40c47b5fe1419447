"""Metrics say when they are damaged, and a full disk costs nothing once it has room."""

import errno
import logging
import random
from pathlib import Path

import jax.numpy as jnp
import pytest

from icmape.learning import run_files
from icmape.learning.checkpoints import NEWEST, read_checkpoint, settings_of
from icmape.learning.config import Config
from icmape.learning.run_files import MetricsFile, RunFiles, read_metrics
from icmape.zoo.bandit.bandit import Bandit

PROBLEM = Bandit(arms=2, players=2, horizon=5)
ROWS = [{"seed": 1, "iteration": number, "tau": number + 0.125, "loss": None} for number in (2, 4, 6, 8)]


def written(path: Path, rows: list[dict] = ROWS, iteration: int | None = None) -> bytes:
    metrics = MetricsFile(path, iteration)
    for row in rows:
        metrics.write(row)
    metrics.close()
    return path.read_bytes()


def test_no_flipped_bit_changes_a_row(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Every bit of the file. The lines that it hits are left out, and this is told; the others stay as they are.

    A flip in the first line's "crc32" alone leaves that line as one of an older version, with its numbers as they were.
    """
    path = tmp_path / "metrics.jsonl"
    data = written(path)
    assert read_metrics(path) == ROWS
    for bit in random.Random(0).sample(range(8 * len(data)), 400):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(bytes(damaged))
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            rows = [{name: row.get(name) for name in ROWS[0]} for row in read_metrics(path)]
        assert all(row in ROWS for row in rows)
        assert len(rows) >= len(ROWS) - 2  # a newline that is lost joins two lines
        told = "are damaged and left out" in caplog.text
        assert told or rows == ROWS or not damaged.endswith(b"\n")


def test_a_resumed_run_replaces_damaged_lines_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    data = written(path)
    lines = data.splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], b"\x00" + lines[1], *lines[2:], lines[3][:9]]))
    assert written(path, iteration=2) == data, "what came after the checkpoint is written again"
    path.write_bytes(b"".join([lines[0], b"\x00" + lines[1], *lines[2:]]))
    assert written(path, ROWS[3:], iteration=6) == b"".join([lines[0], *lines[2:]]), "what came before it is lost"


def test_lines_of_older_versions_are_read_and_followed_by_new_ones(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"seed": 1, "iteration": 2, "tau": 2.125, "loss": null}\n')
    written(path)
    assert read_metrics(path) == ROWS


class FullDisk:
    """A disk on which nothing can be written while it is full, but for half of a line."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.full = False
        self.tries = 0
        honest = run_files.save_checkpoint
        monkeypatch.setattr(run_files, "save_checkpoint", lambda *args: self.room() and honest(*args))

    def room(self) -> bool:
        self.tries += 1
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return True

    def limit(self, metrics: MetricsFile) -> None:
        honest = metrics._file

        class File:
            def write(file, data: bytes) -> int:
                if self.full and len(data) < 20:
                    raise OSError(errno.ENOSPC, "No space left on device")
                return honest.write(data[: len(data) // 2] if self.full else data)

            def __getattr__(file, name: str):
                return getattr(honest, name)

        metrics._file = File()


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> FullDisk:
    return FullDisk(monkeypatch)


def test_on_a_full_disk_training_goes_on_and_all_is_written_when_there_is_room(
    tmp_path: Path, disk: FullDisk, caplog: pytest.LogCaptureFixture
) -> None:
    files = RunFiles(tmp_path, PROBLEM, Config(), 0, None)
    disk.limit(files.metrics)
    states = {"weights": jnp.arange(5.0)}
    files.write(ROWS[:1])
    assert files.save(2, 1.0, states)
    disk.full = True
    with caplog.at_level(logging.WARNING):
        files.write(ROWS[1:3])
        assert not files.save(6, 3.0, states)
        assert not files.save(6, 3.0, states)
    assert read_checkpoint(tmp_path / NEWEST).header["iteration"] == 2
    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path / 'metrics.jsonl'} cannot be written: the disk or the quota is full; free some space there and try "
        "again; training goes on, and what is missing is written when that is possible"
    ], "once, not at every try"
    disk.full = False
    files.write(ROWS[3:])
    with caplog.at_level(logging.WARNING):
        files.finish(8, 4.0, states, lambda: False)
    assert caplog.records[-1].getMessage() == f"{tmp_path}: everything is written again"
    assert read_metrics(tmp_path / "metrics.jsonl") == ROWS
    header = read_checkpoint(tmp_path / NEWEST).header
    assert (header["iteration"], header["settings"]) == (8, settings_of(PROBLEM, Config()))


def test_no_checkpoint_is_written_before_the_metrics_up_to_it(tmp_path: Path, disk: FullDisk) -> None:
    """A run that is killed after it would otherwise have lost them."""
    files = RunFiles(tmp_path, PROBLEM, Config(), 0, None)
    disk.limit(files.metrics)
    disk.full = True
    files.write(ROWS[:1])
    files.save(2, 1.0, {"weights": jnp.arange(5.0)})
    assert disk.tries == 0, "the checkpoint is not even tried"
    disk.full = False
    files.metrics.close()


def test_a_finished_run_waits_for_room_and_an_interrupted_one_does_not(
    tmp_path: Path, disk: FullDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = RunFiles(tmp_path, PROBLEM, Config(), 0, None)
    disk.full = True
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        disk.full = len(waited) < 3

    monkeypatch.setattr(run_files.time, "sleep", sleep)
    states = {"weights": jnp.arange(5.0)}
    RunFiles(tmp_path, PROBLEM, Config(), 0, None).finish(8, 4.0, states, lambda: True)
    assert (waited, (tmp_path / NEWEST).exists()) == ([], False)
    files.finish(8, 4.0, states, lambda: False)
    assert len(waited) == 3
    assert read_checkpoint(tmp_path / NEWEST).header["iteration"] == 8
