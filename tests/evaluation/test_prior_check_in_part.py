"""Sessions of which not everything was told: the prior check compares them with simulated ones that lack the same."""

from functools import cache

import numpy as np
import pytest

from icmape.evaluation.prior_check import check_prior
from icmape.evaluation.prior_check.check import compare
from icmape.evaluation.prior_check.prepare import prepare
from icmape.evaluation.prior_check.recorded import read_sessions
from icmape.play.episodes import play
from icmape.play.team_files import load


@cache
def good_worlds():
    """What `bandit-quick` does and reads in worlds of its prior that last four rounds or more: actions and readings."""
    played = play(load("bandit-quick"), 40, seed=77, exact=0).played
    lasting = np.asarray(played.stop) >= 4
    return np.asarray(played.actions)[lasting], np.asarray(played.observations)[lasting, 1:]


@cache
def good_stops():
    """The rounds in which the sessions of `good_worlds` end."""
    stops = np.asarray(play(load("bandit-quick"), 40, seed=77, exact=0).played.stop)
    return stops[stops >= 4]


def told_in_part(folder, world, *, stop=None, rounds=4):
    """A session of `bandit-quick` whose last reading of player 3 is not told. A person stops, or a player."""
    actions, readings = (rows[world] for rows in good_worlds())
    with load("bandit-quick").session(folder / f"{world}") as session:
        for number in range(rounds):
            for player in range(2 if number == rounds - 1 else 3):
                action, reading = int(actions[number, player]), readings[number, player].tolist()
                session.tell(player, action, reading, round=number)
        session.stop(agent=stop, round=rounds)
    return folder / f"{world}"


def test_good_sessions_told_in_part_fit(tmp_path, monkeypatch):
    """More than two of 24 have p < 0.01 with a probability of 0.2 %. They were 21 with simulated confidences of all
    rounds."""
    monkeypatch.setattr("os.fsync", lambda file: None)
    team, p_values = load("bandit-quick"), []
    for world in range(24):
        rows = read_sessions(team, [str(told_in_part(tmp_path, world))])
        assert (rows[0].left_out, rows[0].missing) == (1, 0)
        check = compare(team, rows, worlds=1000, seed=world + 1)
        assert any("1 round does not count" in remark for remark in check.remarks)
        p_values.append(check.p_value)
    assert np.sum(np.array(p_values) < 0.01) <= 2, p_values


def test_the_confidence_of_simulated_sessions_is_that_of_answers_from_the_same_rounds(tmp_path):
    """Nothing but the prior is left of a session of one round that does not count."""
    team = load("bandit-quick")
    with team.session(tmp_path) as session:
        session.tell(0, int(good_worlds()[0][0, 0, 0]), 1, round=0)
        session.missed(1, int(good_worlds()[0][0, 0, 1]), round=0)
        session.stop()
    check = check_prior(team, [str(tmp_path)], worlds=1000)
    (row,) = (row for row in check.rows if row.name == "confidence at the stop")
    assert row.low == pytest.approx(row.recorded, abs=1e-5)
    assert row.high == pytest.approx(row.recorded, abs=1e-5)
    assert check.p_value == 1


def test_prepared_folders_do_not_compare_the_confidence_of_a_part(tmp_path, monkeypatch):
    """More than three of 24 good sessions warn with a probability of 0.01 %, if one in 100 does. Seven did."""
    monkeypatch.setattr("os.fsync", lambda file: None)
    team, warnings = load("bandit-quick"), []
    prepare(team, [str(tmp_path)], worlds=1000, level=0.01, seed=0)
    for world in range(24):
        stop = int(good_stops()[world])
        with load("bandit-quick").session(told_in_part(tmp_path, world, stop=0, rounds=stop)) as session:
            warnings.append(session.handle({"type": "answer"}).get("warning", ""))
    assert sum(map(bool, warnings)) <= 3, warnings
    assert not any("confidence at" in text for text in warnings)
