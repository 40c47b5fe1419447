"""Pages and messages of a session, as a Starlette application for each holder of a link."""

import hashlib
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from icmape_agent.javascript import RUNTIME_FILE
from icmape_agent.look import stylesheet
from icmape_agent.server.gate import FAULT, Gate, error_reply
from icmape_agent.server.limits import Rate, Refused, read_json_text
from icmape_agent.server.links import COORDINATOR
from icmape_agent.server.service import Service, as_json
from icmape_agent.session import handle_text

PAGES = Path(__file__).parent / "pages"
STYLES = "page.css"
SHARED = (STYLES, "icon.svg", "views.js")
AGENT_FILES = (*SHARED, "acting.js", "outbox.js", "fields.js", "agent.js", "worker.js")
COORDINATOR_FILES = (*SHARED, "coordinator.js")
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
}
STATUS = {"malformed": 400, "refused": 422, "conflict": 409, "forbidden": 403, "early": 409, "storage": 503}
"""The HTTP status of a reply that refuses a message."""
Endpoint = Callable[[Request], Awaitable[Response]]


def make_app(service: Service, rate: Rate | None = None) -> ASGIApp:
    """The whole application. It knows of a request's holder by the token in the path, and of nobody else."""

    def pages(holder: int) -> ASGIApp:
        return coordinator_app(service) if holder == COORDINATOR else agent_app(service, holder)

    return Gate(service.links, pages, rate or Rate(), service.heard)


def agent_app(service: Service, agent: int) -> ASGIApp:
    """Pages of one agent: its program, its own entries, the stop bit."""
    return _app(
        [
            *_files("agent.html", AGENT_FILES),
            Route("/icmape.js", _fixed(RUNTIME_FILE.read_bytes(), ".js")),
            Route("/team.json", _fixed(service.program, ".json")),
            Route("/about.json", _replies(lambda request: service.about_agent(agent))),
            Route("/state", _replies(lambda request: service.agent_state(agent))),
            Route("/messages", _messages(service, agent), methods=["POST"]),
        ]
    )


def coordinator_app(service: Service) -> ASGIApp:
    """Pages of the coordinator."""
    return _app(
        [
            *_files("coordinator.html", COORDINATOR_FILES),
            Route("/about.json", _replies(lambda request: service.about())),
            Route("/state", _replies(lambda request: service.state())),
            Route("/answer", _replies(lambda request: service.answer("early" in request.query_params))),
            Route("/journal", _download(service)),
            Route("/messages", _messages(service, None), methods=["POST"]),
        ]
    )


def _app(routes: list[Route]) -> ASGIApp:
    kinds: tuple[type[Exception], ...] = (HTTPException, Refused, Exception)
    return Starlette(routes=routes, exception_handlers=dict.fromkeys(kinds, _not_served))


async def _not_served(request: Request, error: Exception) -> Response:
    """One JSON error, whatever went wrong."""
    if isinstance(error, Refused):
        return error_reply(error.status, error.kind, str(error))
    status = error.status_code if isinstance(error, HTTPException) else 500
    text = {404: "there is no such page", 405: "this page takes no such request"}.get(status, FAULT)
    return error_reply(status, "storage" if status >= 500 else "malformed", text)


def _messages(service: Service, sender: int | None) -> Endpoint:
    """Messages to the session, of one sender."""

    async def endpoint(request: Request) -> Response:
        text = await read_json_text(request)
        reply = await run_in_threadpool(handle_text, service.session, text, sender)
        status = 200 if reply["ok"] else STATUS[reply["error"]["kind"]]
        return Response(as_json(reply), status, media_type="application/json")

    return endpoint


def _replies(make: Callable[[Request], dict[str, Any]]) -> Endpoint:
    """JSON that is made for each request."""

    async def endpoint(request: Request) -> Response:
        reply = await run_in_threadpool(make, request)
        status = 200 if reply.get("ok", True) else STATUS[reply["error"]["kind"]]
        return Response(as_json(reply), status, media_type="application/json")

    return endpoint


def _download(service: Service) -> Endpoint:
    """The journal as a file."""

    async def endpoint(request: Request) -> Response:
        content = await run_in_threadpool(service.journal)
        name = f"journal-{service.session.header['session'][:8]}.jsonl"
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return Response(content, headers=headers, media_type="application/x-ndjson")

    return endpoint


def _files(page: str, names: tuple[str, ...]) -> list[Route]:
    """A page at /, and the files that it loads."""
    listed = [Route(f"/{name}", _fixed(_content(name), Path(name).suffix)) for name in names]
    return [Route("/", _fixed(_content(page), ".html")), *listed]


@cache
def _content(name: str) -> bytes:
    content = (PAGES / name).read_bytes()
    return stylesheet().encode() + content if name == STYLES else content


def _fixed(content: bytes, suffix: str) -> Endpoint:
    """A file that browsers may keep, and ask for again by its tag."""
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = {"etag": tag, "cache-control": "private, no-cache", "content-type": TYPES[suffix]}

    async def endpoint(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers)

    return endpoint
