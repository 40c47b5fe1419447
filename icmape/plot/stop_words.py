"""Whether the stops of a team look like those of a fixed schedule, in a sentence."""

from icmape.evaluation.analysis import Analysis
from icmape.plot.verdict import percents

MOST = 0.9  # share of the episodes that end after the same number of rounds
ALL = 0.99  # share of an agent's choices that are STOP where it stops whatever it sees
SOME = 0.05  # share of the episodes that have to reach such a round


def schedule_words(analysis: Analysis, horizon: int) -> str:
    """A sentence where most episodes end in one round, or where all agents stop whatever they see; else empty."""
    ends = [now - later for now, later in zip(analysis.active, (*analysis.active[1:], 0), strict=True)]
    last, total = max(range(len(ends)), key=ends.__getitem__), max(analysis.active[0], 1)
    if ends[last] >= MOST * total and last < horizon - 1:
        share = percents(ends[last] / total)
        return f"{share} of the episodes end after {_rounds(last)}, as those of a fixed schedule all do."
    for number, reached in enumerate(analysis.active[: horizon - 1]):
        if reached >= SOME * total and _all_stop(analysis, number):
            return (
                f"After {_rounds(number)} all agents stop, whatever they read, as in a fixed schedule: "
                f"{percents(reached / total)} of the episodes last so long."
            )
    return ""


def _all_stop(analysis: Analysis, number: int) -> bool:
    """Whether every agent chooses STOP in a round in nearly all episodes that reach it."""
    who = analysis.coordination
    habits = [habit for habit in who.habits if habit.round == number]
    stops = [dict(habit.actions).get(who.stop, 0) >= ALL * habit.active for habit in habits]
    return bool(stops) and all(stops)


def _rounds(count: int) -> str:
    return f"{count} round{'' if count == 1 else 's'} of readings"
