"""Train and evaluate on several devices of one CPU and print what came out: python -m tests.learning.on_devices FILE.

FILE holds a list of [name, devices, seeds, other settings] of trainings. Evaluations and batches are on one device
and on all of them.
"""

import json
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from icmape.evaluation.certificate import certify
from icmape.learning import train
from icmape.learning.presets import preset
from icmape.learning.run import Progress, train_run
from icmape.learning.run_teams import best_team
from icmape.play import episodes
from icmape.play.devices import WORLDS, in_batches, on_mesh, share, training_mesh
from icmape.settings import override
from icmape.zoo.bandit.bandit import Bandit
from tests.learning.test_run import PROBLEM, SETTINGS
from tests.support import lively_team

SHORT = {"iterations": 4, "plan.iterations": 0, "deltas": (), "validation_interval": 2}
EPISODES = 130


def train_on(devices: int, seeds: list[int], settings: dict[str, Any]) -> dict[str, Any]:
    """Metrics of each report of a short run by seed, and the memory that the program takes on each device.

    `failed` among the settings is a seed that has a fault from the start. `evaluated` asks for an evaluation of the
    best team, on all devices, which may be more than it was trained on.
    """
    failed, asked, start = settings.pop("failed", None), settings.pop("evaluated", False), train.start
    train.start = lambda *inputs: start(*inputs)._replace(fault=jnp.array([int(seed == failed) for seed in seeds]))
    changed = SETTINGS | SHORT | {"seeds": tuple(seeds)} | settings
    config = override(preset("bandit-quick").config("ppo"), changed)
    train.settle = lambda problem, config, states: states  # test_processes.py has it on two devices
    reports: list[Progress] = []
    run = train_run(Bandit(**PROBLEM), config, callback=reports.append, devices=devices)
    train.start = start
    weights = {
        str(seed): float(sum(abs(leaf).sum() for leaf in jax.tree.leaves(run.state(index).learner.actors)))
        for index, seed in enumerate(seeds)
    }
    rows = {str(seed): [report.rows[index] for report in reports] for index, seed in enumerate(seeds)}
    evaluated = best_team(run).evaluate(episodes=EPISODES, seed=3).episodes if asked else None
    return {"rows": rows, "memory": reports[-1].memory, "weights": weights, "evaluated": evaluated}


def evaluate_on(devices: int) -> dict[str, Any]:
    """The evaluation and the certificate of a team."""
    every, episodes.all_devices = episodes.all_devices, lambda: Mesh(jax.local_devices()[:devices], (WORLDS,))
    play_batch, used = episodes._play_batch, set()

    def spied_on(*inputs: Any) -> episodes.Episodes:
        part = play_batch(*inputs)
        used.add(len(part.played.stop.sharding.device_set))
        return part

    episodes._play_batch = spied_on
    team, certificate = lively_team(), certify(lively_team(), worlds=EPISODES)
    result = {"evaluation": team.evaluate(episodes=EPISODES, seed=3).to_dict(), "right": certificate.right}
    episodes.all_devices, episodes._play_batch = every, play_batch
    return {**result, "devices": sorted(used)}


def batches_on(devices: int) -> dict[str, Any]:
    """Sixteen rows in two batches, and the work of each device for a batch."""
    rows, matrix = jnp.arange(128.0).reshape(16, 8), jnp.ones((8, 8))
    with on_mesh(training_mesh(1, devices)):
        whole = jax.jit(lambda rows: in_batches(lambda row: jnp.maximum(row @ matrix, row[0]), share(rows), 8))
        work = whole.lower(rows).compile().cost_analysis()["flops"]
        return {"values": whole(rows).tolist(), "work": work}


if __name__ == "__main__":
    trainings = json.loads(Path(sys.argv[1]).read_text())
    results = {name: train_on(*training) for name, *training in trainings}
    numbers = {
        name: [f(devices) for devices in (1, 4)] for name, f in (("evaluations", evaluate_on), ("batches", batches_on))
    }
    json.dump(results | numbers, sys.stdout)
