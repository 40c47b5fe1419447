"""`icmape list`."""

import tyro
from rich.table import Table

from icmape.cli.terminal import out
from icmape.learning.config import DEFAULT_ALGORITHM, SUMMARIES
from icmape.presets import PRESETS, problem_name
from icmape.teams import shipped


def list_command(arguments: list[str]) -> int:
    """Presets, algorithms, references and shipped teams."""
    from icmape.references.registry import CATALOGUE

    tyro.cli(_nothing, prog="icmape list", description=list_command.__doc__, args=arguments)
    table = Table("preset", "problem", "default", "what it is", box=None, header_style="bold")
    for name, entry in PRESETS.items():
        table.add_row(name, problem_name(entry.problem), entry.algorithm, entry.summary)
    out.print(table)
    table = Table("algorithm", "what it is", box=None, header_style="bold")
    for name, summary in SUMMARIES.items():
        table.add_row(name, summary + (" (default for problems of your own)" if name == DEFAULT_ALGORITHM else ""))
    out.print("")
    out.print(table)
    out.print("\n[bold]shipped teams[/]  " + (", ".join(shipped()) or "none yet") + "\n")
    table = Table("reference", "problem", "what it is", box=None, header_style="bold")
    for line in CATALOGUE:
        table.add_row(*line)
    out.print(table)
    return 0


def _nothing() -> None:
    """No settings."""
