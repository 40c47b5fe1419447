"""One rollout past every stop shows what each stop would give, and where the target is reached."""

import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape import UserError
from icmape.baselines.tuning import Watched, own_level, watch_team
from icmape.cli import main
from icmape.evaluation.baseline_curves import baseline_stop_curve
from icmape.evaluation.equal_accuracy import at_equal_accuracy, gap, reading
from icmape.evaluation.stop_curves import CurvePoint, StopCurve, computed_curve, curve_of, stop_curve
from icmape.networks import Actors
from icmape.play.episodes import play
from icmape.play.inference import ExactInference
from icmape.play.open_loop import Uniform
from icmape.play.policy import LearnedPolicy
from icmape.play.stop import FixedLength, LearnedStop, Threshold
from icmape.play.team import Team
from tests.support import drawn, lively_team, small_bandit

EPISODES, SEED = 300, 5


def exact_team(stop: FixedLength | Threshold) -> Team:
    problem = small_bandit()
    return Team(problem, Uniform(problem.agents, problem.actions + 1), stop, ExactInference(), 0.3)


def moved(team: Team, level: float) -> Team:
    """The team with its stop really moved."""
    if isinstance(team.stop, FixedLength):
        return replace(team, stop=FixedLength(int(level)))
    if isinstance(team.stop, Threshold):
        return replace(team, stop=Threshold(level))
    return replace(team, policy=LearnedPolicy(team.policy.actors.stopping_at(jnp.float32(level))))


def clocked_team(stop: LearnedStop | Threshold) -> Team:
    """Actors that would stop by their plan after three of six rounds."""
    problem = small_bandit()
    make = lambda: Actors(problem, 6, "paper+last", 0.0, True, "learned", 3, key=jax.random.key(0))  # noqa: E731
    policy = LearnedPolicy(drawn(make, seed=2, scale=0.5))
    return Team(problem, policy, stop, ExactInference(), 0.3)


def test_a_team_whose_stop_may_not_be_heard_in_time_has_no_curve_and_is_compared_without(tmp_path) -> None:
    late, silent = lively_team().under(late=0.2), exact_team(Threshold(0.7)).under(silent=0.1)
    for team, named in ((late, "stop bits may come late"), (silent, "its STOP may not be heard")):
        with pytest.raises(UserError, match=named):
            stop_curve(team, episodes=EPISODES)
    late.save(tmp_path / "late.safetensors")
    words = ["--episodes", "50", "--baselines", "none", "--out", str(tmp_path)]
    assert main(["compare", str(tmp_path / "late.safetensors"), *words]) == 0


@pytest.mark.parametrize(
    ("team", "levels"),
    [
        (lively_team(), (-2.0, 0.0, 1.5)),
        (exact_team(Threshold(0.7)), (0.5, 0.7)),
        (exact_team(FixedLength(3)), (1.0, 3.0)),
        (clocked_team(LearnedStop()), (-2.0, 1.5)),
        (clocked_team(Threshold(0.99)), (0.5, 0.99)),
        (lively_team().under(lost=0.3, silent=0.1), (-2.0, 0.0, 1.5)),
        (exact_team(FixedLength(3)).under(lost=0.3, late=0.5), (1.0, 3.0)),
    ],
    ids=["learned", "threshold", "length", "clock", "threshold, clock", "learned, failing", "length, failing"],
)
def test_what_is_read_off_equals_real_rollouts(team: Team, levels: tuple[float, ...]) -> None:
    """Every episode ends in the round, and with the answer, of a team that has this stop."""
    watched = watch_team(team, EPISODES, SEED)
    lengths = set()
    for level in levels:
        real = play(moved(team, level), EPISODES, SEED)
        stops = watched.stops(own_level(team) if level == 0 else level)
        assert np.array_equal(stops, real.played.stop)
        assert np.array_equal(watched.right[np.arange(EPISODES), stops], real.at_stop(real.team.correct))
        lengths.add(float(stops.mean()))
    assert len(lengths) == len(levels), "the levels differ in what they do"


def test_the_curve_passes_through_the_team_as_it_is() -> None:
    """In the worlds of its evaluation; from no data at all to the end of the horizon."""
    team = lively_team()
    curve, result = stop_curve(team, episodes=EPISODES, seed=SEED), team.evaluate(EPISODES, SEED)
    assert curve.own == CurvePoint(0.0, pytest.approx(result.tau), pytest.approx(result.accuracy))
    taus = [point.tau for point in curve.points]
    assert taus[0] == 1
    assert taus[-1] == team.problem.horizon
    assert taus == sorted(taus)
    assert StopCurve.from_dict(curve.to_dict()).own == curve.own


def test_a_baseline_and_the_same_rule_as_a_team_have_one_curve() -> None:
    """The baseline is played up to its highest level, the team to the horizon: both cross the target together."""
    team = exact_team(Threshold(0.7))
    rule = baseline_stop_curve("random", team.problem, delta=0.6, episodes=EPISODES, seed=SEED)
    curve = stop_curve(team, episodes=EPISODES, seed=SEED, target=0.4)
    assert rule.tau is not None
    assert rule.tau == pytest.approx(curve.tau, abs=0.05)
    difference = gap([rule], [curve])
    assert difference is not None
    assert difference.paired
    assert rule.best.tau <= curve.points[-1].tau == team.problem.horizon


def sampled(seed: int, count: int = 1_500, slope: float = 1.0, horizon: int = 20) -> Watched:
    """Episodes of a fixed length: an answer is right from a random round on, which is uniform over the horizon."""
    begins = np.random.default_rng(seed).uniform(0, slope * (horizon - 1), count)
    rounds = np.arange(horizon, dtype=np.float32)
    statistic = np.broadcast_to(rounds, (count, horizon))
    return Watched(statistic, rounds[None] >= begins[:, None], np.full(count, horizon - 1))


def test_the_target_is_read_off_with_its_sampling_error() -> None:
    """Accuracy (τ-1)/19 reaches 0.9 at τ 18.1; its standard error is that of the accuracy, divided by the slope."""
    curve = curve_of(sampled(0), 0.9, seed=0, own=5.0)
    error = math.sqrt(0.9 * 0.1 / 1_500) * 19
    assert curve.tau == pytest.approx(18.1, abs=4 * error)  # false alarm: 1 in 16,000
    assert np.std(curve.resampled) == pytest.approx(error, rel=0.15)
    found = reading([curve])
    assert found.half == pytest.approx(1.96 * np.std(curve.resampled), rel=0.01)
    assert curve.own == CurvePoint(5.0, 6.0, pytest.approx(5 / 19, abs=0.04))


def test_errors_that_two_methods_share_cancel_in_their_gap() -> None:
    """The second is right a tenth later in the same worlds: its gap is far better known than the two τ."""
    first, later, apart = (
        curve_of(sampled(seed, slope=slope), 0.8, seed=world)
        for seed, slope, world in ((0, 1.0, 0), (0, 1.1, 0), (1, 1.1, 7))
    )
    paired, unpaired = gap([later], [first]), gap([apart], [first])
    assert paired is not None
    assert unpaired is not None
    assert (paired.paired, unpaired.paired) == (True, False)
    assert paired.difference == pytest.approx(0.1 * 0.8 * 19, abs=0.2)
    assert paired.half is not None
    assert unpaired.half is not None
    assert paired.half < 0.4 * unpaired.half
    assert gap([first], [first]) == (0.0, 0.0, True)


def test_the_spread_over_seeds_widens_the_interval() -> None:
    """Two computed curves at τ 4 and 6: mean 5, standard error 1, Student's t with one degree of freedom."""
    curves = [computed_curve([(1, tau - 1, 0.5), (2, tau, 0.9)], 0.9) for tau in (4.0, 6.0)]
    found = reading(curves)
    assert found.tau == 5.0
    assert found.half == pytest.approx(12.706, abs=0.001)
    exact = computed_curve([(1, 3.0, 0.8), (2, 4.0, 1.0)], 0.9)
    assert reading([exact])[:2] == (3.5, 0.0)
    difference = gap([exact], curves)
    assert difference is not None
    assert str(difference) == "-1.50 [-14.21, +11.21]"


def test_a_method_that_does_not_reach_the_target_is_said_to_fail() -> None:
    low = computed_curve([(1, 3.0, 0.5), (2, 8.0, 0.85), (3, 9.0, 0.8)], 0.9)
    high = computed_curve([(1, 3.0, 0.5), (2, 8.0, 0.95)], 0.9)
    found = reading([low, high])
    assert (found.tau, found.half, found.reached, found.teams) == (None, None, 1, 2)
    assert (reading([low]).best, reading([low]).best_tau) == (0.85, 8.0)
    first, second = at_equal_accuracy({"high": [high], "low": [low]})
    assert first.gap is None
    assert second.gap is None
    assert second.to_dict()["tau"] is None


def test_a_target_that_many_resamples_miss_has_no_interval() -> None:
    """One answer in twenty is never right: the highest accuracy is just above the target."""
    watched = sampled(0)
    flat = watched._replace(right=watched.right & (np.arange(1_500) >= 75)[:, None])
    curve = curve_of(flat, 0.9499, seed=0)
    assert 0.3 < np.isnan(curve.resampled).mean() < 0.7
    assert (reading([curve]).tau, reading([curve]).half) == (curve.tau, None)
    assert curve.tau == pytest.approx(20.0, abs=0.01)


def test_a_stop_with_two_values_cannot_be_moved() -> None:
    statistic = np.where(np.arange(6) >= 2, 1.0, -1.0).astype(np.float32) * np.ones((50, 1), np.float32)
    watched = Watched(statistic, np.ones((50, 6), bool), np.full(50, 5))
    curve = curve_of(watched, 0.9, seed=0, own=0.5)
    assert curve.points == (curve.own,) == (CurvePoint(0.5, 3.0, 1.0),)
    assert not reading([curve]).movable
