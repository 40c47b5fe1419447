"""Options of a reproduction, and the folders of its results."""

import dataclasses
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from icmape.evaluation.results import ANY, Store, read_json
from icmape.learning.run_files import read_metrics
from icmape.play.team_files import about, pretrained
from paper.experiments import MAIN, Method, Scale, Setting

SEED = 0  # of the worlds
THERE, DONE, NOT_RUN, FAILED = "there", "done", "not run", "failed"
NO_TEAM = "there is no team"
LATE = "the time was over; the same command continues"


@dataclass(frozen=True)
class Plan:
    """Options of a reproduction. All values can be pickled."""

    out: Path
    base: Path | None = None
    quick: bool = False
    train: bool = False
    data: tuple[str, ...] = ()
    episodes: int | None = None  # upper limit
    dry: bool = False  # only list what is missing
    only: tuple[str, ...] = ()  # parts of the names of the results to compute; empty: all
    fresh: bool = False  # teams that ship are not taken for ours

    @property
    def shipped(self) -> bool:
        """Whether pretrained teams count as ours."""
        return not (self.quick or self.fresh)

    @property
    def store(self) -> Store:
        """Storage of results."""
        return Store(self.out, self.base)

    def scale(self, setting: Setting) -> Scale:
        """Size of a setting."""
        scale = setting.scale(self.quick)
        if self.episodes is None:
            return scale
        fewer = {
            name: min(getattr(scale, name), self.episodes)
            for name in ("episodes", "sweep_episodes", "baseline_episodes", "curve_episodes", "certificate_worlds")
        }
        return dataclasses.replace(scale, **fewer)

    def root(self, setting: Setting) -> str:
        """A setting's folder."""
        return setting.name if self.quick else setting.full.preset

    def folder(self, setting: Setting, method: Method) -> str:
        """A method's folder."""
        return f"{self.root(setting)}/{method.folder}"

    def changes(self, setting: Setting) -> dict[str, Any]:
        """Arguments of the problem that depend on this machine."""
        return {"data": list(self.data)} if setting.needs_data and not self.quick and self.data else {}

    def data_digest(self, setting: Setting) -> str:
        """Hash of the measurements; `ANY` if they are not available."""
        if not setting.needs_data or self.quick:
            return ""
        return paths_digest(self.data) if self.data else ANY

    def wants(self, name: str) -> bool:
        """Whether a result is to be computed."""
        return not self.only or any(part in name for part in self.only)

    def lacks(self, setting: Setting) -> str:
        """Why the setting's worlds cannot be drawn; empty if they can."""
        missing = setting.needs_data and not self.quick and not self.data
        return "its measurements are not at hand (--data)" if missing else ""

    def hinders(self, setting: Setting) -> str:
        """Why missing results are not computed; empty if they are."""
        return "missing" if self.dry else self.lacks(setting)


def run_record(setting: Setting, method: Method, plan: Plan) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Metrics and settings of a run; empty if they are missing."""
    metrics, config = (
        plan.store.find(f"{plan.folder(setting, method)}/{name}") for name in ("metrics.jsonl", "config.json")
    )
    settings = ((read_json(config) if config else None) or {}).get("learning", {})
    return read_metrics(metrics) if metrics else [], settings


def trained_share(setting: Setting, method: Method, plan: Plan) -> float | None:
    """Share of the planned iterations that a run has completed; none if unknown."""
    rows, settings = run_record(setting, method, plan)
    if not rows or not settings:
        return None
    return float(max(row["iteration"] for row in rows) / settings["iterations"])


def own_seed(setting: Setting, plan: Plan) -> int | None:
    """Seed of our representative team: that of the pretrained one, if there is one, else the first."""
    files = team_files(setting, setting.main, plan)
    if plan.shipped and setting.full.preset in pretrained():
        return int(about(setting.full.preset).card.get("seed", -1))
    return next((seed for seed in plan.scale(setting).seeds if seed in files), None)


class Outcome(NamedTuple):
    """Outcome of a job."""

    name: str
    state: str  # one of those above
    why: str = ""
    seconds: float = 0.0


def team_files(setting: Setting, method: Method, plan: Plan) -> dict[int, Path]:
    """Team files of a method by seed, with the pretrained one."""
    files = {}
    if method.level is not None:
        return team_files(setting, setting.main, plan)
    if method.role == MAIN and plan.shipped and setting.full.preset in pretrained():
        shipped = about(setting.full.preset)
        files[int(shipped.card.get("seed", -1))] = shipped.path
    for path in plan.store.names(f"{plan.folder(setting, method)}/team-*.safetensors"):
        files[int(path.stem.removeprefix("team-"))] = path
    return files


@cache
def paths_digest(paths: tuple[str, ...]) -> str:
    """Hash of the content of files, and of all files in folders."""
    digest = hashlib.sha256()
    for path in map(Path, paths):
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
