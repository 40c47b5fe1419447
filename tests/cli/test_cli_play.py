"""`icmape play` draws one episode, or says in a sentence why it does not."""

import re
from pathlib import Path

import jax.numpy as jnp
import pytest

from icmape import cli
from icmape.play.inference import ExactInference
from icmape.play.open_loop import Schedule
from icmape.play.stop import Threshold
from icmape.play.team import Team
from tests.coins import Coins


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Exit code and everything printed, in one line."""
    code = cli.main(["play", *arguments])
    printed = capsys.readouterr()
    return code, " ".join((printed.out + printed.err).split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give a team file, a run's folder or a pretrained team's name"),
        (["nowhere.safetensors"], "no team file nowhere.safetensors"),
        (["bandit-qick"], "bandit-quick"),
        (["bandit-quick", "--world", "-1"], "worlds are numbered from 0"),
        (["bandit-quick", "--seed", "3000000000"], "seed must lie in"),
        (["bandit-quick", "--out", "a-file"], "is a file; expected a folder"),
        (["bandit-quick", "--rounds", "3"], "--rounds sets up a baseline"),
        (["bandit-quick", "--baseline", "rndom"], "unknown baseline 'rndom'"),
        (
            ["bandit-quick", "--baseline", "random", "--level", "0.9", "--posterior", "network"],
            "no inference network",
        ),
        (["--field"], "--field needs a problem"),
        (["bandit-quick", "--field"], "Bandit has no field to be drawn"),
        (["bandit-quick", "--field", "--posterior", "exact"], "without anyone in it"),
        (["a-run"], "a-run holds 2 teams, and one is played"),
    ],
)
def test_bad_input_is_refused_before_anything_is_drawn(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a-file").touch()
    Path("a-run").mkdir()
    for seed in (1, 2):
        Path(f"a-run/team-{seed}.safetensors").touch()
    code, printed = run(capsys, *arguments)
    assert code == 2
    assert said in printed
    assert not Path("runs").exists()


def test_a_team_is_played_told_and_drawn(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    policy = Schedule(jnp.zeros((1, 2), jnp.int32), 2)
    Team(Coins(agents=2, horizon=6), policy, Threshold(0.99), ExactInference()).save(tmp_path / "team.safetensors")
    words = ["--problem", "tests.coins:Coins", "--world", "2", "--out", str(tmp_path / "new/out")]
    code, printed = run(capsys, str(tmp_path / "team.safetensors"), *words)
    assert code == 0
    assert "world 2 of seed 0" in printed
    assert " 1 → 0 → 0 " in printed, "in round 1 both toss"
    assert printed.count("→ STOP") == 2
    (last,) = re.findall(r"the posterior was sure enough after round (\d+)", printed)
    assert re.search(rf" {last} -1 → 0 .* stop -1 → STOP ", printed), "rounds count from 1 in the log and below it"
    assert {path.name for path in (tmp_path / "new/out").iterdir()} == {"episode.png", "episode.gif"}


def test_a_field_is_drawn_without_a_team(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["--field", "--problem", "icmape.zoo.signal:Signal", "--world", "3", "--out", str(tmp_path)]
    code, printed = run(capsys, *words)
    assert code == 0
    assert "the field of world 3" in printed
    assert (tmp_path / "field.png").read_bytes().startswith(b"\x89PNG")
