"""Archives: what is carried, how large they are, and what a resumed run does."""

import json
import os
import shutil
import signal
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icmape import UserError
from icmape.baselines.by_name import find_policies
from icmape.learning import td3, value
from icmape.learning.checkpoints import (
    NEWEST,
    PREVIOUS,
    check_settings,
    delete_checkpoints,
    pack_checkpoint,
    read_checkpoint,
    unpack_checkpoint,
)
from icmape.learning.config import Config
from icmape.learning.presets import preset
from icmape.learning.run import Progress, Run, resume_run, train_run
from icmape.learning.run_files import read_metrics
from icmape.learning.run_teams import save_teams
from icmape.learning.validation import Best
from icmape.locks import locked
from icmape.settings import override
from icmape.zoo.bandit.bandit import Bandit
from paper import carried as carried_module
from paper import parcel
from paper.carried import EPISODES, Size, arrays_of, restore, shrink
from paper.parcel import pack, unpack

RUN = "bandit-quick/random"
PROBLEM = Bandit(1, 2, 6)


def config(**changes: Any) -> Config:
    """Random actions, of which only the inference network learns: it compiles soonest."""
    small = {
        **{"iterations": 12, "iterations_per_call": 3, "num_envs": 8, "batch_size": 4, "buffer_size": 32},
        **{
            "learning_starts": 8,
            "validation_interval": 6,
            "validation_episodes": 16,
            "settling_episodes": 64,
            "network.hidden_size": 4,
        },
        **{"seeds": (215,), "checkpoint_minutes": 0.0},
    }
    return override(preset("bandit-quick").config("random"), {**small, **changes})


def interrupt_at(iteration: int) -> Any:
    def callback(report: Progress) -> None:
        if report.iteration == iteration:
            os.kill(os.getpid(), signal.SIGTERM)

    return callback


@pytest.fixture(scope="module")
def halfway(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was interrupted in its middle; its replay of 32 episodes is full."""
    folder = tmp_path_factory.mktemp("halfway")
    policies = find_policies(PROBLEM, config())
    run = train_run(PROBLEM, config(), folder / RUN, callback=interrupt_at(6), policies=policies, settle=False)
    assert run.interrupted
    assert run.iteration == 6
    (folder / "episodes").mkdir()
    (folder / "episodes" / "x.npz").write_bytes(b"played again from the team")
    (folder / RUN / "analysis-215.json").write_text('{"value": 1}')
    return folder


def resumed(folder: Path) -> Run:
    return resume_run(PROBLEM, config(), folder / RUN, policies=find_policies(PROBLEM, config()))


def rows(folder: Path) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k != "seconds"} for row in read_metrics(folder / RUN / "metrics.jsonl")]


@pytest.fixture(scope="module")
def at_home(halfway: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run, resumed where it was."""
    folder = tmp_path_factory.mktemp("home") / "all"
    shutil.copytree(halfway, folder)
    save_teams(resumed(folder), folder / RUN)
    return folder


def carried(source: Path, tmp_path: Path, **options: Any) -> tuple[Path, list[str]]:
    _, remarks = pack(source, tmp_path / "parcel", **options)
    unpack(tmp_path / "parcel", tmp_path / "away")
    return tmp_path / "away", remarks


def test_a_run_that_is_carried_whole_ends_as_if_it_had_stayed(halfway: Path, at_home: Path, tmp_path: Path) -> None:
    away, remarks = carried(halfway, tmp_path)
    assert remarks == ["checkpoints are whole: a resumed run is bit for bit the same on a CPU"]
    names = {path.name for path in (away / RUN).iterdir()}
    assert names == {"config.json", "metrics.jsonl", "checkpoint.eqx", "analysis-215.json"}
    assert not (away / "episodes").exists()
    save_teams(resumed(away), away / RUN)
    assert rows(away) == rows(at_home)
    assert rows(away)[-1]["iteration"] == 12


def there_and_back(halfway: Path, size: Size) -> tuple[Any, Any, Any]:
    """Headers and arrays of a checkpoint, of a small copy with 8 episodes, and of what is restored from that."""
    whole = read_checkpoint(halfway / RUN / "checkpoint.eqx")
    small = unpack_checkpoint(shrink(whole, size, episodes=8), Path("small"))
    back = unpack_checkpoint(restore(small), Path("back"))
    check_settings(back, PROBLEM, config())
    return tuple((one.header, arrays_of(one)) for one in (whole, small, back))


def test_a_thinned_checkpoint_holds_the_newest_episodes_and_the_rest_unchanged(halfway: Path) -> None:
    """Iterations of 8 episodes in a ring of 32: after 6, with 8 of the warm-up, the newest 8 end at row 24."""
    (before, whole), (_, thin), (after, back) = there_and_back(halfway, Size.THINNED)
    assert after == before
    assert whole[".replay.position"].tolist() == [24]
    for name, values in whole.items():
        if name.startswith(EPISODES):
            assert thin[name].shape[1] == 8
            assert back[name].shape == values.shape
            np.testing.assert_array_equal(back[name][:, :8], values[:, 16:24])
        elif not name.startswith(".replay"):
            np.testing.assert_array_equal(back[name], values)
    assert back[".replay.size"].tolist() == back[".replay.position"].tolist() == [8]


def test_a_rounded_checkpoint_is_half_as_large_and_near(halfway: Path) -> None:
    (_, whole), (_, small), (_, back) = there_and_back(halfway, Size.ROUNDED)
    learned = [name for name in whole if name.startswith(".learner") and whole[name].dtype == np.float32]
    assert any(".nu" in name for name in learned)
    for name in learned:
        assert small[name].itemsize == 2
        np.testing.assert_allclose(back[name], whole[name], rtol=1 / 128, atol=1e-6)
    for name in whole:
        if name.startswith(".best"):
            np.testing.assert_array_equal(back[name], whole[name])


def test_a_small_checkpoint_has_no_replay_and_its_networks_begin_from_their_averages(
    halfway: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leaves that are not stored come back in their places; the best team is nearer than a step of 8 bits."""
    monkeypatch.setattr(carried_module, "LARGE", 16)
    (before, whole), (_, small), (after, back) = there_and_back(halfway, Size.SMALL)
    assert after == before
    assert list(back) == list(whole)
    large = [name for name in whole if name.startswith((".learner", ".best")) and name + "/step" in small]
    assert {name.split(".")[2] for name in large} >= {"slow_inference", "inference"}
    for name, values in whole.items():
        assert (back[name].shape, back[name].dtype) == (values.shape, values.dtype)
        if name.startswith(".learner.inference."):
            assert name not in small
            np.testing.assert_array_equal(back[name], back[name.replace(".inference", ".slow_inference")])
        elif ".mu" in name:
            assert not back[name].any()
        elif ".nu" in name:
            assert np.all((back[name] <= 1.5 * values) & (back[name] >= 0.75 * values))
        elif name in large:
            step = np.max(np.abs(values), axis=-1, keepdims=True) / 127
            assert np.all(np.abs(back[name] - values) <= 0.51 * step + 1e-7) or name.startswith(".best")
        elif name.startswith(".learner.slow_inference"):
            np.testing.assert_array_equal(back[name], values)
    best = [name for name in large if name.startswith(".best")]
    for name in best:
        average = back[
            name.replace(".best.policy.actors", ".learner.target_actors").replace(".best.i", ".learner.slow_i")
        ]
        step = np.max(np.abs(whole[name] - average), axis=-1, keepdims=True) / 127
        assert np.all(np.abs(back[name] - whole[name]) <= 0.51 * step + 1e-7)
    assert back[".replay.size"].tolist() == back[".replay.position"].tolist() == [0]
    assert not any(back[name].any() for name in back if name.startswith(EPISODES))


def test_networks_and_averages_have_the_names_that_learners_give_them() -> None:
    """Else they would be carried twice."""
    known = {*td3.Learner._fields, *value.Learner._fields}
    assert {part.removeprefix(".learner.") for pair in carried_module.AVERAGES.items() for part in pair} <= known
    assert {name.removeprefix(".best.").partition(".")[0] for name in carried_module.BEST} <= {*Best._fields}
    assert {*carried_module.BEST.values()} <= {*carried_module.AVERAGES.values()}


@pytest.mark.parametrize("size", [Size.THINNED, Size.ROUNDED, Size.SMALL])
def test_a_smaller_checkpoint_is_resumed_to_the_end(
    halfway: Path, at_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: Size
) -> None:
    monkeypatch.setattr(parcel, "SIZES", (size,))
    away, remarks = carried(halfway, tmp_path)
    assert remarks[0].startswith(f"checkpoints are {size}: ")
    run = resumed(away)
    assert run.finished
    assert not run.faults()
    assert rows(away)[:2] == rows(at_home)[:2], "what was done before is kept"
    assert rows(away)[-1] != rows(at_home)[-1]
    assert all(np.isfinite(row["inference_loss"]) for row in rows(away))


def test_files_larger_than_an_archive_are_cut_and_a_missing_part_is_told(
    halfway: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parcel, "ARCHIVE_BYTES", 4000)
    paths, _ = pack(halfway, tmp_path / "parcel")
    assert len(paths) > 2
    for path in paths:
        with zipfile.ZipFile(path) as file:
            assert sum(info.file_size for info in file.infolist()) <= 4000
    unpack(tmp_path / "parcel", tmp_path / "away")
    for path in (tmp_path / "away" / RUN).iterdir():
        assert (halfway / RUN / path.name).read_bytes() == path.read_bytes()
    paths[-1].unlink()
    with pytest.raises(UserError, match=r"parts of .*checkpoint.eqx: an archive is missing"):
        unpack(tmp_path / "parcel", tmp_path / "again")
    assert not (tmp_path / "again").exists(), "before anything is written"


def test_a_form_that_cannot_fit_is_not_compressed(halfway: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compressing all forms of six runs took a minute that nobody had."""
    compressed: list[int] = []

    def note(source: Path, contents: list[tuple[Path, bytes]]) -> list[parcel.Item]:
        compressed.append(len(contents[0][1]))
        return [parcel.Item(path.name, b"") for path, _ in contents]

    checkpoint = read_checkpoint(halfway / RUN / "checkpoint.eqx")
    sizes = {size: len(shrink(checkpoint, size)) for size in Size}
    monkeypatch.setattr(parcel, "_compressed", note)
    monkeypatch.setattr(parcel, "LEAST_SHARE", {Size.WHOLE: 0.5, Size.THINNED: 0.1})
    parcel._checkpoints(halfway, {halfway / RUN}, int(0.5 * sizes[Size.WHOLE]) - 1)
    assert compressed == [sizes[Size.THINNED]]


def test_without_room_the_shortest_run_is_left_out_before_results(halfway: Path, tmp_path: Path) -> None:
    both = tmp_path / "both"
    shutil.copytree(halfway, both)
    shutil.copytree(both / RUN, both / "bandit-quick/short")
    (both / "bandit-quick/short/metrics.jsonl").write_text('{"seed": 215, "iteration": 3}\n')
    small = len(
        parcel.lzma.compress(
            shrink(read_checkpoint(halfway / RUN / "checkpoint.eqx"), Size.SMALL), preset=parcel.PRESET
        )
    )
    results, _ = pack(halfway, tmp_path / "results-only", 1000)
    room = 1.5 * small + sum(path.stat().st_size for path in results if "results" in path.name) * 2
    away, remarks = carried(both, tmp_path, most_mib=room / parcel.MIB)
    assert remarks[-1] == "bandit-quick/short/checkpoint.eqx is left out, as there is no room: this run begins again"
    assert (away / RUN / "checkpoint.eqx").exists()
    assert (away / "bandit-quick/short/metrics.jsonl").exists()
    with pytest.raises(UserError, match="raise --pack-mib"):
        pack(both, tmp_path / "nothing", most_mib=1e-5)


def test_without_room_for_all_results_the_newest_are_carried(halfway: Path, tmp_path: Path) -> None:
    """Older ones came with the last archives. A refusal would cost what a lent machine did."""
    copy = tmp_path / "copy"
    shutil.copytree(halfway, copy)
    old, new = copy / RUN / "analysis-1.json", copy / RUN / "analysis-2.json"
    for age, path in ((1000, old), (-1000, new)):
        path.write_bytes(np.random.default_rng(0).bytes(40_000))
        os.utime(path, (path.stat().st_atime, path.stat().st_mtime - age))
    away, remarks = carried(copy, tmp_path, most_mib=60_000 / parcel.MIB)
    assert new.read_bytes() == (away / RUN / new.name).read_bytes()
    assert not (away / RUN / old.name).exists()
    assert (away / RUN / "metrics.jsonl").exists()
    assert remarks[0].startswith("1 of the oldest results are left out")
    assert remarks[0].endswith(f"{RUN}/analysis-1.json")


def test_results_are_in_their_archives_before_checkpoints_are_compressed(
    halfway: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of a lent machine may end there."""
    monkeypatch.setattr(parcel, "shrink", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        pack(halfway, tmp_path / "parcel")
    unpack(tmp_path / "parcel", tmp_path / "away")
    assert (tmp_path / "away" / RUN / "analysis-215.json").exists()


def test_what_has_gone_as_far_here_stays(halfway: Path, at_home: Path, tmp_path: Path) -> None:
    """And teams that arrive end the checkpoint that they came from."""
    pack(halfway, tmp_path / "early")
    pack(_finished(at_home, tmp_path / "finished"), tmp_path / "late")
    here = tmp_path / "here"
    unpack(tmp_path / "early", here)
    assert (here / RUN / "checkpoint.eqx").exists()
    unpack(tmp_path / "late", here)
    assert not (here / RUN / "checkpoint.eqx").exists()
    count, remarks = unpack(tmp_path / "early", here)
    assert (count, remarks) == (0, [f"{RUN} has gone as far here: only results that it lacks are added"])
    (here / RUN / "analysis-215.json").unlink()
    assert unpack(tmp_path / "early", here)[0] == 1
    assert not (here / RUN / "checkpoint.eqx").exists()
    assert rows(here) == rows(at_home)


def _finished(folder: Path, copy: Path) -> Path:
    """As training leaves a run that is done."""
    shutil.copytree(folder, copy)
    delete_checkpoints(copy / RUN)
    return copy


def test_the_checkpoint_before_is_carried_in_place_of_a_damaged_one(halfway: Path, tmp_path: Path) -> None:
    """If both are damaged, this is told, and results are carried."""
    copy = tmp_path / "copy"
    shutil.copytree(halfway, copy)
    newest = read_checkpoint(copy / RUN / NEWEST)
    (copy / RUN / PREVIOUS).write_bytes(pack_checkpoint({**newest.header, "seconds": 1.5}, newest.leaves))
    (copy / RUN / NEWEST).write_bytes(b"damaged")
    away, _ = carried(copy, tmp_path)
    assert read_checkpoint(away / RUN / NEWEST).header == {**newest.header, "seconds": 1.5}
    (copy / RUN / PREVIOUS).write_bytes(b"damaged")
    _, remarks = pack(copy, tmp_path / "damaged")
    assert [remark for remark in remarks if "no whole checkpoint is left" in remark] == remarks != []
    unpack(tmp_path / "damaged", tmp_path / "results")
    assert {path.name for path in (tmp_path / "results" / RUN).iterdir()} == {
        *("config.json", "metrics.jsonl", "analysis-215.json")
    }


def test_no_archive_is_unpacked_into_a_run_that_trains(halfway: Path, tmp_path: Path) -> None:
    pack(halfway, tmp_path / "parcel")
    with locked(make_there(tmp_path / "here" / RUN) / ".lock", "it"), pytest.raises(UserError, match="being written"):
        unpack(tmp_path / "parcel", tmp_path / "here")
    assert [path.name for path in (tmp_path / "here" / RUN).iterdir()] == [".lock"]


def make_there(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def test_other_archives_and_empty_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there are no archives"):
        unpack(tmp_path, tmp_path / "out")
    for name in ("readme.txt", "../outside.xz", "/etc/file.xz"):
        with zipfile.ZipFile(tmp_path / "results-1.zip", "w") as file:
            file.writestr(name, json.dumps({}))
        with pytest.raises(UserError, match="was not written by --pack"):
            unpack(tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_run_that_was_interrupted_in_training_is_not_judged_again(halfway: Path, tmp_path: Path) -> None:
    """With `settle` off: the best team is the one that was validated, with that result."""
    copy = tmp_path / "copy"
    shutil.copytree(halfway, copy)
    policies = find_policies(PROBLEM, config())
    longer = replace(config(), iterations=12)
    run = resume_run(PROBLEM, longer, copy / RUN, callback=interrupt_at(9), policies=policies, settle=False)
    assert (run.interrupted, run.iteration) == (True, 9)
    assert run.states.best.iteration.tolist() == [6]
