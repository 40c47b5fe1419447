"""The chart on top of the page says what the stored curves and baselines say; what was not run is one line."""

from dataclasses import replace
from pathlib import Path

import pytest

from icmape.evaluation.equal_accuracy import reading
from icmape.plot.charts import svg
from icmape.plot.charts.chart import BROAD, NARROW
from paper.book import episodes, problems
from paper.collected import Results
from paper.equal import equal_accuracy
from paper.experiments import A3P5, NITRATE, SETTINGS, SIGNAL, Setting
from paper.missing import not_run
from paper.overview import overview_plot, rule_label
from paper.work_plan import Plan
from tests.paper import tiny
from tests.paper.tiny import TINY
from tests.plot.charts.drawn import every, parsed, read_across

RESULTS = Path(__file__).parent.parent.parent / "results"


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The results of this repository."""
    return Results(list(SETTINGS.values()), Plan(tmp_path_factory.mktemp("out"), RESULTS))


def test_dots_stand_at_the_rounds_of_the_stored_results(stored: Results) -> None:
    chart = overview_plot(stored).chart
    assert len(chart.names) == 5
    first = {dot.label: dot for dot in chart.panels[0].rows[0]}
    assert list(first) == ["the paper", "ours", "fixed schedule", "decentralized rule", "central rule"]
    curves = stored.curves(A3P5, A3P5.main)
    read = reading(curves)
    assert first["the paper"].value == 13.57
    assert first["ours"].value == read.tau
    assert (first["ours"].low, first["ours"].high) == pytest.approx((read.tau - read.half, read.tau + read.half))
    rule = stored.rule_curve(A3P5, "central-greedy")
    assert first["central rule"].value == rule.tau
    (panel,) = chart.panels
    for name, row in zip(chart.names, panel.rows, strict=True):  # each row has its own axis
        drawing = parsed(replace(chart, names=[name], panels=[panel._replace(rows=[row])]))
        across = read_across(drawing)
        places = [across(float(dot.get("cx", ""))) for dot in drawing.iter("circle") if dot.find("title") is not None]
        assert places == pytest.approx([dot.value for dot in row], rel=0.01)


@pytest.mark.parametrize("width", [NARROW, BROAD])
def test_no_word_of_it_is_cut_off(stored: Results, width: float) -> None:
    words = [one for one in every(parsed(overview_plot(stored).chart, width), "text", "tick") if one.text]
    starts = [one for one in words if one.get("text-anchor") is None]
    assert len(starts) > 10
    assert max(float(one.get("x", "")) + svg.width_of(one.text or "", svg.SMALL) for one in starts) <= width + 4
    assert min(float(one.get("x", "")) for one in words) >= 0


class WithoutCurves(Results):
    """Rules stand at their own stops."""

    def rule_curve(self, setting: Setting, name: str) -> None:
        return None


def test_what_misses_the_target_is_hollow_and_says_its_accuracy(stored: Results) -> None:
    stored = WithoutCurves(stored.settings, stored.plan)
    (row,) = [
        row for name, row in zip(_chart(stored).names, _chart(stored).panels[0].rows, strict=True) if "source" in name
    ]
    found = {dot.label: dot for dot in row}
    limit = stored.limit(SIGNAL, "central-greedy")
    assert limit.accuracy < 0.9
    assert found["central rule"].hollow
    assert f"({limit.accuracy:.3f})" in found["central rule"].words
    assert not found["ours"].hollow
    hollow = [dot for one in _chart(stored).panels[0].rows for dot in one if dot.hollow]
    assert len(every(parsed(_chart(stored)), "circle", "hollow")) == len(hollow) + 1, "and one in the legend"


def _chart(stored: Results):
    return overview_plot(stored).chart


def test_a_rule_has_one_name_in_all_charts_and_its_bare_name_in_files(stored: Results) -> None:
    labels = [rule_label(A3P5, name) for name in ("open-loop", "local-adaptive", "central-greedy", "random")]
    assert labels == [
        "fixed schedule (open-loop)",
        "decentralized rule (local-adaptive)",
        "central rule (central-greedy)",
        "rule random",
    ]
    pair = equal_accuracy(stored, A3P5)
    assert pair is not None
    table, plot = pair
    shown = {row[0] for row in table.rows}
    named = {one.label for one in plot.chart.panels[0].series}
    assert set(labels[:3]) <= shown & named
    assert {"rule open-loop", "rule local-adaptive", "rule central-greedy"} <= {row[0] for row in table.raw[1]}


def test_without_measurements_episodes_are_of_made_up_fields_and_say_so(
    stored: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paper.episodes.WORLDS", 20)
    topic = episodes(stored, [NITRATE])
    assert "made-up fields" in topic.words[0]
    assert "by rule" in topic.words[1]
    titles = [scene["title"] for scene in topic.scenes]
    assert titles[0].startswith("Right, of median length, ")
    assert all(len(scene["rounds"]) > 1 for scene in topic.scenes), "an episode of no rounds shows nothing"


def test_what_was_not_run_is_one_line_for_a_setting(stored: Results, tmp_path: Path) -> None:
    line = not_run(stored, A3P5)
    assert "Methods" not in line, "all methods were run"
    assert "ours" not in not_run(stored, SETTINGS["signal"])
    assert not_run(Results([TINY], tiny.quick(tmp_path)), TINY) == (
        "Not run for tiny. Methods: ours (random); ICMAPE-TD3. Rules: random; open-loop; central-greedy. "
        "Sweeps: capacities."
    )


def test_a_page_without_results_has_its_problems_and_no_empty_questions(tmp_path: Path) -> None:
    summary, problem = problems(Results([TINY], Plan(tmp_path)))
    assert summary.title == "How many rounds does it take?"
    assert problem.title == TINY.title
    headings = [topic.title for topic in problem.topics if not topic.empty]
    assert "Does it hold under other priors?" not in headings
    assert "How does it compare?" in headings
