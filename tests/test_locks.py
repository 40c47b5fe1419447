"""One process writes to a run; any number reads it."""

import errno
import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from icmape import UserError, cli
from icmape.learning.config import Config
from icmape.learning.run import resume_run, train_run
from icmape.learning.run_files import read_metrics
from icmape.learning.run_folder import write_config
from icmape.locks import HeldError, check_free, only_writer
from icmape.play.inference import ExactInference
from icmape.play.open_loop import Uniform
from icmape.play.stop import FixedLength
from icmape.play.team import Team
from icmape.play.team_files import load
from icmape.zoo.bandit.bandit import Bandit

PROBLEM = Bandit(1, 2, 4)
HOLD = """
import sys
from pathlib import Path
from icmape.locks import only_writer
with only_writer(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, subprocess.Popen]]:
    """A run that another process writes to."""
    folder = tmp_path_factory.mktemp("runs") / "live"
    write_config(folder, PROBLEM, Config())
    (folder / "metrics.jsonl").write_text('{"seed": 215, "iteration": 10}\n')
    Team(PROBLEM, Uniform(2, 2), FixedLength(1), ExactInference()).save(folder / "team-215.safetensors")
    words = [sys.executable, "-c", HOLD, str(folder)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield folder, process
    process.kill()
    process.communicate()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_second_writer_is_refused_with_the_process_that_writes(live, capsys: pytest.CaptureFixture[str]) -> None:
    folder, process = live
    before = contents(folder)
    said = rf"{folder} is being written by process {process.pid} on '.+' since \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d UTC"
    with pytest.raises(UserError, match=said):
        train_run(PROBLEM, Config(), folder, overwrite=True)
    with pytest.raises(UserError, match=said):
        resume_run(PROBLEM, Config(), folder)
    problem = ["bandit-quick", "--problem.arms", "1", "--problem.players", "2", "--problem.horizon", "4"]
    for words in (["resume", str(folder)], ["train", *problem, "--out", str(folder), "--overwrite"]):
        assert cli.main(words) == 2
        assert f"is being written by process {process.pid} on" in capsys.readouterr().err
    assert contents(folder) == before


def test_readers_are_not_held_up(live, capsys: pytest.CaptureFixture[str]) -> None:
    folder, _ = live
    assert [row["iteration"] for row in read_metrics(folder / "metrics.jsonl")] == [10]
    assert load(folder / "team-215.safetensors").problem.agents == 2
    assert cli.main(["evaluate", str(folder), "--episodes", "20", "--exact", "0"]) == 0


def test_a_dead_process_holds_nothing(live) -> None:
    """Even one that had no time to let go. This test is the last that needs it alive."""
    folder, process = live
    with pytest.raises(HeldError):
        check_free(folder)
    process.send_signal(signal.SIGKILL)
    process.wait()
    check_free(folder)
    with only_writer(folder):
        assert json.loads((folder / ".lock").read_text())["pid"] == os.getpid()


def test_a_thread_may_lock_again_and_another_may_not(tmp_path: Path) -> None:
    refused: list[str] = []

    def other() -> None:
        try:
            with only_writer(tmp_path):
                refused.append("nothing")
        except HeldError as error:
            refused.append(str(error))

    with only_writer(tmp_path):
        with only_writer(tmp_path):
            pass
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert f"process {os.getpid()}" in refused[0]
    other()
    assert refused[1] == "nothing"


def test_without_locks_it_says_so_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import fcntl

    def unsupported(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    with caplog.at_level(logging.WARNING), only_writer(tmp_path):
        pass
    (record,) = caplog.records
    assert record.getMessage() == (
        f"{tmp_path} is not locked, as its file system has no locks (No locks available): make sure that no other "
        "process writes to it"
    )


def test_a_file_is_no_folder_to_write_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="is a file; expected a folder"), only_writer(tmp_path / "file"):
        pass
