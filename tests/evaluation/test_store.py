"""A result is taken if it answers just what is asked; new ones go before old ones."""

import random
from pathlib import Path

from icmape.evaluation.results import ANY, JsonCache, Store, answers


def test_a_result_is_taken_if_it_answers_just_the_question(tmp_path: Path) -> None:
    store = Store(tmp_path / "new", tmp_path / "old")
    asked = {"team": "abc", "episodes": 100, "axes": {"a": [1.0, 2.0]}}
    assert store.read("x/r.json", asked) is None
    Store(tmp_path / "old").write("x/r.json", asked, 1)
    assert store.read("x/r.json", asked) == 1
    for other in ({"team": "abd"}, {"episodes": 200}, {"axes": {"a": [1.0]}}, {"more": 1}):
        assert store.read("x/r.json", {**asked, **other}) is None
    assert store.read("x/r.json", {"team": "abc", "episodes": 100}) is None
    assert store.read("x/r.json", {**asked, "team": ANY}) == 1, "there is no team that could contradict it"
    assert not answers({**asked, "team": ANY}, asked), "a result of who knows what team"


def test_new_results_go_before_old_ones_and_only_into_the_new_folder(tmp_path: Path) -> None:
    old, store = Store(tmp_path / "old"), Store(tmp_path / "new", tmp_path / "old")
    old.write("r.json", {"n": 1}, "old")
    store.write("r.json", {"n": 1}, "new")
    store.write("s.json", {"n": 1}, "new")
    assert (store.read("r.json", {"n": 1}), old.read("r.json", {"n": 1})) == ("new", "old")
    assert store.find("r.json") == tmp_path / "new/r.json"
    assert [path.relative_to(tmp_path).as_posix() for path in store.names("*.json")] == ["new/r.json", "new/s.json"]
    assert sorted(path.name for path in (tmp_path / "old").iterdir()) == ["r.json"]


def test_a_broken_result_does_not_hide_an_old_one(tmp_path: Path) -> None:
    Store(tmp_path / "old").write("r.json", {"n": 1}, "old")
    store = Store(tmp_path / "new", tmp_path / "old")
    store.write("r.json", {"n": 1}, "new")
    (tmp_path / "new/r.json").write_text('{"asked": {"n"')
    assert store.read("r.json", {"n": 1}) == "old"


def test_a_flipped_bit_is_noticed_or_changes_nothing(tmp_path: Path) -> None:
    """Bits of a result and of a cached value."""
    store, cache = Store(tmp_path), JsonCache(tmp_path / "cache.json")
    value = {"accuracy": 0.9125, "tau": [5.5, None]}
    store.write("r.json", {"n": 1}, value)
    cache.put("team", "key", value)
    reads = {"r.json": lambda: store.read("r.json", {"n": 1}), "cache.json": lambda: cache.get("team", "key")}
    for name, read in reads.items():
        data = (tmp_path / name).read_bytes()
        assert read() == value
        for bit in random.Random(0).sample(range(8 * len(data)), 300):
            damaged = bytearray(data)
            damaged[bit // 8] ^= 1 << bit % 8
            (tmp_path / name).write_bytes(damaged)
            assert read() in (None, value), (name, bit)


def test_results_of_older_versions_have_no_digest_and_are_read(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text('{"asked": {"n": 1}, "value": 2, "provenance": {}}')
    assert Store(tmp_path).read("r.json", {"n": 1}) == 2


def test_a_question_is_compared_as_a_file_would_say_it(tmp_path: Path) -> None:
    """JSON has no tuples, and keys are text."""
    store = Store(tmp_path)
    store.write("r.json", {"axes": (1.0, 2.0), "by": {1: "a"}}, 1)
    assert store.read("r.json", {"axes": (1.0, 2.0), "by": {1: "a"}}) == 1
    assert store.read("r.json", {"axes": [1.0, 2.0], "by": {"1": "a"}}) == 1
    assert store.read("r.json", {"axes": (1.0, 3.0), "by": {1: "a"}}) is None
