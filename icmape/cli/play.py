"""`icmape play`."""

from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from icmape.cli.teams import changes_of, check_choice, chosen_baseline, chosen_problem, chosen_teams, team_paths
from icmape.errors import UserError
from icmape.learning.presets import presets
from icmape.play.team import Team
from icmape.play.team_files import pretrained
from icmape.plot.terminal import out as console
from icmape.plot.terminal import say
from icmape.problem import Problem

FOLDER = Path("runs/play")


def play_command(words: list[str]) -> int:
    """Watch one episode."""

    def play(
        team: tyro.conf.Positional[str | None] = None,
        world: int = 0,
        seed: int = 0,
        out: Path = FOLDER,
        posterior: Literal["network", "exact"] | None = None,
        field: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
        problem: str | None = None,
        baseline: str | None = None,
        rounds: int | None = None,
        level: float | None = None,
        delta: float | None = None,
        data: tuple[str, ...] = (),
        set: tuple[str, ...] = (),
    ) -> dict[str, Any]:
        """Watch one greedy episode: a log of its rounds, episode.png (a strip) and episode.gif.

        Args:
            team: A team file or the name of a pretrained team; with --baseline a preset; with --field any of these.
            world: Which of the worlds that `icmape evaluate` plays with the same seed, from 0.
            seed: Seed of the worlds.
            out: Folder for the pictures.
            posterior: Whose posterior is drawn: the team's network or Bayes' rule; by default what the team answers by.
            field: Draw only the world's field with its noise (field.png), and play nothing.
            problem: module:Class of a problem that is not part of icmape: the one a team was trained on, or with
                --baseline or --field the one to take instead of a preset.
            baseline: Name of a baseline (`icmape list` names them), which is played on the preset's problem.
            rounds: Of the baseline: stop after so many rounds of data.
            level: Of the baseline: stop once its posterior is this sure (see `icmape evaluate --help`).
            delta: Of the baseline: δ, so that its target is 1-δ; 0.1 unless told.
            data: Files or folders of measurements, where the problem's worlds come from such.
            set: NAME=VALUE ...: arguments of the problem to change, such as years=2019.
        """
        return dict(locals())

    args = tyro.cli(play, prog="icmape play", args=words)
    _check(args)
    return _draw_field(args) if args["field"] else _draw_episode(args)


def _check(args: dict[str, Any]) -> None:
    """Refuse what does not go together, before anything is loaded."""
    from icmape.evaluation.single import world_key

    world_key(args["world"], args["seed"])
    if args["out"].exists() and not args["out"].is_dir():
        raise UserError(f"--out {args['out']} is a file; expected a folder for the pictures")
    if not args["field"]:
        check_choice(args)
    elif args["baseline"] or args["posterior"]:
        raise UserError("--field draws a world without anyone in it: leave out --baseline and --posterior")
    elif args["team"] is None and args["problem"] is None:
        raise UserError(f"--field needs a problem: give a PRESET ({', '.join(presets())}), a team or --problem")


def _draw_field(args: dict[str, Any]) -> int:
    import jax

    from icmape.evaluation.single import draw_world, world_key
    from icmape.plot.drawing import DPI
    from icmape.plot.drawings import drawing_class

    problem = _problem(args)
    key = world_key(args["world"], args["seed"])
    figure = drawing_class(type(problem)).field(problem, draw_world(problem, key), jax.random.fold_in(key, 1))
    args["out"].mkdir(parents=True, exist_ok=True)
    path = args["out"] / "field.png"
    figure.savefig(path, dpi=DPI)
    say(f"the field of world {args['world']} (seed {args['seed']}): {path}")
    return 0


def _problem(args: dict[str, Any]) -> Problem:
    """The problem of a preset, of a team, or of one's own."""
    name = args["team"]
    if name is None or (name in presets() and name not in pretrained()):
        return chosen_problem(name, args["problem"], changes_of(args["data"], args["set"]))
    return _team(args)[1].problem.unwrapped


def _draw_episode(args: dict[str, Any]) -> int:
    from icmape.evaluation.single import choose_inference, play_one
    from icmape.plot.drawing import ending, write_episode
    from icmape.plot.drawings import drawing_of

    title, team = _chosen(args)
    choose_inference(team, args["posterior"])
    with console.status("playing"):
        played = play_one(team, args["world"], args["seed"], args["posterior"])
    drawing = drawing_of(played)
    say(f"{title}, world {args['world']} of seed {args['seed']}")
    say("\n".join([*_log(drawing), ending(drawing)]))
    with console.status("drawing"):
        paths = write_episode(drawing, args["out"])
    say("pictures: " + ", ".join(map(str, paths)))
    return 0


def _chosen(args: dict[str, Any]) -> tuple[str, Team]:
    return chosen_baseline(args)[1:] if args["baseline"] else _team(args)


def _team(args: dict[str, Any]) -> tuple[str, Team]:
    """The one team that a name stands for."""
    name, paths = args["team"], team_paths(args["team"])
    if len(paths) > 1:
        raise UserError(f"{name} holds {len(paths)} teams, and one is played: for example `icmape play {paths[0]}`")
    return next(row[1:] for row in chosen_teams(paths[0], args["problem"], changes_of(args["data"], args["set"])))


def _log(drawing: Any) -> list[str]:
    """A row for every round: where everyone is, what it sees and does; the answer by then, and how sure it is."""
    from icmape.plot.drawing import probability

    played = drawing.played
    agents = range(played.problem.agents)
    rows = [["round", *(f"agent {agent + 1}" for agent in agents), "answer", "p"]]
    for number in range(played.rounds):
        cells = [_cell(drawing, agent, number) for agent in agents]
        answer = drawing.answer(played.decisions[number])
        rows.append([str(number), *cells, answer, probability(played.confidence[number])])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def _cell(drawing: Any, agent: int, number: int) -> str:
    """What an agent sees and does; whoever would have gone on when another stopped does nothing any more."""
    played = drawing.played
    goes_on = number < played.rounds - 1 or agent in played.stopped
    text = " ".join(filter(None, (drawing.place(agent, number), drawing.seen(agent, number))))
    return f"{text} → {drawing.choice(agent, number)}".strip() if goes_on else text
