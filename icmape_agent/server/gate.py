"""The gate before all pages: who asks, how often, and what every reply says to browsers."""

import json
import logging
from collections.abc import Callable
from http import HTTPStatus

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from icmape_agent.server.limits import Rate, Refused
from icmape_agent.server.links import COORDINATOR, Links

log = logging.getLogger("icmape.server")

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
FAULT = "the server could not do this"
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "x-robots-tag": "noindex",
}
"""Headers of every reply. `cache-control` is `no-store`, unless a reply says something else."""


def error_reply(status: int, kind: str, text: str) -> Response:
    """One JSON error. The connection is closed, as the rest of a refused request is not read."""
    content = json.dumps({"ok": False, "error": {"kind": kind, "text": text}})
    return Response(content, status, {"connection": "close"}, "application/json")


class Gate:
    """Lets requests with a token through to the pages of its holder. A path is /TOKEN/PAGE."""

    def __init__(self, links: Links, pages: Callable[[int], ASGIApp], rate: Rate, heard: Callable[[int], None]):
        self.links, self.rate, self.heard = links, rate, heard
        self.pages = {holder: pages(holder) for holder in range(COORDINATOR, len(links.agents))}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request. Nothing that it holds raises an exception."""
        started = False

        async def send_safely(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started, message = True, {**message, "headers": _with_headers(message["headers"])}
            await send(message)

        try:
            await self._through(scope, receive, send_safely)
        except Refused as refused:
            await error_reply(refused.status, refused.kind, str(refused))(scope, receive, send_safely)
        except Exception as error:  # the path holds a token, so it is not logged
            log.error("a request could not be served: %s", type(error).__name__)
            if not started:
                await error_reply(500, "storage", FAULT)(scope, receive, send_safely)

    async def _through(self, scope: Scope, receive: Receive, send: Send) -> None:
        token, slash, rest = scope["path"].lstrip("/").partition("/")
        holder = self.links.holder(token)
        if holder is None:
            raise Refused(HTTPStatus.UNAUTHORIZED, "this link is not valid: ask for a new one", "forbidden")
        if not self.rate.take(holder):
            raise Refused(HTTPStatus.TOO_MANY_REQUESTS, "too many requests: wait a second", "storage")
        self.heard(holder)
        if not slash:
            relative = f"./{token}/"  # a proxy may serve this under another path
            await Response(status_code=307, headers={"location": relative})(scope, receive, send)
            return
        path = f"/{rest}"
        inside = {**scope, "path": path, "raw_path": path.encode("utf-8", "replace"), "root_path": ""}
        await self.pages[holder](inside, receive, send)


def _with_headers(given: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    names = {name for name, _ in given}
    wanted = {"cache-control": "no-store", **HEADERS}
    added = [(name.encode(), value.encode()) for name, value in wanted.items() if name.encode() not in names]
    return [*given, *added]
