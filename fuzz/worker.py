"""A process that tries inputs, so that neither a crash nor a hang ends the whole.

It reads lines with a target and a number, and answers with a line for each; before the first of a target, with one more
that says that it is prepared.
"""

import contextlib
import json
import os
import resource
import sys
import warnings
from pathlib import Path
from typing import Any

MORE_ADDRESSES = 6 * 2**30
"""Bytes of address space that inputs may take beyond what the process has when it is ready."""
MORE_MEMORY = 2**30
"""Bytes of memory that one input may take."""


def main(seed: int, scratch: Path) -> None:
    """Answer until nothing more is asked."""
    answers = os.fdopen(os.dup(1), "w")
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
    warnings.simplefilter("ignore")
    sys.setrecursionlimit(1000)

    def answer(content: dict[str, Any]) -> None:
        answers.write(json.dumps(content) + "\n")
        answers.flush()

    from fuzz.cases import Target, attempt
    from fuzz.targets import TARGETS

    prepared: dict[str, Target] = {}
    os.chdir(scratch)
    for line in sys.stdin:
        asked = json.loads(line)
        name, number = asked["target"], asked["number"]
        if name not in prepared:
            folder = scratch / name
            folder.mkdir()
            _limit_addresses(None)
            prepared[name] = TARGETS[name].make(folder)
            attempt(prepared[name], name, seed, number)  # what is compiled and imported at first does not count
            _limit_addresses(MORE_ADDRESSES)
            answer({"mutations": list(prepared[name].mutations)})
        before = _peak()
        outcome = attempt(prepared[name], name, seed, number)
        if (taken := _peak() - before) > MORE_MEMORY:
            outcome = outcome._replace(kind="memory", words=f"{taken / 2**30:.1f} GiB; {outcome.words}")
        answer(outcome._asdict())


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _limit_addresses(more: int | None) -> None:
    most = resource.RLIM_INFINITY
    if more is not None:
        most = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + more
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
