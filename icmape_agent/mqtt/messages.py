"""Messages on the wire: JSON, with the team that an agent acts with beside its message."""

import json
from typing import Any

from icmape_agent.session.stdio import MOST_BYTES, parse


def pack(team: str, message: dict[str, Any]) -> bytes:
    """A message of an agent."""
    return json.dumps({"team": team, "message": message}, allow_nan=False, separators=(",", ":")).encode()


def unpack(payload: bytes) -> tuple[Any, Any]:
    """The team and the message of a payload. Raises ValueError if it holds none."""
    if len(payload) > MOST_BYTES:
        raise ValueError(f"a message may have {MOST_BYTES} bytes; given were {len(payload)}")
    try:
        value = parse(payload)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"a message is one JSON object: {error}") from error
    if not isinstance(value, dict) or set(value) != {"team", "message"}:
        raise ValueError('a message is {"team": …, "message": …}')
    return value["team"], value["message"]


def reply_of(payload: bytes) -> Any:
    """The JSON value of a reply; None if it is none."""
    try:
        return parse(payload[:MOST_BYTES])
    except (ValueError, RecursionError):
        return None
