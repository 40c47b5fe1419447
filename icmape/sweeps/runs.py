"""One run of a sweep: train or resume, evaluate, and write its result."""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any, cast

from icmape.baselines.by_name import find_policies
from icmape.errors import UserError
from icmape.evaluation.metrics import evaluate
from icmape.imports import check_named
from icmape.io import circumstances, read_bounded, write_atomically
from icmape.json_text import parse
from icmape.learning.check_config import check
from icmape.learning.checkpoints import delete_checkpoints
from icmape.learning.config import DEFAULT_ALGORITHM, Config, with_algorithm
from icmape.learning.presets import preset
from icmape.learning.run import Callback, resume_run, train_run
from icmape.learning.run_folder import held_files
from icmape.learning.run_teams import save_teams, team_of
from icmape.problem import Problem
from icmape.problem.spec import load_class
from icmape.settings import override
from icmape.sweeps.spec import Run

RESULT = "result.json"


def build(run: Run, named: Collection[str] = ()) -> tuple[Problem, Config]:
    """Problem and settings of a run. Code that only a file names is not imported."""
    if run.problem is not None:
        check_named(run.problem, named, "the problem of this sweep", "--problem")
        problem = _called(load_class(run.problem), run.arguments)
        config = with_algorithm(Config(), run.algorithm or DEFAULT_ALGORITHM)
    else:
        assert run.preset is not None
        chosen = preset(run.preset)
        problem = _called(chosen.problem, {**chosen.arguments, **run.arguments})
        config = chosen.config(run.algorithm)
    config = cast(Config, override(config, run.settings))
    if config.minutes is not None:
        raise UserError("minutes cuts runs at different points, so they cannot be compared: set iterations instead")
    check(config, problem)
    return problem, config


def _called(problem: type[Problem], arguments: dict[str, Any]) -> Problem:
    try:
        return problem(**arguments)
    except (TypeError, ValueError) as error:
        raise UserError(f"{problem.__name__} cannot be built: {error}") from error


def do(run: Run, folder: Path, named: Collection[str] = (), callback: Callback | None = None) -> dict[str, Any]:
    """Train from the last checkpoint, if there is one, evaluate every team and write the result.

    The caller holds the lock of the folder. Raises KeyboardInterrupt if the run was interrupted and its state saved.
    """
    problem, config = build(run, named)
    policies = find_policies(problem, config, named=named)
    if (folder / "config.json").exists() and held_files(folder):
        trained = resume_run(problem, config, folder, callback=callback, policies=policies, settle=False)
    else:
        trained = train_run(problem, config, folder, overwrite=True, callback=callback, policies=policies, settle=False)
    if trained.interrupted:
        raise KeyboardInterrupt
    teams = []
    for seed, path in save_teams(trained, folder).items():
        result = evaluate(team_of(trained, seed), episodes=run.episodes, seed=run.evaluation_seed)
        teams.append({"team": path.name, **result.to_dict(), "seed": seed, "evaluation_seed": run.evaluation_seed})
    content = {
        "run": run.to_dict(),
        "teams": teams,
        "faults": {str(seed): what for seed, what in trained.faults().items()},
        "iterations": trained.iteration,
        "seconds": round(trained.seconds, 3),
        "provenance": circumstances(),
    }
    write_atomically(folder / RESULT, json.dumps(content, indent=1).encode() + b"\n")
    delete_checkpoints(folder)
    return content


def read_result(run: Run, folder: Path) -> dict[str, Any] | None:
    """The result of a run, if it is there; raises `UserError` if the folder holds that of another run."""
    try:
        content = parse(read_bounded(folder / RESULT))
        same = content["run"] == json.loads(json.dumps(run.to_dict()))
    except OSError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{folder / RESULT} is no result of a sweep ({error}): remove it") from error
    if not same:
        raise UserError(f"{folder} holds a run with other settings: give the changed sweep another --out")
    return cast(dict[str, Any], content)
