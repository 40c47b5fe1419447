"""Our side of `mappo`, in a process of its own: python -m benchmarks.mappo_ours PRESET ..."""

import argparse
import json
import time
from typing import Any

import icmape
from benchmarks.timing import since

FINAL_SEED = 0  # of the worlds of the last evaluation: those that MAPPO is judged in


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mappo_ours", description="Training as users call it.")
    parser.add_argument("preset")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", default="{}", help="arguments of icmape.train as JSON, settings included")
    parser.add_argument("--final-episodes", type=int, default=10_000)
    parser.add_argument("--began", type=float, default=time.time(), help="when the process was started (Unix time)")
    print(json.dumps(train_and_judge(parser.parse_args())))


def train_and_judge(chosen: argparse.Namespace) -> dict[str, Any]:
    """Train with a clock beside every validation, then evaluate the team."""
    curve: list[dict[str, float]] = []
    training: list[float] = []  # seconds without start and compilation, by the run's own clock

    def tell(report: Any) -> None:
        training.append(report.seconds)
        row = report.rows[0]
        accuracy, tau = row.get("validation_accuracy"), row.get("validation_tau")
        if accuracy is not None:  # the last validation: it is repeated until there is another one
            when = {"iteration": report.iteration, **since(chosen.began)}
            curve.append({**when, "accuracy": accuracy, "tau": tau, "rounds": row.get("environment_steps")})

    settings = json.loads(chosen.set)
    team = icmape.train(chosen.preset, seeds=(chosen.seed,), callback=tell, progress=False, **settings)
    ended = since(chosen.began)
    last = team.evaluate(episodes=chosen.final_episodes, seed=FINAL_SEED)
    return {
        "seed": chosen.seed,
        "before_training": {"wall_seconds": ended["wall_seconds"] - training[-1]},
        "training": {"wall_seconds": training[-1]},
        "total": ended,
        "rounds": curve[-1]["rounds"] if curve else None,
        "curve": curve,
        "accuracy": last.accuracy,
        "exact_accuracy": last.exact_accuracy,
        "log_loss": last.log_loss,
        "exact_log_loss": last.exact_log_loss,
        "tau": last.tau,
    }


if __name__ == "__main__":
    main()
