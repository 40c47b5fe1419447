"""`icmape certify`."""

from dataclasses import dataclass
from pathlib import Path

import tyro

from icmape.cli.teams import ProblemOptions, chosen_teams
from icmape.evaluation.certificate import LEVEL, WORLDS, certify, check_request, worlds_for
from icmape.io import file_digest
from icmape.play.team_files import about
from icmape.plot.terminal import check_file, progress, say, write_json

REFUSED = 1


@dataclass(frozen=True, kw_only=True)
class CertifyOptions(ProblemOptions):
    """A certificate: a lower bound on a team's accuracy over its prior, and what it does and does not guarantee.

    Teams are played in fresh worlds that training, validation and `icmape evaluate` never use. The certificate is
    granted if the one-sided Clopper-Pearson bound reaches 1-δ; else the exit code is 1. With --set, the certificate
    holds for the changed prior.
    """

    team: tyro.conf.Positional[str]
    """A team file, a run's folder (all its teams) or the name of a pretrained team."""
    worlds: int | None = None
    """Number of fresh worlds; by default that for which the team's stops were set (10,000 unless said otherwise)."""
    level: float = LEVEL
    """Confidence level of the bound, and of the interval for the mean stopping time."""
    seed: int = 0
    """Seed of the worlds, in a range reserved for certificates. Trying several seeds until one is granted voids it."""
    out: Path | None = None
    """JSON file for the certificate, or for those of all teams."""


def certify_command(arguments: list[str]) -> int:
    """Certify teams; the exit code is 1 if one of them is refused."""
    args = tyro.cli(CertifyOptions, prog="icmape certify", args=arguments)
    check_request(WORLDS if args.worlds is None else args.worlds, args.level, args.seed)
    check_file(args.out)
    certificates = {}
    for name, path, team in chosen_teams(args.team, args):
        worlds = worlds_for(team) if args.worlds is None else args.worlds
        with progress(name, worlds) as tick:
            digest = file_digest(about(path).path)
            certificates[name] = certify(
                team, worlds=worlds, level=args.level, seed=args.seed, digest=digest, tick=tick
            )
        say(f"{path}\n{certificates[name]}\n")
    if args.out is not None:
        contents = {name: certificate.to_dict() for name, certificate in certificates.items()}
        write_json(args.out, next(iter(contents.values())) if len(contents) == 1 else {"teams": contents})
    return 0 if all(certificate.granted for certificate in certificates.values()) else REFUSED
