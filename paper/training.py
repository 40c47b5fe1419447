"""Training of methods without teams."""

import json
from functools import cache
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
from icmape.learning.shared_plans import plan_key
from icmape.locks import only_writer
from icmape.problem import Centralized, Problem
from icmape.problem.spec import describe, full_kind
from icmape.settings import override
from paper.experiments import MAIN, Method, Setting, setting_named
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


def plan_file(setting: Setting, plan: Plan, problem: Problem, config: Config) -> Path | None:
    """Where the runs of a setting with the same schedules share them: the file that is there, else that to write.

    None for a run without schedules.
    """
    if config.plan.iterations == 0:
        return None
    measurements = plan.data_digest(setting)
    key = "-".join(filter(None, (plan_key(problem, config), measurements)))
    name = f"{plan.root(setting)}/plan-{key}.eqx"
    return plan.store.find(name) or plan.out / name


@cache
def plan_to_find(setting_name: str, role: str, plan: Plan) -> Path | None:
    """The file that a method's run writes as it finds its schedules; None if it has none, has a checkpoint or teams,
    or if its worlds cannot be drawn here. The file may be there by now.
    """
    setting = setting_named(setting_name)
    method = setting.method(role)
    if method is None or settings_of(setting, method, plan).plan.iterations == 0 or is_trained(setting, method, plan):
        return None
    try:
        problem, config = training(setting, method, plan)
    except (UserError, OSError):
        return None
    begun = _begun(plan.out / plan.folder(setting, method), problem, config)
    return None if begun else plan_file(setting, plan, problem, config)


def is_trained(setting: Setting, method: Method, plan: Plan) -> bool:
    """Whether a method has teams of all seeds, or stored analyses that stand for them.

    An unfinished run counts as trained, except with --train.
    """
    seeds, files = plan.scale(setting).seeds, team_files(setting, method, plan)
    complete = all(seed in files or read_analysis(setting, method, plan, seed) is not None for seed in seeds)
    share = trained_share(setting, method, plan) if plan.train and method.role != MAIN else None
    return complete and (share is None or share >= 1)


def train_method(setting: Setting, method: Method, plan: Plan, callback: Callback | None = None) -> tuple[str, str]:
    """Train a method's teams, from the last checkpoint if there is one, unless it is trained.

    `callback` gets the progress.
    """
    if is_trained(setting, method, plan):
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
        options["shared_plans"] = plan_file(setting, plan, problem, config)
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
