"""What methods were given, and what ours had reached with as much."""

import json
from pathlib import Path

import pytest

from paper.budgets import budget, budgets, named, reached
from paper.collected import NOT_RUN, Results
from paper.work_plan import Plan
from tests.paper import tiny
from tests.paper.tiny import SEED, TINY
from tests.plot.analyses import analysis

RIVAL = TINY.methods[1]
LEARNING = {"num_envs": 1000, "iterations": 40, "gradient_steps": 4, "batch_size": 64, "network": {"hidden_size": 32}}
PLAN = {"iterations": 10, "num_plans": 4, "num_envs": 1000}


def row(seed: int, iteration: int, accuracy: float | None = 0.5, tau: float = 9.0) -> dict:
    steps = 5000 * iteration + seed
    rest = {"environment_steps": steps, "seconds": 6.0 * iteration, "best_accuracy": accuracy, "best_tau": tau}
    return {"seed": seed, "iteration": iteration, **rest}


def found(folder: Path, iterations: int) -> Results:
    """Both methods were run for so many iterations of 40, and analysed."""
    plan = tiny.quick(folder)
    for method in TINY.methods:
        run = folder / plan.folder(TINY, method)
        run.mkdir(parents=True, exist_ok=True)
        (run / "config.json").write_text(json.dumps({"learning": {**LEARNING, "plan": PLAN}}))
        rows = [row(SEED, i, accuracy=0.9, tau=50.0 - i) for i in range(10, iterations + 1, 10)]
        (run / "metrics.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
        _analysed(plan, method)
    return Results([TINY], plan)


def _analysed(plan: Plan, method) -> None:
    from paper.findings import analysis_name, analysis_question

    asked = analysis_question(TINY, method, plan, SEED)
    plan.store.write(analysis_name(plan.folder(TINY, method), SEED), asked, analysis().to_dict())


def test_a_hand_worked_budget(tmp_path: Path) -> None:
    one = budget(found(tmp_path, 30), TINY, RIVAL)
    assert (one.worlds, one.plan) == (30_000, 40_000)
    assert one.share == 0.75
    assert one.rounds == 150_000 + SEED
    assert (one.steps, one.batch, one.width) == (120, 64, 32)
    assert one.minutes == 3.0


def test_a_run_that_did_not_end_says_so_wherever_it_is_named(tmp_path: Path) -> None:
    assert named(found(tmp_path / "cut", 30), TINY, RIVAL) == "ICMAPE-TD3 [75% of its budget]"
    assert named(found(tmp_path / "whole", 40), TINY, RIVAL) == "ICMAPE-TD3"
    assert named(Results([TINY], tiny.quick(tmp_path / "none")), TINY, RIVAL) == "ICMAPE-TD3"


def test_what_ours_had_reached_is_the_mean_of_its_best_teams_by_then() -> None:
    rows = [row(1, 10, 0.6, 20.0), row(2, 10, 0.8, 10.0), row(1, 20, 0.9, 8.0), row(2, 20, 0.7, 6.0)]
    assert reached(rows, 19_999, 1000) == pytest.approx((0.7, 15.0))
    assert reached(rows, 20_000, 1000) == pytest.approx((0.8, 7.0))
    assert reached(rows, 9_999, 1000) is None
    assert reached([row(1, 10, None)], 10_000, 1000) is None


def test_the_table_has_a_row_for_all_and_ours_beside_each_rival(tmp_path: Path) -> None:
    table = budgets(found(tmp_path, 30), TINY)
    ours, rival = table.rows
    assert ours[:3] == ["ours (random)", "0.03 M (75% of the plan)", "0.2 M"]
    assert ours[3] == "0.04 M"
    assert ours[-2] == "–"
    assert rival[-2] == "0.900 at τ 20.00"
    nothing = budgets(Results([TINY], tiny.quick(tmp_path / "none")), TINY)
    assert [one[-1] for one in nothing.rows] == [NOT_RUN] * 2
