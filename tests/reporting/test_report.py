"""A report of a shipped team: one page, and what was played for it is not played again."""

from pathlib import Path

import pytest

from icmape import cli
from icmape.evaluation import stored


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
    assert "95% confidence this team answers right with probability at least" in page
    assert "of 300 fresh worlds" in page
    assert "arm 1" in page
    assert "http://" not in page.replace("http://www.w3.org", ""), "it needs nothing from anywhere else"
    printed = capsys.readouterr().out
    assert "accuracy 0." in printed
    assert str(out) in printed.replace("\n", "")
    (kept,) = (tmp_path / "page" / "episodes").iterdir()
    before = kept.stat().st_mtime_ns

    def played(*_: object, **__: object) -> None:
        raise AssertionError("played again")

    monkeypatch.setattr(stored, "play", played)
    assert cli.main(words(out, replays=0)) == 0
    assert kept.stat().st_mtime_ns == before
    assert ">Episodes</h2>" not in out.read_text()


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
