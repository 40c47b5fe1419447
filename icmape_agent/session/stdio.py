"""A session on standard input and output: one JSON message a line, one JSON reply a line."""

import json
from collections.abc import Iterator
from typing import IO, Any

from icmape_agent.session.messages import Reply
from icmape_agent.session.session import Session

MOST_BYTES = 1_000_000  # of one message


def serve(session: Session, incoming: IO[bytes], outgoing: IO[bytes]) -> None:
    """Reply to every line until the input ends."""
    for line in _lines(incoming):
        if line is None:
            reply = _malformed(f"a message may have {MOST_BYTES} bytes; given was a longer line")
        elif not line.strip():
            continue
        else:
            reply = handle_text(session, line)
        outgoing.write(json.dumps(reply, allow_nan=False).encode() + b"\n")
        outgoing.flush()


def handle_text(session: Session, text: bytes | str, sender: int | None = None) -> Reply:
    """The reply to a message that is JSON text."""
    try:
        message = parse(text)
    except (ValueError, RecursionError) as error:
        return _malformed(f"a message is one JSON object a line: {error}")
    return session.handle(message, sender)


def parse(text: bytes | str) -> Any:
    """The JSON value of a text; ValueError for NaN, for infinity and for a name that occurs twice."""
    return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_object)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(names := dict(pairs)) != len(pairs):
        raise ValueError("a name occurs twice in an object")
    return names


def _malformed(text: str) -> Reply:
    return {"ok": False, "error": {"kind": "malformed", "text": text}}


def _lines(incoming: IO[bytes]) -> Iterator[bytes | None]:
    """The lines of the input; None for one that is too long."""
    while line := incoming.readline(MOST_BYTES + 1):
        if len(line) <= MOST_BYTES or line.endswith(b"\n"):
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = incoming.readline(MOST_BYTES + 1)
        yield None
