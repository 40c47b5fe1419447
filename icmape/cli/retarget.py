"""`icmape retarget`."""

import json
from pathlib import Path
from typing import Any

import tyro

from icmape.cli.teams import changes_of, chosen_teams
from icmape.compiling import use_compilation_cache
from icmape.errors import UserError
from icmape.learning.retarget import retarget
from icmape.learning.validation import SETTLING_WORLDS
from icmape.plot.terminal import say


def retarget_command(arguments: list[str]) -> int:
    """Teams for another δ."""

    def options(
        team: tyro.conf.Positional[str],
        out: Path,
        delta: float | None = None,
        worlds: int = SETTLING_WORLDS,
        seed: int = 0,
        overwrite: bool = False,
        problem: str | None = None,
        data: tuple[str, ...] = (),
        set: tuple[str, ...] = (),
    ) -> dict[str, Any]:
        """The same team for another δ: its stops are moved to where accuracy is just enough. Nothing is trained.

        Agents stop by one threshold; fresh worlds show what each would give. Sampling stays what it was, so a team
        trained for that δ may be faster.

        Args:
            team: A team file, a run's folder (all its teams) or the name of a pretrained team.
            out: Folder for the new team files, which keep their names.
            delta: δ of the new team; its own unless told.
            worlds: Fresh worlds on which the threshold is found.
            seed: Of these worlds, which evaluation and certificates never play in.
            overwrite: Replace team files of the same name.
            problem: module:Class of a problem that is not part of icmape, if the team was trained on one.
            data: Files or folders of measurements, where the problem's worlds come from such.
            set: NAME=VALUE ...: arguments of the problem to change: then the threshold is that prior's.
        """
        return dict(locals())

    args = tyro.cli(options, prog="icmape retarget", args=arguments)
    out = args["out"]
    if out.exists() and not out.is_dir():
        raise UserError(f"--out {out} is a file; expected a folder")
    use_compilation_cache()
    for name, path, team in chosen_teams(args["team"], args["problem"], changes_of(args["data"], args["set"])):
        target = out / f"{name}.safetensors"
        if target.exists() and not args["overwrite"]:
            raise UserError(f"{target} exists: choose another --out, or replace it with --overwrite")
        moved = retarget(team, args["delta"], worlds=args["worlds"], seed=args["seed"])
        out.mkdir(parents=True, exist_ok=True)
        moved.save(target)
        result = json.loads(moved.card)["retargeted"]
        say(
            f"{path}: δ {team.delta:g} → {moved.delta:g}, accuracy {result['accuracy']:.4f} at τ {result['tau']:.2f} "
            f"on {result['worlds']:,} worlds\n{target}"
        )
    return 0
