"""N agents seen as one: the same worlds, data and posterior, with joint actions."""

import itertools
import json
from functools import cache, partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from icmape import Centralized, Team, UserError, check_problem, load
from icmape.learning.config import Config
from icmape.learning.run_folder import read_config, write_config
from icmape.networks import Actors, Inference
from icmape.play.inference import ExactInference, NetworkInference
from icmape.play.policy import LearnedPolicy
from icmape.play.rollout import Episode, Histories, action_type, histories, play_greedy
from icmape.play.stop import LearnedStop
from icmape.problem import Features, Problem
from icmape.problem.centralized import LIMIT, MOST
from icmape.problem.spec import build, build_named, describe
from icmape.zoo.bandit.bandit import Bandit
from tests.coins import Coins
from tests.support import drawn, script, small_bandit

WORLDS = 16


class Walkers(Coins):
    """All that a problem may have: a state, observations in several leaves and types, and actions that are forbidden.

    Each of two walkers tosses the coin and sees where it stands; one that saw more heads than tails may not run
    (action 2).
    """

    def __init__(self, horizon: int = 5):
        super().__init__(agents=2, horizon=horizon, actions=3)

    def start(self, world, *, key):
        places = jax.random.randint(key, (2,), 0, 9)
        return places, self._seen(jnp.zeros(2, jnp.int8), places)

    def step(self, world, state, actions, *, key):
        places = state + actions
        return places, self._seen(super().step(world, (), actions, key=key)[1], places)

    def _seen(self, tosses, places):
        return {"toss": tosses, "place": places.astype(jnp.float16)}

    def init_memory(self, agent, observation):
        return {"who": agent.astype(jnp.int32), "tosses": jnp.zeros(2, jnp.int32), "place": observation["place"]}

    def update_memory(self, memory, agent, action, observation):
        tosses = super().update_memory(memory["tosses"], agent, action, observation["toss"])
        return {"who": agent.astype(jnp.int32), "tosses": tosses, "place": observation["place"]}

    def features(self, memory):
        place, who = memory["place"].astype(jnp.float32), memory["who"].astype(jnp.float32)
        return Features(jnp.concatenate([super().features(memory["tosses"]).token, jnp.stack([place, who])]))

    def action_mask(self, memory):
        heads, tails = memory["tosses"]
        return jnp.array([True, True, False]) | (heads <= tails)

    def update_belief(self, belief, actions, observation):
        return super().update_belief(belief, actions, observation["toss"])

    def payoff(self, world, observation):
        return jnp.sum(observation["place"].astype(jnp.float32) * jnp.array([10.0, 1.0]))


WALKERS = Walkers()
every_problem = pytest.mark.parametrize("inner", [small_bandit(), WALKERS], ids=["bandit", "walkers"])


# -- joint actions


def test_agent_zero_is_the_most_significant_digit():
    problem = Centralized(Coins(agents=3, actions=4))
    assert problem.actions == 64
    # 2·16 + 0·4 + 3 = 35
    assert problem.split(35).tolist() == [2, 0, 3]
    assert int(problem.join([2, 0, 3])) == 35


@pytest.mark.parametrize("kind", [jnp.int8, jnp.int16])
def test_split_and_join_are_inverse(kind):
    problem = Centralized(Coins(agents=3, actions=4))
    joint = np.arange(64).astype(kind)  # as episodes are stored
    parts, again = jax.jit(lambda x: (problem.split(x), problem.join(problem.split(x))))(joint)
    assert parts.tolist() == [list(row) for row in itertools.product(range(4), repeat=3)]
    np.testing.assert_array_equal(again, joint)


@pytest.mark.parametrize("action", [-1, 8])
def test_stop_has_no_parts(action):
    with pytest.raises(UserError, match=rf"0\.\.7; given {action}"):
        Centralized(small_bandit()).split(action)


# -- the same problem


@every_problem
def test_the_contract_is_kept(inner):
    problem = Centralized(inner)
    check_problem(problem)
    assert (problem.agents, problem.actions) == (1, inner.actions**inner.agents)
    assert (problem.horizon, problem.hypotheses) == (inner.horizon, inner.hypotheses)
    assert problem.readings == inner.agents * inner.readings
    assert problem.posterior == inner.posterior


def test_what_is_wrong_inside_is_told():
    class Forgetful(Coins):
        def __init__(self, agents: int = 2):
            super().__init__(agents=agents)
            self.agents = agents + 1

    with pytest.raises(UserError, match="the Forgetful inside: building it again"):
        check_problem(Centralized(Forgetful()))


class Watched(NamedTuple):
    """Scripted episodes, what was to be read in them, and the exact posterior."""

    episode: Episode
    histories: Histories
    scores: Array


def watch(problem: Problem, plan: list[list[int]]) -> Watched:
    episode = play_greedy(problem, script(problem, plan), jax.random.split(jax.random.key(0), WORLDS))
    scores = jax.vmap(partial(ExactInference().unroll, problem))(episode)
    return Watched(episode, jax.vmap(partial(histories, problem))(episode), scores)


PLAN, JOINT = [[2, 1], [0, 1], [1, 0]], [[7], [1], [3]]  # always allowed, and the same in base 3


@cache
def both() -> tuple[Watched, Watched]:
    """Three rounds and a STOP in the same worlds: by joint actions, and by two walkers that move on their own."""
    return jax.jit(lambda: (watch(Centralized(WALKERS), [*JOINT, [9]]), watch(WALKERS, [*PLAN, [3, 0]])))()


def test_episodes_are_the_same():
    ours, theirs = (watched.episode for watched in both())
    np.testing.assert_array_equal(ours.hypothesis, theirs.hypothesis)
    np.testing.assert_array_equal(ours.stop, 3)
    np.testing.assert_array_equal(theirs.stop, 3)
    np.testing.assert_array_equal(ours.actions[:, :4], np.broadcast_to([*JOINT, [9]], (WORLDS, 4, 1)))
    parts = Centralized(WALKERS).split(ours.actions[:, :3, 0])
    np.testing.assert_array_equal(parts, theirs.actions[:, :3])
    for leaf in ("toss", "place"):
        assert ours.observations[leaf].dtype == theirs.observations[leaf].dtype
        np.testing.assert_array_equal(ours.observations[leaf], theirs.observations[leaf][:, :, None])
    assert np.any(theirs.observations["toss"] > 0)


DATA = slice(0, 4)  # rounds up to the stop; what is behind is padding


def test_its_view_is_the_teams_view():
    ours, theirs = (watched.histories for watched in both())
    np.testing.assert_array_equal(ours.local.token[:, 0, DATA], theirs.team.token[:, DATA])
    np.testing.assert_array_equal(ours.team.token[:, DATA], theirs.team.token[:, DATA])


def test_the_exact_posterior_is_the_same():
    ours, theirs = (np.asarray(watched.scores[:, DATA]) for watched in both())
    np.testing.assert_array_equal(ours, theirs)
    assert len(np.unique(ours[:, -1], axis=0)) > 1


def test_a_joint_action_is_allowed_if_all_its_parts_are():
    ours, theirs = (np.asarray(watched.histories.action_mask[:, DATA]) for watched in both())
    product = theirs[:, :, 0, :, None] & theirs[:, :, 1, None, :]
    np.testing.assert_array_equal(ours, product.reshape(WORLDS, 4, 1, 9))
    assert set(ours.sum(axis=-1).flat) == {4, 6, 9}  # both, one or none of the walkers may not run


def test_a_round_of_the_bandit_is_the_same():
    @jax.jit
    def one_round(key: Array) -> list:
        out = []
        for problem, actions in ((Centralized(small_bandit()), [5]), (small_bandit(), [1, 0, 1])):
            world, taken = problem.sample(key=key), jnp.array(actions)
            seen = problem.step(world, (), taken, key=key)[1]
            scores = problem.log_posterior(problem.update_belief(problem.belief(), taken, seen))
            out.append((seen, scores, problem.payoff(world, seen)))
        return out

    (seen, scores, paid), (their_seen, their_scores, their_paid) = one_round(jax.random.key(5))
    assert seen.dtype == their_seen.dtype
    np.testing.assert_array_equal(seen, their_seen[None])
    np.testing.assert_array_equal(scores, their_scores)
    assert float(paid) == float(their_paid) > 0


# -- refusals


def test_too_many_joint_actions_are_refused_with_the_way_out():
    large = Coins(agents=7, actions=4)  # 4^7 = 16,384
    with pytest.raises(UserError, match=r"16,384 joint actions \(4 actions of each of 7 agents\).*4,096.*limit=16384"):
        Centralized(large)
    allowed = Centralized(large, limit=16384)
    assert allowed.actions == 16384


def test_the_limit_is_where_the_paper_fits_and_storage_ends():
    assert Centralized(Bandit(arms=3, players=5, horizon=3)).actions == 243
    assert Centralized(Bandit(arms=5, players=3, horizon=3)).actions == 125
    assert Centralized(Coins(agents=12, actions=2)).actions == LIMIT
    with pytest.raises(UserError, match=r"32,768 joint actions.*limit of 32,767(?!.*allow it)"):
        Centralized(Coins(agents=15, actions=2), limit=10**9)
    most = Centralized(Coins(agents=1, actions=MOST), limit=MOST)
    assert jnp.iinfo(action_type(most)).max >= most.actions  # STOP


def test_a_centralized_problem_is_not_centralized_again():
    with pytest.raises(UserError, match="already"):
        Centralized(Centralized(small_bandit()))


# -- files


def central_team(inner: Problem) -> Team:
    """An untrained one that does not stop by itself."""
    problem = Centralized(inner)
    actors = drawn(lambda: Actors(problem, 4, "paper", 0.0, True, key=jax.random.key(0)), seed=6, scale=1.5)
    actors = eqx.tree_at(lambda a: a.actor.head.bias, actors, replace_fn=lambda b: b.at[-1].set(-99.0))
    network = drawn(lambda: Inference(problem, 4, "paper", key=jax.random.key(0)), seed=1)
    return Team(problem, LearnedPolicy(actors), LearnedStop(), NetworkInference(network))


class Blind(Coins):
    """Coins without the exact posterior, which would be judged too."""

    posterior = "none"


def test_a_centralized_team_is_saved_loaded_and_judged(tmp_path):
    team = central_team(Blind(agents=3, horizon=4, actions=2))
    team.save(tmp_path / "team.safetensors")
    again = load(tmp_path / "team.safetensors", Blind)
    assert eqx.tree_equal(again, team, typematch=True)
    result = again.evaluate(episodes=40)
    assert (result.rounds, result.readings) == (3.0, 9.0)  # up to the horizon; three readings a round


def test_a_centralized_team_acts_with_joint_actions(tmp_path):
    team, paid = central_team(small_bandit()), np.array([1, 0, 1], np.int8)
    team.save(tmp_path / "team.safetensors")
    team = load(tmp_path / "team.safetensors")
    one, taken = team.agent(0), []
    for _ in range(team.problem.horizon - 1):
        taken.append(one.act())
        one.see(taken[-1], paid)
    assert one.act() == -1  # the horizon
    assert 2 < max(taken) < 8  # not the arm of one player
    assert team.problem.split(max(taken)).shape == (3,)
    with pytest.raises(UserError, match=r"0\.\.0"):
        team.agent(1)


@pytest.mark.parametrize("wrap", [False, True], ids=["apart", "centralized"])
@every_problem
def test_a_configuration_comes_back(inner, wrap, tmp_path):
    problem = Centralized(inner) if wrap else inner
    write_config(tmp_path, problem, Config())
    kind, arguments, config = read_config(tmp_path / "config.json")
    assert config == Config()
    named = [kind.removeprefix("centralized-")]
    assert eqx.tree_equal(build_named(kind, arguments, named), problem, typematch=True)
    if ":" in kind:
        with pytest.raises(UserError, match=f"add --problem {named[0]}"):
            build_named(kind, arguments)
    told = json.loads((tmp_path / "config.json").read_text())["problem"]
    assert told.get("centralized", False) is wrap
    assert eqx.tree_equal(build(told, type(inner)), problem, typematch=True)


def test_a_larger_limit_comes_back():
    problem = Centralized(Coins(agents=13, actions=2), limit=9000)
    assert eqx.tree_equal(build(describe(problem), Coins), problem, typematch=True)


def test_descriptions_from_before_still_build():
    told = {"kind": "bandit", "arguments": {"arms": 2, "players": 3, "horizon": 7}}
    meant = Bandit(arms=2, players=3, horizon=7, team_tokens="readings")
    assert eqx.tree_equal(build(told), meant, typematch=True)


@pytest.mark.parametrize("odd", [{"centralised": True}, {"centralized": "yes"}, {"centralized": 1}])
def test_a_misspelt_configuration_is_refused(odd, tmp_path):
    write_config(tmp_path, small_bandit(), Config())
    path = tmp_path / "config.json"
    content = json.loads(path.read_text())
    content["problem"] |= odd
    path.write_text(json.dumps(content))
    with pytest.raises(UserError, match=f"not a configuration.*{next(iter(odd))}"):
        read_config(path)
