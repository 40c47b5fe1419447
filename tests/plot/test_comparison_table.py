"""The table of a comparison says what the evaluations say; its picture can be read."""

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from icmape.evaluation.intervals import wilson_interval
from icmape.evaluation.methods import Comparison, Member, Method
from icmape.evaluation.metrics import Evaluation
from icmape.evaluation.stop_curves import CurvePoint, computed_curve
from icmape.plot import scatter
from icmape.plot.comparison_table import DASH, headings, markdown, render, rows, write_comparison
from icmape.plot.labels import overlaps

ACCURACY_TAU = {
    "td3": [(0.905, 14.1), (0.911, 13.2)],
    "ppo": [(0.912, 12.9), (0.908, 13.1)],
    "vdn": [(0.903, 15.5)],
    "iql": [(0.86, 17.0)],
    "td3 centralized": [(0.915, 10.2)],
    "dqn centralized": [(0.88, 12.0)],
    "random": [(0.52, 43.6)],
    "td3-paper": [(0.21, 30.0), (0.25, 24.0)],
    "environment reward": [(0.21, 47.0)],
    "fixed threshold": [(0.897, 11.9)],
    "no cost": [(0.95, 50.0)],
    "ppo centralized": [(0.902, 9.1)],
}


def judged(accuracy: float, tau: float) -> Evaluation:
    low, high = wilson_interval(round(10_000 * accuracy), 10_000)
    numbers = dict.fromkeys(("readings", "confidence", "log_loss"), 1.0)
    numbers |= dict.fromkeys(("exact_accuracy", "exact_ece", "exact_log_loss"))
    return Evaluation(
        accuracy=accuracy, accuracy_low=low, accuracy_high=high, tau=tau, tau_error=0.03, rounds=tau - 1,
        forced=float(tau == 50), ece=0.0123, no_data_accuracy=0.008, exact="none", episodes=10_000, seed=0, delta=0.1,
        **numbers,
    )  # fmt: skip


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    """Twelve methods, as crowded as the paper's."""
    methods = tuple(
        Method(name, name, tuple(Member(f"team-{i}", judged(*pair), 75.0, 1_234_567) for i, pair in enumerate(pairs)))
        for name, pairs in ACCURACY_TAU.items()
    )
    slow = [CurvePoint(i, i + 1.0, 0.011 * i) for i in range(1, 50)]
    fast = [CurvePoint(i, i + 1.0, float(1 / (1 + np.exp(5 - 0.6 * i)))) for i in range(1, 25)]
    return Comparison("bandit (arms 3)", 0.1, 10_000, 0, methods, {"chance": slow, "schedule": fast}, 2_000)


def test_rows_hold_the_numbers_of_the_evaluations(comparison: Comparison) -> None:
    td3, _, vdn, iql, *_ = rows(comparison)
    low, high = wilson_interval(18160, 20_000)
    assert td3[:5] == ("td3", "2", "0.908 ± 0.004", f"{low:.3f}–{high:.3f}", "13.65 ± 0.64")
    assert td3[5:7] == (DASH, DASH), "it was not played past its stop"
    assert td3[7:] == ("12.65", "0.0%", "0.0123", "1:15", "1.23 M", "")
    assert (vdn.accuracy, vdn.tau) == ("0.903", "15.50")
    assert iql.note == "MISSES 0.9"


def test_no_data_and_baselines_have_rows(comparison: Comparison) -> None:
    no_data, chance, schedule = rows(comparison)[len(ACCURACY_TAU) :]
    assert (no_data.method, no_data.accuracy, no_data.tau, no_data.ece) == ("no data", "0.008", "1.00", DASH)
    assert (chance.accuracy, chance.tau, chance.note) == ("0.539", "50.00", "baseline; at most 0.539")
    assert (schedule.accuracy, schedule.wall_time) == ("0.900", DASH)
    assert float(schedule.tau) == pytest.approx(1 + (5 + np.log(9)) / 0.6, abs=0.05)


def test_a_narrow_terminal_gets_every_number_too(comparison: Comparison) -> None:
    for width in (80, 200):
        out = io.StringIO()
        Console(file=out, width=width).print(render(comparison, width))
        for row in rows(comparison):
            assert all(cell in out.getvalue() for cell in row[1:-1])
        assert max(map(len, out.getvalue().splitlines())) <= width


def test_the_folder_holds_picture_numbers_and_page(comparison: Comparison, tmp_path: Path) -> None:
    picture, numbers, page = write_comparison(comparison, tmp_path / "new")
    assert picture.read_bytes().startswith(b"\x89PNG")
    content = json.loads(numbers.read_text())
    assert [method["name"] for method in content["methods"]] == list(ACCURACY_TAU)
    assert content["methods"][2]["teams"][0]["accuracy"] == 0.903
    lines = page.read_text().splitlines()
    assert sum(line.startswith("| ") for line in lines) == 1 + len(ACCURACY_TAU) + 3
    assert page.read_text() == markdown(comparison)


def test_labels_of_twelve_methods_neither_overlap_nor_leave_the_picture(
    comparison: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    panels, honest = [], scatter.place_labels

    def place(axis, labels, covered):
        boxes = honest(axis, labels, covered)
        panels.append(([label.text for label in labels], boxes, tuple(axis.get_window_extent().extents)))
        return boxes

    monkeypatch.setattr(scatter, "place_labels", place)
    scatter.draw_comparison(comparison, tmp_path / "x.png")
    named = [text for texts, _, _ in panels for text in texts]
    assert all(named.count(name) == 1 for name in ACCURACY_TAU), "each method is named once, in one of the panels"
    assert len(panels) == 2
    for _, boxes, frame in panels:
        shared = overlaps(boxes, boxes)
        assert np.all(shared[~np.eye(len(boxes), dtype=bool)] == 0)
        assert all(
            box.left >= frame[0] and box.right <= frame[2] and box.bottom >= frame[1] and box.top <= frame[3]
            for box in boxes
        )


def test_no_line_joins_points_between_which_a_rule_has_no_stop(
    comparison: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stops after one round of readings, or after eight or more: a dot and a line."""
    jumping = [CurvePoint(0.9, 2.0, 0.01), *(CurvePoint(0.9 + 0.01 * n, 9.9 + n, 0.87 + 0.01 * n) for n in range(4))]
    axes, honest = [], scatter.place_labels
    monkeypatch.setattr(scatter, "place_labels", lambda axis, *rest: axes.append(axis) or honest(axis, *rest))
    scatter.draw_comparison(replace(comparison, curves={"rule": jumping}), tmp_path / "x.png")
    drawn = {tuple(line.get_xdata()): line.get_marker() for line in axes[0].lines}
    assert drawn[(2.0,)] == "o"
    assert drawn[9.9, 10.9, 11.9, 12.9] == "None"
    assert "it has no stop in between" in scatter._bars_explained(replace(comparison, curves={"rule": jumping}))
    assert "it has no stop in between" not in scatter._bars_explained(comparison)


def test_bars_are_the_interval_of_one_team_and_the_spread_of_several(comparison: Comparison) -> None:
    td3, _, vdn, *_ = comparison.methods
    assert scatter.accuracy_bar(vdn) == vdn.interval
    assert scatter.accuracy_bar(td3) == pytest.approx((0.908 - 0.003 * 2**0.5, 0.908 + 0.003 * 2**0.5))


def test_one_method_needs_no_close_up(comparison: Comparison, tmp_path: Path) -> None:
    import dataclasses

    alone = dataclasses.replace(comparison, methods=comparison.methods[2:3], curves={})
    assert scatter.close_up(alone) is None
    assert scatter.draw_comparison(alone, tmp_path / "x.png").exists()


def test_the_close_up_shows_those_near_the_target_and_the_overview_all(comparison: Comparison) -> None:
    whole, near = scatter.overview(comparison), scatter.close_up(comparison)
    assert near is not None
    inside = {m.name for m in comparison.methods if near.holds(m.mean("tau"), m.mean("accuracy"))}
    far = {"random", "td3-paper", "environment reward", "no cost"}
    assert inside == set(ACCURACY_TAU) - far
    assert all(whole.holds(m.mean("tau"), m.mean("accuracy")) for m in comparison.methods)


@pytest.fixture(scope="module")
def moved(comparison: Comparison) -> Comparison:
    """Three methods with curves: τ 11 and 13 at 0.9, and at most 0.88; and a schedule that needs 15."""

    def member(at: float, best: float) -> Member:
        curve = computed_curve([(0.0, 1.0, 0.0), (1.0, at, min(0.9, best)), (2.0, at + 9, best)], 0.9)
        return Member("team", judged(best, at + 9), curve=curve)

    ends = {"ours": (11.0, 0.99), "theirs": (13.0, 0.95), "weak": (9.0, 0.88)}
    methods = tuple(Method(name, name, (member(*pair),)) for name, pair in ends.items())
    rule = computed_curve([(1.0, 5.0, 0.1), (2.0, 15.0, 0.9)], 0.9)
    return Comparison("bandit", 0.1, 100, 0, methods, {"ours": rule.points}, 100, {"ours": rule})


def test_methods_are_compared_at_the_same_accuracy(moved: Comparison) -> None:
    """Also a baseline that has the name of a method."""
    ours, theirs, weak, no_data, rule = rows(moved)
    assert headings(moved)[5:7] == ("τ at 0.9", "less ours")
    assert [row.tau for row in (ours, theirs, weak)] == ["20.00", "22.00", "18.00"], "where they stand"
    assert [row.at_target for row in (ours, theirs, weak)] == ["11.00", "13.00", "at most 0.880"]
    assert [row.gap for row in (ours, theirs, weak, no_data)] == [DASH, "+2.00 [+2.00, +2.00]", DASH, DASH]
    assert (rule.at_target, rule.gap) == ("15.00", "+4.00 [+4.00, +4.00]")
    told = {row["method"]: row for row in moved.to_dict()["equal_accuracy"]}
    assert (told["theirs"]["tau"], told["theirs"]["gap"]["interval"]) == (13.0, (2.0, 2.0))
    assert (told["weak"]["tau"], told["weak"]["best"]) == (None, 0.88)


def test_the_picture_has_a_line_through_every_method(
    moved: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []
    monkeypatch.setattr(scatter._Pen, "note_line", lambda self, taus, accuracies, weight: drawn.append(list(taus)))
    scatter.draw_comparison(moved, tmp_path / "x.png")
    for method in moved.methods:
        assert [point.tau for point in method.members[0].curve.points] in drawn
