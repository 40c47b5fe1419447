"""Runs in trackers: every row once, one run over interruptions, and no tracker that ends the training."""

import io
import json
import logging
import sqlite3
import struct
import sys
import time
import types
from contextlib import closing
from dataclasses import replace
from unittest.mock import MagicMock

import pytest
from PIL import Image

import icmape
from icmape.learning.run import Progress, Run
from icmape.learning.run_files import MetricsFile, read_metrics
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


def shown(folder):
    """What TensorBoard shows: it discards values from the step on at which a later file begins."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    files = sorted((folder / "tensorboard").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    whole = folder / "whole.tfevents"
    whole.write_bytes(b"".join(path.read_bytes() for path in files))
    events = EventAccumulator(str(whole), size_guidance={"scalars": 0}).Reload()
    return [
        (event.step, tag, round(event.value, 6))
        for tag in events.Tags()["scalars"]
        if tag.startswith("accuracy")
        for event in events.Scalars(tag)
    ]


def as_shown(rows):
    """Rows of metrics in the same form."""
    return sorted((row["iteration"], f"accuracy/seed-{row['seed']}", round(row["accuracy"], 6)) for row in rows)


def test_a_resumed_run_goes_on_in_the_same_event_files_and_logs_every_row_once(folder, train):
    """The run was killed after 20 iterations, its checkpoint is of 10: 20 is trained again."""
    train(["tensorboard"], ROWS[:4])
    assert tracked_with(folder, None) == ("tensorboard",)
    train(tracked_with(folder, None), ROWS[2:], resumed=True)
    found = events(folder)
    assert sorted(shown(folder)) == as_shown(ROWS)
    texts = [value.tensor.string_val[0].decode() for tag, _, value in found if tag == "configuration"]
    assert len(texts) == 1
    assert json.loads(texts[0].strip("`json\n"))["learning"]["delta"] == COINS_CONFIG.delta
    pictures = [(step, value.image) for tag, step, value in found if tag == "curves"]
    assert [(step, image.width, image.encoded_image_string) for step, image in pictures] == [(20, 1, PNG), (30, 1, PNG)]


def test_rows_that_the_file_of_metrics_lost_are_replaced_in_tensorboard(folder, train):
    """The machine went down: the last rows were not on the disk, and an accelerator trains other numbers."""
    train(["tensorboard"], ROWS[:4])
    path = folder / "metrics.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    train(["tensorboard"], [{**row, "accuracy": 0.25 + row["accuracy"] / 2} for row in ROWS[2:]], resumed=True)
    rows = read_metrics(path)
    assert [row["accuracy"] == old["accuracy"] for row, old in zip(rows, ROWS, strict=True)] == 3 * [True] + 3 * [False]
    assert sorted(shown(folder)) == as_shown(rows)


@pytest.mark.parametrize("logged", [0, 10])
def test_a_row_that_was_logged_just_before_a_kill_is_shown_once(folder, train, logged):
    """It was in the event file, and not yet in tracking.json, which may not even have been there."""
    train(["tensorboard"], ROWS[:2])
    known = (folder / "tracking.json").read_bytes()
    train(["tensorboard"], ROWS[2:4], resumed=True)
    (folder / "tracking.json").write_bytes(known if logged else b"{}")
    train(["tensorboard"], ROWS[4:], resumed=True)
    assert sorted(shown(folder)) == as_shown(ROWS)


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


def records(path):
    """The records of a file of W&B: pieces in blocks of 32 KiB, each behind its length and kind."""
    from wandb.proto.wandb_internal_pb2 import Record

    content, at, record = path.read_bytes(), 7, b""
    while at + 7 <= len(content):
        if 32768 - at % 32768 < 7:  # no piece begins in the last bytes of a block
            at += 32768 - at % 32768
            continue
        length, kind = struct.unpack_from("<HB", content, at + 4)
        record += content[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # the only piece, or the last one
            yield Record.FromString(record)
            record = b""


def history(path):
    """The rows of such a file: their values by name."""
    for record in records(path):
        if record.WhichOneof("record_type") == "history":
            yield {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}


def test_the_last_part_of_an_offline_run_of_weights_and_biases_is_whole(folder, train, monkeypatch):
    """Parts with one id are not joined: the one that is uploaded last replaces the others."""
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.delenv("WANDB_PROJECT", raising=False)
    monkeypatch.setenv("WANDB__DISABLE_STATS", "true")
    train(["wandb"], ROWS[:4])
    train(tracked_with(folder, None), ROWS[4:], resumed=True)
    memory = json.loads((folder / "tracking.json").read_text())["wandb"]
    files = sorted(folder.glob("wandb/offline-run-*/run-*.wandb"))
    assert [path.name for path in files] == 2 * [f"run-{memory['id']}.wandb"]
    last = files[-1]
    end = time.monotonic() + 30  # its own process writes, a moment later
    while (kinds := [record.WhichOneof("record_type") for record in records(last)])[-1:] != ["exit"]:
        assert time.monotonic() < end, kinds
        time.sleep(0.05)
    rows = [row for row in history(last) if "accuracy/seed-1" in row]
    assert [(row["iteration"], row["accuracy/seed-1"], row["accuracy/seed-2"]) for row in rows] == [
        (first["iteration"], first["accuracy"], second["accuracy"])
        for first, second in zip(ROWS[::2], ROWS[1::2], strict=True)
    ]
    assert any("curves/path" in row for row in history(last))
    assert b"evaluation/tau/seed-1" in last.read_bytes()
    run = next(record.run for record in records(last) if record.WhichOneof("record_type") == "run")
    assert not run.resume, "else the whole part would be added to the one before"
    assert "settling_episodes" in str(run.config)


@pytest.mark.parametrize(
    ("parts", "logged"),
    [(["online", "online"], 20), (["offline", "online"], 0), (["online", "offline"], 0), (["online", "dryrun"], 0)],
)
def test_an_online_part_goes_on_where_an_online_part_ended(tmp_path, monkeypatch, parts, logged):
    """All other parts have all rows."""
    given = []
    fake = types.SimpleNamespace(
        init=lambda **options: given.append(options["resume"]) or MagicMock(), Settings=MagicMock()
    )
    monkeypatch.setitem(sys.modules, "wandb", fake)
    memory = {}
    for mode in parts:
        monkeypatch.setenv("WANDB_MODE", mode)
        TRACKERS["wandb"](tmp_path, {}, memory, 1)
        now, memory["logged"] = memory.get("logged", 0), 20
    assert now == logged
    assert given == ["allow" if mode == "online" else None for mode in parts]


def test_a_resumed_run_is_one_run_of_trackio(folder, train, monkeypatch):
    """Its rows are those of metrics.jsonl, each once: it is killed after 20 iterations, its checkpoint is of 10."""
    monkeypatch.setenv("TRACKIO_DIR", str(folder.parent / "trackio"))  # Trackio reads it when it is imported
    train(["trackio"], ROWS[:4])
    train(tracked_with(folder, None), ROWS[2:], resumed=True)
    name = json.loads((folder / "tracking.json").read_text())["trackio"]["name"]
    with closing(sqlite3.connect(folder.parent / "trackio" / "icmape.db")) as database:
        logged = database.execute("SELECT run_name, step, metrics FROM metrics ORDER BY id").fetchall()
        ((config,),) = database.execute("SELECT config FROM configs").fetchall()
        (measured,) = database.execute("SELECT count(*) FROM system_metrics").fetchone()
    assert {row[0] for row in logged} == {name}
    contents = [(step, json.loads(content)) for _, step, content in logged]
    rows = [(step, values) for step, values in contents if "accuracy/seed-1" in values]
    assert rows == [
        (first["iteration"], {"accuracy/seed-1": first["accuracy"], "accuracy/seed-2": second["accuracy"]})
        for first, second in zip(ROWS[::2], ROWS[1::2], strict=True)
    ]
    assert [step for step, values in contents if "curves" in values] == [20, 30]
    assert [step for step, values in contents if "evaluation/tau/seed-1" in values] == [30]
    assert json.loads(config)["learning"]["delta"] == CONFIG.delta
    assert measured == 0, "nothing is logged of the machine"


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


@pytest.mark.parametrize("others", [[], ["tensorboard"]])
def test_a_row_that_a_tracker_did_not_take_is_logged_by_the_resumed_run(folder, train, monkeypatch, caplog, others):
    """It fails at 20, in the middle of rows that it had missed, and is asked for no more of them."""
    calls = []

    class Failing(types.SimpleNamespace):
        def __init__(self, *_):
            super().__init__(results=MagicMock(), figure=MagicMock(), close=MagicMock())

        def numbers(self, values, iteration):
            calls.append(iteration)
            if calls == [10, 20]:
                raise ConnectionError("no network")

    monkeypatch.setattr("icmape.tracking.follow.TRACKERS", {**TRACKERS, "wandb": Failing})
    train([], ROWS)
    with caplog.at_level(logging.ERROR, "icmape"):
        Tracking(folder, ["wandb", *others], resumed=True).report(Progress(30, 30, 1.0, 1.0, 1.0, ROWS[4:]))
    assert len(caplog.records) == 1, "it is told once"
    assert calls == [10, 20]
    assert tracked_with(folder, None) == ("wandb", *others)
    train(tracked_with(folder, None), ROWS[4:], resumed=True)
    assert calls == [10, 20, 20, 30]


def test_an_evaluation_that_fails_does_not_end_the_run(folder, train, monkeypatch, caplog):
    def fail(*_, **__):
        raise ValueError("incompatible devices")

    monkeypatch.setattr("icmape.tracking.follow.evaluate", fail)
    with caplog.at_level(logging.ERROR, "icmape"):
        train(["tensorboard"], ROWS)
    assert [record.message for record in caplog.records] == [
        "the trackers get no evaluation of the teams (ValueError: incompatible devices)"
    ]
    assert "curves" in {tag for tag, *_ in events(folder)}


def test_a_damaged_file_says_what_to_do(folder):
    (folder / "tracking.json").write_text('{"mlflow": {}}')
    with pytest.raises(icmape.UserError, match="delete it"):
        tracked_with(folder, None)
