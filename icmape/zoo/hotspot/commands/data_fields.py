"""`icmape data years`, `map` and `fit`: what fields the measurements of a region give."""

import json
from pathlib import Path
from typing import Any

import tyro

from icmape.errors import UserError
from icmape.io import write_atomically
from icmape.plot.terminal import out, say
from icmape.problem.spec import describe
from icmape.zoo.hotspot.commands.data_region import (
    DEFAULTS,
    FieldSettings,
    Files,
    KernelSettings,
    Region,
    RegionSettings,
    check_output,
    described_files,
    parse_years,
)
from icmape.zoo.hotspot.hotspot import Hotspot

FIELDS = 100


def years_command(words: list[str]) -> int:
    """Tell how much every year has, and how well fields are known from it."""

    def years(
        files: Files = (),
        fields: int = FIELDS,
        json: Path | None = None,
        markdown: Path | None = None,
        region: RegionSettings = Region(),
        kernel: FieldSettings = KernelSettings(),
    ) -> dict[str, Any]:
        """A row for every year: readings, stations, cells, the average posterior variance of a field, and how often
        the best constant answer of the training years is right.

        Args:
            files: Results and stations: exports of the Water Quality Portal (.csv, .csv.gz, .zip) or folders of them.
            fields: Fields of each year, each fitted to a random subset of 100 readings.
            json: Also write the numbers to this JSON file.
            markdown: Also write the table to this Markdown file.
        """
        return dict(locals())

    given = tyro.cli(years, prog="icmape data years", args=words)
    check_output(given["json"], "--json", "JSON")
    check_output(given["markdown"], "--markdown", "Markdown")
    return _years(given)


def _years(given: dict[str, Any]) -> int:
    from icmape.zoo.hotspot.commands.field_tables import print_years, years_markdown, years_numbers
    from icmape.zoo.hotspot.statistics import summarise_years

    with out.status("fitting fields"):
        problem = given["region"].problem(given["files"], "years", **vars(given["kernel"]))
        summary = summarise_years(problem, given["fields"])
    print_years(problem, summary)
    if given["json"] is not None:
        _write_json(given["json"], problem, {"fields": given["fields"], **years_numbers(problem, summary)})
    if given["markdown"] is not None:
        write_atomically(given["markdown"], years_markdown(problem, summary).encode())
        say(f"written to {given['markdown']}")
    return 0


def map_command(words: list[str]) -> int:
    """Draw the fields of whole years as maps."""

    def draw(
        files: Files = (),
        years: tuple[str, ...] = (),
        out: Path = Path("runs/maps"),
        all_readings: bool = False,
        region: RegionSettings = Region(),
        kernel: FieldSettings = KernelSettings(),
    ) -> dict[str, Any]:
        """Draw the field of each year, fitted to the year's average concentration at every station: map-YEAR.png, and
        maps.png with all years and how well their fields are known.

        Args:
            files: Results and stations: exports of the Water Quality Portal (.csv, .csv.gz, .zip) or folders of them.
            years: Such as 2003 2018 2019, or 2010-2014.
            out: Folder for the pictures.
            all_readings: Fit to all readings of a year instead of one average per station.
        """
        return dict(locals())

    given = tyro.cli(draw, prog="icmape data map", args=words)
    if not given["years"]:
        raise UserError("give years, such as: icmape data map data/wqp --years 2003 2018 2019")
    if given["out"].exists() and not given["out"].is_dir():
        raise UserError(f"--out {given['out']} is a file; expected a folder for the pictures")
    return _map(given)


def _map(given: dict[str, Any]) -> int:
    from icmape.zoo.hotspot.field_maps import write_maps
    from icmape.zoo.hotspot.statistics import map_year

    years = parse_years(given["years"])
    with out.status("drawing"):
        problem = given["region"].problem(given["files"], "map", **vars(given["kernel"]))
        maps = [map_year(problem, year, given["all_readings"]) for year in years]
        paths = write_maps(problem, maps, given["out"])
    say("maps: " + ", ".join(map(str, paths)))
    return 0


def fit_command(words: list[str]) -> int:
    """Choose a kernel for a region by maximum likelihood, or so that fields are as well known as one wishes."""

    def fit(
        files: Files = (),
        target_variance: float | None = None,
        years: tuple[str, ...] = (),
        readings: int = DEFAULTS["fit"],
        subsets: int = 10,
        seed: int = 0,
        length: float | None = None,
        noise_ratio: float | None = None,
        fields: int = FIELDS,
        json: Path | None = None,
        region: RegionSettings = Region(),
    ) -> dict[str, Any]:
        """Choose length, variance and noise by maximum marginal likelihood of random subsets of years' readings.

        With --target-variance, the length and the ratio of noise to variance are kept, and both variances are scaled so
        that the average posterior variance over valid cells is the target. This changes how well fields are known, and
        leaves their shapes as they are.

        Args:
            files: Results and stations: exports of the Water Quality Portal (.csv, .csv.gz, .zip) or folders of them.
            target_variance: Average posterior variance of a field; the paper's table has 0.31.
            years: Years to learn from, such as 2010-2018. Unless told all training years.
            readings: Of a subset. With many readings per station a larger subset gives a shorter length: leave it at
                what a field is fitted to.
            subsets: Of every year.
            seed: Of the subsets.
            length: Hold the length at this, in cells.
            noise_ratio: Hold the noise at this share of the variance.
            fields: Fields of each year over which the posterior variance is averaged.
            json: Also write what was chosen to this JSON file.
        """
        return dict(locals())

    given = tyro.cli(fit, prog="icmape data fit", args=words)
    check_output(given["json"], "--json", "JSON")
    for name, least in (("readings", 2), ("subsets", 1), ("fields", 1)):
        if given[name] < least:
            raise UserError(f"--{name} must be at least {least}; given {given[name]}")
    for name in ("target_variance", "length", "noise_ratio"):
        if given[name] is not None and not given[name] > 0:
            raise UserError(f"--{name.replace('_', '-')} must be above 0; given {given[name]:g}")
    return _fit(given)


def _fit(given: dict[str, Any]) -> int:
    from icmape.zoo.hotspot.commands.field_tables import choice_numbers, print_choice
    from icmape.zoo.hotspot.hyperparameters import Search, choose_kernel

    held = (given["length"], given["noise_ratio"], given["target_variance"])
    search = Search(given["readings"], given["subsets"], given["seed"], *held)
    with out.status("fitting"):
        problem = given["region"].problem(given["files"], "fit")
        years = parse_years(given["years"]) or list(problem.training_years)
        choice = choose_kernel(problem, years, search, given["fields"])
    print_choice(problem, choice)
    if given["json"] is not None:
        _write_json(given["json"], problem, choice_numbers(choice))
    return 0


def _write_json(path: Path, problem: Hotspot, content: dict[str, Any]) -> None:
    """Numbers with where they come from."""
    from icmape.io import circumstances

    whole = {
        **content,
        "problem": describe(problem, local=False),
        "files": described_files(problem),
        "provenance": circumstances(),
    }
    write_atomically(path, json.dumps(whole, indent=2).encode() + b"\n")
    say(f"written to {path}")
