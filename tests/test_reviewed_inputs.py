"""Inputs that an outside reader found to be taken: each is refused in one sentence, and soon."""

import json
import logging
import subprocess
import sys
import time
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load, save

from icmape import UserError
from icmape.cli import main
from icmape.errors import PrintableFormatter
from icmape.io import read_bounded
from icmape.json_text import parse
from icmape.locks import HeldError, locked
from icmape.play import team_files
from icmape.play.inference import ExactInference
from icmape.play.open_loop import Schedule
from icmape.play.stop import FixedLength
from icmape.play.team import Team
from icmape.zoo.bandit.bandit import Bandit
from icmape_agent.sealing import BLANK, SEAL, sealed

PROBLEM = Bandit(1, 2, 4)


@pytest.fixture
def team() -> Team:
    return Team(PROBLEM, Schedule(jnp.zeros((1, 2), jnp.int32), 2), FixedLength(2), ExactInference())


def resealed(source: Path, target: Path, **changes: str) -> Path:
    """A file with other metadata and the SHA-256 of its new content."""
    data = source.read_bytes()
    told = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
    target.write_bytes(sealed(save(load(data), metadata=told | changes | {SEAL: BLANK})))
    return target


@pytest.mark.parametrize(
    "stop",
    [
        {"kind": "length", "rounds": -1},
        {"kind": "length", "rounds": 1.9},
        {"kind": "length", "rounds": 10**30},
        {"kind": "length", "rounds": True},
        {"kind": "threshold", "level": 7},
        {"kind": "threshold", "level": float("nan")},
        {"kind": "learned", "mood": "good"},
    ],
)
def test_a_stop_that_no_team_has_is_refused(team: Team, tmp_path: Path, stop: dict):
    team.save(tmp_path / "team.safetensors")
    parts = {"policy": {"kind": "schedule", "rounds": 1}, "stop": stop, "inference": {"kind": "exact"}}
    made = resealed(tmp_path / "team.safetensors", tmp_path / "made.safetensors", parts=json.dumps(parts))
    with pytest.raises(UserError, match="description cannot be read"):
        team_files.load(made)


@pytest.mark.parametrize(
    "told",
    [
        {"card": '{"seconds": "x"}'},
        {"card": '{"environment_steps": NaN}'},
        {"card": "[]"},
        {"delta": "1e999"},
        {"delta": "true"},
        {"problem": "[" * 100_000},
    ],
)
def test_a_card_that_no_training_writes_is_refused(team: Team, tmp_path: Path, told: dict):
    team.save(tmp_path / "team.safetensors")
    made = resealed(tmp_path / "team.safetensors", tmp_path / "made.safetensors", **told)
    for read in (team_files.load, team_files.about):
        with pytest.raises(UserError, match="description cannot be read"):
            read(made)


def test_masked_arrays_and_truths_within_arrays_are_no_readings(team: Team):
    actions, paid = [[0, 0]], [[1, 0]]
    for odd in (np.ma.array(paid, mask=[[0, 1]]), [np.array([True, False])]):
        with pytest.raises(UserError):
            team.posterior(actions, odd)
    with pytest.raises(UserError, match="masked"):
        team.posterior(np.ma.array(actions, mask=[[0, 1]]), paid)
    with pytest.raises(UserError):
        team.agent(0).see(0, np.ma.masked)


@pytest.mark.parametrize("actions", [np.array(0), {0: 1}, {0}, "00"])
def test_actions_are_a_list(team: Team, actions):
    with pytest.raises(UserError, match="must be a list"):
        team.act(0, actions, [0])


def test_a_million_rounds_are_refused_at_once(team: Team):
    rows = [[0, 0]] * 1_000_000
    began = time.process_time()
    with pytest.raises(UserError, match="more than the horizon"):
        team.posterior(rows, rows)
    assert time.process_time() - began < 1


def test_many_names_in_json_take_no_time():
    names = ",".join(f'"k{i}":0' for i in range(60_000))
    began = time.process_time()
    with pytest.raises(ValueError, match="k59999"):
        parse(f'{{{names},"k59999":1}}')
    assert time.process_time() - began < 2


def test_a_file_of_300_gb_is_refused_before_it_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "team.safetensors"
    with open(path, "wb") as file:
        file.truncate(300 * 10**9)
    with pytest.raises(UserError, match="more than such a file may have"):
        read_bounded(path)
    assert main(["evaluate", str(path)]) == 2
    assert "300,000,000,000 bytes" in capsys.readouterr().err


def test_what_is_logged_steers_no_terminal():
    record = logging.LogRecord("icmape", logging.WARNING, "", 0, "%s was written", ("\x1b[31m.safetensors",), None)
    assert PrintableFormatter("%(message)s").format(record) == "\\x1b[31m.safetensors was written"


def test_a_lock_that_was_deleted_between_opening_and_locking_is_not_held(tmp_path: Path, monkeypatch):
    import fcntl

    path, lock = tmp_path / ".lock", fcntl.flock
    monkeypatch.setattr(fcntl, "flock", lambda *words: (path.unlink(), lock(*words)))
    with pytest.raises(HeldError), locked(path, "it"):
        pass


def test_a_dollar_in_a_name_is_no_formula(tmp_path: Path, team: Team, capsys: pytest.CaptureFixture[str]):
    name = tmp_path / "$\\bad$.safetensors"
    team.save(name)
    words = ["compare", str(name), "--episodes", "50", "--baselines", "none", "--out", str(tmp_path / "c")]
    assert main(words) == 0, capsys.readouterr()
    assert (tmp_path / "c" / "comparison.png").stat().st_size > 1000


def test_settings_of_matplotlib_in_the_current_folder_are_not_read(tmp_path: Path):
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\n")
    code = "from icmape.search_path import without_matplotlibrc as without; without(); import matplotlib"
    code += "; print(matplotlib.rcParams['text.usetex'])"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
