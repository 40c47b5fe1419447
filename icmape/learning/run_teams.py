"""The teams of a training run, and their files."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import jax

from icmape.errors import UserError
from icmape.io import circumstances
from icmape.learning.run import Run
from icmape.learning.validation import Best, rank
from icmape.play.devices import free
from icmape.play.inference import NetworkInference
from icmape.play.policy import as_policy
from icmape.play.stop import LearnedStop, Threshold
from icmape.play.team import Team
from icmape.play.team_files import save
from icmape.settings import to_dict


def team_of(run: Run, seed: int, delta: float | None = None) -> Team:
    """The best team of a seed by validation; the averaged last one if it was never validated.

    `delta` selects the team for another δ of the settings. It plays on any devices, not only on those of the training.
    """
    state = run.state(run.config.seeds.index(seed))
    config = run.config
    if delta is not None:
        if delta not in config.deltas or state.family is None:
            raise UserError(f"this run has no team for δ = {delta:g}; it has {config.delta:g} and {config.deltas}")
        family = jax.tree.map(lambda x: x[config.deltas.index(delta)], state.family)
        state, config = state._replace(best=family), dataclasses.replace(config, delta=delta)
    validated = int(state.best.iteration) > 0
    policy = state.best.policy if validated else as_policy(state.learner.target_actors)
    inference = state.best.inference if validated else state.learner.slow_inference
    stop = LearnedStop() if config.stopping == "learned" else Threshold(1.0 - config.delta)
    parts = free(policy), stop, NetworkInference(free(inference))
    return Team(run.problem, *parts, config.delta, json.dumps(provenance(run, seed, state.best)))


def save_teams(run: Run, folder: Path) -> dict[int, Path]:
    """Write one file per seed; teams for other δ go to subfolders (`delta-0.05`)."""
    paths = {seed: folder / f"team-{seed}.safetensors" for seed in run.config.seeds}
    for seed, path in paths.items():
        save(team_of(run, seed), path)
    if run.states.family is not None:
        for delta in run.config.deltas:
            inside = folder / f"delta-{delta:g}"
            inside.mkdir(exist_ok=True)
            for seed in run.config.seeds:
                save(team_of(run, seed, delta), inside / f"team-{seed}.safetensors")
    return paths


def best_team(run: Run) -> Team:
    """The team of the best seed by validation: on target and fastest, or else the most accurate."""
    failed = run.faults()
    seeds = [seed for seed in run.config.seeds if seed not in failed]
    if not seeds:
        raise UserError(f"every seed failed: {failed}")
    best = jax.device_get(run.states.best)

    def rank_seed(seed: int) -> tuple[bool, float]:
        index = run.config.seeds.index(seed)
        return rank(float(best.accuracy[index]), float(best.tau[index]), run.config)

    return team_of(run, min(seeds, key=rank_seed))


def provenance(run: Run, seed: int, best: Best) -> dict[str, Any]:
    """The provenance of the team of a seed."""
    state = run.state(run.config.seeds.index(seed))
    return {
        **circumstances(),
        "seed": seed,
        "iteration": int(best.iteration),
        "iterations": run.iteration,
        "environment_steps": int(state.environment_steps),
        "seconds": round(run.seconds, 1),
        "validation": {"accuracy": round(float(best.accuracy), 4), "tau": round(float(best.tau), 3)},
        "configuration": to_dict(run.config),
    }
