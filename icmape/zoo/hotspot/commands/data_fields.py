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

    args = tyro.cli(years, prog="icmape data years", args=words)
    check_output(args["json"], "--json", "JSON")
    check_output(args["markdown"], "--markdown", "Markdown")
    return _years(args)


def _years(args: dict[str, Any]) -> int:
    from icmape.zoo.hotspot.commands.field_tables import print_years, years_markdown, years_numbers
    from icmape.zoo.hotspot.statistics import summarise_years

    with out.status("fitting fields"):
        problem = args["region"].problem(args["files"], "years", **vars(args["kernel"]))
        summary = summarise_years(problem, args["fields"])
    print_years(problem, summary)
    if args["json"] is not None:
        _write_json(args["json"], problem, {"fields": args["fields"], **years_numbers(problem, summary)})
    if args["markdown"] is not None:
        write_atomically(args["markdown"], years_markdown(problem, summary).encode())
        say(f"written to {args['markdown']}")
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

    args = tyro.cli(draw, prog="icmape data map", args=words)
    if not args["years"]:
        raise UserError("give years, such as: icmape data map data/wqp --years 2003 2018 2019")
    if args["out"].exists() and not args["out"].is_dir():
        raise UserError(f"--out {args['out']} is a file; expected a folder for the pictures")
    return _map(args)


def _map(args: dict[str, Any]) -> int:
    from icmape.zoo.hotspot.field_maps import write_maps
    from icmape.zoo.hotspot.statistics import map_year

    years = parse_years(args["years"])
    with out.status("drawing"):
        problem = args["region"].problem(args["files"], "map", **vars(args["kernel"]))
        maps = [map_year(problem, year, args["all_readings"]) for year in years]
        paths = write_maps(problem, maps, args["out"])
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

    args = tyro.cli(fit, prog="icmape data fit", args=words)
    check_output(args["json"], "--json", "JSON")
    for name, minimum in (("readings", 2), ("subsets", 1), ("fields", 1)):
        if args[name] < minimum:
            raise UserError(f"--{name} must be at least {minimum}; given {args[name]}")
    for name in ("target_variance", "length", "noise_ratio"):
        if args[name] is not None and not args[name] > 0:
            raise UserError(f"--{name.replace('_', '-')} must be above 0; given {args[name]:g}")
    return _fit(args)


def _fit(args: dict[str, Any]) -> int:
    from icmape.zoo.hotspot.commands.field_tables import choice_numbers, print_choice
    from icmape.zoo.hotspot.hyperparameters import Search, choose_kernel

    fixed = (args["length"], args["noise_ratio"], args["target_variance"])
    search = Search(args["readings"], args["subsets"], args["seed"], *fixed)
    with out.status("fitting"):
        problem = args["region"].problem(args["files"], "fit")
        years = parse_years(args["years"]) or list(problem.training_years)
        choice = choose_kernel(problem, years, search, args["fields"])
    print_choice(problem, choice)
    if args["json"] is not None:
        _write_json(args["json"], problem, choice_numbers(choice))
    return 0


def _write_json(path: Path, problem: Hotspot, content: dict[str, Any]) -> None:
    """Numbers with where they come from."""
    from icmape.io import circumstances

    document = {
        **content,
        "problem": describe(problem, local=False),
        "files": described_files(problem),
        "provenance": circumstances(),
    }
    write_atomically(path, json.dumps(document, indent=2).encode() + b"\n")
    say(f"written to {path}")
