"""All stored results of some settings, read once."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, TypeVar

from icmape.evaluation.analysis import Analysis
from icmape.evaluation.certificate import Certificate
from icmape.evaluation.stop_curves import StopCurve
from paper.curves import read_curve, read_rule_curve
from paper.experiments import Method, Setting
from paper.findings import read_analysis, read_certificate, read_sweep
from paper.limits import Limit, read_limit
from paper.work_plan import Plan, own_seed, run_record

NOT_RUN = "not run"
Key = TypeVar("Key")
Value = TypeVar("Value")


class Results:
    """Results of several settings. Methods that were not run have no teams."""

    def __init__(self, settings: list[Setting], plan: Plan):
        self.settings, self.plan, self.quick = settings, plan, plan.quick
        self.mark = "quick" if plan.quick else ""  # printed on every figure

    def printed(self, values: Mapping[Key, Value], key: Key, default: Value) -> Value:
        """A value that the paper prints; the default in quick runs, which use other problems."""
        return default if self.quick else values.get(key, default)

    def title(self, setting: Setting) -> str:
        """Title of a setting; quick runs name the smaller problem."""
        if not self.quick:
            return setting.title
        scale = self.plan.scale(setting)
        changed = "".join(f", {name} {value}" for name, value in scale.arguments.items())
        return f"{setting.short} in small ({scale.preset}{changed})"

    def short(self, setting: Setting) -> str:
        """Short title of a setting."""
        return setting.short if not self.quick else f"{setting.short} in small"

    def teams(self, setting: Setting, method: Method, variant: str = "") -> list[Analysis]:
        """Stored analyses of all seeds."""
        return [analysis for _, analysis in self.seeds(setting, method, variant)]

    def seeds(self, setting: Setting, method: Method, variant: str = "") -> list[tuple[int, Analysis]]:
        """Stored analyses of all seeds, with the seeds."""
        return self._analyses[setting.name, method.role, variant]

    @cached_property
    def _analyses(self) -> dict[tuple[str, str, str], list[tuple[int, Analysis]]]:
        return {
            (setting.name, method.role, variant): [
                (seed, analysis)
                for seed in self.plan.scale(setting).seeds
                if (analysis := read_analysis(setting, method, self.plan, seed, variant)) is not None
            ]
            for setting in self.settings
            for method in setting.methods
            for variant in ("", *setting.variants)
        }

    def metrics(self, setting: Setting, method: Method) -> list[dict[str, Any]]:
        """Training metrics of a run."""
        return run_record(setting, method, self.plan)[0]

    def certificates(self, setting: Setting) -> dict[int, Certificate]:
        """Certificates of our teams, by seed."""
        stored = {
            seed: read_certificate(setting, setting.main, self.plan, seed) for seed in self.plan.scale(setting).seeds
        }
        return {seed: certificate for seed, certificate in stored.items() if certificate is not None}

    def sweeps(self, setting: Setting) -> dict[str, Any]:
        """Sweeps of our representative team with their points, by name."""
        stored = {s.name: (s, read_sweep(setting, setting.main, self.plan, s)) for s in self.plan.scale(setting).sweeps}
        return {name: pair for name, pair in stored.items() if pair[1] is not None}

    def limit(self, setting: Setting, name: str) -> Limit | None:
        """Result of a baseline."""
        return read_limit(setting, name, self.plan)

    def curves(self, setting: Setting, method: Method) -> list[StopCurve]:
        """Stored curves of all seeds that have one."""
        seeds = self.plan.scale(setting).seeds
        return [curve for seed in seeds if (curve := read_curve(setting, method, self.plan, seed)) is not None]

    def rule_curve(self, setting: Setting, name: str) -> StopCurve | None:
        """The stored curve of a baseline."""
        return read_rule_curve(setting, name, self.plan)

    def representative(self, setting: Setting) -> tuple[int, Analysis] | None:
        """Our representative team, with its seed."""
        seeds = dict(self.seeds(setting, setting.main))
        seed = own_seed(setting, self.plan)
        return (seed, seeds[seed]) if seed in seeds else next(iter(seeds.items()), None)
