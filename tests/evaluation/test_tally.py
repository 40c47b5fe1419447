"""Metrics from batches are those of the whole, and few batches are in memory at once."""

import weakref

import numpy as np
import pytest

from icmape.evaluation.metrics import evaluate, summarise
from icmape.evaluation.tally import Tally
from icmape.play import episodes
from icmape.play.episodes import play, play_parts
from tests.support import lively_team

EPISODES = 250


@pytest.mark.parametrize("exact", [0, 90, EPISODES])
def test_metrics_do_not_depend_on_batches(monkeypatch, exact):
    team = lively_team()
    whole = summarise(team, play(team, EPISODES, seed=1, exact=exact), seed=1)
    monkeypatch.setattr(episodes, "BATCH", 60)  # so the last batch, and the last one judged exactly, are not full
    parts = evaluate(team, episodes=EPISODES, seed=1, exact=exact)
    assert (parts.episodes, parts.exact_episodes) == (EPISODES, exact)
    assert {name for name, value in whole.to_dict().items() if value is None} == {
        name for name, value in parts.to_dict().items() if value is None
    }
    for name, value in whole.to_dict().items():
        expected = pytest.approx(value, rel=1e-6) if isinstance(value, float) else value
        assert getattr(parts, name) == expected, name


def test_metrics_by_hand():
    """Of three worlds, from the columns that were played."""
    team = lively_team()
    played = play(team, 3, seed=4)
    tally = Tally(team.problem.horizon).add(played)
    stops = np.asarray(played.played.stop)
    assert tally.tau == pytest.approx(np.mean(stops + 1))
    assert tally.tau_deviation == pytest.approx(np.std(stops + 1))
    assert tally.forced == np.mean(stops == team.problem.horizon - 1)
    losses = [played.team.log_loss[row, t] for row in range(3) for t in range(stops[row] + 1)]
    assert tally.team.mean_log_loss == pytest.approx(np.mean(losses), rel=1e-6)
    assert tally.team.accuracy == np.mean([played.team.correct[row, stops[row]] for row in range(3)])


def test_batches_that_were_added_are_not_kept(monkeypatch):
    monkeypatch.setattr(episodes, "BATCH", 10)
    tally, references, most = Tally(lively_team().problem.horizon), [], 0
    for part in play_parts(lively_team(), 400, seed=2, exact=0):
        tally.add(part)
        references.append(weakref.ref(part.final))
        most = max(most, sum(reference() is not None for reference in references))
    assert (tally.episodes, len(references)) == (400, 40)
    assert most <= 5, "one is read, one is played, and up to three wait"
