"""What workers do in the place of work, which is slow: they are processes, so it must be found by its name.

As a program (`python -m tests.paper.standins FOLDER`), two workers sleep for as long as they are let.
"""

import os
import sys
import time
from pathlib import Path

from paper import queue, work
from paper.queue import Means
from paper.work import Chain
from paper.work_plan import DONE, Outcome, Plan

ONE, TWO, THREE = (Chain("nitrate", role=role) for role in ("random", "gp-map", "gp-map-top6"))
"""They have no plan, for which one would wait until another has found it."""


def always(chain: Chain, plan: Plan) -> bool:
    """There is something to do."""
    return True


def started(chain: Chain, plan: Plan) -> Path:
    """A file that says that a worker has begun."""
    return plan.out / f"{chain.role}.started"


def wait_for(path: Path, seconds: float = 60.0) -> None:
    """Until a file is there."""
    end = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < end, f"{path} does not come"
        time.sleep(0.01)


def sleep(chain: Chain, plan: Plan, **options: object) -> list[Outcome]:
    """Hold a chain, and do nothing else for ten minutes."""
    with work._alone(chain, plan) as free:
        assert free
        started(chain, plan).touch()
        time.sleep(600)
    return []


def die_or_go_on(chain: Chain, plan: Plan, **options: object) -> list[Outcome]:
    """The first dies as if for want of memory, while the second is at work."""
    if chain == ONE:
        wait_for(started(TWO, plan))
        os._exit(9)
    started(chain, plan).touch()
    time.sleep(0.5)
    return [Outcome(f"{chain}/train", DONE)]


def interrupt_or_sleep(chain: Chain, plan: Plan, **options: object) -> list[Outcome]:
    """The first is interrupted, as in training, while the second is at work."""
    if chain == ONE:
        wait_for(started(TWO, plan))
        raise KeyboardInterrupt
    return sleep(chain, plan)


if __name__ == "__main__":
    from tests.paper import standins  # not this module, which workers would call __main__

    work.work, work.has_work = standins.sleep, standins.always
    queue.do_all([ONE, TWO], Plan(Path(sys.argv[1])), Means(workers=2))
