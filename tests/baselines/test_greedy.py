"""Rules for any problem with an exact posterior: the schedule of turns, and what tells most, worked out by hand."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape import UserError
from icmape.baselines import rules, tuning
from icmape.baselines.by_name import find_teacher
from icmape.baselines.greedy import CentralGreedy, LocalGreedy, central_greedy, local_greedy
from icmape.baselines.imagined import imagine
from icmape.baselines.registry import baseline_curve, baseline_team
from icmape.evaluation.stop_curves import CurvePoint, tau_at
from icmape.learning.config import Config, with_algorithm
from icmape.play.open_loop import Turns
from icmape.play.rollout import histories, play_greedy, policy_scores
from icmape.play.stop import FixedLength
from icmape.problem import Categorical, Features, Problem, check_problem
from icmape.settings import override
from tests.coins import Bits, Coins, CoinWorld

BITS = Bits()


def played(team, worlds=20):
    keys = jax.random.split(jax.random.key(1), worlds)
    return eqx.filter_jit(play_greedy)(team.problem, team.behaviour(), keys)


# -- turns


class Hall(Problem):
    """In which of three places is it? An agent steps down, stays or steps up, and may not leave the hall."""

    agents: int = eqx.field(static=True)
    actions: int = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    hypotheses: Categorical

    def __init__(self, agents: int = 1, horizon: int = 8):
        self.agents, self.actions, self.horizon, self.hypotheses = agents, 3, horizon, Categorical(3)

    def sample(self, *, key):
        return CoinWorld(jax.random.randint(key, (), 0, 3).astype(jnp.int8))

    def start(self, world, *, key):
        return jnp.zeros(self.agents, jnp.int8), jnp.zeros((self.agents, 2), jnp.int8)

    def step(self, world, state, actions, *, key):
        place = jnp.clip(state + actions.astype(jnp.int8) - 1, 0, 2)
        wrong = jax.random.uniform(key, (self.agents,)) > 0.9
        return place, jnp.stack([place, ((place == world.hypothesis) ^ wrong).astype(jnp.int8)], axis=1)

    def init_memory(self, agent, observation):
        return observation

    def update_memory(self, memory, agent, action, observation):
        return observation

    def features(self, memory):
        return Features(memory.astype(jnp.float32))

    def action_mask(self, memory):
        place = memory[0].astype(jnp.int32) + jnp.arange(3) - 1
        return (place >= 0) & (place <= 2)

    @property
    def posterior(self):
        return "exact"

    def belief(self, first=None):
        return jnp.zeros(3)

    def update_belief(self, belief, actions, observation):
        here = jnp.arange(3)[None] == observation[:, :1].astype(jnp.int32)
        return belief + jnp.sum(jnp.log(jnp.where(here == (observation[:, 1:] > 0), 0.9, 0.1)), axis=0)

    def log_posterior(self, belief):
        return jax.nn.log_softmax(belief)


def test_turns_are_taken_round_by_round():
    """Four actions, two agents: the second begins half way."""
    problem = Coins(agents=2, actions=4, horizon=7)
    actions = played(baseline_team("turns", problem, rounds=5)).actions
    assert actions[0, :5].tolist() == [[0, 2], [1, 3], [2, 0], [3, 1], [0, 2]]
    assert actions[0, 5].tolist() == [4, 4], "a clock stops it"


def test_more_agents_than_actions_begin_with_different_ones():
    policy, key, view = Turns(Coins(agents=3, actions=2)), jax.random.key(0), Features(jnp.zeros(1))
    first = [jnp.argmax(policy.decide_agent((), jnp.int32(i), view, jnp.int32(0), key=key)[1]) for i in range(3)]
    assert first == [0, 1, 0]


def test_who_may_not_take_its_turn_takes_the_next_action_it_may():
    """Down, stay, up in turn from the lowest place: down is closed there, so that it stays."""
    actions = played(baseline_team("turns", Hall(), rounds=4)).actions
    assert actions[0, :4, 0].tolist() == [1, 1, 2, 0]


def test_turns_stop_after_the_fewest_rounds_that_are_enough(monkeypatch):
    """One agent reads bit 0 first: right in 0.5 · 0.95, then in 0.95 · 0.85 of worlds, and 0.9 takes more rounds."""
    monkeypatch.setattr(tuning, "TUNING_WORLDS", 2000)
    points = baseline_curve("turns", Bits(agents=1), episodes=2000)
    np.testing.assert_allclose([point.accuracy for point in points[:2]], [0.475, 0.8075], atol=0.045)  # four errors
    team = baseline_team("turns", Bits(agents=1))
    reached = next(point.parameter for point in points if point.accuracy >= 0.9)
    assert isinstance(team.stop, FixedLength)
    assert abs(team.stop.rounds - reached) <= 1


# -- what tells most


def test_each_by_itself_takes_what_tells_it_most():
    """Nats that a reading takes away, by h(p) = -p log p - (1-p) log (1-p).

    First: bit 0 log 2 - h(0.95) = 0.49, bit 1 log 2 - h(0.85) = 0.27. After one reading of bit 0: again
    h(0.95) - 0.095 log 2 - 0.905 h(0.9972) = 0.12, bit 1 still 0.27.
    """
    team = baseline_team("local-greedy", BITS, level=0.999)
    assert np.all(np.asarray(played(team).actions)[:, :2] == np.array([[0, 0], [1, 1]]))


def test_all_together_share_the_work():
    """0.49 + 0.27 for one bit each; 0.49 + 0.12 for two readings of bit 0."""
    team = baseline_team("central-greedy", BITS, level=0.999)
    assert np.all(np.sort(np.asarray(played(team).actions)[:, 0], axis=1) == [[0, 1]])


def test_one_who_has_everyones_data_is_central():
    alone, together = (
        played(baseline_team(name, Bits(agents=1), level=0.97)) for name in ("local-greedy", "central-greedy")
    )
    np.testing.assert_array_equal(alone.actions, together.actions)


def test_a_local_stop_is_on_ones_own_data():
    """0.95 · 0.85 = 0.81 after a reading of each bit, which every agent has after two rounds."""
    assert np.all(played(baseline_team("local-greedy", BITS, level=0.8)).stop == 2)
    assert np.all(played(baseline_team("local-greedy", BITS, level=0.82)).stop > 2)


def test_an_agent_in_the_field_does_as_it_did():
    team = baseline_team("local-greedy", BITS, level=0.95)
    episode = jax.tree.map(lambda x: x[0], played(team))
    rounds = int(episode.stop)
    agent = team.agent(1)
    for number in range(rounds):
        assert agent.act() == int(episode.actions[number, 1])
        agent.see(int(episode.actions[number, 1]), episode.observations[number + 1, 1])
    actions, seen = np.asarray(episode.actions[:rounds]), np.asarray(episode.observations[1 : rounds + 1])
    assert "stop" in team.posterior(actions, seen).reason


def test_imagined_worlds_stand_where_the_agents_do():
    check_problem(Hall())
    policy = central_greedy(Hall(agents=2), 0.1).policy
    assert isinstance(policy, CentralGreedy)
    states = policy.imagined.start()
    for number, moves in enumerate(([2, 1], [2, 2], [0, 1])):
        taken = jnp.broadcast_to(jnp.array(moves), (policy.imagined.count, 2))
        states = policy.imagined.moved(states, taken, jnp.int32(number))
    assert np.all(np.asarray(states) == [1, 1])


def test_a_searcher_walks_to_where_it_has_not_been():
    """Where it is not, by the first look, it is with probability 0.05: the next look is at a place with 0.47."""
    episodes = played(baseline_team("central-greedy", Hall(), level=0.95), worlds=200)
    place, found = np.asarray(episodes.observations)[:, :, 0].transpose(2, 0, 1)
    no = found[:, 1] == 0
    assert np.all(place[no, 2] != place[no, 1])


def test_worlds_are_drawn_by_the_posterior_of_their_hypotheses():
    """Weights 0.7 and 0.3, and as many worlds of both kinds but for chance: of 32, 22 or 23 are of the first kind."""
    imagined = imagine(Coins())
    drawn = imagined.likely(jnp.log(jnp.array([0.7, 0.3])), jnp.int32(3))
    assert int(jnp.sum(imagined.worlds.hypothesis[drawn] == 0)) in (22, 23)


def test_talking_beats_silence():
    """τ at accuracy 0.9 on 300 worlds, known to about 0.07; by oneself a reading of each bit takes two rounds."""
    curves = [baseline_curve(name, BITS, episodes=300) for name in ("central-greedy", "local-greedy")]
    together, alone = (tau_at([CurvePoint(*point) for point in curve], 0.9) for curve in curves)
    assert together < alone - 0.3


# -- as teachers, and where they do not fit


@pytest.mark.parametrize("stops", [True, False])
def test_a_local_rule_can_guide(stops, monkeypatch, request):
    monkeypatch.setattr(tuning, "TUNING_WORLDS", 100)
    request.addfinalizer(rules.tuned.cache_clear)  # what was tuned on few worlds is nobody else's
    changes = {"teacher.policy": "local-greedy", "teacher.stop": stops, "delta": 0.4}
    teacher = find_teacher(BITS, override(with_algorithm(Config(), "guided"), changes))
    episode = jax.tree.map(lambda x: x[0], played(baseline_team("random", BITS)))
    seen = jax.jit(partial(histories, BITS))(episode)
    scores = np.asarray(eqx.filter_jit(policy_scores)(BITS, teacher, episode, seen, 2))
    assert np.argmax(scores[0, :, :-1], axis=1).tolist() == [0, 0]
    assert np.all(np.isneginf(scores[:2, :, -1])) != stops


def test_who_has_no_posterior_of_its_own_is_refused():
    with pytest.raises(
        UserError, match=r"local-greedy is for any problem .* one agent's data \(update_own_belief\) or"
    ):
        baseline_team("local-greedy", Coins(agents=2))
    assert isinstance(local_greedy(Coins(), 0.1).policy, LocalGreedy)
