"""The connection to a broker: it is made again by itself whenever it breaks."""

import logging
import os
import secrets
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from icmape_agent.errors import UserError

PORT, TLS_PORT = 1883, 8883
SLOWEST = 30  # seconds between two attempts to connect, at most
USERNAME, PASSWORD = "ICMAPE_MQTT_USERNAME", "ICMAPE_MQTT_PASSWORD"
log = logging.getLogger("icmape")
Received = Callable[[str, bytes], None]


@dataclass(frozen=True)
class Broker:
    """Where a broker is, and how to be let in. With a CA file, or `tls`, the connection is encrypted."""

    host: str
    port: int
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: bool = False
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    @classmethod
    def at(
        cls,
        address: str,
        *,
        username: str | None = None,
        password_file: Path | None = None,
        tls: bool = False,
        ca: Path | None = None,
        certificate: Path | None = None,
        key: Path | None = None,
    ) -> "Broker":
        """From HOST or HOST:PORT. User name and password may also come from the environment."""
        tls = tls or ca is not None or certificate is not None
        host, port = _host_and_port(address, TLS_PORT if tls else PORT)
        for path in (ca, certificate, key, password_file):
            if path is not None and not path.is_file():
                raise UserError(f"{path} is no file: give the one that the broker's keeper gave you")
        name = username if username is not None else os.environ.get(USERNAME)
        word = os.environ.get(PASSWORD) if password_file is None else _first_line(password_file)
        if word is not None and name is None:
            raise UserError(f"a password needs a user name: give --username NAME, or set {USERNAME}")
        return cls(host, port, name, word, tls, ca, certificate, key)

    def __str__(self) -> str:
        """HOST:PORT."""
        return f"{self.host}:{self.port}"


def _host_and_port(address: str, port: int) -> tuple[str, int]:
    host, colon, number = address.rpartition(":")
    if not colon or address.endswith("]") or (":" in host and not host.startswith("[")):  # no port, or a bare IPv6
        host, number = address, str(port)
    host = host.strip("[]")
    if not host or not number.isascii() or not number.isdigit() or not 0 < int(number) < 65536:
        raise UserError(f"a broker is HOST or HOST:PORT, with a port in 1..65535; given {address!r}")
    return host, int(number)


def _first_line(path: Path) -> str:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"the password cannot be read from {path}: {error}") from error
    if not lines or not lines[0]:
        raise UserError(f"the first line of {path} must be the password; it is empty")
    return lines[0]


class Link:
    """A client of a broker in a thread of its own, which calls `received(topic, payload)` and `connected()`."""

    def __init__(
        self,
        broker: Broker,
        name: str,
        topics: Sequence[str],
        received: Received,
        connected: Callable[[], None] = lambda: None,
    ):
        self.broker, self.topics, self.refused = broker, list(topics), ""
        """Why the broker does not let this client in."""
        self._received, self._connected = received, connected
        self.online, self.joined, self.let_in = threading.Event(), threading.Event(), threading.Event()
        """Whether there is a connection, whether the topics were ever subscribed to, and whether there ever was one."""
        self._client = self._made(_paho(), name)

    def _made(self, mqtt: Any, name: str) -> Any:
        number = f"{name}-{secrets.token_hex(8)}"  # a client with a known id could be pushed out by any user
        client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=number, clean_session=True)
        client.reconnect_delay_set(1, SLOWEST)
        if self.broker.username is not None:
            client.username_pw_set(self.broker.username, self.broker.password)
        if self.broker.tls:
            client.tls_set_context(_tls(self.broker))
        client.on_connect, client.on_disconnect = self._on_connect, self._on_disconnect
        client.on_message, client.on_subscribe = self._on_message, self._on_subscribe
        return client

    def open(self) -> None:
        """Begin to connect; a broker that is not there yet is waited for."""
        self._client.connect_async(self.broker.host, self.broker.port, keepalive=20)
        self._client.loop_start()

    def publish(self, topic: str, payload: bytes, retain: bool = False) -> bool:
        """Hand a message to the broker (QoS 1). Returns False while there is no connection."""
        client = self._client  # None once the link is closed: a message may still come in
        if client is None or not self.online.is_set():
            return False
        client.publish(topic, payload, qos=1, retain=retain)
        return True

    def look_again(self, topic: str) -> None:
        """Ask for the retained message of a topic once more, in case it was lost."""
        client = self._client
        if client is not None and self.online.is_set():
            client.subscribe(topic, qos=1)

    def renew(self) -> None:
        """Break the connection, so that it is made anew.

        Client and broker wait for the receipts of 20 messages at most, and repeat messages in new connections only: a
        connection in which so many were lost passes no more.
        """
        client = self._client
        connection = None if client is None else client.socket()
        if connection is not None:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End the connection, after what was handed over is out."""
        client, self._client = self._client, None  # which frees its sockets
        client.disconnect()
        client.loop_stop()
        self.online.clear()
        client.on_connect = client.on_disconnect = client.on_message = client.on_subscribe = None

    def check(self) -> None:
        """Raise `UserError` if the broker does not let this client in, and never did: later that may pass."""
        if self.refused and not self.let_in.is_set():
            raise UserError(
                f"the broker {self.broker} refuses this client ({self.refused}): check user name and password"
            )

    def _on_connect(self, client: Any, data: Any, flags: Any, code: Any, properties: Any) -> None:
        if code.is_failure:
            before, self.refused = self.refused, str(code) if str(code) in REFUSALS else ""
            if self.let_in.is_set() and self.refused and not before:
                log.warning("the broker %s refuses this client (%s): trying again", self.broker, self.refused)
            return
        self.refused = ""
        self.let_in.set()
        client.subscribe([(topic, 1) for topic in self.topics])
        self.online.set()
        self._connected()

    def _on_disconnect(self, client: Any, data: Any, flags: Any, code: Any, properties: Any) -> None:
        self.online.clear()

    def _on_subscribe(self, client: Any, data: Any, number: Any, codes: Any, properties: Any) -> None:
        self.joined.set()

    def _on_message(self, client: Any, data: Any, message: Any) -> None:
        self._received(message.topic, bytes(message.payload))


REFUSALS = ("Not authorized", "Bad user name or password", "Banned", "Client identifier not valid")


def _tls(broker: Broker) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=None if broker.ca is None else str(broker.ca))
        if broker.certificate is not None:
            context.load_cert_chain(str(broker.certificate), None if broker.key is None else str(broker.key))
    except (ssl.SSLError, OSError) as error:
        raise UserError(f"the certificates for {broker} cannot be used: {error}") from error
    return context


def _paho() -> Any:
    try:
        from paho.mqtt import client
    except ImportError as error:
        raise UserError("MQTT needs paho-mqtt, which is not installed: pip install 'icmape-agent[mqtt]'") from error
    if not hasattr(client, "CallbackAPIVersion"):
        raise UserError("MQTT needs version 2 of paho-mqtt, and an older one is installed: pip install 'paho-mqtt>=2'")
    return client
