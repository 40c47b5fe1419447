"""A server in a thread, and what asks it."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import icmape_agent
from icmape_agent.display import Display, describe_display
from icmape_agent.server.app import make_app
from icmape_agent.server.limits import Rate
from icmape_agent.server.links import COORDINATOR, open_links
from icmape_agent.server.run import Serving, server_of
from icmape_agent.server.service import Service
from icmape_agent.session import Session

TEAM = "bandit-quick"
FREELY = 1e9  # requests that no rate refuses


@cache
def team(name: str = TEAM) -> icmape_agent.Team:
    return icmape_agent.load(name)


@dataclass
class Reply:
    """A reply, to the last byte."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Running:
    """A server that runs."""

    service: Service
    port: int

    @property
    def session(self) -> Session:
        return self.service.session

    def path(self, holder: int = COORDINATOR) -> str:
        return self.service.links.path(holder)

    def url(self, holder: int = COORDINATOR) -> str:
        return self.service.link(holder)

    def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Reply:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)) as connection:
            connection.request(method, path, body, headers or {})
            reply = connection.getresponse()
            return Reply(reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read())

    def get(self, page: str = "", holder: int = COORDINATOR) -> Reply:
        return self.ask("GET", self.path(holder) + page)

    def send(self, message: Any, holder: int = COORDINATOR) -> Reply:
        headers = {"Content-Type": "application/json"}
        return self.ask("POST", self.path(holder) + "messages", json.dumps(message), headers)

    def raw(self, data: bytes, wait: float = 5.0) -> bytes:
        """All that comes back for some bytes."""
        with closing(socket.create_connection(("127.0.0.1", self.port), timeout=wait)) as connection:
            connection.sendall(data)
            received = b""
            while part := connection.recv(65536):
                received += part
            return received


def shown_as(name: str, display: Display) -> icmape_agent.Team:
    """A team that people see in another way."""
    light = team(name)
    described = light.described._replace(display=describe_display(display))
    return icmape_agent.Team(described, light.delta, light.identity)


@contextmanager
def running(
    folder: Path,
    name: str = TEAM,
    hold: float = 0.3,
    rate: float = FREELY,
    display: Display | None = None,
    port: int = 0,
) -> Iterator[Running]:
    """A server of a session in a folder."""
    serving, served = Serving(name, folder, port=0), team(name) if display is None else shown_as(name, display)
    with served.session(folder) as session, closing(socket.socket()) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((serving.host, port))
        links = open_links(folder, session.header["session"], served.gate.sizes.agents)
        base = f"http://127.0.0.1:{listening.getsockname()[1]}"
        service = Service(session, served, name, links, base, hold)
        server = server_of(make_app(service, Rate(rate, rate)), serving)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield Running(service, listening.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join(timeout=10)
            assert not thread.is_alive()


def tell(agent: int, number: int, action: int = 0, reading: Any = 1, **more: Any) -> dict[str, Any]:
    return {"type": "tell", "agent": agent, "round": number, "action": action, "reading": reading, **more}
