"""Runs in trackers: every row once, one run over interruptions, and no tracker that ends the training."""

import io
import json
import logging
import sys
import time
from dataclasses import replace

import pytest
from PIL import Image

import icmape
from icmape.learning.run import Progress, Run
from icmape.learning.run_files import MetricsFile
from icmape.learning.run_folder import write_config
from icmape.learning.run_teams import team_of
from icmape.tracking import TRACKERS, Tracking, tracked_with
from tests.training import COINS, COINS_CONFIG, start

ROWS = [
    {"seed": seed, "iteration": iteration, "accuracy": 0.5 + iteration / 100 + seed / 1000, "critic_loss": None}
    for iteration in (10, 20, 30)
    for seed in (1, 2)
]


def one_pixel():
    file = io.BytesIO()
    Image.new("RGBA", (1, 1)).save(file, "PNG")
    return file.getvalue()


PNG = one_pixel()
CONFIG = replace(COINS_CONFIG, seeds=(1, 2), iterations=30)


@pytest.fixture(scope="module")
def states():
    return start(1, 2)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    write_config(folder, COINS, CONFIG)
    return folder


@pytest.fixture(autouse=True)
def few_episodes(monkeypatch):
    monkeypatch.setattr("icmape.tracking.follow.EPISODES", 50)


@pytest.fixture
def train(folder, states):
    return lambda *arguments, **options: train_part(folder, states, *arguments, **options)


def train_part(folder, states, names, rows, *, resumed=False):
    """A part of a run: its rows go to the file and to the trackers. Iteration 30 is the last one."""
    tracking = Tracking(folder, names, resumed=resumed)
    metrics = MetricsFile(folder / "metrics.jsonl")
    for iteration in sorted({row["iteration"] for row in rows}):
        now = [row for row in rows if row["iteration"] == iteration]
        for row in now:
            metrics.write(row)
        tracking.report(Progress(iteration, 30, 1.0, 1.0, 1.0, now))
    metrics.close()
    picture = folder / "curves.png"
    picture.write_bytes(PNG)
    run = Run(COINS, CONFIG, states, rows[-1]["iteration"], 1.0, False, folder)
    tracking.finish(run, {"curves": picture})
    return run


def events(folder):
    """All values of the event files, in the order of writing: (tag, step, value)."""
    from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader

    found = []
    for path in sorted((folder / "tensorboard").iterdir(), key=lambda path: path.stat().st_mtime_ns):
        for event in LegacyEventFileLoader(str(path)).Load():
            found += [(value.tag, event.step, value) for value in event.summary.value]
    return found


def test_a_resumed_run_goes_on_in_the_same_event_files_and_logs_every_row_once(folder, train):
    """The run was killed after 20 iterations, its checkpoint is of 10: 20 is trained again."""
    train(["tensorboard"], ROWS[:4])
    assert tracked_with(folder, None) == ("tensorboard",)
    train(tracked_with(folder, None), ROWS[2:], resumed=True)
    found = events(folder)
    scalars = [(tag, step, round(value.simple_value, 6)) for tag, step, value in found if tag.startswith("accuracy")]
    expected = [(f"accuracy/seed-{row['seed']}", row["iteration"], round(row["accuracy"], 6)) for row in ROWS]
    assert scalars == expected
    texts = [value.tensor.string_val[0].decode() for tag, _, value in found if tag == "configuration"]
    assert len(texts) == 1
    assert json.loads(texts[0].strip("`json\n"))["learning"]["delta"] == COINS_CONFIG.delta
    pictures = [(step, value.image) for tag, step, value in found if tag == "curves"]
    assert [(step, image.width, image.encoded_image_string) for step, image in pictures] == [(20, 1, PNG), (30, 1, PNG)]


def test_the_last_part_logs_what_evaluate_says_of_the_teams(folder, train):
    run = train(["tensorboard"], ROWS)
    said = {tag: value.simple_value for tag, step, value in events(folder) if tag.startswith("evaluation/")}
    result = icmape.evaluate(team_of(run, 2), episodes=50, seed=0)
    assert said["evaluation/accuracy/seed-2"] == pytest.approx(result.accuracy)
    assert said["evaluation/tau/seed-2"] == pytest.approx(result.tau)
    assert {name.rpartition("-")[2] for name in said} == {"1", "2"}


def test_rows_that_the_tracker_missed_are_logged_by_the_resumed_run(folder, train):
    """The first part was not tracked at all."""
    train([], ROWS[:4])
    train(["tensorboard"], ROWS[4:], resumed=True)
    assert {(step, tag) for tag, step, _ in events(folder) if tag.startswith("accuracy")} == {
        (row["iteration"], f"accuracy/seed-{row['seed']}") for row in ROWS
    }


def test_a_new_run_in_the_folder_begins_anew(folder, train):
    train(["tensorboard"], ROWS)
    (folder / "metrics.jsonl").unlink()
    train(["tensorboard"], ROWS[:2])
    assert {step for tag, step, _ in events(folder) if tag.startswith("accuracy")} == {10}


def test_weights_and_biases_offline_is_one_run_over_a_resume(folder, train, monkeypatch):
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.delenv("WANDB_PROJECT", raising=False)
    monkeypatch.setenv("WANDB__DISABLE_STATS", "true")
    train(["wandb"], ROWS[:4])
    train(tracked_with(folder, None), ROWS[4:], resumed=True)
    memory = json.loads((folder / "tracking.json").read_text())["wandb"]
    assert memory["logged"] == 30
    files = sorted(folder.glob("wandb/offline-run-*/run-*.wandb"))
    assert {path.name for path in files} == {f"run-{memory['id']}.wandb"}
    parts = ("accuracy/seed-2", "settling_episodes", "evaluation/tau/seed-1", "curves")
    end = time.monotonic() + 30  # its own process writes them, a moment later
    while absent := [part for part in parts if not any(part.encode() in path.read_bytes() for path in files)]:
        assert time.monotonic() < end, absent
        time.sleep(0.1)


@pytest.mark.parametrize("name", TRACKERS)
def test_a_missing_package_is_told_before_anything_begins(folder, monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(icmape.UserError, match=rf"pip install 'icmape\[{name}\]'"):
        Tracking(folder, [name])


def test_a_tracker_that_fails_is_told_once_and_left(folder, train, monkeypatch, caplog):
    class Failing:
        def __init__(self, *arguments):
            pass

        def numbers(self, values, iteration):
            raise ConnectionError("no network")

        def close(self):
            raise ConnectionError("still none")

    monkeypatch.setattr("icmape.tracking.follow.TRACKERS", {"wandb": Failing, "tensorboard": TRACKERS["tensorboard"]})
    with caplog.at_level(logging.ERROR, "icmape"):
        train(["wandb", "tensorboard"], ROWS)
    assert [record.message for record in caplog.records if "wandb" in record.message] == [
        "wandb failed and is left; training goes on (ConnectionError: no network)"
    ]
    assert {step for tag, step, _ in events(folder) if tag.startswith("accuracy")} == {10, 20, 30}


def test_a_damaged_file_says_what_to_do(folder):
    (folder / "tracking.json").write_text('{"mlflow": {}}')
    with pytest.raises(icmape.UserError, match="delete it"):
        tracked_with(folder, None)
