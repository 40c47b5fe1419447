"""How the work is done, and where what comes of it lies."""

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

SEED = 0  # of the worlds that are played in
THERE, DONE, NOT_RUN, FAILED = "there", "done", "not run", "failed"
NO_TEAM = "there is no team"


@dataclass(frozen=True)
class Plan:
    """How the work is done. Plain values: it travels to other processes."""

    out: Path
    base: Path | None = None
    quick: bool = False
    train: bool = False
    data: tuple[str, ...] = ()
    episodes: int | None = None  # instead of each setting's
    dry: bool = False  # only find out what is missing

    @property
    def store(self) -> Store:
        """Where results are."""
        return Store(self.out, self.base)

    def scale(self, of: Setting) -> Scale:
        """A setting's size."""
        found = of.scale(self.quick)
        if self.episodes is None:
            return found
        fewer = {
            name: min(getattr(found, name), self.episodes)
            for name in ("episodes", "sweep_episodes", "baseline_episodes")
        }
        return dataclasses.replace(found, **fewer)

    def root(self, of: Setting) -> str:
        """A setting's folder."""
        return of.name if self.quick else of.full.preset

    def folder(self, of: Setting, method: Method) -> str:
        """A method's folder."""
        return f"{self.root(of)}/{method.folder}"

    def changes(self, of: Setting) -> dict[str, Any]:
        """Arguments of its problem that this machine decides."""
        return {"data": list(self.data)} if of.needs_data and not self.quick and self.data else {}

    def data_digest(self, of: Setting) -> str:
        """What tells measurements from others; any, where they are not at hand."""
        if not of.needs_data or self.quick:
            return ""
        return paths_digest(self.data) if self.data else ANY

    def lacks(self, of: Setting) -> str:
        """Why its worlds cannot be drawn; empty if they can."""
        missing = of.needs_data and not self.quick and not self.data
        return "its measurements are not at hand (--data)" if missing else ""

    def hinders(self, of: Setting) -> str:
        """Why nothing is done about what is missing; empty if it may be."""
        return "missing" if self.dry else self.lacks(of)


def run_record(of: Setting, method: Method, plan: Plan) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """A run's metrics and settings; empty where they are not there."""
    metrics, config = (
        plan.store.find(f"{plan.folder(of, method)}/{name}") for name in ("metrics.jsonl", "config.json")
    )
    settings = ((read_json(config) if config else None) or {}).get("learning", {})
    return read_metrics(metrics) if metrics else [], settings


def trained_share(of: Setting, method: Method, plan: Plan) -> float | None:
    """How much of its planned training a run has had; none if there is no telling."""
    rows, settings = run_record(of, method, plan)
    if not rows or not settings:
        return None
    return float(max(row["iteration"] for row in rows) / settings["iterations"])


def own_seed(of: Setting, plan: Plan) -> int | None:
    """The seed of our team that stands for all: of the one that ships, if there is one, else the first."""
    files = team_files(of, of.main, plan)
    if not plan.quick and of.full.preset in pretrained():
        return int(about(of.full.preset).card.get("seed", -1))
    return next((seed for seed in plan.scale(of).seeds if seed in files), None)


class Outcome(NamedTuple):
    """What became of a job."""

    name: str
    state: str  # one of those above
    why: str = ""
    seconds: float = 0.0


def team_files(of: Setting, method: Method, plan: Plan) -> dict[int, Path]:
    """A method's trained teams by seed: of its run, or the one that ships."""
    found = {}
    if method.level is not None:
        return team_files(of, of.main, plan)
    if method.role == MAIN and not plan.quick and of.full.preset in pretrained():
        ours = about(of.full.preset)
        found[int(ours.card.get("seed", -1))] = ours.path
    for path in plan.store.names(f"{plan.folder(of, method)}/team-*.safetensors"):
        found[int(path.stem.removeprefix("team-"))] = path
    return found


@cache
def paths_digest(paths: tuple[str, ...]) -> str:
    """A hash of the content of files, and of all files in folders."""
    found = hashlib.sha256()
    for path in map(Path, paths):
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                found.update(file.read_bytes())
    return found.hexdigest()[:16]
