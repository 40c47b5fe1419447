"""A Water Quality Portal of our own, on this machine, that can fail in all the ways of the real one."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

RESULT_HEADER = (
    "OrganizationIdentifier,ActivityStartDate,ActivityMediaName,MonitoringLocationIdentifier,ResultIdentifier,"
    "CharacteristicName,ResultMeasureValue,ResultMeasure/MeasureUnitCode,ProviderName\n"
)
STATION_HEADER = "MonitoringLocationIdentifier,LatitudeMeasure,LongitudeMeasure,ProviderName\n"


class Portal:
    """Answers each year with `rows` results. `faults` holds what goes wrong with the next requests, one each."""

    def __init__(self, url: str, rows: int):
        self.url, self.rows = url, rows
        self.faults: list[str] = []
        self.asked: list[tuple[str, dict[str, list[str]]]] = []
        self.over = threading.Event()

    def answer(self, path: str, query: dict[str, list[str]]) -> str:
        """The whole table."""
        year = int(query["startDateLo"][0][-4:])
        if "station" in path.lower().split("/")[-2]:
            return STATION_HEADER + "A,39.1,-76.5,NWIS\n"
        line = "ORG,{0}-06-{2:02d},Water,A,{0}-{1},Nitrate,{1}.5,mg/l as N,NWIS\n"
        return RESULT_HEADER + "".join(line.format(year, at, at % 28 + 1) for at in range(self.rows))


class Handler(BaseHTTPRequestHandler):
    portal: Portal

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = parse_qs(parts.query)
        self.portal.asked.append((parts.path, query))
        fault = self.portal.faults.pop(0) if self.portal.faults else ""
        body = self.portal.answer(parts.path, query).encode()
        if fault.isdigit():
            self.send_error(int(fault))
            return
        if fault == "stall":
            self.portal.over.wait(20)
            return
        if fault == "footer":
            body = body[: len(body) // 2].rpartition(b"\n")[0] + b"\nERROR: INCOMPLETE DATA - PLEASE RETRY\n"
        if fault == "page":
            body = b"<html><body>We are working on it</body></html>"
        count = body.count(b"\n") - 1
        self.send_response(200)
        if fault not in ("short line", "footer", "page"):
            self.send_header("Total-Result-Count" if "Result" in parts.path else "Total-Site-Count", str(count))
        if fault == "cut":  # fewer bytes than were promised
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if fault in ("cut", "short line"):
            body = body[: body.rindex(b"Nitrate") + 3]
        if fault == "rows":  # whole lines, but not all of them; only the count tells
            body = b"".join(body.splitlines(keepends=True)[:-2])
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Tests are quiet."""


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Clients that hang up are what we test."""


@contextmanager
def portal_here(rows: int = 5) -> Iterator[Portal]:
    """The portal, while the block lasts."""
    handler = type("OwnHandler", (Handler,), {})
    with Server(("127.0.0.1", 0), handler) as server:
        portal = handler.portal = Portal(f"http://127.0.0.1:{server.server_port}", rows)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield portal
        finally:
            portal.over.set()
            server.shutdown()
            thread.join()
