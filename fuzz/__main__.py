"""`python -m fuzz`: try malformed inputs, count what comes of them, and fail on any fault."""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from fuzz.cases import FAULTS, Outcome, attempt, make
from fuzz.pool import Job, run_all
from fuzz.tables import write_results
from fuzz.targets import TARGETS

TURNS = 20
"""Of each target."""


def jobs(names: list[str], inputs: int) -> Iterator[Job]:
    """All inputs, in turns of the targets: whenever time ends, all had their share."""
    total = sum(TARGETS[name].share for name in names)
    done = Counter[str]()
    while sum(done.values()) < inputs:
        for name in names:
            turn = max(1, round(inputs * TARGETS[name].share / total / TURNS))
            for _ in range(min(turn, inputs - sum(done.values()))):
                yield Job(name, done[name])
                done[name] += 1


def one(name: str, seed: int, number: int) -> int:
    """Try one input in this process, and show it."""
    with tempfile.TemporaryDirectory(prefix="icmape-fuzz-") as scratch:
        os.chdir(scratch)
        folder = Path(scratch) / name
        folder.mkdir()
        target = TARGETS[name].make(folder)
        mutation, case = make(target, name, seed, number)
        outcome = attempt(target, name, seed, number)
    print(f"{name}:{number}, {mutation}\n{str(case.given)[:5000]}\n{outcome.kind}\n{outcome.words}")
    return int(outcome.kind in FAULTS)


def main(words: list[str]) -> int:
    """Run; 1 if there was a fault."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=6000, help="how many in all (default 6000)")
    parser.add_argument("--seconds", type=float, default=1200.0, help="time after which no input is begun (1200)")
    parser.add_argument("--workers", type=int, default=2, help="processes (2)")
    parser.add_argument("--seed", type=int, default=0, help="of the mutations (0)")
    parser.add_argument(
        "--targets", nargs="+", choices=list(TARGETS), default=list(TARGETS), metavar="NAME", help=", ".join(TARGETS)
    )
    parser.add_argument("--case", help="TARGET:NUMBER: one input, shown with what comes of it")
    parser.add_argument("--out", type=Path, help="write the counts to this JSON file")
    parser.add_argument("--page", type=Path, help="write the table into this page")
    args = parser.parse_args(words)
    if args.case:
        name, _, number = args.case.partition(":")
        return one(name, args.seed, int(number))
    began, outcomes, faults = time.monotonic(), Counter[tuple[str, str, str]](), list[tuple[Job, Outcome]]()

    def tell(job: Job, outcome: Outcome) -> None:
        outcomes[job.target, outcome.mutation, outcome.kind] += 1
        if (count := sum(outcomes.values())) % 500 == 0:
            print(f"{count:,} inputs, {time.monotonic() - began:.0f} s", flush=True)
        if outcome.kind in FAULTS:
            faults.append((job, outcome))
            print(f"{job} {outcome.kind} ({outcome.mutation}): {outcome.words[-600:]}", flush=True)

    print(f"seed {args.seed}; one input again: python -m fuzz --seed {args.seed} --case TARGET:NUMBER", flush=True)
    run_all(jobs(args.targets, args.inputs), args.seed, args.workers, began + args.seconds, tell)
    seconds = time.monotonic() - began
    write_results(outcomes, seconds, args.seed, args.out, args.page)
    kinds = Counter[str]()
    for (_, _, kind), count in outcomes.items():
        kinds[kind] += count
    counts = ", ".join(f"{count:,} {kind}" for kind, count in sorted(kinds.items()))
    print(f"{sum(kinds.values()):,} inputs in {seconds:.0f} s: {counts}")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
