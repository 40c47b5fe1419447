"""Who does what and who ends it, in four episodes that fit a page.

Two agents, actions 0 and 1, STOP is 2, and the horizon ends what is left in round 3:
    A  (0, 1) (0, 0) (2, 1)          the first agent stops
    B  (0, 1) (2, 2)                 both stop
    C  (1, 1) (0, 0) (0, 0) (2, 2)   nobody wants to
    D  (0, 1) (0, 2)                 the second stops
"""

import numpy as np

from icmape.evaluation.coordination import (
    MOST_ACTIONS,
    Habit,
    JointAction,
    StopSet,
    coordination,
    still_active,
    stop_sets,
)

STOP, HORIZON = 2, 4
ACTIONS = np.array(
    [
        [[0, 1], [0, 0], [2, 1], [0, 0]],
        [[0, 1], [2, 2], [0, 0], [0, 0]],
        [[1, 1], [0, 0], [0, 0], [2, 2]],
        [[0, 1], [0, 2], [0, 0], [0, 0]],
    ]
)
ENDS = np.array([2, 1, 3, 1])
FOUND = coordination(ACTIONS, ENDS, STOP, HORIZON)


def test_joint_actions_are_those_of_episodes_that_go_on_and_active_are_all_that_had_not_ended():
    assert FOUND.joint == (JointAction(0, (0, 1), 3, 4), JointAction(1, (0, 0), 2, 4), JointAction(2, (0, 0), 1, 2))


def test_habits_count_stops_as_well_and_the_commonest_come_first():
    rows = {(habit.round, habit.agent): habit for habit in FOUND.habits}
    assert rows[0, 0] == Habit(0, 0, ((0, 3), (1, 1)), 4)
    assert rows[1, 0] == Habit(1, 0, ((0, 3), (2, 1)), 4)
    assert rows[1, 1] == Habit(1, 1, ((0, 2), (2, 2)), 4)
    assert rows[2, 0] == Habit(2, 0, ((2, 1), (0, 1)), 2)
    assert rows[3, 1] == Habit(3, 1, ((2, 1),), 1)
    assert len(rows) == 8


def test_a_forced_stop_is_nobodys():
    assert FOUND.stops == (StopSet((0,), 1), StopSet((1,), 1), StopSet((0, 1), 1))
    assert (FOUND.voluntary, FOUND.episodes) == (3, 4)


def test_stop_sets_come_by_size_and_then_by_how_often():
    ends = np.zeros(6, int)
    actions = np.array([[[2, 2]], [[2, 2]], [[2, 2]], [[0, 2]], [[0, 2]], [[2, 0]]])
    assert stop_sets(actions, ends, STOP, HORIZON) == (StopSet((1,), 2), StopSet((0,), 1), StopSet((0, 1), 3))


def test_rounds_behind_the_last_stop_are_not_looked_at():
    """Stored episodes end with the last round that any of them reached."""
    assert coordination(ACTIONS[[0, 1, 3], :3], ENDS[[0, 1, 3]], STOP, HORIZON) == coordination(
        ACTIONS[[0, 1, 3]], ENDS[[0, 1, 3]], STOP, HORIZON
    )


def test_only_the_commonest_actions_are_named():
    many = np.arange(10)[:, None, None]
    (habit,) = coordination(np.concatenate([many, np.full_like(many, 10)], 1), np.ones(10, int), 10, 5).habits[:1]
    assert len(habit.actions) == MOST_ACTIONS
    assert habit.active == 10


def test_active_episodes_add_up_to_the_mean_stopping_time():
    """4 before round 0 and round 1, 2 before round 2, 1 before round 3: 11 = 4 τ."""
    assert still_active(ENDS) == [4, 4, 2, 1, 0]
    assert sum(still_active(ENDS)) / 4 == np.mean(ENDS + 1)
