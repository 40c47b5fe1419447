"""Seconds until a team is good enough: `icmape train` against JaxMARL's MAPPO-RNN.

JaxMARL's baselines are not in its wheel: the environment variable JAXMARL names a checkout, and JAXMARL_PYTHON an
interpreter that has what it needs (default: this one). Without them the benchmark is skipped.

Every run is a fresh process without a compilation cache. Its clock goes from the start of the process, imports and
compilation included, to the first greedy team with the accuracy and τ of GOAL. MAPPO has two rewards: the gain in the
exact posterior's P(H*|D), and the gain in that of an inference network which is trained on random actions beforehand
(in the same process, on the same clock). Ours learns with the preset's settings from either posterior too. Its
validations move the stops to the accuracy asked for, as the method does; MAPPO's greedy team is taken as it is.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.timing import Measurement, others_share

PRESET = "bandit-quick"
GOAL = {"accuracy": 0.90, "tau": 6.0}  # at least, at most
SEEDS = (215, 219, 321)
OURS: dict[str, dict[str, Any]] = {"learned": {"posterior": "network"}, "exact": {"posterior": "exact"}}
OURS_QUICK: dict[str, Any] = {"iterations": 20, "validation_interval": 10, "validation_episodes": 1024}
PRICE = 0.06  # of a round, for MAPPO
MAPPO: dict[str, Any] = {  # on top of JaxMARL's own settings for this script (GRU 128, 4 epochs × 4 minibatches, ...)
    "TOTAL_TIMESTEPS": 400_000,
    "NUM_ENVS": 64,  # the fastest of 128 × 128, 128 × 32, 64 × 32 and 32 × 32
    "NUM_STEPS": 32,
    "LR": 2e-3,
    "GAE_LAMBDA": 0.95,
    "ENT_COEF": 0.01,
    "OBS_WITH_AGENT_ID": False,  # the value reads the team's view and t/T alone: the reward is shared
}
MAPPO_QUICK: dict[str, Any] = {"TOTAL_TIMESTEPS": 20_480}
REWARDS = ("learned", "exact")

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = Path("baselines/MAPPO/mappo_rnn_smax.py")
NEEDED = ("flax", "distrax", "gymnax", "hydra", "omegaconf", "wandb", "chex", "equinox", "optax")


def measure(quick: bool = False) -> Measurement:
    """How many times less CPU time than MAPPO we need to reach the goal (medians); of both rewards the smaller one."""
    sizes = {"preset": PRESET, "accuracy": GOAL["accuracy"], "tau": GOAL["tau"], "seeds": 1 if quick else len(SEEDS)}
    checkout, python = os.environ.get("JAXMARL"), os.environ.get("JAXMARL_PYTHON") or sys.executable
    missing = what_is_missing(checkout, python)
    if missing or checkout is None:
        return Measurement(None, sizes, notes={"missing": missing})
    theirs = MAPPO | (MAPPO_QUICK if quick else {})
    runs: dict[str, list[dict[str, Any]]] = {f"{who}, {reward}": [] for reward in REWARDS for who in ("ours", "MAPPO")}
    for seed in SEEDS[:1] if quick else SEEDS:  # in turns, so that a change in load hits all alike
        common = ("--seed", str(seed), "--final-episodes", "1000" if quick else "10000")
        for reward in REWARDS:
            ours = json.dumps(OURS[reward] | (OURS_QUICK if quick else {}))
            runs[f"ours, {reward}"].append(run(sys.executable, "mappo_ours", PRESET, *common, "--set", ours))
            options = ("--preset", PRESET, "--reward", reward, "--price", str(PRICE), "--set", json.dumps(theirs))
            runs[f"MAPPO, {reward}"].append(run(python, "jaxmarl_worker", checkout, *common, *options))
    settings = [result.pop("settings") for reward in REWARDS for result in runs[f"MAPPO, {reward}"]][-1]
    ratios = {reward: speedup(runs, reward) for reward in REWARDS}
    compared = min(REWARDS, key=lambda reward: ratios[reward] or 0.0)
    names = [f"{who}, {compared}" for who in ("ours", "MAPPO")]
    seconds = {name: [cpu for result in runs[name] if (cpu := at_goal(result, "cpu_seconds"))] for name in names}
    notes = {
        "price": PRICE,
        "ratios": ratios,
        "jaxmarl": commit(checkout),
        "settings": settings,
        "rows": [row(name, result) for name, them in runs.items() for result in them],
        "runs": runs,
    }
    return Measurement(ratios[compared], sizes, seconds if all(seconds.values()) else {}, 1, notes)


def what_is_missing(checkout: str | None, python: str) -> str | None:
    """Why it cannot run here, if it cannot."""
    if checkout is None:
        return "skipped: JAXMARL does not name a checkout of JaxMARL (docs/results/speed.md)"
    if not (Path(checkout) / SCRIPT).exists():
        return f"skipped: what JAXMARL names holds no {SCRIPT}"
    test = f"import importlib.util as u; print(*[name for name in {NEEDED} if u.find_spec(name) is None])"
    done = subprocess.run([python, "-c", test], stdout=subprocess.PIPE, text=True, check=True)
    absent = ", ".join(done.stdout.split())
    return f"skipped: the interpreter of JAXMARL_PYTHON has no {absent} (docs/results/speed.md)" if absent else None


def run(python: str, module: str, *options: str) -> dict[str, Any]:
    """One side in a process of its own, on a fresh compilation cache; the curve is cut at the goal."""
    busy = others_share()
    environment = os.environ | {"JAX_ENABLE_COMPILATION_CACHE": "false", "PYTHONPATH": str(ROOT)}
    command = [python, "-m", f"benchmarks.{module}", *options, "--began", str(time.time())]
    done = subprocess.run(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    curve = result.pop("curve")
    return {"others_share_before": busy, "goal": first_good(curve), **result}


def first_good(curve: list[dict[str, float]]) -> dict[str, float] | None:
    """The first evaluation of a run that reaches the goal."""
    return next(
        (result for result in curve if result["accuracy"] >= GOAL["accuracy"] and result["tau"] <= GOAL["tau"]), None
    )


def at_goal(result: dict[str, Any], clock: str) -> float | None:
    """What the clock of a run showed at the goal; none if it did not get there."""
    return result["goal"][clock] if result["goal"] else None


def speedup(runs: dict[str, list[dict[str, Any]]], reward: str) -> float | None:
    """Ratio of the medians over seeds with this reward; none unless most seeds of both get there."""
    never = float("inf")
    ours, other = (
        statistics.median(at_goal(result, "cpu_seconds") or never for result in runs[name])
        for name in (f"ours, {reward}", f"MAPPO, {reward}")
    )
    return None if never in (ours, other) else other / ours


def row(name: str, result: dict[str, Any]) -> dict[str, float]:
    """A run in the table."""
    goal = {f"{clock} s at the goal": at_goal(result, f"{clock}_seconds") for clock in ("cpu", "wall")}
    reached = {key: value for key, value in goal.items() if value is not None}
    return {f"{name}: seed": result["seed"], **reached, "accuracy in the end": result["accuracy"], "τ": result["tau"]}


def commit(checkout: str) -> str | None:
    """Which JaxMARL it is."""
    done = subprocess.run(["git", "-C", checkout, "rev-parse", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip() or None
