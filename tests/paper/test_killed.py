"""A reproduction that dies goes on where it was, and one that is done does nothing again."""

import csv
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from icmape import cli
from icmape.evaluation import robustness
from icmape.play.team_files import load
from paper import curves, episodes, findings, limits, queue, work
from paper.work_plan import THERE
from tests.paper import tiny
from tests.paper.tiny import SEED, TINY, words

FIRST = f"tiny/random/analysis-{SEED}.json"
RESULTS = (
    f"tiny/random/team-{SEED}.safetensors",
    FIRST,
    f"tiny/random/curve-{SEED}.json",
    f"tiny/random/certificate-{SEED}.json",
    "tiny/random/robustness-capacities.json",
    f"tiny/td3/analysis-{SEED}.json",
    f"tiny/td3/curve-{SEED}.json",
    "tiny/baseline-random.json",
    "tiny/curve-random.json",
)


class Reproduced(NamedTuple):
    folder: Path
    before: dict[str, tuple[int, bytes]]  # what lay there when it was killed
    said: str


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Time and content of every file that is a result."""
    files = [path for part in ("tiny", "episodes") for path in (folder / part).rglob("*") if path.is_file()]
    whole = [path for path in files if not path.name.endswith(".part")]
    return {p.relative_to(folder).as_posix(): (p.stat().st_mtime_ns, p.read_bytes()) for p in whole}


def killed(folder: Path) -> None:
    """Start the program, and end it without warning when its first result is there."""
    program = subprocess.Popen([sys.executable, "-m", "tests.paper.tiny", str(folder)], env=os.environ)
    try:
        began = time.monotonic()
        while not (folder / FIRST).exists():
            assert program.poll() is None, "it ended before its first result"
            assert time.monotonic() - began < 200
            time.sleep(0.01)
    finally:
        program.send_signal(signal.SIGKILL)
        assert program.wait() == -signal.SIGKILL


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory: pytest.TempPathFactory) -> Reproduced:
    """Killed, and then done to the end."""
    folder = tmp_path_factory.mktemp("reproduced")
    killed(folder)
    before = contents(folder)
    said: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        tiny.prepare(patch.setattr)
        patch.setattr("paper.command.say", said.append)
        assert cli.main(words(folder)) == 0
    return Reproduced(folder, before, "\n".join(said))


def test_it_was_killed_in_the_middle(reproduced: Reproduced) -> None:
    assert FIRST in reproduced.before
    assert "tiny/baseline-random.json" not in reproduced.before


def test_what_was_there_is_not_touched_and_the_rest_is_done(reproduced: Reproduced) -> None:
    after = contents(reproduced.folder)
    left = {"tiny/random/robustness-capacities.json"}  # it may have been half done
    assert {n: c for n, c in reproduced.before.items() if n not in left}.items() <= after.items()
    assert set(RESULTS) <= set(after)
    assert FIRST not in reproduced.said, "only what is done is told"
    assert "tiny/td3/train: done" in reproduced.said


def test_tables_figures_and_pages_are_written(reproduced: Reproduced) -> None:
    page = (reproduced.folder / "results.md").read_text()
    for name in ("tables/summary.md", "tables/tiny-methods.csv", "figures/tiny-methods.svg", "index.html"):
        assert (reproduced.folder / name).stat().st_size > 0
    assert page.startswith("# ICMAPE, reproduced [quick]")
    assert "ours (random)" in page
    for shown in [line for line in page.splitlines() if line.startswith("![")]:
        assert (reproduced.folder / shown.split("](")[1].split(")")[0]).exists()


def test_every_figure_of_a_quick_run_is_marked(reproduced: Reproduced) -> None:
    drawn = sorted((reproduced.folder / "figures").glob("*.svg"))
    assert len(drawn) >= 7
    for path in drawn:
        text = path.read_text()
        assert ">quick<" in text.replace("\n", "").replace(" ", ""), f"{path.name}: across the figure"
        assert "[quick]" in text, f"{path.name}: in its title"


def test_methods_are_read_off_at_the_same_accuracy(reproduced: Reproduced) -> None:
    """Both teams are the same three rounds on the only arm, so nothing lies between them; gaps are at 0.9, too."""
    with open(reproduced.folder / "tables/tiny-equal-accuracy.csv") as file:
        ours, td3, rule = csv.DictReader(file)
    assert (ours["method"], td3["method"], rule["method"]) == ("ours (random)", "ICMAPE-TD3", "rule random")
    assert float(ours["tau"]) == float(td3["tau"]) > 1
    assert (float(td3["gap"]), float(td3["gap_low"]), float(td3["gap_high"])) == (0, 0, 0)
    gaps = (reproduced.folder / "tables/gaps.md").read_text()
    assert f"{float(ours['tau']):.2f} ± {float(ours['half']):.2f}" in gaps
    assert (reproduced.folder / "figures/tiny-equal-accuracy.svg").stat().st_size > 0


def test_a_second_run_does_nothing(reproduced: Reproduced, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("done again")

    tiny.prepare(monkeypatch.setattr)
    for name in ("stored_episodes", "certify", "robustness"):
        monkeypatch.setattr(findings, name, forbidden)
    for name in ("stop_curve", "baseline_stop_curve"):
        monkeypatch.setattr(curves, name, forbidden)
    monkeypatch.setattr("paper.training.train_run", forbidden)
    monkeypatch.setattr("icmape.baselines.registry.baseline_team", forbidden)
    before, plan = contents(reproduced.folder), tiny.quick(reproduced.folder)
    outcomes = queue.do_all(work.chains([TINY], plan), plan)
    assert {outcome.state for outcome in outcomes} == {THERE}
    assert [outcome.name for outcome in outcomes if "train" in outcome.name] == ["tiny/random/train", "tiny/td3/train"]
    assert contents(reproduced.folder) == before


def test_a_team_that_changed_is_judged_again_and_no_other(
    reproduced: Reproduced, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results name the team that they are of; a result whose question differs is not taken."""
    tiny.prepare(monkeypatch.setattr)
    plan = tiny.quick(tmp_path, base=reproduced.folder)
    tiny.team(delta=0.2).save(tmp_path / f"tiny/random/team-{SEED}.safetensors")
    assert findings.read_analysis(TINY, TINY.main, plan, SEED) is None
    assert curves.read_curve(TINY, TINY.main, plan, SEED) is None
    assert findings.read_certificate(TINY, TINY.main, plan, SEED) is None
    assert findings.read_sweep(TINY, TINY.main, plan, tiny.CAPACITIES) is None
    assert findings.read_analysis(TINY, TINY.methods[1], plan, SEED) is not None
    assert limits.read_limit(TINY, "random", plan) is not None
    assert findings.make_analysis(TINY, TINY.main, plan, SEED, "")[0] == "done"
    assert findings.read_analysis(TINY, TINY.main, plan, SEED).evaluation.delta == 0.2


def test_results_of_teams_that_are_not_at_hand_are_taken(reproduced: Reproduced, tmp_path: Path) -> None:
    kept = tmp_path / FIRST
    kept.parent.mkdir(parents=True)
    kept.write_bytes((reproduced.folder / FIRST).read_bytes())
    plan = tiny.quick(tmp_path / "new", base=tmp_path)
    assert findings.read_analysis(TINY, TINY.main, plan, SEED) is not None
    fewer = tiny.quick(tmp_path / "new", base=tmp_path, episodes=200)
    assert findings.read_analysis(TINY, TINY.main, fewer, SEED) is None, "another number of worlds was asked for"


def test_a_sweep_goes_on_point_by_point(
    reproduced: Reproduced, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = tiny.quick(tmp_path, base=reproduced.folder)
    whole = findings.read_sweep(TINY, TINY.main, plan, tiny.CAPACITIES)
    asked = findings._sweep_question(TINY, TINY.main, plan, tiny.CAPACITIES)
    name = "tiny/random/robustness-capacities.json"
    plan.store.write(name, asked, [one._asdict() for one in whole[:2]])
    alone = tiny.quick(tmp_path)
    shutil.copy(reproduced.folder / RESULTS[0], tmp_path / RESULTS[0])
    assert findings.read_sweep(TINY, TINY.main, alone, tiny.CAPACITIES) is None, "it is not whole"
    played, honest = [], robustness.play
    monkeypatch.setattr(robustness, "play", lambda *a, **k: (played.append(a[0].problem), honest(*a, **k))[1])
    assert findings.make_sweep(TINY, TINY.main, alone, tiny.CAPACITIES)[0] == "done"
    assert [float(one.capacity_concentration) for one in played] == [5.0]
    assert findings.read_sweep(TINY, TINY.main, alone, tiny.CAPACITIES) == whole


def test_the_page_steps_through_episodes_of_our_team(reproduced: Reproduced) -> None:
    html = (reproduced.folder / "index.html").read_text()
    assert episodes.RULE in html
    team = load(reproduced.folder / "tiny" / "random" / f"team-{SEED}.safetensors")
    titles = [shown["title"] for shown in episodes.chosen_scenes(team)]
    assert titles
    assert all(title[1:] in html for title in titles)  # with the name of the setting before it
