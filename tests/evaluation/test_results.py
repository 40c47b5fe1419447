"""Episodes on disk: what is loaded is what was played, and nothing is played twice."""

import json
import random
from dataclasses import replace
from pathlib import Path

import equinox as eqx
import numpy as np
import pytest

from icmape.evaluation import results
from icmape.evaluation.results import stored_episodes
from icmape.io import file_digest
from icmape.play import episodes
from icmape.problem.spec import describe
from icmape.zoo.bandit.bandit import Bandit
from tests.support import lively_team

EPISODES = 300


@pytest.fixture(scope="module")
def played():
    return episodes.play(lively_team(), EPISODES, seed=1)


@pytest.fixture
def calls(played, monkeypatch) -> list[tuple]:
    """Every call to `play`, which hands out what was played once."""
    made = []

    def play(team, count, seed, tick=None, exact=None):
        made.append((count, seed, exact))
        return played

    monkeypatch.setattr(results, "play", play)
    return made


def test_what_is_loaded_is_what_was_played(tmp_path: Path, played, calls) -> None:
    path = tmp_path / "deep" / "e.npz"
    stored_episodes(path, lively_team(), "a", EPISODES, 1)
    told: list[int] = []
    found = stored_episodes(path, lively_team(), "a", EPISODES, 1, tick=told.append)
    assert (len(calls), told) == (1, [EPISODES])
    rounds = played.played.stop.max() + 1
    np.testing.assert_array_equal(found.played.actions, played.played.actions[:, :rounds])
    np.testing.assert_array_equal(found.played.stop, played.played.stop)
    np.testing.assert_array_equal(found.played.hypothesis, played.played.hypothesis)
    np.testing.assert_array_equal(found.final, played.final)
    np.testing.assert_array_equal(found.distance, played.distance[:, :rounds])
    for name in ("team", "exact"):
        for mine, theirs in zip(getattr(found, name), getattr(played, name), strict=True):
            np.testing.assert_array_equal(mine, theirs[:, :rounds])
            assert mine.dtype == theirs.dtype


def test_rounds_that_no_episode_reached_are_not_stored(tmp_path: Path, played, monkeypatch) -> None:
    short = played.played._replace(stop=np.minimum(played.played.stop, 2))
    monkeypatch.setattr(results, "play", lambda *_: played._replace(played=short))
    stored_episodes(tmp_path / "e.npz", lively_team(), "a", EPISODES, 1)
    found = stored_episodes(tmp_path / "e.npz", lively_team(), "a", EPISODES, 1)
    assert found.played.actions.shape[1] == found.team.confidence.shape[1] == found.distance.shape[1] == 3


@pytest.mark.parametrize(
    ("digest", "count", "seed", "exact"),
    [("b", EPISODES, 1, None), ("a", 200, 1, None), ("a", EPISODES, 2, None), ("a", EPISODES, 1, 10)],
)
def test_another_question_is_played_and_replaces_the_file(
    tmp_path: Path, calls, digest: str, count: int, seed: int, exact: int | None
) -> None:
    path = tmp_path / "e.npz"
    stored_episodes(path, lively_team(), "a", EPISODES, 1)
    for _ in range(2):
        stored_episodes(path, lively_team(), digest, count, seed, exact=exact)
    assert calls == [(EPISODES, 1, None), (count, seed, exact)]


def test_another_prior_is_another_question(tmp_path: Path, calls) -> None:
    stored_episodes(tmp_path / "e.npz", lively_team(), "a", EPISODES, 1)
    other = replace(lively_team(), problem=Bandit(2, 3, 7, mean_low=0.5))
    stored_episodes(tmp_path / "e.npz", other, "a", EPISODES, 1)
    assert len(calls) == 2


def test_other_data_is_another_question_though_the_arguments_are_the_same(tmp_path: Path, calls) -> None:
    """As with measurements, which a description leaves out: here the prior's own table stands for them."""
    stored_episodes(tmp_path / "e.npz", lively_team(), "a", EPISODES, 1)
    team = lively_team()
    other = eqx.tree_at(lambda one: one.problem.log_evidence, team, replace_fn=lambda table: table + 1)
    assert describe(other.problem, local=False) == describe(team.problem, local=False)
    stored_episodes(tmp_path / "e.npz", other, "a", EPISODES, 1)
    assert len(calls) == 2


def test_other_code_is_another_question(tmp_path: Path, calls, monkeypatch) -> None:
    stored_episodes(tmp_path / "e.npz", lively_team(), "a", EPISODES, 1)
    monkeypatch.setattr(results, "code_digest", lambda: "other")
    stored_episodes(tmp_path / "e.npz", lively_team(), "a", EPISODES, 1)
    assert len(calls) == 2


def swapped(content: bytes) -> bytes:
    """With the bytes in its middle turned over: a zip's directory stays whole, what it holds does not."""
    middle = len(content) // 2
    return (
        content[: middle - 200] + bytes(255 - b for b in content[middle - 200 : middle + 200]) + content[middle + 200 :]
    )


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: whole[: len(whole) // 2],
        lambda whole: whole[:-1],
        lambda whole: b"",
        lambda whole: b"nonsense" * 20,
        swapped,
    ],
    ids=["half", "cut", "empty", "nonsense", "swapped"],
)
def test_a_broken_file_is_played_again_and_mended(tmp_path: Path, calls, damage) -> None:
    path = tmp_path / "e.npz"
    stored_episodes(path, lively_team(), "a", EPISODES, 1)
    path.write_bytes(damage(path.read_bytes()))
    for _ in range(2):
        stored_episodes(path, lively_team(), "a", EPISODES, 1)
    assert len(calls) == 2


def test_a_flipped_bit_is_noticed_or_changes_nothing(tmp_path: Path, played) -> None:
    """Anywhere, and in the directory at the end of the file, whose dates and attributes mean nothing."""
    path = tmp_path / "e.npz"
    results.save_episodes(path, "key", played)
    data, whole = path.read_bytes(), results.load_episodes(path, "key")
    dice = random.Random(0)
    bits = [*dice.sample(range(8 * len(data)), 60), *(8 * len(data) - bit for bit in dice.sample(range(1, 8000), 100))]
    noticed = 0
    for bit in bits:
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        found = results.load_episodes(path, "key")
        assert found is None or eqx.tree_equal(found, whole, typematch=True), bit
        noticed += found is None
    assert noticed > 60


def test_a_team_without_exact_posterior_has_none_stored(tmp_path: Path, played, monkeypatch) -> None:
    monkeypatch.setattr(results, "play", lambda *_: played._replace(exact=None, distance=None))
    for _ in range(2):
        found = stored_episodes(tmp_path / "e.npz", lively_team(), "a", EPISODES, 1)
    assert found.exact is None
    assert found.distance is None


def test_the_file_says_what_it_holds_without_naming_this_machine(tmp_path: Path, calls) -> None:
    stored_episodes(tmp_path / "e.npz", lively_team(), "a", EPISODES, 1)
    with np.load(tmp_path / "e.npz") as file:
        asked = json.loads(str(file["asked"]))
    assert asked["team"] == "a"
    assert asked["problem"]["arguments"]["players"] == 3
    assert (asked["episodes"], asked["seed"], asked["exact"]) == (EPISODES, 1, None)


def test_a_digest_is_of_the_content(tmp_path: Path) -> None:
    for name, content in (("a", b"1"), ("b", b"1"), ("c", b"2")):
        (tmp_path / name).write_bytes(content)
    a, b, c = (file_digest(tmp_path / name) for name in "abc")
    assert a == b != c
