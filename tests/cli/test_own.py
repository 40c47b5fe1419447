"""What a user brings: a teacher and a baseline for a problem of their own, made of public parts only."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import icmape
from icmape import UserError, cli
from icmape.baselines.by_name import find_teacher
from icmape.learning.config import Config, with_algorithm
from icmape.settings import override
from tests.coins import Bits

PROBLEM = "tests.coins:Bits"
SETTINGS = {  # of all trainings here, so that they are one program
    "iterations": 4,
    "num_envs": 32,
    "batch_size": 8,
    "buffer_size": 64,
    "learning_starts": 8,
    "validation_episodes": 32,
    "settling_episodes": 4096,
    "validation_interval": 60,
    "network.hidden_size": 16,
    "iterations_per_call": 2,
    "plan.iterations": 0,
}


class Alternate(icmape.LocalPolicy):
    """Agent i reads bit i, then the other one, and so on; it stops after four rounds."""

    problem: icmape.Problem

    @property
    def agents(self):
        return self.problem.agents

    def start_agent(self):
        return ()

    def decide_agent(self, state, agent, view, number, *, key):
        scores = jax.nn.one_hot((number + agent) % 2, self.problem.actions + 1)
        return state, scores.at[-1].set(jnp.where(number >= 4, 2.0, -1.0))


class Restless(Alternate):
    """The same, and it never stops."""

    stops = False


class Lopsided(Alternate):
    """It forgets the score of STOP."""

    def decide_agent(self, state, agent, view, number, *, key):
        return state, jnp.zeros(self.problem.actions)


def by_clock(problem, delta):
    """A baseline: alternate, and stop after three rounds."""
    return icmape.Team(problem, Alternate(problem), icmape.FixedLength(3), icmape.ExactInference(), delta)


def by_itself(problem, delta):
    """The same with the stop of the policy."""
    return icmape.Team(problem, Alternate(problem), icmape.LearnedStop(), icmape.ExactInference(), delta)


def when_sure(problem, delta):
    return icmape.Team(problem, Alternate(problem), icmape.Threshold(1 - delta), icmape.ExactInference(), delta)


def not_a_team(problem, delta):
    return Alternate(problem)


def broken(problem, delta=0.1):
    raise ZeroDivisionError("no")


# -- baselines


def test_a_baseline_of_ones_own_is_evaluated():
    result = icmape.evaluate(by_clock(Bits(), 0.1), episodes=50)
    assert result.tau == 4
    assert icmape.evaluate(by_itself(Bits(), 0.1), episodes=50).tau == 5


def test_a_policy_without_a_score_for_stop_is_told_so_before_it_plays():
    team = icmape.Team(Bits(), Lopsided(Bits()), icmape.LearnedStop(), icmape.ExactInference())
    with pytest.raises(UserError, match=r"the policy Lopsided gives scores of shape \(2, 2\) .*that of STOP last"):
        icmape.evaluate(team, episodes=50)


def test_baselines_of_ones_own_stand_beside_others(tmp_path):
    baselines = ["tests.cli.test_own:when_sure", "tests.cli.test_own:by_clock", by_itself(Bits(), 0.1), "random"]
    found = icmape.compare(
        {"clock": by_clock(Bits(), 0.1)}, baselines=baselines, episodes=50, baseline_episodes=100, out=tmp_path
    )
    assert [method.name for method in found.methods] == ["clock"]
    sure, clock, itself, _ = found.curves.values()
    assert [point.tau for point in clock] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert len(itself) == 1
    assert itself[0].tau == 5
    assert sure[0].tau < sure[-1].tau
    assert (tmp_path / "comparison.md").read_text().count("baseline |") == 4
    assert "tests.cli.test_own" not in (tmp_path / "baselines.json").read_text(), "code that may change is not kept"


def test_commands_take_a_baseline_by_its_path(tmp_path, capsys):
    words = ["--problem", PROBLEM, "--baseline", "tests.cli.test_own:by_clock", "--episodes", "50", "--delta", "0.2"]
    assert cli.main(["evaluate", *words, "--out", str(tmp_path / "clock.json")]) == 0
    assert json.loads((tmp_path / "clock.json").read_text())["delta"] == 0.2
    compared = ["compare", str(tmp_path / "clock.json"), "--problem", PROBLEM, "--baseline-episodes", "50"]
    compared += ["--baselines", "tests.cli.test_own:by_itself", "--out", str(tmp_path / "out")]
    assert cli.main(compared) == 0
    assert "tests.cli.test_own:by_itself" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tests.cli.test_own:nothing"], "tests.cli.test_own has no class nothing"),
        (["tests.nowhere:by_clock"], "cannot import tests.nowhere"),
        (["tests.cli.test_own:not_a_team"], "gave Alternate; called with (problem, delta) it must give an icmape.Team"),
        (["tests.cli.test_own:broken"], "calling it with (Bits, float) failed: ZeroDivisionError: no"),
        (["tests.cli.test_own:by_clock", "--rounds", "3"], "brings its own stop: leave out rounds and level"),
    ],
)
def test_a_baseline_that_is_none_is_told_why(words, said, capsys):
    assert cli.main(["evaluate", "--problem", PROBLEM, "--baseline", *words]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


# -- teachers


def test_a_guide_of_ones_own_is_followed():
    """After a few iterations each agent reads both bits in the teacher's order."""
    changes = {**SETTINGS, "iterations": 60, "actor_lr": 1e-2, "teacher.until": 1.0}
    team = icmape.train(Bits(), teacher=Alternate(Bits()), progress=False, **changes)
    for number in (0, 1):
        one, expected = team.agent(number), [number, 1 - number]
        for action in expected:
            assert one.act() == action
            one.see(action, 1)


def test_a_guide_that_never_stops_leaves_the_stop_to_the_team():
    config = override(with_algorithm(Config(), "guided"), {"teacher.policy": "own"})
    seen = icmape.Round(jnp.int32(5), icmape.Features(jnp.zeros((2, 4))), jnp.zeros(2, jnp.int32), jnp.zeros(2), ())
    for teacher, stops in ((Alternate(Bits()), True), (Restless(Bits()), False)):
        followed = find_teacher(Bits(), config, teacher)
        _, scores = followed.decide(followed.start(), seen, key=jax.random.key(0))
        assert bool(jnp.all(jnp.argmax(scores, axis=1) == 2)) == stops


def test_a_guide_is_found_by_its_path(tmp_path, capsys):
    words = [f"--{name}={value}" for name, value in SETTINGS.items()]
    words += ["--teacher.policy", "tests.cli.test_own:Alternate", "--algorithm", "guided", "--quiet"]
    assert cli.main(["train", "--problem", PROBLEM, *words, "--out", str(tmp_path / "run")]) == 0
    kept = json.loads((tmp_path / "run/config.json").read_text())
    assert kept["learning"]["teacher"]["policy"] == "tests.cli.test_own:Alternate"
    resume = ["resume", str(tmp_path / "run")]
    assert cli.main(resume) == 2
    assert f"add --problem {PROBLEM}" in " ".join(capsys.readouterr().err.split())
    named = ["--problem", PROBLEM, "--teacher.policy", "tests.cli.test_own:Alternate"]
    assert cli.main([*resume, *named]) == 0
    told = capsys.readouterr().out
    assert "is already finished" in told
    assert f"`icmape evaluate {tmp_path / 'run'} --problem {PROBLEM}`" in told


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("tests.cli.test_own:nothing", "tests.cli.test_own has no class nothing"),
        ("tests.cli.test_own:broken", "calling it with (Bits) failed: ZeroDivisionError"),
        ("tests.coins:Bits", "is Bits; expected an icmape.LocalPolicy or a Team"),
        ("tests.cli.test_own:Lopsided", "scores of shape (2, 2) and type float32; expected are floats of shape (2, 3)"),
    ],
)
def test_a_guide_that_is_none_is_told_why(path, said, tmp_path, capsys):
    words = ["--teacher.policy", path, "--algorithm", "guided", "--quiet", "--out", str(tmp_path / "run")]
    assert cli.main(["train", "--problem", PROBLEM, *words]) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "run").exists()


def test_a_guide_is_named_in_python_as_on_the_command_line():
    with pytest.raises(
        UserError, match=r"teacher\.policy tests\.cli\.test_own:nothing: tests\.cli\.test_own has no class nothing"
    ):
        icmape.train(Bits(), teacher="tests.cli.test_own:nothing", progress=False)


def test_a_guide_for_another_team_is_refused():
    with pytest.raises(UserError, match="is for 3 agents; Bits has 2"):
        icmape.train(Bits(), teacher=Alternate(Bits(agents=3)), progress=False)


def test_public_parts_are_public():
    for name in ("LocalPolicy", "Round", "Team", "FixedLength", "Threshold", "LearnedStop", "ExactInference"):
        assert name in icmape.__all__
        assert getattr(icmape, name).__doc__


def test_the_example_of_the_page_plays():
    page = (Path(__file__).parents[2] / "docs/how-to/teacher-and-baseline.md").read_text()
    blocks = [part.split("```")[0] for part in page.split("```python\n")[1:]]
    (code,) = [block for block in blocks if "class NearFirst" in block]
    near: dict = {"__name__": "near"}
    exec(code, near)
    result = icmape.evaluate(near["near_first_when_sure"](near["Dials"](), 0.1), episodes=100)
    assert result.accuracy > 0.8
