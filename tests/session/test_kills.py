"""A session whose process is killed at random moments (`benchmarks.session_kills` does it 500 times)."""

from benchmarks.session_kills import measure
from benchmarks.session_team import Coins


def test_kills_lose_no_acknowledged_reading_and_change_no_answer(tmp_path):
    counts = measure(Coins(agents=3, horizon=9), kills=8, seed=0, folder=tmp_path)
    assert (counts.lost, counts.other_replies, counts.other_answers) == (0, 0, 0)
    assert counts.kills == 8
    assert counts.journals_read >= 5  # the others were killed before there was one
    assert counts.acknowledged > 8
