"""A real MQTT broker, Debian's mosquitto, with a configuration of its own on a free port of this machine."""

import shutil
import socket
import subprocess
import time
from pathlib import Path

from icmape_agent.mqtt import Broker

MOSQUITTO = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Mosquitto:
    """A broker with a configuration of its own, which can be stopped and started again."""

    def __init__(self, folder: Path, extra: str = "allow_anonymous true\n", port: int | None = None):
        self.port, self.folder = port or free_port(), folder
        folder.mkdir(exist_ok=True)
        (folder / "mosquitto.conf").write_text(f"listener {self.port} 127.0.0.1\nuser root\n{extra}")
        self.start()

    def start(self) -> None:
        words = [MOSQUITTO, "-c", str(self.folder / "mosquitto.conf")]
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 10
        while time.monotonic() < until:
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise RuntimeError("mosquitto does not start")

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()

    @property
    def at(self) -> Broker:
        return Broker("127.0.0.1", self.port)
