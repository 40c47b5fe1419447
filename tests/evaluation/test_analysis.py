"""Everything that is said of a team comes from its episodes, and says the same when they come from a file."""

import json
import math
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from icmape.evaluation.analysis import LEVELS, Analysis, analyse
from icmape.evaluation.calibration import calibrate
from icmape.evaluation.metrics import evaluate
from icmape.evaluation.results import load_episodes, save_episodes
from icmape.play.episodes import Judged, play
from icmape.play.inference import ExactInference
from icmape.play.open_loop import Schedule
from icmape.play.stop import FixedLength
from icmape.play.team import Team
from icmape.problem import Centralized
from icmape.zoo.bandit.bandit import Bandit
from tests.support import lively_team

EPISODES = 300


@pytest.fixture(scope="module")
def played():
    return play(lively_team(), EPISODES, seed=1)


@pytest.fixture(scope="module")
def found(played) -> Analysis:
    return analyse(lively_team(), played, 1)


def test_its_numbers_are_those_of_an_evaluation(found: Analysis) -> None:
    assert found.evaluation == evaluate(lively_team(), episodes=EPISODES, seed=1)
    assert found.calibration.ece == pytest.approx(found.evaluation.ece)
    assert found.calibration.log_loss == pytest.approx(found.evaluation.log_loss, rel=1e-5)
    assert found.exact_calibration.ece == pytest.approx(found.evaluation.exact_ece)
    assert found.at_stop.count == EPISODES
    assert sum(one.size * (one.accuracy or 0) for one in found.at_stop.bins) == pytest.approx(
        EPISODES * found.evaluation.accuracy
    )


def test_every_round_that_took_place_is_counted_once(found: Analysis, played) -> None:
    assert found.calibration.count == sum(played.played.stop + 1) == sum(found.active)
    assert found.active[0] == EPISODES
    assert found.active[-1] == 0


def test_like_is_compared_with_like(found: Analysis, played) -> None:
    """Where Bayes' rule judged the first hundred episodes, the team's own calibration is on just these."""
    first = Judged(*(column[:100] for column in played.exact))
    less = analyse(lively_team(), played._replace(exact=first, distance=played.distance[:100]), 1)
    rows = [(row, round_) for row in range(100) for round_ in range(played.played.stop[row] + 1)]
    sure, right, loss = (np.array([column[place] for place in rows]) for column in played.team)
    expected = calibrate(sure, right, loss, np.array([row for row, _ in rows]))
    for name in ("ece", "largest_gap", "brier", "log_loss"):
        assert getattr(less.own_calibration, name) == pytest.approx(getattr(expected, name), rel=1e-5), name
    assert [one.size for one in less.own_calibration.bins] == [one.size for one in expected.bins]
    assert less.own_calibration.count == less.exact_calibration.count == len(rows) < less.calibration.count
    assert less.calibration == found.calibration
    assert found.own_calibration == found.calibration, "all were judged"


def test_distance_is_the_mean_over_rounds_that_took_place(found: Analysis, played) -> None:
    rows = [played.distance[row, : stop + 1] for row, stop in enumerate(played.played.stop)]
    assert found.distance.nats == pytest.approx(np.concatenate(rows).mean(), rel=1e-5)
    assert found.distance.nats_at_stop == pytest.approx(np.mean([row[-1] for row in rows]), rel=1e-5)
    assert found.distance.episodes == EPISODES


def test_credible_sets_are_those_at_the_stop(found: Analysis) -> None:
    assert [one.level for one in found.credible] == list(LEVELS)
    sizes = [one.size for one in found.credible]
    assert sizes == sorted(sizes)
    assert all(one.episodes == EPISODES for one in found.credible)


def test_stored_episodes_say_the_same(found: Analysis, played, tmp_path: Path) -> None:
    save_episodes(tmp_path / "e.npz", "these", played)
    assert analyse(lively_team(), load_episodes(tmp_path / "e.npz", "these"), 1) == found


def test_an_analysis_survives_json(found: Analysis) -> None:
    assert Analysis.from_dict(json.loads(json.dumps(found.to_dict()))) == found


def test_an_analysis_without_exact_posterior_survives_json(played) -> None:
    less = analyse(lively_team(), played._replace(exact=None, distance=None), 1)
    assert (less.exact_calibration, less.own_calibration, less.distance) == (None, None, None)
    assert less.evaluation.exact_log_loss is None
    assert Analysis.from_dict(json.loads(json.dumps(less.to_dict()))) == less


def test_actions_are_called_what_the_problem_calls_them(found: Analysis) -> None:
    assert found.names == {0: "arm 1", 1: "arm 2", 2: "STOP"}
    assert found.coordination.stop == 2


@pytest.fixture(scope="module")
def together() -> tuple[Team, Team]:
    """Two players who do the same in the same worlds: apart, and moved as one."""
    table = jnp.array([[1, 0], [0, 0], [1, 1]])
    problem, rest = Bandit(2, 2, 6), (FixedLength(3), ExactInference())
    joint = Centralized(problem).join(table)[:, None]
    return Team(problem, Schedule(table, 3), *rest), Team(Centralized(problem), Schedule(joint, 5), *rest)


def test_a_centralized_team_is_told_agent_by_agent(together: tuple[Team, Team]) -> None:
    apart, one = together
    episodes = play(one, 40, seed=2)
    assert episodes.played.actions.shape[2] == 1
    actions = one.problem.agent_actions(episodes.played.actions)
    np.testing.assert_array_equal(actions[:, :4], np.broadcast_to([[1, 0], [0, 0], [1, 1], [2, 2]], (40, 4, 2)))
    centrally, separately = analyse(one, episodes, 2), analyse(apart, play(apart, 40, seed=2), 2)
    assert centrally.coordination == separately.coordination
    assert centrally.names == separately.names
    assert centrally.coordination.stops[0].agents == (0, 1)
    assert math.isclose(centrally.evaluation.accuracy, separately.evaluation.accuracy)
