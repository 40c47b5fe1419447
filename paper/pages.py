"""Files of a reproduction: tables, figures, a Markdown page and an HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from icmape.errors import UserError
from icmape.evaluation.single import play_one
from icmape.io import write_atomically
from icmape.play.team_files import load
from icmape.plot.episode_replay import scene
from icmape.plot.items import Chapter, write_items
from icmape.plot.page import write_page
from paper.book import chapters
from paper.collected import Results
from paper.experiments import Setting
from paper.work_plan import NO_TEAM, SEED, THERE, Outcome, own_seed, team_files

WORLDS = (0, 1, 2)  # with a replay on the page
TITLE = "ICMAPE, reproduced"


def write_pages(results: Results, outcomes: list[Outcome], folder: Path) -> list[Path]:
    """results.md and index.html, with tables/ and figures/ beside them."""
    book = chapters(results)
    paths = write_items((item for chapter in book for item in chapter.items), folder)
    book = [*book, episodes(results), left_out(outcomes)]
    book = [chapter for chapter in book if chapter.items or chapter.scenes or chapter.words]
    page = folder / "results.md"
    marked = f"{TITLE} [{results.mark}]" if results.mark else TITLE
    text = "\n".join(
        [f"# {marked}\n", f"{_subtitle(results)}\n", *(chapter.markdown() for chapter in book if not chapter.scenes)]
    )
    write_atomically(page, text.encode())
    html = write_page(
        folder / "index.html", TITLE, _subtitle(results), [chapter.section() for chapter in book], results.mark
    )
    return [page, html, *paths]


def _subtitle(results: Results) -> str:
    names = ", ".join(results.title(setting) for setting in results.settings)
    size = "Everything trained from scratch at a small size, one seed. " if results.plan.quick else ""
    return f"{size}{names}. Written by icmape reproduce."


def episodes(results: Results) -> Chapter:
    """Replays of a few episodes of our teams."""
    scenes = [scene for setting in results.settings for scene in _scenes(results, setting)]
    return Chapter("Episodes", [], ["Step through them with the buttons or the arrow keys."] if scenes else (), scenes)


def _scenes(results: Results, setting: Setting) -> list[dict[str, Any]]:
    plan = results.plan
    files = team_files(setting, setting.main, plan)
    seed = own_seed(setting, plan)
    if seed not in files or plan.lacks(setting):
        return []
    try:
        team = load(files[seed], **plan.changes(setting))
        return [
            scene(play_one(team, world, SEED), f"{results.title(setting)}, seed {seed}, world {world}")
            for world in WORLDS
        ]
    except UserError:
        return []


def left_out(outcomes: list[Outcome]) -> Chapter:
    """Jobs that were not run, with the reasons."""
    reasons: dict[str, list[str]] = {}
    untrained = {outcome.name for outcome in outcomes if outcome.state != THERE}
    for outcome in outcomes:
        named = outcome.why == NO_TEAM and f"{outcome.name.rpartition('/')[0]}/train" in untrained
        if outcome.state != THERE and outcome.why and not named:
            reasons.setdefault(f"{outcome.state}: {outcome.why}", []).append(outcome.name)
    return Chapter("Not run", [], [f"{why}. {', '.join(names)}." for why, names in reasons.items()])
