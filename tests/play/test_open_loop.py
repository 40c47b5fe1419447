"""Policies that look at nothing, judged with exact Bayes: numbers known from the theory and from the paper."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape.play.episodes import play
from icmape.play.inference import ExactInference
from icmape.play.open_loop import Schedule, Uniform, schedule_from_loads
from icmape.play.policy import Round
from icmape.play.stop import FixedLength
from icmape.play.team import Team
from icmape.problem import Features
from icmape.zoo.bandit.bandit import Bandit

# Every arm is tried with loads 2, 2, 3, 3, 4 and 5 (and once with a single player)
BEST_LOADS = [
    (5, 0, 0), (0, 5, 0), (0, 0, 5),
    (4, 1, 0), (0, 4, 1), (1, 0, 4),
    (3, 2, 0), (0, 3, 2), (2, 0, 3), (3, 2, 0), (0, 3, 2), (2, 0, 3),
]  # fmt: skip

# The paper's table of modal joint actions (tab:joint_action_freq), steps 0 to 13
PAPER_TABLE = [
    (2, 2, 2, 2, 2),
    (2, 2, 2, 2, 2),
    (2, 2, 2, 2, 2),
    (2, 0, 2, 2, 2),
    (2, 0, 0, 2, 2),
    (0, 0, 0, 0, 0),
    (0, 0, 0, 0, 1),
    (1, 0, 0, 0, 1),
    (1, 0, 0, 1, 1),
    (1, 1, 1, 1, 1),
    (1, 2, 1, 1, 1),
    (1, 2, 2, 1, 1),
    (1, 2, 2, 1, 1),
    (1, 2, 2, 2, 1),
]


@pytest.fixture(scope="module")
def judge():
    """Share of right answers after so many rounds of a schedule, by the exact posterior on 10,000 worlds of A3P5."""
    problem = Bandit(arms=3, players=5, horizon=15)

    def after(loads_or_actions: jnp.ndarray) -> tuple[Team, np.ndarray]:
        team = Team(problem, Schedule(loads_or_actions, 4), FixedLength(14), ExactInference())
        return team, play(team, 10_000, seed=0).team.correct.mean(axis=0)

    return after


def test_loads_of_the_best_schedule_are_as_said():
    tried = [sorted(row[arm] for row in BEST_LOADS if row[arm] > 1) for arm in range(3)]
    assert tried == [[2, 2, 3, 3, 4, 5]] * 3


def test_a_table_from_loads_has_these_loads():
    table = np.asarray(schedule_from_loads(BEST_LOADS))
    np.testing.assert_array_equal([[np.sum(row == arm) for arm in range(3)] for row in table], BEST_LOADS)


def test_the_best_open_loop_schedule(judge):
    """12 rounds score 0.918. The standard error is 0.0027, 0.01 is 3.6 of them: false alarm 3e-4 over keys."""
    _, right = judge(schedule_from_loads([*BEST_LOADS, (5, 0, 0), (5, 0, 0)]))
    assert right[12] == pytest.approx(0.918, abs=0.01)
    assert right[0] == pytest.approx(1 / 125, abs=0.005)  # nothing seen yet


def test_the_papers_joint_actions_as_a_schedule(judge):
    """0.855 after 12 and 0.912 after 14 rounds: standard errors 0.0035 and 0.0028, false alarm below 1e-3 over keys."""
    team, right = judge(jnp.array(PAPER_TABLE))
    assert right[12] == pytest.approx(0.855, abs=0.012)
    result = team.evaluate()
    assert result.accuracy == pytest.approx(0.912, abs=0.01)
    assert result.accuracy == pytest.approx(right[14])
    assert result.rounds == 14
    assert result.ece < 0.01  # the exact posterior is calibrated
    assert result.beats_no_data


def scores(policy, rounds: int, draws: int = 1) -> np.ndarray:
    """Scores of every agent: draws, rounds, agents, choices."""

    def one(number, key):
        view = Features(jnp.zeros((policy.agents, 1)))
        seen = Round(number, view, jnp.zeros(policy.agents, jnp.int32), (), ())
        return policy.decide(policy.start(), seen, key=key)[1]

    keys = jax.random.split(jax.random.key(0), draws)
    every = jax.vmap(lambda key: jax.vmap(lambda t: one(t, jax.random.fold_in(key, t)))(jnp.arange(rounds)))
    return np.asarray(jax.jit(every)(keys))


def test_a_schedule_starts_again_when_it_ends():
    found = scores(Schedule(jnp.array([[0, 1], [1, 1]]), 3), rounds=5)[0]
    np.testing.assert_array_equal(found.argmax(-1), [[0, 1], [1, 1], [0, 1], [1, 1], [0, 1]])
    assert np.all(found[..., -1] < found.max(-1))  # never STOP


def test_chance_takes_every_arm_alike_and_never_stops():
    """2000 draws a player of 3 arms; 5 standard errors: false alarm about 1e-5 over all shares."""
    found = scores(Uniform(3, 4), rounds=5, draws=400).reshape(-1, 3, 4)
    assert np.all(found[..., -1] < found.max(-1))
    actions, error = found.argmax(-1), np.sqrt(2 / 9 / 2000)
    shares = np.stack([np.bincount(actions[:, player], minlength=3) for player in range(3)]) / 2000
    np.testing.assert_allclose(shares, 1 / 3, atol=5 * error)
    assert np.mean(actions[:, 0] == actions[:, 1]) == pytest.approx(1 / 3, abs=5 * error)  # each draws for itself
