"""A worker of a sweep: python -m icmape.sweeps OUT [--problem|--network.encoder|--teacher.policy module:Class ...]."""

import logging
import signal
import sys
from itertools import pairwise
from pathlib import Path
from types import FrameType

from icmape.compiling import use_compilation_cache
from icmape.errors import UserError, error_line, log_printable
from icmape.imports import named_code
from icmape.learning.interrupts import preempted_by_signal
from icmape.networks import name_encoder
from icmape.problem.entry import import_from_here
from icmape.sweeps.places import end_with_parent
from icmape.sweeps.pull import work


def main(arguments: list[str]) -> int:
    """Run the command and return the exit code."""
    log_printable(logging.INFO)
    signal.signal(signal.SIGTERM, _interrupt)  # between runs; in a run, it saves its state first
    preempted_by_signal()
    end_with_parent()
    try:
        if named := named_code(arguments):
            import_from_here()
        for flag, name in pairwise(arguments[1:]):
            if flag == "--network.encoder":
                name_encoder(name)
        use_compilation_cache()  # runs that differ in numbers only share their programs
        work(Path(arguments[0]), named)
        return 0
    except (UserError, OSError) as error:
        print(error_line(error), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
