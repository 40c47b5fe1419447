"""The first chart of a report shows the numbers of its analyses."""

import pytest

from icmape.plot.comparison_chart import comparison
from tests.plot.analyses import analysis


def test_a_team_stands_beside_no_readings_and_bayes_rule() -> None:
    chart = comparison({"ours": [analysis(0.88)]}, "t", "")
    assert chart.names == ["no readings", "ours", "Bayes' rule"]
    right, rounds = chart.panels
    assert [dot.value for row in right.rows for dot in row] == [0.05, 0.88, 0.92]
    assert right.target == pytest.approx(0.9)
    assert [dot.hollow for row in right.rows for dot in row] == [False, True, False], "what misses the target is hollow"
    assert [[dot.value for dot in row] for row in rounds.rows] == [[0.0], [12.5], []], (
        "rounds of readings; the stop is none"
    )


def test_seeds_are_shown_around_their_mean() -> None:
    chart = comparison({"ours": [analysis(0.9), analysis(0.94)], "td3": [analysis(0.8)]}, "t", "")
    ours = chart.panels[0].rows[1][0]
    assert (ours.value, list(ours.singles)) == (pytest.approx(0.92), [0.9, 0.94])
    assert len(chart.names) == 3
