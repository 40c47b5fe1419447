"""Sums of agents' values at a team's stops: python -m benchmarks.value_stops OUT.json TEAM.safetensors ...

A value learner's scores are its agents' values of going on, relative to stopping. Their sum is the team's; one agent
below 0 is enough to stop.
"""

import json
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np

from icmape.io import circumstances, write_atomically
from icmape.play.rollout import histories, play_greedy, policy_scores
from icmape.play.team import Team
from icmape.play.team_files import load

EPISODES, SEED = 2000, 5


def at_stops(team: Team) -> dict[str, Any]:
    """Over episodes that the team itself ended."""
    problem = team.problem
    keys = jax.random.split(jax.random.key(SEED), EPISODES)
    episodes = jax.jit(lambda keys: play_greedy(problem, team.behaviour(), keys))(keys)
    read = jax.vmap(lambda e: policy_scores(problem, team.policy, e, histories(problem, e), problem.horizon))
    values = np.asarray(jax.jit(read)(episodes))[..., :-1].max(axis=-1)
    stop = np.asarray(episodes.stop)
    last = values[np.arange(EPISODES), stop][stop < problem.horizon - 1]
    return {
        "episodes": len(last),
        "tau": float(np.mean(stop) + 1),
        "mean sum at the stop": float(np.mean(last.sum(axis=1))),
        "share of stops with a sum above 0": float(np.mean(last.sum(axis=1) > 0)),
        "agents below 0, in the mean": float(np.mean((last < 0).sum(axis=1))),
    }


def main(out: str, *paths: str) -> None:
    """Write what was found about every team."""
    results = {path.stem: at_stops(load(path)) for path in map(Path, paths)}
    content = {"what": __doc__.split(":")[0], "seed": SEED, "teams": results, "provenance": circumstances()}
    write_atomically(Path(out), json.dumps(content, indent=1).encode() + b"\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
