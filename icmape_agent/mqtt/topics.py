"""Topics of a session. Names and numbers are levels of their own, so that a broker can give rights by them."""

import re
from typing import NamedTuple

from icmape_agent.errors import UserError

ROOT = "icmape"
NAMES = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class Topics(NamedTuple):
    """The topics of one session."""

    session: str

    @classmethod
    def of(cls, session: str) -> "Topics":
        """The topics of a session of this name."""
        if not NAMES.fullmatch(session):
            raise UserError(
                "the name of a session has 1 to 64 letters, digits, dots, hyphens and underscores, and begins with a "
                f"letter or a digit; given {session[:80]!r}"
            )
        return cls(session)

    @property
    def stop(self) -> str:
        """The public bit: retained, set once."""
        return f"{ROOT}/{self.session}/stop"

    def told(self, agent: int | str = "+") -> str:
        """Messages of an agent to the coordinator; `+` stands for any agent."""
        return f"{ROOT}/{self.session}/{agent}/told"

    def reply(self, agent: int) -> str:
        """Replies of the coordinator to one agent."""
        return f"{ROOT}/{self.session}/{agent}/reply"

    def sender(self, topic: str) -> int | None:
        """The agent whose messages come on a topic."""
        match = re.fullmatch(rf"{ROOT}/{re.escape(self.session)}/(0|[1-9][0-9]{{0,5}})/told", topic)
        return int(match[1]) if match else None
