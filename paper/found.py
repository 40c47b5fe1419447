"""All results that are there, read once."""

from functools import cached_property
from typing import Any

from icmape.evaluation.analysis import Analysis
from paper.experiments import Method, Setting
from paper.findings import read_analysis, read_certificate, read_sweep
from paper.limits import Limit, read_limit
from paper.work_plan import Plan, own_seed, run_record

NOT_RUN = "not run"


class Found:
    """What is known of some settings. A method that was not run says so in the place of its teams."""

    def __init__(self, settings: list[Setting], plan: Plan):
        self.settings, self.plan = settings, plan

    @property
    def mark(self) -> str:
        """What every figure carries."""
        return "quick" if self.plan.quick else ""

    def title(self, of: Setting) -> str:
        """What a setting is called; in small it is another problem, and says so."""
        if not self.plan.quick:
            return of.title
        scale = self.plan.scale(of)
        changed = "".join(f", {name} {value}" for name, value in scale.arguments.items())
        return f"{of.short} in small ({scale.preset}{changed})"

    def teams(self, of: Setting, method: Method, variant: str = "") -> list[Analysis]:
        """Analyses of all seeds that are there."""
        return [one for _, one in self.seeds(of, method, variant)]

    def seeds(self, of: Setting, method: Method, variant: str = "") -> list[tuple[int, Analysis]]:
        """The same with their seeds."""
        return self._analyses[of.name, method.role, variant]

    @cached_property
    def _analyses(self) -> dict[tuple[str, str, str], list[tuple[int, Analysis]]]:
        found: dict[tuple[str, str, str], list[tuple[int, Analysis]]] = {}
        for of in self.settings:
            for method in of.methods:
                for variant in ("", *of.variants):
                    rows = found.setdefault((of.name, method.role, variant), [])
                    for seed in self.plan.scale(of).seeds:
                        one = read_analysis(of, method, self.plan, seed, variant)
                        if one is not None:
                            rows.append((seed, one))
        return found

    def metrics(self, of: Setting, method: Method) -> list[dict[str, Any]]:
        """A run's training metrics."""
        return run_record(of, method, self.plan)[0]

    def certificates(self, of: Setting) -> dict[int, Any]:
        """Of our teams, by seed."""
        found = {seed: read_certificate(of, of.main, self.plan, seed) for seed in self.plan.scale(of).seeds}
        return {seed: one for seed, one in found.items() if one is not None}

    def sweeps(self, of: Setting) -> dict[str, Any]:
        """Of our team that stands for all: sweeps with their points, by name."""
        found = {s.name: (s, read_sweep(of, of.main, self.plan, s)) for s in self.plan.scale(of).sweeps}
        return {name: pair for name, pair in found.items() if pair[1] is not None}

    def limit(self, of: Setting, name: str) -> Limit | None:
        """What a baseline reaches."""
        return read_limit(of, name, self.plan)

    def own(self, of: Setting) -> tuple[int, Analysis] | None:
        """Our team that stands for all, with its seed."""
        seeds = dict(self.seeds(of, of.main))
        seed = own_seed(of, self.plan)
        return (seed, seeds[seed]) if seed in seeds else next(iter(seeds.items()), None)
