"""A run in two processes on one machine: the first one writes what a run in one process writes."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

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


def run(folder: Path, *flags: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "icmape.learning", str(folder / "config.json"), *flags]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The folders of a run in one process and of the same run in two."""
    alone, together = (tmp_path_factory.mktemp(name) for name in ("alone", "together"))
    for folder in (alone, together):
        write_config(folder, Bandit(**PROBLEM), override(preset("bandit-quick").config("iql"), SETTINGS | SHORT))
    where = f"127.0.0.1:{free_port()},2,"
    processes = [run(alone), *(run(together, "--distributed", where + number) for number in "01")]
    told = [process.communicate(timeout=250) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], told
    assert "accuracy" in told[1][0]
    assert "accuracy" not in told[2][0], "only the first one speaks"
    return alone, together


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


@pytest.mark.parametrize("where", ["", "localhost", "h:1,2", "h:1,2,2", "h:1,2,-1", "h,2,0", "h:1,2,0,0"])
def test_what_names_no_process_is_refused(where):
    with pytest.raises(UserError, match="HOST:PORT,PROCESSES,NUMBER"):
        join(where)
