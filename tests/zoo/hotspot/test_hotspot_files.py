"""Hotspot teams in files, what is refused, and the real measurements where they are."""

from functools import partial
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest

import icmape
from icmape import load
from icmape.errors import UserError
from icmape.evaluation import metrics
from icmape.evaluation.single import play_one
from icmape.networks import Actors, make_inference
from icmape.play.episodes import play
from icmape.play.inference import NetworkInference
from icmape.play.policy import LearnedPolicy
from icmape.play.stop import LearnedStop
from icmape.play.team import Team
from icmape.problem import Centralized, check_worlds
from icmape.problem.spec import build, describe
from icmape.zoo.hotspot.data.readings import Readings
from icmape.zoo.hotspot.hotspot import Hotspot
from tests.support import drawn, once
from tests.zoo.hotspots import FROM_FILES, SMALL, few_readings, small_hotspot, write

NITRATE = Path(__file__).parents[4] / "shared" / "nitrate"


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
