"""What the front page and the result pages say is what the files in results/ say."""

import csv
import json
import re
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import numpy as np
import pytest

from icmape.evaluation.equal_accuracy import gap, reading
from icmape.evaluation.stop_curves import StopCurve
from icmape.plot.comparison_table import in_words
from icmape.version import __version__

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


def rounded(value: float, digits: int) -> str:
    """As people round: half up of the decimal that the file shows."""
    return str(Decimal(str(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


def at(accuracy: float, tau: float) -> str:
    return f"{rounded(accuracy, 3)} at {rounded(tau, 2)}"


def evaluations(folder: str) -> list[dict]:
    return [read(f"{folder}/analysis-{seed}.json")["value"]["evaluation"] for seed in SEEDS]


def mean(folder: str, name: str) -> float:
    return float(np.mean([one[name] for one in evaluations(folder)]))


def bounds(folder: str) -> list[str]:
    return [f"{read(f'{folder}/certificate-{seed}.json')['value']['bound']:.3f}" for seed in SEEDS]


def row(start: str) -> list[str]:
    line = next(line for line in README.splitlines() if line.startswith(f"| {start}"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def limits(problem: str) -> tuple[str, str]:
    """The best rules without learning, decentralized and centralized, as the front page shows them."""
    preset = OURS[problem].partition("/")[0]
    if preset.startswith("bandit"):
        rows = {one["what"]: one for one in read(f"{preset}/diagnosis.json")["rows"]}
        rules = [rows[f"sampling and stop: {name}"] for name in ("local-adaptive", "central-greedy")]
        decentralized, centralized = (at(one["accuracy"], one["tau"]) for one in rules)
        return decentralized, centralized
    if preset == "signal":
        rules = [read("signal/baselines.json")["baselines"][f"{name}-greedy"] for name in ("local", "central")]
        decentralized, centralized = (at(one["accuracy"], one["tau"]) for one in rules)
        return decentralized, centralized
    found = read(f"{preset}/limits.json")
    tau = found["baselines"]["central-adaptive"]["rounds"] + 1
    return "–", f"{found['target']:.2f} at {tau:.2f}"


@pytest.mark.parametrize("problem", OURS)
def test_the_table_of_the_front_page_is_that_of_the_files(problem: str) -> None:
    _, _, ours, decentralized, centralized = row(problem)
    assert ours == f"**{mean(OURS[problem], 'accuracy'):.3f} at {mean(OURS[problem], 'tau'):.2f}**"
    assert (decentralized, centralized) == limits(problem)
    assert ours in FINDINGS


def test_the_three_numbers_of_the_front_page() -> None:
    assert f"**{mean('bandit-a3p5/guided', 'accuracy'):.3f} at τ {mean('bandit-a3p5/guided', 'tau'):.2f}**" in README
    run = read("bandit-a3p5/speed.json")["guided run, three seeds, 700 iterations"]
    minutes = run["whole command on the machine, teams saved and packed, seconds"] / 60
    assert f"**at most {minutes:.1f} min**" in README
    first, second, third = bounds("bandit-a3p5/guided")
    assert f"**at least {first}, {second} and {third}**" in README


def test_teams_without_a_teacher_are_those_of_the_files() -> None:
    for preset in ("bandit-a3p5", "bandit-a5p3"):
        teams = read(f"{preset}/from-nothing/evaluation.json")["teams"].values()
        accuracy, tau = (float(np.mean([team[name] for team in teams])) for name in ("accuracy", "tau"))
        assert re.search(rf"{accuracy:.3f} at (τ )?{tau:.2f}", README)


def test_the_front_page_has_no_other_numbers() -> None:
    """Every decimal in its prose is one of those above, or the paper's."""
    prose = re.sub(r"```.*?```", "", README, flags=re.S).replace("Python 3.11", "")
    with open(RESULTS / "tables" / "summary.csv") as file:
        paper = " ".join(line["paper"] for line in csv.DictReader(file))
    known = [paper, *bounds("bandit-a3p5/guided")]
    known += [f"{mean(folder, 'accuracy'):.3f} {mean(folder, 'tau'):.2f}" for folder in OURS.values()]
    known += [limit for problem in OURS for limit in limits(problem)]
    for preset in ("bandit-a3p5", "bandit-a5p3"):
        teams = read(f"{preset}/from-nothing/evaluation.json")["teams"].values()
        known += [f"{np.mean([t['accuracy'] for t in teams]):.3f} {np.mean([t['tau'] for t in teams]):.2f}"]
    known += ["4.6", "0.1"]  # minutes, checked above; δ
    decimal = re.compile(r"\d+\.\d+")
    assert set(decimal.findall(prose)) <= set(decimal.findall(" ".join(known)))


def test_the_front_page_is_short_and_its_first_command_is_near_the_top() -> None:
    lines = README.splitlines()
    assert len(lines) <= 120
    assert any(line.startswith("icmape ") for line in lines[:40])


def test_the_animation_of_the_front_page_is_small_and_shows_synthetic_worlds() -> None:
    (name,) = re.findall(r'<img src="([^"]+)"', README)
    text = (ROOT / name).read_text()
    assert len(text.encode()) <= 300_000
    assert "<script" not in text
    assert "synthetic worlds</text>" in text
    assert "is right</text>" in text


@pytest.mark.parametrize("folder", OURS.values())
def test_certificates_are_those_of_the_files(folder: str) -> None:
    found = [read(f"{folder}/certificate-{seed}.json")["value"] for seed in SEEDS]
    granted = sum(one["bound"] >= 0.9 for one in found)
    line = next(line for line in FINDINGS.splitlines() if f"| {', '.join(bounds(folder))} |" in line)
    assert f"{granted} of 3" in line


@pytest.mark.parametrize(
    ("method", "shown"),
    [
        ("td3", "| {accuracy:.3f} | {tau:.2f} |"),
        ("iql", "| {accuracy:.3f}, one seed misses | {tau:.2f} |"),
        ("vdn", "| {accuracy:.3f}, misses | {tau:.2f} |"),
        ("environment", "| {accuracy:.3f}, misses | {tau:.2f} |"),
        ("no-cost", "| {accuracy:.3f} | {tau:.2f} |"),
        ("our-threshold", "{accuracy:.3f} at τ {tau:.2f}"),
    ],
)
def test_other_methods_in_the_findings_are_those_of_the_files(method: str, shown: str) -> None:
    accuracy, tau = (mean(f"bandit-a3p5/{method}", name) for name in ("accuracy", "tau"))
    assert shown.format(accuracy=accuracy, tau=tau) in FINDINGS


@pytest.mark.parametrize(
    ("label", "method"),
    [
        ("ours (guided)", "guided"),
        ("ours, stopped by everyone's posterior at 0.9", "our-threshold"),
        ("ICMAPE-TD3 [75% of its budget]", "td3"),
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


def test_what_ours_had_reached_is_in_the_findings() -> None:
    with open(RESULTS / "tables" / "a3p5-budgets.csv") as file:
        row = next(row for row in csv.reader(file) if row[0].startswith("ICMAPE-TD3"))
    accuracy, _, tau = next(cell for cell in row if " at τ " in cell).partition(" at τ ")
    assert f"| {accuracy} at {tau} |" in FINDINGS


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
