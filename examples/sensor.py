"""A made-up sensor for nitrate: python examples/sensor.py AGENT ROUND CELL prints five readings in mg/L as JSON."""

import json
import random
import sys


def main(agent: str, number: str, cell: str) -> None:
    """One reading in twenty does not come. The same question has the same reading."""
    chance = random.Random(f"{agent} {number} {cell}")
    if chance.random() < 0.05:
        sys.exit("no contact with the probe")
    level = random.Random(cell).lognormvariate(0.3, 0.6)
    print(json.dumps([round(level * chance.lognormvariate(0, 0.2), 2) for _ in range(5)]))


if __name__ == "__main__":
    main(*sys.argv[1:])
