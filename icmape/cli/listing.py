"""`icmape list`."""

from collections.abc import Mapping
from typing import Any

import tyro
from rich.table import Table

from icmape.learning.config import DEFAULT_ALGORITHM, algorithms
from icmape.learning.presets import presets
from icmape.play.team_files import about, pretrained
from icmape.plot.terminal import out, say
from icmape.problem.entry import problem_classes, problem_name


def list_command(arguments: list[str]) -> int:
    """Pretrained teams, presets, algorithms and baselines."""
    from icmape.baselines.registry import catalogue

    tyro.cli(_nothing, prog="icmape list", description=list_command.__doc__, args=arguments)
    out.print(shipped())
    say(" as validated after training; `icmape evaluate NAME` plays a team on 10,000 fresh worlds")
    for note in data_notes():
        say(f" {note}")
    say("")
    table = Table("preset", "problem", "default", "what it is", box=None, header_style="bold")
    for name, chosen in presets().items():
        table.add_row(name, problem_name(chosen.problem), chosen.algorithm, chosen.summary)
    out.print(table)
    table = Table("algorithm", "what it is", box=None, header_style="bold")
    for name, algorithm in algorithms().items():
        table.add_row(
            name, algorithm.summary + (" (default for problems of your own)" if name == DEFAULT_ALGORITHM else "")
        )
    out.print("")
    out.print(table)
    out.print("")
    table = Table("baseline", "problem", "what it is", box=None, header_style="bold")
    for line in catalogue():
        table.add_row(*line)
    out.print(table)
    return 0


def shipped() -> Table:
    """The pretrained teams, with what they reached on the worlds where their stops were set last."""
    table = Table("pretrained team", "target", "accuracy", "rounds (τ)", "learned by", "trained on", box=None)
    table.header_style = "bold"
    for name in pretrained():
        card = about(name).card
        reached, settings = card.get("retargeted", card["validation"]), card["configuration"]
        table.add_row(
            f"{name} *" if lacking(name) else name,
            f"{1 - settings['delta']:g}",
            f"{reached['accuracy']:.3f}",
            f"{reached['tau']:.2f}",
            learned_by(settings),
            f"{trained_on(card['device'])}, {card['seconds'] / 60:.0f} min",
        )
    return table


def lacking(name: str) -> tuple[str, ...]:
    """The arguments that a pretrained team needs to play, and that its file does not hold."""
    problem = about(name).problem
    kind = problem_classes().get(problem["kind"])
    return kind.lacks(problem["arguments"]) if kind else ()


def data_notes() -> list[str]:
    """What to give to the teams with a star, once for each problem. To act on new readings they need nothing."""
    classes = problem_classes()
    needy = {kind: classes[kind] for name in pretrained() if lacking(name) for kind in [about(name).problem["kind"]]}
    return [
        f"* needs measurements, to play worlds but not to act on new readings. {kind.WORLDS_FROM}"
        + "".join(f" (found here: --{name} {' '.join(value)})" for name, value in kind.found_locally().items())
        for kind in needy.values()
    ]


def learned_by(settings: Mapping[str, Any]) -> str:
    """Name of the algorithm: with a teacher PPO is called guided. `guide` is the teacher's name before version 0.11."""
    teacher = settings.get("teacher") or settings.get("guide") or {}
    return "guided" if teacher.get("policy") else str(settings["algorithm"]["kind"])


def trained_on(device: str) -> str:
    """A device in a few letters."""
    return "1 CPU core" if device == "1 CPU cores" else device.removeprefix("NVIDIA ")


def _nothing() -> None:
    """No settings."""
