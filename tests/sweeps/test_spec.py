"""The file of a sweep: all combinations of its grid, and clear errors for what is wrong in it."""

from pathlib import Path

import pytest

from icmape import UserError, cli
from icmape.networks.encoders import ENCODERS
from icmape.sweeps.pull import worker_command
from icmape.sweeps.runs import build
from icmape.sweeps.spec import read_spec, runs_of
from icmape.zoo.bandit.bandit import Bandit
from tests.networks.own_encoder import MeanEncoder

SPEC = """
preset = "bandit-quick"
algorithm = "ppo"
episodes = 50
[arguments]
arms = 2
players = 2
[settings]
iterations = 7
dual = {init = 0.3}
[grid]
actor_lr = [0.001, 0.01]
arguments = {horizon = [6, 8]}
seed = [1, 2, 3]
[[also]]
actor_lr = 0.1
seed = 9
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "sweep.toml"
    path.write_text(SPEC)
    return path


def test_a_grid_is_all_combinations_and_single_runs_come_after_it(spec):
    runs = read_spec(spec)
    assert len(runs) == 2 * 2 * 3 + 1
    assert runs[0].point == {"actor_lr": 0.001, "arguments.horizon": 6, "seed": 1}
    assert runs[1].point == {"actor_lr": 0.001, "arguments.horizon": 6, "seed": 2}
    assert runs[-1].point == {"actor_lr": 0.1, "seed": 9}
    assert runs[0].name == "000_actor_lr-0.001_horizon-6_seed-1"
    assert len({run.name for run in runs}) == len(runs)


def test_a_run_has_the_settings_of_its_point_and_those_that_all_share(spec):
    problem, config = build(read_spec(spec)[4])
    assert isinstance(problem, Bandit)
    assert (problem.arms, problem.players, problem.horizon) == (2, 2, 8)
    assert (config.actor_lr, config.seeds, config.iterations, config.dual.init) == (0.001, (2,), 7, 0.3)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({}, "one of preset and problem"),
        ({"preset": "a", "problem": "b:C"}, "one of preset and problem"),
        ({"preset": "a", "seeds": [1]}, "unknown key 'seeds'"),
        ({"preset": "a", "grid": {"seed": 3}}, "seed needs a list of values; given 3"),
        ({"preset": "a", "grid": {"seed": []}}, "seed needs a list"),
        ({"preset": "a", "grid": {"seed": [1, 1]}}, "two runs are the same"),
        ({"preset": "a", "grid": {"seed": [1]}, "also": [{"seed": 1}]}, "two runs are the same"),
        ({"preset": "a", "grid": {"seed": list(range(1000)), "x": list(range(1000))}}, "1,000,000 combinations"),
        ({"preset": "a", "episodes": 0}, "episodes is a number"),
        ({"preset": 3}, "preset is a name; given 3"),
        ({"preset": "a", "episodes": True}, "episodes is a number; given True"),
        ({"preset": "a", "settings": 3}, "expected a table"),
        ({"preset": "a", "also": 3}, "also needs a list of tables"),
        ({"preset": "a", "also": {"seed": 1}}, r"each under \[\[also\]\]"),
    ],
)
def test_what_is_wrong_is_named(content, said):
    with pytest.raises(UserError, match=said):
        runs_of(content)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("grid.seed = [1979-05-27]", "seed takes numbers, text, true and false, and lists of these; given 1979-05-27"),
        ("grid.actor_lr = [0.1, nan]", "actor_lr takes numbers.*given nan"),
        ("grid.x = [[1, [nan]]]", "x takes numbers.*given nan"),
        ("settings.x = 07:32:00", "x takes numbers.*given 07:32:00"),
        ("arguments.x = [{y = 1}]", "arguments.x takes numbers.*given {'y': 1}"),
        ("[[also]]\nseed = 1979-05-27T07:32:00Z", "seed takes numbers"),
    ],
)
def test_values_of_toml_that_no_run_can_have_are_named(tmp_path, line, said):
    """A date is no value of JSON, and NaN does not equal itself, so that no plan would be the same again."""
    path = tmp_path / "sweep.toml"
    path.write_text(f'preset = "bandit-quick"\n{line}\n')
    with pytest.raises(UserError, match=said):
        read_spec(path)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("iterations = 7", "iterations = 0", ),
        ("actor_lr = [0.001, 0.01]", "actor_lrr = [0.001]"),
        ('preset = "bandit-quick"', 'preset = "bandit-quik"'),
        ("players = 2", "playerz = 2"),
        ('preset = "bandit-quick"', 'problem = "tests.coins:Coins"'),
        ("[grid]", "[grid"),
    ],
)  # fmt: skip
def test_nothing_starts_if_one_run_cannot(spec, line, said, capsys, tmp_path):
    """The second text takes the place of the first."""
    spec.write_text(SPEC.replace(line, said, 1))
    assert cli.main(["sweep", str(spec), "--out", str(tmp_path / "out")]) == 2
    assert str(spec) in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("repeated", [False, True])
def test_a_grid_of_own_encoders_needs_all_their_names(spec, capsys, tmp_path, monkeypatch, repeated):
    """The flag takes several values, or is repeated; the workers get to know them all."""
    mean, other = "tests.networks.own_encoder:MeanEncoder", "tests.networks.own_encoder:Other"
    monkeypatch.setattr("tests.networks.own_encoder.Other", MeanEncoder, raising=False)
    monkeypatch.setattr("icmape.networks.encoders.ENCODERS", dict(ENCODERS))
    commands = []
    monkeypatch.setattr("icmape.sweeps.places.start", lambda place, given, *_: commands.extend(given) or NoWorkers())
    spec.write_text(f'preset = "bandit-quick"\n[grid]\nnetwork.encoder = ["paper", "{mean}", "{other}"]\n')
    words = ["sweep", str(spec), "--out", str(tmp_path / "out"), "--workers", "1"]
    assert cli.main([*words, f"--network.encoder={mean}"]) == 2
    assert f"add --network.encoder {other}" in " ".join(capsys.readouterr().err.split())
    flag = ["--network.encoder", mean, *["--network.encoder"] * repeated, other]
    assert cli.main([*words, *flag]) == 1, "no worker did anything"
    assert commands == [worker_command(tmp_path / "out", {"--network.encoder": [mean, other]})]


class NoWorkers:
    logs = ""

    def alive(self) -> int:
        return 0

    def codes(self) -> list[int]:
        return []

    def stop(self) -> None:
        pass


def test_parameters_belong_to_their_place(spec, capsys, tmp_path):
    words = ["sweep", str(spec), "--out", str(tmp_path / "out")]
    assert cli.main([*words, "--slurm", "partition=gpu"]) == 2
    assert "--slurm belongs to --on slurm" in capsys.readouterr().err
    assert cli.main([*words, "--on", "ray", "--ray", "num_cpus"]) == 2
    assert "NAME=VALUE" in capsys.readouterr().err
