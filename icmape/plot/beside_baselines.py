"""Teams and baselines at the same accuracy in a report: a figure, a table, and a sentence for the top."""

from __future__ import annotations

from dataclasses import replace

from icmape.evaluation.beside import OWN_NETWORK, Beside, Standing
from icmape.evaluation.equal_accuracy import Compared, Gap, Reading
from icmape.evaluation.stop_curves import StopCurve
from icmape.plot.charts import Axis
from icmape.plot.comparison_table import in_words
from icmape.plot.items import DASH, Plot, Table
from icmape.plot.sweep_charts import equal_accuracy
from icmape.plot.team_charts import ROUND
from icmape.plot.verdict import times

EXPLAINED = (
    "Every stop is moved (its threshold, level or length) until so many answers are right, on worlds on which no stop "
    "was set. ± and brackets: 95 % intervals; differences are paired where both were played."
)
OTHERS_NETWORK = (
    "The network did not learn from the readings of a round robin. `--baselines plan` trains a schedule with a network "
    "of its own, which takes a minute or more."
)


def standing_plot(standing: Standing) -> Plot:
    """Right answers against rounds as the stops of all are moved."""
    title = "Beside rules that do not learn"
    below = f"right answers as every stop is moved; dots: the teams' own stops; {worlds_of(standing)}"
    curves = {label: [_in_rounds(curve) for curve in teams] for label, teams in standing.curves.items()}
    chart = equal_accuracy(curves, standing.target, title, below, axis=Axis(ROUND, 0.0))
    return Plot("baselines", title, chart)


def _in_rounds(curve: StopCurve) -> StopCurve:
    """A curve by rounds of readings, as everything else in a report: the stop is none."""
    points = tuple(point._replace(tau=point.tau - 1) for point in curve.points)
    own = curve.own and curve.own._replace(tau=curve.own.tau - 1)
    return replace(curve, points=points, own=own, tau=None if curve.tau is None else curve.tau - 1)


def worlds_of(standing: Standing) -> str:
    """How many worlds were played, and whose accuracy is computed."""
    computed = [rule.name for rule in standing.baselines if rule.curve.exact]
    seed = next(iter(standing.methods.values()))[0].seed
    played = f"{standing.worlds:,} fresh worlds each (seed {seed})"
    return f"{played}; {', '.join(computed)} is computed exactly" if computed else played


def standing_table(standing: Standing) -> Table:
    """Rounds of readings at the target, and the difference to the first method."""
    compared = standing.compared
    goal, first = f"{times(standing.target)} % right", compared[0].name
    rows = [[row.name, _rounds(row.reading), DASH if row.gap is None else str(row.gap)] for row in compared]
    headings = ["", f"rounds of readings, {goal}", f"more than {first}"]
    borrowed = any(rule.words == OWN_NETWORK for rule in standing.baselines)
    note = f"{EXPLAINED} {OTHERS_NETWORK}" if borrowed else EXPLAINED
    return Table(
        "baselines", f"Rounds of readings until {times(standing.target)} of 100 are right", headings, rows, note
    )


def _rounds(reading: Reading) -> str:
    """Rounds of readings at the target with half of the interval, or why there are none."""
    return in_words(reading if reading.tau is None else reading._replace(tau=reading.tau - 1))


def standing_sentence(standing: Standing) -> str:
    """What baselines need for the accuracy of the target, beside the first method."""
    rows = standing.compared
    team, rules = rows[0].reading, rows[len(standing.methods) :]
    goal = f"{times(standing.target)} in 100"
    said = [_rule_words(rule, row) for rule, row in zip(standing.baselines, rules, strict=True)]
    if team.tau is None:
        return f"No other stop makes the team right {goal} times; {', '.join(said)}."
    return f"For {goal} the team needs {team.tau - 1:.1f} rounds (in {standing.worlds:,} worlds); {', '.join(said)}."


def _rule_words(rule: Beside, row: Compared) -> str:
    tau = row.reading.tau
    if tau is None:
        return f"{rule.sentence} never gets there (at most {times(row.reading.best)})"
    return f"{rule.sentence} {tau - 1:.1f}{_difference(row.gap)}"


def _difference(gap: Gap | None) -> str:
    """How many rounds more or fewer, where that is more than noise."""
    if gap is None:
        return ""
    ends = gap.interval
    if ends is None:
        return f" ({gap.difference:+.1f})"
    if ends[0] <= 0 <= ends[1]:
        return " (no clear difference)"
    return f" ({abs(gap.difference):.1f} {'more' if gap.difference > 0 else 'fewer'})"
