"""`icmape reproduce --on PLACE`: shares of the work as workers elsewhere, by the engine of `icmape sweep`."""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from icmape.errors import UserError
from icmape.plot.terminal import say
from icmape.sweeps import places

OWN = {"--on": 1, "--shares": 1, "--parameters": None}  # flags and how many words follow; None: up to the next flag
LOOK_SECONDS = 2.0
WORK_LEFT = 3  # the exit code of a share whose time was over


def lead(args: argparse.Namespace, arguments: Sequence[str], out: Path) -> int:
    """Start a worker for each share, wait for all of them, and say how to draw; returns the exit code."""
    if args.part != "1/1":
        raise UserError("--on divides the work into shares: leave out --part")
    if args.pack or args.unpack:
        raise UserError("--pack and --unpack belong to one machine: leave them out with --on")
    out.mkdir(parents=True, exist_ok=True)
    parameters = places.parameters_of(args.parameters, "parameters")
    workers = places.start(args.on, shares(arguments, args.shares), out, parameters)
    try:
        told = -1
        while (alive := workers.alive()) > 0:
            if alive != told:
                say(f"{alive} of {args.shares} workers in {out}")
                told = alive
            time.sleep(LOOK_SECONDS)
    except BaseException:
        workers.stop()
        raise
    bad = [code for code in workers.codes() if code not in (0, WORK_LEFT)]
    if bad:
        codes = ", ".join(map(str, bad))
        say(f"{len(bad)} of {args.shares} workers failed (exit codes {codes}): see their logs in {out}")
    say("the same command without --on and --train draws the pages, and names what is missing")
    return 1 if bad else max(workers.codes(), default=0)


def shares(arguments: Sequence[str], count: int) -> list[places.Command]:
    """The command of each worker: the same without the flags of the leader, and its share."""
    kept, words, index = [], list(arguments), 0
    while index < len(words):
        flag, equals, _ = words[index].partition("=")
        index += 1
        if flag not in OWN:
            kept.append(words[index - 1])
            continue
        following = OWN[flag]
        if not equals and following:
            index += following
        while following is None and index < len(words) and not words[index].startswith("--"):
            index += 1
    return [("-m", "paper", *kept, "--part", f"{number}/{count}") for number in range(1, count + 1)]
