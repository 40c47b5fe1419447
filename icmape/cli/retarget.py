"""`icmape retarget`."""

import json
from dataclasses import dataclass
from pathlib import Path

import tyro

from icmape.cli.teams import ProblemOptions, chosen_teams
from icmape.compiling import use_compilation_cache
from icmape.errors import UserError
from icmape.learning.config import Config
from icmape.learning.retarget import WORLDS, retarget
from icmape.plot.terminal import check_folder, say


@dataclass(frozen=True, kw_only=True)
class RetargetOptions(ProblemOptions):
    """The same team for another δ: its stopping threshold is set to the lowest that is accurate enough.

    Nothing is trained. The threshold is chosen on fresh worlds (with --set, of the changed prior). Sampling does not
    change, so a team trained for that δ may be faster.
    """

    team: tyro.conf.Positional[str]
    """A team file, a run's folder (all its teams) or the name of a pretrained team."""
    out: Path
    """Folder for the new team files, which keep their names."""
    delta: float | None = None
    """δ of the new team; by default the team's own."""
    worlds: int = WORLDS
    """Number of fresh worlds for the threshold."""
    seed: int = 0
    """Seed of these worlds, which evaluation and certificates never use."""
    certificate_worlds: int = Config.certificate_worlds
    """Worlds of the certificate that the new team will ask for. With more of them its stops need less room above
    1-δ, and it is faster."""
    overwrite: bool = False
    """Replace team files of the same name."""


def retarget_command(arguments: list[str]) -> int:
    """Move the stopping thresholds of teams to another δ."""
    args = tyro.cli(RetargetOptions, prog="icmape retarget", args=arguments)
    check_folder(args.out)
    use_compilation_cache()
    for name, path, team in chosen_teams(args.team, args):
        target = args.out / f"{name}.safetensors"
        if target.exists() and not args.overwrite:
            raise UserError(f"{target} exists: choose another --out, or replace it with --overwrite")
        moved = retarget(
            team, args.delta, worlds=args.worlds, seed=args.seed, certificate_worlds=args.certificate_worlds
        )
        args.out.mkdir(parents=True, exist_ok=True)
        moved.save(target)
        result = json.loads(moved.card)["retargeted"]
        say(
            f"{path}: δ {team.delta:g} → {moved.delta:g}, accuracy {result['accuracy']:.4f} at τ {result['tau']:.2f} "
            f"on {result['worlds']:,} worlds\n{target}"
        )
    return 0
