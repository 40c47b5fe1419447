"""Rounds of which a reading never came, or in which an agent did nothing."""

import numpy as np

from icmape_agent.errors import UserError


def check_marks(acted: np.ndarray, arrived: np.ndarray) -> None:
    """Raise `UserError` for a reading of an agent that did nothing."""
    if np.any(arrived & ~acted):
        raise UserError("a reading needs an action: where an action is None, its reading must be None too")


def refuse_missing(part: str) -> None:
    """Raise the error for a team whose program needs every reading; `part` is "agent" or "inference"."""
    raise UserError(
        f"the {part} program in this team's file takes no missing readings; if an older version wrote the file, "
        "`icmape export TEAM --to light --out FILE` writes it again"
    )


def refuse_after_stop(agent: int, number: int) -> None:
    """Raise the error for a miss of the round in which an agent stops."""
    raise UserError(f"agent {agent} stops in round {number}: after STOP there is no reading to miss")
