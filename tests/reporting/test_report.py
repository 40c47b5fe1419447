"""A report of a shipped team: one page, and what was played for it is not played again."""

from pathlib import Path

import jax.numpy as jnp
import pytest

from icmape import cli
from icmape.cli import report
from icmape.evaluation import certificate, robustness, stored
from icmape.evaluation.robustness import Sweep
from icmape.problems import Bandit, arguments
from icmape.references import Schedule
from icmape.teams import ExactInference, FixedLength, Team


def words(out: Path, replays: int) -> list[str]:
    few = ["--episodes", "300", "--sweep-episodes", "0", "--replays", str(replays)]
    return ["report", "bandit-quick", "--out", str(out), *few]


def test_a_report_tells_everything_of_a_team_on_one_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "page" / "index.html"
    assert cli.main(words(out, replays=1)) == 0
    page = out.read_text()
    for title in ("Summary", "Calibration", "Survival", "Coordination", "Episodes"):
        assert f">{title}</h2>" in page, title
    assert "Robustness" not in page, "it was left out"
    assert "95 % confidence this team answers right with probability at least" in page
    assert "of 300 fresh worlds" in page
    assert "arm 1" in page
    assert "http://" not in page.replace("http://www.w3.org", ""), "it needs nothing from anywhere else"
    printed = capsys.readouterr().out
    assert "accuracy 0." in printed
    assert str(out) in printed.replace("\n", "")
    kept = contents(tmp_path / "page" / "episodes")
    assert sorted(name.partition("-")[0] for name in kept if name.endswith(".json")) == ["certificate"]

    def played(*_: object, **__: object) -> None:
        raise AssertionError("played again")

    for module in (stored, certificate, robustness):
        monkeypatch.setattr(module, "play", played)
    assert cli.main(words(out, replays=0)) == 0
    assert contents(tmp_path / "page" / "episodes") == kept
    assert ">Episodes</h2>" not in out.read_text()


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.iterdir()}


def test_sweeps_follow_what_is_set_and_are_played_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A concentration below 0 is refused: that point is left out, and a sweep of such points alone altogether."""
    out, file, problems = tmp_path / "index.html", tmp_path / "team.safetensors", []
    policy = Schedule(jnp.zeros((1, 2), jnp.int32), 2)
    Team(Bandit(1, 2, 6), policy, FixedLength(3), ExactInference()).save(file)
    honest = robustness.play
    noting = lambda team, *rest, **more: (problems.append(arguments(team.problem)), honest(team, *rest, **more))[1]  # noqa: E731
    monkeypatch.setattr(robustness, "play", noting)
    sweeps = Sweep("capacities", {"capacity_concentration": (-1.0, 0.5)}), Sweep("none", {"mean_alpha": (-1.0,)})
    monkeypatch.setattr(report, "SWEEPS", {Bandit: sweeps})
    asked = ["report", str(file), "--out", str(out), "--episodes", "100", "--sweep-episodes", "100", "--replays", "0"]
    for settings, played in (([], 1), ([], 1), (["--set", "horizon=5"], 2), (["--set", "horizon=5"], 2)):
        assert cli.main([*asked, *settings]) == 0
        assert len(problems) == played
        page = out.read_text()
        assert "Other priors (capacities)" in page
        assert "Other priors (none)" not in page
        assert ("horizon=5" in page) == bool(settings)
    assert [(one["horizon"], one["capacity_concentration"]) for one in problems] == [(6, 0.5), (5, 0.5)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["report"], "give one or more team files"),
        (["report", "bandit-quick", "--episodes", "10"], "episodes"),
        (["report", "bandit-quick", "--out", "page.txt"], "ends with .html"),
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
