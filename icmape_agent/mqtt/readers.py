"""Where the readings of a device come from: a function, a program, or lines on standard input."""

import json
import queue
import shlex
import subprocess
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from io import RawIOBase
from typing import IO, Any, NamedTuple

from icmape_agent.errors import UserError
from icmape_agent.session.stdio import parse

MOST_BYTES = 1_000_000  # of one reading
STEP = 0.2  # seconds between two looks at the stop bit
FIRST = "first"
"""What stands for the action where an observation before round 0 is asked for."""


class Request(NamedTuple):
    """What a device asks for."""

    agent: int
    round: int
    action: int | None  # None: the observation before round 0
    name: str  # of the action
    stopped: Callable[[], bool]  # whether the round is not played any more

    def to_json(self) -> dict[str, Any]:
        """As a line of text has it."""
        about = {"agent": self.agent, "round": self.place, "action": self.action, "name": self.name}
        return {"type": FIRST if self.action is None else "read", **about}

    @property
    def place(self) -> int | str:
        """The round, or `FIRST`: what an answer is for."""
        return FIRST if self.action is None else self.round


class Reader(ABC):
    """Takes readings. `read` returns a JSON value, or None if no reading comes."""

    told = "no reading came"
    """Why none came last; nothing if whoever gives the readings said that this one does not come."""

    @abstractmethod
    def read(self, request: Request) -> Any:
        """The reading of an action that the device takes for it."""

    def end(self, told: dict[str, Any]) -> None:  # noqa: B027 (most readers need not know)
        """The episode is over; `told` says so to whoever gives the readings."""


class Called(Reader):
    """A Python function of the action; None stands for a reading that does not come."""

    def __init__(self, function: Callable[[int | None], Any]):
        self.function = function

    def read(self, request: Request) -> Any:
        """What the function returns; a time-out is a miss."""
        self.told = Reader.told
        try:
            return self.function(request.action)
        except TimeoutError as error:
            self.told = f"it took too long ({error})" if str(error) else "it took too long"
            return None


class Command(Reader):
    """A program that is run for every reading and prints it as JSON. A failure or a time-out is a miss.

    In its words {action}, {round}, {agent} and {name} are replaced. No shell reads them.
    """

    def __init__(self, line: str, timeout: float | None = None):
        try:
            self.words = shlex.split(line)
        except ValueError as error:
            raise UserError(f"the program for readings cannot be read ({error}); given {line!r}") from error
        if not self.words:
            raise UserError("the program for readings is empty: give one such as 'read-sensor {action}'")
        self.timeout = timeout

    def read(self, request: Request) -> Any:
        """What the program prints."""
        action = FIRST if request.action is None else request.action
        values = {"agent": request.agent, "round": request.round, "action": action, "name": request.name}
        words = [_filled(word, values) for word in self.words]
        try:
            done = subprocess.run(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=self.timeout, check=False
            )
        except (FileNotFoundError, PermissionError) as error:
            why = "is not there" if isinstance(error, FileNotFoundError) else "may not be run (chmod +x makes it so)"
            raise UserError(f"the program for readings {words[0]!r} {why}") from error
        except (subprocess.TimeoutExpired, OSError) as error:
            self.told = str(error)
            return None
        if done.returncode != 0:
            self.told = f"{words[0]} ended with {done.returncode}"
            return None
        return self._value(done.stdout)

    def _value(self, printed: bytes) -> Any:
        try:
            return parse(printed[:MOST_BYTES])
        except (ValueError, RecursionError):
            self.told = f"{self.words[0]} printed no JSON"
            return None


def _filled(word: str, values: dict[str, Any]) -> str:
    for name in ("action", "round", "agent", "name"):
        word = word.replace(f"{{{name}}}", str(values[name]))
    return word


class Lines(Reader):
    """A request a line out, `{"reading": …, "round": …}` or `{"missed": true, "round": …}` a line in.

    With a time-out the round is needed: an answer that came too late would be taken for that of the next request.
    """

    def __init__(self, incoming: RawIOBase | IO[bytes], outgoing: IO[bytes], timeout: float | None = None):
        self.outgoing, self.timeout = outgoing, timeout
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._listener = threading.Thread(target=self._listen, args=(incoming,), daemon=True)

    def read(self, request: Request) -> Any:
        """The answer to a request; None after the stop, after the time-out and at the end of the input."""
        if self._listener.ident is None:
            self._listener.start()
        self._say({**request.to_json(), "stop": False})
        waited = 0.0
        while not request.stopped() and (self.timeout is None or waited < self.timeout):
            try:
                line = self._lines.get(timeout=STEP)
            except queue.Empty:
                waited += STEP
                continue
            if line is None:
                self._lines.put(None)
                raise UserError(
                    "the input ended before the episode: go on with the same folder when readings come again"
                )
            answer = _answer(line, None if self.timeout is None else request.place)
            if isinstance(answer, str):
                self._say({"type": "error", "text": answer})
            elif answer.get("round", request.place) == request.place:  # an answer that came too late is left
                self.told = ""
                return answer.get("reading")
        self.told = "no answer came in time"
        return None

    def end(self, told: dict[str, Any]) -> None:
        """A last line."""
        self._say(told)

    def _say(self, value: dict[str, Any]) -> None:
        self.outgoing.write(json.dumps(value, allow_nan=False).encode() + b"\n")
        self.outgoing.flush()

    def _listen(self, incoming: RawIOBase | IO[bytes]) -> None:
        while line := incoming.readline(MOST_BYTES):
            self._lines.put(line)
        self._lines.put(None)


def _answer(line: bytes, place: int | str | None) -> dict[str, Any] | str:
    """The answer that a line holds, or why it is none; with a `place`, it must name a round."""
    try:
        value = parse(line)
    except (ValueError, RecursionError) as error:
        return f"an answer is one JSON object a line: {error}"
    known = {"reading", "missed", "round"}
    if not isinstance(value, dict) or not set(value) <= known or ("reading" in value) == (value.get("missed") is True):
        return 'an answer is {"reading": …} or {"missed": true}, with the "round" of the request'
    if place is not None and "round" not in value:
        return f'with a time-out an answer names its round, here "round": {json.dumps(place)}; it was left'
    return value
