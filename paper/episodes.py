"""Episodes on the results page, chosen by rule: a right answer of median length, a wrong one, and the longest."""

from __future__ import annotations

from typing import Any

import numpy as np

from icmape.errors import UserError
from icmape.play.episodes import play
from icmape.play.team import Team
from icmape.play.team_files import load
from icmape.plot.chosen_episodes import chosen_episodes
from icmape.plot.episode_replay import scene
from paper.collected import Results
from paper.experiments import Setting
from paper.work_plan import SEED, own_seed, team_files

WORLDS = 200  # of which the episodes are chosen
SHOWN = 3  # of each team
RULE = (
    f"Episodes are chosen by rule from the first {WORLDS} worlds: a right answer of median length, a wrong one, and "
    "the longest. Step through them with the buttons or the arrow keys; choose an agent to see its own view."
)
MADE_UP = "nitrate-synthetic"
WHY_MADE_UP = (
    f"The measurements were not there when this page was written (option --data). So these are episodes of the "
    f"pretrained team {MADE_UP}: the same question on made-up fields, with five readings a query. The numbers below "
    "are not of this team."
)


def scenes(results: Results, setting: Setting, name: str = "") -> list[dict[str, Any]]:
    """Episodes of our representative team, to step through; the name is in their titles."""
    plan = results.plan
    files = team_files(setting, setting.main, plan)
    seed = own_seed(setting, plan)
    if seed not in files or plan.lacks(setting):
        return []
    try:
        return chosen_scenes(load(files[seed], **plan.changes(setting)), name)
    except UserError:
        return []


def made_up_scenes() -> list[dict[str, Any]]:
    """Episodes of the shipped team on made-up fields."""
    return chosen_scenes(load(MADE_UP))


def chosen_scenes(team: Team, name: str = "") -> list[dict[str, Any]]:
    """Episodes by rule; each title says the rule."""
    judged = play(team, WORLDS, SEED, exact=0)
    right, stop = judged.at_stop(np.asarray(judged.team.correct)), np.asarray(judged.played.stop)
    chosen = chosen_episodes(team, right, stop, SEED, SHOWN)
    titles = [f"{name}: {one.words[:1].lower()}{one.words[1:]}" if name else one.words for one in chosen]
    return [scene(one.played, title) for one, title in zip(chosen, titles, strict=True)]
