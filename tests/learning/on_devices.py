"""Train and evaluate on several devices of one CPU and print what came out: python -m tests.learning.on_devices 1 4."""

import json
import sys
from typing import Any

import jax
from jax.sharding import Mesh

from icmape.evaluation.certificate import certify
from icmape.learning.presets import preset
from icmape.learning.run import Progress, train_run
from icmape.play import episodes
from icmape.play.devices import WORLDS
from icmape.settings import override
from icmape.zoo.bandit.bandit import Bandit
from tests.learning.test_run import PROBLEM, SETTINGS
from tests.support import lively_team

SHORT = {"iterations": 4, "seeds": (3, 4), "plan.iterations": 0, "deltas": (), "validation_interval": 2}


def train_on(devices: int) -> dict[str, Any]:
    """Metrics of each report of a short run, and the memory that the program takes on each device."""
    config = override(preset("bandit-quick").config("ppo"), SETTINGS | SHORT)
    reports: list[Progress] = []
    run = train_run(Bandit(**PROBLEM), config, callback=reports.append, devices=devices)
    weights = float(sum(abs(leaf).sum() for leaf in jax.tree.leaves(run.states.learner.actors)))
    return {"rows": [report.rows for report in reports], "memory": reports[-1].memory, "weights": weights}


def evaluate_on(devices: int) -> dict[str, Any]:
    """The evaluation and the certificate of a team."""
    episodes.all_devices = lambda: Mesh(jax.local_devices()[:devices], (WORLDS,))
    team, certificate = lively_team(), certify(lively_team(), worlds=130)
    return {"evaluation": team.evaluate(episodes=130, seed=3).to_dict(), "right": certificate.right}


if __name__ == "__main__":
    counts = sys.argv[1:]
    json.dump({count: {"train": train_on(int(count)), **evaluate_on(int(count))} for count in counts}, sys.stdout)
