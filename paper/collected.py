"""All results that are there, read once."""

from functools import cached_property
from typing import Any

from icmape.evaluation.analysis import Analysis
from paper.experiments import Method, Setting
from paper.findings import read_analysis, read_certificate, read_sweep
from paper.limits import Limit, read_limit
from paper.work_plan import Plan, own_seed, run_record

NOT_RUN = "not run"


class Results:
    """What is known of some settings. A method that was not run says so in the place of its teams."""

    def __init__(self, settings: list[Setting], plan: Plan):
        self.settings, self.plan = settings, plan

    @property
    def mark(self) -> str:
        """What every figure carries."""
        return "quick" if self.plan.quick else ""

    def title(self, setting: Setting) -> str:
        """What a setting is called; in small it is another problem, and says so."""
        if not self.plan.quick:
            return setting.title
        scale = self.plan.scale(setting)
        changed = "".join(f", {name} {value}" for name, value in scale.arguments.items())
        return f"{setting.short} in small ({scale.preset}{changed})"

    def teams(self, setting: Setting, method: Method, variant: str = "") -> list[Analysis]:
        """Analyses of all seeds that are there."""
        return [analysis for _, analysis in self.seeds(setting, method, variant)]

    def seeds(self, setting: Setting, method: Method, variant: str = "") -> list[tuple[int, Analysis]]:
        """The same with their seeds."""
        return self._analyses[setting.name, method.role, variant]

    @cached_property
    def _analyses(self) -> dict[tuple[str, str, str], list[tuple[int, Analysis]]]:
        analyses: dict[tuple[str, str, str], list[tuple[int, Analysis]]] = {}
        for setting in self.settings:
            for method in setting.methods:
                for variant in ("", *setting.variants):
                    rows = analyses.setdefault((setting.name, method.role, variant), [])
                    for seed in self.plan.scale(setting).seeds:
                        analysis = read_analysis(setting, method, self.plan, seed, variant)
                        if analysis is not None:
                            rows.append((seed, analysis))
        return analyses

    def metrics(self, setting: Setting, method: Method) -> list[dict[str, Any]]:
        """A run's training metrics."""
        return run_record(setting, method, self.plan)[0]

    def certificates(self, setting: Setting) -> dict[int, Any]:
        """Of our teams, by seed."""
        stored = {
            seed: read_certificate(setting, setting.main, self.plan, seed) for seed in self.plan.scale(setting).seeds
        }
        return {seed: certificate for seed, certificate in stored.items() if certificate is not None}

    def sweeps(self, setting: Setting) -> dict[str, Any]:
        """Of our team that stands for all: sweeps with their points, by name."""
        stored = {s.name: (s, read_sweep(setting, setting.main, self.plan, s)) for s in self.plan.scale(setting).sweeps}
        return {name: pair for name, pair in stored.items() if pair[1] is not None}

    def limit(self, setting: Setting, name: str) -> Limit | None:
        """What a baseline reaches."""
        return read_limit(setting, name, self.plan)

    def own(self, setting: Setting) -> tuple[int, Analysis] | None:
        """Our team that stands for all, with its seed."""
        seeds = dict(self.seeds(setting, setting.main))
        seed = own_seed(setting, self.plan)
        return (seed, seeds[seed]) if seed in seeds else next(iter(seeds.items()), None)
