"""Episodes of our teams on the results page."""

from __future__ import annotations

from typing import Any

from icmape.errors import UserError
from icmape.evaluation.single import play_one
from icmape.play.team_files import load
from icmape.plot.episode_replay import scene
from paper.collected import Results
from paper.experiments import Setting
from paper.work_plan import SEED, own_seed, team_files

WORLDS = (0, 1)  # with a replay on the page


def scenes(results: Results, setting: Setting) -> list[dict[str, Any]]:
    """A few episodes of our representative team, to step through."""
    plan = results.plan
    files = team_files(setting, setting.main, plan)
    seed = own_seed(setting, plan)
    if seed not in files or plan.lacks(setting):
        return []
    try:
        team = load(files[seed], **plan.changes(setting))
        return [
            scene(play_one(team, world, SEED), f"{results.short(setting)}, seed {seed}, world {world}")
            for world in WORLDS
        ]
    except UserError:
        return []
