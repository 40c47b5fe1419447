"""The list of what is to be done, and the doing: by one process or several, here or on several machines."""

import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import NamedTuple

from icmape.errors import UserError
from icmape.reproduction.experiments import MAIN, Setting, setting
from icmape.reproduction.findings import analysis_name, make_analysis, make_certificate, make_sweep
from icmape.reproduction.limits import make_limit
from icmape.reproduction.plan import DONE, FAILED, Outcome, Plan
from icmape.reproduction.training import train_method

Tell = Callable[[str], None]


class Chain(NamedTuple):
    """What belongs together and is done in order by one process: a method's jobs, or a reference's."""

    setting: str
    role: str = ""  # of a method
    reference: str = ""

    def __str__(self) -> str:
        return f"{self.setting}/{self.role or self.reference}"


def chains(settings: list[Setting], plan: Plan) -> list[Chain]:
    """All of them; what takes longest first."""
    methods = [Chain(one.name, role=method.role) for one in settings for method in one.methods]
    rules = [Chain(one.name, reference=name) for one in settings for name in plan.scale(one).references]
    return sorted(methods, key=lambda chain: chain.role != MAIN) + rules


def work(chain: Chain, plan: Plan, tell: Tell | None = None) -> list[Outcome]:
    """Do a chain's jobs."""
    of = setting(chain.setting)
    jobs = _reference_jobs(of, chain.reference, plan) if chain.reference else _method_jobs(of, chain.role, plan)
    outcomes = []
    for name, job in jobs:
        began = time.monotonic()
        try:
            state, why = job()
        except (UserError, OSError, ValueError, FloatingPointError) as error:
            state, why = FAILED, str(error)
        outcomes.append(Outcome(name, state, why, time.monotonic() - began))
        _say(outcomes[-1], tell)
    return outcomes


def do_all(todo: Sequence[Chain], plan: Plan, workers: int = 1, tell: Tell | None = None) -> list[Outcome]:
    """Do chains, several at a time if there are several workers; each is a process of its own for one chain."""
    if workers <= 1 or len(todo) <= 1:
        return [outcome for chain in todo for outcome in work(chain, plan, tell)]
    outcomes: list[Outcome] = []
    context = multiprocessing.get_context("spawn")  # a copy of a process that computes with threads may hang
    with ProcessPoolExecutor(workers, mp_context=context, max_tasks_per_child=1) as pool:
        futures = [pool.submit(work, chain, plan) for chain in todo]
        try:
            for future in as_completed(futures):
                outcomes += future.result()
                for outcome in future.result():
                    _say(outcome, tell)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return outcomes


def part_of(todo: Sequence[Chain], part: str) -> list[Chain]:
    """The I-th of N shares, from "I/N": no chain is in two of them, so no file is written by two machines."""
    number, slash, count = part.partition("/")
    if not (slash and number.isdigit() and count.isdigit() and 1 <= int(number) <= int(count)):
        raise UserError(f"--part takes I/N, such as 1/4 for the first of four shares; given {part!r}")
    return list(todo[int(number) - 1 :: int(count)])


@contextmanager
def alone(plan: Plan, part: str) -> Iterator[None]:
    """Refuse a share that another process is doing in the same folder, or one of another division of the work.

    A dead process holds nothing.
    """
    try:
        import fcntl
    except ImportError:  # nothing to lock with on this system
        yield
        return
    plan.out.mkdir(parents=True, exist_ok=True)
    number, _, count = part.partition("/")
    with ExitStack() as files:
        for name in {f"{number}-of-{count}", *_others(plan, count)}:
            file = files.enter_context(open(plan.out / f".working-{name}.lock", "a"))
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                message = f"another process is at work in {plan.out} (share {name}): wait for it, or take another --out"
                raise UserError(message) from error
            if not name.endswith(f"-of-{count}"):  # only looked at
                fcntl.flock(file, fcntl.LOCK_UN)
        yield


def _others(plan: Plan, count: str) -> list[str]:
    """Shares of other divisions that somebody once did here."""
    names = [path.name.removeprefix(".working-").removesuffix(".lock") for path in plan.out.glob(".working-*.lock")]
    return [name for name in names if not name.endswith(f"-of-{count}")]


def _say(outcome: Outcome, tell: Tell | None) -> None:
    if tell and outcome.state in (DONE, FAILED):
        why = f" ({outcome.why})" if outcome.why else ""
        tell(f"{outcome.name}: {outcome.state}{why}, {outcome.seconds:.0f} s")


Job = Callable[[], tuple[str, str]]


def _method_jobs(of: Setting, role: str, plan: Plan) -> Iterator[tuple[str, Job]]:
    method = next(one for one in of.methods if one.role == role)
    scale, folder = plan.scale(of), plan.folder(of, method)
    yield f"{folder}/train", partial(train_method, of, method, plan)
    variants = ("", *(() if plan.quick else of.variants))
    for seed, variant in ((seed, variant) for seed in scale.seeds for variant in variants):
        yield analysis_name(folder, seed, variant), partial(make_analysis, of, method, plan, seed, variant)
    if role != MAIN:
        return
    for seed in scale.seeds:
        yield f"{folder}/certificate-{seed}.json", partial(make_certificate, of, method, plan, seed)
    for sweep in scale.sweeps:
        yield f"{folder}/robustness-{sweep.name}.json", partial(make_sweep, of, method, plan, sweep)


def _reference_jobs(of: Setting, name: str, plan: Plan) -> Iterator[tuple[str, Job]]:
    yield f"{plan.root(of)}/reference-{name}.json", partial(make_limit, of, name, plan)
