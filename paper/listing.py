"""What a reproduction consists of: runs with their budgets and estimates, and what is missing."""

from icmape.plot.terminal import say
from paper.board import GIB, in_minutes
from paper.estimates import estimate, memory_needed
from paper.experiments import setting_named
from paper.work import Chain, work
from paper.work_plan import THERE, Plan


def list_work(todo: list[Chain], plan: Plan) -> int:
    """Print every chain in the order of its work: what is missing, and what a missing run takes."""
    for chain in todo:
        outcomes = work(chain, plan)
        missing = [outcome.name.rpartition("/")[2] for outcome in outcomes if outcome.state != THERE]
        size = f"; {budget_of(chain, plan)}" if "train" in missing else ""
        say(f"{chain}: {'missing ' + ', '.join(missing) if missing else 'there'}{size}")
    say(f"{len(todo)} chains of work: one process runs a chain, in order")
    return 0


def budget_of(chain: Chain, plan: Plan) -> str:
    """Worlds of a team, device memory and time of a run, in words."""
    setting = setting_named(chain.setting)
    method = setting.method(chain.role)
    assert method is not None
    size, memory = estimate(setting, method, plan), memory_needed(setting, method, plan)
    seeds = " ".join(map(str, plan.scale(setting).seeds))
    worlds = f"seeds {seeds}, {size.worlds / 1e6:.2f} M worlds"
    plan_too = f" and {size.plan_worlds / 1e6:.2f} M of the plan" if size.plan_worlds else ""
    device = f"; on an accelerator about {memory / GIB:.0f} GiB" if memory and not plan.quick else ""
    return worlds + plan_too + (f"{device}, {in_minutes(size.seconds)}" if device else "")
