"""One agent's process in `benchmarks.field`: python -m benchmarks.field_agent TEAM AGENT PORT. It imports no JAX.

Each line of its input is an episode: its name, the folder of its journal, the file of readings, the clock. For each it
writes a line when the device has ended.
"""

import json
import sys
import time
from typing import Any

import numpy as np

from icmape_agent import load
from icmape_agent.mqtt import Broker, Clock, Device, Reader, Request


class Stored(Reader):
    """The readings of a world (rounds, actions, agents, ...). Some never come: the same ones after a restart."""

    def __init__(self, path: str, lost: float, seed: int):
        self.readings, self.lost, self.seed = np.load(path, mmap_mode="r"), lost, seed
        self.acted: dict[int, float] = {}
        """When the agent acted in a round."""

    def read(self, request: Request) -> Any:
        self.acted[request.round] = time.time()
        if np.random.default_rng((self.seed, request.agent, request.round)).random() < self.lost:
            return None
        return self.readings[request.round, request.action, request.agent].tolist()


def main() -> None:
    source, index, port = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    team = load(source)
    print(json.dumps({"ready": index}), flush=True)
    for line in sys.stdin:
        episode = json.loads(line)
        reader = Stored(episode["readings"], episode["lost"], episode["seed"])
        device = Device(
            team,
            index,
            reader,
            broker=Broker("127.0.0.1", port),
            session=episode["name"],
            folder=episode["folder"],
            clock=Clock(episode["start"], episode["every"], episode["listen"]),
            again=0.4,
        )
        ended = device.run()
        told = {"episode": episode["name"], "agent": index, "round": ended.round, "decided": ended.decided}
        refused = [message["id"] for message, _ in ended.refused]
        print(json.dumps({**told, "waiting": list(device.outbox.waiting), "refused": refused}), flush=True)


if __name__ == "__main__":
    main()
