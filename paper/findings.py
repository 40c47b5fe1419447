"""Analyses, certificates and sweeps of teams: each is read if it is stored, and else computed and stored."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from icmape.evaluation.analysis import Analysis, analyse
from icmape.evaluation.certificate import LEVEL, WORLDS, Certificate, certify
from icmape.evaluation.results import ANY, stored_episodes
from icmape.evaluation.robustness import Sweep, SweepPoint, robustness
from icmape.play.stop import Threshold
from icmape.play.team import Team
from icmape.play.team_files import about, load
from paper.experiments import Method, Setting
from paper.work_plan import DONE, NO_TEAM, NOT_RUN, SEED, THERE, Plan, own_seed, team_files

CERTIFICATE_SEED = 0
FORMAT = 2  # of an analysis; older ones are computed again from the stored episodes


def analysis_name(folder: str, seed: int, variant: str = "") -> str:
    """File name of an analysis."""
    return f"{folder}/analysis-{f'{variant}-' if variant else ''}{seed}.json"


def question(setting: Setting, plan: Plan, path: Path | None, **details: Any) -> dict[str, Any]:
    """Key of a result: the team's hash, the data's hash, and details."""
    return {"team": about(path).digest if path else ANY, "data": plan.data_digest(setting), **details}


def analysis_question(setting: Setting, method: Method, plan: Plan, seed: int, variant: str = "") -> dict[str, Any]:
    """Key of an analysis."""
    path = team_files(setting, method, plan).get(seed)
    changes = dict(setting.variants.get(variant, {}))
    level = {} if method.level is None else {"level": method.level}
    return question(
        setting, plan, path, format=FORMAT, episodes=plan.scale(setting).episodes, seed=SEED, changes=changes, **level
    )


def read_analysis(setting: Setting, method: Method, plan: Plan, seed: int, variant: str = "") -> Analysis | None:
    """A stored analysis."""
    name = analysis_name(plan.folder(setting, method), seed, variant)
    stored = plan.store.read(name, analysis_question(setting, method, plan, seed, variant))
    return None if stored is None else Analysis.from_dict(stored)


def make_analysis(setting: Setting, method: Method, plan: Plan, seed: int, variant: str) -> tuple[str, str]:
    """Analyse a team's episodes. They are played unless they are stored."""
    if read_analysis(setting, method, plan, seed, variant) is not None:
        return THERE, ""
    path = team_files(setting, method, plan).get(seed)
    if path is None or plan.hinders(setting):
        return NOT_RUN, plan.hinders(setting) or NO_TEAM
    folder, scale = plan.folder(setting, method), plan.scale(setting)
    team = as_method(method, load(path, **plan.changes(setting), **setting.variants.get(variant, {})))
    level = "" if method.level is None else f"-{method.level:g}"
    stored = plan.out / "episodes" / f"{folder.replace('/', '-')}{level}-{variant or 'own'}-{seed}.npz"
    exact = None if team.problem.posterior == "none" else scale.exact
    episodes = stored_episodes(stored, team, about(path).digest, scale.episodes, SEED, exact=exact)
    asked = analysis_question(setting, method, plan, seed, variant)
    plan.store.write(analysis_name(folder, seed, variant), asked, analyse(team, episodes, SEED).to_dict())
    return DONE, ""


def as_method(method: Method, team: Team) -> Team:
    """The team with the method's stopping rule."""
    return team if method.level is None else replace(team, stop=Threshold(method.level))


def _certificate_request(worlds: int) -> dict[str, Any]:
    return {"worlds": worlds, "level": LEVEL, "seed": CERTIFICATE_SEED}


def _certificate_question(setting: Setting, method: Method, plan: Plan, seed: int, worlds: int) -> dict[str, Any]:
    path = team_files(setting, method, plan).get(seed)
    return question(setting, plan, path, **_certificate_request(worlds))


def read_certificate(setting: Setting, method: Method, plan: Plan, seed: int) -> Certificate | None:
    """A stored certificate; one of the same team on 10,000 worlds, as earlier versions asked for, will do."""
    name = f"{plan.folder(setting, method)}/certificate-{seed}.json"
    for worlds in dict.fromkeys((plan.scale(setting).certificate_worlds, WORLDS)):
        stored = plan.store.read(name, _certificate_question(setting, method, plan, seed, worlds))
        if stored is not None:
            return Certificate.from_dict(stored)
    return None


def make_certificate(setting: Setting, method: Method, plan: Plan, seed: int) -> tuple[str, str]:
    """Certify a team. A refusal is stored as well."""
    if read_certificate(setting, method, plan, seed) is not None:
        return THERE, ""
    path = team_files(setting, method, plan).get(seed)
    if path is None or plan.hinders(setting):
        return NOT_RUN, plan.hinders(setting) or NO_TEAM
    team = load(path, **plan.changes(setting))
    worlds = plan.scale(setting).certificate_worlds
    certificate = certify(team, **_certificate_request(worlds), digest=about(path).digest)
    name = f"{plan.folder(setting, method)}/certificate-{seed}.json"
    plan.store.write(name, _certificate_question(setting, method, plan, seed, worlds), certificate.to_dict())
    return DONE, ""


def swept_team(setting: Setting, method: Method, plan: Plan) -> Path | None:
    """The representative team, which is evaluated under other priors."""
    seed = own_seed(setting, plan)
    return None if seed is None else team_files(setting, method, plan).get(seed)


def _sweep_question(setting: Setting, method: Method, plan: Plan, sweep: Sweep) -> dict[str, Any]:
    axes = {name: list(values) for name, values in sweep.axes.items()}
    path, episodes = swept_team(setting, method, plan), plan.scale(setting).sweep_episodes
    return question(setting, plan, path, episodes=episodes, seed=SEED, axes=axes)


def read_sweep(setting: Setting, method: Method, plan: Plan, sweep: Sweep) -> list[SweepPoint] | None:
    """A stored sweep, if it is complete."""
    name = f"{plan.folder(setting, method)}/robustness-{sweep.name}.json"
    stored = plan.store.read(name, _sweep_question(setting, method, plan, sweep))
    points = [SweepPoint(**point) for point in stored or ()]
    return points if len(points) == sweep.size else None


def make_sweep(setting: Setting, method: Method, plan: Plan, sweep: Sweep) -> tuple[str, str]:
    """Evaluate one team under other priors. Stored points are not computed again."""
    if read_sweep(setting, method, plan, sweep) is not None:
        return THERE, ""
    scale, path = plan.scale(setting), swept_team(setting, method, plan)
    if path is None or plan.hinders(setting):
        return NOT_RUN, plan.hinders(setting) or NO_TEAM
    name, asked = (
        f"{plan.folder(setting, method)}/robustness-{sweep.name}.json",
        _sweep_question(setting, method, plan, sweep),
    )
    stored = [SweepPoint(**point) for point in plan.store.read(name, asked) or ()]
    points: list[SweepPoint] = []
    arguments: dict[str, Any] = {
        "episodes": scale.sweep_episodes,
        "seed": SEED,
        "known": stored,
        **plan.changes(setting),
    }
    for point in robustness(str(path), sweep, **arguments):
        points.append(point)
        if point not in stored:  # stored point by point: an interruption loses at most one
            plan.store.write(name, asked, [point._asdict() for point in points])
    return DONE, ""
