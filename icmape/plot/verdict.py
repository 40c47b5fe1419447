"""What a report says first: the question, one sentence of verdict, and four cards."""

from __future__ import annotations

import math
from collections.abc import Sequence

from icmape.evaluation.analysis import Analysis
from icmape.evaluation.certificate import Certificate, percent
from icmape.evaluation.metrics import Evaluation
from icmape.plot.page import Card
from icmape.problem import Problem
from icmape_agent.display import Moves

WORDS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve")
PERCENT = "\u00a0%"  # no line breaks before the sign
TWO_SIDED = 1.96  # standard errors of a 95 % interval


def times(share: float) -> str:
    """A share as times in 100."""
    return f"{100 * share:.1f}".removesuffix(".0")


def percents(share: float) -> str:
    """A share in percent with one decimal."""
    return f"{100 * share:.1f}{PERCENT}"


def team_words(problem: Problem) -> str:
    """The team in words, such as "Six crews, each with its own readings only"."""
    inner = problem.unwrapped
    count, agent = inner.agents, inner.display.agent
    number = WORDS[count] if count < len(WORDS) else f"{count:,}"
    if count == 1:
        return f"One {agent}"
    if problem.agents == 1:
        return f"{number} {agent}s with one controller, which sees all readings,"
    return f"{number} {agent}s, each with its own readings only,"


def verdict_sentence(problem: Problem, evaluation: Evaluation, certificate: Certificate | None) -> str:
    """How often the team is right, after how long, and whether its target is certified."""
    where = f" ({problem.remark})" if problem.remark else ""
    gives = "gives" if problem.unwrapped.agents == 1 else "give"
    said = (
        f"{team_words(problem)} {gives} the right answer {times(evaluation.accuracy)} times in 100 after "
        f"{evaluation.rounds:.1f} rounds of readings{where}; "
    )
    if not evaluation.beats_no_data:
        return f"{said}that is no better than the best answer without any reading."
    return f"{said}{_about_target(1 - evaluation.delta, certificate)}"


def _about_target(target: float, certificate: Certificate | None) -> str:
    """Whether the target is certified, and by which worlds: they are others than those of the share before."""
    goal = f"the target of {times(target)} in 100"
    if certificate is None:
        return f"{goal} has no certificate."
    right, worlds = f"{certificate.right:,}", f"{certificate.worlds:,}"
    if certificate.granted:
        return f"{goal} is certified by {right} right answers in {worlds} other worlds."
    few = certificate.right >= target * certificate.worlds
    why = "too few worlds to be sure" if few else f"fewer than {times(target)} in 100"
    return f"{goal} is not certified: {right} of {worlds} other worlds were right, {why}."


def cards(problem: Problem, analysis: Analysis, certificate: Certificate | None, everywhere: bool = True) -> list[Card]:
    """Right answers, rounds, how honest, and the certificate.

    `everywhere`: whether the team is as sure as it should be at every confidence, by the figure of calibration.
    """
    evaluation = analysis.evaluation
    honest = _honest(evaluation, everywhere)
    return [_right(evaluation), _rounds(problem, evaluation), honest, *_certified(certificate)]


def _right(evaluation: Evaluation) -> Card:
    target, bare = times(1 - evaluation.delta), times(evaluation.no_data_accuracy)
    reached = evaluation.accuracy >= 1 - evaluation.delta
    tone = "good" if reached else "bad"
    return Card(
        "right answers",
        percents(evaluation.accuracy),
        f"target {target}{PERCENT} · without readings {bare}{PERCENT}",
        tone,
    )


def _rounds(problem: Problem, evaluation: Evaluation) -> Card:
    actions = problem.unwrapped.display.actions
    counted = "cells read" if isinstance(actions, Moves) and actions.window is not None else "readings"
    forced = f" · {percents(evaluation.forced)} ended by the horizon" if evaluation.forced > 0 else ""
    return Card("rounds of readings", f"{evaluation.rounds:.1f}", f"{evaluation.readings:.0f} {counted} in all{forced}")


def surplus(evaluation: Evaluation) -> float:
    """Mean confidence at the stop less the share that is right; 0 within the noise of the worlds."""
    sure, right = evaluation.confidence, evaluation.accuracy
    noise = TWO_SIDED * math.sqrt(right * (1 - right) / evaluation.episodes)
    return 0.0 if abs(sure - right) <= noise else sure - right


def _honest(evaluation: Evaluation, everywhere: bool) -> Card:
    """Mean confidence at the stop against the share that is right."""
    more, worlds = surplus(evaluation), f"{evaluation.episodes:,} worlds"
    name, right = f"says {percents(evaluation.confidence)} sure, is right", percents(evaluation.accuracy)
    points = f"{100 * abs(more):.1f} points"
    if more > 0:
        return Card(name, right, f"too sure by {points}, in {worlds}", "bad")
    if more < 0:
        return Card(name, right, f"right more often than it says, by {points}, in {worlds}")
    if not everywhere:
        return Card(name, right, f"as sure as it should be on average, not at every confidence, in {worlds}")
    return Card(name, right, f"as sure as it should be on average, within the noise of {worlds}", "good")


def _certified(certificate: Certificate | None) -> list[Card]:
    if certificate is None:
        return []
    right = f"{certificate.right:,} of {certificate.worlds:,} other worlds right"
    sure = f"for {percent(certificate.level)} confidence"
    needed = f"{certificate.needed:,} needed" if certificate.needed is not None else "too few worlds"
    verdict = "granted" if certificate.granted else "refused"
    return [Card("certificate", verdict, f"{right}; {needed} {sure}", "good" if certificate.granted else "bad")]


def above_title(labels: Sequence[str], kind: str) -> str:
    """The line above the question: methods and problem."""
    return f"Report on {' and '.join(labels)} · problem {kind}"
