"""One query to the Water Quality Portal, with retries until the answer is complete."""

import logging
import random
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from icmape.errors import UserError
from icmape.zoo.hotspot.data.tables import NotAnExport, parse_table

LONGEST_PAUSE = 60.0
"""Seconds."""
COUNTS = {"Result": "Total-Result-Count", "Station": "Total-Site-Count"}
"""Table → the header in which the portal may say how many rows it sends."""


@dataclass(frozen=True)
class Connection:
    """Timeouts, retries and address of the portal."""

    timeout: float = 300.0
    """Seconds without a byte before an answer counts as stalled. The portal thinks long before it begins."""
    retries: int = 4
    """Attempts after the first."""
    pause: float = 2.0
    """Seconds before the second attempt; doubled each time, up to a minute."""
    url: str | None = None
    """Root of the portal, if not its own."""

    def __post_init__(self) -> None:
        if self.timeout <= 0 or self.retries < 0 or self.pause < 0:
            raise UserError(
                "timeout must be positive, retries and pause at least 0; given "
                f"timeout {self.timeout:g}, retries {self.retries}, pause {self.pause:g}"
            )
        if self.url is not None and not self.url.startswith(("http://", "https://")):
            raise UserError(f"the portal's address begins with http:// or https://; given {self.url!r}")


class Failure(Exception):
    """Why the portal gave no whole answer, in words."""


class _Retry(Exception):
    """An attempt that failed in a way that another may not."""

    def __init__(self, reason: str, wait: float | None = None, offline: bool = False):
        super().__init__(reason)
        self.wait, self.offline = wait, offline


def ask(
    table: str,
    parameters: dict[str, Any],
    service: str,
    connection: Connection,
    *,
    first: bool,
    tell: Callable[[str], None],
) -> tuple[bytes, int]:
    """The portal's whole answer and its number of rows, or Failure.

    With `first`, nothing has been heard of the portal yet: if it cannot be reached, it is not asked twice.
    """
    for attempt in range(connection.retries + 1):
        try:
            return _attempt(table, parameters, service, connection)
        except _Retry as failed:
            if failed.offline and first:
                raise Failure(f"no connection to the Water Quality Portal ({failed})") from failed
            if attempt == connection.retries:
                raise Failure(f"{failed}, at the last of {attempt + 1} attempts") from failed
            pause = min(LONGEST_PAUSE, failed.wait or connection.pause * 2**attempt * random.uniform(0.75, 1.25))
            tell(f"{failed}; trying again in {pause:.0f} s")
            time.sleep(pause)
    raise AssertionError("unreachable")


def _attempt(table: str, parameters: dict[str, Any], service: str, connection: Connection) -> tuple[bytes, int]:
    from dataretrieval import exceptions, utils

    try:
        with _configured(connection):
            # the newer service wants a list as a repeated key, the older one parted by semicolons
            response = utils.query(_url(table, service), parameters, None if service == "wqx3" else ";")  # type: ignore[arg-type]
    except exceptions.NetworkError as error:
        raise _network_trouble(error, connection) from error
    except exceptions.TransientError as error:
        raise _Retry(f"the portal answers with {_short(error)}", error.retry_after) from error
    except exceptions.DataRetrievalError as error:
        raise Failure(f"the portal refuses the query: {_short(error)}") from error
    return response.content, _count(table, response.content, response.headers.get(COUNTS[table]))


def import_quietly() -> None:
    """Import dataretrieval without its log message about geometries."""
    log = logging.getLogger("dataretrieval")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        import dataretrieval  # noqa: F401
    finally:
        log.setLevel(before)


def _url(table: str, service: str) -> str:
    from dataretrieval import wqp

    with warnings.catch_warnings():  # that each service has its faults is said in our words, once
        warnings.simplefilter("ignore")
        return wqp.wqx3_url(table) if service == "wqx3" else wqp.wqp_url(table)


@contextmanager
def _configured(connection: Connection) -> Iterator[None]:
    """dataretrieval with our timeout and address; it has no setting for the timeout."""
    import dataretrieval
    import httpx
    from dataretrieval import utils, wqp

    before = utils.HTTPX_DEFAULTS["timeout"]
    utils.HTTPX_DEFAULTS["timeout"] = httpx.Timeout(connection.timeout, connect=min(connection.timeout, 30.0))
    url = None if connection.url is None else connection.url.rstrip("/")
    address = wqp.WqpConfiguration() if url is None else wqp.WqpConfiguration(base_url=url)
    try:
        with dataretrieval.configure(address):
            yield
    finally:
        utils.HTTPX_DEFAULTS["timeout"] = before


def _network_trouble(error: Exception, connection: Connection) -> _Retry:
    import httpx

    cause = error.__cause__
    if isinstance(cause, httpx.ConnectError | httpx.ConnectTimeout):
        return _Retry(str(cause) or "connecting takes too long", offline=True)
    if isinstance(cause, httpx.TimeoutException):
        return _Retry(f"the portal sent nothing for {connection.timeout:g} s")
    if isinstance(cause, httpx.RemoteProtocolError):
        return _Retry("the portal's answer was cut off")
    return _Retry(f"the connection broke: {cause or error}")


def _short(error: Exception) -> str:
    """Without the address of several hundred letters."""
    return str(error).partition(" (URL:")[0]


def _count(table: str, body: bytes, promised: str | None) -> int:
    """Rows of an answer; _Retry unless it is whole."""
    if not body.strip() and promised == "0":
        return 0
    try:
        parsed = parse_table("the portal's answer", body)
    except NotAnExport as error:
        raise _Retry(
            f"the portal's answer is no table; it begins with {body[:40].decode(errors='replace')!r}"
        ) from error
    except UserError as error:
        raise _Retry(str(error).partition(";")[0]) from error
    if parsed.is_result != (table == "Result"):
        raise _Retry("the portal's answer is another table than was asked for")
    if parsed.broken and not body.endswith(b"\n"):
        raise _Retry("the portal's answer was cut off in the middle of a line")
    rows = len(parsed.rows) + len(parsed.broken)
    if promised is not None and promised.isdigit() and rows < int(promised):
        raise _Retry(f"the portal's answer was cut off: {rows:,} of {int(promised):,} rows")
    return rows
