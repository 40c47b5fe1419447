"""`icmape data years`, `map` and `fit`: fields fitted to the measurements of a region."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from icmape.errors import UserError
from icmape.io import write_atomically
from icmape.plot.terminal import check_file, check_folder, out, say, write_json
from icmape.problem.spec import describe
from icmape.zoo.hotspot.commands.data_region import (
    DEFAULTS,
    Files,
    KernelSettings,
    Region,
    described_files,
    parse_years,
)
from icmape.zoo.hotspot.hotspot import Hotspot

FIELDS = 100


@dataclass(frozen=True, kw_only=True)
class YearsOptions(Region, KernelSettings):
    """A row for every year: readings, stations, cells, the average posterior variance of a field, and the accuracy of
    the best constant answer of the training years."""

    files: Files = ()
    fields: int = FIELDS
    """Fields of each year, each fitted to a random subset of 100 readings."""
    json: Path | None = None
    """Also write the numbers to this JSON file."""
    markdown: Path | None = None
    """Also write the table to this Markdown file."""


def years_command(words: list[str]) -> int:
    """Summarise the readings of every year, and the variance of fields fitted to them."""
    args = tyro.cli(YearsOptions, prog="icmape data years", args=words)
    check_file(args.json, "--json")
    check_file(args.markdown, "--markdown", "Markdown")
    from icmape.zoo.hotspot.commands.field_tables import print_years, years_markdown, years_numbers
    from icmape.zoo.hotspot.statistics import summarise_years

    with out.status("fitting fields"):
        problem = args.problem(args.files, "years", **args.kernel)
        summary = summarise_years(problem, args.fields)
    print_years(problem, summary)
    if args.json is not None:
        _write_numbers(args.json, problem, {"fields": args.fields, **years_numbers(problem, summary)})
    if args.markdown is not None:
        write_atomically(args.markdown, years_markdown(problem, summary).encode())
        say(f"written to {args.markdown}")
    return 0


@dataclass(frozen=True, kw_only=True)
class MapOptions(Region, KernelSettings):
    """Draw the field of each year, fitted to the year's average concentration at every station: map-YEAR.png, and
    maps.png with all years and the standard deviations of their fields."""

    files: Files = ()
    years: tuple[str, ...] = ()
    """Such as 2003 2018 2019, or 2010-2014."""
    out: Path = Path("runs/maps")
    """Folder for the pictures."""
    all_readings: bool = False
    """Fit to all readings of a year instead of one average per station."""


def map_command(words: list[str]) -> int:
    """Draw the fields of whole years as maps."""
    args = tyro.cli(MapOptions, prog="icmape data map", args=words)
    if not args.years:
        raise UserError("give years, such as: icmape data map data/wqp --years 2003 2018 2019")
    check_folder(args.out, " for the pictures")
    from icmape.zoo.hotspot.field_maps import write_maps
    from icmape.zoo.hotspot.statistics import map_year

    years = parse_years(args.years)
    with out.status("drawing"):
        problem = args.problem(args.files, "map", **args.kernel)
        maps = [map_year(problem, year, args.all_readings) for year in years]
        paths = write_maps(problem, maps, args.out)
    say("maps: " + ", ".join(map(str, paths)))
    return 0


@dataclass(frozen=True, kw_only=True)
class FitOptions(Region):
    """Choose length, variance and noise by maximum marginal likelihood of random subsets of years' readings.

    With --target-variance, the length and the ratio of noise to variance are kept, and both variances are scaled so
    that the average posterior variance over valid cells is the target. The shapes of fields do not change.
    """

    files: Files = ()
    target_variance: float | None = None
    """Average posterior variance of a field; the paper's table has 0.31."""
    years: tuple[str, ...] = ()
    """Years to fit to, such as 2010-2018; by default all training years."""
    readings: int = DEFAULTS["fit"]
    """Readings of a subset, by default as many as a field is fitted to. Larger subsets give shorter lengths."""
    subsets: int = 10
    """Subsets of every year."""
    seed: int = 0
    """Seed of the subsets."""
    length: float | None = None
    """Fix the length to this value, in cells."""
    noise_ratio: float | None = None
    """Fix the noise to this share of the variance."""
    fields: int = FIELDS
    """Fields of each year over which the posterior variance is averaged."""
    json: Path | None = None
    """Also write the result to this JSON file."""


def fit_command(words: list[str]) -> int:
    """Choose a kernel for a region by maximum likelihood, or for a given posterior variance."""
    args = tyro.cli(FitOptions, prog="icmape data fit", args=words)
    check_file(args.json, "--json")
    for name, minimum in (("readings", 2), ("subsets", 1), ("fields", 1)):
        if (value := getattr(args, name)) < minimum:
            raise UserError(f"--{name} must be at least {minimum}; given {value}")
    for name in ("target_variance", "length", "noise_ratio"):
        if (value := getattr(args, name)) is not None and not value > 0:
            raise UserError(f"--{name.replace('_', '-')} must be above 0; given {value:g}")
    from icmape.zoo.hotspot.commands.field_tables import choice_numbers, print_choice
    from icmape.zoo.hotspot.hyperparameters import Search, choose_kernel

    fixed = (args.length, args.noise_ratio, args.target_variance)
    search = Search(args.readings, args.subsets, args.seed, *fixed)
    with out.status("fitting"):
        problem = args.problem(args.files, "fit")
        years = parse_years(args.years) or list(problem.training_years)
        choice = choose_kernel(problem, years, search, args.fields)
    print_choice(problem, choice)
    if args.json is not None:
        _write_numbers(args.json, problem, choice_numbers(choice))
    return 0


def _write_numbers(path: Path, problem: Hotspot, content: dict[str, Any]) -> None:
    """Write numbers with the data and the versions that they come from."""
    from icmape.io import circumstances

    described = {"problem": describe(problem, local=False), "files": described_files(problem)}
    write_json(path, {**content, **described, "provenance": circumstances()})
