"""Files of a reproduction: tables, figures, one page in Markdown and one in HTML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from icmape.errors import UserError
from icmape.evaluation.single import play_one
from icmape.io import write_atomically
from icmape.play.team_files import load
from icmape.plot.episode_replay import scene
from icmape.plot.items import Chapter, Item, write_items
from icmape.plot.page import write_page
from paper.book import chapters
from paper.experiments import Setting
from paper.found import Found
from paper.work_plan import NO_TEAM, SEED, THERE, Outcome, own_seed, team_files

WORLDS = (0, 1, 2)  # that are shown round by round
TITLE = "ICMAPE, reproduced"


def write_pages(found: Found, outcomes: list[Outcome], folder: Path) -> list[Path]:
    """results.md and index.html, with tables/ and figures/ beside them."""
    book = chapters(found)
    paths = write_items((item for chapter in book for item in chapter.items), folder)
    book = [*book, episodes(found), left_out(outcomes)]
    book = [chapter for chapter in book if chapter.items or chapter.scenes or chapter.words]
    page = folder / "results.md"
    marked = f"{TITLE} [{found.mark}]" if found.mark else TITLE
    text = "\n".join([f"# {marked}\n", f"{_subtitle(found)}\n", *(one.markdown() for one in book if not one.scenes)])
    write_atomically(page, text.encode())
    html = write_page(folder / "index.html", TITLE, _subtitle(found), [one.section() for one in book], found.mark)
    return [page, html, *paths]


def _subtitle(found: Found) -> str:
    names = ", ".join(found.title(of) for of in found.settings)
    size = "Everything trained from scratch at a small size, one seed. " if found.plan.quick else ""
    return f"{size}{names}. Written by icmape reproduce."


def episodes(found: Found) -> Chapter:
    """A few episodes of our teams, to step through."""
    scenes: list[dict[str, Any]] = []
    for of in found.settings:
        scenes += _scenes(found, of)
    return Chapter("Episodes", [], ["Step through them with the buttons or the arrow keys."] if scenes else (), scenes)


def _scenes(found: Found, of: Setting) -> list[dict[str, Any]]:
    plan = found.plan
    files = team_files(of, of.main, plan)
    if not files or plan.lacks(of):
        return []
    seed = own_seed(of, plan)
    if seed not in files:
        return []
    try:
        team = load(files[seed], **plan.changes(of))
        return [
            scene(play_one(team, world, SEED), f"{found.title(of)}, seed {seed}, world {world}") for world in WORLDS
        ]
    except UserError:
        return []


def left_out(outcomes: list[Outcome]) -> Chapter:
    """What was not run, and why."""
    reasons: dict[str, list[str]] = {}
    untrained = {one.name for one in outcomes if one.state != THERE}
    for outcome in outcomes:
        named = outcome.why == NO_TEAM and f"{outcome.name.rpartition('/')[0]}/train" in untrained
        if outcome.state != THERE and outcome.why and not named:
            reasons.setdefault(f"{outcome.state}: {outcome.why}", []).append(outcome.name)
    items: list[Item] = []
    words = [f"{why}. {', '.join(names)}." for why, names in reasons.items()]
    return Chapter("Not run", items, words)
