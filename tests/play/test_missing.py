"""Teams whose readings may never come: agents in the field, answers from what came, files."""

from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape import (
    STOP,
    Centralized,
    ExactInference,
    FixedLength,
    Range,
    Team,
    Unreliable,
    UserError,
    load,
)
from icmape.baselines.greedy import local_greedy
from icmape.learning.check_config import check
from icmape.learning.config import Config, with_algorithm
from icmape.learning.scores import choices
from icmape.play.episodes import play
from icmape.play.open_loop import Turns
from icmape.play.readings import Gate
from icmape.play.rollout import histories
from icmape.problem.simulate import range_faults
from icmape.zoo.signal.signal import Signal
from tests.coins import Coins
from tests.play.test_readings import DeclaresWrongly
from tests.problem.test_unreliable import brute_force
from tests.support import lively_team, small_bandit

EPISODES = 40


@pytest.fixture(scope="module")
def team() -> Team:
    return lively_team().under(lost=0.3, silent=0.05, late=0.3)


@pytest.fixture(scope="module")
def played(team: Team):
    return play(team, EPISODES, 5)


def given(values: np.ndarray, known: np.ndarray) -> list:
    """Nested lists with None where a value is not known."""
    return [[int(v) if k else None for v, k in zip(*row, strict=True)] for row in zip(values, known, strict=True)]


def test_an_agent_that_misses_readings_acts_as_in_simulation(team: Team, played) -> None:
    """The team in the field was loaded without failures: its agents learn of each missing reading by `missed`."""
    actions, seen, stop = played.played.actions, played.played.observations, played.played.stop
    world = int(np.argmax((~seen.arrived & seen.acted)[:, 1:].sum(axis=(1, 2)) * (stop > 2)))
    missed = 0
    for index in range(3):
        agent = lively_team().agent(index)
        for number in range(stop[world]):
            if seen.silent[world, number, index] or not seen.acted[world, number + 1, index]:
                break
            taken = int(actions[world, number, index])
            assert agent.act() == taken
            if seen.arrived[world, number + 1, index]:
                agent.see(taken, int(seen.reading[world, number + 1, index]))
            else:
                agent.missed()
                missed += 1
    assert missed > 1


def test_the_answer_is_that_of_the_simulation(team: Team, played) -> None:
    """From lists with None, by the team with failures and by the one without."""
    actions, seen, stop = played.played.actions, played.played.observations, played.played.stop
    for world in np.argsort(seen.arrived.mean(axis=(1, 2)))[:3]:
        rounds = int(stop[world])
        acted, arrived = (marks[world, 1 : rounds + 1] for marks in (seen.acted, seen.arrived))
        data = given(actions[world, :rounds], acted), given(seen.reading[world, 1 : rounds + 1], arrived)
        for asked in (team, lively_team()):
            np.testing.assert_allclose(asked.posterior(*data).scores, played.final[world], atol=1e-4)


def test_an_exact_answer_counts_the_loads_of_lost_readings() -> None:
    team = replace(lively_team(), inference=ExactInference())
    rounds = [([0, 0, 1], [1, None, 0]), ([0, None, 0], [None, None, 1])]
    actions, readings = zip(*rounds, strict=True)
    answer = team.posterior(list(actions), list(readings))
    np.testing.assert_allclose(answer.probabilities, brute_force(small_bandit(), rounds), atol=1e-5)
    assert isinstance(answer.reason, str)


def test_data_without_gaps_is_read_as_before(team: Team) -> None:
    data = [[0, 0, 1], [0, 1, 1]], [[1, 0, 0], [1, 1, 0]]
    np.testing.assert_array_equal(team.posterior(*data).scores, lively_team().posterior(*data).scores)


def test_past_readings_of_an_agent_may_be_missing() -> None:
    agent = lively_team().agent(1)
    agent.see(0, 1)
    agent.missed(1)
    assert lively_team().act(1, [0, 1], [1, None]) == agent.act()
    seen = lively_team().agent(1)
    seen.see(0, 1)
    seen.see(1, 0)
    assert not np.allclose(seen.scores, agent.scores)


def test_the_controller_of_a_centralized_team_is_told_which_readings_are_missing() -> None:
    """A reading that is missing is not one of 0."""
    central = Centralized(small_bandit())
    team = Team(central, Turns(central), FixedLength(3), ExactInference())
    joint = int(central.join([0, 1, 1]))
    agent = team.agent(0)
    agent.see(joint, [1, None, 0])
    np.testing.assert_array_equal(agent.memory.arrived, [True, False, True])
    agent.missed(joint)
    assert not agent.memory.arrived.any()
    some = team.posterior([[joint]], [[[1, None, 0]]]).probabilities
    np.testing.assert_allclose(some, brute_force(small_bandit(), [([0, 1, 1], [1, None, 0])]), atol=1e-5)


def test_a_team_for_failures_is_saved_loaded_and_acts(team: Team, tmp_path: Path) -> None:
    team.save(tmp_path / "team.safetensors")
    again = load(tmp_path / "team.safetensors")
    assert again.problem.rates == {"lost": 0.3, "silent": 0.05, "late": 0.3}
    agents = [each.agent(0) for each in (team, again, lively_team())]
    for agent in agents:
        agent.see(0, 1)
        agent.missed(1)
    for agent in agents[1:]:
        np.testing.assert_array_equal(agent.scores, agents[0].scores)
    assert again.under().problem is again.problem.problem


def test_silent_agents_are_not_asked_to_stop_in_training(team: Team, played) -> None:
    """Their STOP is masked, so that the loss of stops does not count it."""
    config = with_algorithm(Config(), "ppo")
    episodes = jax.tree.map(lambda x: x[:8], played.played)
    seen = jax.jit(jax.vmap(lambda e: histories(team.problem, e)))(episodes)
    np.testing.assert_array_equal(choices(config, seen)[..., -1], ~episodes.observations.silent)
    assert episodes.observations.silent.any()


def test_what_cannot_miss_readings_says_so() -> None:
    greedy = local_greedy(small_bandit_alone(), 0.9)
    with pytest.raises(UserError, match="keeps its own account of readings"):
        greedy.under(lost=0.1)
    with pytest.raises(UserError, match="keeps its own account of readings"):
        greedy.agent(0).missed(0)
    with pytest.raises(UserError, match="its reading must be None too"):
        lively_team().posterior([[0, None, 1]], [[1, 1, 0]])
    with pytest.raises(UserError, match="2 entries where 3 are expected"):
        lively_team().posterior([[0, 0, 1]], [[None, 1]])
    with pytest.raises(UserError, match="leave out late"):
        check(with_algorithm(Config(), "vdn"), Unreliable(small_bandit(), late=0.1))
    agent = lively_team().agent(0)
    while agent.act() != STOP:
        agent.missed()
    with pytest.raises(UserError, match="the episode is over"):
        agent.missed()


def test_what_is_missing_is_a_whole_reading_and_the_rest_passes_the_gate() -> None:
    team = lively_team()
    for readings, named in (
        ([[None, 2, 1]], "which holds 2"),
        ([[None, np.nan, 1]], "which holds nan"),
        ([[None, 1]], "2 entries where 3 are expected"),
        (None, "given None"),
        (np.array([[None, 0, 1]], object), "given"),
    ):
        with pytest.raises(UserError, match=named):
            team.posterior([[0, 0, 1]], readings)
    for actions in ([[0, None]], [[0, None, 2]], [[0, None, 0.5]], [[None, True, 0]]):
        with pytest.raises(UserError, match="actions must"):
            team.posterior(actions, [[None, None, None]])
    with pytest.raises(UserError, match="actions must"):
        team.posterior(None, [[None, None, None]])
    gate = Gate(team.problem)
    with pytest.raises(UserError, match="given a reading that is None"):
        gate.joint_readings(1, [[None, 0, 1]])
    with pytest.raises(UserError, match="given None"):
        team.agent(0).see(0, None)


def test_readings_of_several_parts_are_missing_as_a_whole() -> None:
    """Windows and positions: None in the place of both; a part alone is never missing."""
    problem = Signal(grid=7, window=3, move=1, distance=3, horizon=6, detectors=1, starts=[[3, 3], [1, 1]])
    gate, seen = Gate(problem), (np.zeros((3, 3)), [[3, 3]])
    readings, arrived = gate.some_joint_readings(2, [[seen, None], [None, seen]])
    np.testing.assert_array_equal(arrived, [[True, False], [False, True]])
    np.testing.assert_array_equal(readings.positions[0, 0], [[3, 3]])
    assert not readings.positions[0, 1].any()
    for odd in ((seen[0], None), (None, seen[1])):
        with pytest.raises(UserError, match="given"):
            gate.some_joint_readings(2, [[seen, None], [odd, seen]])
    stacked = [[seen[0].tolist(), None], [None, None]], [[[[3, 3]], None], [[[1, 1]], None]]
    with pytest.raises(UserError, match="one part is None and another is not"):
        gate.some_joint_readings(2, stacked)


def test_zeros_of_missing_readings_are_not_held_against_a_range_without_them() -> None:
    problem = Declares(agents=2)
    gate = Gate(Unreliable(problem, lost=0.5))
    _, arrived = gate.some_joint_readings(1, [[None] + [2] * (problem.agents - 1)])
    assert arrived.sum() == problem.agents - 1
    with pytest.raises(UserError, match="given"):
        gate.some_joint_readings(1, [[None] + [0] * (problem.agents - 1)])
    assert range_faults(Unreliable(problem, lost=0.5)) == []
    assert "outside its range" in range_faults(Unreliable(DeclaresWrongly(), lost=0.5))[0]


def test_missing_a_reading_is_no_decision_to_stop() -> None:
    agent = lively_team().agent(0)
    agent.missed()
    agent.see(0, 1)
    assert agent.round == 2
    while agent.choice() != STOP:
        agent.missed()
    with pytest.raises(UserError, match="after STOP there is no reading to miss"):
        agent.missed()
    assert agent.act() == STOP


class Declares(Coins):
    """Coins that show 2 or 3: nothing is ever 0."""

    def start(self, world, *, key):
        return (), super().start(world, key=key)[1] + jnp.int8(2)

    def step(self, world, state, actions, *, key):
        state, seen = super().step(world, state, actions, key=key)
        return state, jnp.where(seen > 0, 3, 2).astype(jnp.int8)

    @property
    def observation_range(self):
        return Range(2, 3, whole=True)


def small_bandit_alone():
    """One player, whose own data give a posterior."""
    from icmape.zoo.bandit.bandit import Bandit

    return Bandit(arms=2, players=1, horizon=5)
