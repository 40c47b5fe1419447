"""The chart on top of the results page: rounds to the target of all settings."""

from __future__ import annotations

from icmape.evaluation.equal_accuracy import reading
from icmape.evaluation.stop_curves import StopCurve
from icmape.plot import chapters as c
from icmape.plot.charts import ApartDots, Axis, Dot, DotPanel, Key, method_colour
from icmape.plot.items import Plot
from paper import printed as paper
from paper.collected import Results
from paper.curves import DELTA
from paper.experiments import MAIN, Setting
from paper.limits import Limit

NAMES = {
    "paper": "the paper",
    "ours": "ours",
    "schedule": "fixed schedule",
    "decentralized": "decentralized rule",
    "central": "central rule",
}
"""Families of methods, in the order of the dots of a row."""
NORMAL = 1.96
TITLE = f"Rounds to an accuracy of {1 - DELTA:.2f}"


def rule_roles(setting: Setting) -> dict[str, str]:
    """What the rules that are used as references are, by their names."""
    rules = {"schedule": setting.schedule, "decentralized": setting.rule, "central": setting.central}
    return {name: NAMES[family] for family, name in rules.items()}


def rule_label(setting: Setting, name: str) -> str:
    """A rule in charts: what it is used as, if it is a reference, and its name."""
    role = rule_roles(setting).get(name)
    return f"{role} ({name})" if role else f"rule {name}"


def overview_plot(results: Results) -> Plot:
    """A row for every setting: τ of the paper, ours, and the best rules without learning."""
    rows = [_row(results, setting) for setting in results.settings]
    rows = [[dot._replace(words=f"{dot.label} {dot.words}") for dot in row] for row in rows]
    below_target = any(dot.hollow for row in rows for dot in row)
    keys = [Key(f"accuracy below {1 - DELTA:.2f}", "var(--soft)", shape="hollow")] if below_target else []
    below = (
        f"stops are moved until {1 - DELTA:g} of the answers are right; an accuracy in brackets is that of a method at "
        "its own stop. ± and lines: 95 % intervals. Each row has its own axis"
    )
    names = [results.title(setting) for setting in results.settings]
    panels = [DotPanel(Axis("τ (rounds, the stop included)"), rows)]
    chart = ApartDots(TITLE, below, results.mark, names, panels, keys, broad=True)
    return Plot("overview", TITLE, chart)


def _row(results: Results, setting: Setting) -> list[Dot]:
    printed = results.printed(paper.FINAL, setting.name, {}).get(MAIN, paper.Printed())
    dots = []
    if printed.tau is not None:
        words = f"{printed.tau:.2f}" + (f" ({printed.accuracy})" if printed.accuracy else "")
        dots.append(Dot(NAMES["paper"], printed.tau, method_colour("paper"), words=words))
    ours = _at_target("ours", results.curves(setting, setting.main)) or _own(results, setting)
    rules = {"schedule": setting.schedule, "decentralized": setting.rule, "central": setting.central}
    for family, name in rules.items():
        curve, limit = results.rule_curve(setting, name), results.limit(setting, name)
        found = _at_target(family, [curve] if curve else [])
        dots += [found] if found else [_limit(family, limit)] if limit else []
    return [*dots[: printed.tau is not None], *([ours] if ours else []), *dots[printed.tau is not None :]]


def _at_target(family: str, curves: list[StopCurve]) -> Dot | None:
    """τ at the target exactly."""
    if not curves or (read := reading(curves)).tau is None:
        return None
    low, high = (None, None) if not read.half else (read.tau - read.half, read.tau + read.half)
    words = f"{read.tau:.2f}" + (f" ± {read.half:.2f}" if read.half else "")
    return Dot(NAMES[family], read.tau, method_colour(family), low, high, words)


def _own(results: Results, setting: Setting) -> Dot | None:
    """Our teams with their own stops."""
    teams = results.teams(setting, setting.main)
    if not teams:
        return None
    accuracy, tau = c.mean(teams, "accuracy"), c.mean(teams, "tau")
    words = f"{tau:.2f} ({accuracy:.3f})"
    return Dot(NAMES["ours"], tau, method_colour("ours"), words=words, hollow=_misses(accuracy))


def _limit(family: str, limit: Limit) -> Dot:
    """A rule with its own accuracy."""
    half = NORMAL * limit.tau_error if limit.tau_error else None
    low, high = (None, None) if half is None else (limit.tau - half, limit.tau + half)
    words = f"{limit.tau:.2f}" + (f" ± {half:.2f}" if half else "") + f" ({limit.accuracy:.3f})"
    return Dot(NAMES[family], limit.tau, method_colour(family), low, high, words, _misses(limit.accuracy))


def _misses(accuracy: float) -> bool:
    return round(accuracy, 3) < 1 - DELTA
