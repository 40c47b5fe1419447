"""Teams and agents without JAX: the same choices as those of icmape, from the program in a team's file."""

import os
import reprlib
from typing import TYPE_CHECKING, Any

import numpy as np

from icmape_agent.answers import Answer, Answers
from icmape_agent.description import Description, read_description
from icmape_agent.errors import UserError
from icmape_agent.files import PREFIX, read
from icmape_agent.identity import identity_of
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
        """The next action of an agent, given its own past actions and observations; `STOP` ends the episode."""
        actor = self.agent(agent, first)
        if not hasattr(actions, "__len__") or isinstance(actions, str | bytes):
            raise UserError(f"actions must be a list of an agent's past actions; given {reprlib.repr(actions)}")
        if isinstance(observations, list) and len(observations) != len(actions):
            raise UserError(f"{len(actions)} actions do not match {len(observations)} observations")
        numbers = [self.gate.action(action) for action in actions]
        seen = self.gate.readings(actor.number, len(numbers), observations)
        for number, action in enumerate(numbers):
            actor.update(action, [part[number] for part in seen])
        return actor.act()

    def posterior(self, actions: Any, observations: Any, first: Any = None) -> Answer:
        """The answer from the data of all agents: actions (rounds, agents) and their observations."""
        functions = self._functions("begin", "add", "answer")
        rows = self.gate.joint_actions(actions)
        self.gate.first(first)
        seen = self.gate.joint_readings(len(rows), observations)
        start = self.gate.nothing() if first is None else self.gate.joint(first)
        self._check_allowed(rows, seen, start)
        state = functions[0](*start)
        for number, row in enumerate(rows):
            state = functions[1](row, *(part[number] for part in seen), *state)
        scores, probabilities, decision, confidence = map(np.asarray, functions[2](*state))
        if not np.isfinite(confidence) or not np.isfinite(probabilities).all():
            raise UserError(
                "the inference gives no finite scores for this data: no answer explains all of it, so check the "
                "readings and who read them"
            )
        name, kind = self.answers.name(decision), self.answers.kind
        why = lambda: self._reason(rows, seen, start, float(confidence))  # noqa: E731
        return Answer(probabilities, decision, name, float(confidence), scores, kind, why)

    def session(self, folder: str | os.PathLike[str], **options: Any) -> "Session":
        """Ask and tell with a journal in a folder: a new session, or the one that is there (`open_session`)."""
        from icmape_agent.session import Crew, open_session

        self._functions("open", "move")
        kind, takes_missing = {"kind": self.gate.title}, hasattr(Agent, "missed")
        crew = Crew(self, self.gate, self.identity, kind, self.action_name, takes_missing)
        return open_session(crew, os.fspath(folder), **options)

    def _functions(self, *names: str) -> list[Function]:
        for name in names:
            if name not in self.described.functions:
                part = "agent" if name in ("open", "move") else "inference"
                raise UserError(f"no {part} of this team runs without icmape: {self.described.missing[part]}")
        return [self.described.functions[name] for name in names]

    def _check_allowed(self, rows: np.ndarray, seen: list[np.ndarray], start: list[np.ndarray]) -> None:
        """Refuse actions that the action mask of an agent excluded, where its agents can be run."""
        if not self.described.masked or "move" not in self.described.functions:
            return
        for agent in range(self.gate.sizes.agents):
            self._replayed(agent, rows, seen, start)

    def _replayed(self, agent: int, rows: np.ndarray, seen: list[np.ndarray], start: list[np.ndarray]) -> "Agent":
        """An agent after its own history."""
        first = [part[agent] for part in start]
        actor = Agent(self, agent, first, checked=True)
        for number, row in enumerate(rows):
            actor.update(int(row[agent]), [part[number, agent] for part in seen])
        return actor

    def _reason(self, rows: np.ndarray, seen: list[np.ndarray], start: list[np.ndarray], confidence: float) -> str:
        """Why an episode with this data ends."""
        rounds, kind, level = len(rows), self.described.stop, self.described.level
        if rounds >= self.gate.sizes.horizon - 1:
            return f"the horizon of {self.gate.sizes.horizon} rounds is reached"
        if kind == "length":
            return f"the agreed {level:g} rounds of data are {'over' if rounds >= level else 'not over yet'}"
        if kind == "threshold":
            sure = "sure enough" if confidence >= level else "not sure enough yet"
            return f"the posterior is {sure}: {confidence:.3f} against {level:g}"
        if "move" not in self.described.functions:
            return "its rule reads everyone's data"
        agents = range(self.gate.sizes.agents)
        stopping = [str(i + 1) for i in agents if self._replayed(i, rows, seen, start).act() == STOP]
        if not stopping:
            return "nobody would stop yet"
        return f"agents {', '.join(stopping)} stop" if len(stopping) > 1 else f"agent {stopping[0]} stops"


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
        if self._stopped:
            raise UserError(f"agent {self.number} chose STOP in round {self.round}: the episode is over")
        self.update(self.gate.action(action), self.gate.reading(self.number, observation))

    def update(self, action: int, seen: list[np.ndarray]) -> None:
        """Update the memory with an observation that was checked."""
        self.gate.rounds(self.round + 1)
        if self.team.described.masked and not self._allowed[action]:
            refuse_masked(action, f"agent {self.number} in round {self.round}")
        self.round += 1
        self._think(self._move(np.int32(self.round), np.int32(action), *seen, *self._state))

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
