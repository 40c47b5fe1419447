"""What the front page and the result pages say is what the files in results/ say."""

import csv
import json
import math
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from icmape.evaluation.certificate import Certificate
from icmape.evaluation.equal_accuracy import gap, reading
from icmape.evaluation.stop_curves import StopCurve
from icmape.io import file_digest
from icmape.play.team_files import about
from icmape.plot.comparison_table import in_words
from icmape.version import __version__
from paper import printed as paper
from paper.collected import Results
from paper.experiments import MAIN, SETTINGS
from paper.limits import Limit
from paper.work_plan import Plan

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
SEEDS = (215, 219, 321)
README = (ROOT / "README.md").read_text()
FINDINGS = (ROOT / "docs" / "results" / "findings.md").read_text()
OURS = {
    "bandit A3P5": "bandit-a3p5/guided",
    "bandit A5P3": "bandit-a5p3/guided",
    "source localization": "signal/ppo",
    "nitrate hotspots, 5 readings": "nitrate/guided",
    "nitrate hotspots, 1 reading": "nitrate-n1/guided",
}


def read(name: str) -> dict:
    content: dict = json.loads((RESULTS / name).read_text())
    return content


def evaluations(folder: str) -> list[dict]:
    return [read(f"{folder}/analysis-{seed}.json")["value"]["evaluation"] for seed in SEEDS]


def mean(folder: str, name: str) -> float:
    return float(np.mean([one[name] for one in evaluations(folder)]))


def bounds(folder: str) -> list[str]:
    found = [read(f"{folder}/certificate-{seed}.json")["value"] for seed in SEEDS]
    return [f"{one['bound']:.{3 if one['worlds'] <= 10_000 else 4}f}" for one in found]


def row(start: str) -> list[str]:
    line = next(line for line in README.splitlines() if line.startswith(f"| {start}"))
    return [cell.strip() for cell in line.strip("|").split("|")]


@cache
def collected() -> Results:
    """All results, as the results page reads them."""
    return Results(list(SETTINGS.values()), Plan(ROOT / "runs", RESULTS))


def at_target(found: StopCurve | list[StopCurve] | None, limit: Limit | None) -> str:
    """τ at the target, or of a rule at its own stop, as the front page shows it."""
    if found:
        level = reading(found if isinstance(found, list) else [found])
        return f"{level.tau:.2f}" + (f" ± {level.half:.2f}" if level.half else "")
    if limit is None:
        return "–"
    half = f" ± {1.96 * limit.tau_error:.2f}" if limit.tau_error else ""
    return f"{limit.tau:.2f}{half} ({limit.accuracy:.3f})"


def compared(problem: str) -> list[str]:
    """The cells of a row of the front page's table: paper, ours, and the best rules without learning."""
    results, setting = collected(), SETTINGS[OURS[problem].partition("/")[0].replace("bandit-", "")]
    printed = results.printed(paper.FINAL, setting.name, {}).get(MAIN, paper.Printed())
    theirs = f"{printed.tau:.2f} ({printed.accuracy})" if printed.tau else "–"
    rules = (setting.schedule, setting.rule, setting.central)
    cells = [at_target(results.rule_curve(setting, rule), results.limit(setting, rule)) for rule in rules]
    return [theirs, at_target(results.curves(setting, setting.main), None), *cells]


@pytest.mark.parametrize("problem", OURS)
def test_the_table_of_the_front_page_is_that_of_the_files(problem: str) -> None:
    cells = [cell.replace("**", "").removesuffix(" ²") for cell in row(problem)[1:]]
    assert cells == compared(problem)
    ours = f"{mean(OURS[problem], 'accuracy'):.3f} at {mean(OURS[problem], 'tau'):.2f}"
    assert re.search(rf"\| (\*\*)?{re.escape(ours)}(\*\*)? \|", FINDINGS)


@pytest.mark.parametrize("problem", OURS)
def test_only_the_best_without_communication_is_bold(problem: str) -> None:
    _, _, ours, schedule, rule, central = row(problem)
    without = [cell for cell in (ours, schedule, rule) if cell != "–" and "²" not in cell]  # ²: stopped by all data
    tau = [float(cell.strip("*").split()[0]) for cell in without]
    best = {without[tau.index(min(tau))]} if len(tau) > 1 else set()
    assert {cell for cell in row(problem) if cell.startswith("**")} == best
    assert "**" not in central


def test_one_team_is_measured_where_the_table_says_so() -> None:
    for problem in OURS:
        curves = collected().curves(
            setting := SETTINGS[OURS[problem].partition("/")[0].replace("bandit-", "")], setting.main
        )
        assert row(problem)[0].endswith("¹") == (len(curves) == 1)


def test_the_three_numbers_of_the_front_page() -> None:
    accuracy, tau = mean("bandit-a3p5/guided", "accuracy"), mean("bandit-a3p5/guided", "tau")
    printed = collected().printed(paper.FINAL, "a3p5", {})[MAIN]
    assert printed.tau is not None
    ours = f"**right in {100 * accuracy:.0f} of 100 worlds after {tau - 1:.1f} rounds** of readings"
    assert f"{ours}; the paper: {100 * float(printed.accuracy):.0f} after {printed.tau - 1:.1f}\n" in README
    lines = (RESULTS / "bandit-a3p5/guided/metrics.jsonl").read_text().splitlines()
    minutes = max(json.loads(line)["seconds"] for line in lines) / 60
    assert f"**three teams trained in {minutes:.1f} min**" in README
    lowest = min(float(bound) for bound in bounds("bandit-a3p5/guided"))
    assert f"**certified: at least {math.floor(100 * lowest)} of 100 right**" in README


def test_the_team_of_the_picture_is_as_good_as_the_front_page_says() -> None:
    """By the certificate of the shipped file."""
    found = Certificate.from_dict(read("nitrate-synthetic/certificate-pretrained.json"))
    assert found.team == file_digest(about("nitrate-synthetic").path)
    assert f"right in {100 * found.right / found.worlds:.0f} of 100 such worlds, after one round in most" in unwrapped(
        README
    )
    assert 1 < found.tau - 1 < 1.5, "more than half of them end after one round, which none undercuts"
    assert f"δ, here {100 * (1 - found.target):.0f} times in 100" in unwrapped(README)


def unwrapped(text: str) -> str:
    return " ".join(text.split())


def test_the_accuracies_of_our_own_stops() -> None:
    accuracies = [mean(folder, "accuracy") for folder in OURS.values()]
    assert f"accuracy {min(accuracies):.3f} to {max(accuracies):.3f}" in README


def test_teams_without_a_teacher_are_those_of_the_files() -> None:
    for preset in ("bandit-a3p5", "bandit-a5p3"):
        teams = read(f"{preset}/from-nothing/evaluation.json")["teams"].values()
        accuracy, tau = (float(np.mean([team[name] for team in teams])) for name in ("accuracy", "tau"))
        assert re.search(rf"{accuracy:.3f} at (τ )?{tau:.2f}", README)


def test_the_front_page_has_no_other_numbers() -> None:
    """Every decimal in its prose is one of those above, or the paper's."""
    prose = re.sub(r"```.*?```", "", README, flags=re.S).replace("Python 3.11", "")
    with open(RESULTS / "tables" / "summary.csv") as file:
        summary = " ".join(line["paper"] for line in csv.DictReader(file))
    known = [summary, *(cell for problem in OURS for cell in compared(problem))]
    known += [f"{mean(folder, 'accuracy'):.3f}" for folder in OURS.values()]
    for preset in ("bandit-a3p5", "bandit-a5p3"):
        teams = read(f"{preset}/from-nothing/evaluation.json")["teams"].values()
        known += [f"{np.mean([t['accuracy'] for t in teams]):.3f} {np.mean([t['tau'] for t in teams]):.2f}"]
    known += ["9.4", "12.6", "4.2"]  # rounds and minutes, checked above
    known += ["0.1", "0.90"]  # δ and the target
    decimal = re.compile(r"\d+\.\d+")
    assert set(decimal.findall(prose)) <= set(decimal.findall(" ".join(known)))


PARTS = ("<img ", "- **right in ", "pip install ", "\nicmape evaluate ")
"""Of the first screen, before any heading."""


def test_the_front_page_is_short_and_its_first_command_is_near_the_top() -> None:
    lines = README.splitlines()
    assert len(lines) <= 120
    assert any(line.startswith("icmape ") for line in lines[:40])
    first_screen = README.partition("\n## ")[0]
    assert [first_screen.index(part) for part in PARTS] == sorted(first_screen.index(part) for part in PARTS)


def test_the_animation_of_the_front_page_is_small_and_shows_all_crews_in_a_synthetic_world() -> None:
    (name,) = re.findall(r'<img src="([^"]+)"', README)
    text = (ROOT / name).read_text()
    assert len(text.encode()) <= 300_000
    assert "<script" not in text
    assert "synthetic worlds</text>" in text
    assert "is right</text>" in text
    assert "after 2 rounds</text>" in text
    agents = read("nitrate-synthetic/evaluation.json")["problem"]["arguments"]["agents"]
    assert {f"crew {agent}" for agent in range(1, agents + 1)} <= set(re.findall(r">(crew \d)</text>", text))
    assert agents == 6, "as the alternative text says"


@pytest.mark.parametrize("folder", OURS.values())
def test_certificates_are_those_of_the_files(folder: str) -> None:
    found = [read(f"{folder}/certificate-{seed}.json")["value"] for seed in SEEDS]
    granted = sum(one["bound"] >= 0.9 for one in found)
    line = next(line for line in FINDINGS.splitlines() if f"| {', '.join(bounds(folder))} |" in line)
    assert f"{granted} of 3" in line


@pytest.mark.parametrize(
    ("method", "shown"),
    [
        ("ppo", "| ICMAPE-PPO | {accuracy:.3f} at {tau:.2f} |"),
        ("td3", "| ICMAPE-TD3 | {accuracy:.3f} at {tau:.2f} |"),
        ("iql", "| {accuracy:.3f} at {tau:.2f}, one seed misses "),
        ("vdn", "| {accuracy:.3f} at {tau:.2f}, misses "),
        ("random", "| {accuracy:.3f} at {tau:.2f}, misses |"),
        ("threshold", "| TD3, fixed threshold | {accuracy:.3f} at {tau:.2f} |"),
        ("td3-paper", "| TD3 to the letter | {accuracy:.3f} at {tau:.2f}, misses |"),
        ("central-td3", "| centralized TD3, DQN | {accuracy:.3f} at {tau:.2f}, "),
        ("central-dqn", ", {accuracy:.3f} at {tau:.2f} |"),
        ("environment", "| {accuracy:.3f} at {tau:.2f}, misses |"),
        ("no-cost", "| {accuracy:.3f} at {tau:.2f} |"),
        ("our-threshold", "{accuracy:.3f} at τ {tau:.2f}"),
    ],
)
def test_other_methods_in_the_findings_are_those_of_the_files(method: str, shown: str) -> None:
    accuracy, tau = (mean(f"bandit-a3p5/{method}", name) for name in ("accuracy", "tau"))
    assert shown.format(accuracy=accuracy, tau=tau) in FINDINGS


def test_rules_and_thresholds_in_the_findings_are_those_of_the_files() -> None:
    """As the results page rounds them."""
    page = (RESULTS / "results.md").read_text()
    rule = collected().limit(SETTINGS["signal"], "local-greedy")
    assert rule is not None
    assert f"**{rule.accuracy:.3f} at {rule.tau:.2f}**" in FINDINGS
    assert f"| local-greedy | {rule.accuracy:.3f} | {rule.tau:.2f} ± " in page
    accuracy, tau = (mean("bandit-a5p3/our-threshold", name) for name in ("accuracy", "tau"))
    assert f"(A5P3: {accuracy:.3f} at {tau:.2f} instead of " in FINDINGS


@pytest.mark.parametrize(
    ("label", "method"),
    [
        ("ours (guided)", "guided"),
        ("ours, stopped by everyone's posterior at 0.9", "our-threshold"),
        ("ICMAPE-TD3", "td3"),
        ("ICMAPE-PPO", "ppo"),
        ("centralized DQN", "central-dqn"),
        ("ICMAPE-VDN", "vdn"),
        ("independent Q-learning", "iql"),
        ("environment reward (TD3) [75% of its budget]", "environment"),
        ("no sampling cost (TD3) [75% of its budget]", "no-cost"),
    ],
)
def test_the_results_page_was_written_from_these_files(label: str, method: str) -> None:
    with open(RESULTS / "tables" / "a3p5-methods.csv") as file:
        rows = [row for row in csv.DictReader(file) if row["method"] == label]
    found = evaluations(f"bandit-a3p5/{method}")
    assert [(float(row["accuracy"]), float(row["tau"])) for row in rows] == [(e["accuracy"], e["tau"]) for e in found]
    page = (RESULTS / "results.md").read_text()
    assert f"| {label} | 3 | {mean(f'bandit-a3p5/{method}', 'accuracy'):.3f} ± " in page


@pytest.mark.parametrize("method", ["td3", "vdn", "iql", "random"])
def test_other_methods_of_a5p3_are_those_of_the_files(method: str) -> None:
    accuracy, tau = (mean(f"bandit-a5p3/{method}", name) for name in ("accuracy", "tau"))
    assert f"| {accuracy:.3f} at {tau:.2f}" in FINDINGS


def curves(folder: str, *names: object) -> list[StopCurve]:
    paths = [RESULTS / folder / f"curve-{name}.json" for name in names]
    return [StopCurve.from_dict(json.loads(path.read_text())["value"]) for path in paths if path.exists()]


EQUAL = [
    (preset, rule)
    for preset in ("bandit-a3p5", "bandit-a5p3")
    for rule in ("open-loop", "local-adaptive", "central-greedy")
    if (RESULTS / preset / f"curve-{rule}.json").exists()
]


@pytest.mark.parametrize(("preset", "rule"), EQUAL)
def test_gaps_at_equal_accuracy_in_the_findings_are_those_of_the_curves(preset: str, rule: str) -> None:
    ours, other = curves(f"{preset}/guided", *SEEDS), curves(preset, rule)
    difference = gap(other, ours)
    assert f"{in_words(reading(ours))} |" in FINDINGS
    assert f"{in_words(reading(other))} | {difference} |" in FINDINGS


def test_the_citation_names_this_version() -> None:
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
