"""What a session does with each kind of message."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from icmape_agent.errors import UserError
from icmape_agent.session.crew import STOP, plain
from icmape_agent.session.journal import Entry
from icmape_agent.session.prior import warning
from icmape_agent.session.progress import Agents
from icmape_agent.session.records import AgentRecord, Counted, Counts, counted
from icmape_agent.session.refusal import Refusal
from icmape_agent.session.schema import check_message, short
from icmape_agent.session.table import table

if TYPE_CHECKING:
    from icmape_agent.session.session import Session

Reply = dict[str, Any]
AGENT_MESSAGES = ("ask", "tell", "first", "missed", "stop", "status")
"""What an agent may send, each for itself."""
ABOUT = ("id", "note", "time")


class Handler:
    """Replies to messages. Every record is in the journal before the reply is returned."""

    def __init__(self, session: "Session"):
        self.session, self.crew = session, session.crew
        self.gate, self.agents = self.crew.gate, Agents(self.crew)
        self._kinds: dict[str, Callable[[Entry], Reply]] = {
            "ask": self.ask,
            "tell": self.tell,
            "first": self.first,
            "missed": self.missed,
            "stop": self.stop,
            "status": self.status,
            "answer": self.answer,
            "show": self.show,
        }

    def reply(self, message: Any, sender: int | None) -> Reply:
        """The reply to a message; `Refusal` or `UserError` if it is refused."""
        check_message(message)
        if sender is not None and (message["type"] not in AGENT_MESSAGES or message.get("agent") != sender):
            raise Refusal("forbidden", f"agent {sender} may send {', '.join(AGENT_MESSAGES)} for itself only")
        number = self.session.header["session"]
        if message.get("session", number) != number:
            raise Refusal("conflict", f"this is session {number}; the message is for {short(message['session'])}")
        return {"ok": True, "type": message["type"], **self._kinds[message["type"]](message)}

    def record(self, agent: Any) -> AgentRecord:
        """The entries of an agent."""
        agents = self.session.records.agents
        if type(agent) is not int or not 0 <= agent < len(agents):
            raise Refusal("refused", f"agents are numbered 0..{len(agents) - 1}; given {short(agent)}")
        return agents[agent]

    # -- questions

    def ask(self, message: Entry) -> Reply:
        """The next action of an agent. Its own entries decide, and the public bit. A stop is recorded first."""
        agent, record = message["agent"], self.record(message["agent"])
        number = record.open_round
        if message.get("round", number) != number:
            raise Refusal(
                "conflict",
                f"the first open round of agent {agent} is {number}; asked was for round {message['round']}",
                recorded=number,
                given=message["round"],
            )
        if not self.session.stopped:
            self._check_first(agent, record)
        action = STOP if self.session.stopped else self.agents.act(agent, record)
        if action == STOP and not self.session.stopped:
            self.session.record({"type": "stop", "agent": agent, "round": number})
        stop = action == STOP
        name = "STOP" if stop else self.crew.action_name(action)
        return {"agent": agent, "round": number, "stop": stop, "action": None if stop else action, "name": name}

    def _check_first(self, agent: int, record: AgentRecord) -> None:
        if self.gate.shows_first and record.first is None:
            raise Refusal("early", f"agent {agent} needs its observation before round 0: send it as a message 'first'")

    def status(self, message: Entry) -> Reply:
        """The public bit and the round of an agent, or those of all agents."""
        common = {"session": self.session.header["session"], "stopped": self.session.stopped}
        if "agent" not in message:
            return {**common, "rounds": [agent.open_round for agent in self.session.records.agents]}
        record = self.record(message["agent"])
        return {**common, "agent": message["agent"], "round": record.open_round, "waiting": record.waiting}

    def answer(self, message: Entry) -> Reply:
        """The team's answer."""
        answer, data = self.conclude(message.get("early", False))
        confidence = min(max(float(answer.confidence), 0.0), 1.0)
        unlike = warning(self.session, self.data(), confidence) if self.session.stopped else ""
        words = {"near": self.crew.near(answer.decision), "chance": self.crew.chance}
        return {
            "stopped": self.session.stopped,
            "rounds": data.rounds,
            "partial": data.partial,
            "missing": data.missing,
            "decision": plain(answer.decision),
            "name": str(answer.name),
            "confidence": confidence,
            **{name: text for name, text in words.items() if text},
            **({"target": 1 - self.crew.delta} if self.crew.delta is not None else {}),
            **({"warning": unlike} if unlike else {}),
        }

    def conclude(self, early: bool) -> tuple[Any, Counted]:
        """The answer as the team gives it, and the data that count."""
        if not self.session.stopped and not early:
            raise Refusal("early", "nobody has stopped yet: send the message 'stop', or ask for an early answer")
        data = self.data(self.crew.counts)
        return self.crew.answer(data, self.session.records.firsts), data

    def data(self, counts: Counts = lambda whole, told: True) -> Counted:
        """The data before the stop, by default of all rounds."""
        agents = self.session.records.agents
        self._check_firsts(agents)
        refused = [self.agents.refused(agent, record) for agent, record in enumerate(agents)]
        return counted(self.session.records, refused, counts)

    def _check_firsts(self, agents: list[AgentRecord]) -> None:
        """No program of a team does without an observation before round 0, so nothing can stand for it."""
        lacking = [str(agent) for agent, record in enumerate(agents) if record.first is None]
        if self.gate.shows_first and lacking:
            who = f"agents {', '.join(lacking)}" if len(lacking) > 1 else f"agent {lacking[0]}"
            raise Refusal(
                "early",
                f"{who} never told the observation before round 0, and no answer can be given without it: send it as "
                "a message 'first'",
            )

    def show(self, message: Entry) -> Reply:
        """A table for people, with the answer or why there is none."""
        answer: Reply | str | None = None
        if self.session.stopped:
            try:
                answer = self.answer({})
            except UserError as error:
                answer = str(error)
        return {"text": table(self.session.header, self.session.records, self.crew.action_name, answer)}

    # -- records

    def tell(self, message: Entry) -> Reply:
        """Record an action and its reading."""
        agent, record, number = message["agent"], self.record(message["agent"]), message["round"]
        self._check_round(number, self.gate.sizes.horizon - 2, "readings")
        if self._is_new(message, record.readings.get(number), record, ("action", "reading")):
            self.gate.action(message["action"])
            self.gate.reading(agent, message["reading"])
            begun = record.first is not None or not self.gate.shows_first
            tried = number == record.open_round and begun
            if tried:
                self.agents.try_next(agent, record, message)
            self._write(message, ("action", "reading"), late=self.session.stopped)
            if tried:
                self.agents.recorded()
        return {"agent": agent, "round": number, "late": record.readings[number]["late"]}

    def first(self, message: Entry) -> Reply:
        """Record the observation of an agent before round 0."""
        agent, record = message["agent"], self.record(message["agent"])
        if not self.gate.shows_first:
            raise Refusal("refused", "nothing is observed before round 0 in this problem: leave out 'first'")
        if self._is_new(message, record.first, record, ("reading",)):
            self.gate.reading(agent, message["reading"])
            self._write(message, ("reading",))
        return {"agent": agent}

    def missed(self, message: Entry) -> Reply:
        """Record that a reading does not come, unless it is there already."""
        agent, record, number = message["agent"], self.record(message["agent"]), message["round"]
        self._check_round(number, self.gate.sizes.horizon - 2, "readings")
        if number in record.readings and number not in record.misses:
            return {"agent": agent, "round": number, "recorded": False}
        if self._is_new(message, record.misses.get(number), record, ("action",)):
            if "action" in message:
                self.gate.action(message["action"])
            self._write(message, ("action",))
        return {"agent": agent, "round": number, "recorded": True}

    def stop(self, message: Entry) -> Reply:
        """Record a stop: of an agent that decided by itself, or of a person."""
        agent, records = message.get("agent"), self.session.records
        record = None if agent is None else self.record(agent)
        known = records.ended if record is None else record.stop
        default = records.last_round if record is None else record.open_round
        number: int = message["round"] if "round" in message else known["round"] if known else default
        self._check_round(number, self.gate.sizes.horizon - 1, "a stop")
        asked = {**message, "agent": agent, "round": number}
        if self._is_new(asked, known, record, ("round",)):
            self._write(asked, ())
        return {"agent": agent, "round": number}

    def _check_round(self, number: int, last: int, what: str) -> None:
        if number > last:
            raise Refusal("refused", f"rounds with {what} are 0..{last} in this problem; given {number}")

    def _is_new(
        self, message: Entry, known: Entry | None, record: AgentRecord | None, content: tuple[str, ...]
    ) -> bool:
        """Whether nothing is recorded yet for what a message is about; `Refusal` if something else is."""
        used = record.ids.get(message.get("id", "")) if record else None
        if used is not None and not _same(used, message, ("type", "round", *content)):
            raise _conflict(f"id {short(message['id'])} was used for another message of this agent", used, message)
        if known is not None and not _same(known, message, content):
            raise _conflict(f"the journal holds another {message['type']} for {_place(message)}", known, message)
        return known is None

    def _write(self, message: Entry, content: tuple[str, ...], **more: Any) -> None:
        names = ("type", "agent", "round", *content)
        kept = {name: message[name] for name in names if name in message}
        self.session.record({**kept, **more, **{name: message[name] for name in ABOUT if name in message}})


def _same(entry: Entry, message: Entry, content: tuple[str, ...]) -> bool:
    return all(entry.get(name) == message.get(name) for name in content)


def _conflict(text: str, entry: Entry, message: Entry) -> Refusal:
    shown = ("type", "agent", "round", "action", "reading")
    recorded, given = ({name: part[name] for name in shown if name in part} for part in (entry, message))
    return Refusal(
        "conflict", f"{text}: recorded is {short(recorded)}, given {short(given)}", recorded=recorded, given=given
    )


def _place(message: Entry) -> str:
    who = "the team" if message.get("agent") is None else f"agent {message['agent']}"
    return f"{who}, round {message['round']}" if "round" in message else who
