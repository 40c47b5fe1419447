"""Hotspot monitoring: what is drawn, what is read, what is remembered and by whom, and where it all comes from."""

import json
from functools import partial
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from icmape.play.rollout import histories, memories_at, play_greedy
from icmape.problem import Centralized, arguments, check_problem
from icmape.zoo.hotspot.data.readings import Readings
from icmape.zoo.hotspot.hotspot import Hotspot, HotspotWorld
from tests.support import once, script
from tests.zoo.hotspots import FROM_FILES, few_readings, region, small_hotspot, write

NITRATE = Path(__file__).parents[4] / "shared" / "nitrate"


def without_data(problem: Hotspot) -> Hotspot:
    return Hotspot(**{**arguments(problem), "data": None, "synthetic": None})


# -- the contract


def test_the_contract_is_kept():
    check_problem(small_hotspot())


def test_it_is_kept_without_any_data_and_by_agents_seen_as_one(from_files):
    check_problem(without_data(from_files))
    check_problem(Centralized(from_files))


@pytest.mark.parametrize("kind", ["synthetic", "files", "none"])
def test_its_arguments_make_it_again(from_files, kind):
    """Through JSON, as files do."""
    problem = {"synthetic": small_hotspot(), "files": from_files, "none": without_data(from_files)}[kind]
    again = Hotspot(**json.loads(json.dumps(arguments(problem))))
    assert eqx.tree_equal(again, problem, typematch=True)


def test_a_problem_says_where_an_action_sends_a_crew():
    problem = small_hotspot()
    latitude, longitude = problem.coordinates.T
    np.testing.assert_array_equal(problem.grid.cells(problem.grid.places(latitude, longitude)), problem.cells)
    assert problem.cells.shape == (problem.actions,) == (34,)


# -- the world


@pytest.fixture(scope="module")
def worlds() -> tuple[HotspotWorld, np.ndarray]:
    """Worlds of 2003, and what the fits said of their deviations before they were capped."""
    problem = eqx.tree_at(lambda p: p.cap, small_hotspot(), jnp.float32(0.4))
    year, keys = jnp.int32(2), jax.random.split(jax.random.key(1), 50)

    def both(key):
        return problem.world_of(year, key=key), problem.fields.draw(year, problem.fit, key=key).deviation

    return jax.tree.map(np.asarray, once(lambda: jax.vmap(both)(keys)))


def test_the_truth_is_the_k_highest_cells_the_highest_first(worlds):
    world, _ = worlds
    np.testing.assert_array_equal(world.hypothesis, np.argsort(-world.mean, axis=1)[:, :2])
    assert world.hypothesis.dtype == np.int16
    assert np.all(world.year == 2)


def test_deviations_are_capped(worlds):
    world, uncapped = worlds
    np.testing.assert_array_equal(world.deviation, np.minimum(uncapped, np.float32(0.4)))
    assert 0.1 < np.mean(uncapped > 0.4) < 0.9


def hand_made(cells, mean, deviation) -> HotspotWorld:
    """A world that is nowhere but in these cells."""
    field = np.full((2, 34), np.nan, np.float32)
    field[:, list(cells)] = mean, deviation
    return HotspotWorld(jnp.zeros(2, jnp.int16), *jnp.asarray(field), jnp.int32(0))


def readings_in(cells: list[int], mean: list[float], deviation: list[float], count: int) -> np.ndarray:
    """Concentrations that the two crews read in their cells of such a field."""
    problem, world = small_hotspot(), hand_made(cells, mean, deviation)
    keys = jax.random.split(jax.random.key(2), count)
    read = once(lambda: jax.vmap(lambda key: problem.step(world, (), jnp.array(cells), key=key)[1])(keys))
    assert read.dtype == jnp.float16
    return np.moveaxis(np.asarray(read, float), 1, 0).reshape(2, -1)


def test_readings_are_normal_in_logs_around_the_field_of_their_cell():
    """20,000 readings in each of two cells; 5 standard errors (false alarm 1e-6 each), and a half-float's rounding."""
    logs = np.log1p(readings_in([4, 30], [2.0, 1.2], [0.25, 0.1], 4000))
    for values, mean, deviation in zip(logs, (2.0, 1.2), (0.25, 0.1), strict=True):
        assert abs(values.mean() - mean) < 5 * deviation / np.sqrt(20_000) + 5e-4
        assert abs(values.std() - deviation) < 5 * deviation / np.sqrt(40_000) + 5e-4
        assert stats.kstest(values[:5000], "norm", (mean, deviation)).pvalue > 1e-6
    assert abs(np.corrcoef(logs)[0, 1]) < 5 / np.sqrt(20_000)  # crews are noisy apart


def test_concentrations_are_clipped_at_zero():
    """A cell at log 0 reads nothing half of the time; one far below always. 10,000 readings, false alarm 1e-6."""
    even, below = readings_in([0, 1], [0.0, -3.0], [0.5, 0.5], 2000)
    assert even.min() == 0
    assert abs(np.mean(even == 0) - 0.5) < 5 * 0.5 / np.sqrt(10_000)
    assert np.all(below == 0)


def test_before_the_first_query_nothing_is_seen():
    problem = small_hotspot()
    _, first = problem.start(hand_made(range(34), np.ones(34), np.ones(34)), key=jax.random.key(0))
    assert (first.shape, first.dtype, float(jnp.abs(first).max())) == ((2, 5), jnp.float16, 0.0)
    assert not problem.shows_first


# -- what is remembered


ROUTE = [[3, 7], [3, 3], [20, 7], [3, 20], [34, 34]]


@pytest.fixture(scope="module")
def played():
    """Two episodes of a fixed route, and what was there to be read in each."""
    problem = small_hotspot()
    keys = jax.random.split(jax.random.key(5), 2)

    def play() -> tuple:
        episodes = play_greedy(problem, script(problem, ROUTE), keys)
        own = jax.tree.map(lambda x: x[0], episodes)
        return episodes, jax.vmap(partial(histories, problem))(episodes), memories_at(problem, own, jnp.int32(4))

    episodes, seen, memories = jax.tree.map(np.asarray, once(play))
    return episodes, seen, memories


def raw(observations: np.ndarray, rounds: int, agents: list[int]) -> dict[int, np.ndarray]:
    """Normalised readings of these agents in the first rounds, by cell."""
    problem = small_hotspot()
    found: dict[int, list[float]] = {}
    for t in range(rounds):
        for agent in agents:
            found.setdefault(ROUTE[t][agent], []).extend(observations[t + 1, agent].astype(float))
    centre, spread = float(problem.centre), float(problem.spread)
    return {cell: (np.log1p(np.array(values)) - centre) / spread for cell, values in found.items()}


def table(values: dict[int, np.ndarray], what) -> np.ndarray:
    out = np.zeros(34)
    for cell, each in values.items():
        out[cell] = what(each)
    return out


@pytest.mark.parametrize("agent", [0, 1])
def test_running_sums_are_those_of_the_whole_history(played, agent):
    episodes, _, memories = played
    values = raw(episodes.observations[0], 4, [agent])
    np.testing.assert_array_equal(memories.number[agent], table(values, len))
    np.testing.assert_allclose(memories.total[agent], table(values, np.sum), atol=1e-4)
    scatter = table(values, lambda v: ((v - v.mean()) ** 2).sum())
    np.testing.assert_allclose(memories.scatter[agent], scatter, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(memories.largest[agent], table(values, np.max), atol=1e-5)


def test_an_agent_sees_its_last_query_and_the_team_all_of_them(played):
    episodes, seen, _ = played
    assert seen.local.grid is None
    for t in range(5):
        for agent in range(2):
            where, (mean, deviation) = np.split(seen.local.token[0, agent, t], [34])
            if t == 0:
                assert not np.any(seen.local.token[0, agent, 0])
                continue
            last = raw(episodes.observations[0, t - 1 :], 1, [agent])
            values = (
                np.log1p(episodes.observations[0, t, agent].astype(float)) - float(small_hotspot().centre)
            ) / float(small_hotspot().spread)
            assert len(last) == 1
            np.testing.assert_array_equal(where, np.eye(34)[ROUTE[t - 1][agent]])
            np.testing.assert_allclose([mean, deviation], [values.mean(), values.std()], atol=1e-4)
        np.testing.assert_array_equal(seen.team.token[0, t], seen.local.token[0, :, t].reshape(-1))


def test_the_teams_maps_are_those_of_all_readings(played):
    """Mean, deviation, maximum, number of queries in logs, and whether there are any; 0 in cells that are not valid."""
    episodes, seen, _ = played
    valid = np.zeros(36, bool)
    valid[small_hotspot().cells] = True
    for t in (0, 1, 2, 4):
        values = raw(episodes.observations[1], t, [0, 1])
        maps = seen.team.grid[1, t].reshape(5, 36)
        assert np.all(maps[:, ~valid] == 0)
        whats = (np.mean, np.std, np.max, lambda v: np.log1p(len(v) / 5), lambda v: 1.0)
        for found, what in zip(maps[:, valid], whats, strict=True):
            np.testing.assert_allclose(found, table(values, what), atol=1e-4)


def test_readings_that_are_equal_have_no_deviation():
    """Up to one rounding, in compiled programs too: the root of an error of 1e-7 would be 3e-4."""
    problem = small_hotspot(repeats=1)

    def deviation(readings):
        agents = jnp.arange(2)
        memories = jax.vmap(problem.init_memory)(agents, jnp.zeros((2, 1), jnp.float16))
        for _ in range(3):
            cells = jnp.full(2, 3)
            memories = jax.vmap(problem.update_memory)(memories, agents, cells, readings[:, None].astype(jnp.float16))
        return problem.team_features(memories).grid[1]

    readings = jnp.linspace(0.01, 20.0, 100)
    alike = jax.jit(jax.vmap(deviation))(jnp.stack([readings, readings], axis=1))
    assert float(jnp.max(alike)) < 2e-6


def test_a_team_sees_the_maps_of_one_agent_who_read_it_all(played):
    episodes, seen, _ = played
    problem = small_hotspot()

    def alone():
        memory = problem.init_memory(jnp.int32(0), jnp.zeros(5, jnp.float16))
        for t in range(4):
            for agent in (1, 0):
                reading = jnp.asarray(episodes.observations[0, t + 1, agent])
                memory = problem.update_memory(memory, jnp.int32(0), jnp.int32(ROUTE[t][agent]), reading)
        return problem.team_features(jax.tree.map(lambda x: x[None], memory)).grid

    np.testing.assert_allclose(once(alone), seen.team.grid[0, 4], atol=2e-3)


def test_what_others_read_reaches_nobody_elses_view(played):
    """The second crew's readings from another world: the first one's views are the same to the bit, the team's not."""
    episodes, seen, _ = played
    episode = jax.tree.map(lambda x: jnp.asarray(x[0]), episodes)
    mixed = episode._replace(observations=episode.observations.at[:, 1].set(episodes.observations[1, :, 1]))
    after = once(lambda: histories(small_hotspot(), mixed))
    np.testing.assert_array_equal(np.asarray(after.local.token)[0], seen.local.token[0, 0])
    assert np.any(np.asarray(after.local.token)[1] != seen.local.token[0, 1])
    assert np.any(np.asarray(after.team.grid) != seen.team.grid[0])


def test_what_others_do_changes_nothing_that_an_agent_reads():
    problem, world = small_hotspot(), hand_made([5, 9, 30], [0.5, 1.0, 2.0], [0.5, 0.3, 0.2])
    seen = [problem.step(world, (), jnp.array([5, other]), key=jax.random.key(4))[1] for other in (5, 9, 30)]
    assert np.all(np.asarray(seen)[:, 0] == np.asarray(seen)[0, 0])
    assert np.any(np.asarray(seen)[1, 1] != np.asarray(seen)[2, 1])


def test_a_negative_concentration_counts_as_none():
    """Instruments drift below 0, and a logarithm of that would spoil all that is remembered."""
    problem = small_hotspot()
    memory = problem.init_memory(jnp.int32(0), jnp.zeros(5, jnp.float16))
    kept = [
        problem.update_memory(memory, jnp.int32(0), jnp.int32(7), jnp.asarray(reading, jnp.float16))
        for reading in ([0.0] * 4 + [2.0], [-0.5, -3.0, 0.0, -0.0, 2.0])
    ]
    for zero, negative in zip(jax.tree.leaves(kept[0]), jax.tree.leaves(kept[1]), strict=True):
        np.testing.assert_array_equal(zero, negative)


def test_the_payoff_is_how_high_it_was_on_average():
    problem = small_hotspot()
    read = jnp.asarray([[1.0, 2.0, 3.0, 4.0, 5.0], [0.0, 0.0, 0.0, 0.0, 7.0]], jnp.float16)
    expected = (np.log1p(np.asarray(read, float)).mean() - float(problem.centre)) / float(problem.spread)
    assert float(problem.payoff(hand_made([], [], []), read)) == pytest.approx(expected, rel=1e-4)


# -- where it comes from


def test_mask_and_normalisation_are_those_of_the_training_years(from_files):
    """By hand from the readings: the cells that have any, and mean and deviation of their logs."""
    readings = few_readings().of_years([2001, 2002])
    grid = region()
    cells = np.unique(grid.cells(grid.places(readings.latitude, readings.longitude)))
    np.testing.assert_array_equal(from_files.cells, cells)
    assert 2 not in cells  # the corner without stations
    logs = np.log1p(readings.value)
    assert (float(from_files.centre), float(from_files.spread)) == pytest.approx((logs.mean(), logs.std()), rel=1e-5)


def test_readings_of_a_test_year_change_nothing_that_is_learned_from(from_files, tmp_path):
    """2019 fifty times as high, and all of it in a corner that no training year knows: the same mask and scale, and the
    same fields of the years before."""

    def change(readings: Readings) -> Readings:
        test = readings.year == 2019
        return Readings(
            readings.station,
            np.where(test, 38.9, readings.latitude),
            np.where(test, -76.1 + 0.01 * np.arange(75) / 75, readings.longitude),
            readings.day,
            np.where(test, 50 * readings.value, readings.value),
        )

    changed = Hotspot(data=write(tmp_path, few_readings(), change), **FROM_FILES)
    assert changed.valid == from_files.valid
    assert (changed.centre, changed.spread) == (from_files.centre, from_files.spread)
    draw = jax.jit(lambda problem, year: problem.world_of(year, key=jax.random.key(0)).mean)
    one, other = ([np.asarray(draw(p, jnp.int32(year))) for year in range(3)] for p in (from_files, changed))
    np.testing.assert_allclose(one[:2], other[:2], atol=1e-5)
    assert np.abs(one[2] - other[2]).max() > 1


def test_other_years_are_other_worlds_on_the_same_ground(from_files, folder):
    test = Hotspot(data=folder, **{**FROM_FILES, "years": (2019,)})
    assert test.valid == from_files.valid
    assert (test.centre, test.spread) == (from_files.centre, from_files.spread)
    keys = jax.random.split(jax.random.key(0), 20)
    years = [once(lambda p=p: jax.vmap(lambda key: p.sample(key=key).year)(keys)) for p in (from_files, test)]
    assert set(np.asarray(years[0]).tolist()) == {0, 1}
    assert set(np.asarray(years[1]).tolist()) == {2}


def test_support_leaves_out_cells_with_few_readings(folder):
    counts = np.bincount(region().cells(region().places(few_readings().latitude[:50], few_readings().longitude[:50])))
    problem = Hotspot(data=folder, support=6, **FROM_FILES)
    np.testing.assert_array_equal(problem.cells, np.flatnonzero(counts >= 6))
    assert len(problem.cells) < np.sum(counts > 0)


def test_readings_of_one_visit_can_be_averaged(folder):
    """All of a station's readings in a year here are of one day: ten are left of 25."""
    averaged = Hotspot(data=folder, average=True, **{**FROM_FILES, "fit": 10})
    assert np.asarray(averaged.fields.history.count).tolist() == [10, 10, 10]
