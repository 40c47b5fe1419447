"""`--watch`: a local page with the curves of a run while it trains."""

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from icmape.extras import extra_module
from icmape.learning.config import Config
from icmape.tracking.board import Board

PORT = 8765
log = logging.getLogger("icmape")


@contextmanager
def watching(
    folder: Path, config: Config, port: int, say: Callable[[str], None], *, resumed: bool = False
) -> Iterator[Board]:
    """Serve the page as long as the block lasts."""
    server = extra_module("icmape.tracking.watch_server", "serve", "--watch")
    board = Board(folder, config, resumed=resumed)
    log.addHandler(board)
    try:
        with server.serving(board, port) as address:
            say(f"live curves: {address} (on this machine)")
            yield board
    finally:
        log.removeHandler(board)


def stay(say: Callable[[str], None]) -> None:
    """On a terminal, keep the page until Ctrl-C; elsewhere a script goes on."""
    if not sys.stderr.isatty():
        return
    say("the page stays until Ctrl-C")
    with suppress(KeyboardInterrupt):
        while True:
            time.sleep(3600)
