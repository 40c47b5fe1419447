"""Charts of teams show what was measured, in the words of the problem, and what was counted stands below."""

import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

from icmape.evaluation.coordination import Coordination, Habit
from icmape.evaluation.robustness import Sweep
from icmape.evaluation.stop_curves import CurvePoint, StopCurve
from icmape.plot import chapters as c
from icmape.plot.items import Plot
from icmape.plot.priors import sweep_plot
from icmape.plot.sweep_charts import equal_accuracy
from icmape.plot.team_charts import Line, habits
from tests.plot.analyses import analysis, points, texts
from tests.plot.charts.drawn import corners, every, parsed, read_across, read_up

METRICS = [
    {"seed": seed, "environment_steps": 100_000 * i, "tau": 9.0 - i - seed, "confidence": 0.1 * i}
    for seed in (1, 2)
    for i in range(1, 7)
]
PAIR = Sweep(
    "means", {"mean_alpha": (0.5, 1.0, 3.0), "mean_beta": (0.5, 3.0)}, {"mean_alpha": "α of the means' Beta prior"}
)
SINGLE = Sweep("capacities", {"capacity_concentration": (0.1, 1.0, 10.0)}, logarithmic=True)


def performance(mark: str = "") -> Plot:
    one, two = [analysis(0.90, 13.0), analysis(0.92, 14.0)], [analysis(0.85, 20.0)]
    kinds = {"ours": {"training prior": one, "2019": two}, "theirs": {"training prior": two}}
    return c.performance_plot("p", "Performance", kinds, {"paper": Line(None, 13.5), "central": Line(0.9, 8.0)}, mark)


MAKERS = {
    "performance": performance,
    "honesty": lambda mark: c.honesty_plot("r", "Honesty", "team", analysis(), mark),
    "survival": lambda mark: c.survival_plot("s", "Survival", {"ours": [analysis()] * 2}, (10, 10, 5), mark),
    "habits": lambda mark: c.habits_plot("h", "Habits", analysis(agents=5), mark),
    "stoppers": lambda mark: c.stoppers_plot(
        "w", "Stoppers", {"ours": {1: 0.6, 2: 0.4}, "paper": {1: 1.0}}, "few", mark
    ),
    "grids": lambda mark: sweep_plot("m", "Means", PAIR, {"ours": points(dict(PAIR.axes))}, 0.1, mark),
    "lines": lambda mark: sweep_plot("l", "Lines", SINGLE, {"ours": points(dict(SINGLE.axes))}, 0.1, mark),
    "training": lambda mark: c.training_plot("d", "Training", {"ours": METRICS}, 0.1, mark),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_mark_is_in_the_title_and_on_the_chart_and_only_if_asked_for(name: str) -> None:
    marked = texts(MAKERS[name]("quick"))
    assert "quick" in marked
    assert any(text.endswith("[quick]") for text in marked)
    assert not any("quick" in text for text in texts(MAKERS[name]("")))


@pytest.mark.parametrize("name", ["performance", "honesty", "survival", "habits", "grids", "lines"])
def test_what_was_counted_stands_below_and_no_argument_is_named(name: str) -> None:
    plot = MAKERS[name]("")
    said = " ".join(texts(plot))
    assert "fresh worlds" in said
    assert "fresh worlds" in plot.caption
    assert "_" not in said


def test_means_of_seeds_have_their_spread_and_references_are_rows_of_their_own() -> None:
    """0.90 and 0.92: mean 0.91, standard deviation 0.014. Accuracy of the paper's method is not given."""
    drawing = parsed(performance().chart)
    said = texts(performance())
    assert {"0.910", "13.50", "0.850", "20.00", "8.00", "0.900"} <= set(said)
    assert [word for word in said if word in ("ours", "theirs", "paper", "central")] == [
        *("ours", "theirs", "paper", "central") * 2  # above the rows of both panels
    ]
    assert len(every(drawing, "circle", "seed")) == 4, "two seeds in each panel"
    panel = parsed(replace(performance().chart, panels=performance().chart.panels[:1]))
    whisker = every(panel, "line", "whisker")[0]
    read = read_across(panel)
    assert [read(float(whisker.get(end, ""))) for end in ("x1", "x2")] == pytest.approx([0.896, 0.924], abs=0.001)
    own = {dot.get("fill") or dot.get("stroke") for kind in ("dot", "hollow") for dot in every(drawing, "circle", kind)}
    assert len(own - {"var(--soft)"}) == 4


def test_a_hollow_dot_misses_the_target_and_another_shape_is_another_kind_of_worlds() -> None:
    """Both teams of 0.85 miss 0.9: ours in 2019, and theirs."""
    chart = performance().chart
    assert [dot.hollow for row in chart.panels[0].rows for dot in row] == [False, True, True, False]
    assert [dot.shape for row in chart.panels[0].rows for dot in row] == ["dot", "diamond", "dot", "dot"]
    assert [(key.label, key.shape) for key in chart.keys] == [
        *(("training prior", "dot"), ("2019", "diamond"), ("target 0.9", "target")),
        ("accuracy below 0.9", "hollow"),
    ]
    assert "–" in texts(performance()), "the paper's accuracy is not known"


def test_survival_falls_in_steps() -> None:
    """Of four episodes two end after one round of readings, one after two, one after three."""
    drawing = parsed(c.survival_plot("s", "Survival", {"ours": [analysis()]}).chart)
    across, up = read_across(drawing), read_up(drawing)
    (line,) = every(drawing, "path", "curve")
    found = [(round(across(x), 1), round(up(y), 2)) for x, y in corners(line)]
    assert found == [(0, 1), (1, 1), (1, 0.5), (2, 0.5), (2, 0.25), (3, 0.25), (3, 0)]


def test_training_curves_are_the_values_of_the_metrics_from_the_first_on() -> None:
    drawing = parsed(MAKERS["training"]("").chart, 340)
    lines = every(drawing, "path", "curve")[1:]  # behind the one in the legend, if there is one
    lines = [line for line in every(drawing, "path") if line.get("d", "").count("L") == 5]
    assert len(lines) == 4, "two seeds in each panel"
    heights = np.array([[y for _, y in corners(line)] for line in lines[:2]])
    assert np.ptp(np.diff(heights[0])) < 0.05, "τ falls by 1 from each row to the next"
    assert heights[1] - heights[0] == pytest.approx(np.diff(heights[0])[0], abs=0.05), "the second seed is 1 below"
    assert "ours (2 seeds)" in texts(MAKERS["training"](""))


def test_actions_have_their_names_and_agents_their_numbers() -> None:
    """Nine actions of the second agent and one of the first; an action without a name is counted from 1."""
    rows = Habit(0, 0, ((0, 90),), 90), Habit(0, 1, ((3, 60), (1, 30)), 90)
    chart = habits(Coordination(3, (), rows, (), 0, 180), {1: "up"}, "H", "")
    (moment,) = chart.moments
    assert [(act.action, act.share, act.others) for act in moment.acts] == [
        ("action 1", 1.0, ""),
        ("STOP", pytest.approx(2 / 3), "up 33.3%"),
    ]
    assert moment.active == 0.5
    assert moment.number == 1, "rounds count from 1"


def test_a_team_that_never_stops_by_itself_can_be_drawn() -> None:
    """Nobody stops: bars of length 0."""
    ET.fromstring(c.stoppers_plot("w", "W", {"ours": {}}, "").chart.file())


def test_a_grid_has_the_first_argument_running_down() -> None:
    chart = MAKERS["grids"]("").chart
    said = texts(MAKERS["grids"](""))
    assert "rows: α of the means' Beta prior" in said
    assert "columns: mean beta" in said, "an argument without a label is still words"
    assert [row[0] for row in chart.grids[0].values] == pytest.approx([0.80, 0.82, 0.84])
    assert chart.grids[0].target == 0.9


def test_few_values_over_orders_of_magnitude_are_drawn_in_logs() -> None:
    chart = MAKERS["lines"]("").chart
    drawing = parsed(chart, 340)
    dots = [float(dot.get("cx", "")) for dot in every(drawing, "circle", "dot")][:3]
    assert dots[1] - dots[0] == pytest.approx(dots[2] - dots[1], abs=0.1)


def test_teams_stand_on_their_curves_and_the_crossing_is_shown_larger() -> None:
    taus = [2.0, 6.0, 10.0]
    curve = StopCurve(
        tuple(CurvePoint(0.0, tau, 0.1 * tau) for tau in taus),
        CurvePoint(0.0, 9.5, 0.95),
        0.9,
        9.0,
        (9.0,) * 3,
        "w",
        9,
        0,
    )
    chart = equal_accuracy({"ours": [curve], "theirs": [curve]}, 0.9, "E", "below")
    whole, close = chart.panels
    assert whole.series[0].points == [(2.0, 0.2), (6.0, pytest.approx(0.6)), (10.0, 1.0)]
    assert whole.series[1].points == [(9.5, 0.95)]
    assert (close.y.low, close.y.high) == pytest.approx((0.78, 0.96))
    assert close.x.low is not None
    assert close.x.high is not None
    assert close.x.low < 9.0 < close.x.high


def test_levels_between_which_accuracy_jumps_are_not_joined() -> None:
    """A rule without a stop between 1 and 9.9 rounds has no line there."""
    points = [CurvePoint(0.9, 1.0, 0.01), *(CurvePoint(0.9 + 0.01 * n, 9.9 + n, 0.87 + 0.01 * n) for n in range(4))]
    rule = StopCurve(tuple(points), None, 0.9, 12.9, (12.9,) * 3, "w", 9, 0)
    whole, _ = equal_accuracy({"rule": [rule]}, 0.9, "E", "below").panels
    (series,) = whole.series
    assert series.points == [(point.tau, point.accuracy) for point in points[1:]]
    assert series.named
