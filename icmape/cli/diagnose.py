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

    args = tyro.cli(options, prog="icmape diagnose", args=arguments)
    if args["out"] is not None and args["out"].is_dir():
        raise UserError(f"--out {args['out']} is a folder; expected the name of a JSON file")
    from icmape.evaluation.diagnosis import diagnose

    problem_class = None if args["problem"] is None else load_class(args["problem"])
    team = load_changed(args["team"], problem_class, changes_of(args["data"], args["set"]))
    with console.status("playing") as status:
        diagnosis = diagnose(
            team,
            episodes=args["episodes"],
            seed=args["seed"],
            tell=lambda label: status.update(f"playing: {label}"),
        )
    say(str(diagnosis))
    if args["out"] is not None:
        write_atomically(args["out"], json.dumps(diagnosis.to_dict(), indent=2, ensure_ascii=False).encode() + b"\n")
        say(f"written to {args['out']}")
    return 0
