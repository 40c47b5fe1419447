"""Training what is missing."""

from typing import Any

from icmape.learning.config import Config, override
from icmape.learning.run import read_config, resume_run, train_run
from icmape.presets import preset
from icmape.problems import Centralized
from icmape.reproduction.experiments import Method, Setting
from icmape.reproduction.findings import analysis_name
from icmape.reproduction.plan import DONE, FAILED, NOT_RUN, THERE, Plan, team_files
from icmape.teams.from_run import save_teams


def training(of: Setting, method: Method, plan: Plan) -> tuple[Any, Config]:
    """Problem and settings of a method's run."""
    scale = plan.scale(of)
    problem = scale.problem(**plan.changes(of))
    config = preset(scale.preset).config(method.algorithm)
    for settings in (scale.settings.get("", {}), scale.settings.get(method.algorithm, {}), method.settings):
        config = override(config, settings)
    config = override(config, {"seeds": scale.seeds})
    return (Centralized(problem) if method.centralized else problem), config


def train_method(of: Setting, method: Method, plan: Plan) -> tuple[str, str]:
    """Train a method's teams, from its last checkpoint if there is one; results without teams are left as they are."""
    scale, folder = plan.scale(of), plan.folder(of, method)
    if set(scale.seeds) <= set(team_files(of, method, plan)):
        return THERE, ""
    if all(plan.store.find(analysis_name(folder, seed)) for seed in scale.seeds):
        return THERE, ""
    if plan.hinders(of):
        return NOT_RUN, plan.hinders(of)
    if not (plan.train or plan.quick):
        return NOT_RUN, "training was not asked for (--train)"
    problem, config = training(of, method, plan)
    where = plan.out / folder
    if (where / "config.json").exists() and read_config(where / "config.json")[2] == config:
        run = resume_run(problem, config, where)
    else:
        run = train_run(problem, config, where, overwrite=True)
    if run.faults():
        return FAILED, "; ".join(f"seed {seed}: {what} not finite" for seed, what in run.faults().items())
    if not run.finished:
        return FAILED, f"stopped after {run.iteration} of {config.iterations} iterations"
    save_teams(run, where)
    (where / "checkpoint.eqx").unlink(missing_ok=True)  # it is done: the state of training is of no use any more
    return DONE, ""
