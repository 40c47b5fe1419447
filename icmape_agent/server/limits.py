"""What a request may take: bytes, seconds, and how many there may be in a second."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from starlette.requests import ClientDisconnect, Request

MOST_BYTES = 100_000  # of a request's body
BODY_SECONDS = 10.0  # until it is there


class Refused(Exception):
    """A request that is refused before a session sees it: a status and one sentence."""

    def __init__(self, status: int, text: str, kind: str = "malformed"):
        super().__init__(text)
        self.status, self.kind = status, kind


@dataclass
class Rate:
    """Requests of one link: `burst` at once, then so many a second. Each link has its own."""

    per_second: float = 20.0
    burst: float = 200.0
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._left: dict[int, tuple[float, float]] = {}

    def take(self, holder: int) -> bool:
        """Whether one more request of a link is within its rate."""
        now = self.clock()
        left, since = self._left.get(holder, (self.burst, now))
        left = min(self.burst, left + (now - since) * self.per_second)
        self._left[holder] = (left - 1 if left >= 1 else left), now
        return left >= 1


async def read_json_text(request: Request) -> bytes:
    """The body of a request that is JSON; `Refused` if it is too long, too slow or of another kind."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refused(415, "a message is sent as application/json")
    length = request.headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()) or int(length[:20]) > MOST_BYTES:
        raise _too_long()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await _whole_body(request)
    except TimeoutError as error:
        raise Refused(408, f"the message did not arrive within {BODY_SECONDS:g} seconds") from error
    except ClientDisconnect as error:
        raise Refused(400, "the connection was closed before the message was whole") from error


async def _whole_body(request: Request) -> bytes:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            raise _too_long()
    return bytes(body)


def _too_long() -> Refused:
    return Refused(413, f"a message may have {MOST_BYTES:,} bytes")
