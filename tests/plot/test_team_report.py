"""A report of a team: one page, and what was played for it is not played again."""

from pathlib import Path
from typing import Any

import pytest

from icmape import cli
from icmape.cli import report, report_baselines
from icmape.cli.teams import load_changed
from icmape.evaluation import certificate, results, robustness
from icmape.evaluation.results import Store
from icmape.evaluation.robustness import Sweep
from icmape.problem import arguments
from tests.paper import tiny
from tests.plot.analyses import points


def saved(folder: Path) -> Path:
    """A team of two players on one arm."""
    tiny.team().save(folder / "pair.safetensors")
    return folder / "pair.safetensors"


def words(file: Path, out: Path, replays: int) -> list[str]:
    few = ["--episodes", "300", "--sweep-episodes", "0", "--replays", str(replays), "--baseline-episodes", "200"]
    return ["report", str(file), "--out", str(out), *few, "--set", "capacity_concentration=1.0"]


def test_a_report_tells_everything_of_a_team_on_one_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file, out = saved(tmp_path), tmp_path / "page" / "index.html"
    assert cli.main(words(file, out, replays=1)) == 0
    page = out.read_text()
    for title in ("How good", "How honest", "Who does what", "All numbers"):
        assert f">{title}</h2>" in page, title
    assert "<h1>How many players can the arm serve at once?</h1>" in page
    assert "Two players, each with its own readings only, give the right answer" in page
    assert page.index('class="fact') < page.index('class="replay"') < page.index(">How good</h2>"), (
        "the replay is first"
    )
    assert "Where it breaks" not in page, "it was left out"
    assert "95 % confidence this team answers right with probability at least" in page
    assert "of 300 fresh worlds" in page
    assert "a fixed schedule " in page[: page.index('class="fact')], "what a fixed schedule needs stands at the top"
    for label in ("team pair.safetensors", "fixed schedule (open-loop)", "decentralized rule (local-adaptive)"):
        assert f'<th scope="row">{label}</th>' in page, "a row of the table"
        assert f"<title>{label}</title>" in page, "a line of the figure"
    assert "arm 1" in page
    assert "target 0.9, capacity concentration 1.0</span>" in page, "what was changed stands at the top"
    assert "a misspecified posterior" in page
    assert "http://" not in page.replace("http://www.w3.org", ""), "it needs nothing from anywhere else"
    printed = capsys.readouterr().out
    assert "accuracy 0." in printed
    assert str(out) in printed.replace("\n", "")
    kept = contents(tmp_path / "page" / "episodes")
    assert sorted(name.partition("-")[0] for name in kept if name.endswith(".json")) == [
        *("baselines", "certificate", "curve")
    ]

    def played(*_: object, **__: object) -> None:
        raise AssertionError("played again")

    for module, name in (
        (results, "play"),
        (certificate, "play_parts"),
        (robustness, "play"),
        (report_baselines, "measure"),
    ):
        monkeypatch.setattr(module, name, played)
    assert cli.main(words(file, out, replays=0)) == 0
    assert contents(tmp_path / "page" / "episodes") == kept
    assert 'class="replay"' not in out.read_text()
    assert cli.main([*words(file, out, replays=0), "--baselines", "none"]) == 0
    assert "open-loop" not in out.read_text(), "they are left out on request"


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.iterdir()}


def test_sweeps_follow_what_is_set_and_are_played_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A concentration below 0 is refused: that point is left out, and a sweep of such points alone altogether."""
    file, problems = saved(tmp_path), []
    monkeypatch.setattr(robustness, "play", lambda team, *_, **__: problems.append(arguments(team.problem)))
    monkeypatch.setattr(robustness, "sweep_point", lambda changes, *_: points({n: [v] for n, v in changes.items()})[0])
    sweeps = Sweep("capacities", {"capacity_concentration": (-1.0, 0.5)}), Sweep("none", {"mean_alpha": (-1.0,)})
    monkeypatch.setattr(report, "sweeps_of", lambda problem: sweeps)

    def swept(**changes: Any) -> list[tuple[str, list[dict[str, Any]]]]:
        options = report.ReportOptions(set=tuple(f"{n}={v}" for n, v in changes.items()), sweep_episodes=100)
        team = load_changed(str(file), None, changes)
        found = report._sweeps(Store(tmp_path / "kept"), str(file), team, options, "ours")
        return [(sweep.name, [point.changes for point in rows]) for sweep, rows in found]

    for changes, played in (({}, 1), ({}, 1), ({"horizon": 5}, 2), ({"horizon": 5}, 2), ({"horizon": 4}, 3)):
        assert swept(**changes) == [("capacities", [{"capacity_concentration": 0.5}])]
        assert len(problems) == played
    assert [(one["horizon"], one["capacity_concentration"]) for one in problems] == [(6, 0.5), (5, 0.5), (4, 0.5)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["report"], "give one or more team files"),
        (["report", "bandit-quick", "--episodes", "10"], "episodes"),
        (["report", "bandit-quick", "--out", "page.txt"], "ends with .html"),
        (["report", "bandit-quick", "--baselines", "open-lop"], "unknown baseline 'open-lop'"),
        (["report", "bandit-quick", "--baseline-episodes", "10"], "--baseline-episodes must be at least 100"),
        (["report", "bandit-quick", "--names", "a", "b"], "--names needs a name for each of the 1 methods"),
        (["report", "bandit-quick", "--seed", str(2**30)], "reserved for `icmape certify`"),
    ],
)
def test_a_report_that_cannot_be_made_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(arguments) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert list(tmp_path.iterdir()) == []
