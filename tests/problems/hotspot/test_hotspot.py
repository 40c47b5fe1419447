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

import icmape
from icmape import load
from icmape.descriptions import build, describe
from icmape.errors import UserError
from icmape.evaluation import metrics, play
from icmape.evaluation.single import play_one
from icmape.learning.policy import LearnedPolicy
from icmape.learning.rollout import histories, memories_at, play_greedy
from icmape.networks import Actors, make_inference
from icmape.problems import Centralized, Hotspot, arguments, check_problem, check_worlds
from icmape.problems.hotspot.hotspot import HotspotWorld
from icmape.problems.hotspot.readings import Readings
from icmape.teams import LearnedStop, NetworkInference, Team
from tests.hotspots import FROM_FILES, SMALL, few_readings, region, small_hotspot, write
from tests.support import drawn, once, script

NITRATE = Path(__file__).parents[4] / "shared" / "nitrate"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Where the few readings lie."""
    return write(tmp_path_factory.mktemp("exports"), few_readings())


@pytest.fixture(scope="module")
def from_files(folder: list[str]) -> Hotspot:
    return Hotspot(data=folder, **FROM_FILES)


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
    np.testing.assert_allclose(memories.squares[agent], table(values, lambda v: (v**2).sum()), rtol=1e-4, atol=1e-4)
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
            np.testing.assert_allclose(found, table(values, what), atol=2e-3 if what is np.std else 1e-4)


def test_a_team_sees_the_maps_of_one_agent_who_read_it_all(played):
    episodes, seen, _ = played
    problem = small_hotspot()

    def alone():
        memory = problem.memory(jnp.int32(0), jnp.zeros(5, jnp.float16))
        for t in range(4):
            for agent in (1, 0):
                reading = jnp.asarray(episodes.observations[0, t + 1, agent])
                memory = problem.remember(memory, jnp.int32(0), jnp.int32(ROUTE[t][agent]), reading)
        return problem.team_view(jax.tree.map(lambda x: x[None], memory)).grid

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
    memory = problem.memory(jnp.int32(0), jnp.zeros(5, jnp.float16))
    kept = [
        problem.remember(memory, jnp.int32(0), jnp.int32(7), jnp.asarray(reading, jnp.float16))
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


# -- teams and their files


@pytest.fixture(scope="module")
def team(from_files) -> Team:
    actors = drawn(lambda: Actors(from_files, 4, "paper+last", 0.0, True, key=jax.random.key(0)), 5, scale=1.5)
    actors = eqx.tree_at(lambda a: a.actor.head.bias, actors, replace_fn=lambda b: b.at[..., -1].set(0.0))
    make = partial(make_inference, from_files, 4, "paper+last", "dense", key=jax.random.key(0))
    return Team(from_files, LearnedPolicy(actors), LearnedStop(), NetworkInference(drawn(make, 1)), 0.2)


@pytest.fixture(scope="module")
def path(team, tmp_path_factory) -> Path:
    found = tmp_path_factory.mktemp("team") / "team.safetensors"
    team.save(found)
    return found


def test_a_team_without_its_data_acts_as_before(team, path, folder):
    """The file names nothing of the machine that wrote it, and nothing of that is needed in the field."""
    assert folder[0].encode() not in path.read_bytes()
    again = load(path)
    assert again.problem.data is None
    assert not again.problem.has_worlds
    np.testing.assert_array_equal(again.problem.coordinates, team.problem.coordinates)
    queries, readings = [1, 4, 1], [[0.5, 2.0, 1.5], [9.0, 7.5, 8.0], [0.0, 1.0, 0.4]]
    crews = team.agent(1), again.agent(1)
    for query, reading in zip(queries, readings, strict=True):
        np.testing.assert_array_equal(crews[0].scores, crews[1].scores)
        assert crews[0].act() == crews[1].act()
        for crew in crews:
            crew.see(query, reading)
    rows, seen = [[1, 4], [4, 0]], [[readings[0], readings[1]], [readings[1], readings[2]]]
    one, other = team.posterior(rows, seen), again.posterior(rows, seen)
    np.testing.assert_array_equal(one.probabilities, other.probabilities)
    assert one.confidence == other.confidence


def test_it_refuses_to_be_judged_or_trained_and_says_how(path):
    again = load(path)
    for refused in (
        lambda: again.evaluate(10),
        lambda: play_one(again),
        lambda: check_worlds(again.problem),
        lambda: icmape.train(again.problem, iterations=1),
        lambda: check_worlds(Centralized(again.problem)),
    ):
        with pytest.raises(UserError, match=r"come from measurements that its file does not hold.*--data"):
            refused()


def test_with_its_data_it_is_judged_as_before(team, path, folder, monkeypatch):
    monkeypatch.setattr(metrics, "CONSTANT_WORLDS", 100)
    with_data = load(path, data=folder)
    assert eqx.tree_equal(with_data, team, typematch=True)
    one, other = play(team, 100, 0), play(with_data, 100, 0)
    assert eqx.tree_equal(one, other)
    assert 0 < one.played.stop.mean() < 4  # episodes of all lengths
    result = with_data.evaluate(100)
    assert result.accuracy == one.at_stop(one.team.correct).mean()


def test_it_can_be_judged_in_other_worlds_on_its_own_ground(path, folder):
    """Those of another year, or made-up ones: mask and scale are the team's, whatever the data."""
    team, later, made_up = load(path), load(path, data=folder, years=(2019,)), load(path, synthetic=3)
    for other in (later, made_up):
        assert other.problem.valid == team.problem.valid
        assert (other.problem.centre, other.problem.spread) == (team.problem.centre, team.problem.spread)
    episodes = play(made_up, 100, 0)
    assert 0 < episodes.at_stop(episodes.team.correct).mean() < 1
    with pytest.raises(UserError, match=r"2007 \(0\)"):
        load(path, data=folder, years=(2007,))
    with pytest.raises(UserError, match="hotspot has no argument 'dta'"):
        load(path, dta=folder)
    with pytest.raises(UserError, match=r"needs? float32\[|description"):
        load(path, data=folder, valid=[0, 1, 2])


def test_a_problem_that_is_given_whole_cannot_be_changed_too(from_files):
    """Whether it is the one inside or a centralized one: changes would be lost without a word."""
    central = Centralized(from_files)
    for given in (from_files, central):
        with pytest.raises(UserError, match=r"its arguments \(years\) cannot be changed"):
            build(describe(central), given, {"years": (2019,)})


def test_its_line_names_what_is_not_the_default(team):
    shown = repr(Team(small_hotspot(), team.policy, team.stop, team.inference))
    assert "synthetic=0, rows=6, columns=6" in shown
    for default in ("characteristics", "latitudes", "longitudes"):
        assert default not in shown


# -- what is refused


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"synthetic": None}, r"come from measurements, and none were given: give a folder or files with --data"),
        ({"synthetic": None, "data": []}, r"problem.data names no files: give .*--data.*icmape data fetch --state MD"),
        ({"synthetic": None, "valid": [1, 2], "centre": 0.5}, "none were given"),
        ({"data": ["somewhere"]}, r"problem.data\) or the seed of made-up ones \(problem.synthetic\), not both"),
        ({"synthetic": None, "data": ["nowhere", "gone"]}, r"no measurements at nowhere, gone: give .*--data"),
        (
            {"years": ()},
            r"problem.years must have at least 30 readings.*none were given\. Years with enough: 2001-2019",
        ),
        ({"years": (2001, 1999)}, r"these do not: 1999 \(0\)\. Years with enough: 2001-2019\. .*lower problem.fit"),
        ({"fit": 1501}, r"2001 \(1,500\), 2002 \(1,500\).* Years with enough: none"),
        (
            {"training_years": (1990, 1991)},
            r"no cell of the region has 1 reading in the training years \(1990, 1991\): years with data are 2001, 2002,"
            r".* 2019\. Set problem.training_years",
        ),
        ({"support": 100_000}, r"no cell of the region has 100000 readings in.*or lower problem.support"),
        ({"k": 35}, "k is 35, but there are 34 valid cells: choose a smaller one"),
        *(({name: 0}, f"{name} must be at least 1; given 0") for name in ("agents", "k", "repeats", "fit", "support")),
        *(({name: 0.0}, f"{name} must be above 0; given 0") for name in ("cap", "length", "variance", "noise")),
        ({"length": -1.5}, "length must be above 0; given -1.5"),
        ({"noise": float("nan")}, "noise must be above 0; given nan"),
        ({"valid": [3, 36]}, r"valid must name cells of the grid, 0..35; given \[3, 36\]"),
        ({"valid": [-1, 3]}, "valid must name cells"),
        ({"valid": []}, "valid must name cells"),
        ({"rows": 0}, "at least one row"),
        ({"latitudes": (40.0, 39.0)}, "latitudes must be two numbers"),
        ({"spread": 0.0}, "spread must be above 0; given 0"),
        ({"spread": -0.3, "centre": 0.5}, "spread must be above 0; given -0.3"),
        ({"valid": [1, 2, 3], "training_years": (1990,)}, "training_years"),
    ],
)
def test_what_cannot_be_is_refused(given, said):
    with pytest.raises(UserError, match=said):
        Hotspot(**{**SMALL, **given})


def test_data_of_another_region_are_refused_with_where_they_are(folder):
    with pytest.raises(
        UserError,
        match=r"none of the 75 readings lies in the region \(latitudes 50.0 to 51.0, longitudes -77.0 to -76.0\): "
        r"latitudes 38\.\d+ to 38.900, longitudes -76\.\d+ to -76\.\d+\. Set problem.latitudes",
    ):
        Hotspot(data=folder, **{**FROM_FILES, "latitudes": (50.0, 51.0)})


def test_readings_that_are_all_the_same_are_refused(tmp_path):
    def change(readings: Readings) -> Readings:
        train = readings.year < 2019
        return Readings(**{**vars(readings), "value": np.where(train, 1.0, readings.value)})

    with pytest.raises(UserError, match="all 50 readings of the training years have the same value"):
        Hotspot(data=write(tmp_path, few_readings(), change), **FROM_FILES)


# -- the real thing


@pytest.fixture(scope="module")
def nitrate() -> Hotspot:
    if not NITRATE.is_dir():
        pytest.skip(f"the real measurements are not at {NITRATE}: they are no part of the project")
    return Hotspot(data=[str(NITRATE / name) for name in ("result.csv.gz", "station.csv.gz")])


def test_marylands_valid_cells(nitrate):
    assert (nitrate.actions, nitrate.rows, nitrate.columns) == (117, 20, 20)
    assert sum(map(int, nitrate.fields.history.count)) == 59_301


def test_marylands_best_constant_guess(nitrate):
    """0.557 on training years, measured on 2,000 fields: 0.02 is nearly two standard errors; the key is fixed."""
    keys = jax.random.split(jax.random.key(0), 2000)
    truths = once(lambda: jax.lax.map(lambda key: nitrate.sample(key=key).hypothesis, keys, batch_size=100))
    best = nitrate.hypotheses.best_constant(truths)
    assert np.mean(np.any(np.asarray(truths) == int(best), axis=1)) == pytest.approx(0.557, abs=0.02)
