"""The fuzz finds what it looks for, can be repeated, and a share of it is tried with every run of the tests."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from fuzz import pool, tree_mutations
from fuzz.__main__ import jobs
from fuzz.byte_mutations import MUTATIONS, damaged
from fuzz.cases import Case, Exit, Target, attempt, equal, must_refuse, same_as
from fuzz.pool import Job, Worker
from fuzz.tables import END, START, write_results
from fuzz.targets import TARGETS
from icmape.errors import UserError

ROOT = Path(__file__).parents[2]


def target(result: Any, judge: Any = must_refuse) -> Target:
    """A reader that returns this, or raises it."""

    def run(given: Any) -> Any:
        if isinstance(result, BaseException):
            raise result
        return result

    return Target(run, {"any": lambda random: Case(random.random(), judge)})


@pytest.mark.parametrize(
    ("result", "judge", "kind"),
    [
        (UserError("a sentence"), must_refuse, "refused"),
        (OSError(5, "no such disk"), must_refuse, "refused"),
        (3, same_as(3), "harmless"),
        (3, same_as(4), "wrong"),
        (3, must_refuse, "wrong"),
        (UserError(" "), must_refuse, "wrong"),
        (Exit(2, "x" * 9999), must_refuse, "wrong"),
        (Exit(2, "error: a sentence"), must_refuse, "refused"),
        (Exit(2, ""), must_refuse, "wrong"),
        (Exit(1, "said"), same_as(Exit(1, "said")), "wrong"),
        (ValueError("any other"), must_refuse, "traceback"),
        (AssertionError("NaN"), must_refuse, "traceback"),
        (RecursionError(), must_refuse, "traceback"),
        (MemoryError(), must_refuse, "memory"),
        (SystemExit(0), must_refuse, "traceback"),
    ],
)
def test_every_kind_of_fault_is_told_from_a_refusal(result: Any, judge: Any, kind: str) -> None:
    assert attempt(target(result, judge), "name", 0, 0).kind == kind


def test_a_case_is_the_same_whenever_its_number_is() -> None:
    seen: list[Any] = []
    recording = Target(seen.append, {name: lambda random: Case(random.random(), must_refuse) for name in "ab"})
    for seed, number in ((0, 7), (0, 7), (0, 9), (1, 7)):
        attempt(recording, "name", seed, number)
    assert seen[0] == seen[1]
    assert len(set(seen)) == 3


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_damage_changes_the_data(mutation: str) -> None:
    data = bytes(range(256)) * 4
    assert all(damaged(data, mutation, Random(seed)) != data for seed in range(50))


def test_changes_to_trees_leave_the_original_alone() -> None:
    tree = {"a": {"b": 1, "c": [2]}, "d": None}
    assert tree_mutations.replaced(tree, ("a", "b"), 5)["a"]["b"] == 5
    assert list(tree_mutations.renamed(tree, ("a", "b"), "x")["a"]) == ["x", "c"]
    assert "b" not in tree_mutations.without(tree, ("a", "b"))["a"]
    assert tree == {"a": {"b": 1, "c": [2]}, "d": None}
    twice = tree_mutations.twice(json.dumps(tree), Random(0))
    assert json.loads(twice)["a"]["b"] == 3
    assert twice.count('"b"') == 2


def test_results_are_equal_to_the_bit() -> None:
    assert equal({"a": [np.array([np.nan, 1.0])]}, {"a": [np.array([np.nan, 1.0])]})
    assert not equal(np.float32([1.0]), np.float64([1.0]))
    assert not equal([1.0, 0.0], [1.0])


def test_a_process_that_hangs_or_dies_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "LONGEST_CASE", 1.0)
    monkeypatch.setattr(pool, "LONGEST_WAIT", 4.0)
    prepared = 'import os, sys, time; sys.stdin.readline(); print(\'{"mutations": ["any"]}\', flush=True); '
    for ending, kind in (
        ("time.sleep(60)", "hang"),
        ("exec('while True: pass')", "hang"),
        ("os.kill(os.getpid(), 11)", "traceback"),
    ):
        worker = Worker(0, ("-c", prepared + ending))
        outcome = worker.attempt(Job("name", 4))
        worker.end()
        assert outcome is not None
        assert (outcome.kind, outcome.mutation) == (kind, "any")


def test_answers_that_come_at_once_are_both_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "LONGEST_WAIT", 5.0)
    lines = json.dumps({"mutations": ["any"]}) + "\n" + json.dumps({"kind": "refused", "mutation": "any", "words": "x"})
    worker = Worker(0, ("-c", f"import sys, time; sys.stdin.readline(); print({lines!r}, flush=True); time.sleep(60)"))
    outcome = worker.attempt(Job("name", 0))
    worker.end()
    assert outcome is not None
    assert outcome.kind == "refused"


def test_every_target_has_its_turn_however_little_time_there_is() -> None:
    counts = Counter(job.target for job in jobs(list(TARGETS), 400))
    assert counts.keys() == TARGETS.keys()
    assert sum(counts.values()) == 400
    assert {job.target for job in list(jobs(list(TARGETS), 400))[:40]} == set(TARGETS)


def test_counts_are_written_as_numbers_and_as_a_table(tmp_path: Path) -> None:
    outcomes = Counter(
        {("exports", "quotes", "refused"): 3, ("exports", "header", "hang"): 1, ("readings", "x", "wrong"): 2}
    )
    page = tmp_path / "page.md"
    page.write_text(f"before\n\n{START}\nold\n{END}\n\nafter\n")
    write_results(outcomes, 60.0, 0, tmp_path / "fuzz.json", page)
    rows = json.loads((tmp_path / "fuzz.json").read_text())["counts"]
    assert [(row["target"], row["mutation"], row["inputs"]) for row in rows] == [
        ("exports", "header", 1),
        ("exports", "quotes", 3),
        ("readings", "x", 2),
    ]
    text = page.read_text()
    assert "| exports | 4 | 3 | 0 | 0 | 1 | 0 | 0 |" in text
    assert "| **all** | 6 | 3 | 0 | 0 | 1 | 2 | 0 |" in text
    assert "old" not in text
    assert text.startswith("before")
    assert text.endswith("after\n")


def test_a_share_of_the_fuzz_finds_nothing() -> None:
    """Another seed than that of `make fuzz`, and the targets that are prepared in moments."""
    names = [name for name in TARGETS if name not in ("readings", "command lines")]
    words = [sys.executable, "-m", "fuzz", "--seed", "1", "--inputs", "150", "--seconds", "15", "--workers", "1"]
    done = subprocess.run([*words, "--targets", *names], cwd=ROOT, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert "refused" in done.stdout
