"""Stops that look like those of a fixed schedule are named."""

from dataclasses import replace

from icmape.evaluation.analysis import Analysis
from icmape.evaluation.coordination import Coordination, Habit
from icmape.plot.stop_words import schedule_words
from tests.plot.analyses import analysis

STOP = 2


def stopping(active: tuple[int, ...], stops: dict[int, tuple[int, int]]) -> Analysis:
    """Episodes that reach each round, and how many of them each of two agents wants to stop there."""
    habits = tuple(
        Habit(number, agent, ((STOP, count), (0, active[number] - count)), active[number])
        for number, counts in stops.items()
        for agent, count in enumerate(counts)
    )
    return replace(analysis(), active=active, coordination=Coordination(STOP, (), habits, (), 100, active[0]))


def test_most_episodes_that_end_in_one_round_are_a_schedule() -> None:
    """95 of 100 end after one round, 5 after two."""
    said = schedule_words(stopping((100, 100, 5), {}), 10)
    assert said.startswith("95.0\u00a0% of the episodes end after 1 round of readings, as those of a fixed")


def test_a_round_in_which_all_stop_whatever_they_see_is_one_too() -> None:
    """28 of 100 reach it."""
    active = (100, 90, 60, 28)
    said = schedule_words(stopping(active, {2: (30, 10), 3: (28, 28)}), 10)
    assert said.startswith("After 3 rounds of readings all agents stop, whatever they read")
    assert "28.0\u00a0% of the episodes last so long" in said
    assert schedule_words(stopping(active, {3: (28, 27)}), 10) == "", "one of them goes on in one of 28 episodes"
    assert schedule_words(stopping((100, 60, 30, 3), {3: (3, 3)}), 10) == "", "hardly any episode comes so far"


def test_the_horizon_is_no_schedule_of_the_team() -> None:
    active = (100, 90, 60, 28)
    assert schedule_words(stopping(active, {3: (28, 28)}), 4) == ""
    assert schedule_words(stopping((100, 100, 100, 95), {}), 4) == ""
