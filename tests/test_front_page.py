"""What the front page and the findings say is what the files in results/ say."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
SEEDS = (215, 219, 321)
README = (ROOT / "README.md").read_text()
FINDINGS = (ROOT / "docs" / "findings.md").read_text()


def evaluations(folder: str, variant: str = "") -> list[dict]:
    files = (ROOT / "results" / folder / f"analysis-{variant}{seed}.json" for seed in SEEDS)
    return [json.loads(path.read_text())["value"]["evaluation"] for path in files]


def mean(folder: str, name: str) -> float:
    return float(np.mean([one[name] for one in evaluations(folder)]))


@pytest.mark.parametrize("preset", ["bandit-a3p5", "bandit-a5p3"])
def test_our_headline_is_the_mean_over_seeds(preset: str) -> None:
    accuracy, tau = (mean(f"{preset}/guided", name) for name in ("accuracy", "tau"))
    assert f"ours, mean of three seeds | {accuracy:.3f} | **{tau:.2f}**" in README
    assert f"**{accuracy:.3f} at {tau:.2f}**" in FINDINGS


@pytest.mark.parametrize(
    ("folder", "setting"),
    [("signal/ppo", "signal"), ("nitrate/guided", "nitrate"), ("nitrate-n1/guided", "nitrate-n1")],
)
def test_the_findings_have_our_other_teams(folder: str, setting: str) -> None:
    accuracy, tau = mean(folder, "accuracy"), mean(folder, "tau")
    assert f"**{accuracy:.3f} at {tau:.2f}**" in FINDINGS, setting


@pytest.mark.parametrize(
    ("preset", "method"),
    [
        ("bandit-a3p5", "guided"),
        ("bandit-a5p3", "guided"),
        ("signal", "ppo"),
        ("nitrate", "guided"),
        ("nitrate-n1", "guided"),
    ],
)
def test_certificates_are_those_of_the_files(preset: str, method: str) -> None:
    files = [ROOT / "results" / preset / method / f"certificate-{seed}.json" for seed in SEEDS]
    found = [json.loads(path.read_text())["value"] for path in files]
    bounds = ", ".join(f"{one['bound']:.3f}" for one in found)
    granted = sum(one["bound"] >= 0.9 for one in found)
    row = next(line for line in README.splitlines() if f"| {bounds} |" in line)
    assert f"{granted} of 3" in row


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
def test_rivals_in_the_findings_are_those_of_the_files(method: str, shown: str) -> None:
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
    with open(ROOT / "results" / "tables" / "a3p5-methods.csv") as file:
        rows = [row for row in csv.DictReader(file) if row["method"] == label]
    found = evaluations(f"bandit-a3p5/{method}")
    assert [(float(row["accuracy"]), float(row["tau"])) for row in rows] == [(e["accuracy"], e["tau"]) for e in found]
    page = (ROOT / "results" / "results.md").read_text()
    assert f"| {label} | 3 | {mean(f'bandit-a3p5/{method}', 'accuracy'):.3f} ± " in page


def test_what_ours_had_reached_is_in_the_findings() -> None:
    with open(ROOT / "results" / "tables" / "a3p5-budgets.csv") as file:
        row = next(row for row in csv.reader(file) if row[0].startswith("ICMAPE-TD3"))
    accuracy, _, tau = next(cell for cell in row if " at τ " in cell).partition(" at τ ")
    assert f"| {accuracy} at {tau} |" in FINDINGS
