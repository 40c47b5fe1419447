"""`icmape data`: get water-quality data, and see what is in them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tyro

from icmape.errors import UserError, nearest
from icmape.io import write_atomically
from icmape.plot.terminal import progress, say
from icmape.zoo.hotspot.commands.data_fields import fit_command, map_command, years_command
from icmape.zoo.hotspot.commands.data_region import parse_years
from icmape.zoo.hotspot.hotspot import DATA

DEFAULT_FOLDER = Path(DATA)

USAGE = """usage: icmape data COMMAND ...

{commands}

`icmape data COMMAND --help` explains every setting."""


def data_command(words: list[str]) -> int:
    """Dispatch to the commands on data."""
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


def fetch_command(words: list[str]) -> int:
    """Fetch a state's results and stations from the Water Quality Portal."""

    def fetch(
        state: str = "",
        characteristic: tyro.conf.UseAppendAction[tuple[str, ...]] = (),
        years: tuple[str, ...] = (),
        out: Path = DEFAULT_FOLDER,
        service: str = "legacy",
        timeout: float = 300.0,
        retries: int = 4,
        pause: float = 2.0,
        url: str | None = None,
    ) -> dict[str, Any]:
        """Fetch a state's results and stations, a year at a time. The same command again goes on where one stopped.

        Args:
            state: MD, Maryland or US:24.
            characteristic: What was measured; give the flag once for each. Unless told nitrate, and nitrate + nitrite.
                Those two are asked for in all the names that the portal has for them; others to the letter.
            years: Such as 2001-2023, or 2001 2005-2007.
            out: Folder for the files. It holds one query; more years of it can be added.
            service: legacy, or wqx3, which is slower but has what the USGS added since March 2024.
            timeout: Seconds without a byte before an answer counts as stalled.
            retries: Attempts after the first, for each file.
            pause: Seconds before the second attempt; doubled each time, up to a minute.
            url: Root of the portal, for a mirror.
        """
        return dict(locals())

    args = tyro.cli(fetch, prog="icmape data fetch", args=words)
    if not args["state"] or not args["years"]:
        raise UserError("give a state and years, such as: icmape data fetch --state MD --years 2001-2023")
    return _fetch(args)


def _fetch(args: dict[str, Any]) -> int:
    from icmape.zoo.hotspot.data.answers import Connection
    from icmape.zoo.hotspot.data.exports import Rules
    from icmape.zoo.hotspot.data.portal import fetch

    years = parse_years(args["years"])
    connection = Connection(args["timeout"], args["retries"], args["pause"], args["url"])
    with progress("fetching", len(years)) as tick:
        fetched = fetch(
            args["state"],
            args["characteristic"] or Rules().characteristics,
            years,
            args["out"],
            service=args["service"],
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


def check_command(words: list[str]) -> int:
    """Read exports and account for every row: kept, or dropped for which reason."""

    def check(
        files: tyro.conf.Positional[tuple[Path, ...]] = (),
        characteristic: tyro.conf.UseAppendAction[tuple[str, ...]] = (),
        medium: tyro.conf.UseAppendAction[tuple[str, ...]] = (),
        nondetect: float = 0.5,
        basis: str = "N",
        average: bool = True,
        json: Path | None = None,
    ) -> dict[str, Any]:
        """Read exports and account for every row.

        Args:
            files: Results and stations: exports of the Water Quality Portal (.csv, .csv.gz, .zip) or folders of them.
            characteristic: What counts; give the flag once for each. Unless told nitrate, and nitrate + nitrite.
            medium: Sampled medium that counts; give the flag once for each. Unless told water.
            nondetect: A non-detect counts as this share of its detection limit.
            basis: What a mass is of where nothing says it: N, NO3 or NO2; drop leaves such rows out.
            average: Average what one station has on one day.
            json: Also write the account to this JSON file.
        """
        return dict(locals())

    args = tyro.cli(check, prog="icmape data check", args=words)
    if not args["files"]:
        raise UserError(f"give exports or folders of them, such as: icmape data check {DEFAULT_FOLDER}")
    if args["json"] is not None and args["json"].is_dir():
        raise UserError(f"--json {args['json']} is a folder; expected the name of a JSON file")
    return _check(args)


def _check(args: dict[str, Any]) -> int:
    from icmape.zoo.hotspot.commands.accounts import print_account, print_readings, summary
    from icmape.zoo.hotspot.data.exports import Rules, read_exports

    defaults = Rules()
    rules = Rules(
        characteristics=args["characteristic"] or defaults.characteristics,
        media=args["medium"] or defaults.media,
        nondetect=args["nondetect"],
        average=args["average"],
        basis=args["basis"],
    )
    readings, account = read_exports(args["files"], rules)
    print_account(account)
    print_readings(readings)
    if args["json"] is not None:
        content = account.to_dict() | summary(readings)
        write_atomically(args["json"], json.dumps(content, indent=2).encode() + b"\n")
        say(f"written to {args['json']}")
    return 0


DATA_COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "fetch": fetch_command,
    "check": check_command,
    "years": years_command,
    "map": map_command,
    "fit": fit_command,
}

COMMANDS = {"data": data_command}
"""Of the command line, by name."""
