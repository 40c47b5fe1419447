"""Agents that need NumPy only choose what those of icmape choose, and refuse what they refuse."""

import copy
import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import icmape_agent
from examples.dials import Dials
from icmape import Centralized, LocalPolicy, Team, UserError
from icmape.export.compare import TOLERANCE, agreement, check
from icmape.export.formats import batches
from icmape.export.light import light_runner, light_team
from icmape.networks import Actors
from icmape.play.inference import ExactInference
from icmape.play.open_loop import Schedule, Uniform
from icmape.play.policy import LearnedPolicy
from icmape.play.programs.describe import team_program
from icmape.play.stop import FixedLength, LearnedStop, Threshold
from icmape.play.team_files import load, pretrained, team_tensors
from icmape_agent.description import read_description
from tests.coins import Coins
from tests.play.test_team_files import planned_team, value_team
from tests.support import drawn, lively_team, small_bandit

LIGHT = Path(__file__).parents[2] / "results" / "light.json"
PROBLEM = small_bandit()


def learned(problem, width: int = 3, seed: int = 0) -> Team:
    actors = drawn(lambda: Actors(problem, width, "paper", 0.0, True, key=jax.random.key(0)), seed)
    return Team(problem, LearnedPolicy(actors), LearnedStop(), ExactInference())


class Counting(LocalPolicy):
    """A policy of one's own: it takes action 0 until it was paid twice, and keeps what it saw in its state."""

    team_size: int = eqx.field(static=True)

    @property
    def agents(self):
        return self.team_size

    def start_agent(self):
        return jnp.zeros((2,), jnp.int32)

    def decide_agent(self, state, agent, view, number, *, key):
        state = state.at[jnp.argmax(view.token).astype(jnp.int32) % 2].add(1)
        return state, jnp.stack([jnp.float32(1), state[0].astype(jnp.float32), jnp.float32(0.5)])


TEAMS = {
    "a network each": lively_team,
    "planned": planned_team,
    "values": value_team,
    "schedule": lambda: Team(PROBLEM, Schedule(jnp.array([[0, 1, 1], [1, 0, 0]]), 3), FixedLength(4), ExactInference()),
    "counting": lambda: Team(PROBLEM, Counting(3), FixedLength(3), lively_team().inference),
    "coins": lambda: learned(Coins(agents=2, actions=2)),
    "dials": lambda: learned(Dials()),
    "centralized": lambda: learned(Centralized(Coins(agents=2, actions=2))),
}


@cache
def made(name: str) -> Team:
    return TEAMS[name]()


@pytest.mark.parametrize("name", TEAMS)
def test_scores_are_those_of_jax(name):
    """Networks, schedules, values, policies and problems of one's own: the same choices, scores to 10⁻⁵."""
    team = made(name)
    program = team_program(team, team_tensors(team) if name != "counting" else {})
    assert program.described["missing"] == {}
    found = agreement(team, batches(team, 30, seed=5), light_runner(team, program))
    check(found, name)
    assert (found.episodes, found.beyond, found.differing_choices, found.differing_answers) == (30, 0, 0, 0)
    assert found.decisions >= 30 * team.problem.agents


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("light") / "team.safetensors"
    lively_team().save(path, half=("policy", "inference"))
    return path


def test_agents_and_answers_from_a_file_are_those_of_icmape(path):
    full, light, rng = load(path), icmape_agent.load(path), np.random.default_rng(0)
    readings = rng.integers(0, 2, (PROBLEM.horizon, PROBLEM.agents))
    rows, pairs = [], [(full.agent(i), light.agent(i)) for i in range(PROBLEM.agents)]
    for t in range(PROBLEM.horizon):
        chosen = [(one.act(), other.act()) for one, other in pairs]
        assert all(a == b for a, b in chosen)
        answers = [team.posterior(rows, readings[:t].tolist()) for team in (full, light)]
        assert answers[0].name == answers[1].name
        assert answers[0].reason == answers[1].reason
        assert str(answers[0]) == str(answers[1]) or answers[0].confidence != answers[1].confidence
        np.testing.assert_array_equal(answers[0].decision, answers[1].decision)
        np.testing.assert_allclose(answers[0].probabilities, answers[1].probabilities, atol=1e-5)
        assert answers[0].confidence == pytest.approx(answers[1].confidence, abs=1e-5)
        sets = [answer.credible_set(0.8) for answer in answers]
        np.testing.assert_array_equal(sets[0].answers, sets[1].answers)
        if any(a == icmape_agent.STOP for a, _ in chosen):
            assert "stop" in answers[1].reason or "horizon" in answers[1].reason
            break
        for (one, other), (action, _), reading in zip(pairs, chosen, readings[t], strict=True):
            one.see(action, int(reading))
            other.see(action, int(reading))
        rows.append([action for action, _ in chosen])
    assert rows


@pytest.mark.parametrize(
    "mistake",
    [
        lambda team: team.agent(3),
        lambda team: team.agent(0).see(7, 1),
        lambda team: team.agent(0).see(0, 0.5),
        lambda team: team.agent(0).see(0, [1, 0]),
        lambda team: team.agent(0).see(0, float("nan")),
        lambda team: team.agent(0).see(0, True),
        lambda team: team.agent(0).see(0, 2),
        lambda team: team.act(0, [1, 0], [1]),
        lambda team: team.posterior([[0, 0, 5]], [[1, 1, 1]]),
        lambda team: team.posterior([[0, 0, 0]] * 7, [[1, 1, 1]] * 7),
        lambda team: team.posterior([[0, 0]], [[1, 1]]),
        lambda team: team.posterior([[0, 0, 0]], [[1, 1, 3]]),
    ],
)
def test_what_the_full_team_refuses_the_light_one_refuses_in_the_same_words(path, mistake):
    refused_alike(path, mistake)


def refused_alike(path: Path, mistake) -> None:
    """The full team and the light one say the same."""
    told = []
    for team in (load(path), icmape_agent.load(path)):
        with pytest.raises(UserError) as error:
            mistake(team)
        told.append(str(error.value))
    assert told[0] == told[1]


def test_a_team_that_stops_on_everyones_data_still_answers():
    team = Team(PROBLEM, Schedule(jnp.zeros((1, 3), jnp.int32), 3), Threshold(0.3), ExactInference())
    light = light_team(team, team_program(team, team_tensors(team)))
    with pytest.raises(UserError, match="acts or stops on everyone's data"):
        light.agent(0)
    ours, theirs = (each.posterior([[0, 0, 0]], [[1, 1, 1]]) for each in (team, light))
    np.testing.assert_allclose(ours.probabilities, theirs.probabilities, atol=1e-6)
    assert ours.reason == theirs.reason == "the posterior is sure enough: 0.333 against 0.3"


def test_random_actions_are_refused_with_the_reason():
    team = Team(PROBLEM, Uniform(3, 3), FixedLength(4), ExactInference())
    light = light_team(team, team_program(team, team_tensors(team)))
    with pytest.raises(UserError, match="draws random numbers"):
        light.agent(0)
    assert light.posterior([], []).confidence == pytest.approx(1 / 9, abs=1e-6)


class Raising(Counting):
    def decide_agent(self, state, agent, view, number, *, key):
        raise RuntimeError("not\ntoday")


class Looping(Counting):
    def decide_agent(self, state, agent, view, number, *, key):
        much = jax.lax.while_loop(lambda x: x < 10, lambda x: x + view.token[0] + 1, 0.0)
        return state, jnp.full(3, much)


class Long(Counting):
    def decide_agent(self, state, agent, view, number, *, key):
        step = lambda c, _: (jax.lax.fori_loop(0, 300, lambda i, x: jnp.sin(x + c), c), None)  # noqa: E731
        return state, jnp.full(3, jax.lax.scan(step, view.token[0], None, length=300)[0])


@pytest.mark.parametrize(
    ("policy", "why"),
    [(Raising, "RuntimeError: not today"), (Looping, "length depends on data"), (Long, "more than 5,000 operations")],
)
def test_what_cannot_be_traced_says_why_and_the_rest_works(policy, why):
    team = Team(PROBLEM, policy(3), FixedLength(3), ExactInference())
    light = light_team(team, team_program(team, {}))
    with pytest.raises(UserError, match=why):
        light.agent(0)
    assert light.posterior([[0, 0, 0]], [[1, 1, 1]]).confidence == pytest.approx(1 / 3, rel=1e-5)


def test_a_file_without_a_program_says_how_to_get_one():
    old = Path(__file__).parents[1] / "play" / "of-0.7.safetensors"
    with pytest.raises(UserError, match=r"icmape export .* --to light"):
        icmape_agent.load(old)


@pytest.mark.parametrize("name", pretrained())
def test_every_pretrained_team_holds_its_program(name):
    team = icmape_agent.load(name)
    assert team.described.missing == {}
    assert team.answers.kind in ("factored", "categorical", "topk")


@pytest.mark.parametrize("name", pretrained())
def test_every_pretrained_team_was_compared_in_1000_episodes_and_is_quick_and_small(name):
    """What `python -m benchmarks.light` found: choices differ only between scores that are within the bound."""
    entry = json.loads(LIGHT.read_text())["teams"].get(name)
    assert entry is not None, f"python -m benchmarks.light {name}"
    for runtime in ("light", "onnx", "js"):
        for compared in (entry[runtime], entry[f"{runtime}_failures"]):
            assert compared["episodes"] >= 1000
            assert compared["decisions"] >= 1000
            assert compared["largest_gap"] <= TOLERANCE
        assert entry[runtime]["beyond"] == 0
        with_failures = entry[f"{runtime}_failures"]  # where episodes are longer: docs/how-to/export.md says how far
        assert with_failures["beyond"] <= 1
        assert with_failures["largest_difference"] <= 3 * TOLERANCE
    process = entry["process"]
    assert process["import_seconds"] <= 0.2
    assert process["load_seconds"] <= 0.2
    assert process["milliseconds_per_reading"] <= 1
    assert process["resident_megabytes"] <= 60


def test_nothing_but_numpy_and_safetensors_is_imported(path):
    code = (
        "import sys, icmape_agent; team = icmape_agent.load(sys.argv[1]); agent = team.agent(0);"
        "agent.see(agent.act(), 1); print(team.posterior([[0, 0, 0]], [[1, 1, 1]]).reason);"
        "extra = {name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names);"
        "print(*sorted(name for name in extra if not name.startswith('_')))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code, str(path)], env=environment(), capture_output=True, text=True
    )
    assert set(done.stdout.splitlines()[-1].split()) == {"icmape_agent", "numpy", "safetensors"}, done.stderr


def environment() -> dict[str, str]:
    """Paths of the packages alone: no other package's start-up file is run."""
    places = {str(Path(module.__file__).parents[1]) for module in (icmape_agent, np, sys.modules["safetensors"])}
    return {"PYTHONPATH": ":".join(sorted(places)), "PATH": "/usr/bin:/bin"}


# -- programs that are not what they should be


@cache
def described() -> tuple[dict, dict]:
    team = lively_team()
    program = team_program(team, team_tensors(team))
    return program.described, {name: np.asarray(x) for name, x in team_tensors(team).items()} | program.tensors


def bent(change) -> dict:
    whole = copy.deepcopy(described()[0])
    change(whole)
    return json.loads(json.dumps(whole))


def operation(name: str, operands: list, params: dict):
    """A change that puts an operation in the place of the last one of `move`."""

    def change(whole: dict) -> None:
        whole["functions"]["move"]["operations"][-1] = [name, operands, params]

    return change


MALFORMED = {
    "unknown operation": operation("exec", [0], {"code": "import os"}),
    "value that comes later": operation("neg", [10_000], {}),
    "negative value": operation("neg", [-1], {}),
    "no value": operation("neg", [True], {}),
    "missing tensor": operation("tensor", [], {"name": "/etc/passwd"}),
    "too large": operation("affine", [], {"type": "int32", "shape": [2**30], "start": 0, "steps": [1]}),
    "too large by its axes": operation("broadcast", [0], {"shape": [4096, 4096, 4096]}),
    "negative size": operation("reshape", [0], {"shape": [-1]}),
    "too many axes": operation("broadcast", [0], {"shape": [1] * 40}),
    "parameter too many": operation("neg", [0], {"axis": 0}),
    "operand too many": operation("neg", [0, 0], {}),
    "other kind": operation("exp", [0], {}),
    "numbers that do not fit": operation("affine", [], {"type": "int8", "shape": [999], "start": 0, "steps": [1]}),
    "unknown type": operation("convert", [0], {"type": "object"}),
    "not an operation": lambda whole: whole["functions"]["move"]["operations"].__setitem__(0, "neg"),
    "too many operations": lambda whole: whole["functions"]["move"]["operations"].extend([["neg", [0], {}]] * 20_000),
    "too much work": lambda whole: whole["functions"]["move"]["operations"].extend(
        [["broadcast", [0], {"shape": [4096, 4096]}]] * 20
    ),
    "other outputs": lambda whole: whole["functions"]["move"]["outputs"].reverse(),
    "function missing": lambda whole: whole["functions"].pop("add"),
    "function too many": lambda whole: whole["functions"].update(other=whole["functions"]["open"]),
    "sizes": lambda whole: whole["sizes"].update(agents=0),
    "other sizes": lambda whole: whole["sizes"].update(actions=5),
    "key too many": lambda whole: whole.update(code="print()"),
    "no layout": lambda whole: whole.update(layout=7),
    "deep layout": lambda whole: whole.update(layout=json.loads("[" * 200 + "0" + "]" * 200)),
    "names": lambda whole: whole["answers"].update(names=["one"]),
    "kind of answers": lambda whole: whole["answers"].update(kind="magic"),
    "stop": lambda whole: whole["stop"].update(kind="never"),
    "functions": lambda whole: whole.update(functions=[]),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_program_is_refused_in_one_sentence(name, path, tmp_path):
    with safe_open(str(path), framework="numpy") as file:
        metadata, tensors = dict(file.metadata()), {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    metadata["program"] = json.dumps(bent(MALFORMED[name]))
    save_file(tensors, str(tmp_path / "bent.safetensors"), metadata=metadata)
    with pytest.raises(UserError) as told:
        icmape_agent.load(tmp_path / "bent.safetensors")
    assert "\n" not in str(told.value)
    assert "bent.safetensors" in str(told.value)


def test_random_changes_of_a_program_are_refused_or_run():
    """Whatever a description says: ValueError, KeyError, TypeError, or functions of the checked shapes."""
    rng, tensors, refused = np.random.default_rng(0), described()[1], 0
    values = [None, -1, 0, 1, 3, 2**31, 1e9, "", "neg", "float32", [], [0], [[]], {}, True]
    for _ in range(200):
        whole = copy.deepcopy(described()[0])
        place = whole["functions"] if rng.random() < 0.7 else whole
        while isinstance(place, dict | list) and len(place):
            key = list(place)[rng.integers(len(place))] if isinstance(place, dict) else int(rng.integers(len(place)))
            if not isinstance(place[key], dict | list) or not len(place[key]) or rng.random() < 0.1:
                place[key] = values[rng.integers(len(values))]
                break
            place = place[key]
        try:
            team = icmape_agent.Team(read_description(json.loads(json.dumps(whole)), tensors), 0.1)
            agent = team.agent(0)
            assert agent.scores.shape == (PROBLEM.actions + 1,)
        except (UserError, KeyError, TypeError, ValueError, OverflowError, AttributeError):
            refused += 1
    assert refused > 60
