"""A session as text, for people."""

from collections.abc import Callable
from typing import Any

from icmape_agent.answers import sureness
from icmape_agent.session.journal import Entry
from icmape_agent.session.records import AgentRecord, Records
from icmape_agent.session.schema import short

_MOST = 28  # characters of a reading
WHY_UNSURE = "a person stopped it, readings are missing, or by chance"


def table(
    header: Entry, records: Records, action_name: Callable[[int], str], answer: dict[str, Any] | str | None
) -> str:
    """Rounds, agents and readings; the stop; the answer, or why there is none (a text); the notes."""
    blocks = [_title(header), _grid(records, action_name), _stops(records)]
    if answer is not None:
        blocks.append(f"no answer: {visible(answer)}" if isinstance(answer, str) else conclusion(answer))
    return "\n".join(filter(None, [*blocks, _notes(header, records)]))


def _title(header: Entry) -> str:
    kind = header["problem"].get("kind", "")
    team = header.get("source") or header["team"]
    title = visible(f"session {header['session'][:8]} of {header['created']}: {kind}, team {team}")
    return f"{title} (agents and rounds count from 0, on pages from 1)"


def _grid(records: Records, action_name: Callable[[int], str]) -> str:
    agents = records.agents
    last = max((number for agent in agents for number in (*agent.readings, *agent.misses)), default=-1)
    rows = [["round", *(f"agent {i}" for i in range(len(agents)))]]
    if any(agent.first for agent in agents):
        rows.append(["first", *(_reading(agent.first) if agent.first else "-" for agent in agents)])
    for number in range(last + 1):
        rows.append([str(number), *(_cell(agent, number, records, action_name) for agent in agents)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _cell(agent: AgentRecord, number: int, records: Records, action_name: Callable[[int], str]) -> str:
    entry = agent.readings.get(number)
    if entry is None:
        return "missed" if number in agent.misses else "-"
    marks = [word for word, holds in (("late", entry["late"]), ("not counted", number >= records.stop_round)) if holds]
    text = f"{visible(action_name(entry['action']))} → {_reading(entry)}"
    return f"{text} ({', '.join(marks)})" if marks and records.stopped else text


def _reading(entry: Entry) -> str:
    return short(entry["reading"], _MOST)


def _stops(records: Records) -> str:
    if not records.stopped:
        return f"not stopped; agents are in rounds {', '.join(str(agent.open_round) for agent in records.agents)}"
    who = ["a person" if stop["agent"] is None else f"agent {stop['agent']}" for stop in records.stops]
    rounds = [f"{name} in round {stop['round']}" for name, stop in zip(who, records.stops, strict=True)]
    return f"stopped by {', '.join(rounds)}"


def conclusion(answer: dict[str, Any]) -> str:
    """A line about a reply to the message 'answer', and others if it is less sure than the target or has a warning."""
    count, partial, lacking = len(answer["rounds"]), len(answer["partial"]), len(answer["missing"])
    kind, which = ("whole round", f"and {partial} in part") if partial else ("round", "of all agents")
    used = f"from {count} {kind}{'' if count == 1 else 's'} {which}"
    left = f"; {lacking} reading{'' if lacking == 1 else 's'} missing" if lacking else ""
    unlike = f"\nwarning: {visible(answer['warning'])}" if "warning" in answer else ""
    unsure = ""
    if answer["confidence"] < answer.get("target", 0.0):
        unsure = f"\nless sure than the target of {answer['target']:g} ({WHY_UNSURE})"
    place = f", {visible(answer['near'])}" if "near" in answer else ""
    return f"answer: {visible(answer['name'])}{place} ({_sure(answer)}), {used}{left}{unsure}{unlike}"


def _sure(answer: dict[str, Any]) -> str:
    """The probability, and of what it is where more than one answer is right."""
    return sureness(answer["confidence"], visible(answer.get("chance", "")))


def _notes(header: Entry, records: Records) -> str:
    lines = [f"note: {header['note']}"] if header.get("note") else []
    for i, agent in enumerate(records.agents):
        entries = [agent.first, *agent.readings.values(), *agent.misses.values(), agent.stop]
        for entry in entries:
            if entry and entry.get("note"):
                place = f" round {entry['round']}" if "round" in entry else ""
                lines.append(f"note of agent {i}{place}: {entry['note']}")
    if records.ended and records.ended.get("note"):
        lines.append(f"note of the stop: {records.ended['note']}")
    return "\n".join(map(visible, lines))


def visible(text: str) -> str:
    """A text in which nothing steers a terminal: what cannot be printed is written as an escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
