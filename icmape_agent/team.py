"""Teams and agents without JAX: the same choices as those of icmape, from the program in a team's file."""

import os
import reprlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from icmape_agent.answers import Answer, Answers
from icmape_agent.description import Description, read_description
from icmape_agent.errors import UserError
from icmape_agent.files import PREFIX, read
from icmape_agent.identity import identity_of
from icmape_agent.missing import check_marks, refuse_after_stop, refuse_missing
from icmape_agent.program import Function
from icmape_agent.readings import Gate, refuse_masked

if TYPE_CHECKING:
    from icmape_agent.session import Session

STOP = -1
"""The return value of `act` when an agent stops."""


def load(source: str | os.PathLike[str]) -> "Team":
    """Read a team from a file, or a pretrained one by name where icmape is installed."""
    file = read(source)
    try:
        described = read_description(file.described, file.tensors)
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError, AttributeError) as error:
        text = " ".join(str(error).split())
        raise UserError(
            f"{file.path}: its program cannot be run ({text}); was it written by another version?"
        ) from error
    weights = {name: tensor for name, tensor in file.tensors.items() if not name.startswith(PREFIX)}
    identity = identity_of(described.gate, file.delta, described.stop, described.level, weights)
    return Team(described, file.delta, identity)


class Team:
    """A team in the field: agents that act alone, and the inference on the data of all."""

    def __init__(self, described: Description, delta: float, identity: str = ""):
        self.described, self.delta, self.identity = described, delta, identity
        self.gate: Gate = described.gate

    def __repr__(self) -> str:
        """One line: sizes, stop and δ."""
        sizes = self.gate.sizes
        return (
            f"Team({self.gate.title}: {sizes.agents} agents, {sizes.actions} actions, at most {sizes.horizon} rounds, "
            f"stop={self.described.stop}, δ={self.delta:g})"
        )

    @property
    def answers(self) -> Answers:
        """What the answers are."""
        return self.described.answers

    def action_name(self, action: int) -> str:
        """The name of an action for display."""
        number, names = self.gate.action(action), self.described.actions
        return str(number) if names is None else names[number]

    def agent(self, index: int, first: Any = None) -> "Agent":
        """One agent, ready to act. `first` is its observation before round 0, if the problem has one."""
        return Agent(self, index, first)

    def act(self, agent: int, actions: Any = (), observations: Any = (), first: Any = None) -> int:
        """The next action of an agent, given its own past actions and observations; `STOP` ends the episode.

        An observation is None if it never came.
        """
        actor = self.agent(agent, first)
        if not isinstance(actions, list | tuple) and getattr(actions, "ndim", 0) != 1:
            raise UserError(f"actions must be a list of an agent's past actions; given {reprlib.repr(actions)}")
        if isinstance(observations, list) and len(observations) != len(actions):
            raise UserError(f"{len(actions)} actions do not match {len(observations)} observations")
        numbers = [self.gate.action(action) for action in actions]
        seen, arrived = self.gate.some_readings(actor.number, len(numbers), observations)
        for number, action in enumerate(numbers):
            actor.update(action, [part[number] for part in seen], bool(arrived[number]))
        return actor.act()

    def posterior(self, actions: Any, observations: Any, first: Any = None) -> Answer:
        """The answer from the data of all agents: actions (rounds, agents) and their observations.

        None stands for a reading that never came; an agent that did nothing in a round has None for its action too.
        """
        functions = self._functions("begin", "add", "answer")
        rows, acted = self.gate.some_joint_actions(actions)
        self.gate.first(first)
        seen, arrived = self.gate.some_joint_readings(len(rows), observations)
        start = self.gate.nothing() if first is None else self.gate.joint(first)
        check_marks(acted, arrived)
        data = Data(rows, seen, acted, arrived, start)
        if not arrived.all() and "inference" not in self.described.misses:
            refuse_missing("inference")
        self._check_allowed(data)
        state = functions[0](*start)
        for number, row in enumerate(rows):
            marks = (acted[number], arrived[number]) if "inference" in self.described.misses else ()
            state = functions[1](row, *(part[number] for part in seen), *marks, *state)
        scores, probabilities, decision, confidence = map(np.asarray, functions[2](*state))
        if not np.isfinite(confidence) or not np.isfinite(probabilities).all():
            raise UserError(
                "the inference gives no finite scores for this data: no answer explains all of it, so check the "
                "readings and who read them"
            )
        name, kind = self.answers.name(decision), self.answers.kind
        why = lambda: self._reason(data, float(confidence))  # noqa: E731
        return Answer(probabilities, decision, name, float(confidence), scores, kind, why, self.answers.chance)

    def session(self, folder: str | os.PathLike[str], **options: Any) -> "Session":
        """Ask and tell with a journal in a folder: a new session, or the one that is there (`open_session`)."""
        from icmape_agent.session import Crew, open_session

        self._functions("open", "move")
        kind, takes_missing = {"kind": self.gate.title}, self.takes_missing
        interact = self.described.interact
        chance, display = self.answers.chance, self.described.display
        crew = Crew(
            self,
            self.gate,
            self.identity,
            kind,
            self.action_name,
            takes_missing,
            interact,
            chance=chance,
            display=display,
        )
        return open_session(crew, os.fspath(folder), **options)

    @property
    def takes_missing(self) -> bool:
        """Whether its agents and its inference take missing readings."""
        return self.described.misses == {"agent", "inference"}

    def _functions(self, *names: str) -> list[Function]:
        for name in names:
            if name not in self.described.functions:
                part = "agent" if name in ("open", "move") else "inference"
                raise UserError(f"no {part} of this team runs without icmape: {self.described.missing[part]}")
        return [self.described.functions[name] for name in names]

    def _check_allowed(self, data: "Data") -> None:
        """Refuse actions that the action mask of an agent excluded, where its agents can be run.

        Only up to the first round in which it is not known what the agent did: what it may do later may depend on that.
        """
        if not self.described.masked or "move" not in self.described.functions:
            return
        if not data.arrived.all() and "agent" not in self.described.misses:
            return
        for agent in range(self.gate.sizes.agents):
            known = np.flatnonzero(~data.acted[:, agent])
            self._replayed(agent, data, int(known[0]) if len(known) else len(data.rows), checked=True)

    def _replayed(self, agent: int, data: "Data", rounds: int, checked: bool) -> "Agent":
        """An agent after its own history."""
        actor = Agent(self, agent, [part[agent] for part in data.start], checked=True)
        for number, row in enumerate(data.rows[:rounds]):
            seen, action = [part[number, agent] for part in data.seen], int(row[agent])
            if checked:
                actor.check_allowed(action)
            actor.take(action, seen, bool(data.acted[number, agent]), bool(data.arrived[number, agent]))
        return actor

    def _reason(self, data: "Data", confidence: float) -> str:
        """Why an episode with this data ends."""
        rounds, kind, level = len(data.rows), self.described.stop, self.described.level
        if rounds >= self.gate.sizes.horizon - 1:
            return f"the horizon of {self.gate.sizes.horizon} rounds is reached"
        if kind == "length":
            return f"the agreed {level:g} rounds of data are {'over' if rounds >= level else 'not over yet'}"
        if kind == "threshold":
            sure = "sure enough" if confidence >= level else "not sure enough yet"
            return f"the posterior is {sure}: {confidence:.3f} against {level:g}"
        if "move" not in self.described.functions:
            return "its rule reads everyone's data"
        if not data.arrived.all() and "agent" not in self.described.misses:
            return "its agents take no missing readings, so nobody knows who would stop"
        agents = range(self.gate.sizes.agents)
        stopping = [str(i + 1) for i in agents if self._replayed(i, data, rounds, checked=False).act() == STOP]
        if not stopping:
            return "nobody would stop yet"
        return f"agents {', '.join(stopping)} stop" if len(stopping) > 1 else f"agent {stopping[0]} stops"


class Data(NamedTuple):
    """The data of all agents, checked."""

    rows: np.ndarray  # actions (rounds, agents), 0 where it is not known what an agent did
    seen: list[np.ndarray]  # zeros where a reading never came
    acted: np.ndarray  # (rounds, agents)
    arrived: np.ndarray
    start: list[np.ndarray]  # observations before round 0


class Agent:
    """One agent of a team: it reads its own observations only, at constant cost per round."""

    def __init__(self, team: Team, index: int, first: Any = None, *, checked: bool = False):
        open_, move = team._functions("open", "move")
        self.team, self.gate = team, team.gate
        self.number, self.round, self._stopped = self.gate.agent(index), 0, False
        if checked:
            seen = first
        else:
            self.gate.first(first)
            nothing = [part[self.number] for part in self.gate.nothing()]
            seen = nothing if first is None else self.gate.reading(self.number, first)
        self._number = np.asarray(self.number, np.int32)
        self._move = move.given(self._number)
        self._think(open_(self._number, *seen))

    @property
    def scores(self) -> np.ndarray:
        """Scores over the actions and STOP (the last one)."""
        return self._scores

    def act(self) -> int:
        """The greedy action; `STOP` ends the episode for all agents."""
        action = self._choice()
        self._stopped = action == STOP
        return action

    def see(self, action: Any, observation: Any) -> None:
        """Update the memory with an own action and its observation."""
        self._check_going()
        self.update(self.gate.action(action), self.gate.reading(self.number, observation))

    def missed(self, action: Any = None) -> None:
        """Update the memory with an own action (by default that of `act`) whose reading never came."""
        self._check_going()
        if action is None and self._choice() == STOP:
            refuse_after_stop(self.number, self.round)
        taken = self._choice() if action is None else self.gate.action(action)
        self.update(taken, [part[self.number] for part in self.gate.nothing()], arrived=False)

    def update(self, action: int, seen: list[np.ndarray], arrived: bool = True) -> None:
        """Update the memory with an observation that was checked, if the action was allowed."""
        self.gate.rounds(self.round + 1)
        self.check_allowed(action)
        self.take(action, seen, True, arrived)

    def check_allowed(self, action: int) -> None:
        """Refuse an action that the action mask excludes."""
        if self.team.described.masked and not self._allowed[action]:
            refuse_masked(action, f"agent {self.number} in round {self.round}")

    def take(self, action: int, seen: list[np.ndarray], acted: bool, arrived: bool) -> None:
        """Update the memory with a round: what was done, if anything, and what was seen, if it arrived."""
        marks = (np.bool_(acted), np.bool_(arrived)) if "agent" in self.team.described.misses else ()
        if not marks and not arrived:
            refuse_missing("agent")
        self.round += 1
        self._think(self._move(np.int32(self.round), np.int32(action), *seen, *marks, *self._state))

    def _check_going(self) -> None:
        if self._stopped:
            raise UserError(f"agent {self.number} chose STOP in round {self.round}: the episode is over")

    def _choice(self) -> int:
        described, last = self.team.described, self.gate.sizes.horizon - 1
        if self.round >= (min(last, described.level) if described.stop == "length" else last):
            return STOP
        if np.isnan(self._scores).any():
            raise UserError(f"the scores of agent {self.number} are not finite after {self.round} rounds")
        best = int(np.argmax(np.where(self._offered, self._scores[:-1], -np.inf)))
        return STOP if described.stop == "learned" and self._scores[-1] > self._scores[best] else best

    def _think(self, outputs: list[Any]) -> None:
        *self._state, self._scores, self._offered, self._allowed = outputs
