"""The command line refuses bad input in one sentence and exit code 2, before anything compiles."""

import json
from pathlib import Path

import pytest

from icmape import cli

QUICK = ["train", "bandit-quick"]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Exit code and everything printed."""
    try:
        code = cli.main(list(arguments))
    except SystemExit as left:  # tyro's own errors
        code = int(left.code or 0)
    printed = capsys.readouterr()
    return code, printed.out + printed.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["trian"], "train"),
        (["train", "bandit-qick"], "bandit-quick"),
        (["train"], "give a PRESET"),
        ([*QUICK, "--algorithm", "td4"], "td3"),
        ([*QUICK, "--network.widht", "8"], "--network.width"),
        ([*QUICK, "--delta", "0"], "delta must lie strictly between 0 and 1"),
        ([*QUICK, "--delta", "1.5"], "delta must lie strictly between 0 and 1"),
        ([*QUICK, "--problem.arms", "0"], "at least one arm"),
        ([*QUICK, "--problem.horizon", "1"], "at least two rounds"),
        ([*QUICK, "--batch", "4096"], "does not fit a replay of 2048"),
        ([*QUICK, "--worlds", "0"], "worlds must be at least 1"),
        ([*QUICK, "--seeds", "3000000000"], "seeds must lie in"),
        ([*QUICK, "--dual.limit", "-1"], "dual.limit must be at least 0"),
        ([*QUICK, "--actor-rate", "nan"], "actor_rate must be positive and finite"),
        ([*QUICK, "--greedy-share", "0"], "no greedy episode"),
        (["train", "--problem", ":X"], "expected module:Class"),
        ([*QUICK, "--seeds", "1", "1"], "different integers"),
        (["train", "--problem", "nowhere:Nothing"], "cannot import nowhere"),
        (["train", "--problem", "json:JSONDecoder"], "not a subclass of icmape.Problem"),
        (["train", "--config", "missing.json"], "missing.json cannot be read"),
        (["resume", "nowhere"], "nowhere holds no run"),
        (["evaluate", "nowhere.safetensors"], "no team file nowhere.safetensors"),
        (["evaluate", "x.safetensors", "--episodes", "0"], "at least one episode"),
    ],
)
def test_bad_input_is_refused_with_a_sentence_that_helps(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, printed = run(capsys, *arguments)
    assert code == 2
    assert said in " ".join(printed.split())
    assert "Traceback" not in printed
    assert not (tmp_path / "runs").exists(), "nothing may be written for a run that never starts"


def test_a_broken_team_file_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "team.safetensors"
    path.write_bytes(b"\x00" * 40)
    code, printed = run(capsys, "evaluate", str(path))
    assert code == 2
    assert str(path) in printed
    assert "Traceback" not in printed


def test_list_names_every_preset(capsys: pytest.CaptureFixture[str]) -> None:
    code, printed = run(capsys, "list")
    assert code == 0
    assert all(name in printed for name in ("bandit-quick", "bandit-a3p5", "bandit-a5p3", "td3-paper"))


def test_help_explains_every_setting(capsys: pytest.CaptureFixture[str]) -> None:
    from dataclasses import fields

    from icmape.learning.config import TD3, Config, Dual, Network
    from icmape.options import help_of

    code, printed = run(capsys, *QUICK, "--help")
    assert code == 0
    groups = {"": Config, "network.": Network, "algorithm.": TD3, "dual.": Dual}
    for prefix, owner in groups.items():
        for field in fields(owner):
            if field.name in ("network", "algorithm", "dual"):
                continue
            assert f"--{prefix}{field.name.replace('_', '-')}" in printed
            assert help_of(owner, field.name), f"{prefix}{field.name} is not explained"


def test_evaluate_writes_the_promised_keys(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from icmape.problems import Bandit
    from icmape.references import Schedule, schedule_from_loads
    from icmape.teams import ExactInference, FixedLength, Team

    team = Team(Bandit(1, 2, 4), Schedule(schedule_from_loads([(2,)]), 2), FixedLength(2), ExactInference())
    team.save(tmp_path / "team.safetensors")
    out = tmp_path / "out.json"
    code, printed = run(
        capsys, "evaluate", str(tmp_path / "team.safetensors"), "--episodes", "50", "--seed", "4", "--out", str(out)
    )
    assert code == 0, printed
    result = json.loads(out.read_text())
    keys = [
        "accuracy",
        "accuracy_low",
        "accuracy_high",
        "tau",
        "rounds",
        "readings",
        "forced",
        "ece",
        "episodes",
        "seed",
    ]
    assert set(keys) <= set(result)
    assert (result["episodes"], result["seed"], result["tau"], result["rounds"], result["readings"]) == (50, 4, 3, 2, 4)
