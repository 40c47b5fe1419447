"""`icmape diagnose`."""

import json
from pathlib import Path
from typing import Any

import tyro

from icmape.cli.teams import changes_of, load_changed
from icmape.errors import UserError
from icmape.io import write_atomically
from icmape.plot.terminal import out as console
from icmape.plot.terminal import say
from icmape.problem.spec import load_class


def diagnose_command(arguments: list[str]) -> int:
    """What holds a team back."""

    def options(
        team: tyro.conf.Positional[str],
        episodes: int = 10_000,
        seed: int = 0,
        out: Path | None = None,
        problem: str | None = None,
        data: tuple[str, ...] = (),
        set: tuple[str, ...] = (),
    ) -> dict[str, Any]:
        """Replace a team's inference, stop and sampling by the best there is, at the same accuracy.

        Args:
            team: A team file, or the name of a pretrained team.
            episodes: Worlds for each row.
            seed: Seed of the worlds.
            out: Also write the numbers to this JSON file.
            problem: module:Class of the problem, if it is not part of icmape.
            data: Files or folders of measurements, where the problem's worlds come from such.
            set: NAME=VALUE ...: arguments of the problem to change, such as years=2019.
        """
        return dict(locals())

    given = tyro.cli(options, prog="icmape diagnose", args=arguments)
    if given["out"] is not None and given["out"].is_dir():
        raise UserError(f"--out {given['out']} is a folder; expected the name of a JSON file")
    from icmape.evaluation.diagnosis import diagnose

    own = None if given["problem"] is None else load_class(given["problem"])
    team = load_changed(given["team"], own, changes_of(given["data"], given["set"]))
    with console.status("playing") as status:
        found = diagnose(
            team,
            episodes=given["episodes"],
            seed=given["seed"],
            tell=lambda what: status.update(f"playing: {what}"),
        )
    say(str(found))
    if given["out"] is not None:
        write_atomically(given["out"], json.dumps(found.to_dict(), indent=2, ensure_ascii=False).encode() + b"\n")
        say(f"written to {given['out']}")
    return 0
