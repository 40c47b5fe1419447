"""What was not run, in a line for each setting."""

from __future__ import annotations

from icmape.plot.episode_replay import capital
from paper.collected import Results
from paper.experiments import Setting


def not_run(results: Results, setting: Setting) -> str:
    """Methods without results, rules without results, and methods without curves; empty if nothing is missing."""
    methods = [method.label for method in setting.methods if not results.teams(setting, method)]
    names = dict.fromkeys((*results.plan.scale(setting).baselines, setting.schedule, setting.rule, setting.central))
    rules = [name for name in names if results.limit(setting, name) is None]
    sweeps = [sweep.name for sweep in results.plan.scale(setting).sweeps if sweep.name not in results.sweeps(setting)]
    kinds = {"methods": methods, "rules": rules, "sweeps": sweeps}
    listed = [f"{kind}: {'; '.join(found)}" for kind, found in kinds.items() if found]  # a name may have a comma
    return f"Not run for {setting.short}. {'. '.join(map(capital, listed))}." if listed else ""
