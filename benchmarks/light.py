"""Teams without JAX: do NumPy, ONNX and JavaScript choose what JAX chooses, how fast, and in how much memory?

python -m benchmarks.light [TEAM ...] [--episodes N] [--data PATHS] [--out FILE]

Without names: all pretrained teams. Teams whose worlds come from measurements play in worlds of --data, or read random
numbers in their ranges. Each team plays as many episodes again with lost readings and silent agents. The file keeps the
entries of teams that are not measured.
"""

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import icmape_agent
from benchmarks.timing import Measurement, alternate, median_ratio
from icmape.compiling import use_compilation_cache
from icmape.errors import UserError
from icmape.export.compare import agreement
from icmape.export.formats import FAILURES, FORMATS, batches
from icmape.io import circumstances, write_atomically
from icmape.play import team_files
from icmape.play.programs.describe import team_program
from icmape.play.team_files import load, pretrained, team_tensors
from icmape_agent.files import find

OUT = Path(__file__).resolve().parents[1] / "results" / "light.json"
EPISODES, SEED = 1000, 77
PROCESSES = 7
TEAM, READINGS = "bandit-a3p5", 20
WORKER = """
import json, os, sys, time
def resident():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1000
began = time.perf_counter()
import icmape_agent
imported = time.perf_counter()
team = icmape_agent.load(sys.argv[1])
loaded = time.perf_counter()
import numpy as np
gate, rng = team.gate, np.random.default_rng(0)
def reading(agent):
    parts = []
    for part in gate.parts:
        limits = part.limits_of(agent)
        x = limits.low + (np.minimum(limits.high, limits.low + 4) - limits.low) * rng.random(part.shape)
        parts.append(np.where(limits.whole, np.round(x), x).astype(part.dtype))
    return tuple(parts) if len(parts) > 1 else parts[0]
agents = range(gate.sizes.agents)
seconds, answers = [], []
for _ in range(20):
    firsts = [reading(i) if gate.shows_first else None for i in agents]
    actors, rows, seen = [team.agent(i, firsts[i]) for i in agents], [], []
    for number in range(min(10, gate.sizes.horizon - 1)):
        readings, row = [reading(i) for i in agents], []
        for actor, each in zip(actors, readings):
            start = time.perf_counter()
            action = actor.act()
            actor.update(max(action, 0), gate.reading(actor.number, each))
            seconds.append(time.perf_counter() - start)
            row.append(max(action, 0))
        rows.append(row)
        seen.append(readings)
    first = None if not gate.shows_first else [np.stack(part) for part in zip(*firsts)]
    start = time.perf_counter()
    try:
        team.posterior(rows, seen, first)
    except icmape_agent.UserError:
        continue
    answers.append((time.perf_counter() - start) / (len(rows) + 1))
print(json.dumps({
    "import_seconds": imported - began, "load_seconds": loaded - imported, "resident_megabytes": resident(),
    "milliseconds_per_reading": 1e3 * float(np.median(seconds)),
    "milliseconds_per_round_of_an_answer": 1e3 * float(np.median(answers)),
}))
"""


def measure_light(path: Path, repeats: int = PROCESSES) -> dict[str, float]:
    """Times and memory of a new process that needs NumPy only: medians over several."""
    found = []
    for _ in range(repeats):
        done = subprocess.run([sys.executable, "-c", WORKER, str(path)], capture_output=True, text=True, check=True)
        found.append(json.loads(done.stdout))
    return {name: statistics.median(each[name] for each in found) for name in found[0]}


def measure(quick: bool = False) -> Measurement:
    """How many times faster a reading of an agent is with NumPy alone. Notes: new processes of all pretrained teams."""
    repeats = 3 if quick else 7
    samples = alternate({"numpy": _reader(icmape_agent), "jax": _reader(team_files)}, repeats)
    rows = {name: measure_light(find(name), repeats=1 if quick else PROCESSES) for name in pretrained()}
    notes = {"processes": rows, "rows": list(rows.values())}
    return Measurement(median_ratio(samples), {"team": TEAM, "readings": READINGS}, samples, repeats, notes)


def _reader(module: Any) -> Callable[[], Any]:
    """One agent's readings of an episode."""
    team = module.load(TEAM)

    def read() -> Any:
        agent = team.agent(0)
        for number in range(READINGS):
            agent.see(number % 3, number % 2)
        return agent.scores

    read()
    return read


def compare_team(name: str, episodes: int, data: list[str]) -> dict[str, Any]:
    """How far the runtimes agree with JAX."""
    changes = {"data": data} if data and not load(name).problem.has_worlds else {}
    team = load(name, **changes)
    program = team_program(team, team_tensors(team))
    worlds = "the problem's worlds" if team.problem.has_worlds else "random actions and readings"
    kept = {"": list(batches(team, episodes, SEED))}
    if len(program.described["misses"]) == 2:
        kept["_failures"] = list(batches(team.under(**FAILURES), episodes, SEED + 1))
    entry: dict[str, Any] = {"episodes_from": worlds, "program_bytes": len(program.text.encode()), "failures": FAILURES}
    for to, make in FORMATS.items():
        try:
            made = make(team, program)
        except UserError as error:
            entry[to] = {"missing": str(error)}
            continue
        for kind, played in kept.items():
            found = {"missing": "Node"} if made.runner is None else agreement(team, played, made.runner).to_dict()
            entry[to + kind] = found
            print(name, to + kind, found, flush=True)
    return entry


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.light", description=__doc__)
    parser.add_argument("teams", nargs="*", default=pretrained())
    parser.add_argument("--episodes", type=int, default=EPISODES)
    parser.add_argument("--data", nargs="*", default=[])
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    use_compilation_cache()
    written = json.loads(args.out.read_text()) if args.out.exists() else {"teams": {}}
    for name in args.teams:
        entry = compare_team(name, args.episodes, args.data)
        entry["process"] = measure_light(find(name))
        written["teams"][name] = entry | {"provenance": circumstances()}
        write_atomically(args.out, json.dumps(written, indent=2).encode() + b"\n")


if __name__ == "__main__":
    main()
