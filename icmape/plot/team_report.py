"""The report on one team, one run or several methods: one page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from icmape.evaluation.analysis import Analysis
from icmape.evaluation.certificate import Certificate, percent
from icmape.evaluation.robustness import Sweep, SweepPoint
from icmape.plot import chapters as c
from icmape.plot import figures
from icmape.plot.items import Chapter, Item, Plot, Table
from icmape.plot.priors import sweep_plot

MOST_COMPARED = 10  # methods in a figure


@dataclass(frozen=True)
class Judged:
    """A method: analyses of its teams by seed or name, and its other results."""

    label: str
    teams: Mapping[str, Analysis]
    certificates: Mapping[str, Certificate] = field(default_factory=dict)
    metrics: Sequence[Mapping[str, Any]] = ()
    sweeps: Sequence[tuple[Sweep, Sequence[SweepPoint]]] = ()
    scenes: Sequence[dict[str, Any]] = ()


def report_chapters(methods: Sequence[Judged]) -> list[Chapter]:
    """Summary, curves, reliability, survival, robustness, coordination, episodes."""
    delta = next(iter(methods[0].teams.values())).evaluation.delta
    chapters = [_summary(methods), _curves(methods, delta), _calibration(methods), _survival(methods)]
    chapters += [_robustness(methods, delta), _coordination(methods), _episodes(methods)]
    return [chapter for chapter in chapters if chapter.items or chapter.scenes]


def _summary(methods: Sequence[Judged]) -> Chapter:
    shown = {method.label: list(method.teams.values()) for method in methods}
    note = f"Mean ± standard deviation over teams; {c.counts(next(iter(shown.values())))}. τ counts the stop."
    items: list[Item] = [c.performance_table("methods", "Accuracy and stopping time", shown, note)]
    first = next(iter(methods[0].teams.values())).evaluation
    words = [f"The best answer without any data is right with probability {first.no_data_accuracy:.3f}."]
    rows = []
    for method in methods:
        for name, certificate in method.certificates.items():
            rows.append([method.label, name, *c.certificate_cells(certificate)])
            words.append(f"{method.label}, {name}: {certificate.statement}")
    if rows:
        headings = ["method", "team", *c.certificate_headings(percent(certificate.level))]
        items.append(Table("certificates", "Certificates", headings, rows))
    if len(methods) > 1:
        title = "Accuracy and stopping time"
        items.append(c.performance_plot("methods", title, {k: {"": v} for k, v in shown.items()}, {}))
    return Chapter("Summary", items, words)


def _curves(methods: Sequence[Judged], delta: float) -> Chapter:
    runs = {method.label: method.metrics for method in methods if method.metrics}
    title = "Training dynamics"
    return Chapter("Training", [Plot("training", title, figures.dynamics(runs, delta, title))] if runs else [])


def _calibration(methods: Sequence[Judged]) -> Chapter:
    teams = {f"{method.label}, {name}": team for method in methods for name, team in method.teams.items()}
    items: list[Item] = c.trust_tables("trust", teams)
    for method in methods:
        name, team = next(iter(method.teams.items()))
        items.append(
            c.reliability_plot(f"reliability-{method.label}", f"Calibration: {method.label}, {name}", "team", team)
        )
        items.append(
            c.calibration_table(f"calibration-{method.label}", f"{method.label}, {name}: bins", team.calibration)
        )
    return Chapter("Calibration", items)


def _survival(methods: Sequence[Judged]) -> Chapter:
    shown = {method.label: list(method.teams.values()) for method in methods[:MOST_COMPARED]}
    return Chapter("Survival", [c.survival_plot("survival", "Episodes that have not ended", shown)])


def _robustness(methods: Sequence[Judged], delta: float) -> Chapter:
    items: list[Item] = []
    for method in methods:
        for sweep, points in method.sweeps:
            title = f"Other priors ({sweep.name}): {method.label}"
            items.append(sweep_plot(f"{method.label}-{sweep.name}", title, sweep, {method.label: points}, delta))
    return Chapter("Robustness", items, ["The team was trained on another prior."] if items else ())


def _coordination(methods: Sequence[Judged]) -> Chapter:
    items: list[Item] = []
    for method in methods:
        name, team = next(iter(method.teams.items()))
        items += c.coordination_items(method.label, f"{method.label}, {name}", team)
    return Chapter("Coordination", items)


def _episodes(methods: Sequence[Judged]) -> Chapter:
    words = ["Step through episodes with the buttons or the arrow keys; choose an agent to see its own view."]
    return Chapter("Episodes", [], words, [scene for method in methods for scene in method.scenes])


def subtitle(methods: Sequence[Judged], problem: str) -> str:
    """Problem, number of teams and worlds, and target."""
    teams = sum(len(method.teams) for method in methods)
    first = next(iter(methods[0].teams.values())).evaluation
    count = f"{teams} team{'s' * (teams > 1)}"
    return f"{problem}; {count}, {first.episodes:,} fresh worlds each (seed {first.seed}), target {1 - first.delta:g}"
