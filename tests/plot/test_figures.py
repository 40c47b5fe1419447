"""Figures can be read: axes have names, marks are there, and the same numbers are the same file."""

from pathlib import Path

import pytest

from icmape.evaluation.coordination import Coordination, Habit
from icmape.evaluation.robustness import Sweep
from icmape.plot import chapters as c
from icmape.plot import figures
from icmape.plot.figures.performance import Line
from icmape.plot.figures.style import save_figure
from icmape.plot.items import Plot
from icmape.plot.priors import sweep_plot
from tests.plot.analyses import analysis, points, texts

METRICS = [
    {"seed": seed, "environment_steps": 100 * i, "tau": 9.0 - i, "confidence": 0.1 * i}
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
    "reliability": lambda mark: c.reliability_plot("r", "Reliability", "team", analysis(), mark),
    "survival": lambda mark: c.survival_plot("s", "Survival", {"ours": [analysis()] * 2}, (10, 10, 5), mark),
    "habits": lambda mark: c.habits_plot("h", "Habits", analysis(agents=5), mark),
    "stoppers": lambda mark: c.stoppers_plot(
        "w", "Stoppers", {"ours": {1: 0.6, 2: 0.4}, "paper": {1: 1.0}}, "few", mark
    ),
    "heat maps": lambda mark: sweep_plot("m", "Means", PAIR, {"ours": points(dict(PAIR.axes))}, 0.1, mark),
    "lines": lambda mark: sweep_plot("l", "Lines", SINGLE, {"ours": points(dict(SINGLE.axes))}, 0.1, mark),
    "dynamics": lambda mark: Plot("d", "Dynamics", figures.dynamics({"ours": METRICS}, 0.1, "Dynamics", mark)),
}


@pytest.fixture(scope="module")
def drawn() -> dict[str, Plot]:
    """All of them, marked."""
    return {name: make("quick") for name, make in MAKERS.items()}


@pytest.mark.parametrize("name", MAKERS)
def test_every_axis_has_a_name_where_it_has_numbers(drawn: dict[str, Plot], name: str) -> None:
    shown = [axis for axis in drawn[name].figure.axes if axis.get_visible()]
    assert shown
    for axis in shown:
        for which, axis_ in (("x", axis.xaxis), ("y", axis.yaxis)):
            ticks = axis_.get_ticklabels()
            side = "labelbottom" if which == "x" else "labelleft"
            numbers = [one.get_text() for one in ticks if one.get_text()]
            if not axis_.get_tick_params().get(side, True) or not axis_.get_ticklocs().size:
                continue
            if numbers and not any(text[:1].isdigit() for text in numbers):
                continue  # methods, by their names
            assert axis_.get_label_text(), f"{name}: {which} of {axis.get_title()!r}"


@pytest.mark.parametrize("name", MAKERS)
def test_a_mark_is_in_the_title_and_across_the_figure_and_only_if_asked_for(drawn: dict[str, Plot], name: str) -> None:
    marked = texts(drawn[name])
    assert "quick" in marked
    assert any(text.endswith("[quick]") for text in marked)
    assert not any("quick" in text for text in texts(MAKERS[name]("")))


@pytest.mark.parametrize("name", ["performance", "reliability", "survival", "habits", "heat maps", "lines"])
def test_what_was_counted_stands_below(drawn: dict[str, Plot], name: str) -> None:
    assert any("fresh worlds" in text for text in texts(drawn[name]))


def test_the_same_numbers_are_the_same_file(tmp_path: Path) -> None:
    for name in ("survival", "stoppers"):
        first, second = (save_figure(MAKERS[name]("").figure, tmp_path / folder / "x") for folder in ("a", "b"))
        assert [p.suffix for p in first] == [".png", ".svg"]
        for one, two in zip(first, second, strict=True):
            assert one.read_bytes() == two.read_bytes(), one.name


def test_actions_without_a_colour_of_their_own_are_named_even_if_the_first_agent_takes_none() -> None:
    """Nine actions of the second agent and one of the first: eight have colours."""
    habits = Habit(0, 0, ((0, 90),), 90), Habit(0, 1, tuple((a, 10) for a in range(9)), 90)
    found = Coordination(99, (), habits, (), 0, 90)
    plot = Plot("h", "H", figures.habits(found, str, "H", ""))
    (legend,) = plot.figure.legends
    assert [text.get_text() for text in legend.get_texts()][-1] == "others"


def test_a_team_that_never_stops_by_itself_can_be_drawn() -> None:
    """Nobody stops: no bar, and no warning."""
    c.stoppers_plot("w", "W", {"ours": {}}, "").figure.draw_without_rendering()


def test_seeds_are_counted_in_the_legend_and_thin_lines_are_each_of_them(drawn: dict[str, Plot]) -> None:
    assert "ours (2 seeds)" in texts(drawn["dynamics"])
    assert len(drawn["dynamics"].figure.axes[0].lines) == 3
    assert "ours (2)" in texts(drawn["survival"])


def test_a_heat_map_has_the_first_argument_running_down(drawn: dict[str, Plot]) -> None:
    axis = drawn["heat maps"].figure.axes[0]
    assert axis.get_ylabel() == "α of the means' Beta prior"
    assert [text.get_text() for text in axis.get_yticklabels()] == ["0.5", "1", "3"]
    assert [text.get_text() for text in axis.texts][:2] == ["0.80", "0.81"]


def test_few_values_over_orders_of_magnitude_are_drawn_in_logs(drawn: dict[str, Plot]) -> None:
    assert {axis.get_xscale() for axis in drawn["lines"].figure.axes} == {"log"}
