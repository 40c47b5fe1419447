"""A comparison plays every team once, on the same worlds, and pools what belongs together."""

import dataclasses
import json
import math
import statistics
from collections.abc import Sequence
from pathlib import Path

import jax.numpy as jnp
import pytest

from icmape import UserError
from icmape.evaluation import baseline_curves
from icmape.evaluation.comparison import compare, plan
from icmape.evaluation.intervals import wilson_interval
from icmape.evaluation.methods import Member, Method
from icmape.evaluation.metrics import Evaluation, evaluate
from icmape.evaluation.stop_curves import CurvePoint, StopCurve, computed_curve, tau_at
from icmape.learning.config import Config
from icmape.learning.run_folder import write_config
from icmape.play.inference import ExactInference
from icmape.play.open_loop import Schedule
from icmape.play.stop import FixedLength
from icmape.play.team import Team
from icmape.problem import Problem
from icmape.zoo.bandit.bandit import Bandit

EPISODES = 50
PROBLEM = Bandit(1, 2, 4)


def team(rounds: int, delta: float = 0.1, problem: Problem = PROBLEM) -> Team:
    """Both players on the only arm for some rounds."""
    card = json.dumps({"seconds": 7.5, "environment_steps": 900, "iterations": 10})
    policy = Schedule(jnp.zeros((1, problem.agents), jnp.int32), problem.actions + 1)
    return Team(problem, policy, FixedLength(rounds), ExactInference(), delta, card)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a run with two seeds."""
    folder = tmp_path / "mine"
    write_config(folder, PROBLEM, Config())
    rows = [
        {"seed": seed, "iteration": at, "seconds": 10.0 * at, "environment_steps": 100 * at * seed}
        for at in (1, 2)
        for seed in (1, 2)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for seed, rounds in ((1, 1), (2, 3)):
        team(rounds).save(folder / f"team-{seed}.safetensors")
    return folder


def compared(*given: Path | str, **options) -> tuple[Method, ...]:
    return compare(plan([str(one) for one in given], EPISODES, 3, baselines=["none"], **options)).methods


def forbid(monkeypatch: pytest.MonkeyPatch) -> None:
    def evaluate(self: Team, **options) -> Evaluation:
        raise AssertionError("played again")

    monkeypatch.setattr(Team, "evaluate", evaluate)


def test_a_run_is_one_method_with_the_mean_of_its_evaluations(run: Path) -> None:
    (method,) = compared(run)
    alone = [evaluate(team(rounds), episodes=EPISODES, seed=3) for rounds in (1, 3)]
    assert [member.evaluation for member in method.members] == alone
    assert method.name == "mine"
    assert method.mean("tau") == (2 + 4) / 2
    assert method.spread("tau") == pytest.approx(math.sqrt(2))
    assert method.mean("accuracy") == pytest.approx(statistics.fmean(e.accuracy for e in alone))
    assert method.mean("forced") == 0.5, "the second one stops when it must"


def test_the_interval_is_on_all_answers_together(run: Path) -> None:
    (method,) = compared(run)
    right = sum(round(EPISODES * member.evaluation.accuracy) for member in method.members)
    assert method.interval == wilson_interval(right, 2 * EPISODES)
    n, p, z = 2 * EPISODES, right / (2 * EPISODES), 1.959964
    half = z * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    assert method.interval[1] - method.interval[0] == pytest.approx(2 * half, abs=1e-6)


def test_wall_time_is_shared_by_seeds_and_steps_are_those_of_one(run: Path) -> None:
    """By the last rows of the run's metrics: 20 s for both seeds, 200 and 400 steps."""
    (method,) = compared(run)
    assert method.seconds == 20.0
    assert method.environment_steps == 300


def test_a_team_file_knows_its_cost_by_its_card(tmp_path: Path) -> None:
    team(1).save(tmp_path / "alone.safetensors")
    (method,) = compared(tmp_path / "alone.safetensors")
    assert (method.seconds, method.environment_steps) == (7.5, 900)
    assert method.spread("accuracy") is None


def stored(methods: Sequence[Method]) -> list[tuple[Evaluation, str]]:
    """What is kept of each team: a resample that misses the target is NaN, which equals nothing."""
    return [(m.evaluation, json.dumps(m.curve and m.curve.to_dict())) for each in methods for m in each.members]


def test_what_was_played_is_not_played_again(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = compared(run)
    forbid(monkeypatch)
    assert stored(compared(run)) == stored(before)
    (again,) = compared(run / "team-1.safetensors")
    assert stored([again]) == stored(before)[:1]


def test_a_team_file_that_changed_is_played_again_and_no_other(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compared(run)
    team(2).save(run / "team-2.safetensors")
    played, honest = [], Team.evaluate
    monkeypatch.setattr(Team, "evaluate", lambda self, **options: (played.append(self), honest(self, **options))[1])
    (method,) = compared(run)
    assert len(played) == 1
    assert [member.evaluation.tau for member in method.members] == [2, 3]


def test_other_worlds_or_a_broken_cache_are_played(run: Path) -> None:
    compared(run)
    (cache,) = run.glob("evaluation-*.json")
    assert cache.name == f"evaluation-{EPISODES}-3.json"
    cache.write_text("{}]")
    compared(run)
    compare(plan([str(run)], EPISODES, 4, baselines=["none"]))
    assert len(list(run.glob("evaluation-*.json"))) == 2


def test_an_evaluation_file_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from icmape import cli

    team(1).save(tmp_path / "t.safetensors")
    words = [
        "evaluate",
        str(tmp_path / "t.safetensors"),
        "--episodes",
        str(EPISODES),
        "--out",
        str(tmp_path / "a.json"),
    ]
    assert cli.main(words) == 0
    forbid(monkeypatch)
    (method,) = compared(tmp_path / "a.json")
    assert (method.members[0].evaluation.episodes, method.members[0].evaluation.seed) == (EPISODES, 0)
    assert method.remark == "on other worlds: 50, seed 0"
    assert (method.name, method.seconds) == ("a", 7.5)


def test_different_problems_and_targets_are_refused_before_anything_is_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid(monkeypatch)
    team(1).save(tmp_path / "a.safetensors")
    team(1, delta=0.2).save(tmp_path / "b.safetensors")
    team(1, problem=Bandit(1, 2, 5)).save(tmp_path / "c.safetensors")
    with pytest.raises(UserError, match=r"a\.safetensors was made for δ = 0\.1 and .*b\.safetensors for δ = 0\.2"):
        compared(tmp_path / "a.safetensors", tmp_path / "b.safetensors")
    with pytest.raises(UserError, match=r"horizon 4\) and .*c\.safetensors for .*horizon 5\).* cannot be compared"):
        compared(tmp_path / "a.safetensors", tmp_path / "c.safetensors")


def test_a_centralized_team_answers_the_same_question(tmp_path: Path) -> None:
    from icmape.problem import Centralized

    team(1).save(tmp_path / "apart.safetensors")
    team(1, problem=Centralized(PROBLEM)).save(tmp_path / "together.safetensors")
    apart, together = compared(tmp_path / "apart.safetensors", tmp_path / "together.safetensors")
    assert together.remark == "centralized"
    assert together.mean("accuracy") == apart.mean("accuracy"), "the same actions in the same worlds"


@pytest.mark.parametrize(
    ("given", "options", "said"),
    [
        ([], {}, "give one or more"),
        (["nowhere"], {}, "nowhere is nothing that can be compared"),
        (["bandit-quick"], {"names": ["a", "b"]}, "a name for each of the 1 methods; given 2"),
        (["bandit-quick", "bandit-quick"], {}, "'bandit-quick' would name several methods"),
        (["bandit-quick"], {"baselines": ["openloop"]}, "unknown baseline 'openloop'.*open-loop"),
        (["bandit-quick"], {"episodes": 0}, "--episodes must be at least 1; given 0"),
        (["bandit-quick"], {"seed": -1}, "seed must lie in"),
        (["missing.json"], {}, "missing.json cannot be read"),
    ],
)
def test_what_cannot_be_compared_is_named(given: list[str], options: dict, said: str) -> None:
    with pytest.raises(UserError, match=said):
        plan(given, **options)


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"accuracy": 1}')
    with pytest.raises(UserError, match=r"x\.json is not an evaluation: expected what `icmape evaluate"):
        plan([str(tmp_path / "x.json")])


def test_baselines_that_do_not_fit_are_left_out_unless_they_were_asked_for(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def curve(name: str, problem: Problem, *, delta: float, episodes: int, seed: int) -> StopCurve:
        calls.append((name, type(problem).__name__, episodes, seed))
        if name == "fussy":
            raise UserError("the baseline fussy is for other problems")
        return computed_curve([(1.0, 2.0, 0.5), (2.0, 4.0, 1.0)], 0.9)

    monkeypatch.setattr(baseline_curves, "baseline_names", lambda: ["calm", "fussy"])
    monkeypatch.setattr(baseline_curves, "baseline_stop_curve", curve)
    planned = plan([str(run)], EPISODES, 3, baseline_episodes=11)
    found = compare(planned, folder=tmp_path)
    assert list(found.curves) == ["calm"]
    assert calls == [("calm", "Bandit", 11, 3), ("fussy", "Bandit", 11, 3)]
    assert found.to_dict()["baselines"]["calm"]["tau_at_target"] == pytest.approx(3.6)
    assert compare(planned, folder=tmp_path).curves == found.curves
    assert len(calls) == 3, "the curve of calm was kept"
    with pytest.raises(UserError, match="fussy is for other problems"):
        compare(plan([str(run)], EPISODES, 3, baselines=["fussy"]))


def test_where_a_curve_reaches_an_accuracy() -> None:
    """From (4, 0.8) to (6, 0.96) in a straight line: 0.9 at 5.25."""
    points = [CurvePoint(2, 6.0, 0.96), CurvePoint(1, 4.0, 0.8)]
    assert tau_at(points, 0.9) == pytest.approx(5.25)
    assert tau_at(points, 0.8) == 4.0
    assert tau_at(points, 0.97) is None


def judged(**changes) -> Method:
    base = evaluate(team(1), episodes=EPISODES, seed=3)
    return Method("m", "m", (Member("t", dataclasses.replace(base, episodes=1000, no_data_accuracy=0.5, **changes)),))


@pytest.mark.parametrize(
    ("accuracy", "verdicts", "fails"),
    [
        (0.95, [], False),
        (0.89, ["below 0.9, within its interval"], False),
        (0.80, ["MISSES 0.9"], True),
        (0.52, ["DOES NOT BEAT NO DATA", "MISSES 0.9"], True),
    ],
)
def test_a_method_that_fails_is_said_to_fail(accuracy: float, verdicts: list[str], fails: bool) -> None:
    method = judged(accuracy=accuracy)
    assert (method.verdicts, method.fails) == (verdicts, fails)


def test_a_seed_that_misses_is_not_hidden_by_the_others() -> None:
    method = Method("m", "m", judged(accuracy=0.95).members + judged(accuracy=0.88).members)
    assert method.verdicts == ["1 of 2 seeds reach 0.9"]


def test_a_broken_team_file_is_refused_before_another_one_is_played(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid(monkeypatch)
    whole = (run / "team-1.safetensors").read_bytes()
    (tmp_path / "cut.safetensors").write_bytes(whole[:-1])
    with pytest.raises(UserError, match=r"cut\.safetensors is not a whole team file"):
        compared(run, tmp_path / "cut.safetensors")
