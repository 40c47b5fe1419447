"""HTTP connections that end when a request is too slow, too long or none, with one JSON error."""

import asyncio
import json
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0  # until a request's line and headers are there
MOST_CONNECTIONS = 500


class PatientProtocol(H11Protocol):
    """Uvicorn's protocol with a limit to its patience: by itself it waits for headers for ever."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Refuse the connection if there are too many."""
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            self._refuse(503, "too many connections: try again")
        else:
            self._watch()

    def data_received(self, data: bytes) -> None:
        """Read on."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Between two requests Uvicorn counts the seconds."""
        super().on_response_complete()
        self._unwatch()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self._unwatch()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Give a request that began a time for its headers; more bytes give it no more time."""
        idle = self.cycle is None or self.cycle.response_complete
        if not (idle and self.conn.their_state is h11.IDLE) or self.transport.is_closing():
            self._unwatch()
        elif self._waiting is None:
            self._waiting = self.loop.call_later(HEAD_SECONDS, self._late)

    def _unwatch(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _late(self) -> None:
        self._refuse(408, f"the request did not arrive within {HEAD_SECONDS:g} seconds")

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP request."""
        self._refuse(400, "this is no HTTP request")

    def _refuse(self, status: int, text: str) -> None:
        """One JSON error, and the end of the connection: of a request that is being served, too."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        body = json.dumps({"ok": False, "error": {"kind": "malformed", "text": text}}).encode()
        names = {b"content-type": b"application/json", b"connection": b"close", b"cache-control": b"no-store"}
        headers = [*names.items(), (b"x-content-type-options", b"nosniff"), (b"content-length", b"%d" % len(body))]
        try:
            for event in (h11.Response(status_code=status, headers=headers), h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        except h11.LocalProtocolError:  # a response was under way
            pass
        self.transport.close()
