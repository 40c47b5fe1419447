"""Sessions: agents ask what to do and tell what they saw; a journal keeps it.

A session takes and returns JSON values (`Session.handle`) and knows nothing of how they travel. Its methods are the
same messages in Python.
"""

import json
import logging
import threading
import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from icmape_agent.errors import UserError
from icmape_agent.session import journal as journals
from icmape_agent.session.crew import STOP, Crew, plain
from icmape_agent.session.journal import Entry, Journal
from icmape_agent.session.lock import Lock
from icmape_agent.session.messages import Handler, Reply
from icmape_agent.session.records import Counted, Records
from icmape_agent.session.refusal import Refusal
from icmape_agent.session.schema import check, short

FORMAT, VERSION = "icmape-session", 1
log = logging.getLogger("icmape")


class Session:
    """A team at work, with a journal in a folder that outlives the process. One process writes; others may read."""

    def __init__(self, crew: Crew, folder: Path, journal: Journal | None, lock: Lock | None):
        """Use `open_session`."""
        self.folder, self.crew = folder, crew
        self._journal, self._lock, self._guard = journal, lock, threading.RLock()
        contents = None if journal else journals.read(folder / journals.NAME)
        self._entries = journal.entries if journal else [line.entry for line in contents.lines] if contents else []
        self.torn = journal.torn if journal else contents.torn if contents else 0
        """Bytes of an unfinished last line that a killed process left."""
        self.header = _checked_header(self._entries[0], crew, folder)
        self.records, self._added = Records.of(self.header), 1
        self._catch_up()
        self._handler = Handler(self)

    # -- the messages, in Python

    def ask(self, agent: int) -> int:
        """The next action of an agent, from its own entries and the public stop bit only; `STOP` is -1."""
        reply = self._sent({"type": "ask", "agent": agent})
        return STOP if reply["stop"] else int(reply["action"])

    @property
    def rounds(self) -> list[int]:
        """The first open round of each agent: the one that `ask` answers for."""
        with self._guard:
            return [record.open_round for record in self.records.agents]

    def tell(self, agent: int, action: int, reading: Any, round: int | None = None, **about: str) -> bool:
        """Record an action of an agent and its reading; returns whether it came after the stop.

        Without a round it is the agent's first open one: a caller that may repeat itself names the round. `about` may
        hold `id`, `note` and `time`.
        """
        number = self._open(agent) if round is None else round
        reading = plain(reading)
        told = self._sent(
            {"type": "tell", "agent": agent, "round": number, "action": plain(action), "reading": reading, **about}
        )
        return bool(told["late"])

    def first(self, agent: int, reading: Any, **about: str) -> None:
        """Record the observation of an agent before round 0, where the problem has one."""
        self._sent({"type": "first", "agent": agent, "reading": plain(reading), **about})

    def missed(self, agent: int, action: int | None = None, round: int | None = None, **about: str) -> None:
        """Record that a reading of this agent does not come; by default that of its first open round.

        `action` is what the agent did, if it is known that it did something.
        """
        number = self._open(agent) if round is None else round
        done = {} if action is None else {"action": plain(action)}
        self._sent({"type": "missed", "agent": agent, "round": number, **done, **about})

    def stop(self, agent: int | None = None, round: int | None = None, **about: str) -> None:
        """Stop the team: an agent that decided so by itself, or a person (no agent)."""
        numbers = {name: number for name, number in (("agent", agent), ("round", round)) if number is not None}
        self._sent({"type": "stop", **numbers, **about})

    def answer(self, *, early: bool = False) -> Any:
        """The team's answer from the readings that count, with `decision`, `name` and `confidence`."""
        with self._guard:
            return self._handler.conclude(early)[0]

    def data(self) -> Counted:
        """What was done and read in all rounds before the stop, with None for what is missing."""
        with self._guard:
            return self._handler.data()

    def counted(self) -> Counted:
        """The rounds of `data` that the answer reads."""
        with self._guard:
            return self._handler.data(self.crew.counts)

    def show(self) -> str:
        """A table of rounds, agents and readings, and the answer."""
        return str(self._sent({"type": "show"})["text"])

    def _sent(self, message: Entry) -> Reply:
        with self._guard:
            return self._handler.reply(message, None)

    def _open(self, agent: int) -> int:
        with self._guard:
            return self._handler.record(agent).open_round

    # -- messages as JSON values

    def handle(self, message: Any, sender: int | None = None) -> Reply:
        """The reply to a message, both JSON values; see `session.schema.json`. Nothing that a message says raises.

        With a `sender`, only messages that this agent may send are taken: its own, and none that show data of others.
        """
        with self._guard:
            try:
                reply = self._handler.reply(message, sender)
            except Refusal as error:
                text = str(error)
                if sender is not None and error.to_agents != text:
                    log.warning("agent %d: %s", sender, text)
                    text = error.to_agents
                reply = {"ok": False, "error": {"kind": error.kind, "text": text, **error.details}}
            except UserError as error:
                reply = {"ok": False, "error": {"kind": "refused", "text": str(error)}}
        number = message.get("id") if isinstance(message, dict) else None
        return {**reply, "id": number} if _can_be_told(number) else reply

    # -- what the handler calls

    @property
    def stopped(self) -> bool:
        """The public bit."""
        return self.records.stopped

    def record(self, entry: Entry) -> Entry:
        """Write an entry to the journal and flush it; only then it is part of the session."""
        if self._journal is None:
            why = "was opened for reading: open it for writing to record anything"
            raise Refusal("forbidden", f"{self.folder} {why}", to_agents=f"this session {why}")
        self._journal.append({**entry, "at": now()})
        self._entries = self._journal.entries
        self._catch_up()
        return self._entries[-1]

    def entries(self, agent: int | None = None) -> list[Entry]:
        """What the journal holds of an agent, or of all, in the order in which it was written."""
        with self._guard:
            return [entry for entry in self._entries[1:] if agent is None or entry["agent"] == agent]

    def _catch_up(self) -> None:
        """Add the entries of the journal that were not added yet."""
        path = self.folder / journals.NAME
        while self._added < len(self._entries):
            self.records.add(self._entries[self._added], f"{path}: line {self._added + 1}")
            self._added += 1

    # -- its end

    def close(self) -> None:
        """Close the journal and let another process write."""
        with self._guard:
            if self._journal is not None:
                self._journal.close()
                self._journal = None
            if self._lock is not None:
                self._lock.close()
                self._lock = None

    def __enter__(self) -> "Session":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_session(
    crew: Crew,
    folder: str | Path,
    *,
    first: Sequence[Any] | None = None,
    note: str = "",
    source: str | None = None,
    write: bool = True,
    wait: float = 0.0,
) -> Session:
    """Start a session in a folder, or go on with the one that is there.

    `first` are the agents' observations before round 0, where the problem has such. `note` is kept in the header of a
    new journal, and `source`, where the team is, for later openings: in the header, or beside a journal whose header
    does not say it. `write=False` reads a session while another process writes. `wait`: seconds to wait for that
    process to close it.
    """
    folder = Path(folder)
    path = folder / journals.NAME
    if not write:
        if not path.is_file():
            raise UserError(f"{folder} holds no session ({journals.NAME}): start one first")
        return Session(crew, folder, None, None)
    journals.make_folder(folder)
    with ExitStack() as opened:
        lock = Lock(folder, wait)
        opened.callback(lock.close)
        if not path.exists():
            journals.create(folder, _header(crew, note, source))
        journal = Journal(path)
        opened.callback(journal.close)
        session = Session(crew, folder, journal, lock)
        if source is not None and journals.source_of(folder) is None:
            journals.remember_team(folder, source)
        opened.pop_all()
    for agent, reading in enumerate(() if first is None else first):
        session.first(agent, reading)
    return session


def _header(crew: Crew, note: str, source: str | None) -> Entry:
    header = {
        "type": "session",
        "format": FORMAT,
        "version": VERSION,
        "session": uuid.uuid4().hex,
        "created": now(),
        "team": crew.identity,
        "source": source,
        "problem": dict(crew.description),
        **crew.gate.sizes._asdict(),
        "shows_first": crew.gate.shows_first,
        "note": note,
    }
    check(header, "header", "the header of the journal")
    return header


def _checked_header(header: Entry, crew: Crew, folder: Path) -> Entry:
    path = folder / journals.NAME
    if header.get("format") == FORMAT and header.get("version") != VERSION:
        raise UserError(
            f"{path} has version {short(header.get('version'))}, this program reads {VERSION}: use the program that "
            "wrote it"
        )
    check(header, "header", f"{path}: line 1")
    known, given = (json.dumps(part, sort_keys=True) for part in (header["problem"], dict(crew.description)))
    if header["team"] == crew.identity and known != given and "arguments" in known and "arguments" in given:
        raise UserError(f"{folder} was started with another problem: {short(known, 400)}; given {short(given, 400)}")
    if header["team"] != crew.identity:
        source = f" ({header['source']})" if header.get("source") else ""
        raise UserError(
            f"{folder} was started with another team: it needs {header['team']}{source}, given {crew.identity}; open "
            "it with its own team, or start a session in another folder"
        )
    return header


def now() -> str:
    """The time, for people."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _can_be_told(number: Any) -> bool:
    """Whether the id of a message goes into the reply: half of a surrogate pair cannot be sent."""
    return isinstance(number, str) and 0 < len(number) <= 200 and not any("\ud800" <= x <= "\udfff" for x in number)
