"""Trackers and the live page of `icmape train` and `icmape resume`."""

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Literal

from icmape.learning.config import Config
from icmape.learning.run import Progress, Run
from icmape.plot.terminal import say
from icmape.tracking import Tracking
from icmape.tracking.board import Board
from icmape.tracking.watch import stay, watching

TrackerName = Literal["tensorboard", "wandb", "trackio"]
TRACK_HELP = "Log the run to these trackers, each an extra of its name: tensorboard, wandb, trackio."
WATCH_HELP = "Serve a page with live curves on this machine (needs icmape[serve])."
PORT_HELP = "Port of that page; 0 takes a free one."


@dataclasses.dataclass
class Following:
    """Who follows a run."""

    tracking: Tracking
    board: Board | None

    def report(self, progress: Progress) -> None:
        """One report of the training."""
        if self.board is not None:
            self.board.report(progress)
        self.tracking.report(progress)

    def finish(self, run: Run, curves: Path | None) -> None:
        """The run is over, its files are written."""
        self.tracking.finish(run, {"curves": curves})
        if self.board is not None:
            self.board.end("finished" if run.finished else "interrupted" if run.interrupted else "not finished")

    def stay(self, run: Run) -> None:
        """Keep the page of a run that nobody interrupted."""
        if self.board is not None and not run.interrupted:
            stay(say)


@contextmanager
def following(
    folder: Path, config: Config, trackers: Sequence[str], port: int | None, *, resumed: bool = False
) -> Iterator[Following]:
    """Follow a run with these trackers, and with a page at `port` unless that is None."""
    tracking = Tracking(folder, trackers, resumed=resumed)
    page = nullcontext() if port is None else watching(folder, config, port, say, resumed=resumed)
    with page as board:
        try:
            yield Following(tracking, board)
        finally:
            tracking.close()
