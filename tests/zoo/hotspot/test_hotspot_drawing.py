"""Pictures of hotspot monitoring show what happened where it happened, in degrees and mg/L."""

import math
import sys
from functools import cache, partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

from icmape.evaluation.single import Played, play_one
from icmape.networks.ground import DenseInference
from icmape.play.inference import NetworkInference
from icmape.play.open_loop import Schedule
from icmape.play.stop import FixedLength
from icmape.play.team import Team
from icmape.plot import drawing as drawing_module
from icmape.plot.drawing import write_episode
from icmape.plot.drawings import drawing_class, drawing_of
from icmape.zoo.hotspot.field_maps import (
    HIGHEST,
    concentration_colours,
    concentration_ticks,
    highest_cells,
    write_maps,
    years_figure,
)
from icmape.zoo.hotspot.hotspot import Hotspot
from icmape.zoo.hotspot.hotspot_drawing import HotspotDrawing, agent_numbers
from icmape.zoo.hotspot.region import place_name
from icmape.zoo.hotspot.statistics import map_year
from tests.support import drawn
from tests.zoo.hotspots import small_hotspot

SENT = [[3, 3], [5, 3], [20, 21]]  # both to one cell; one of them comes back to it


@cache
def episode() -> Played:
    """Three rounds of samples, read by an untrained network."""
    problem = small_hotspot()
    network = drawn(partial(DenseInference, problem, 4, key=jax.random.key(0)))
    policy = Schedule(jnp.asarray(SENT, jnp.int32), problem.actions + 1)
    return play_one(Team(problem, policy, FixedLength(3), NetworkInference(network)), world=2)


@cache
def told() -> HotspotDrawing:
    found = drawing_of(episode())
    assert isinstance(found, HotspotDrawing)
    return found


def encircled(axis: Axes) -> set[tuple[float, float]]:
    """Middles of the cells with a red ring: latitude and longitude."""
    rings = [patch for patch in axis.patches if isinstance(patch, Ellipse)]
    red = [ring for ring in rings if to_hex(ring.get_edgecolor()) == HIGHEST.lower()]
    return {(round(latitude, 4), round(longitude, 4)) for longitude, latitude in (ring.get_center() for ring in red)}


def middles(problem: Hotspot, actions: np.ndarray) -> set[tuple[float, float]]:
    return {(round(a, 4), round(b, 4)) for a, b in problem.coordinates[actions].tolist()}


def maps(figure: Figure) -> list[Axes]:
    return [axis for axis in figure.axes if axis.images]


def values(problem: Hotspot, axis: Axes) -> np.ndarray:
    """What a map shows of the valid cells; all others must be masked."""
    shown = np.ma.getmaskarray(axis.images[0].get_array()).ravel()
    np.testing.assert_array_equal(np.flatnonzero(~shown), problem.cells)
    return np.asarray(axis.images[0].get_array()).ravel()[problem.cells]


# -- words


def test_places_are_said_in_degrees() -> None:
    assert place_name([39.3123, -76.5188]) == "39.31N 76.52W"
    assert place_name((-33.9, 151.25)) == "33.90S 151.25E"


def test_an_episode_is_told_in_places_and_concentrations() -> None:
    drawing, played = told(), episode()
    cells = played.problem.coordinates
    assert drawing.place(0, 0) == drawing.seen(0, 0) == ""
    assert drawing.choice(0, 0) == drawing.place(0, 1) == place_name(cells[3])
    assert drawing.choice(0, 1) == drawing.place(0, 2) == place_name(cells[5])
    mean = np.asarray(played.episode.observations[1, 1], float).mean()
    repeats = drawing.readings.shape[-1]
    assert drawing.seen(1, 1) == f"{mean:.2f} mg/L" + (f" (mean of {repeats})" if repeats > 1 else "")
    assert drawing.choice(0, 3) == "STOP"
    assert drawing.answer(np.int32(7)) == place_name(cells[7])
    assert drawing.answer(np.array([7, 8])) == f"{place_name(cells[7])} or {place_name(cells[8])}"


def test_readings_are_near_the_field_where_they_were_taken() -> None:
    drawing, played = told(), episode()
    for number in (1, 2, 3):
        for agent, cell in enumerate(SENT[number - 1]):
            logs = np.log1p(drawing.readings[number, agent])
            error = float(played.world.deviation[cell]) / math.sqrt(played.problem.repeats)
            # six deviations: 24 readings at 0 would be needed to break this by chance
            assert abs(logs.mean() - max(float(played.world.mean[cell]), 0)) < 6 * error


def test_samples_are_known_by_crew_and_by_age() -> None:
    drawing = told()
    assert drawing.samples(0) == ({}, {})
    assert drawing.samples(1) == ({3: [0, 1]}, {})
    assert drawing.samples(2) == ({5: [0], 3: [1]}, {3: [0, 1]})
    assert drawing.samples(3) == ({20: [0], 21: [1]}, {3: [0, 1], 5: [0]})


def test_crews_in_one_cell_share_a_mark() -> None:
    assert [agent_numbers(crews) for crews in ([0], [0, 1], [0, 1, 2], [0, 2, 3, 4, 5])] == ["1", "1,2", "1-3", "1,3-6"]


# -- pictures


def test_a_strip_has_the_field_above_the_posterior_of_every_round() -> None:
    played, problem = episode(), episode().problem
    found = maps(told().strip())
    assert len(found) == 2 * played.rounds == 8
    columns = 2  # four rounds in two bands
    for number in range(4):
        band, column = divmod(number, columns)
        above, under = found[band * 2 * columns + column], found[(band * 2 + 1) * columns + column]
        field = np.expm1(np.maximum(np.asarray(played.world.mean), 0))
        np.testing.assert_allclose(values(problem, above), field, rtol=1e-6)
        np.testing.assert_allclose(values(problem, under), played.probabilities[number], rtol=1e-6)
        assert above.get_title().startswith(f"after round {number}: p = " if number else "before round 1: p = ")


def test_rings_are_where_the_truth_is_and_the_mark_where_the_answer_is() -> None:
    played, problem = episode(), episode().problem
    for number, axis in enumerate(_round_maps()):
        assert encircled(axis) == middles(problem, played.world.hypothesis)
        answer = [(round(float(line.get_ydata()[0]), 4), round(float(line.get_xdata()[0]), 4)) for line in axis.lines]
        assert answer == list(middles(problem, played.decisions[number : number + 1]))


def _round_maps() -> list[Axes]:
    """The right half of every frame."""
    found = []
    for number in range(episode().rounds):
        figure = Figure(figsize=told().frame_size)
        told().frame(figure, number)
        found.append(maps(figure)[1])
    return found


def test_crews_numbers_are_where_they_sampled() -> None:
    figure = Figure(figsize=told().frame_size)
    told().frame(figure, 3)
    world = maps(figure)[0]
    written = {text.get_text(): tuple(np.round(text.get_position()[::-1], 4)) for text in world.texts}
    cells = {name: tuple(np.round(episode().problem.coordinates[cell], 4)) for name, cell in
             (("1", 20), ("2", 21), ("1,2", 3))}  # fmt: skip
    assert written["2"] == cells["2"]
    assert written["1,2"] == cells["1,2"]
    assert len(world.texts) == 4, "two last samples, two earlier cells"
    readings = [f"{agent + 1}: {told().mean_reading(agent, 3):.2f}" for agent in range(2)]
    assert all(reading in world.get_xlabel() for reading in readings)


def test_episode_and_field_are_drawn_without_a_display(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing_module, "DPI", 40)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # the part of matplotlib that looks for a display
    for path in write_episode(told(), tmp_path):
        assert path.stat().st_size > 1000


def test_a_world_is_drawn_with_its_field_and_the_deviation_of_readings() -> None:
    played, problem = episode(), episode().problem
    figure = drawing_class(Hotspot).field(problem, played.world, jax.random.key(0))
    field, deviation = maps(figure)
    np.testing.assert_allclose(values(problem, field), told().concentration, rtol=1e-6)
    np.testing.assert_allclose(values(problem, deviation), played.world.deviation, rtol=1e-6)
    assert encircled(field) == encircled(deviation) == middles(problem, played.world.hypothesis)
    assert field.get_title() == f"a synthetic field of {problem.fields.history.years[int(played.world.year)]}"


# -- whole years


def test_a_colour_means_the_same_in_all_years() -> None:
    problem = small_hotspot()
    years = [map_year(problem, year) for year in (2001, 2005)]
    norm = concentration_colours(max(float(year.concentration.max()) for year in years))
    figure = years_figure(problem, years, norm)
    fields, known = maps(figure)[:2], maps(figure)[2:]
    assert [axis.get_title() for axis in fields] == ["2001 (training)", "2005 (test)"]
    assert fields[0].images[0].norm is fields[1].images[0].norm
    assert known[0].images[0].get_clim() == known[1].images[0].get_clim()
    for axis, year in zip(fields, years, strict=True):
        np.testing.assert_allclose(values(problem, axis), year.concentration, rtol=1e-6)
        assert encircled(axis) == middles(problem, highest_cells(year.concentration, problem.k))
        degree = 111.3 * math.cos(math.radians(sum(problem.latitudes) / 2))
        assert axis.get_aspect() == pytest.approx(111.3 / degree), "a kilometre is as long in both directions"


def test_stations_are_drawn_where_they_are() -> None:
    problem = small_hotspot()
    year = map_year(problem, 2001)
    figure = years_figure(problem, [year], concentration_colours(5.0))
    dots = np.asarray(maps(figure)[0].collections[0].get_offsets())
    back = problem.grid.places(dots[:, 1], dots[:, 0])
    np.testing.assert_allclose(back, year.places, atol=1e-4)


def test_colours_are_even_in_logs_and_ticks_are_round() -> None:
    norm = concentration_colours(8.0)
    assert float(norm(np.expm1(np.log1p(8.0) / 2))) == pytest.approx(0.5)
    assert concentration_ticks(norm) == [0, 0.5, 1, 2, 3, 4, 5, 7]


def test_every_year_has_a_file_and_all_have_one(tmp_path: Path) -> None:
    problem = small_hotspot()
    paths = write_maps(problem, [map_year(problem, 2003)], tmp_path / "new")
    assert [path.name for path in paths] == ["map-2003.png", "maps.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)
