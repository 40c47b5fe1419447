"""Team files: what is saved is what is loaded, and a bad file is told in a sentence."""

import dataclasses
import json
import logging
import random
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save as encode
from safetensors.numpy import save_file

from icmape import Centralized, Team, UserError, load
from icmape.io import file_digest
from icmape.networks import Actors, Inference
from icmape.play.inference import ExactInference, NetworkInference
from icmape.play.open_loop import Schedule, Uniform
from icmape.play.policy import LearnedPolicy
from icmape.play.stop import FixedLength, LearnedStop, Threshold
from icmape.play.team_files import about, pretrained
from icmape.zoo.bandit.bandit import Bandit
from icmape_agent.sealing import BLANK, SEAL, UNSEALED, sealed
from tests.coins import Coins
from tests.support import drawn, lively_actors, lively_team, small_bandit

PROBLEM = small_bandit()


def network() -> NetworkInference:
    return NetworkInference(drawn(lambda: Inference(PROBLEM, 6, "paper", key=jax.random.key(0)), seed=1))


def coin_team() -> Team:
    problem = Coins(agents=2)
    actors = drawn(lambda: Actors(problem, 3, "paper", 0.0, True, key=jax.random.key(0)))
    return Team(problem, LearnedPolicy(actors), LearnedStop(), ExactInference())


def value_team() -> Team:
    """A team whose scores are values relative to stopping, as value decomposition learns them."""
    make = lambda: Actors(PROBLEM, 6, "paper+last", 0.0, True, "zero", key=jax.random.key(0))  # noqa: E731
    actors = eqx.tree_at(lambda a: a.actor.head.bias, drawn(make, seed=4, scale=1.5), jnp.ones(2))
    return Team(PROBLEM, LearnedPolicy(actors), LearnedStop(), ExactInference())


def planned_team() -> Team:
    """A team as PPO learns it: with a number of rounds, a schedule to start from, and a stop apart from actions."""
    make = lambda: Actors(PROBLEM, 6, "paper+last", 0.0, False, "apart", 5, key=jax.random.key(0))  # noqa: E731
    actors = eqx.tree_at(lambda a: a.actor.head.bias, drawn(make, seed=2), replace_fn=lambda b: b.at[:, -1].set(-1.0))
    return Team(PROBLEM, LearnedPolicy(actors), LearnedStop(), ExactInference())


TEAMS = {
    "planned": planned_team(),
    "values": value_team(),
    "learned": lively_team(),
    "shared weights": Team(PROBLEM, LearnedPolicy(lively_actors()), LearnedStop(), ExactInference()),
    "schedule": Team(PROBLEM, Schedule(jnp.array([[0, 1, 1], [1, 0, 0]]), 3), FixedLength(4), ExactInference()),
    "threshold": Team(PROBLEM, Uniform(3, 3), Threshold(0.75), network()),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "team.safetensors"


@pytest.mark.parametrize("name", sorted(TEAMS))
def test_what_is_saved_is_what_is_loaded(name, path):
    TEAMS[name].save(path)
    assert eqx.tree_equal(load(path), TEAMS[name], typematch=True)
    assert [file.name for file in path.parent.iterdir()] == [path.name]  # nothing is left beside it


def test_a_loaded_team_scores_the_same(path):
    team = TEAMS["learned"]
    team.save(path)
    assert load(path).evaluate(episodes=300, seed=3) == team.evaluate(episodes=300, seed=3)


def test_a_loaded_value_team_scores_the_same_and_gives_stop_no_worth(path):
    team = TEAMS["values"]
    team.save(path)
    loaded = load(path)
    assert float(loaded.agent(1).scores[-1]) == 0.0
    assert loaded.agent(1).scores.shape == (PROBLEM.actions + 1,)
    result = loaded.evaluate(episodes=100, seed=3)
    assert result == team.evaluate(episodes=100, seed=3)
    assert 1 < result.tau < PROBLEM.horizon  # it does stop by itself, and not at once


def test_a_loaded_planned_team_scores_the_same_and_keeps_to_its_rounds(path):
    """Five rounds, of which the last is the stop, though the horizon is seven."""
    team = TEAMS["planned"]
    team.save(path)
    loaded = load(path)
    assert (loaded.policy.actors.actor.rounds, loaded.policy.actors.actor.stop) == (5, "apart")
    assert loaded.policy.actors.actor.schedule.shape == (PROBLEM.agents, 5, PROBLEM.agents, PROBLEM.actions)
    result = loaded.evaluate(episodes=100, seed=3)
    assert result == team.evaluate(episodes=100, seed=3)
    assert 1 < result.tau <= 5


def test_a_file_that_knows_no_rounds_loads_and_acts_as_it_did():
    """Written by version 0.7, before there were schedules: without "rounds", and without a tensor for them.

    The numbers are those of that version's own evaluation.
    """
    old = Path(__file__).with_name("of-0.7.safetensors")
    with safe_open(str(old), framework="numpy") as file:
        assert "rounds" not in json.loads(file.metadata()["parts"])["policy"]
        assert not [name for name in file.keys() if "schedule" in name]  # noqa: SIM118 (not a dict)
    team = load(old)
    assert eqx.tree_equal(team, TEAMS["learned"], typematch=True)
    result = team.evaluate(500, seed=1)
    assert (result.accuracy, result.tau) == (0.126, 3.316)
    assert result.confidence == pytest.approx(0.26358882, abs=1e-6)


def test_the_problems_prior_comes_along(path):
    problem = Bandit(arms=2, players=2, horizon=3, mean_low=0.1, mean_alpha=0.5, mean_beta=3.0)
    Team(problem, Uniform(2, 3), FixedLength(1), ExactInference()).save(path)
    assert eqx.tree_equal(load(path).problem, problem, typematch=True)


# -- files that are not what they should be


def rewrite(source: Path, target: Path, *, metadata=lambda m: m, tensors=lambda t: t) -> None:
    """A copy of a team file with its description or its tensors changed, and a SHA-256 that fits."""
    with safe_open(str(source), framework="numpy") as file:
        told = dict(file.metadata())
        held = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    target.write_bytes(sealed(encode(tensors(held), metadata=metadata(told | {SEAL: BLANK}))))


def refused(path: Path, **options) -> str:
    """The sentence with which a file is refused."""
    with pytest.raises(UserError) as told:
        load(path, **options)
    message = str(told.value)
    assert one_sentence(message)
    assert str(path) in message
    return message


def one_sentence(message: str) -> bool:
    """On one line, but for the quotation of a type error that only exists under the tests' own type checker."""
    return "\n" not in message or "Type-check error" in message


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("team") / "team.safetensors"
    TEAMS["learned"].save(path)
    return path


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.9, 0.9999])
def test_a_truncated_file_is_refused(whole, path, share):
    data = whole.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    assert "not a whole team file" in refused(path)


@pytest.mark.parametrize("size", [3, 8, 100, 5000])
def test_random_bytes_are_refused(path, size):
    path.write_bytes(np.random.default_rng(size).bytes(size))
    refused(path)


def test_somebody_elses_safetensors_file_is_refused(path):
    save_file({"weight": np.zeros(3, np.float32)}, str(path))
    assert "not a team of icmape's" in refused(path)


def test_a_file_of_another_version_says_which(whole, path):
    rewrite(whole, path, metadata=lambda m: {**m, "version": "99"})
    assert "99" in refused(path)


def test_a_missing_tensor_is_named(whole, path):
    def drop(tensors):
        return {name: x for name, x in tensors.items() if "query_in" not in name or "policy" not in name}

    rewrite(whole, path, tensors=drop)
    assert "query_in" in refused(path)


def test_a_tensor_too_many_is_named(whole, path):
    rewrite(whole, path, tensors=lambda t: {**t, "stowaway": np.zeros(2, np.float32)})
    assert "stowaway" in refused(path)


@pytest.mark.parametrize("change", [lambda x: x[:1], lambda x: x.astype(np.float64)], ids=["shape", "type"])
def test_a_tensor_of_the_wrong_shape_or_type_is_named(whole, path, change):
    def bend(tensors):
        return {name: change(x) if "inference" in name and "head" in name else x for name, x in tensors.items()}

    rewrite(whole, path, tensors=bend)
    assert "head" in refused(path)


def test_a_tensor_that_is_not_finite_is_named(whole, path):
    def spoil(tensors):
        return {name: np.full_like(x, np.nan) if "query_out" in name else x for name, x in tensors.items()}

    rewrite(whole, path, tensors=spoil)
    assert "query_out" in refused(path)


WRONG_DESCRIPTIONS = {
    "no parts": lambda m: {k: v for k, v in m.items() if k != "parts"},
    "no delta": lambda m: {k: v for k, v in m.items() if k != "delta"},
    "parts are not JSON": lambda m: {**m, "parts": "{"},
    "parts are a list": lambda m: {**m, "parts": "[]"},
    "parts are nothing": lambda m: {**m, "parts": "null"},
    "unknown policy": lambda m: {**m, "parts": m["parts"].replace('"learned"', '"magic"')},
    "unknown setting": lambda m: {**m, "parts": m["parts"].replace('"width"', '"height"')},
    "width of another type": lambda m: {**m, "parts": m["parts"].replace('"width": 6', '"width": "6"')},
    "negative width": lambda m: {**m, "parts": m["parts"].replace('"width": 6', '"width": -6')},
    "another width": lambda m: {**m, "parts": m["parts"].replace('"width": 6', '"width": 7')},
    "another encoder": lambda m: {**m, "parts": m["parts"].replace('"paper+last"', '"paper"')},
    "problem is a word": lambda m: {**m, "problem": '"bandit"'},
    "unknown argument": lambda m: {**m, "problem": m["problem"].replace('"arms"', '"legs"')},
    "argument of another type": lambda m: {**m, "problem": m["problem"].replace('"arms": 2', '"arms": "two"')},
    "centralized is a word": lambda m: {**m, "problem": m["problem"][:-1] + ', "centralized": "yes"}'},
    "centralized after all": lambda m: {**m, "problem": m["problem"][:-1] + ', "centralized": true}'},
    "unknown key": lambda m: {**m, "problem": m["problem"][:-1] + ', "centralised": true}'},
    "no arms": lambda m: {**m, "problem": m["problem"].replace('"arms": 2', '"arms": 0')},
    "more arms": lambda m: {**m, "problem": m["problem"].replace('"arms": 2', '"arms": 3')},
    "delta is a word": lambda m: {**m, "delta": '"small"'},
    "delta is impossible": lambda m: {**m, "delta": "7.0"},
    "card is a word": lambda m: {**m, "card": "card"},
}


@pytest.mark.parametrize("name", WRONG_DESCRIPTIONS)
def test_a_wrong_description_is_refused(whole, path, name):
    rewrite(whole, path, metadata=WRONG_DESCRIPTIONS[name])
    refused(path)


@pytest.mark.parametrize("part", ["anywhere", "header"])
def test_every_flipped_bit_is_noticed(whole, path, part):
    """40 of 40 anywhere, and every bit of the format, the version and the SHA-256, with 40 more of the header."""
    data = whole.read_bytes()
    header = 8 + int.from_bytes(data[:8], "little")
    dice = random.Random(0)
    bits = dice.sample(range(8 * (len(data) if part == "anywhere" else header)), 40)
    if part == "header":
        for word in (b'"format":"icmape-team"', b'"version":"2"', b'"sha256":"'):
            start = data.index(word)
            bits += range(8 * start, 8 * (start + len(word) + 64 * word.endswith(b':"')))
    for bit in bits:
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(bytes(damaged))
        refused(path)


@pytest.mark.parametrize("more", [b"\0", b" ", b"more"])
def test_appended_bytes_are_noticed(whole, path, more):
    path.write_bytes(whole.read_bytes() + more)
    refused(path)


def test_weights_or_settings_that_were_exchanged_are_noticed(whole, path):
    """What fits the description may still not be what was saved."""
    with safe_open(str(whole), framework="numpy") as file:
        told = dict(file.metadata())
        held = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    changed = {name: (x + 1).astype(x.dtype) for name, x in held.items()}
    for tensors, metadata in (
        (changed, told),
        (held, told | {"delta": "0.2"}),
        (held, {name: text for name, text in told.items() if name != SEAL}),
    ):
        save_file(tensors, str(path), metadata=metadata)
        assert "damaged or was edited" in refused(path)


def test_a_file_without_a_digest_is_read_and_told(caplog):
    old = Path(__file__).with_name("of-0.7.safetensors")
    with safe_open(str(old), framework="numpy") as file:
        assert file.metadata()["version"] == UNSEALED
    with caplog.at_level(logging.WARNING):
        load(old)
    assert [record.getMessage() for record in caplog.records] == [
        f"{old} was written by icmape 0.11 or older, without a SHA-256: damage to it is not noticed"
    ]


@pytest.mark.parametrize("name", pretrained())
def test_teams_that_ship_have_a_digest(name):
    with safe_open(str(about(name).path), framework="numpy") as file:
        assert len(file.metadata()[SEAL]) == 64


def test_names_that_are_no_file_are_told_so(tmp_path):
    with pytest.raises(UserError, match="no team file nowhere"):
        load("nowhere")
    with pytest.raises(UserError, match="is a folder"):
        load(tmp_path)


# -- problems from outside


def test_a_file_cannot_make_icmape_import_a_module(path, monkeypatch):
    coin_team().save(path)
    import importlib

    monkeypatch.setattr(importlib, "import_module", lambda name: pytest.fail(f"imported {name}"))
    assert "tests.coins:Coins" in refused(path)


def test_a_team_for_a_problem_from_outside_loads_with_that_problem(path):
    team = coin_team()
    team.save(path)
    for given in (Coins(agents=2), Coins):  # an instance, or the class and the file's own arguments
        assert eqx.tree_equal(load(path, problem=given), team, typematch=True)


def test_another_problem_than_the_files_is_refused(whole, path):
    refused(whole, problem=Bandit(arms=3, players=3, horizon=7))
    assert "bandit" in refused(whole, problem=Coins(agents=2))
    coin_team().save(path)
    assert "tests.coins:Coins" in refused(path, problem=PROBLEM)
    refused(path, problem=Coins(agents=3))


def central_coins() -> Team:
    return Team(Centralized(Coins(agents=2, actions=2)), Uniform(1, 5), FixedLength(2), ExactInference())


def test_a_centralized_team_from_outside_is_not_imported_either(path, monkeypatch):
    central_coins().save(path)
    import importlib

    monkeypatch.setattr(importlib, "import_module", lambda name: pytest.fail(f"imported {name}"))
    assert "tests.coins:Coins" in refused(path)


def test_a_centralized_team_loads_with_the_problem_inside_or_around(path):
    team = central_coins()
    team.save(path)
    for given in (Coins, Coins(agents=2, actions=2), Centralized(Coins(agents=2, actions=2))):
        assert eqx.tree_equal(load(path, problem=given), team, typematch=True)


def test_a_centralized_problem_does_not_fit_another_team(whole, path):
    assert "agents apart" in refused(whole, problem=Centralized(PROBLEM))
    central_coins().save(path)
    assert "tests.coins:Coins" in refused(path, problem=Centralized(PROBLEM))
    assert "tests.coins:Coins" in refused(path, problem=Centralized)


def test_a_given_problem_with_another_prior_is_used(whole):
    """A team can be judged under a prior it was not trained for."""
    other = Bandit(arms=2, players=3, horizon=7, mean_low=0.6)
    assert load(whole, problem=other).problem is other


def test_weights_in_16_bits_take_half_the_room_and_are_computed_with_in_32(tmp_path: Path):
    whole, half, policy = (tmp_path / name for name in ("whole", "half", "policy"))
    team = lively_team()
    team.save(whole)
    team.save(half, half=("policy", "inference"))
    team.save(policy, half=("policy",))
    assert half.stat().st_size < policy.stat().st_size < whole.stat().st_size
    loaded = load(half)
    for rounded, leaf in zip(jax.tree.leaves(loaded.policy), jax.tree.leaves(team.policy), strict=True):
        assert rounded.dtype == leaf.dtype
        np.testing.assert_array_equal(rounded, np.asarray(leaf).astype(np.float16).astype(leaf.dtype))
    as_it_was = jax.tree.leaves(load(policy).inference), jax.tree.leaves(team.inference)
    assert all(np.array_equal(a, b) for a, b in zip(*as_it_was, strict=True))


def test_a_rounded_team_is_known_by_the_file_that_it_was_rounded_from(tmp_path: Path):
    whole, rounded = tmp_path / "whole.safetensors", tmp_path / "rounded.safetensors"
    lively_team().save(whole)
    assert about(whole).digest == file_digest(whole)
    card = json.dumps({"rounded_from": about(whole).digest})
    dataclasses.replace(lively_team(), card=card).save(rounded, half=("policy", "inference"))
    assert about(rounded).digest == about(whole).digest != file_digest(rounded)
