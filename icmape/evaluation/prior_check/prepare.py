"""Simulated sessions in a file, for warnings of sessions in the field (`icmape_agent.session.prior`)."""

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from icmape.errors import UserError
from icmape.evaluation.prior_check.simulated import as_played
from icmape.evaluation.prior_check.words import words_of
from icmape.io import write_atomically
from icmape.play.episodes import play_parts
from icmape.play.sessions import crew
from icmape.play.team import Team
from icmape.problem import Centralized, check_worlds
from icmape_agent.session.prior import Reference, name_of
from icmape_agent.session.statistics import statistics


def prepare(
    team: Team,
    folders: Iterable[str],
    *,
    worlds: int,
    level: float,
    seed: int,
    tick: Callable[[int], None] | None = None,
) -> list[Path]:
    """Simulate sessions of a team, and write their statistics to folders in which its sessions will lie."""
    check_worlds(team.problem)
    if isinstance(team.problem, Centralized):
        raise UserError("sessions of a centralized team give no warnings: check them with `icmape check-prior`")
    if not 0 < level < 1 or worlds + 1 < 1 / level:
        raise UserError(f"a level of {level:g} cannot be reached with {worlds} simulated sessions: give more --worlds")
    words, rows = words_of(team.problem), []
    for part in play_parts(team, worlds, seed, tick, exact=0):
        found = statistics(as_played(team, part), words)
        rows.append(np.stack([statistic.values for statistic in found], axis=1))
    content = Reference(words, np.concatenate(rows), level).to_bytes()
    paths = [Path(folder) / name_of(crew(team).identity) for folder in folders]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
    return paths
