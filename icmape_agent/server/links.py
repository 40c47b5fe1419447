"""Links: a random token for the coordinator and one for each agent, kept in the session's folder."""

import hmac
import json
import os
import secrets
from pathlib import Path
from typing import Any, NamedTuple

from icmape_agent.errors import UserError
from icmape_agent.session.journal import flush_folder

NAME = "links.json"
COORDINATOR = -1
"""The coordinator, among the numbers of agents."""
_BYTES = 24  # of a token: 192 random bits
_LETTERS = 32  # of its text


class Links(NamedTuple):
    """The tokens of a session."""

    coordinator: str
    agents: tuple[str, ...]

    def holder(self, token: str) -> int | None:
        """The agent of a token, or `COORDINATOR`; None for no token of this session.

        Every token is compared, each in a time that does not depend on the given text.
        """
        given, holder = token.encode("utf-8", "surrogatepass"), None
        for number, known in enumerate((self.coordinator, *self.agents), start=COORDINATOR):
            if hmac.compare_digest(given, known.encode()):
                holder = number
        return holder

    def path(self, holder: int) -> str:
        """The path of a page."""
        return f"/{self.coordinator if holder == COORDINATOR else self.agents[holder]}/"


def open_links(folder: Path, session: str, agents: int, *, renew: bool = False) -> Links:
    """The links of a session: those in its folder, or new ones where there are none or `renew` is set."""
    path = folder / NAME
    if path.exists() and not renew:
        return _read(path, session, agents)
    links = Links(_token(), tuple(_token() for _ in range(agents)))
    _write(path, {"session": session, "coordinator": links.coordinator, "agents": list(links.agents)})
    return links


def _token() -> str:
    return secrets.token_urlsafe(_BYTES)


def _read(path: Path, session: str, agents: int) -> Links:
    try:
        kept = json.loads(path.read_bytes())
        links = Links(kept["coordinator"], tuple(kept["agents"]))
        tokens = (links.coordinator, *links.agents)
        whole = all(isinstance(token, str) and token.isascii() and len(token) == _LETTERS for token in tokens)
        if not whole or len(set(tokens)) != agents + 1 or kept["session"] != session:
            raise ValueError("they are not those of this session")
        path.chmod(0o600)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(f"{path}: its links cannot be used ({error}): make new ones with --new-links") from error
    return links


def _write(path: Path, kept: dict[str, Any]) -> None:
    part = path.with_name(f".{NAME}.part")
    try:
        part.unlink(missing_ok=True)
        file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(file, "w", encoding="utf-8") as opened:
            json.dump(kept, opened, indent=1)
            opened.flush()
            os.fsync(opened.fileno())
        os.replace(part, path)
        flush_folder(path.parent)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from error
