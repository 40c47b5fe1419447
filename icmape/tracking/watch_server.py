"""The server of `icmape train --watch`: one page on this machine alone. Needs the extra `serve`."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from icmape.errors import UserError
from icmape.tracking.board import Board
from icmape_agent.look import stylesheet
from icmape_agent.server.gate import HEADERS

PAGES = Path(__file__).parent / "pages"
LOCAL = "127.0.0.1"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}


@contextmanager
def serving(board: Board, port: int) -> Iterator[str]:
    """Serve the page in a thread of its own; gives its address."""
    listening = _bound(port)
    config = uvicorn.Config(
        make_app(board), log_level="error", access_log=False, lifespan="off", ws="none", server_header=False
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: server.run(sockets=[listening]), name="watch", daemon=True)
    thread.start()
    try:
        yield f"http://{LOCAL}:{listening.getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join(timeout=5)
        listening.close()


def make_app(board: Board) -> Starlette:
    """The page and its data. Requests under another name than this machine's are refused: pages of others ask so."""

    async def state(request: Request) -> Response:
        text = request.query_params.get("after", "0")
        after = int(text) if text.isdecimal() and len(text) < 10 else 0
        return JSONResponse(board.state(after), headers=_headers())

    files = {"/": "watch.html", "/watch.css": "watch.css", "/watch.js": "watch.js"}
    routes = [Route(path, _file(name)) for path, name in files.items()]
    middleware = [Middleware(TrustedHostMiddleware, allowed_hosts=[LOCAL, "localhost"])]
    return Starlette(routes=[*routes, Route("/state", state)], middleware=middleware)


def _file(name: str) -> Any:
    path = PAGES / name
    content = path.read_bytes()
    content = stylesheet().encode() + content if path.suffix == ".css" else content

    async def endpoint(request: Request) -> Response:
        return Response(content, headers=_headers(), media_type=TYPES[path.suffix])

    return endpoint


def _headers() -> dict[str, str]:
    return {**HEADERS, "cache-control": "no-store"}


def _bound(port: int) -> socket.socket:
    """The socket, opened before training begins."""
    if not 0 <= port <= 65535:
        raise UserError(f"--watch-port must be 0..65535 (0: any free one); given {port}")
    listening = socket.socket(socket.AF_INET)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((LOCAL, port))
        listening.listen()  # who opens the page at once waits until the server has started
    except OSError as error:
        listening.close()
        raise UserError(f"port {port} cannot be opened ({error.strerror}): choose another --watch-port") from error
    return listening
