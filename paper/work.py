"""The list of jobs, divided into chains, and how one process runs a chain."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import NamedTuple
from zlib import crc32

from icmape.errors import UserError
from icmape.io import make_folder
from icmape.learning.run import Callback
from icmape.locks import HeldError, locked
from paper.curves import curve_name, make_curve, make_rule_curve, rule_curve_name
from paper.experiments import LATER, MAIN, Method, Setting, setting_named
from paper.findings import analysis_name, make_analysis, make_certificate, make_sweep
from paper.limits import make_limit
from paper.training import train_method
from paper.work_plan import DONE, FAILED, THERE, Outcome, Plan, team_files

TRAIN, JUDGE = "train", "judge"  # the parts of a method's chain
Tell = Callable[[str], None]
Job = Callable[[], tuple[str, str]]


class Chain(NamedTuple):
    """Jobs that one process runs in order: those of a method, or of a baseline."""

    setting: str
    role: str = ""  # of a method
    baseline: str = ""

    def __str__(self) -> str:
        return f"{self.setting}/{self.role}" if self.role else f"{self.setting}/rule {self.baseline}"


def chains(settings: list[Setting], plan: Plan, roles: Sequence[str] = ()) -> list[Chain]:
    """All chains, those of most value first; with `roles` only these methods and trials, and no rules.

    "td3" is a method of all settings that have it, "signal/td3" that of one.
    """
    methods = [
        Chain(setting.name, role=method.role)
        for setting in settings
        for method in (*setting.methods, *(setting.trials if roles else ()))
        if method.level is None and (not roles or {method.role, f"{setting.name}/{method.role}"} & set(roles))
    ]
    found = {name for chain in methods for name in (chain.role, str(chain))}
    if unknown := [role for role in roles if role not in found]:
        known = sorted({method.role for setting in settings for method in (*setting.methods, *setting.trials)})
        raise UserError(f"--methods {unknown[0]}: these settings have no such method; they have {', '.join(known)}")
    rules = [Chain(setting.name, baseline=name) for setting in settings for name in plan.scale(setting).baselines]
    return sorted(methods, key=value) + ([] if roles else rules)


def value(chain: Chain) -> int:
    """The place of a chain in the order of the work: ours, the paper's rivals, its ablations, trials, rules."""
    method = setting_named(chain.setting).method(chain.role)
    if method is None:
        return 4
    if method in setting_named(chain.setting).trials:
        return 3
    return 0 if chain.role == MAIN else 2 if chain.role in LATER else 1


def work(
    chain: Chain, plan: Plan, tell: Tell | None = None, part: str = "", callback: Callback | None = None
) -> list[Outcome]:
    """Run the jobs of a chain, or of a part of it, unless another process runs them."""
    setting = setting_named(chain.setting)
    jobs = (
        _baseline_jobs(setting, chain.baseline, plan)
        if chain.baseline
        else _method_jobs(setting, chain.role, plan, callback)
    )
    outcomes = []
    with _alone(chain, plan) as free:
        for name, job in jobs:
            if not plan.wants(name) or (part and part != (TRAIN if name.endswith("/train") else JUDGE)):
                continue
            began = time.monotonic()
            state, why = _attempt(job) if free else (FAILED, "another process is at work on it")
            outcomes.append(Outcome(name, state, why, time.monotonic() - began))
            say_outcome(outcomes[-1], tell)
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


def has_work(chain: Chain, plan: Plan) -> bool:
    """Whether results are missing that can be computed."""
    if plan.lacks(setting_named(chain.setting)):
        return False
    missing = [outcome.name for outcome in work(chain, replace(plan, dry=True)) if outcome.state != THERE]
    untrained = any(name.endswith("/train") for name in missing)
    return bool(missing) and (plan.train or plan.quick or not untrained)


def part_of(todo: Sequence[Chain], part: str) -> list[Chain]:
    """The I-th of N disjoint shares, from "I/N".

    A chain's share depends on its name alone, so machines may work on different settings.
    """
    number, slash, count = part.partition("/")
    if not (slash and number.isdigit() and count.isdigit() and 1 <= int(number) <= int(count)):
        raise UserError(f"--part takes I/N, such as 1/4 for the first of four shares; given {part!r}")
    return [chain for chain in todo if crc32(str(chain).encode()) % int(count) == int(number) - 1]


def say_outcome(outcome: Outcome, tell: Tell | None) -> None:
    """Tell what was done or failed."""
    if tell and outcome.state in (DONE, FAILED):
        why = f" ({outcome.why})" if outcome.why else ""
        tell(f"{outcome.name}: {outcome.state}{why}, {outcome.seconds:.0f} s")


def _method_jobs(setting: Setting, role: str, plan: Plan, callback: Callback | None) -> Iterator[tuple[str, Job]]:
    method = setting.method(role)
    assert method is not None
    scale, folder = plan.scale(setting), plan.folder(setting, method)
    yield f"{folder}/train", partial(train_method, setting, method, plan, callback)
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
