"""The report on one team, one run or several methods: one page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from icmape.evaluation.analysis import Analysis
from icmape.evaluation.beside import Standing
from icmape.evaluation.certificate import Certificate, percent
from icmape.evaluation.robustness import Sweep, SweepPoint
from icmape.plot import chapters as c
from icmape.plot.beside_baselines import standing_plot, standing_sentence, standing_table
from icmape.plot.charts import family_of
from icmape.plot.comparison_chart import comparison
from icmape.plot.earth import by_town
from icmape.plot.honesty import Fit, fit, honest, honesty_chart, honesty_words
from icmape.plot.items import Item, Plot, Table
from icmape.plot.page import Card, Cards, Columns, Drawn, Fold, Opening, Part, Replay, Section, Text
from icmape.plot.priors import sweep_plot
from icmape.plot.stop_words import schedule_words
from icmape.plot.verdict import above_title, cards, surplus, verdict_sentence
from icmape.plot.whereabouts import Whereabouts, visits_of
from icmape.problem import Problem
from icmape_agent.display import Places

MOST_COMPARED = 10  # methods in a figure
SHOWN_SWEEP = (
    "The same team in worlds of other priors than that of its training. Where it misses its target, cells are hatched."
)


@dataclass(frozen=True)
class Judged:
    """A method: analyses of its teams by seed or name, and its other results."""

    label: str
    teams: Mapping[str, Analysis]
    certificates: Mapping[str, Certificate] = field(default_factory=dict)
    metrics: Sequence[Mapping[str, Any]] = ()
    sweeps: Sequence[tuple[Sweep, Sequence[SweepPoint]]] = ()
    scenes: Sequence[dict[str, Any]] = ()
    answers: tuple[np.ndarray, np.ndarray] | None = None  # of the first team: confidence at the stop, whether right

    @cached_property
    def honesty(self) -> Fit | None:
        """The fit of right answers to confidence."""
        return None if self.answers is None else fit(*self.answers)

    @property
    def first(self) -> tuple[Analysis, Certificate | None]:
        """Analysis and certificate of the first team."""
        name, analysis = next(iter(self.teams.items()))
        return analysis, self.certificates.get(name)


def opening(methods: Sequence[Judged], problem: Problem, kind: str, beside: Standing | None = None) -> Opening:
    """The verdict and the cards of the first method, what baselines need, the replay, and the cards of the others."""
    several = len(methods) > 1
    facts = [Cards(_cards(problem, method), method.label if several else "") for method in methods]
    scenes = [scene for method in methods for scene in method.scenes]
    replay = [Replay(scenes, plays_itself=True)] if scenes else []
    analysis, certificate = methods[0].first
    verdict = verdict_sentence(problem, analysis.evaluation, certificate)
    above = above_title([method.label for method in methods], kind)
    verdict = f"{verdict} {standing_sentence(beside)}" if beside else verdict
    sentence = f"{methods[0].label}: {verdict}" if several else verdict
    return Opening(above, sentence, [facts[0], *replay, *facts[1:]], problem.explanation)


def _cards(problem: Problem, method: Judged) -> list[Card]:
    return cards(problem, *method.first, everywhere=method.honesty is None or honest(method.honesty))


def report_sections(methods: Sequence[Judged], problem: Problem, beside: Standing | None = None) -> list[Section]:
    """How good, how honest, who does what, where it breaks, how it learned, and all numbers folded."""
    delta = methods[0].first[0].evaluation.delta
    sections = [
        _good(methods, beside),
        _honest(methods),
        _who(methods, problem),
        _breaks(methods, delta),
        _learned(methods, delta),
    ]
    return [section for section in (*sections, _numbers(methods, problem)) if section.parts]


def _shown(items: Sequence[Item]) -> list[Part]:
    return [part for item in items for part in item.parts()]


def _beside(parts: Sequence[Part]) -> list[Part]:
    """Charts side by side, two in a line, where there is space."""
    return [Columns(_wide(parts))] if parts else []


def _wide(parts: Sequence[Part]) -> list[Part]:
    return [replace(one, look="wide") if isinstance(one, Drawn) else one for one in parts]


def _named_beside(beside: Standing, methods: Sequence[Judged]) -> Standing:
    """Methods by their labels in charts."""
    labels = {method.label: _named(method, methods) for method in methods}
    return replace(beside, methods={labels[label]: curves for label, curves in beside.methods.items()})


def _named(method: Judged, methods: Sequence[Judged]) -> str:
    """The label of a method in charts; a single one of no known family is drawn as our own team."""
    return f"team {method.label}" if len(methods) == 1 and family_of(method.label) is None else method.label


def _good(methods: Sequence[Judged], beside: Standing | None) -> Section:
    shown = {_named(method, methods): list(method.teams.values()) for method in methods[:MOST_COMPARED]}
    below = (
        "No readings: the best answer without any; Bayes' rule: its answer from the same readings, where it is known. "
        f"Lines: 95 % intervals; {c.counts(next(iter(shown.values())))}"
    )
    title = "Right answers and rounds"
    compared = Plot("comparison", title, comparison(shown, title, below))
    parts = _beside(_shown([compared, c.survival_plot("survival", "How long episodes last", shown)]))
    if beside:
        stood = _named_beside(beside, methods)
        parts += [Columns([*_wide(standing_plot(stood).parts()), *standing_table(stood).parts()])]
    return Section("How good", parts)


def _honest(methods: Sequence[Judged]) -> Section:
    parts: list[Part] = []
    for method in methods:
        if method.answers is None or method.honesty is None:
            continue
        found, count = method.honesty, len(method.answers[0])
        below = (
            "Steps: the share of right answers among those with about this confidence, fitted without bins; shaded: "
            "at each confidence, where 95 % of such fits lie if the team is right as often as it says; "
            f"{count:,} fresh worlds"
        )
        title = f"How sure it is and how often it is right: {method.label}"
        plot = Plot("honesty", title, honesty_chart(title, _named(method, methods), found, below))
        parts += [*plot.parts(), Text(honesty_words(found, surplus(method.first[0].evaluation)))]
    return Section("How honest", _beside(parts))


def _who(methods: Sequence[Judged], problem: Problem) -> Section:
    items: list[Item] = []
    display = problem.unwrapped.display
    for method in methods:
        analysis, _ = method.first
        if isinstance(display.actions, Places):
            title = f"Where each {display.agent} goes: {method.label}"
            below = f"The larger a disc, the more visits; places of less than 2 % are left out; {c.counts([analysis])}"
            where = Whereabouts(title, below, places=display.actions, visits=visits_of(analysis), agent=display.agent)
            items.append(Plot(f"{method.label}-where", title, where))
            analysis = replace(analysis, names=by_town(analysis.names, display.actions))
        title = f"What each {display.agent} does most in each round: {method.label}"
        items.append(c.habits_plot(f"{method.label}-habits", title, analysis))
    said = [(method, schedule_words(method.first[0], problem.unwrapped.horizon)) for method in methods]
    named = [Text(f"{method.label}: {words}" if len(methods) > 1 else words) for method, words in said if words]
    return Section("Who does what", [*named, *_beside(_shown(items))])


def _breaks(methods: Sequence[Judged], delta: float) -> Section:
    items: list[Item] = []
    for method in methods:
        for sweep, points in method.sweeps:
            title = f"Other priors ({sweep.name}): {method.label}"
            items.append(
                sweep_plot(f"{method.label}-{sweep.name}", title, sweep, {_named(method, methods): points}, delta)
            )
    return Section("Where it breaks", [Text(SHOWN_SWEEP), *_beside(_shown(items))] if items else [])


def _learned(methods: Sequence[Judged], delta: float) -> Section:
    runs = {_named(method, methods): method.metrics for method in methods if method.metrics}
    title = "Training dynamics"
    items: list[Item] = [c.training_plot("training", title, runs, delta)] if runs else []
    return Section("How it learned", _beside(_shown(items)))


def _numbers(methods: Sequence[Judged], problem: Problem) -> Section:
    """All tables, the prior and the certificates, folded."""
    shown = {method.label: list(method.teams.values()) for method in methods}
    first = methods[0].first[0].evaluation
    note = (
        f"Mean ± standard deviation over teams; {c.counts(next(iter(shown.values())))}. τ counts the stop as a round."
    )
    performance = c.performance_table("methods", "Accuracy and stopping time", shown, note)
    bare = f"The best answer without any data is right with probability {first.no_data_accuracy:.3f}."
    return Section(
        "All numbers",
        [
            Fold("Accuracy and stopping time", [*performance.parts(), Text(bare)]),
            Fold("Calibration, scores and bins", _shown(_trust(methods))),
            Fold("Joint actions and stops", _shown(_coordination(methods))),
            *([Fold("Certificates in full", _certificates(methods))] if any(m.certificates for m in methods) else []),
        ],
    )


def _certificates(methods: Sequence[Judged]) -> list[Part]:
    """A row and a statement for each; a statement names the prior."""
    every = [(method.label, name, one) for method in methods for name, one in method.certificates.items()]
    rows = [[label, name, *c.certificate_cells(one)] for label, name, one in every]
    headings = ["method", "team", *c.certificate_headings(percent(every[0][2].level))]
    table = Table("certificates", "Certificates", headings, rows)
    return [*table.parts(), *(Text(f"{team_name(label, name)}: {one.statement}") for label, name, one in every)]


def _trust(methods: Sequence[Judged]) -> list[Item]:
    teams = {team_name(method.label, name): team for method in methods for name, team in method.teams.items()}
    items: list[Item] = c.trust_tables("trust", teams)
    for method in methods:
        name, team = next(iter(method.teams.items()))
        items.append(
            c.calibration_table(
                f"calibration-{method.label}", f"{team_name(method.label, name)}: bins", team.calibration
            )
        )
    return items


def _coordination(methods: Sequence[Judged]) -> list[Item]:
    items: list[Item] = []
    for method in methods:
        name, team = next(iter(method.teams.items()))
        joint, _, stops = c.coordination_items(method.label, team_name(method.label, name), team)
        items += [joint, stops]
    return items


def team_name(method: str, team: str) -> str:
    """A team by its method and its own name, or by one of them if they are the same."""
    return method if method == team else f"{method}, {team}"


def subtitle(methods: Sequence[Judged], changed: str) -> str:
    """Number of teams and worlds, target, and what was changed in the problem."""
    teams = sum(len(method.teams) for method in methods)
    first = methods[0].first[0].evaluation
    worlds = f"{first.episodes:,} fresh worlds {c.each(teams)}(seed {first.seed})"
    return f"{c.team_count(teams)}, {worlds}, target {1 - first.delta:g}{changed}"
