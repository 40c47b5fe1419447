"""The example problems keep the contract, and their posteriors are those of the worlds that their pages describe."""

import itertools
from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from examples.dials import Dials
from examples.faults import Faults
from examples.mixing import Mixing
from examples.patrol import Patrol
from examples.pooling import Pooling
from icmape import Factored, Problem, check_problem

EXACT = {"pooling": Pooling, "faults": Faults, "patrol": Patrol, "dials": Dials}
ZOO = {**EXACT, "mixing": Mixing}
EPISODES, ROUNDS = 4000, 9

every = pytest.mark.parametrize("name", ZOO)
every_exact = pytest.mark.parametrize("name", EXACT)


class Played(NamedTuple):
    """Episodes with random actions; scores and what follows from them are those after the last round."""

    hypothesis: np.ndarray  # episodes, ...
    actions: np.ndarray  # episodes, rounds, agents
    observations: np.ndarray  # episodes, rounds, agents
    scores: np.ndarray
    own_scores: np.ndarray | None  # of every agent's data alone, where a problem has these
    confidence: np.ndarray
    correct: np.ndarray


@cache
def played(name: str) -> Played:
    problem = EXACT[name]()
    agents, space = jnp.arange(problem.agents), problem.hypotheses

    def one(key) -> Played:
        for_world, for_start, for_rounds = jax.random.split(key, 3)
        world = problem.sample(key=for_world)
        state, first = problem.start(world, key=for_start)

        def advance(carry, key):
            state, memories, own, belief = carry
            for_actions, for_step = jax.random.split(key)
            open_to = jnp.where(jax.vmap(problem.action_mask)(memories), 0.0, -jnp.inf)
            actions = jax.random.categorical(for_actions, open_to).astype(jnp.int8)  # as episodes are stored
            state, observation = problem.step(world, state, actions, key=for_step)
            memories = jax.vmap(problem.update_memory)(memories, agents, actions, observation)
            if problem.has_own_beliefs:
                own = jax.vmap(problem.update_own_belief)(own, agents, actions, observation)
            belief = problem.update_belief(belief, actions, observation)
            return (state, memories, own, belief), (actions, observation)

        own = jax.vmap(problem.own_belief)(agents, first) if problem.has_own_beliefs else None
        start = state, jax.vmap(problem.init_memory)(agents, first), own, problem.belief(first)
        (*_, own, belief), (actions, seen) = jax.lax.scan(advance, start, jax.random.split(for_rounds, ROUNDS))
        scores = problem.log_posterior(belief)
        own_scores = jax.vmap(problem.log_posterior)(own) if problem.has_own_beliefs else None
        right = space.correct(space.decide(scores), world.hypothesis)
        return Played(world.hypothesis, actions, seen, scores, own_scores, space.confidence(scores), right)

    return jax.tree.map(np.asarray, jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(1), EPISODES)))


# -- the world models again, in numpy: p(reading | hypothesis) for one agent in one round


def coin(response: int, chance: float) -> float:
    return chance if response else 1 - chance


def pooling_chance(problem: Pooling, pair: tuple[int, int], actions, agent: int, result: int, past) -> float:
    """Pools 0-2 are rows, 3-5 columns, 6-11 diagonals, and the rest single samples."""
    pool = actions[agent]
    kind, line = divmod(int(pool), 3)
    places = [divmod(sample, 3) for sample in pair]
    lines = [(row, column, (row + column) % 3, (row - column) % 3)[kind] for row, column in places] if kind < 4 else []
    holds = line in lines if kind < 4 else pool - 12 in pair
    home = (0, 0, 1, 1, 2, 2, 2)[kind] == agent
    error = float(problem.error[agent] if home else problem.unequipped)
    return coin(result, 1 - error if holds else error)


def faults_chance(problem: Faults, states: tuple[int, ...], actions, agent: int, response: int, past) -> float:
    """Technician i is skilled at machines i and i + 1, and learns nothing where another one is."""
    machine, test = divmod(int(actions[agent]), 2)
    if sum(other // 2 == machine for other in actions) > 1:
        return 0.5
    right = float(problem.skilled if machine - agent in (0, 1) else problem.unskilled)
    return coin(response, right if states[machine] > test else 1 - right)


PLAN = """
 0- 1- 2- 3
 |        |
 4- 5- 6- 7
 |     |
 8- 9-10-11
    |     |
12-13-14-15
"""


@cache
def doors() -> set[tuple[int, int]]:
    """Pairs of rooms with a door between them, read off the plan."""
    lines = [line.ljust(11) for line in PLAN.strip("\n").split("\n")]
    found = set()
    for row, column in itertools.product(range(4), range(4)):
        room = 4 * row + column
        if column < 3 and lines[2 * row][3 * column + 2] == "-":
            found.add((room, room + 1))
        if row < 3 and lines[2 * row + 1][3 * column + 1] == "|":
            found.add((room, room + 4))
    return found | {(there, here) for here, there in found}


def guard_room(moves, agent: int) -> int:
    """Where a guard is after these moves, each of which must lead through a door."""
    room = (0, 6, 15)[agent]
    for move in moves:
        there = room + (0, -4, 1, 4, -1)[move]
        assert there == room or (room, there) in doors()
        room = there
    return room


def patrol_chance(problem: Patrol, intruder: int, actions, agent: int, alarm: int, past) -> float:
    room = guard_room([*past[:, agent], actions[agent]], agent)
    near = (room, intruder) in doors()
    return coin(alarm, float((problem.here if room == intruder else problem.near if near else problem.far)[agent]))


def dials_chance(problem: Dials, wave: tuple[int, float], actions, agent: int, reading: float, past) -> float:
    """`wave` is a hypothesis and an amplitude."""
    (frequency, phase), tap = divmod(wave[0], 8), int(actions[agent])
    level = wave[1] * np.cos(2 * np.pi * ((frequency + 1) * tap / 12 + phase / 8))
    steps = abs(tap - (1, 5, 9)[agent])
    deviation = float(problem.noise[agent]) * (1 + (min(steps, 12 - steps) / float(problem.reach)) ** 2)
    return np.exp(-0.5 * ((float(reading) - level) / deviation) ** 2) / deviation


def likelihood(chance, problem: Problem, hypothesis, actions, readings, agents) -> float:
    """Of the readings of these agents in all rounds."""
    return np.prod(
        [
            chance(problem, hypothesis, actions[t], agent, readings[t, agent], actions[:t])
            for t in range(len(actions))
            for agent in agents
        ]
    )


def brute_force(name: str, *data) -> np.ndarray:
    """The posterior, given actions, readings and whose readings count, over all answers (whole ones for a product)."""
    problem = jax.tree.map(np.asarray, EXACT[name]())
    if name == "pooling":
        weights = [likelihood(pooling_chance, problem, pair, *data) for pair in itertools.combinations(range(9), 2)]
    elif name == "faults":
        prior = np.asarray(problem.prior, np.float64)
        weights = [
            np.prod(prior[list(states)]) * likelihood(faults_chance, problem, states, *data)
            for states in itertools.product(range(3), repeat=4)
        ]
    elif name == "patrol":
        weights = [likelihood(patrol_chance, problem, room, *data) for room in range(16)]
    else:
        weights = [
            sum(likelihood(dials_chance, problem, (wave, float(a)), *data) for a in problem.amplitudes)
            for wave in range(40)
        ]
    return np.array(weights) / sum(weights)


def whole(problem: Problem, scores: np.ndarray) -> np.ndarray:
    """Probabilities of whole answers."""
    if not isinstance(problem.hypotheses, Factored):
        return np.exp(scores)
    return np.array([np.exp(scores[range(4), states].sum()) for states in itertools.product(range(3), repeat=4)])


# -- tests


@every
def test_the_contract_is_kept(name):
    check_problem(ZOO[name](), simulate=False)  # what it would simulate is tested below


@every_exact
def test_the_posterior_is_that_of_the_world_model(name):
    episodes = played(name)
    for episode in range(5):
        expected = brute_force(name, episodes.actions[episode], episodes.observations[episode], range(3))
        np.testing.assert_allclose(whole(EXACT[name](), episodes.scores[episode]), expected, atol=2e-5)


@pytest.mark.parametrize("name", ["pooling", "patrol", "dials"])
def test_the_posterior_of_one_agent_is_that_of_its_own_readings(name):
    episodes = played(name)
    for agent in range(3):
        expected = brute_force(name, episodes.actions[0], episodes.observations[0], [agent])
        np.testing.assert_allclose(np.exp(episodes.own_scores[0, agent]), expected, atol=2e-5)


def test_one_technicians_results_have_no_posterior_of_their_own():
    assert not Faults().has_own_beliefs


@every_exact
def test_confidence_is_accuracy(name):
    """Within 4 standard errors: a false alarm in 16,000 draws of the keys."""
    episodes = played(name)
    gap = episodes.confidence - episodes.correct
    assert 0.2 < episodes.correct.mean() < 0.9
    assert abs(gap.mean()) < 4 * gap.std() / np.sqrt(EPISODES)


@every_exact
def test_answers_can_be_wrong_and_right_with_different_confidence(name):
    """Worlds and histories differ in difficulty, so that stopping can adapt."""
    assert played(name).confidence.std() > 0.15


@every
def test_a_reading_depends_on_nobody_elses_actions(name):
    problem = ZOO[name]()
    key = jax.random.key(3)
    world = problem.sample(key=key)
    state, _ = problem.start(world, key=key)
    read = jax.jit(lambda actions: problem.step(world, state, actions, key=key)[1])
    # in the example of faults nobody may be at the same machine (actions 0 and 1 are tests of one)
    before, others = ([0, 2, 4], [6, 3]) if name == "faults" else ([0, 1, 2], [3, 4])
    for agent in range(problem.agents):
        changed = list(before)
        for other, action in zip([i for i in range(problem.agents) if i != agent], others, strict=True):
            changed[other] = action if name != "faults" or action // 2 != before[agent] // 2 else before[other]
        assert changed != before
        assert read(jnp.array(before))[agent] == read(jnp.array(changed))[agent]


@every
def test_a_view_shows_the_last_reading_and_action(name):
    problem = ZOO[name]()
    kind = jax.eval_shape(lambda: problem.start(problem.sample(key=jax.random.key(0)), key=jax.random.key(0))[1]).dtype

    @jax.jit
    def token(action, reading):
        memory = problem.init_memory(jnp.int32(0), jnp.zeros((), kind))
        return problem.features(problem.update_memory(memory, jnp.int32(0), action, reading)).token

    one, other, elsewhere = (
        token(jnp.int8(action), jnp.asarray(reading, kind)) for action, reading in ((2, 0), (2, 1), (3, 1))
    )
    assert jnp.all(jnp.isfinite(jnp.stack([one, other, elsewhere])))
    assert jnp.any(one != other)
    assert jnp.any(other != elsewhere)


@every
def test_actions_and_answers_have_names_of_their_own(name):
    problem = ZOO[name]()
    assert len({problem.action_name(action) for action in range(problem.actions)}) == problem.actions
    if isinstance(problem.hypotheses, Factored):
        answers = np.indices((3,) * 4).reshape(4, -1).T
    else:
        answers = np.arange(problem.hypotheses.size)
    assert len({problem.answer_name(answer) for answer in answers}) == len(answers)


def test_two_technicians_at_one_machine_learn_nothing():
    problem = Faults()
    after = problem.update_belief(problem.belief(), jnp.array([2, 3, 6]), jnp.array([1, 0, 1], jnp.int8))
    learned = np.ptp(np.asarray(after), axis=1) > 0
    assert learned.tolist() == [False, False, False, True]


def test_labs_have_their_own_pools():
    problem = Pooling()
    memories = jax.vmap(problem.init_memory)(jnp.arange(3), jnp.zeros(3, jnp.int8))
    allowed = np.asarray(jax.vmap(problem.action_mask)(memories))
    assert allowed[:, 12:].all()
    assert allowed[:, :12].sum(axis=1).tolist() == [6, 6, 0]


def test_guards_may_go_through_every_door_and_no_wall():
    problem = Patrol()
    memory = problem.init_memory(jnp.int32(0), jnp.int8(0))
    for room in range(16):
        allowed = np.asarray(problem.action_mask(memory._replace(room=jnp.int32(room))))
        ways = {room + step for step, may in zip((0, -4, 1, 4, -1), allowed, strict=True) if may}
        assert ways == {room} | {there for here, there in doors() if here == room}


def test_readings_of_a_mixture_have_their_mean():
    """Without flicker and far from zero; within 4 standard errors of each of three means."""
    problem = Mixing(light=100.0, flicker=0.0)
    world = problem.sample(key=jax.random.key(5))._replace(share=jnp.float32(0.3))
    filters = jnp.array([1, 5, 8])
    read = jax.jit(jax.vmap(lambda key: problem.step(world, (), filters, key=key)[1]))
    readings = np.asarray(read(jax.random.split(jax.random.key(6), 2000)), np.float64)
    pair = list(itertools.combinations(range(6), 2))[int(world.hypothesis)]
    for meter, place in enumerate(np.asarray(filters)):
        first, second = (0.1 + np.exp(-0.5 * ((place - (dye * 5 / 3 + 1 / 3)) / 1.2) ** 2) for dye in pair)
        response = np.exp(-0.5 * ((place - (meter * 10 / 3 + 7 / 6)) / 2.0) ** 2)
        mean = 100 * float(world.gains[meter]) * response * (0.3 * first + 0.7 * second)
        assert abs(readings[:, meter].mean() - mean) < 4 * np.sqrt(mean / 2000)
