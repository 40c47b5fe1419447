"""`icmape report`."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from icmape.cli.report_baselines import chosen_baselines, standing
from icmape.cli.teams import ProblemOptions, chosen_teams, team_paths, typed_changes
from icmape.errors import UserError
from icmape.evaluation.analysis import analyse
from icmape.evaluation.baseline_curves import check_baselines
from icmape.evaluation.certificate import WORLDS, Certificate, certify, worlds_for
from icmape.evaluation.results import Store, code_digest, stored_episodes
from icmape.evaluation.robustness import Sweep, SweepPoint, robustness, sweeps_of
from icmape.io import file_digest
from icmape.learning.run_files import read_metrics
from icmape.play.episodes import check_seed
from icmape.play.team import Team
from icmape.play.team_files import about
from icmape.plot.chosen_episodes import chosen_episodes
from icmape.plot.episode_replay import scene
from icmape.plot.page import write_page
from icmape.plot.team_report import Judged, opening, report_sections, subtitle, team_name
from icmape.plot.terminal import out, say
from icmape.problem import check_worlds
from icmape.problem.spec import describe, problem_digest

PAGE = Path("runs/report/index.html")
MOST_REPLAYS = 1_000
MOST = 5  # values of an argument in a sweep


@dataclass(frozen=True, kw_only=True)
class ReportOptions(ProblemOptions):
    """A report: one HTML page that needs no network. It holds the question, the verdict, replays of episodes, how good
    the team is beside rules that do not learn, how honest it is, who does what, where it breaks, and its certificate.

    Played episodes are stored beside the page, so the next report of the same teams is fast.
    """

    sources: tyro.conf.Positional[tuple[str, ...]] = ()
    """Team files, run folders (all seeds are one method) and names of pretrained teams, for one problem."""
    out: Path = PAGE
    """The page."""
    episodes: int = 10_000
    """Worlds per team, and as many again for its certificate: four times as many for a team whose stops were set for a
    certificate on 40,000 instead of 10,000."""
    seed: int = 0
    """Seed of the worlds."""
    replays: int = 3
    """Replays of the first team of each method: a right answer of median length, a wrong one, the longest; then worlds
    0, 1, ...."""
    sweep_episodes: int = 500
    """Worlds at each point of a sweep over priors, if the problem has sweeps; 0: no sweeps."""
    baselines: tuple[str, ...] = ()
    """Baselines beside the teams (`icmape list`), or module:Class of your own; `none`; by default a fixed schedule and
    a decentralized rule, in fewer worlds where they are slow."""
    baseline_episodes: int = 2_000
    """Worlds for each baseline, and for the teams beside it."""
    names: tuple[str, ...] = ()
    """Labels of the methods, in their order."""


def report_command(arguments: list[str]) -> int:
    """Write one HTML page about teams."""
    args = tyro.cli(ReportOptions, prog="icmape report", args=arguments)
    _check(args)
    kind = _one_kind(args.sources)
    labels = [Path(label).name or label for label in args.names or args.sources]
    store = Store(args.out.parent / "episodes")
    judged = [_judge(source, label, store, args) for source, label in zip(args.sources, labels, strict=True)]
    methods, teams = [method for method, _ in judged], {method.label: built for method, built in judged}
    problem = judged[0][1][0][1].problem
    beside = standing(store, teams, args.baselines, args.baseline_episodes, args.seed)
    changed = "".join(f", {one.replace('_', ' ').replace('=', ' ', 1)}" for one in args.set)
    first, sections = opening(methods, problem, kind, beside), report_sections(methods, problem, beside)
    path = write_page(args.out, problem.question, subtitle(methods, changed), sections, opening=first)
    say(f"report: {path}")
    return 0


def _check(args: ReportOptions) -> None:
    """Refuse invalid options before anything is played."""
    if not args.sources:
        raise UserError("give one or more team files, run folders or names of pretrained teams")
    if args.names and len(args.names) != len(args.sources):
        raise UserError(f"--names needs a name for each of the {len(args.sources)} methods")
    if args.out.suffix != ".html":
        raise UserError(f"--out is the page: a name that ends with .html; given {args.out}")
    for name, minimum in (("episodes", 100), ("replays", 0), ("sweep_episodes", 0), ("baseline_episodes", 100)):
        if (value := getattr(args, name)) < minimum:
            raise UserError(f"--{name.replace('_', '-')} must be at least {minimum}; given {value}")
    if args.replays > MOST_REPLAYS:
        raise UserError(f"--replays {args.replays:,} makes a page that no browser opens: at most {MOST_REPLAYS:,}")
    check_seed(args.seed)
    check_baselines(args.baselines)


def _one_kind(sources: Sequence[str]) -> str:
    """Name of the problem, which must be the same for all teams."""
    described = [about(path).problem for source in sources for path in team_paths(source)]
    kinds = {json.dumps([problem["kind"], problem["arguments"]], sort_keys=True) for problem in described}
    if len(kinds) > 1:
        raise UserError("the teams are for different problems or priors: give them to separate reports")
    return str(described[0]["kind"])


def _judge(source: str, label: str, store: Store, args: ReportOptions) -> tuple[Judged, list[tuple[str, Team]]]:
    """All results of a method but those beside baselines, and its teams with the hashes of their files."""
    analyses, certificates, first = {}, {}, None
    teams: list[tuple[str, Team]] = []
    for name, path, team in chosen_teams(source, args):
        check_worlds(team.problem)
        chosen_baselines(team, args.baselines)
        digest = file_digest(about(path).path)
        with out.status(f"{team_name(label, name)}: playing"):
            stored = store.out / f"{digest}-{args.episodes}-{args.seed}.npz"
            episodes = stored_episodes(stored, team, digest, args.episodes, args.seed)
            analyses[name] = analyse(team, episodes, args.seed)
            certificates[name] = _certificate(store, team, digest, args)
        first = first or (path, team, episodes)
        teams.append((digest, team))
        evaluation = analyses[name].evaluation
        say(f"{team_name(label, name)}: accuracy {evaluation.accuracy:.4f}, τ {evaluation.tau:.3f}")
    assert first is not None  # `chosen_teams` refuses folders without teams
    path, team, episodes = first
    with out.status(f"{label}: replays"):
        right = episodes.at_stop(episodes.team.correct)
        chosen = chosen_episodes(team, right, np.asarray(episodes.played.stop), args.seed, args.replays)
    named = f"{label}: " if len(args.sources) > 1 else ""
    scenes = [scene(one.played, named + one.title) for one in chosen]
    metrics = Path(source) / "metrics.jsonl"
    rows = read_metrics(metrics) if metrics.exists() else []
    sweeps = _sweeps(store, path, team, args, label)
    answers = episodes.at_stop(episodes.team.confidence), right
    return Judged(label, analyses, certificates, rows, sweeps, scenes, answers), teams


def _worlds(team: Team) -> dict[str, Any]:
    """What results depend on besides the team: its problem with its data, and the code."""
    return {"problem": describe(team.problem), "data": problem_digest(team.problem), "code": code_digest()}


def _certificate(store: Store, team: Team, digest: str, args: ReportOptions) -> Certificate:
    """The team's certificate. It is computed once, because its worlds must not be used repeatedly."""
    name = f"certificate-{digest}.json"
    worlds = args.episodes * worlds_for(team) // WORLDS
    question = {"team": digest, **_worlds(team), "worlds": worlds}
    content = store.read(name, question)
    if content is None:
        content = certify(team, worlds=worlds, digest=digest).to_dict()
        store.write(name, question, content)
    return Certificate.from_dict(content)


def _sweeps(
    store: Store, path: str, team: Team, args: ReportOptions, label: str
) -> list[tuple[Sweep, list[SweepPoint]]]:
    """Sweeps of the first team over other priors, if its problem has any."""
    sweeps: list[tuple[Sweep, list[SweepPoint]]] = []
    digest, kind = file_digest(about(path).path), args.problem_class
    changes = typed_changes([path], kind, args.changes)
    for sweep in sweeps_of(team.problem) if args.sweep_episodes else ():
        fewer, name = sweep.thinned(MOST), f"robustness-{sweep.name}-{digest}.json"
        sizes: dict[str, Any] = {"episodes": args.sweep_episodes, "seed": args.seed}
        question = {"team": digest, **_worlds(team), **sizes, "axes": repr(fewer.axes)}
        with out.status(f"{label}: {sweep.name}"):
            rows = store.read(name, question)
            if rows is None:
                rows = [point._asdict() for point in robustness(path, fewer, problem=kind, **sizes, **changes)]
                store.write(name, question, rows)
        if rows:
            sweeps.append((fewer, [SweepPoint(**row) for row in rows]))
    return sweeps
