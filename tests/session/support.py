"""What tests of sessions share."""

from pathlib import Path
from typing import Any

from benchmarks.session_team import Coins, crew
from icmape_agent.session import Session, journal, open_session

COINS = Coins(agents=3, horizon=12, lead=3)


def opened(folder: Path, coins: Coins = COINS, **options: Any) -> Session:
    """A session of the coins."""
    return open_session(crew(coins), folder, **options)


def tell(agent: int = 0, number: int = 0, action: int = 1, reading: Any = 1, **more: Any) -> dict[str, Any]:
    """A message."""
    return {"type": "tell", "agent": agent, "round": number, "action": action, "reading": reading, **more}


def lines(session: Session) -> int:
    """How many lines its journal has."""
    return len(journal.read(session.folder / journal.NAME).lines)
