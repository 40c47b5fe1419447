"""`icmape list`."""

import tyro
from rich.table import Table
from rich.text import Text

from icmape.learning.config import DEFAULT_ALGORITHM, algorithms
from icmape.learning.presets import presets
from icmape.play.team_files import pretrained
from icmape.plot.terminal import out
from icmape.problem.entry import problem_name


def list_command(arguments: list[str]) -> int:
    """Presets, algorithms, baselines and pretrained teams."""
    from icmape.baselines.registry import catalogue

    tyro.cli(_nothing, prog="icmape list", description=list_command.__doc__, args=arguments)
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
    out.print(Text.assemble("\n", ("pretrained teams", "bold"), "  ", ", ".join(pretrained()) or "none yet", "\n"))
    table = Table("baseline", "problem", "what it is", box=None, header_style="bold")
    for line in catalogue():
        table.add_row(*line)
    out.print(table)
    return 0


def _nothing() -> None:
    """No settings."""
