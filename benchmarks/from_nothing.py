"""Ablations of learning without a teacher on bandit-quick: a JSON file, and a table in docs/results/ablations.md.

python -m benchmarks.from_nothing [--only NAME] [--seeds N ...] [--episodes N]

The default of bandit-quick, and the same with one thing changed at a time.
"""

import argparse
import json
import re
import time
from pathlib import Path
from typing import Any

import icmape
from benchmarks.timing import others_share
from icmape.io import circumstances, write_atomically

ROOT = Path(__file__).resolve().parents[1]
PRESET = "bandit-quick"
OUT = ROOT / "results" / PRESET / "from-nothing.json"
MARK = "<!-- table: python -m benchmarks.from_nothing -->"
FREE_AT_FIRST = {"dual": {"rule": "additive", "init": 0.0, "lr": 5e-3, "max": 0.1}}
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "default": ("default", {}),
    "long-returns": ("`gae_lambda` 0.95", {"algorithm.gae_lambda": 0.95}),
    "no-early-ends": ("no random terminations", {"algorithm.random_terminations": 0.0}),
    "no-temperature": ("no KL term on stopping", {"algorithm.stop_kl_coef": 0.0}),
    "price-from-0": ("ζ starts at 0, additive rule (as in version 0.7)", FREE_AT_FIRST),
    "no-plan": ("no plan: ζ and episode length from the horizon", {"plan": {"iterations": 0}}),
    "plan-not-followed": ("actors do not start from the plan", {"plan": {"follow_prob": 0.0}}),
    "confidence": ("potential: confidence only", {"algorithm.truth_weight": 0.0}),
    "no-least-say": ("`min_stop_prob` 0", {"algorithm.min_stop_prob": 0.0}),
    "not-behind": ("`min_round_weight` 0", {"algorithm.min_round_weight": 0.0}),
    "learned-posterior": ("reward from the inference network instead of exact Bayes", {"posterior": "network"}),
}


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.from_nothing", description="Ablations of learning without a teacher."
    )
    parser.add_argument("--only", choices=VARIANTS, action="append", help="one of them; may be repeated")
    parser.add_argument("--seeds", type=int, nargs="+", default=[215, 219, 321])
    parser.add_argument("--episodes", type=int, default=10_000)
    chosen = parser.parse_args()
    results: dict[str, Any] = json.loads(OUT.read_text())["variants"] if OUT.exists() and chosen.only else {}
    for name in chosen.only or VARIANTS:
        label, settings = VARIANTS[name]
        teams = [train_and_judge(seed, settings, chosen.episodes) for seed in chosen.seeds]
        results[name] = {"what": label, "settings": settings, "teams": teams, "at": circumstances()}
        print(
            name,
            [f"{team['accuracy']:.3f} at {team['tau']:.2f}, {team['seconds']:.0f} s" for team in teams],
            flush=True,
        )
        content = {"preset": PRESET, "episodes": chosen.episodes, "variants": results}
        write_atomically(OUT, json.dumps(content, indent=1, ensure_ascii=False).encode() + b"\n")
    write_table(ROOT / "docs" / "results" / "ablations.md", results)


def train_and_judge(seed: int, settings: dict[str, Any], episodes: int) -> dict[str, Any]:
    """One team, trained in a call of its own."""
    busy, began = others_share(), time.monotonic()
    team = icmape.train(PRESET, seeds=(seed,), progress=False, **settings)
    seconds = round(time.monotonic() - began, 1)
    judged = team.evaluate(episodes=episodes, seed=0)
    return {"seed": seed, "accuracy": judged.accuracy, "tau": judged.tau, "seconds": seconds, "others": busy}


def write_table(page: Path, results: dict[str, Any]) -> None:
    """The table in the page, between its mark and the next empty line but one."""
    rows = ["| | accuracy at τ, by seed | mean τ |", "|---|---|---|"]
    for name in VARIANTS:
        if name in results:
            teams = results[name]["teams"]
            cells = ", ".join(f"{team['accuracy']:.3f} at {team['tau']:.2f}" for team in teams)
            mean = sum(team["tau"] for team in teams) / len(teams)
            rows.append(f"| {results[name]['what']} | {cells} | {mean:.2f} |")
    table = "\n".join(rows)
    text = page.read_text()
    page.write_text(re.sub(rf"{re.escape(MARK)}\n(\n\|.*?\n)?(?=\n[^|]|\Z)", f"{MARK}\n\n{table}\n", text, flags=re.S))


if __name__ == "__main__":
    main()
