"""Training of methods without teams."""

import json
from pathlib import Path
from typing import Any, cast

from icmape.baselines.by_name import find_policies
from icmape.errors import UserError
from icmape.learning.checkpoints import delete_checkpoints, has_checkpoint
from icmape.learning.config import Config
from icmape.learning.presets import preset
from icmape.learning.run import Callback, resume_run, train_run
from icmape.learning.run_folder import read_config
from icmape.learning.run_teams import save_teams
from icmape.locks import only_writer
from icmape.problem import Centralized, Problem
from icmape.problem.spec import describe, full_kind
from icmape.settings import override
from paper.experiments import MAIN, Method, Setting
from paper.findings import read_analysis
from paper.work_plan import DONE, FAILED, NOT_RUN, THERE, Plan, team_files, trained_share


def settings_of(setting: Setting, method: Method, plan: Plan) -> Config:
    """Settings of a method's run."""
    scale = plan.scale(setting)
    config = preset(scale.preset).config(method.algorithm)
    for settings in (scale.settings.get("", {}), scale.settings.get(method.algorithm, {}), method.settings):
        config = override(config, settings)
    return cast(Config, override(config, {"seeds": scale.seeds}))


def training(setting: Setting, method: Method, plan: Plan) -> tuple[Any, Config]:
    """Problem and settings of a method's run."""
    problem = plan.scale(setting).problem(**plan.changes(setting))
    return (Centralized(problem) if method.centralized else problem), settings_of(setting, method, plan)


def train_method(setting: Setting, method: Method, plan: Plan, callback: Callback | None = None) -> tuple[str, str]:
    """Train a method's teams, from the last checkpoint if there is one. Stored analyses count as results of teams.

    An unfinished run counts as trained, except with --train. `callback` gets the progress.
    """
    seeds, files = plan.scale(setting).seeds, team_files(setting, method, plan)
    complete = all(seed in files or read_analysis(setting, method, plan, seed) is not None for seed in seeds)
    share = trained_share(setting, method, plan) if plan.train and method.role != MAIN else None
    if complete and (share is None or share >= 1):
        return THERE, ""
    if plan.hinders(setting):
        return NOT_RUN, plan.hinders(setting)
    if not (plan.train or plan.quick):
        return NOT_RUN, "training was not asked for (--train)"
    problem, config = training(setting, method, plan)
    folder = plan.out / plan.folder(setting, method)
    policies = find_policies(problem, config, named=(config.teacher.policy,))
    with only_writer(folder):
        # one device, which other runs share: programs over the same devices may wait for each other for ever
        options: dict[str, Any] = {"callback": callback, "policies": policies, "settle": False, "devices": 1}
        run = (
            resume_run(problem, config, folder, **options)
            if _begun(folder, problem, config)
            else train_run(problem, config, folder, overwrite=True, **options)
        )
        if run.interrupted:
            raise KeyboardInterrupt  # its checkpoint is written
        save_teams(run, folder)
        for seed in run.faults():
            (folder / f"team-{seed}.safetensors").unlink(missing_ok=True)
        delete_checkpoints(folder)  # training is complete
    faults = "; ".join(f"seed {seed}: {quantity} not finite" for seed, quantity in run.faults().items())
    return (FAILED, faults) if faults else (DONE, "")


def _begun(folder: Path, problem: Problem, config: Config) -> bool:
    """Whether a folder holds a checkpoint of this run. Where its measurements lie does not matter."""
    if not has_checkpoint(folder) or not (folder / "config.json").exists():
        return False
    try:
        kind, arguments, settings = read_config(folder / "config.json")
    except UserError:  # written by a version with other settings
        return False
    described = describe(problem, local=False)
    if (kind, settings) != (full_kind(described), config):
        return False
    elsewhere = type(problem.unwrapped).LOCAL
    begun = {name: value for name, value in arguments.items() if name not in elsewhere}
    return begun == json.loads(json.dumps(described["arguments"]))
