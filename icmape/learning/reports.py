"""What a run reports after every chunk: metrics and faults of its seeds."""

import logging
from typing import Any

import numpy as np
from jaxtyping import Array, Int

from icmape.learning.config import Config
from icmape.learning.train import FAULTS, TrainState
from icmape.learning.validation import Best, rank

log = logging.getLogger("icmape")


def leaders(config: Config, best: Best, faults: Int[Array, "members"]) -> np.ndarray:
    """The index of the best member of each seed by validation: without fault, on target and fastest, or else the most
    accurate."""
    accuracy, tau, fault = (np.asarray(x) for x in (best.accuracy, best.tau, faults))

    def rank_member(index: int) -> tuple[bool, bool, float]:
        return bool(fault[index]), *rank(float(accuracy[index]), float(tau[index]), config)

    groups = np.arange(len(accuracy)).reshape(len(config.seeds), config.population_size)
    return np.array([min(group.tolist(), key=rank_member) for group in groups])


def rows_of(config: Config, states: TrainState, means: dict[str, Any], iteration: int) -> list[dict[str, Any]]:
    """Metrics of the best member of each seed as plain numbers; None if not finite, as JSON has no NaN."""
    columns = {**means, **{f"validation_{k}": v for k, v in states.validation.items()}}
    columns |= {"best_accuracy": states.best.accuracy, "best_tau": states.best.tau}
    columns["environment_steps"] = states.environment_steps
    host = {name: np.asarray(values) for name, values in columns.items()}
    rows = []
    for index, seed in zip(leaders(config, states.best, states.fault), config.seeds, strict=True):
        row: dict[str, Any] = {"seed": seed, "iteration": iteration}
        if config.population_size > 1:
            row["member"] = int(index) % config.population_size
        for name, values in host.items():
            value = values[index].item()
            row[name] = value if np.isfinite(value) else None
        rows.append(row)
    return rows


def faults_of(config: Config, states: TrainState) -> np.ndarray:
    """The fault of each seed: 0 while one of its members has none."""
    return np.asarray(states.fault).reshape(-1, config.population_size).min(axis=1)


def tell_faults(config: Config, states: TrainState, reported: np.ndarray, iteration: int) -> np.ndarray:
    """Log faults that are new; returns all faults."""
    codes = faults_of(config, states)
    for seed, code, before in zip(config.seeds, codes, reported, strict=True):
        if code and not before:
            log.error(
                "seed %d stopped: %s is not finite by iteration %d; its state from before is kept, other seeds go on",
                seed,
                FAULTS[code],
                iteration,
            )
    return codes
