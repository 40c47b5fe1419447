"""Methods at equal accuracy: a table and a chart for a setting."""

from __future__ import annotations

from collections.abc import Sequence

from icmape.evaluation.equal_accuracy import Compared, Reading, at_equal_accuracy, reading
from icmape.evaluation.stop_curves import StopCurve
from icmape.plot.comparison_table import in_words
from icmape.plot.items import DASH, Plot, Table
from icmape.plot.sweep_charts import equal_accuracy as moved_stops
from paper.collected import Results
from paper.curves import DELTA
from paper.experiments import MAIN, Setting
from paper.overview import rule_label, rule_roles

Curves = dict[str, Sequence[StopCurve]]
WORDS = (
    "No stop was set on these worlds. Intervals are from 1,000 resamples of the worlds, which all methods of a setting "
    "share, so that differences are paired; with several seeds their spread is included (Student's t)."
)


EXPLAINED = (
    f"A method with more than {1 - DELTA:g} of its answers right could stop earlier. For charts at equal accuracy "
    f"every stop is moved (its threshold, its level or its length) until {1 - DELTA:g} are right. Methods whose teams "
    "are not stored are missing there."
)


def equal_accuracy(results: Results, setting: Setting) -> tuple[Table, Plot] | None:
    """Every method that has teams here, and every baseline, at the same accuracy; none without curves."""
    curves = _curves(results, setting)
    return (_table(results, setting, curves), _plot(results, setting, curves)) if curves else None


def tau_in_words(curves: Sequence[StopCurve]) -> str:
    """τ at the target with its interval, or why there is none."""
    return in_words(reading(curves))


def _curves(results: Results, setting: Setting) -> Curves:
    """Curves of our teams first, then of other methods, then of baselines."""
    methods = sorted(setting.methods, key=lambda method: method.role != MAIN)
    learned = {method.label: curves for method in methods if (curves := results.curves(setting, method))}
    names = dict.fromkeys((*results.plan.scale(setting).baselines, setting.schedule, setting.rule, setting.central))
    rules = {rule_label(setting, name): [curve] for name in names if (curve := results.rule_curve(setting, name))}
    return {**learned, **rules}


def _table(results: Results, setting: Setting, curves: Curves) -> Table:
    compared = at_equal_accuracy(curves)
    rows = [_row(row, curves[row.name]) for row in compared]
    first = next(iter(curves))
    headings = ["method", "teams", "stands at", f"τ at {1 - DELTA:g}", f"less {first}", "worlds"]
    title = f"At equal accuracy: {results.title(setting)}"
    note = f"±, brackets: 95 % intervals. {WORDS}"
    return Table(f"{setting.name}-equal-accuracy", title, headings, rows, note, raw=_raw(setting, compared))


def _row(row: Compared, curves: Sequence[StopCurve]) -> list[str]:
    own = [f"{curve.own.accuracy:.3f} at {curve.own.tau:.2f}" for curve in curves if curve.own]
    worlds = "computed" if curves[0].exact else f"{curves[0].episodes:,}"
    difference = DASH if row.gap is None else str(row.gap)
    return [row.name, str(len(curves)), "; ".join(own) or DASH, in_words(row.reading), difference, worlds]


def _raw(setting: Setting, compared: Sequence[Compared]) -> tuple[list[str], list[list[object]]]:
    """Plain numbers of every method; rules have their bare names, without what they are used as."""
    bare = {rule_label(setting, name): f"rule {name}" for name in rule_roles(setting)}
    rows: list[list[object]] = []
    for name, read, difference in compared:
        ends = (difference and difference.interval) or ("", "")
        rows.append([bare.get(name, name), *read, difference.difference if difference else "", *ends])
    return ["method", *Reading._fields, "gap", "gap_low", "gap_high"], rows


def _plot(results: Results, setting: Setting, curves: Curves) -> Plot:
    """Of methods that reach the target: others have no crossing, and are in the table."""
    curves = {name: teams for name, teams in curves.items() if any(curve.tau for curve in teams)} or curves
    title = f"Accuracy as stops are moved: {results.title(setting)}"
    worlds = max(curve.episodes for teams in curves.values() for curve in teams)
    below = f"a line for each team, a point where it stands; right: the crossings of the target; {worlds:,} worlds"
    chart = moved_stops(curves, 1 - DELTA, title, below, results.mark)
    return Plot(f"{setting.name}-equal-accuracy", title, chart)
