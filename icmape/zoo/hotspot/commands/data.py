"""`icmape data`: download and check water-quality data."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import tyro

from icmape.errors import UserError, nearest
from icmape.plot.terminal import check_file, progress, say, write_json
from icmape.zoo.hotspot.commands.data_fields import fit_command, map_command, years_command
from icmape.zoo.hotspot.commands.data_region import Files, parse_years
from icmape.zoo.hotspot.hotspot import DATA

DEFAULT_FOLDER = Path(DATA)

USAGE = """usage: icmape data COMMAND ...

{commands}

`icmape data COMMAND --help` explains every setting."""


def data_command(words: list[str]) -> int:
    """Run a command on data."""
    if not words or words[0] in ("-h", "--help"):
        width = max(map(len, DATA_COMMANDS))
        lines = [f"  {name:<{width}}  {_first_line(command)}" for name, command in DATA_COMMANDS.items()]
        say(USAGE.format(commands="\n".join(lines)))
        return 0 if words else 2
    if words[0] not in DATA_COMMANDS:
        raise UserError(f"unknown command 'data {words[0]}': {nearest(words[0], DATA_COMMANDS)}")
    return DATA_COMMANDS[words[0]](words[1:])


def _first_line(command: Callable[[list[str]], int]) -> str:
    return (command.__doc__ or "").partition("\n")[0]


@dataclass(frozen=True, kw_only=True)
class FetchOptions:
    """Fetch a state's results and stations, one year at a time. An interrupted command can be repeated."""

    state: str = ""
    """MD, Maryland or US:24."""
    characteristic: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """What was measured, in all names of the portal; may be repeated. By default nitrate, and nitrate + nitrite."""
    years: tuple[str, ...] = ()
    """Such as 2001-2023, or 2001 2005-2007."""
    out: Path = DEFAULT_FOLDER
    """Folder for the files. It holds one query; years can be added to it."""
    service: str = "legacy"
    """legacy, or wqx3, which is slower but has the data that the USGS added since March 2024."""
    timeout: float = 300.0
    """Seconds without a byte after which an answer counts as stalled."""
    retries: int = 4
    """Attempts after the first, for each file."""
    pause: float = 2.0
    """Seconds before the second attempt; doubled each time, up to a minute."""
    url: str | None = None
    """Root of the portal, for a mirror."""


def fetch_command(words: list[str]) -> int:
    """Fetch a state's results and stations from the Water Quality Portal."""
    args = tyro.cli(FetchOptions, prog="icmape data fetch", args=words)
    if not args.state or not args.years:
        raise UserError("give a state and years, such as: icmape data fetch --state MD --years 2001-2023")
    from icmape.zoo.hotspot.data.answers import Connection
    from icmape.zoo.hotspot.data.exports import Rules
    from icmape.zoo.hotspot.data.portal import fetch

    years = parse_years(args.years)
    connection = Connection(args.timeout, args.retries, args.pause, args.url)
    with progress("fetching", len(years)) as tick:
        fetched = fetch(
            args.state,
            args.characteristic or Rules().characteristics,
            years,
            args.out,
            service=args.service,
            connection=connection,
            tell=say,
            tick=tick,
        )
    present = len(years) - len(fetched.new)
    say(
        f"{sum(fetched.rows.values()):,} results of {len(years)} years in {fetched.folder}"
        + (f" ({present} of them were there already)" if present else "")
    )
    say(f"next: icmape data check {fetched.folder}")
    return 0


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """Read exports and account for every row."""

    files: Files = ()
    characteristic: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Characteristics to keep; may be repeated. By default nitrate, and nitrate + nitrite."""
    medium: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Sampled media to keep; may be repeated. By default water."""
    nondetect: float = 0.5
    """Value of a non-detect, as a share of its detection limit."""
    basis: str = "N"
    """Basis of a mass where none is stated: N, NO3 or NO2; drop leaves such rows out."""
    average: bool = True
    """Average the readings of one station on one day."""
    json: Path | None = None
    """Also write the account to this JSON file."""


def check_command(words: list[str]) -> int:
    """Read exports and account for every row: kept, or dropped for which reason."""
    args = tyro.cli(CheckOptions, prog="icmape data check", args=words)
    if not args.files:
        raise UserError(f"give exports or folders of them, such as: icmape data check {DEFAULT_FOLDER}")
    check_file(args.json, "--json")
    from icmape.zoo.hotspot.commands.accounts import print_account, print_readings, summary
    from icmape.zoo.hotspot.data.exports import Rules, read_exports

    defaults = Rules()
    rules = Rules(
        characteristics=args.characteristic or defaults.characteristics,
        media=args.medium or defaults.media,
        nondetect=args.nondetect,
        average=args.average,
        basis=args.basis,
    )
    readings, account = read_exports(args.files, rules)
    print_account(account)
    print_readings(readings)
    if args.json is not None:
        write_json(args.json, account.to_dict() | summary(readings))
    return 0


DATA_COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "fetch": fetch_command,
    "check": check_command,
    "years": years_command,
    "map": map_command,
    "fit": fit_command,
}

COMMANDS = {"data": data_command}
"""Commands of this problem, by name."""
