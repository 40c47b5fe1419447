"""What stands beside a team at the same accuracy, in words, in a table and in a figure."""

from icmape.evaluation.beside import OWN_NETWORK, Beside, Standing
from icmape.evaluation.stop_curves import CurvePoint, StopCurve, computed_curve, tau_at
from icmape.plot.beside_baselines import standing_plot, standing_sentence, standing_table

WORLDS = 1_000


def curve(tau: float, spread: float = 0.1, highest: float = 1.0) -> StopCurve:
    """It reaches 0.9 at τ, unless its highest accuracy is less; resamples lie on both sides."""
    points = (CurvePoint(0.0, 1.0, 0.1), CurvePoint(1.0, tau, min(0.9, highest)), CurvePoint(2.0, 2 * tau, highest))
    found = tau_at(points, 0.9)
    resampled = tuple(tau + spread * (-1) ** n for n in range(40)) if found else (float("nan"),) * 40
    return StopCurve(points, points[1], 0.9, found, resampled, f"worlds {spread}", WORLDS, 7)


def standing(team: StopCurve, *rules: Beside) -> Standing:
    return Standing({"team mine": [team]}, rules, WORLDS, 0.9)


SCHEDULE = Beside("open-loop", "a fixed schedule", computed_curve([(0, 1.0, 0.1), (1, 7.0, 0.9)], 0.9))
CLOSE = Beside("local-adaptive", "a decentralized rule", curve(5.1, 0.2))


def test_the_sentence_says_how_many_rounds_more_and_what_is_noise() -> None:
    assert standing_sentence(standing(curve(5.0), SCHEDULE, CLOSE)) == (
        "For 90 in 100 the team needs 4.0 rounds (in 1,000 worlds); a fixed schedule 6.0 (2.0 more), a decentralized "
        "rule 4.1 (no clear difference)."
    )
    assert "6.0 (1.0 fewer)" in standing_sentence(standing(curve(8.0), SCHEDULE))


def test_the_sentence_says_who_never_gets_there() -> None:
    weak = Beside("turns", "a round robin", curve(5.0, highest=0.6))
    assert standing_sentence(standing(curve(5.0), weak)).endswith("a round robin never gets there (at most 60).")
    said = standing_sentence(standing(curve(5.0, highest=0.8), SCHEDULE))
    assert said == "No other stop makes the team right 90 in 100 times; a fixed schedule 6.0."


def test_the_table_has_rounds_of_readings_and_differences_with_intervals() -> None:
    table = standing_table(standing(curve(5.0), SCHEDULE, CLOSE, Beside("mine:Rule", "", curve(6.0))))
    assert [row[:2] for row in table.rows] == [
        *(["team mine", "4.00 ± 0.20"], ["fixed schedule (open-loop)", "6.00"]),
        *(["decentralized rule (local-adaptive)", "4.10 ± 0.40"], ["mine:Rule (baseline)", "5.00 ± 0.20"]),
    ]
    assert [row[2] for row in table.rows] == [
        *("–", "+2.00 [+1.80, +2.20]", "+0.10 [-0.34, +0.54]", "+1.00 [+1.00, +1.00]")
    ]


def test_a_borrowed_network_is_named_below_the_table() -> None:
    said = "did not learn from the readings"
    assert said not in standing_table(standing(curve(5.0), SCHEDULE)).note
    assert said in standing_table(standing(curve(5.0), Beside("turns", OWN_NETWORK, curve(5.0)))).note


def test_the_figure_counts_rounds_of_readings_and_says_which_curve_is_computed() -> None:
    plot = standing_plot(standing(curve(5.0), SCHEDULE, CLOSE))
    whole = plot.chart.panels[0]
    assert (whole.x.label, whole.x.low) == ("rounds of readings", 0.0)
    by_label = {one.label: one.points for one in whole.series}
    assert by_label["fixed schedule (open-loop)"] == [(0.0, 0.1), (6.0, 0.9)]
    assert by_label["team mine with its own stop"] == [(4.0, 0.9)]
    assert "1,000 fresh worlds each (seed 7); open-loop is computed exactly" in plot.caption
