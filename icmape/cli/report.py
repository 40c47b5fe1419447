"""`icmape report`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tyro

from icmape.cli.teams import changes_of, chosen_teams, team_paths, typed_changes
from icmape.errors import UserError
from icmape.evaluation.analysis import analyse
from icmape.evaluation.certificate import Certificate, certify
from icmape.evaluation.results import Store, stored_episodes
from icmape.evaluation.robustness import Sweep, SweepPoint, robustness, sweeps_of
from icmape.evaluation.single import play_one
from icmape.learning.run_files import read_metrics
from icmape.play.episodes import check_seed
from icmape.play.team import Team
from icmape.play.team_files import about
from icmape.plot.episode_replay import scene
from icmape.plot.page import write_page
from icmape.plot.team_report import Judged, report_chapters, subtitle
from icmape.plot.terminal import out as console
from icmape.plot.terminal import say
from icmape.problem import check_worlds
from icmape.problem.spec import describe, load_class

PAGE = Path("runs/report/index.html")
MOST = 5  # values of an argument in a sweep


def report_command(arguments: list[str]) -> int:
    """One page for a browser."""

    def options(
        sources: tyro.conf.Positional[tuple[str, ...]] = (),
        out: Path = PAGE,
        episodes: int = 10_000,
        seed: int = 0,
        replays: int = 4,
        sweep_episodes: int = 500,
        names: tuple[str, ...] = (),
        problem: str | None = None,
        data: tuple[str, ...] = (),
        set: tuple[str, ...] = (),
    ) -> dict[str, Any]:
        """A report: one HTML page that needs no network. Summary, certificates, training, calibration, survival,
        robustness, coordination, and episodes to step through.

        Episodes that were played are kept beside the page, so that the next report of the same teams is fast.

        Args:
            sources: Team files, run folders (all seeds are one method) and names of pretrained teams, for one problem.
            out: The page.
            episodes: Worlds that each team is played on, and as many again for its certificate.
            seed: Seed of the worlds.
            replays: Episodes to step through, for the first team of each method.
            sweep_episodes: Worlds at each point of other priors, where the problem has such; 0: leave that out.
            names: What to call the methods, in their order.
            problem: module:Class of a problem that is not part of icmape, if the teams were trained on one.
            data: Files or folders of measurements, where the problem's worlds come from such.
            set: NAME=VALUE ...: arguments of the problem to change, such as years=2019.
        """
        return dict(locals())

    args = tyro.cli(options, prog="icmape report", args=arguments)
    _check(args)
    kind = _one_kind(args["sources"])
    labels = [Path(label).name or label for label in args["names"] or args["sources"]]
    methods = [_judge(source, label, args) for source, label in zip(args["sources"], labels, strict=True)]
    sections = [chapter.section() for chapter in report_chapters(methods)]
    title = " and ".join(method.label for method in methods)
    changed = "".join(f", {assignment}" for assignment in args["set"])
    path = write_page(args["out"], f"Report: {title}", subtitle(methods, kind + changed), sections)
    say(f"report: {path}")
    return 0


def _check(args: dict[str, Any]) -> None:
    """Refuse what cannot be, before anything is played."""
    if not args["sources"]:
        raise UserError("give one or more team files, run folders or names of pretrained teams")
    if args["names"] and len(args["names"]) != len(args["sources"]):
        raise UserError(f"--names needs a name for each of the {len(args['sources'])} methods")
    if args["out"].suffix != ".html":
        raise UserError(f"--out is the page: a name that ends with .html; given {args['out']}")
    for name, minimum in (("episodes", 100), ("replays", 0), ("sweep_episodes", 0)):
        if args[name] < minimum:
            raise UserError(f"--{name.replace('_', '-')} must be at least {minimum}; given {args[name]}")
    check_seed(args["seed"])


def _one_kind(sources: Sequence[str]) -> str:
    """The problem of all teams, by name; they must have one."""
    described = [about(path).problem for source in sources for path in team_paths(source)]
    kinds = {json.dumps([problem["kind"], problem["arguments"]], sort_keys=True) for problem in described}
    if len(kinds) > 1:
        raise UserError("the teams are for different problems or priors: give them to separate reports")
    return str(described[0]["kind"])


def _judge(source: str, label: str, args: dict[str, Any]) -> Judged:
    analyses, certificates, first = {}, {}, None
    store = Store(args["out"].parent / "episodes")
    for name, path, team in chosen_teams(source, args["problem"], changes_of(args["data"], args["set"])):
        check_worlds(team.problem)
        first = first or (path, team)
        digest = about(path).digest
        with console.status(f"{label}, {name}: playing"):
            stored = store.out / f"{digest}-{args['episodes']}-{args['seed']}.npz"
            played = stored_episodes(stored, team, digest, args["episodes"], args["seed"])
            analyses[name] = analyse(team, played, args["seed"])
            certificates[name] = _certificate(store, team, digest, args)
        say(
            f"{label}, {name}: accuracy {analyses[name].evaluation.accuracy:.4f}, τ {analyses[name].evaluation.tau:.3f}"
        )
    assert first is not None  # no teams are refused
    path, team = first
    with console.status(f"{label}: episodes to step through"):
        scenes = [
            scene(play_one(team, world, args["seed"]), f"{label}, world {world}") for world in range(args["replays"])
        ]
    metrics = Path(source) / "metrics.jsonl"
    rows = read_metrics(metrics) if metrics.exists() else []
    return Judged(label, analyses, certificates, rows, _sweeps(store, path, team, args, label), scenes)


def _certificate(store: Store, team: Team, digest: str, args: dict[str, Any]) -> Certificate:
    """The team's certificate, once: the worlds that it is made on are not for looking at again and again."""
    name = f"certificate-{digest}.json"
    question = {"team": digest, "problem": describe(team.problem), "worlds": args["episodes"]}
    content = store.read(name, question)
    if content is None:
        content = certify(team, worlds=args["episodes"], digest=digest).to_dict()
        store.write(name, question, content)
    return Certificate.from_dict(content)


def _sweeps(
    store: Store, path: str, team: Team, args: dict[str, Any], label: str
) -> list[tuple[Sweep, list[SweepPoint]]]:
    """The first team under other priors, where its problem has such."""
    sweeps: list[tuple[Sweep, list[SweepPoint]]] = []
    problem_class = None if args["problem"] is None else load_class(args["problem"])
    digest = about(path).digest
    changes = typed_changes([path], problem_class, changes_of(args["data"], args["set"]))
    for sweep in sweeps_of(team.problem) if args["sweep_episodes"] else ():
        fewer, name = sweep.thinned(MOST), f"robustness-{sweep.name}-{digest}.json"
        arguments: dict[str, Any] = {"episodes": args["sweep_episodes"], "seed": args["seed"]}
        question = {"team": digest, "problem": describe(team.problem), **arguments, "axes": repr(fewer.axes)}
        with console.status(f"{label}: {sweep.name}"):
            rows = store.read(name, question)
            if rows is None:
                points = list(robustness(path, fewer, problem=problem_class, **arguments, **changes))
                rows = [point._asdict() for point in points]
                store.write(name, question, rows)
        if rows:
            sweeps.append((fewer, [SweepPoint(**row) for row in rows]))
    return sweeps
