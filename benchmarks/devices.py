"""One training run on one, two and four devices of a CPU. They share its cores: the ratio is the price of splitting.

Every number of devices is a process of its own. The metrics of all of them agree within rounding.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.timing import Measurement, assert_same

PRESET = "bandit-quick"
COUNTS = (1, 2, 4)
WARM = 2  # iterations before the clock starts: the program is compiled then
NAMES = ("accuracy", "tau", "inference_loss", "actor_loss")


def measure(quick: bool = False) -> Measurement:
    """How many times faster four devices are than one."""
    iterations = WARM + (2 if quick else 10)
    results = {count: run_process(count, iterations) for count in COUNTS}
    metrics = [[result["metrics"][name] for name in NAMES] for result in results.values()]
    difference = max(assert_same("devices", metrics[0], other, tolerance=1e-3) for other in metrics[1:])
    rows = [
        {"devices": count, "seconds": result["seconds"], "ratio": results[1]["seconds"] / result["seconds"]}
        | {"megabytes a device": result["memory"] / 1e6}
        for count, result in results.items()
    ]
    seconds = {"four devices": [results[4]["seconds"]], "one device": [results[1]["seconds"]]}
    notes = {"rows": rows, "largest_relative_difference": difference, "cores": os.cpu_count()}
    sizes = {"preset": PRESET, "seeds": 1, "iterations": iterations - WARM}
    return Measurement(results[1]["seconds"] / results[4]["seconds"], sizes, seconds, 1, notes)


def run_process(devices: int, iterations: int) -> dict[str, Any]:
    """Train on so many devices in a process of their own."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices}"
    command = [sys.executable, "-m", "benchmarks.devices", str(iterations)]
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
    root = Path(__file__).parents[1]
    done = subprocess.run(command, env=environment, cwd=root, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def train_on_all(iterations: int) -> dict[str, Any]:
    """Train on all devices of this process; the metrics of the first iterations, and the seconds of the others."""
    from icmape.learning.presets import preset
    from icmape.learning.run import Progress, train_run
    from icmape.settings import override

    chosen, reports = preset(PRESET), list[Progress]()
    changes = {"iterations": iterations, "iterations_per_call": WARM, "plan.iterations": 0, "validation_interval": 1000}
    train_run(chosen.build(), override(chosen.config("ppo"), changes), callback=reports.append)
    seconds = reports[-1].seconds - reports[0].seconds
    return {"seconds": seconds, "memory": reports[0].memory, "metrics": reports[0].rows[0]}


if __name__ == "__main__":
    print(json.dumps(train_on_all(int(sys.argv[1]))))
