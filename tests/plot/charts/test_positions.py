"""Whoever reads a chart with its axes gets the numbers that were drawn."""

import numpy as np
import pytest

from icmape.plot.charts import (
    Act,
    ApartDots,
    Axis,
    Bars,
    Curves,
    Dot,
    DotPanel,
    Dots,
    Grid,
    Heat,
    Moment,
    Panel,
    Series,
    Timeline,
)
from icmape.plot.charts.look import STYLE
from icmape.plot.charts.svg import SMALL, width_of
from tests.plot.charts.drawn import corners, every, parsed, read_across, read_up, texts

WIDTHS = [340.0, 440.0, 720.0]
OURS, THEIRS = "var(--method-ours)", "var(--method-paper)"


def curves(points: list[tuple[float, float]], **changes) -> Curves:
    series = Series("ours", points, OURS, **changes)
    return Curves("T", panels=[Panel(Axis("rounds"), Axis("accuracy", 0.0, 1.0), [series], target=0.9)])


@pytest.mark.parametrize("width", WIDTHS)
def test_dots_and_their_intervals_stand_at_their_values(width: float) -> None:
    ours, theirs = Dot("ours", 10.5, OURS, 9.0, 12.0, "10.5"), Dot("paper", 13.57, THEIRS)
    chart = Dots("T", names=["A", "B"], panels=[DotPanel(Axis("τ (rounds)", 0.0), [[ours, theirs], [theirs]], 13.0)])
    drawing = parsed(chart, width)
    read = read_across(drawing)
    dots = every(drawing, "circle", "dot")
    assert [read(float(dot.get("cx", ""))) for dot in dots] == pytest.approx([10.5, 13.57, 13.57], abs=0.03)
    assert len({dot.get("cy") for dot in dots}) == 3, "no dot hides another"
    (whisker,) = every(drawing, "line", "whisker")
    assert [read(float(whisker.get(end, ""))) for end in ("x1", "x2")] == pytest.approx([9.0, 12.0], abs=0.03)
    (target,) = every(drawing, "line", "target")
    assert read(float(target.get("x1", ""))) == pytest.approx(13.0, abs=0.03)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_line_goes_through_what_was_measured_from_the_first_point_on(width: float) -> None:
    points = [(100.0, 0.2), (200.0, 0.9), (300.0, 0.4), (400.0, 0.95)]
    drawing = parsed(curves(points), width)
    across, up = read_across(drawing), read_up(drawing)
    (line,) = every(drawing, "path", "curve")
    assert np.array([(across(x), up(y)) for x, y in corners(line)]) == pytest.approx(np.array(points), abs=2.0)
    assert [up(y) for _, y in corners(line)] == pytest.approx([y for _, y in points], abs=0.005)


def test_a_line_at_the_end_of_an_axis_has_its_whole_width() -> None:
    drawing = parsed(curves([(0.0, 1.0), (3.0, 1.0)]))
    (line,) = every(drawing, "path", "curve")
    clips = [
        [float(one) for one in box.get("viewBox", "").split()] for box in drawing.iter("svg") if box.get("viewBox")
    ]
    _, top, _, _ = next(box for box in clips if box)
    assert {y - top for _, y in corners(line)} == {1.5}, "more than half of its two pixels"


def test_a_step_holds_its_value_until_the_next_point() -> None:
    drawing = parsed(curves([(0.0, 1.0), (1.0, 1.0), (2.0, 0.5), (3.0, 0.0)], shape="step"))
    across, up = read_across(drawing), read_up(drawing)
    (line,) = every(drawing, "path", "curve")
    found = [(round(across(x), 2), round(up(y), 2)) for x, y in corners(line)]
    assert found == [(0, 1), (1, 1), (2, 1), (2, 0.5), (3, 0.5), (3, 0)]


def test_thousands_of_points_keep_their_extremes_and_their_ends() -> None:
    values = 0.5 + 0.1 * np.random.default_rng(0).normal(size=20_000).clip(-3, 3)
    values[7_777] = 0.999
    values[0] = 0.001
    drawing = parsed(curves(list(enumerate(values.tolist()))))
    up = read_up(drawing)
    (line,) = every(drawing, "path", "curve")
    heights = [up(y) for _, y in corners(line)]
    assert len(heights) < 4 * 720
    assert heights[0] == pytest.approx(0.001, abs=0.004)
    assert heights[-1] == pytest.approx(values[-1], abs=0.004)
    assert max(heights) == pytest.approx(0.999, abs=0.004)


def test_a_logarithmic_axis_is_read_in_powers() -> None:
    series = Series("ours", [(0.1, 0.5), (1.0, 0.6), (10.0, 0.7)], OURS, marked=True, ends=[(0.4, 0.6)] * 3)
    chart = Curves("T", panels=[Panel(Axis("θ", log=True), Axis("accuracy", 0.0, 1.0), [series])])
    drawing = parsed(chart)
    across, up = read_across(drawing, log=True), read_up(drawing)
    dots = every(drawing, "circle", "dot")
    assert [across(float(dot.get("cx", ""))) for dot in dots] == pytest.approx([0.1, 1.0, 10.0], rel=0.02)
    whiskers = every(drawing, "line", "whisker")
    assert [up(float(whiskers[0].get(end, ""))) for end in ("y1", "y2")] == pytest.approx([0.4, 0.6], abs=0.005)


def test_cells_below_the_target_are_hatched_and_no_others() -> None:
    grid = Grid("accuracy", [[0.85, 0.92], [None, 0.90]], ".2f", 0.9)
    drawing = parsed(Heat("T", rows=[1, 3], columns=[0.5, 7], names=("α", "β"), grids=[grid]))
    cells = every(drawing, "rect", "cell")
    assert len(cells) == 3
    first = cells[0]
    left, top, wide, tall = (float(first.get(name, "")) for name in ("x", "y", "width", "height"))
    hatches = [line for line in every(drawing, "line", "hatch") if float(line.get("y1", "")) >= top]
    assert len(hatches) > 10
    for line in hatches:
        for end in "12":
            assert left - 0.01 <= float(line.get(f"x{end}", "")) <= left + wide + 0.01
            assert top - 0.01 <= float(line.get(f"y{end}", "")) <= top + tall + 0.01
    tints = [float(cell.get("fill-opacity", "")) for cell in cells]
    assert tints[0] < tints[2] < tints[1], "more is darker"
    assert {"0.85", "0.92", "0.90", "rows: α", "columns: β"} <= set(texts(drawing))


def test_a_cell_below_the_target_is_never_written_as_the_target() -> None:
    grid = Grid("accuracy", [], ".2f", 0.9)
    assert [grid.written(value) for value in (0.8961, 0.89996, 0.9, 0.85, 0.951)] == [
        *("0.896", "0.89996", "0.90", "0.85", "0.95")
    ]
    assert Grid("τ", [], ".1f").written(8.96) == "9.0"


@pytest.mark.parametrize("width", WIDTHS)
def test_rows_with_axes_of_their_own_are_read_at_these(width: float) -> None:
    """Each row has its numbers below it: 2.1 and 2.2 are as far apart as 10 and 20 are."""
    rows = [[Dot("a", 10.0, OURS), Dot("b", 20.0, THEIRS)], [Dot("a", 2.1, OURS), Dot("b", 2.2, THEIRS)]]
    chart = ApartDots("T", names=["A", "B"], panels=[DotPanel(Axis("τ"), rows)])
    places = [float(dot.get("cx", "")) for dot in every(parsed(chart, width), "circle", "dot")]
    assert places[1] - places[0] == pytest.approx(places[3] - places[2])
    for name, row in zip(chart.names, rows, strict=True):
        alone = parsed(ApartDots("T", names=[name], panels=[DotPanel(Axis("τ"), [row])]), width)
        read = read_across(alone)
        found = [read(float(dot.get("cx", ""))) for dot in every(alone, "circle", "dot")]
        assert found == pytest.approx([dot.value for dot in row], rel=0.005)


@pytest.mark.parametrize("width", WIDTHS)
def test_bars_are_as_long_as_their_values(width: float) -> None:
    series = {"ours": [0.5, 0.25], "paper": [1.0, 0.0]}
    chart = Bars("T", groups=["1 agent", "2 agents"], series=series, axis=Axis("share", 0.0, percent=True))
    drawing = parsed(chart, width)
    read = read_across(drawing)
    bars = [bar for bar in every(drawing, "rect") if bar.find("title") is not None]
    ends = [read(float(bar.get("x", "")) + float(bar.get("width", ""))) for bar in bars]
    assert ends == pytest.approx([0.5, 1.0, 0.25, 0.0], abs=0.005)
    assert all(read(float(bar.get("x", ""))) == pytest.approx(0, abs=0.005) for bar in bars)


def test_a_timeline_has_a_bar_for_each_share_in_the_agents_colour() -> None:
    acts = [Act("arm 1", 0.75, "arm 2 25%"), Act("STOP", 1.0)]
    drawing = parsed(Timeline("T", moments=[Moment(0, 1.0, acts)]))
    shares, tracks = every(drawing, "rect", "share"), every(drawing, "rect", "track")
    parts = [float(s.get("width", "")) / float(t.get("width", "")) for s, t in zip(shares, tracks, strict=True)]
    assert parts == pytest.approx([0.75, 1.0], abs=0.001)
    assert [bar.get("fill") for bar in shares] == ["var(--agent-1)", "var(--agent-2)"]
    assert {"1", "2", "arm 1 75%", "STOP 100%"} <= set(texts(drawing))


def test_no_number_at_an_axis_is_cut_by_the_left_end() -> None:
    rows = [[Dot("a", 0.892, OURS, words="0.892")], [Dot("b", 0.933, THEIRS, words="0.933")]]
    chart = Dots("T", names=["A", "B"], panels=[DotPanel(Axis("accuracy"), rows, 0.9)])
    for width in (300.0, 340.0, 380.0):
        for mark in every(parsed(chart, width), "text", "tick"):
            if mark.get("text-anchor") == "middle":
                assert float(mark.get("x", "")) >= 0.5 * width_of(mark.text or "", SMALL) - 0.01


def test_a_small_panel_has_two_numbers_at_its_axis() -> None:
    rows = [[Dot("a", 0.888, OURS, words="0.888")], [Dot("b", 0.9155, THEIRS, words="0.916")]]
    panels = [DotPanel(Axis("accuracy"), rows, 0.9), DotPanel(Axis("τ", 0.0), rows)]
    drawing = parsed(Dots("T", names=["a name that takes all the room that it is given", "B"], panels=panels), 560.0)
    numbers = [one.text for one in every(drawing, "text", "tick") if one.get("text-anchor") == "middle"]
    assert len([text for text in numbers if float(text or "") >= 0.85]) >= 2


@pytest.mark.parametrize("width", [340.0, 560.0])
def test_the_target_is_drawn_behind_words_that_have_a_rim(width: float) -> None:
    """A line through the words would make them unreadable."""
    row = [Dot("a", 0.89, OURS, words="far below")]
    drawing = parsed(Dots("T", names=["a name"], panels=[DotPanel(Axis("accuracy"), [row], 0.9)]), width)
    marks = list(drawing.iter())
    target = next(place for place, one in enumerate(marks) if one.get("class") == "target")
    words = next(place for place, one in enumerate(marks) if one.text == "far below" and one.tag == "text")
    assert target < words
    assert marks[words].get("class") == "tick over"
    assert "paint-order: stroke" in STYLE.partition(".chart text.over {")[2].partition("}")[0]
