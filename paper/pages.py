"""Files of a reproduction: tables, figures, a Markdown page and an HTML page."""

from __future__ import annotations

from pathlib import Path

from icmape.io import write_atomically
from icmape.plot.items import write_items
from icmape.plot.page import write_page
from paper.book import problems
from paper.collected import Results
from paper.topics import Problem, Topic
from paper.work_plan import NO_TEAM, THERE, Outcome

TITLE = "ICMAPE, reproduced"
WHAT = (
    "Teams of agents sample in rounds. Each agent sees only its own observations, and any agent's STOP ends the "
    "episode for all; a network then answers from everyone's observations. The paper's numbers beside ours"
)


def write_pages(results: Results, outcomes: list[Outcome], folder: Path) -> list[Path]:
    """results.md and index.html, with tables/ and figures/ beside them."""
    book = problems(results)
    paths = write_items((item for problem in book for item in problem.items), folder)
    reasons = left_out(outcomes)
    book = [*book, *([reasons] if reasons.topics[0].words else [])]
    page = folder / "results.md"
    marked = f"{TITLE} [{results.mark}]" if results.mark else TITLE
    text = "\n".join([f"# {marked}\n", f"{_subtitle(results)}\n", *(problem.markdown() for problem in book)])
    write_atomically(page, text.encode())
    sections = [problem.section() for problem in book]
    html = write_page(folder / "index.html", TITLE, _subtitle(results), sections, results.mark)
    return [page, html, *paths]


def _subtitle(results: Results) -> str:
    names = ", ".join(results.title(setting) for setting in results.settings)
    size = "Everything trained from scratch at a small size, one seed. " if results.plan.quick else ""
    return f"{size}{WHAT}: {names}. Written by icmape reproduce."


def left_out(outcomes: list[Outcome]) -> Problem:
    """Jobs that were not run, with the reasons."""
    reasons: dict[str, list[str]] = {}
    untrained = {outcome.name for outcome in outcomes if outcome.state != THERE}
    for outcome in outcomes:
        named = outcome.why == NO_TEAM and f"{outcome.name.rpartition('/')[0]}/train" in untrained
        if outcome.state != THERE and outcome.why and not named:
            reasons.setdefault(f"{outcome.state}: {outcome.why}", []).append(outcome.name)
    words = [f"{why}. {', '.join(names)}." for why, names in reasons.items()]
    return Problem("Not run", [Topic("", words)])
