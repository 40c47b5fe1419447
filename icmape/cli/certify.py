"""`icmape certify`."""

import json
from pathlib import Path
from typing import Any

import tyro

from icmape.cli.teams import changes_of, chosen_teams
from icmape.errors import UserError
from icmape.evaluation.certificate import LEVEL, WORLDS, certify, check_request
from icmape.io import write_atomically
from icmape.play.team_files import about
from icmape.plot.terminal import progress, say

REFUSED = 1


def certify_command(arguments: list[str]) -> int:
    """Whether teams keep their promise."""

    def options(
        team: tyro.conf.Positional[str],
        worlds: int = WORLDS,
        level: float = LEVEL,
        seed: int = 0,
        out: Path | None = None,
        problem: str | None = None,
        data: tuple[str, ...] = (),
        set: tuple[str, ...] = (),
    ) -> dict[str, Any]:
        """A certificate: a bound on a team's accuracy over its prior, and what that does and does not guarantee.

        Teams are played in fresh worlds that training, validation and `icmape evaluate` never play in. The certificate
        is granted if the one-sided Clopper-Pearson bound reaches 1-δ; else the exit code is 1.

        Args:
            team: A team file, a run's folder (all its teams) or the name of a pretrained team.
            worlds: Fresh worlds to be played.
            level: Confidence of the bound, and of the interval for the mean stopping time.
            seed: Of the worlds, in a range that is kept for certificates. Trying several until one is granted voids it.
            out: JSON file for the certificate, or for those of all teams.
            problem: module:Class of a problem that is not part of icmape, if the team was trained on one.
            data: Files or folders of measurements, where the problem's worlds come from such.
            set: NAME=VALUE ...: arguments of the problem to change: then the promise is about that prior.
        """
        return dict(locals())

    args = tyro.cli(options, prog="icmape certify", args=arguments)
    check_request(args["worlds"], args["level"], args["seed"])
    if args["out"] is not None and args["out"].is_dir():
        raise UserError(f"--out {args['out']} is a folder; expected the name of a JSON file")
    return _certify(args)


def _certify(args: dict[str, Any]) -> int:
    certificates = {}
    for name, path, team in chosen_teams(args["team"], args["problem"], changes_of(args["data"], args["set"])):
        request = {key: args[key] for key in ("worlds", "level", "seed")}
        with progress(name, args["worlds"]) as tick:
            certificates[name] = certify(team, **request, digest=about(path).digest, tick=tick)
        say(f"{path}\n{certificates[name]}\n")
    if args["out"] is not None:
        contents = {name: certificate.to_dict() for name, certificate in certificates.items()}
        content = next(iter(contents.values())) if len(contents) == 1 else {"teams": contents}
        write_atomically(args["out"], json.dumps(content, indent=2, ensure_ascii=False).encode() + b"\n")
        say(f"written to {args['out']}")
    return 0 if all(certificate.granted for certificate in certificates.values()) else REFUSED
