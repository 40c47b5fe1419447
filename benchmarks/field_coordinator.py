"""The coordinator's process in `benchmarks.field`: python -m benchmarks.field_coordinator TEAM PORT. It imports no JAX.

A line of its input begins an episode: its name and the folder of the session. The next line ends it, and the process
writes a line once the session is closed.
"""

import json
import sys

from icmape_agent import load
from icmape_agent.mqtt import Broker, Coordinator


def main() -> None:
    source, port = sys.argv[1], int(sys.argv[2])
    team = load(source)
    print(json.dumps({"ready": "coordinator"}), flush=True)
    while line := sys.stdin.readline():
        episode = json.loads(line)
        with team.session(episode["session"]) as session:
            central = Coordinator(session, broker=Broker("127.0.0.1", port), name=episode["name"])
            central.open()
            sys.stdin.readline()
            central.close()
        print(json.dumps({"episode": episode["name"]}), flush=True)


if __name__ == "__main__":
    main()
