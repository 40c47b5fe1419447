"""Teams when readings get lost, agents fall silent and stop bits come late: results/unreliable.json.

python -m benchmarks.unreliable [--only TEAM ...] [--failures lost ...] [--data FOLDER] [--runs FOLDER] [--draw]

The shipped teams, none of which was trained with failures, are played at several rates. For lost readings, two runs of
bandit-quick with the same settings and seeds are compared: one trained without failures, one with `--lost 0.2`. They
are trained into --runs first, unless it holds them. "rounds" plays two teams whose networks read, or skip, the rounds
without a reading, whatever their problem says. --draw writes the figures, and the tables of
docs/results/unreliable.md, from the file alone.
"""

import argparse
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp

from benchmarks.timing import others_share
from icmape.cli import main as command
from icmape.evaluation.failures import LABELS, failure_curve
from icmape.evaluation.robustness import SweepPoint, sweep_point
from icmape.io import circumstances, write_atomically
from icmape.play.episodes import play
from icmape.play.team import Team
from icmape.play.team_files import load, pretrained
from icmape.plot.sweep_charts import lines
from icmape.problem import Features, Unreliable

ROOT = Path(__file__).resolve().parents[1]
FILE, PAGE = ROOT / "results" / "unreliable.json", ROOT / "docs" / "results" / "unreliable.md"
RATES = {"lost": (0.0, 0.05, 0.1, 0.2, 0.4), "silent": (0.0, 0.01, 0.03, 0.1), "late": (0.0, 0.1, 0.5, 1.0)}
TRAINING_LOSS, SEEDS, DELTA = 0.2, (215, 219, 321), 0.1
RUNS = {"without": [], "with": ["--lost", str(TRAINING_LOSS)]}
MARK = "<!-- tables: written by a command -->"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.unreliable", description="Teams under failures.")
    parser.add_argument("--only", nargs="+", choices=[*pretrained(), "trained", "rounds"], help="some of the teams")
    parser.add_argument("--failures", nargs="+", choices=list(RATES), default=list(RATES))
    parser.add_argument("--data", nargs="+", default=["data/wqp"], help="measurements of nitrate's worlds")
    parser.add_argument("--runs", type=Path, default=Path("runs/unreliable"), help="folder of the two runs")
    parser.add_argument("--episodes", type=int, default=2000, help="worlds a point")
    parser.add_argument("--draw", action="store_true", help="write figures and tables, play nothing")
    chosen = parser.parse_args()
    results: dict[str, Any] = json.loads(FILE.read_text()) if FILE.exists() else {"teams": {}, "trained": {}}
    if chosen.draw:
        draw(results)
        return
    for name in chosen.only or [*pretrained(), "trained", "rounds"]:
        if name == "trained":
            play_trained(results, chosen.runs, chosen.episodes)
            continue
        if name == "rounds":
            play_rounds(results, chosen.data, chosen.episodes)
            continue
        team = load_shipped(name, chosen.data)
        for failure in chosen.failures:
            entry = results["teams"].setdefault(name, {})
            entry[failure] = play_team(team, failure, chosen.episodes, entry.get(failure))
            write(results)


def load_shipped(name: str, data: list[str]) -> Team:
    """A shipped team, with its measurements if it needs some."""
    team = load(name)
    return load(name, data=data) if "data" in team.problem.unwrapped.LOCAL else team


class Reading(Unreliable):
    """Networks of agents read every round."""

    def features(self, memory: Any) -> Features:
        return super().features(memory)._replace(fresh=jnp.array(True))


class Skipping(Unreliable):
    """They skip rounds without a reading."""

    def features(self, memory: Any) -> Features:
        return super().features(memory)._replace(fresh=memory.arrived)


def play_rounds(results: dict[str, Any], data: list[str], episodes: int) -> None:
    """Accuracy and τ of two teams if their networks read, or skip, rounds without a reading."""
    for name in ("bandit-a3p5", "nitrate-n1"):
        team, rows = load_shipped(name, data), []
        for lost in (0.1, 0.4):
            for kind in (Reading, Skipping):
                played = play(replace(team, problem=kind(team.problem, lost=lost)), episodes, 0, exact=0)
                point = sweep_point({"lost": lost}, played, team.problem.horizon)
                rows.append({"rounds": kind.__name__.lower(), **point._asdict()})
                print(json.dumps(rows[-1]), flush=True)
        results.setdefault("rounds", {})[name] = {"points": rows, "seed": 0, "at": circumstances()}
        write(results)


def play_team(team: Team, failure: str, episodes: int, before: dict[str, Any] | None = None) -> dict[str, Any]:
    """A curve with its provenance; points of the same commit are kept."""
    at = circumstances()
    kept = before is not None and (before["at"]["commit"], before["episodes"]) == (at["commit"], episodes)
    known = points_of(before) if before is not None and kept else []
    points = [p._asdict() for p in failure_curve(team, failure, RATES[failure], episodes=episodes, known=known)]
    print(json.dumps(points), flush=True)
    return {"points": points, "episodes": episodes, "seed": 0, "others_share": others_share(), "at": at}


def play_trained(results: dict[str, Any], runs: Path, episodes: int) -> None:
    """Both runs, trained if they are not there, at every rate of lost readings."""
    for name, options in RUNS.items():
        paths = {seed: runs / name / f"team-{seed}.safetensors" for seed in SEEDS}
        if not all(path.exists() for path in paths.values()):
            seeds = ["--seeds", *map(str, SEEDS)]
            command(["train", "bandit-quick", *seeds, *options, "--out", str(runs / name), "--overwrite", "--quiet"])
        entry = results["trained"].setdefault(name, {})
        for seed, path in paths.items():
            team = load(path)
            played = play_team(team, "lost", episodes, entry.get(str(seed)))
            entry[str(seed)] = played | {"trained": json.loads(team.card)}
            write(results)


def write(results: dict[str, Any]) -> None:
    """The results file."""
    content = {"what": __doc__.split(":")[0], "delta": DELTA, "training_loss": TRAINING_LOSS, **results}
    write_atomically(FILE, json.dumps(content, indent=1, ensure_ascii=False).encode() + b"\n")


def points_of(entry: dict[str, Any]) -> list[SweepPoint]:
    """The points of a curve in the results file."""
    return [SweepPoint(**point) for point in entry["points"]]


def draw(results: dict[str, Any]) -> None:
    """A figure for each failure, one for the two runs, and the tables of the page."""
    tables = []
    for failure, label in LABELS.items():
        curves = {name: points_of(entry[failure]) for name, entry in results["teams"].items() if failure in entry}
        if curves:
            worlds = {points[0].episodes for points in curves.values()}
            below = f"shipped teams, trained without failures; {min(worlds):,} worlds a point, 95 % intervals"
            chart = lines(curves, label, DELTA, f"Shipped teams: {TITLES[failure]}", below)
            chart.save(ROOT / "results" / "figures" / f"unreliable-{failure}")
            tables.append(f"### {TITLES[failure].capitalize()}\n\n{table(curves, failure)}")
    curves = {
        f"trained {name}{f' {TRAINING_LOSS:.0%}' * (name == 'with')} loss, seed {seed}": points_of(entry)
        for name, seeds in results["trained"].items()
        for seed, entry in seeds.items()
    }
    if curves:
        title = "bandit-quick, trained with and without lost readings"
        chart = lines(curves, LABELS["lost"], DELTA, title, "2,000 worlds a point, 95 % intervals")
        chart.save(ROOT / "results" / "figures" / "unreliable-trained")
        tables.append(f"### Trained with loss\n\n{table(curves, 'lost')}")
    if tables and PAGE.exists():
        text, body = PAGE.read_text(), "\n\n".join(tables)
        PAGE.write_text(re.sub(rf"{re.escape(MARK)}.*", lambda _: f"{MARK}\n\n{body}\n", text, flags=re.S))


TITLES = {"lost": "lost readings", "silent": "silent agents", "late": "late stop bits"}


def table(curves: dict[str, list[SweepPoint]], failure: str) -> str:
    """Accuracy at τ for every team and rate."""
    rates = [point.changes[failure] for point in next(iter(curves.values()))]
    head = f"| team | {' | '.join(f'{rate:g}' for rate in rates)} |\n|---|{'---|' * len(rates)}"
    rows = [
        f"| {name} | {' | '.join(f'{p.accuracy:.3f} at {p.tau:.2f}' for p in points)} |"
        for name, points in curves.items()
    ]
    return "\n".join([head, *rows])


if __name__ == "__main__":
    main()
