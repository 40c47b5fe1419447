"""Devices of a small team, and what tests wait for."""

import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.mosquitto import MOSQUITTO, Mosquitto, free_port
from icmape_agent import Team, load
from icmape_agent.mqtt import Broker, Device, Reader, Request
from icmape_agent.session import journal

__all__ = ["MOSQUITTO", "Mosquitto", "Reading", "Running", "device", "free_port", "paid", "team", "told", "until"]


def team() -> Team:
    """Three agents with two arms."""
    return load("bandit-quick")


def paid(agent: int, number: int, arm: int | None) -> int:
    """The reading of an agent in a round."""
    return int(zlib.crc32(repr((agent, number, arm)).encode()) % 3 > 0)


class Reading(Reader):
    """Such readings; it remembers what was asked, and can wait."""

    def __init__(self, seconds: float = 0.0, missed: Callable[[int], bool] = lambda number: False):
        self.seconds, self.missed, self.asked = seconds, missed, list[int]()

    def read(self, request: Request) -> Any:
        self.asked.append(request.round)
        time.sleep(self.seconds)
        return None if self.missed(request.round) else paid(request.agent, request.round, request.action)


def device(index: int, broker: Broker, folder: Path, read: Any = None, **options: Any) -> Device:
    """A device that does not wait long."""
    options = {"again": 0.3, "patience": 10.0, "folder": folder / f"agent-{index}", **options}
    return Device(team(), index, read or Reading(), broker=broker, session="july", **options)


class Running(threading.Thread):
    """A device in a thread, with what it returned or raised."""

    def __init__(self, device: Device):
        super().__init__(daemon=True)
        self.device, self.ended, self.error = device, None, None
        self.start()

    def run(self) -> None:
        try:
            self.ended = self.device.run()
        except Exception as error:
            self.error = error

    def result(self, seconds: float = 20):
        self.join(seconds)
        assert not self.is_alive(), "the device did not end"
        if self.error is not None:
            raise self.error
        return self.ended


def until(condition: Callable[[], bool], seconds: float = 10) -> None:
    """Wait for something that must happen."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def told(folder: Path, index: int) -> dict[int, dict]:
    """The readings and misses of an agent in a journal."""
    entries = [line.entry for line in journal.read(folder / journal.NAME).lines]
    return {e["round"]: e for e in entries if e["type"] in ("tell", "missed") and e["agent"] == index}
