"""A team in the field does what it did in the rollout."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape import STOP, UserError
from icmape.play.episodes import play
from icmape.play.inference import ExactInference
from icmape.play.open_loop import Schedule
from icmape.play.rollout import Episode
from icmape.play.stop import FixedLength, Threshold
from icmape.play.team import Team
from icmape.problem import Centralized
from icmape.zoo.bandit.bandit import Bandit
from tests.support import lively_team, small_bandit

PROBLEM = small_bandit()


@pytest.fixture(scope="module")
def team() -> Team:
    return lively_team()


@pytest.fixture(scope="module")
def episodes(team) -> list[Episode]:
    """Greedy episodes of different lengths, one that reached the horizon among them."""
    played = play(team, 300, seed=1).played
    firsts = [int(np.flatnonzero(played.stop == stop)[0]) for stop in sorted(set(played.stop.tolist()))]
    assert len(firsts) >= 3
    assert played.stop[firsts[-1]] == PROBLEM.horizon - 1
    return [jax.tree.map(lambda x, row=row: x[row], played) for row in firsts]


def test_agents_acting_alone_reproduce_the_rollout(team, episodes):
    """Each from its own readings only: the same actions in every round, and STOP where the episode ended."""
    for episode in episodes:
        agents = [team.agent(i) for i in range(PROBLEM.agents)]
        for t in range(episode.stop):
            for i, agent in enumerate(agents):
                assert agent.act() == episode.actions[t, i]
                agent.see(int(episode.actions[t, i]), episode.observations[t + 1, i])
        last = [agent.act() for agent in agents]
        stored = [STOP if a == PROBLEM.actions else int(a) for a in episode.actions[episode.stop]]
        assert last == stored
        assert STOP in last


def test_act_from_a_whole_history_is_act_round_by_round(team, episodes):
    episode = episodes[-1]
    for agent in range(PROBLEM.agents):
        for t in (0, 3, int(episode.stop)):
            stored = int(episode.actions[t, agent])
            told = team.act(agent, episode.actions[:t, agent], episode.observations[1 : t + 1, agent])
            assert told == (STOP if stored == PROBLEM.actions else stored)


def test_posterior_is_the_inference_at_that_prefix(team, episodes):
    space, episode = PROBLEM.hypotheses, episodes[-1]
    unrolled = eqx.filter_jit(lambda inference, e: inference.unroll(PROBLEM, e))
    for inference in (team.inference, ExactInference()):
        judged = Team(PROBLEM, team.policy, team.stop, inference)
        scores = unrolled(inference, jax.tree.map(jnp.asarray, episode))
        for t in (0, 2, int(episode.stop)):
            answer = judged.posterior(episode.actions[:t], episode.observations[1 : t + 1])
            expected = np.exp(np.asarray(space.log_probabilities(scores[t])))
            np.testing.assert_allclose(answer.probabilities, expected, atol=1e-5)
            np.testing.assert_array_equal(answer.decision, expected.argmax(1))
            assert answer.confidence == pytest.approx(expected.max(1).prod(), rel=1e-4)


def test_exact_posterior_of_a_hand_worked_history():
    """All three players on arm 0, all paid: it serves three. Nothing is known of arm 1."""
    team = Team(PROBLEM, Schedule(jnp.zeros((1, 3), jnp.int32), 3), FixedLength(1), ExactInference())
    answer = team.posterior([[0, 0, 0]], [[1, 1, 1]])
    np.testing.assert_allclose(answer.probabilities, [[0, 0, 1], [1 / 3, 1 / 3, 1 / 3]], atol=1e-6)
    assert answer.confidence == pytest.approx(1 / 3, rel=1e-5)


@pytest.mark.parametrize(
    ("mistake", "named"),
    [
        (lambda team: team.act(0, [1, 0], [1]), "2 actions do not match 1 observations"),
        (lambda team: team.act(0, [7], [1]), "0..1; given 7"),
        (lambda team: team.act(3), "0..2; given 3"),
        (lambda team: team.act(-1), "0..2; given -1"),
        (lambda team: team.posterior([[0, 0, 5]], [[1, 1, 1]]), "0..1; given 0..5"),
        (lambda team: team.posterior([[0, 0, -1]], [[1, 1, 1]]), "0..1; given -1..0"),
        (lambda team: team.posterior([[0, 0, 0]] * 7, [[1, 1, 1]] * 7), "7 rounds are more than the horizon allows"),
        (lambda team: team.posterior([[0, 0, 0]] * 2, [[1, 1, 1]]), "2 rounds"),
        (lambda team: team.posterior([[0, 0]], [[1, 1]]), "agents"),
    ],
)
def test_histories_that_cannot_be_are_refused(mistake, named):
    with pytest.raises(UserError, match=named.replace(".", r"\.")):
        mistake(lively_team())


def test_an_agent_of_a_schedule_follows_its_column_and_stops_in_time():
    table = jnp.array([[0, 1, 1], [1, 0, 1], [0, 0, 0]])
    team = Team(PROBLEM, Schedule(table, 3), FixedLength(4), ExactInference())
    agent = team.agent(1)
    taken = []
    for _ in range(5):
        taken.append(agent.act())
        if taken[-1] != STOP:
            agent.see(taken[-1], 0)
    assert taken == [1, 0, 0, 1, STOP]


def test_a_team_that_stops_on_everyones_data_has_no_agent_that_acts_alone():
    team = Team(PROBLEM, Schedule(jnp.zeros((1, 3), jnp.int32), 3), Threshold(0.9), ExactInference())
    with pytest.raises(UserError, match="no agent of it can act alone"):
        team.agent(0)


def test_a_team_fits_one_line():
    shown = repr(lively_team())
    assert shown == "Team(Bandit(2, 3, 7), policy=learned, stop=learned, inference=network, δ=0.05)"
    odd = Bandit(2, 3, 7, mean_low=0.5)
    table = Schedule(jnp.zeros((1, 3), jnp.int32), 3)
    team = Team(odd, table, Threshold(0.9), ExactInference())
    assert str(team).startswith("Team(Bandit(2, 3, 7, mean_low=0.5), policy=schedule, stop=threshold 0.9,")
    centralized = Team(Centralized(PROBLEM), table, FixedLength(2), ExactInference())
    assert "Centralized(Bandit(2, 3, 7)), policy=schedule, stop=length 2" in str(centralized)
