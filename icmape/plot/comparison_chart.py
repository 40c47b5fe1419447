"""How good teams are, beside what needs no team: no readings, and Bayes' rule on the same readings."""

from __future__ import annotations

from collections.abc import Mapping

from icmape.plot.chapters import Teams, mean
from icmape.plot.charts import Axis, Dot, DotPanel, Dots, Key, method_strokes

BARE, BAYES = "var(--method-random)", "var(--method-exact)"


def comparison(methods: Mapping[str, Teams], title: str, below: str) -> Dots:
    """Right answers and rounds of readings: a row for no readings, for each method, and for Bayes' rule if it is known.

    Hollow dots miss the target. Bayes' rule is shown for a single method only, whose readings it has.
    """
    first = next(iter(methods.values()))[0].evaluation
    names, right, rounds = ["no readings"], [[_share("no readings", first.no_data_accuracy, BARE)]], [[_bare()]]
    for (label, teams), (colour, _) in zip(methods.items(), method_strokes(list(methods)), strict=True):
        names.append(label)
        right.append([_accuracy(label, teams, colour)])
        played = [team.evaluation.rounds for team in teams]
        average = mean(teams, "rounds")
        rounds.append([Dot(label, average, colour, words=f"{average:.1f}", singles=_several(played))])
    if first.exact_accuracy is not None and len(methods) == 1:
        names.append("Bayes' rule")
        right.append([_share("Bayes' rule", first.exact_accuracy, BAYES)])
        rounds.append([])
    panels = [
        DotPanel(Axis("right answers", high=1.0, percent=True), right, 1 - first.delta),
        DotPanel(Axis("rounds of readings", 0.0), rounds),
    ]
    poor = any(dot.hollow for row in right for dot in row)
    keys = [Key("the target", "", shape="target")]
    keys += [Key("below the target", "var(--soft)", shape="hollow")] if poor else []
    return Dots(title, below, names=names, panels=panels, keys=keys)


def _accuracy(label: str, teams: Teams, colour: str) -> Dot:
    value, target = mean(teams, "accuracy"), 1 - teams[0].evaluation.delta
    low, high = mean(teams, "accuracy_low"), mean(teams, "accuracy_high")
    singles = _several([team.evaluation.accuracy for team in teams])
    return Dot(label, value, colour, low, high, _percent(value), value < target, singles)


def _several(values: list[float]) -> list[float]:
    """Values of seeds, if there are several."""
    return values if len(values) > 1 else []


def _bare() -> Dot:
    return Dot("no readings", 0.0, BARE, words="0")


def _share(label: str, value: float, colour: str) -> Dot:
    return Dot(label, value, colour, words=_percent(value))


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"
