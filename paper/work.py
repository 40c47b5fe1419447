"""The list of jobs, and how they are run: in one process or several, on one machine or several."""

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from multiprocessing.process import BaseProcess
from typing import NamedTuple
from zlib import crc32

from icmape.errors import UserError
from icmape.io import make_folder
from icmape.locks import HeldError, locked
from paper.curves import curve_name, make_curve, make_rule_curve, rule_curve_name
from paper.experiments import MAIN, Method, Setting, setting_named
from paper.findings import analysis_name, make_analysis, make_certificate, make_sweep
from paper.limits import make_limit
from paper.training import train_method
from paper.work_plan import DONE, FAILED, THERE, Outcome, Plan, team_files

ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"
COMPILE_FAST = "--xla_backend_optimization_level=1 --xla_llvm_disable_expensive_passes=true"  # for runs of a minute
Tell = Callable[[str], None]
Job = Callable[[], tuple[str, str]]


class Chain(NamedTuple):
    """Jobs that one process runs in order: those of a method, or of a baseline."""

    setting: str
    role: str = ""  # of a method
    baseline: str = ""

    def __str__(self) -> str:
        return f"{self.setting}/{self.role}" if self.role else f"{self.setting}/rule {self.baseline}"


def chains(settings: list[Setting], plan: Plan) -> list[Chain]:
    """All chains; the longest ones first."""
    methods = [
        Chain(setting.name, role=method.role)
        for setting in settings
        for method in setting.methods
        if method.level is None
    ]
    rules = [Chain(setting.name, baseline=name) for setting in settings for name in plan.scale(setting).baselines]
    return sorted(methods, key=lambda chain: chain.role != MAIN) + rules


def work(chain: Chain, plan: Plan, tell: Tell | None = None) -> list[Outcome]:
    """Run the jobs of a chain, unless another process runs them."""
    setting = setting_named(chain.setting)
    jobs = _baseline_jobs(setting, chain.baseline, plan) if chain.baseline else _method_jobs(setting, chain.role, plan)
    outcomes = []
    with _alone(chain, plan) as free:
        for name, job in jobs:
            if not plan.wants(name):
                continue
            began = time.monotonic()
            state, why = _attempt(job) if free else (FAILED, "another process is at work on it")
            outcomes.append(Outcome(name, state, why, time.monotonic() - began))
            _say(outcomes[-1], tell)
    return outcomes


def _attempt(job: Job) -> tuple[str, str]:
    """Run a job. Any error is a failure of this job alone; an interruption ends all jobs."""
    try:
        return job()
    except Exception as error:
        return FAILED, str(error) or type(error).__name__


@contextmanager
def _alone(chain: Chain, plan: Plan) -> Iterator[bool]:
    """Lock a chain; yields whether it is free. The lock of a dead process is released."""
    if plan.dry:  # nothing is written
        yield True
        return
    folder, name = plan.out / ".working", str(chain).replace("/", "-").replace(" ", "-")
    make_folder(folder)
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(folder / f"{name}.lock", str(chain)))
            free = True
        except HeldError:
            free = False
        yield free


def do_all(todo: Sequence[Chain], plan: Plan, workers: int = 1, tell: Tell | None = None) -> list[Outcome]:
    """Run chains, with one process per chain if there are several workers."""
    heavy = [chain for chain in todo if _has_work(chain, plan)] if workers > 1 else []
    light = [chain for chain in todo if chain not in heavy]
    outcomes = [outcome for chain in light for outcome in work(chain, plan, tell)]
    if not heavy:
        return outcomes
    with ThreadPoolExecutor(workers) as pool:
        futures = {pool.submit(_work_apart, chain, plan): chain for chain in heavy}
        try:
            for future in as_completed(futures):
                finished = _result(future, futures[future])
                outcomes += finished
                for outcome in finished:
                    _say(outcome, tell)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            _end_workers(list(futures))
            raise
    return outcomes


def _has_work(chain: Chain, plan: Plan) -> bool:
    """Whether results are missing that can be computed."""
    if plan.lacks(setting_named(chain.setting)):
        return False
    missing = [outcome.name for outcome in work(chain, replace(plan, dry=True)) if outcome.state != THERE]
    untrained = any(name.endswith("/train") for name in missing)
    return bool(missing) and (plan.train or plan.quick or not untrained)


def _work_apart(chain: Chain, plan: Plan) -> list[Outcome]:
    """Run a chain in its own process. Its death does not affect other chains."""
    context = multiprocessing.get_context("spawn")  # a forked process with threads may hang
    with ProcessPoolExecutor(1, mp_context=context, initializer=_follow, initargs=(os.getpid(), plan.quick)) as pool:
        return pool.submit(work, chain, plan).result()


def _end_workers(futures: Sequence[Future[list[Outcome]]]) -> None:
    """Terminate every worker once. One that trains saves its state first."""
    terminated: set[BaseProcess] = set()
    while not all(future.done() for future in futures):  # a worker may still be starting
        for child in set(multiprocessing.active_children()) - terminated:
            child.terminate()
            terminated.add(child)
        time.sleep(0.1)


def _result(future: Future[list[Outcome]], chain: Chain) -> list[Outcome]:
    """Outcomes of a worker. A worker that died, for example out of memory, has failed."""
    error = future.exception()
    if error is None:
        return future.result()
    if isinstance(error, KeyboardInterrupt):
        raise error
    return [Outcome(str(chain), FAILED, f"its process ended: {str(error) or type(error).__name__}")]


def _follow(parent: int, quick: bool) -> None:
    """Set up a worker: one thread, and an exit when the parent process ends."""
    flags = (os.environ.get("XLA_FLAGS"), ONE_THREAD, COMPILE_FAST if quick else None)
    os.environ["XLA_FLAGS"] = " ".join(filter(None, flags))

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def part_of(todo: Sequence[Chain], part: str) -> list[Chain]:
    """The I-th of N disjoint shares, from "I/N".

    A chain's share depends on its name alone, so machines may work on different settings.
    """
    number, slash, count = part.partition("/")
    if not (slash and number.isdigit() and count.isdigit() and 1 <= int(number) <= int(count)):
        raise UserError(f"--part takes I/N, such as 1/4 for the first of four shares; given {part!r}")
    return [chain for chain in todo if crc32(str(chain).encode()) % int(count) == int(number) - 1]


def _say(outcome: Outcome, tell: Tell | None) -> None:
    if tell and outcome.state in (DONE, FAILED):
        why = f" ({outcome.why})" if outcome.why else ""
        tell(f"{outcome.name}: {outcome.state}{why}, {outcome.seconds:.0f} s")


def _method_jobs(setting: Setting, role: str, plan: Plan) -> Iterator[tuple[str, Job]]:
    method = next(candidate for candidate in setting.methods if candidate.role == role)
    scale, folder = plan.scale(setting), plan.folder(setting, method)
    yield f"{folder}/train", partial(train_method, setting, method, plan)
    variants = ("", *(() if plan.quick else setting.variants))
    for seed, variant in ((seed, variant) for seed in scale.seeds for variant in variants):
        yield analysis_name(folder, seed, variant), partial(make_analysis, setting, method, plan, seed, variant)
    yield from _curve_jobs(setting, method, plan)
    if role != MAIN:
        return
    for seed in scale.seeds:
        yield f"{folder}/certificate-{seed}.json", partial(make_certificate, setting, method, plan, seed)
    for other in (candidate for candidate in setting.methods if candidate.level is not None):  # the same teams
        for seed in scale.seeds:
            yield (
                analysis_name(plan.folder(setting, other), seed),
                partial(make_analysis, setting, other, plan, seed, ""),
            )
        yield from _curve_jobs(setting, other, plan)
    for sweep in scale.sweeps:
        yield f"{folder}/robustness-{sweep.name}.json", partial(make_sweep, setting, method, plan, sweep)


def _curve_jobs(setting: Setting, method: Method, plan: Plan) -> Iterator[tuple[str, Job]]:
    """Of the teams that are there: others are not in the tables of equal accuracy."""
    for seed in plan.scale(setting).seeds:
        if seed in team_files(setting, method, plan):
            yield curve_name(plan.folder(setting, method), seed), partial(make_curve, setting, method, plan, seed)


def _baseline_jobs(setting: Setting, name: str, plan: Plan) -> Iterator[tuple[str, Job]]:
    yield f"{plan.root(setting)}/baseline-{name}.json", partial(make_limit, setting, name, plan)
    yield rule_curve_name(plan.root(setting), name), partial(make_rule_curve, setting, name, plan)
