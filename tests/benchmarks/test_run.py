"""What the benchmarks' file keeps, and when a comparison is skipped."""

import json
import sys

from benchmarks import mappo
from benchmarks.run import ROOT, merge

EARLIER = {
    "acting_speedup": 20.0,
    "mappo_speedup": 2.0,
    "measurements": {"acting": {"what": "acting"}, "mappo": {"what": "mappo"}},
    "commit": "old",
    "date": "2026-01-01",
}


def entry(**more):
    return {"measured": {"commit": "new"}, **more}


def test_a_part_leaves_the_other_entries_and_what_is_said_of_the_whole():
    new = {"mappo_speedup": 3.0, "measurements": {"mappo": entry()}, "commit": "new", "date": "2026-02-02"}
    merged = merge(EARLIER, new, whole=False)
    assert (merged["acting_speedup"], merged["mappo_speedup"], merged["commit"]) == (20.0, 3.0, "old")
    assert merged["measurements"]["acting"]["measured"]["date"] == "2026-01-01"
    assert merged["measurements"]["mappo"]["measured"]["commit"] == "new"


def test_a_skipped_benchmark_keeps_its_last_result_and_says_why_it_was_skipped():
    measurements = {"acting": entry(), "mappo": entry(missing="no checkout")}
    new = {"acting_speedup": 21.0, "mappo_speedup": None, "measurements": measurements, "commit": "new"}
    merged = merge(EARLIER, new, whole=True)
    assert (merged["acting_speedup"], merged["mappo_speedup"], merged["commit"]) == (21.0, 2.0, "new")
    assert merged["measurements"]["mappo"]["measured"]["commit"] == "old"
    assert merged["measurements"]["mappo"]["skipped_later"] == "no checkout"


def test_mappo_is_skipped_with_its_reason_where_there_is_no_checkout(monkeypatch, tmp_path):
    monkeypatch.delenv("JAXMARL", raising=False)
    skipped = mappo.measure()
    assert skipped.value is None
    assert "JAXMARL" in skipped.notes["missing"]
    assert "mappo_rnn_smax.py" in mappo.what_is_missing(str(tmp_path), sys.executable)


def test_the_goal_needs_accuracy_and_speed_at_once():
    slow, poor, good = ({"accuracy": a, "tau": t} for a, t in ((0.95, 9.0), (0.88, 5.0), (0.90, 6.0)))
    assert mappo.first_good([slow, poor, good, slow]) is good
    assert mappo.first_good([slow, poor]) is None


def test_the_ratio_is_of_medians_and_none_where_most_seeds_fail():
    def runs(*seconds):
        return [{"goal": None if s is None else {"cpu_seconds": s}} for s in seconds]

    theirs = {"MAPPO, exact": runs(30.0, 60.0, 90.0), "ours, learned": runs(1.0, 1.0, 1.0)}
    assert mappo.speedup({"ours, exact": runs(10.0, 20.0, None), **theirs}, "exact") == 3.0
    assert mappo.speedup({"ours, exact": runs(10.0, None, None), **theirs}, "exact") is None


def test_the_page_on_pettingzoo_says_what_was_measured():
    rows = json.loads((ROOT / "results" / "bench.json").read_text())["measurements"]["steps"]["rows"]
    quick, large, signal, all_cores = (f"{round(row['steps per second'], -2):,.0f}" for row in rows)
    assert [row["cores"] for row in rows] == [1, 1, 1, 2]
    page = (ROOT / "docs" / "how-to" / "pettingzoo-jaxmarl.md").read_text()
    assert f"{quick} steps a second on one core on `bandit-quick`, {large} on `bandit-a3p5`, {signal} on" in page
    assert f"operations of a step to one another, and `bandit-quick` has {all_cores} steps a second" in page
