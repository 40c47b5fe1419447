"""Teams out of training runs."""

import json
from pathlib import Path

import jax

from icmape.errors import UserError
from icmape.learning.parts import LearnedStop, NetworkInference, Threshold
from icmape.learning.policy import as_policy
from icmape.learning.provenance import provenance
from icmape.learning.run import Run
from icmape.teams.files import save
from icmape.teams.team import Team


def team_of(run: Run, seed: int) -> Team:
    """The best team of a seed, by validation during training; the averaged last one if it was never validated."""
    state = run.state(run.config.seeds.index(seed))
    validated = int(state.best.iteration) > 0
    policy = state.best.policy if validated else as_policy(state.learner.target_actors)
    inference = state.best.inference if validated else state.learner.slow_inference
    stop = LearnedStop() if run.config.stopping == "learned" else Threshold(1.0 - run.config.delta)
    parts = policy, stop, NetworkInference(inference)
    return Team(run.problem, *parts, run.config.delta, json.dumps(provenance(run, seed)))


def save_teams(run: Run, folder: Path) -> dict[int, Path]:
    """One file per seed."""
    paths = {seed: folder / f"team-{seed}.safetensors" for seed in run.config.seeds}
    for seed, path in paths.items():
        save(team_of(run, seed), path)
    return paths


def best_team(run: Run) -> Team:
    """The team of the seed that validated best: on target and fastest, or else most accurate."""
    failed = run.faults()
    seeds = [seed for seed in run.config.seeds if seed not in failed]
    if not seeds:
        raise UserError(f"every seed failed: {failed}")
    best = jax.device_get(run.states.best)

    def rank(seed: int) -> tuple[bool, float]:
        index = run.config.seeds.index(seed)
        accuracy, tau = float(best.accuracy[index]), float(best.tau[index])
        misses = accuracy < 1.0 - run.config.delta
        return misses, -accuracy if misses else tau

    return team_of(run, min(seeds, key=rank))
