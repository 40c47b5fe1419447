"""`icmape session`."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import tyro

from icmape.cli.teams import ProblemOptions
from icmape.errors import UserError
from icmape.play.team_files import load
from icmape.plot.terminal import say
from icmape_agent.session import Session, find_sessions, serve
from icmape_agent.session import journal as journals
from icmape_agent.session.stdio import parse
from icmape_agent.session.table import conclusion

Command = Literal["start", "ask", "tell", "first", "missed", "stop", "answer", "status", "show", "list", "serve-stdio"]
FROM_0 = "counted from 0"
WAIT = 10.0  # seconds for another command to finish


class Words(NamedTuple):
    """What follows a command: the names of its values, and how many of them may be left out."""

    names: tuple[str, ...]
    optional: int = 0


WORDS: dict[str, Words] = {
    "start": Words(()),
    "ask": Words(("agent",)),
    "tell": Words(("agent", "action", "reading")),
    "first": Words(("agent", "reading")),
    "missed": Words(("agent", "action"), 1),
    "stop": Words(("agent",), 1),
    "answer": Words(()),
    "status": Words(("agent",), 1),
    "show": Words(()),
    "list": Words(()),
    "serve-stdio": Words(()),
}


@dataclass(frozen=True, kw_only=True)
class SessionOptions(ProblemOptions):
    """A team at work, with a journal in a folder: every reading is on the disk before it is acknowledged.

    start --team TEAM | ask AGENT | tell AGENT ACTION READING | first AGENT READING | missed AGENT [ACTION] |
    stop [AGENT] | answer | status [AGENT] | show | list (all sessions below FOLDER) | serve-stdio (one JSON message a
    line, one reply a line). Agents, actions and rounds count from 0 here and in JSON; on pages they count from 1: agent
    0 is number 1 there. A reading is JSON: 1, or "[1.9, 2.3]".
    """

    folder: tyro.conf.Positional[Path]
    """Folder of the session."""
    command: tyro.conf.Positional[Command]
    """What to do."""
    words: tyro.conf.Positional[tuple[str, ...]] = ()
    """Agent, action, reading: as many as the command needs."""
    team: str | None = None
    """A team file or a pretrained team's name; by default that with which the session was started."""
    round: int | None = None
    """Of tell, missed and stop: the round, by default the first one of the agent without a reading or a miss."""
    id: str | None = None
    """Of the message: the same id again is the same message."""
    note: str | None = None
    """For people: who, where, with what. Kept in the journal; networks never read it."""
    early: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Of answer: before the stop too."""
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Print the reply as JSON."""


def session_command(arguments: list[str]) -> int:
    """One message to a session, or many on standard input."""
    args = tyro.cli(SessionOptions, prog="icmape session", args=arguments)
    values = _values(args)
    if args.command == "list":
        for summary in find_sessions(args.folder):
            say(f"{summary.folder}  {summary.text}")
        return 0
    with _opened(args) as session:
        if session.torn:
            print(f"{args.folder}: {session.torn} bytes of an unfinished last line were cut", file=sys.stderr)
        if args.command == "serve-stdio":
            serve(session, sys.stdin.buffer, sys.stdout.buffer)
            return 0
        return _told(session, args, values)


def _values(args: SessionOptions) -> dict[str, Any]:
    """The values of a command, from its words."""
    names, optional = WORDS[args.command]
    if not len(names) - optional <= len(args.words) <= len(names):
        needed = " ".join(name.upper() for name in names) or "nothing"
        raise UserError(f"{args.command} needs {needed} behind it; given {' '.join(args.words) or 'nothing'}")
    return {name: _value(name, word) for name, word in zip(names, args.words, strict=False)}


def _value(name: str, word: str) -> Any:
    try:
        return parse(word)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{name} must be JSON, such as 1 or [1.9, 2.3]; given {word!r}") from error


def _opened(args: SessionOptions) -> Session:
    """The session of a folder, with its team."""
    path = args.folder / journals.NAME
    if not path.is_file() and args.command != "start":
        start = f"icmape session {args.folder} start --team TEAM"
        raise UserError(f"{args.folder} holds no session: start one with `{start}`")
    source = args.team or journals.source_of(args.folder)
    if source is None:
        raise UserError("name the team: --team TEAM (a file or a pretrained team)")
    if Path(source).is_file():
        source = str(Path(source).resolve())
    team = load(source, args.problem_class, **args.changes)
    if args.command in ("show", "status", "answer"):
        return team.session(args.folder, write=False)
    return team.session(args.folder, source=source, note=args.note or "", wait=WAIT)


def _told(session: Session, args: SessionOptions, values: dict[str, Any]) -> int:
    """Send the message of a command and print the reply."""
    if args.command == "start":
        message: dict[str, Any] = {"type": "status"}
    else:
        message = {"type": args.command, **values, **_extras(args)}
    if args.command in ("tell", "missed") and args.round is None:
        reply = session.handle({"type": "status", "agent": values["agent"]})
        message["round"] = reply.get("round", 0)
    reply = session.handle(message)
    if args.json:
        print(json.dumps(reply))
    elif reply["ok"]:
        say(SENTENCES[args.command](reply))
    if not reply["ok"] and not args.json:
        raise UserError(reply["error"]["text"])
    return 0 if reply["ok"] else 2


def _extras(args: SessionOptions) -> dict[str, Any]:
    """The options that are part of a message."""
    given = {"round": args.round, "id": args.id, "note": args.note, "early": args.early or None}
    return {name: value for name, value in given.items() if value is not None}


def _asked(reply: dict[str, Any]) -> str:
    return f"{_where(reply)}: " + ("STOP" if reply["stop"] else f"action {reply['action']} ({reply['name']})")


def _where(reply: dict[str, Any]) -> str:
    """Agent and round of a reply. Scripts count them from 0; pages do not, and people read both."""
    return f"agent {reply['agent']}, round {reply['round']}, {FROM_0}"


def _state(reply: dict[str, Any]) -> str:
    rounds: Sequence[int] = reply.get("rounds", [reply.get("round", 0)])
    state = "stopped" if reply["stopped"] else "not stopped"
    return f"session {reply['session']}: {state}, open rounds {', '.join(map(str, rounds))}, {FROM_0}"


SENTENCES: dict[str, Callable[[dict[str, Any]], str]] = {
    "start": _state,
    "status": _state,
    "ask": _asked,
    "tell": lambda r: f"{_where(r)}: recorded{', after the stop' if r['late'] else ''}",
    "first": lambda r: f"agent {r['agent']}, {FROM_0}: recorded",
    "missed": lambda r: f"{_where(r)}: " + ("recorded as missed" if r["recorded"] else "its reading is there already"),
    "stop": lambda r: f"stopped in round {r['round']}, {FROM_0}",
    "answer": conclusion,
    "show": lambda r: str(r["text"]),
}
