"""Colours and styles of charts: CSS variables of `icmape_agent.look`, so that charts follow the reader's theme."""

from __future__ import annotations

from collections.abc import Sequence

from icmape_agent.look import AGENTS, METHODS, OTHERS

STYLE = """\
.chart text { fill: var(--ink); font-size: 13px; }
.chart text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif; }
.chart text.soft { fill: var(--soft); }
.chart text.tick { fill: var(--soft); font-size: 12px; }
.chart text.strong { font-weight: 600; }
.chart text.over { paint-order: stroke; stroke: var(--page); stroke-width: 4px; stroke-linejoin: round; }
.chart text.on-agent { fill: var(--on-agent); font-weight: 700; font-size: 12px; }
.chart text.mark { fill: var(--bad); font-weight: 600; }
.chart .grid { stroke: var(--line); stroke-width: 1; }
.chart .axis { stroke: var(--edge); stroke-width: 1; }
.chart .target { stroke: var(--ink); stroke-width: 1.3; stroke-dasharray: 5 4; fill: none; }
.chart .curve { fill: none; stroke-width: 2; stroke-linejoin: round; }
.chart .faint { stroke-width: 1; opacity: 0.5; }
.chart .whisker { stroke-width: 1.6; fill: none; }
.chart .dot { stroke: var(--page); stroke-width: 1; }
.chart .hollow { fill: var(--page); stroke-width: 2; }
.chart .seed { opacity: 0.55; }
.chart .band { fill: var(--soft); fill-opacity: 0.18; stroke: none; }
.chart .hatch { stroke: var(--bad); stroke-width: 1.1; }
.chart .track { fill: var(--panel); stroke: var(--edge); stroke-width: 0.8; }
.chart .page { fill: var(--page); }
"""
"""Rules of all charts. `.chart` is the figure around a chart on a page, or the drawing itself in a file."""
DASHES = ("", "7 4", "2 3", "9 3 2 3")
REFERENCES = {"decentralized": 1, "schedule": 2, "central": 3}
"""Families of rules without learning, whose lines have dashes, by the place of the first."""
FAMILIES = (
    ("ours", ("ours", "guided", "team")),
    ("paper", ("the paper", "paper:", "paper,")),
    ("exact", ("exact", "misspecified")),
    ("schedule", ("open-loop", "schedule", "sweep", "reading-list")),
    ("decentralized", ("decentralized", "local-adaptive", "local-greedy", "list-local-stop")),
    ("central", ("central",)),  # after "decentralized"
    ("td3", ("td3",)),
    ("ppo", ("ppo",)),
    ("vdn", ("vdn", "qmix")),
    ("iql", ("iql", "independent")),
    ("thompson", ("thompson",)),
    ("random", ("random",)),
)
"""Families of methods, and the words in the methods' names that tell them."""


def family_of(label: str) -> str | None:
    """The family of a method by its name; none if it has none."""
    said = label.lower()
    if said == "paper":
        return "paper"
    return next((family for family, marks in FAMILIES if any(mark in said for mark in marks)), None)


def method_colour(family: str) -> str:
    """The colour of a family of methods, as CSS."""
    assert family in METHODS
    return f"var(--method-{family})"


def method_strokes(labels: Sequence[str]) -> list[tuple[str, str]]:
    """Colour and dashes of each method: its family's colour, or one that no family here has.

    Methods of one family have other dashes; no pair comes twice.
    """
    families = [family_of(label) for label in labels]
    free = [name for name in OTHERS if name not in families] or list(OTHERS)
    used: dict[str, int] = {}
    strokes: list[tuple[str, str]] = []
    for family in families:
        name = family or min(free, key=lambda one: used.get(one, 0))
        dash = DASHES[(used.get(name, 0) + REFERENCES.get(name, 0)) % len(DASHES)]
        used[name] = used.get(name, 0) + 1
        strokes.append((method_colour(name), dash))
    return strokes


def agent_colour(agent: int) -> str:
    """The colour of an agent, counted from 0, as CSS."""
    return f"var(--agent-{agent % len(AGENTS) + 1})"
