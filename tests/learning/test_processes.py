"""A run in two processes on one machine: the first one writes what a run in one process writes, and each does half."""

import json
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
import pytest

from icmape import cli
from icmape.errors import UserError
from icmape.learning.presets import preset
from icmape.learning.run_files import read_metrics
from icmape.learning.run_folder import write_config
from icmape.play.processes import join
from icmape.play.team_files import load
from icmape.settings import override
from icmape.zoo.bandit.bandit import Bandit
from tests.learning.test_run import PROBLEM, SETTINGS

SHORT = {"iterations": 4, "plan.iterations": 0, "deltas": (), "validation_interval": 2}


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


WORKER = """
import signal, sys, time
from pathlib import Path
from icmape.learning import __main__ as command, run, run_teams

tell, save, asked = run._tell, run_teams.save_teams, sys.argv.pop(1)

def told(callback, report):
    tell(callback, report)
    print("bytes", report.memory)
    if asked == "end":
        signal.raise_signal(signal.SIGTERM)

def saved_late(run, folder):
    while not folder.with_name("parted").exists():
        time.sleep(0.05)
    return save(run, folder)

run._tell = told
if asked == "wait":
    run_teams.save_teams = saved_late
sys.exit(command.main(sys.argv[1:]))
"""
"""`python -m icmape.learning`, which also tells the memory of its program. It may be asked to end after a report, or to
wait for a file before it saves the teams."""


class Told(NamedTuple):
    """The processes of a run: their exit codes and what they printed."""

    codes: list[int]
    texts: list[str]

    @property
    def memory(self) -> int:
        """Bytes of the program of the first process."""
        return int(re.findall(r"bytes (\d+)", self.texts[0])[0])


def begin(folder: Path, *flags: str, asked: str = "") -> subprocess.Popen:
    command = [sys.executable, "-c", WORKER, asked, str(folder / "config.json"), *flags]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def begin_two(
    folder: Path, *flags: str, asked: tuple[str, str] = ("", ""), second: Path | None = None
) -> list[subprocess.Popen]:
    """The second one may have another folder."""
    where, folders = f"127.0.0.1:{free_port()},2,", (folder, second or folder)
    return [
        begin(folders[number], *flags, "--distributed", where + str(number), asked=asked[number]) for number in (0, 1)
    ]


def ended(*processes: subprocess.Popen) -> Told:
    texts = [process.communicate(timeout=250)[0] for process in processes]
    return Told([process.returncode for process in processes], texts)


class Runs(NamedTuple):
    """A run in one process; the same in two, of which the second one is asked to end early; and what resumed that."""

    folders: tuple[Path, Path]
    alone: Told
    first_half: Told
    second_half: Told


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    alone, together = (tmp_path_factory.mktemp(name) for name in ("alone", "together"))
    for folder in (alone, together):
        write_config(folder, Bandit(**PROBLEM), override(preset("bandit-quick").config("iql"), SETTINGS | SHORT))
    one = begin(alone)
    first_half = ended(*begin_two(together, asked=("", "end")))
    processes = begin_two(together, "--resume", asked=("wait", ""))
    try:
        processes[1].wait(timeout=100)  # it ends while the first one has still to save the teams
    finally:
        together.with_name("parted").touch()
    return Runs((alone, together), ended(one), first_half, ended(*processes))


@pytest.fixture
def folders(runs: Runs) -> tuple[Path, Path]:
    return runs.folders


def test_a_signal_to_one_process_ends_all_and_the_run_is_resumed(runs):
    assert (runs.alone.codes, runs.first_half.codes, runs.second_half.codes) == ([0], [130, 130], [0, 0]), runs
    assert "2/4" in runs.first_half.texts[0]
    assert "4/4" not in runs.first_half.texts[0]
    assert "2/4" not in runs.second_half.texts[0]


def test_each_process_does_half_of_the_work_and_the_first_one_speaks(runs):
    assert runs.first_half.memory < 0.8 * runs.alone.memory
    assert "accuracy" in runs.first_half.texts[0]
    assert "accuracy" not in runs.first_half.texts[1] + runs.second_half.texts[1]


def test_metrics_are_those_of_one_process(folders):
    alone, together = (read_metrics(folder / "metrics.jsonl") for folder in folders)
    assert [row["iteration"] for row in together] == [2, 4]
    for expected, row in zip(alone, together, strict=True):
        assert set(row) == set(expected)
        for name in set(expected) - {"seconds"}:
            assert row[name] == pytest.approx(expected[name], rel=1e-4, abs=1e-5), name


def test_the_files_of_the_run_are_written_once(folders):
    alone, together = folders
    assert {path.name for path in together.iterdir()} == {path.name for path in alone.iterdir()}
    teams = [load(folder / "team-3.safetensors") for folder in folders]
    weights = [np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(team.policy)]) for team in teams]
    np.testing.assert_allclose(*weights, rtol=1e-4, atol=1e-6)
    assert json.loads(teams[1].card)["seed"] == 3


PYTHON = """
import sys
import jax
jax.distributed.initialize(sys.argv[1], 2, int(sys.argv[2]))
import icmape
from icmape.zoo.bandit.bandit import Bandit
from tests.learning.test_processes import SHORT
from tests.learning.test_run import PROBLEM, SETTINGS
team = icmape.train(Bandit(**PROBLEM), algorithm="random", out=sys.argv[3], progress=False, **SETTINGS | SHORT)
print("weights", float(sum(abs(leaf).sum() for leaf in jax.tree.leaves(team.inference))))
"""


@pytest.mark.slow
def test_a_program_in_several_processes_trains_and_writes_once(tmp_path):
    """All of them get the team."""
    where = f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-c", PYTHON, where]
    processes = [
        subprocess.Popen(
            [*command, str(number), str(tmp_path / "out")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        for number in (0, 1)
    ]
    told = ended(*processes)
    assert told.codes == [0, 0], told.texts
    assert len({re.findall(r"weights ([0-9.]+)", text)[-1] for text in told.texts}) == 1
    assert load(tmp_path / "out" / "team-3.safetensors").problem.agents == 2


def test_processes_that_were_given_different_things_do_not_train(tmp_path):
    """A learning rate is an input of the program: each would train its own networks, and the first one write them."""
    folders = [tmp_path / name for name in ("first", "second")]
    for folder, rate in zip(folders, (1e-3, 2e-3), strict=True):
        settings = SETTINGS | SHORT | {"critic_lr": rate}
        write_config(folder, Bandit(**PROBLEM), override(preset("bandit-quick").config("iql"), settings))
    told = ended(*begin_two(folders[0], second=folders[1]))
    assert told.codes == [2, 2]
    assert all("the processes of this run have different settings: give all of them" in text for text in told.texts)
    assert not (folders[0] / "metrics.jsonl").exists()


@pytest.mark.parametrize("where", ["", "localhost", "h:1,2", "h:1,2,2", "h:1,2,-1", "h,2,0", "h:1,2,0,0"])
def test_what_names_no_process_is_refused(where):
    with pytest.raises(UserError, match="HOST:PORT,PROCESSES,NUMBER"):
        join(where)


def test_processes_of_a_run_need_one_folder(capsys):
    assert cli.main(["train", "bandit-quick", "--distributed", "127.0.0.1:1,2,0"]) == 2
    assert "give --out" in capsys.readouterr().err
