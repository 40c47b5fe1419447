"""Runs the server of a session until it is interrupted."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from icmape_agent.errors import UserError
from icmape_agent.server import protocol
from icmape_agent.server.app import make_app
from icmape_agent.server.links import COORDINATOR, open_links
from icmape_agent.server.protocol import PatientProtocol
from icmape_agent.server.service import Service
from icmape_agent.session import journal as journals
from icmape_agent.team import load

LOCAL = "127.0.0.1"
ANYWHERE = ("0.0.0.0", "::")
HOLD = 8.0  # seconds for which a page keeps a reading before it sends it
KEEP_ALIVE = 30  # seconds between two requests of a connection
MOST_HEAD = 16_384  # bytes of a request's line and headers


@dataclass(frozen=True)
class Serving:
    """What is served, and where."""

    team: str | None
    """A team file or a pretrained team's name; None: the team with which the session was started."""
    folder: Path
    host: str = LOCAL
    port: int = 8000
    certificate: Path | None = None
    key: Path | None = None
    new_links: bool = False
    url: str | None = None
    """The address in the links, where it is not that of this machine."""
    note: str = ""
    hold: float = HOLD


def given(source: str, folder: Path | None) -> tuple[str | None, Path]:
    """The team and the session's folder that the words of a command mean: TEAM --folder FOLDER, or FOLDER."""
    if (Path(source) / journals.NAME).is_file():
        if folder is not None and folder.resolve() != Path(source).resolve():
            raise UserError(f"{source} is a session, and --folder names another one ({folder}): leave out one of them")
        return None, Path(source)
    if Path(source).is_dir():
        raise UserError(f"{source} holds no session: to start one, name a team and --folder {source}")
    if folder is None:
        raise UserError("name the session's folder: --folder FOLDER (a new one starts a session)")
    return source, folder


def serve(serving: Serving, say: Callable[[str], None] = print) -> None:
    """Open or resume the session, print its links and serve them until SIGINT or SIGTERM."""
    certified = _check_certificate(serving)
    source = _team_of(serving)
    team = load(source)
    with _bound(serving) as listening, team.session(serving.folder, source=source, note=serving.note) as session:
        if session.torn:
            say(f"{session.torn} bytes of an unfinished last line were cut")
        links = open_links(serving.folder, session.header["session"], team.gate.sizes.agents, renew=serving.new_links)
        port = listening.getsockname()[1]
        base = (serving.url or address(serving.host, port, certified)).rstrip("/")
        service = Service(session, team, source, links, base, serving.hold)
        for line in told(service, serving, certified):
            say(line)
        with suppress(KeyboardInterrupt):  # Uvicorn raises it again when everything is closed
            server_of(make_app(service), serving).run(sockets=[listening])


class PatientServer(uvicorn.Server):
    """Ends connections whose TLS handshake is too slow: by itself asyncio waits a minute, and counts none of them."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve."""
        loop = asyncio.get_running_loop()
        if self.config.is_ssl:
            limited = partial(loop.create_server, ssl_handshake_timeout=protocol.HEAD_SECONDS)
            loop.create_server = limited  # type: ignore[method-assign]
        await super().startup(sockets=sockets)


def server_of(app: ASGIApp, serving: Serving) -> uvicorn.Server:
    """Uvicorn with limits, and without logs: their lines would hold tokens."""
    config = uvicorn.Config(
        app,
        loop="asyncio",
        http=PatientProtocol,
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,  # Uvicorn's own would close the handlers of the program that it runs in
        log_level="error",
        date_header=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=3,
        h11_max_incomplete_event_size=MOST_HEAD,
        ssl_certfile=serving.certificate,
        ssl_keyfile=serving.key,
    )
    return PatientServer(config)


def told(service: Service, serving: Serving, certified: bool) -> list[str]:
    """What is printed: one link for the coordinator and one for each agent."""
    word = service.team.described.display["agent"]
    agents = range(len(service.links.agents))
    lines = [
        f"session {service.session.header['session'][:8]} in {serving.folder}: {service.team!r}",
        "Each link is a key: give it to one person only.",
        f"  coordinator  {service.link(COORDINATOR)}",
        *(f"  {f'{word} {agent + 1}':<12} {service.link(agent)}" for agent in agents),
    ]
    if serving.host not in (LOCAL, "localhost", "::1") and not certified:
        lines.append(
            "Warning: without --certificate and --key everybody on this network can read links and readings, and pages "
            "cannot be opened again without a network."
        )
    return [*lines, "Serving until Ctrl-C. Links stay valid after a restart."]


def address(host: str, port: int, certified: bool) -> str:
    """The address of this machine for links."""
    name = socket.gethostname() if host in ANYWHERE else host
    shown = f"[{name}]" if ":" in name else name
    return f"http{'s' if certified else ''}://{shown}:{port}"


def _team_of(serving: Serving) -> str:
    """The team that was given, or that of the session in the folder."""
    source = serving.team or journals.source_of(serving.folder)
    if source is None:
        raise UserError(f"the journal in {serving.folder} does not say where its team is: name the team and --folder")
    return str(Path(source).resolve()) if Path(source).is_file() else source


def _check_certificate(serving: Serving) -> bool:
    """Whether there is a certificate. It is read before anything is opened."""
    certificate, key = serving.certificate, serving.key
    if (certificate is None) != (key is None):
        raise UserError("--certificate and --key belong together: give both (PEM files) or none")
    if certificate is None or key is None:
        return False
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise UserError(f"{certificate} and {key} are no certificate and its key in PEM: {error}") from error
    return True


def _bound(serving: Serving) -> socket.socket:
    """The socket, so that a port that is taken is told before a session is opened."""
    if not 0 <= serving.port <= 65535:
        raise UserError(f"--port must be 0..65535 (0: any free one); given {serving.port}")
    listening = socket.socket(socket.AF_INET6 if ":" in serving.host else socket.AF_INET)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((serving.host, serving.port))
        listening.listen()  # who opens a link at once waits until the server has started
    except OSError as error:
        listening.close()
        place = f"{serving.host}:{serving.port}"
        raise UserError(
            f"{place} cannot be opened ({error.strerror or error}): choose another --port or --host"
        ) from error
    return listening
