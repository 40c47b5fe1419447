"""Sessions whose process is killed at random moments: python -m benchmarks.session_kills --kills 500 --out OUT.json.

A driver plays sessions of a small team in a worker (`icmape_agent.session.serve`), which is killed (SIGKILL) while it
starts, replays its journal, waits, writes or replies. After every kill the driver reads the journal and looks for every
reading that was acknowledged; then it starts the worker again and repeats the message without a reply. In the end the
journal and the answer are compared with a session that was not disturbed.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.session_team import Coins, crew, toss
from icmape_agent.session import Session, journal, open_session, serve

PIECE = 16  # bytes that a worker with `--pieces` writes at once, so that kills leave unfinished lines
MOMENTS = (0.0005, 0.004, 0.03)  # seconds after a message within which a kill falls
COMPARED = ("type", "agent", "round", "action", "reading")


@dataclass
class Counts:
    """What the driver saw."""

    kills: int = 0
    sessions: int = 0
    acknowledged: int = 0  # readings whose reply arrived
    lost: int = 0  # of these, not in the journal after a kill
    journals_read: int = 0  # after a kill
    unfinished_lines: int = 0  # of these journals
    recorded_without_reply: int = 0  # killed between the journal and the reply
    killed_at_start: int = 0  # before the worker was ready
    repeated: int = 0  # acknowledged messages that were sent once more
    other_replies: int = 0  # of these, with another reply
    other_answers: int = 0  # sessions whose answer or journal differs from the undisturbed one


class Killed(Exception):
    """The worker is gone."""


class Worker:
    """A session in a process of its own."""

    def __init__(self, team: Coins, folder: Path, pieces: bool, kill_after: float | None):
        sizes = ["--agents", str(team.agents), "--horizon", str(team.horizon)]
        words = [sys.executable, "-m", "benchmarks.session_kills", "--worker", str(folder), *sizes]
        self.process = subprocess.Popen(
            words + ["--pieces"] * pieces, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ
        )
        self.ready, self._timer = False, None
        if kill_after is not None:
            self.kill_in(kill_after)

    def kill_in(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self.process.send_signal, [signal.SIGKILL])
        self._timer.start()

    @property
    def doomed(self) -> bool:
        return self._timer is not None

    def send(self, message: dict[str, Any]) -> dict[str, Any]:
        """The reply to a message. A reply that was cut off is none."""
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError as error:
            raise Killed from error
        line = self.process.stdout.readline()
        if not line.endswith(b"\n"):
            raise Killed
        self.ready = True
        return json.loads(line)

    def end(self) -> None:
        """Wait for the process, which is killed or has no more input."""
        if self._timer is not None:
            self._timer.join()
        for stream in (self.process.stdin, self.process.stdout):
            try:
                stream.close()
            except BrokenPipeError:
                continue
        code = self.process.wait(timeout=60)
        if code not in (0, -signal.SIGKILL):
            raise RuntimeError(f"the worker ended with {code}")


class Driver:
    """Plays sessions, kills their workers, and counts."""

    def __init__(self, team: Coins, seed: int, kills: int):
        self.team, self.chance, self.kills, self.counts = team, random.Random(seed), kills, Counts()
        self.worker: Worker | None = None
        self.until_kill = 0  # messages

    def play(self, folder: Path, world: int, pieces: bool) -> dict[str, Any]:
        """One session to its end; its answer."""
        self.folder, self.pieces = folder, pieces
        self.acknowledged: dict[tuple[int, int], dict[str, Any]] = {}
        self.replies: list[tuple[dict[str, Any], dict[str, Any]]] = []
        for message in messages(self.team, world, self.reply):
            self.told(message, self.reply(message))
        answer = self.reply({"type": "answer"})
        self.end_worker()
        self.counts.sessions += 1
        return answer

    def told(self, message: dict[str, Any], reply: dict[str, Any]) -> None:
        """Remember what was acknowledged, and sometimes say something again."""
        self.acknowledged[message["agent"], message["round"]] = message
        self.counts.acknowledged += 1
        self.replies.append((message, reply))
        if self.chance.random() < 0.1:
            earlier, first_reply = self.chance.choice(self.replies)
            self.counts.repeated += 1
            self.counts.other_replies += self.reply(earlier) != first_reply

    def reply(self, message: dict[str, Any]) -> dict[str, Any]:
        """The reply to a message, which is sent until there is one."""
        while True:
            try:
                worker = self.worker or self.start()
                if not worker.doomed and self.counts.kills < self.kills:
                    self.until_kill -= 1
                    if self.until_kill <= 0:
                        worker.kill_in(self.chance.uniform(0, self.chance.choice(MOMENTS)))
                reply = worker.send(message)
            except Killed:
                self.after_kill(message)
                continue
            if not reply["ok"]:
                raise RuntimeError(f"{message} was refused: {reply}")
            return reply

    def start(self) -> Worker:
        """A new worker: a fifth of them are killed within their first moments, the others at a later message."""
        early = self.counts.kills < self.kills and self.chance.random() < 0.2
        self.until_kill = self.chance.randint(1, 10)
        self.worker = Worker(self.team, self.folder, self.pieces, self.chance.uniform(0, 0.3) if early else None)
        return self.worker

    def after_kill(self, message: dict[str, Any]) -> None:
        """Read the journal and look for everything that was acknowledged."""
        self.counts.kills += 1
        self.counts.killed_at_start += not self.worker.ready
        self.end_worker()
        path = self.folder / journal.NAME
        if not path.exists():  # killed before the session began: nothing can have been acknowledged
            self.counts.lost += len(self.acknowledged)
            return
        contents = journal.read(path)
        self.counts.journals_read += 1
        self.counts.unfinished_lines += contents.torn > 0
        kept = {(e["agent"], e["round"]): e for e, _, _ in contents.lines if e["type"] == "tell"}
        for key, told in self.acknowledged.items():
            self.counts.lost += key not in kept or any(kept[key][name] != told[name] for name in COMPARED)
        key = (message.get("agent"), message.get("round"))
        self.counts.recorded_without_reply += key in kept and key not in self.acknowledged

    def end_worker(self) -> None:
        if self.worker is not None:
            self.worker.end()
        self.worker = None


def messages(team: Coins, world: int, reply: Any) -> Iterator[dict[str, Any]]:
    """The readings of a world, round by round, as the agents ask for them, until one stops."""
    for number in range(team.horizon):
        for agent in range(team.agents):
            asked = reply({"type": "ask", "agent": agent, "round": number})
            if asked["stop"]:
                return
            action, reading = asked["action"], toss(world, agent, number, asked["action"])
            told = {"type": "tell", "agent": agent, "round": number, "action": action, "reading": reading}
            yield {**told, "id": f"{world}-{agent}-{number}", "note": "naïve ☂"}


def undisturbed(team: Coins, folder: Path, world: int) -> dict[str, Any]:
    """The answer of the same session in one process."""
    with open_session(crew(team), folder) as session:
        for message in messages(team, world, session.handle):
            session.handle(message)
        return session.handle({"type": "answer"})


def recorded(folder: Path) -> list[list[Any]]:
    """What a journal says, without times."""
    return [[line.entry.get(name) for name in COMPARED] for line in journal.read(folder / journal.NAME).lines]


def measure(team: Coins, kills: int, seed: int, folder: Path) -> Counts:
    """Play sessions until so many workers were killed."""
    driver = Driver(team, seed, kills)
    while driver.counts.kills < kills:
        world = driver.counts.sessions
        disturbed, alone = folder / f"killed-{world}", folder / f"alone-{world}"
        answer = driver.play(disturbed, world, pieces=world % 2 == 1)
        same = answer == undisturbed(team, alone, world) and recorded(disturbed) == recorded(alone)
        driver.counts.other_answers += not same
    return driver.counts


@contextmanager
def in_pieces() -> Iterator[None]:
    """Write lines in small pieces with pauses between them."""

    def write(file: int, data: bytes, offset: int) -> None:
        for start in range(0, len(data), PIECE):
            os.pwrite(file, data[start : start + PIECE], offset + start)
            time.sleep(0.0002)

    whole, journal._write = journal._write, write
    try:
        yield
    finally:
        journal._write = whole


def work(team: Coins, folder: Path) -> None:
    """The worker: a session on standard input and output."""
    session: Session = open_session(crew(team), folder, wait=10)
    serve(session, sys.stdin.buffer, sys.stdout.buffer)


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.session_kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--agents", type=int, default=6)
    parser.add_argument("--horizon", type=int, default=51)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--pieces", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(words)
    team = Coins(args.agents, horizon=args.horizon)
    if args.worker is not None:
        with in_pieces() if args.pieces else open(os.devnull):
            work(team, args.worker)
        return 0
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        counts = measure(team, args.kills, args.seed, Path(folder))
    asked = {"kills": args.kills, "seed": args.seed, "agents": args.agents, "horizon": args.horizon}
    content = {"asked": asked, "value": asdict(counts)}
    print(json.dumps(content["value"], indent=2), f"{time.monotonic() - began:.0f} s", sep="\n")
    if args.out is not None:
        from icmape.io import circumstances, write_atomically

        text = json.dumps({**content, "provenance": circumstances()}, indent=2)
        write_atomically(args.out, text.encode() + b"\n")
    return int(counts.lost + counts.other_replies + counts.other_answers > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
