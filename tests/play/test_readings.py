"""What is no reading of a problem is refused with one sentence; what is one passes unchanged."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape import BIT, STOP, Range, UserError, check_problem
from icmape.play.inference import ExactInference
from icmape.play.open_loop import Schedule
from icmape.play.readings import Gate
from icmape.play.stop import FixedLength
from icmape.play.team import Team
from icmape.problem import Centralized, Problem
from icmape.problem.ranges import observation_layout, observation_parts
from icmape.zoo.signal.signal import Signal, SignalObservation
from tests.coins import Coins
from tests.support import small_bandit
from tests.zoo.hotspots import small_hotspot

BANDIT = small_bandit()  # two arms, three players
SIGNAL = Signal(grid=9, window=3, move=3, distance=4, horizon=6)


def scheduled(problem: Problem) -> Team:
    """A team that takes the first action for all rounds, with the exact posterior."""
    table = Schedule(jnp.zeros((problem.horizon, problem.agents), jnp.int32), problem.actions + 1)
    return Team(problem, table, FixedLength(problem.horizon - 1), ExactInference())


class Shouts:
    """An object whose conversion to an array raises an error of its own."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no")

    def __repr__(self):
        raise RuntimeError("nor this")


def deep(levels: int) -> list:
    """Lists in lists."""
    return [] if levels == 0 else [deep(levels - 1)]


NO_BITS = {
    "a half": 0.5,
    "nearly one": 0.9,
    "NaN": float("nan"),
    "infinity": float("inf"),
    "another int8": 2,
    "negative": -1,
    "256 wraps to 0": 256,
    "257 wraps to 1": 257,
    "a huge int": 10**30,
    "an unprintable int": 10**5000,
    "a bool": True,
    "a NumPy bool": np.True_,
    "text": "1",
    "bytes": b"1",
    "none": None,
    "complex": 1j,
    "a list": [1],
    "two": [1, 0],
    "ragged": [[1], [1, 0]],
    "deep": deep(100),
    "a set": {1},
    "a dictionary": {"paid": 1},
    "an array of objects": np.array([1, None], object),
    "a date": np.datetime64("2020-01-01"),
    "an object": Shouts(),
}


@pytest.mark.parametrize("name", NO_BITS)
def test_what_is_neither_0_nor_1_is_refused(name):
    with pytest.raises(UserError, match=r"int8 of shape \(\), 0 or 1; given"):
        Gate(BANDIT).reading(0, NO_BITS[name])


@pytest.mark.parametrize("bit", [0, 1, 1.0, np.int64(1), np.float16(0), np.array(1), jnp.int8(1)])
def test_a_bit_passes_in_any_type_that_holds_it(bit):
    stored = Gate(BANDIT).reading(0, bit)
    assert stored.dtype == np.int8
    assert stored == int(bit)


NO_ACTIONS = [2, -1, 2**32, 2**64, 1.5, 1.0, float("nan"), True, np.True_, "0", None, [0], np.array([0]), Shouts()]


@pytest.mark.parametrize("action", NO_ACTIONS, ids=lambda action: type(action).__name__)
def test_only_whole_numbers_in_range_are_actions(action):
    with pytest.raises(UserError, match=r"^actions are numbered 0\.\.1; given"):
        Gate(BANDIT).action(action)


@pytest.mark.parametrize("agent", [3, -1, 2**32, 0.0, True, "0", None])
def test_only_whole_numbers_in_range_are_agents(agent):
    with pytest.raises(UserError, match=r"^agents are numbered 0\.\.2; given"):
        Gate(BANDIT).agent(agent)


@pytest.mark.parametrize("action", [1, np.int8(1), np.array(1), jnp.int32(1)])
def test_an_action_passes_in_any_integer_type(action):
    assert Gate(BANDIT).action(action) == 1


ROUNDS = np.array([[0, 0, 1], [1, 0, 0]])
NO_ROUNDS = {
    "transposed readings": (ROUNDS, ROUNDS.T),
    "transposed actions": (ROUNDS.T, ROUNDS),
    "flat readings": (ROUNDS, ROUNDS.reshape(-1)),
    "one round too few": (ROUNDS, ROUNDS[:1]),
    "an axis more": (ROUNDS, ROUNDS[..., None]),
    "NaN": (ROUNDS, np.where(ROUNDS == 1, np.nan, 0)),
    "a half": (ROUNDS, ROUNDS / 2),
    "300": (ROUNDS, ROUNDS * 300),
    "bools": (ROUNDS, ROUNDS == 1),
    "a bool in a list": (ROUNDS, [[0, 0, 1], [1, 0, True]]),
    "ragged": (ROUNDS, [[0, 0, 1], [1, 0]]),
    "texts": (ROUNDS, [["0", "0", "1"]] * 2),
    "none": (ROUNDS, None),
    "a number": (ROUNDS, 1),
    "readings without actions": ([], ROUNDS),
    "no reading for no action": ([], None),
    "2**32 as an action": ([[0, 0, 2**32], [0, 0, 0]], ROUNDS),
    "an action that wraps": ([[0, 0, 2**32 + 1], [0, 0, 0]], ROUNDS),
    "a huge action": ([[0, 0, 10**30], [0, 0, 0]], ROUNDS),
    "real actions": (ROUNDS.astype(float), ROUNDS),
    "bool actions": (ROUNDS == 1, ROUNDS),
    "ragged actions": ([[0, 0, 1], [1]], ROUNDS),
    "text actions": ("001100", ROUNDS),
    "no actions": (None, ROUNDS),
}


@pytest.mark.parametrize("name", NO_ROUNDS)
def test_rounds_that_do_not_fit_are_refused(name):
    with pytest.raises(UserError):
        scheduled(BANDIT).posterior(*NO_ROUNDS[name])


@pytest.mark.parametrize(
    ("actions", "readings"), [([0], None), ([0], 1), ([0], [[1]]), (0, [1]), ("0", [1]), ([0, 0], [1]), ([0], [True])]
)
def test_a_history_of_one_agent_that_does_not_fit_is_refused(actions, readings):
    with pytest.raises(UserError):
        scheduled(BANDIT).act(0, actions, readings)


def window(**values: float) -> tuple:
    """What an agent of the signal sees, as plain lists, with some changed values."""
    cells = np.zeros((3, 3)).tolist()
    cells[1][1] = values.get("middle", 0)
    return cells, [[values.get("row", 4), values.get("column", 4)]]


@pytest.mark.parametrize(
    ("agent", "given", "named"),
    [
        (0, window(middle=0.5), "window.*which holds 0.5"),
        (2, window(middle=1.01), "window.*which holds 1.01"),
        (2, window(middle=float("nan")), "window.*which holds nan"),
        (0, window(row=9), "positions.*which holds 9"),
        (0, window(row=-1), "positions.*which holds -1"),
        (0, window(row=4.5), "positions.*which holds 4.5"),
        (0, window()[0], "given"),
        (0, (*window(), 1), "given"),
        (0, window()[::-1], "window"),
        (0, (window()[0], [4, 4]), r"positions .*of shape \(2,\)"),
    ],
)
def test_a_part_that_does_not_fit_is_named(agent, given, named):
    with pytest.raises(UserError, match=named):
        Gate(SIGNAL).reading(agent, given)


def test_detectors_read_0_or_1_and_the_last_agent_a_number_between():
    gate = Gate(SIGNAL)
    assert gate.reading(2, window(middle=0.5)).window[1, 1] == np.float16(0.5)
    assert gate.reading(0, window(middle=1)).window[1, 1] == 1


def test_stacked_arrays_and_lists_of_what_see_takes_give_the_same_answer():
    """Rounds as stacked arrays, as joint observations of `step`, and as lists of plain tuples or lists."""
    team, key = scheduled(SIGNAL), jax.random.key(0)
    world = SIGNAL.sample(key=key)
    state, first = SIGNAL.start(world, key=key)
    rounds, actions = [], [[1, 1, 0], [3, 2, 2]]
    for row in actions:
        state, seen = SIGNAL.step(world, state, jnp.array(row), key=key)
        rounds.append(seen)
    stacked = jax.tree.map(lambda *parts: jnp.stack(parts), *rounds)
    tuples = [[(np.asarray(seen.window[i]), np.asarray(seen.positions[i])) for i in range(3)] for seen in rounds]
    lists = [[[w.tolist(), p.tolist()] for w, p in row] for row in tuples]
    own = [(np.asarray(first.window[i]), np.asarray(first.positions[i]).tolist()) for i in range(3)]
    expected = team.posterior(actions, stacked, first)
    for given in (rounds, tuples, lists, tuple(stacked)):
        np.testing.assert_array_equal(team.posterior(actions, given, own).scores, expected.scores)
    with pytest.raises(UserError, match="round 1, agent 2"):
        team.posterior(actions, [lists[0], [*lists[1][:2], [lists[1][2][0], [[9, 9]]]]], own)


def test_an_answer_is_never_nan():
    """Two detectors hit different places: no source explains it."""
    hit, miss = window(middle=1, row=1, column=1), window()
    other = (hit[0], [[1, 7]])
    with pytest.raises(UserError, match="no finite scores for this data"):
        scheduled(SIGNAL).posterior([], [], [hit, other, miss])


def test_see_after_stop_and_beyond_the_horizon_is_refused():
    team = scheduled(BANDIT)
    agent = team.agent(0)
    for _ in range(BANDIT.horizon - 1):
        agent.see(0, 1)
    with pytest.raises(UserError, match="7 rounds are more than the horizon allows"):
        agent.see(0, 1)
    assert agent.act() == STOP
    with pytest.raises(UserError, match="agent 0 chose STOP in round 6: the episode is over"):
        agent.see(0, 1)


class Once(Coins):
    """An agent may toss the second coin only after heads."""

    def init_memory(self, agent, observation):
        return jnp.zeros(2, jnp.int32)

    def action_mask(self, memory):
        return jnp.arange(self.actions) <= memory[0]


@pytest.mark.parametrize("problem", [Once(actions=2), Centralized(Once(actions=2))], ids=["apart", "centralized"])
def test_an_action_that_was_not_allowed_is_refused(problem):
    team = scheduled(problem)
    seen = (lambda coin: [coin]) if isinstance(problem, Centralized) else (lambda coin: coin)
    agent = team.agent(0)
    with pytest.raises(UserError, match="action 1 was not allowed to agent 0 in round 0"):
        agent.see(1, seen(1))
    agent.see(0, seen(1))
    agent.see(1, seen(1))
    assert team.posterior([[0], [1]], [[seen(1)], [seen(1)]]).confidence > 0.5
    with pytest.raises(UserError, match="action 1 was not allowed to agent 0 in round 1"):
        team.posterior([[0], [1]], [[seen(-1)], [seen(1)]])


def test_concentrations_are_not_negative():
    gate = Gate(small_hotspot())
    count = gate.problem.readings
    assert gate.reading(0, [1.5] * count).dtype == np.float16
    for odd in (-0.1, 70_000, float("nan")):
        with pytest.raises(UserError, match="numbers from 0 to 65504"):
            gate.reading(0, [odd, *[1.0] * (count - 1)])


class Pair(NamedTuple):
    """Two parts of an observation."""

    real: jax.Array
    whole: jax.Array


class TwoParts(Coins):
    """Observations without a declared range."""

    def start(self, world, *, key):
        return (), Pair(jnp.zeros((self.agents, 2), jnp.float16), jnp.zeros(self.agents, jnp.int8))


def test_without_a_declared_range_the_storage_type_is_the_range():
    gate = Gate(TwoParts())
    assert gate.reading(0, ([-65504, 0.25], -128)).whole == -128
    for odd in (([65505, 0], 0), ([0, 0], 128), ([0, 0], 0.5), ([np.nan, 0], 0), ([np.inf, 0], 0)):
        with pytest.raises(UserError):
            gate.reading(0, odd)


class Declares(Coins):
    """Coins whose observations are -1 or 1."""

    @property
    def observation_range(self):
        return Range(-1, 1, whole=True)


class DeclaresWrongly(Coins):
    """-1 is outside 0 or 1."""

    @property
    def observation_range(self):
        return BIT


class DeclaresNothingKnown(Coins):
    """A tuple of numbers is no range."""

    @property
    def observation_range(self):
        return (0, 1)


class NotFinite(Coins):
    """A reading is infinite now and then."""

    def start(self, world, *, key):
        return (), jnp.zeros(self.agents, jnp.float16)

    def step(self, world, state, actions, *, key):
        return state, jnp.where(super().step(world, state, actions, key=key)[1] > 0, jnp.inf, 0).astype(jnp.float16)


def test_check_problem_compares_observations_with_their_range():
    check_problem(Declares())
    for problem, named in (
        (DeclaresWrongly(), r"an observation is -1, outside its range \(int8 of shape \(\), 0 or 1\)"),
        (DeclaresNothingKnown(), "observation_range must be an icmape.Range"),
        (NotFinite(), "an observation is inf, outside its range"),
    ):
        with pytest.raises(UserError, match=named):
            check_problem(problem, simulate=True)


def test_a_limit_that_the_storage_rounds_admits_the_rounded_value():
    """0.7 is stored as 0.7002 in 16 bits, which is the problem's own reading; 0.7005 is not."""
    layout = jax.ShapeDtypeStruct((1,), jnp.float16)
    (part,) = observation_parts(Range(0, 0.7), layout)
    assert part.within(np.array([np.float16(0.7)])).all()
    assert not part.within(np.array([0.7005])).any()


def test_the_layout_of_a_centralized_team_has_the_ranges_of_its_agents():
    parts = observation_parts(Centralized(SIGNAL).observation_range, observation_layout(Centralized(SIGNAL)))
    whole = SignalObservation(*(part.limits.whole for part in parts)).window
    assert whole.shape == (1, 3, 3, 3)
    assert whole[0, :, 0, 0].tolist() == [True, True, False]
