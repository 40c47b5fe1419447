"""Kill a training run at random moments, some of them on a full disk, and compare its end with a run that was not.

python -m benchmarks.kills [--kills 100] [--full 20] [--runs 4] [--seed 0] [--out results/kills.json]

Several runs share the kills and are killed side by side. Each life of a run is a process of its own: it goes on from
the files that the life before left, and ends by SIGKILL, at a random moment of its start or some random calls after it.
Before some kills the disk is full for a while: a small file system in memory where one can be mounted (root on Linux),
otherwise a limit of 0 bytes on what the process writes. Half of these lives get room again and go on before they are
killed.
"""

import argparse
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from icmape.io import circumstances, write_atomically
from icmape.learning.checkpoints import NEWEST, read_checkpoint
from icmape.learning.config import Config, with_algorithm
from icmape.learning.run_files import read_metrics
from icmape.learning.run_folder import write_config
from icmape.settings import override
from icmape.zoo.bandit.bandit import Bandit

PROBLEM = Bandit(arms=2, players=2, horizon=3)
CALLS = 16  # at most, in a life
SETTINGS = {
    "seeds": (3,),
    "iterations_per_call": 1,
    "num_envs": 4,
    "batch_size": 4,
    "gradient_steps": 1,
    "buffer_size": 8,
    "learning_starts": 4,
    "validation_interval": 7,
    "validation_episodes": 4,
    "settling_episodes": 64,
    "network.hidden_size": 4,
    "checkpoint_minutes": 0.0,
    "plan.iterations": 0,
}
SUMMED = (
    *("kills", "at the start", "in training", "on a full disk", "after a full disk had room again"),
    *("temporary files left by kills", "torn lines left by kills", "runs that differ at the end"),
)
SIZE = 2**22  # of the file system in memory: a run takes a third of it


class Disk:
    """The place of a run, which can be filled and emptied."""

    def __init__(self, folder: Path, mounted: bool):
        self.folder, self.mounted = folder, mounted
        self.filler = folder / "filler"

    def fill(self, process: subprocess.Popen[str]) -> None:
        """Leave no room for this process."""
        if not self.mounted:
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
            return
        with open(self.filler, "ab", buffering=0) as file:
            for size in (2**14, 2**10, 1):
                with suppress(OSError):
                    while True:
                        file.write(bytes(size))

    def empty(self, process: subprocess.Popen[str]) -> None:
        """Make room again."""
        if self.mounted:
            self.filler.unlink(missing_ok=True)
        elif process.poll() is None:
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


@contextmanager
def disk() -> Iterator[Disk]:
    """A small file system in memory, or a folder if none can be mounted."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", name]
        try:
            mounted = subprocess.run(mount, capture_output=True).returncode == 0
        except OSError:
            mounted = False
        if mounted:
            stack.callback(subprocess.run, ["umount", name], check=True)
        yield Disk(Path(name), mounted)


@dataclass
class Counts:
    """What happened."""

    at_start: int = 0
    in_training: int = 0
    on_a_full_disk: int = 0
    after_a_full_disk: int = 0
    parts_left: int = 0  # temporary files that a kill left
    torn_lines: int = 0  # of metrics that a kill left
    calls: list[int] = field(default_factory=list)  # by life

    @property
    def kills(self) -> int:
        return self.at_start + self.in_training + self.on_a_full_disk + self.after_a_full_disk


def life(folder: Path) -> subprocess.Popen[str]:
    """A process that goes on with the run."""
    command = [sys.executable, "-u", "-m", "icmape.learning", str(folder / "config.json"), "--resume"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_calls(process: subprocess.Popen[str], count: int) -> None:
    """Until it has told of so many calls."""
    out: IO[str] = process.stdout  # type: ignore[assignment]
    told = 0
    while told < count:
        line = out.readline()
        if not line:
            raise AssertionError(f"it ended before it was killed: {process.stderr and process.stderr.read()}")
        told += "seed" in line


def kill(process: subprocess.Popen[str]) -> None:
    """End it without warning, in the middle of whatever it does."""
    assert process.poll() is None, "it ended before it was killed"
    process.send_signal(signal.SIGKILL)
    process.communicate()


def one_life(place: Disk, folder: Path, full: bool, dice: random.Random, startup: float, counts: Counts) -> float:
    """Start, perhaps fill the disk, and kill. Returns the seconds until the first call, or `startup`."""
    began = time.monotonic()
    process = life(folder)
    try:
        if not full and dice.random() < 0.1:
            time.sleep(dice.uniform(0, startup))
            kill(process)
            counts.at_start += 1
            return startup
        wait_for_calls(process, 1)
        startup = time.monotonic() - began
        wait_for_calls(process, dice.randrange(CALLS))
        if full:
            place.fill(process)
            wait_for_calls(process, 1 + dice.randrange(CALLS))
            if again := dice.random() < 0.5:
                place.empty(process)
                wait_for_calls(process, dice.randrange(CALLS))
        time.sleep(dice.uniform(0, 0.05))
        kill(process)
        if full and again:
            counts.after_a_full_disk += 1
        elif full:
            counts.on_a_full_disk += 1
        else:
            counts.in_training += 1
        return startup
    finally:
        process.kill()
        place.empty(process)


def look(folder: Path, counts: Counts) -> None:
    """Count what the kill left."""
    counts.parts_left += len(list(folder.glob(".*.part")))
    metrics = folder / "metrics.jsonl"
    data = metrics.read_bytes() if metrics.exists() else b""
    counts.torn_lines += not data.endswith(b"\n") and bool(data)
    counts.calls.append(len(read_metrics(metrics)))


def to_the_end(folder: Path) -> None:
    """Train what is left."""
    process = life(folder)
    _, said = process.communicate(timeout=3600)
    assert process.returncode == 0, said


def differences(ours: Path, theirs: Path, seeds: tuple[int, ...]) -> list[str]:
    """What differs at the end of two runs, other than times and dates."""
    from safetensors.numpy import load_file

    found = []
    checkpoints = [read_checkpoint(folder / NEWEST) for folder in (ours, theirs)]
    if checkpoints[0].leaves != checkpoints[1].leaves:
        found.append("the training state")
    if len({json.dumps(each.header | {"seconds": 0}) for each in checkpoints}) > 1:
        found.append("the header of the checkpoint")
    rows = [[row | {"seconds": 0} for row in read_metrics(folder / "metrics.jsonl")] for folder in (ours, theirs)]
    if rows[0] != rows[1]:
        found.append("metrics")
    for seed in seeds:
        teams = [load_file(folder / f"team-{seed}.safetensors") for folder in (ours, theirs)]
        if {n: x.tobytes() for n, x in teams[0].items()} != {n: x.tobytes() for n, x in teams[1].items()}:
            found.append(f"the team of seed {seed}")
    left = [path.name for path in ours.iterdir() if path.name.endswith(".part")]
    return found + left


def measure(kills: int, full: int, seed: int) -> dict[str, Any]:
    """Kill a run so often; what happened, and whether its end is that of the run that was not killed."""
    dice = random.Random(seed)
    config: Config = override(with_algorithm(Config(), "iql"), SETTINGS | {"iterations": 3 * CALLS * (kills + 1)})
    counts, startup = Counts(), 20.0
    fulls = set(dice.sample(range(kills), full))
    with disk() as place, tempfile.TemporaryDirectory() as whole:
        folder, unkilled = place.folder / "run", Path(whole) / "run"
        for each in (folder, unkilled):
            each.mkdir()
            write_config(each, PROBLEM, config)
        to_the_end(unkilled)
        for number in range(kills):
            startup = one_life(place, folder, number in fulls, dice, startup, counts)
            look(folder, counts)
            print(f"seed {seed}: {counts.kills} kills, {counts.calls[-1]} of {config.iterations} calls", flush=True)
        to_the_end(folder)
        different = differences(folder, unkilled, config.seeds)
        kind = "a file system in memory" if place.mounted else "a limit on the bytes written"
    return {
        "kills": counts.kills,
        "at the start": counts.at_start,
        "in training": counts.in_training,
        "on a full disk": counts.on_a_full_disk,
        "after a full disk had room again": counts.after_a_full_disk,
        "temporary files left by kills": counts.parts_left,
        "torn lines left by kills": counts.torn_lines,
        "full disk by": kind,
        "iterations": config.iterations,
        "seed": seed,
        "runs that differ at the end": int(bool(different)),
        "different at the end": different,
    }


def measure_all(kills: int, full: int, runs: int, seed: int) -> dict[str, Any]:
    """The same for several runs side by side, with their sums."""
    with ThreadPoolExecutor(runs) as pool:
        parts = [pool.submit(measure, kills // runs, full // runs, seed + number) for number in range(runs)]
        found = [part.result() for part in parts]
    sums = {name: sum(part[name] for part in found) for name in SUMMED}
    return sums | {"runs": found}


def main() -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--full", type=int, default=20, help="of them, with a full disk before")
    parser.add_argument("--runs", type=int, default=4, help="a divisor of both")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")  # lives compile nothing twice
    if args.kills % args.runs or args.full % args.runs:
        parser.error("--runs must divide --kills and --full")
    measured = measure_all(args.kills, args.full, args.runs, args.seed) | {"provenance": circumstances()}
    text = json.dumps(measured, indent=1)
    print(text)
    if args.out:
        write_atomically(args.out, text.encode() + b"\n")
    return 1 if measured["runs that differ at the end"] else 0


if __name__ == "__main__":
    sys.exit(main())
