"""Processes of the field test, which are killed and started again."""

import json
import queue
import signal
import subprocess
import sys
import threading
import time
from typing import Any


class Process:
    """An agent's process, or the coordinator's, which is started again when it was killed."""

    def __init__(self, module: str, *words: Any):
        self.words = [sys.executable, "-m", module, *map(str, words)]
        self.told: queue.Queue[dict[str, Any]] = queue.Queue()
        self.episode: dict[str, Any] | None = None
        self.guard, self.ready = threading.Lock(), threading.Event()
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self._listen, args=(self.process,), daemon=True).start()

    def wait(self) -> None:
        """Until it can play."""
        self.ready.wait(60)

    def play(self, episode: dict[str, Any]) -> None:
        with self.guard:
            self.episode = episode
            self._send()

    def kill(self, name: str) -> bool:
        """Kill it in an episode that has not ended for it, and start it again; whether it was killed."""
        with self.guard:
            if self.episode is None or self.episode["name"] != name:
                return False
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.start()
            self._send()
            return True

    def finish(self) -> None:
        """Tell it that the episode is over."""
        with self.guard:
            self.process.stdin.write("\n")
            self.process.stdin.flush()

    def ended(self, name: str, until: float) -> dict[str, Any]:
        """What it told at the end of an episode; raises `queue.Empty` if it does not in time.

        A process that is killed right after its end is heard twice.
        """
        while True:
            told = self.told.get(timeout=max(until - time.monotonic(), 0.01))
            if told["episode"] == name:
                return told

    def end(self) -> None:
        self.process.stdin.close()
        if self.process.wait(20) != 0:
            raise RuntimeError(f"an agent ended with {self.process.returncode}")

    def _send(self) -> None:
        self.process.stdin.write(json.dumps(self.episode) + "\n")
        self.process.stdin.flush()

    def _listen(self, process: subprocess.Popen) -> None:
        for line in process.stdout:
            try:
                told = json.loads(line)
            except ValueError:  # a line that a kill cut off
                continue
            self.ready.set()
            if "episode" in told:
                with self.guard:
                    self.episode = None
                self.told.put(told)
