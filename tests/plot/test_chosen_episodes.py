"""Episodes of a report are chosen by rule: what is typical comes first, and a finding before none."""

import numpy as np

from icmape.evaluation.single import play_one
from icmape.play.episodes import play
from icmape.plot.chosen_episodes import chosen_episodes, near_median
from icmape.plot.drawings import drawing_of
from tests.plot.test_drawing import coin_team, signal_team


def test_worlds_near_the_median_length_come_first() -> None:
    stop = np.array([9, 4, 5, 1, 5, 30])
    assert near_median(np.array([0, 1, 2, 3, 4]), stop) == [2, 4, 1, 0, 3]
    assert near_median(np.array([], int), stop) == []


def test_a_right_one_a_wrong_one_and_the_longest() -> None:
    judged = play(coin_team(), episodes=60, seed=3)
    right, stop = np.arange(60) % 5 > 0, np.asarray(judged.played.stop)
    first, second, third = chosen_episodes(coin_team(), right, stop, 3, 3)
    assert right[first.world]
    assert stop[first.world] == np.median(stop[right])
    assert second.rule == "Wrong, of median length"
    assert not right[second.world]
    assert stop[second.world] == np.median(stop[~right])
    assert [one.played.rounds for one in (first, second, third)] == [
        stop[one.world] + 1 for one in (first, second, third)
    ]
    assert stop[third.world] == stop[[w for w in range(60) if w not in (first.world, second.world)]].max()
    assert third.title == f"The longest, {stop[third.world]} rounds (world {third.world})"


def test_where_all_are_right_the_first_worlds_fill_up() -> None:
    chosen = chosen_episodes(coin_team(), np.ones(4, bool), np.full(4, 2), 0, 3)
    assert [(one.rule, one.world) for one in chosen] == [
        ("Right, of median length", 0),
        ("The longest", 1),
        ("One of the first worlds", 2),
    ]
    assert chosen_episodes(coin_team(), np.ones(4, bool), np.full(4, 2), 0, 0) == []


def test_an_episode_with_a_finding_is_shown_before_one_without() -> None:
    def finds(world: int) -> bool:
        drawing = drawing_of(play_one(signal_team(), world))
        return any(drawing.found(agent, number) for agent in range(3) for number in range(4))

    found = [finds(world) for world in range(12)]
    assert True in found
    (shown,) = chosen_episodes(signal_team(), np.ones(12, bool), np.full(12, 3), 0, 1)
    assert shown.world == found.index(True)
