"""Example worlds, and the years of the nitrate data."""

from __future__ import annotations

from typing import Any

import jax

from icmape.errors import UserError
from icmape.evaluation.results import read_json
from icmape.evaluation.single import draw_world, world_key
from icmape.plot.drawings import drawing_class
from icmape.plot.items import DASH, Item, Raster, Table, number
from icmape.zoo.hotspot.hotspot import Hotspot
from paper import printed as paper
from paper.collected import Results
from paper.experiments import Setting
from paper.work_plan import SEED

MAPPED = (2003, 2018, 2019)  # years in the paper's figure
WORLD = 10


def worlds(results: Results, setting: Setting) -> list[Item]:
    """The field of one world; for problems from measurements an episode, maps and the table of years."""
    if not setting.needs_data or results.plan.quick:
        return _example(results, setting)
    first = next(one for one in results.settings if one.needs_data)
    years = [*_maps(results, setting), *_years(results, setting)] if setting == first else []
    return [*_episode(results, setting), *_example(results, setting), *years]


def _episode(results: Results, setting: Setting) -> list[Item]:
    """A stored picture of an episode."""
    path = results.plan.store.find(f"{setting.full.preset}/episode.png")
    if path is None:
        return []
    return [Raster(f"{setting.name}-episode", f"An episode: {results.title(setting)}", _shown(path), "Stored picture.")]


def _example(results: Results, setting: Setting) -> list[Item]:
    """The field of one world, for problems that have one."""
    if results.plan.lacks(setting):
        return []
    problem = results.plan.scale(setting).problem(**results.plan.changes(setting))
    key = world_key(WORLD, SEED)
    try:
        figure = drawing_class(type(problem)).field(problem, draw_world(problem, key), jax.random.fold_in(key, 1))
    except UserError:  # the problem has no field
        return []
    if results.mark:
        figure.suptitle(f"[{results.mark}]", fontsize=9, x=0.01, ha="left")
    return [
        Raster(
            f"{setting.name}-field", f"A world of {results.title(setting)}", figure, f"World {WORLD} of seed {SEED}."
        )
    ]


def _maps(results: Results, setting: Setting) -> list[Item]:
    """Maps of years: drawn from the measurements if they are available, else the stored picture."""
    title = f"Concentration fields of {', '.join(map(str, MAPPED))}"
    if not results.plan.lacks(setting):
        return [Raster("nitrate-maps", title, _drawn(setting, results), "The last year is not trained on.")]
    path = results.plan.store.find(f"{setting.full.preset}/maps.png")
    if path is None:
        return []
    note = "The last year is not trained on. Stored picture: the measurements are not available."
    return [Raster("nitrate-maps", title, _shown(path), note)]


def _drawn(setting: Setting, results: Results) -> Any:
    from icmape.zoo.hotspot.field_maps import concentration_colours, years_figure
    from icmape.zoo.hotspot.statistics import map_year

    problem = setting.full.problem(**results.plan.changes(setting))
    assert isinstance(problem, Hotspot)
    drawn = [map_year(problem, year, False) for year in MAPPED]
    return years_figure(problem, drawn, concentration_colours(max(float(year.concentration.max()) for year in drawn)))


def _shown(path: Any) -> Any:
    """A stored picture as a figure."""
    from matplotlib.figure import Figure
    from matplotlib.image import imread

    pixels = imread(path)
    figure = Figure(figsize=(pixels.shape[1] / 110, pixels.shape[0] / 110))
    axis = figure.add_axes((0, 0, 1, 1))
    axis.imshow(pixels)
    axis.set_axis_off()
    return figure


def _years(results: Results, setting: Setting) -> list[Item]:
    """The paper's table of years."""
    path = results.plan.store.find(f"{setting.full.preset}/years.json")
    content = read_json(path) if path else None
    if not content:
        return []
    rows = []
    for year in content["years"]:
        kind = "training" if year["training"] else "test"
        counts = [f"{year[name]:,}" for name in ("readings", "stations", "cells")]
        rows.append([str(year["year"]), kind, *counts, number(year["variance"], ".3f"), number(year["sigma"], ".3f")])
    rows.append(["training years", "mean", DASH, DASH, DASH, f"{content['training']['variance']:.3f}", DASH])
    headings = ["year", "", "readings", "stations", "cells with data", "mean variance", "mean deviation"]
    measure = f"Posterior variance of log(1 + concentration) in valid cells, {content['fields']} fields a year."
    note = f"{measure} The paper's mean and range: {paper.VARIANCE}."
    return [Table("nitrate-years", "Data of each year", headings, rows, note)]
