"""`icmape play`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from icmape.cli.teams import BaselineOptions, check_choice, chosen_baseline, chosen_problem, chosen_teams, team_paths
from icmape.errors import UserError
from icmape.io import write_atomically
from icmape.learning.presets import presets
from icmape.play.team import Team
from icmape.play.team_files import pretrained
from icmape.plot.terminal import check_file, check_folder, out, say
from icmape.problem import Problem

FOLDER = Path("runs/play")


@dataclass(frozen=True, kw_only=True)
class PlayOptions(BaselineOptions):
    """Play one greedy episode: a log of its rounds, episode.png (all rounds) and episode.gif."""

    team: tyro.conf.Positional[str | None] = None
    """A team file or the name of a pretrained team; with --baseline a preset; with --field any of these."""
    world: int = 0
    """Number of the world, from 0, among those that `icmape evaluate` plays with the same seed."""
    seed: int = 0
    """Seed of the worlds."""
    out: Path = FOLDER
    """Folder for the pictures."""
    posterior: Literal["network", "exact"] | None = None
    """Posterior to draw: the team's network or Bayes' rule; by default the one that gives the team's answer."""
    animate: Path | None = None
    """Also write the episode as an SVG of twelve seconds to this file, for pages that run no scripts."""
    field: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Draw only the world's field with its noise (field.png), and play nothing."""


def play_command(arguments: list[str]) -> int:
    """Play one episode and draw it."""
    args = tyro.cli(PlayOptions, prog="icmape play", args=arguments)
    _check(args)
    return _draw_field(args) if args.field else _draw_episode(args)


def _check(args: PlayOptions) -> None:
    """Refuse invalid options before anything is loaded."""
    from icmape.evaluation.single import world_key

    world_key(args.world, args.seed)
    check_folder(args.out, " for the pictures")
    check_file(args.animate, "--animate", "SVG")
    if not args.field:
        check_choice(args)
    elif args.baseline or args.posterior or args.animate:
        raise UserError("--field draws a world without anyone in it: leave out --baseline, --posterior and --animate")
    elif args.team is None and args.problem is None:
        raise UserError(f"--field needs a problem: give a PRESET ({', '.join(presets())}), a team or --problem")


def _draw_field(args: PlayOptions) -> int:
    import jax

    from icmape.evaluation.single import draw_world, world_key
    from icmape.plot.drawing import DPI
    from icmape.plot.drawings import drawing_class

    problem = _problem(args)
    key = world_key(args.world, args.seed)
    figure = drawing_class(type(problem)).field(problem, draw_world(problem, key), jax.random.fold_in(key, 1))
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / "field.png"
    figure.savefig(path, dpi=DPI)
    say(f"the field of world {args.world} (seed {args.seed}): {path}")
    return 0


def _problem(args: PlayOptions) -> Problem:
    """The problem of a preset, of a team, or of --problem."""
    if args.team is None or (args.team in presets() and args.team not in pretrained()):
        return chosen_problem(args.team, args.problem, args.changes)
    return _team(args.team, args)[1].problem.unwrapped


def _draw_episode(args: PlayOptions) -> int:
    from icmape.evaluation.single import choose_inference, play_one
    from icmape.plot.drawing import ending, write_episode
    from icmape.plot.drawings import drawing_of

    title, team = chosen_baseline(args)[1:] if args.baseline else _team(check_choice(args), args)
    choose_inference(team, args.posterior)
    with out.status("playing: up to 30 s, as it is compiled first"):
        played = play_one(team, args.world, args.seed, args.posterior)
    drawing = drawing_of(played)
    say(f"{title}, world {args.world} of seed {args.seed}")
    say("\n".join([*_log(drawing), ending(drawing)]))
    with out.status("drawing: a few seconds"):
        paths = write_episode(drawing, args.out)
    if args.animate is not None:
        from icmape.plot.animation import animated

        write_atomically(args.animate, animated(drawing).encode())
        paths.append(args.animate)
    say("pictures: " + ", ".join(map(str, paths)))
    return 0


def _team(name: str, args: PlayOptions) -> tuple[str, Team]:
    """The team with a name; a folder must hold a single one."""
    paths = team_paths(name)
    if len(paths) > 1:
        raise UserError(f"{name} holds {len(paths)} teams, and one is played: for example `icmape play {paths[0]}`")
    return next(row[1:] for row in chosen_teams(paths[0], args))


def _log(drawing: Any) -> list[str]:
    """A row for every round and one for the stop: place, observation and action of every agent, answer, probability."""
    from icmape.plot.drawing import probability

    played = drawing.played
    agents = range(played.problem.agents)
    rows = [["round", *(f"agent {agent + 1}" for agent in agents), "answer", "p"]]
    for number in range(played.rounds):
        cells = [_cell(drawing, agent, number) for agent in agents]
        answer = drawing.answer(played.decisions[number])
        name = str(number + 1) if number < played.rounds - 1 else "stop"
        rows.append([name, *cells, answer, probability(played.confidence[number])])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def _cell(drawing: Any, agent: int, number: int) -> str:
    """What an agent sees and does. In the last round only the agents that stopped have an action."""
    played = drawing.played
    acts = number < played.rounds - 1 or agent in played.stopped
    text = " ".join(filter(None, (drawing.place(agent, number), drawing.seen(agent, number))))
    return f"{text} → {drawing.choice(agent, number)}".strip() if acts else text
