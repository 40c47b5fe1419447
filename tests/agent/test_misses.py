"""Missing readings without JAX: agents and answers are those of icmape, in all runtimes; older files take none."""

import json
import shutil
from functools import cache
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import icmape_agent
from examples.dials import Dials
from icmape import STOP, Centralized, Team, UserError
from icmape.baselines.greedy import local_greedy
from icmape.export import export
from icmape.export.compare import agreement, check
from icmape.export.formats import FAILURES, FORMATS, batches
from icmape.export.light import light_team
from icmape.play.inference import ExactInference
from icmape.play.open_loop import Schedule
from icmape.play.programs.describe import team_program
from icmape.play.stop import FixedLength, LearnedStop
from icmape.play.team_files import load, pretrained, team_tensors
from icmape.zoo.bandit.bandit import Bandit
from icmape_agent.readings import Gate
from tests.agent.test_light import learned, refused_alike
from tests.coins import Coins
from tests.export.test_export import in_node
from tests.support import lively_team, small_bandit

TEAMS = {
    "network": lively_team,
    "exact": lambda: Team(
        small_bandit(), Schedule(jnp.array([[0, 1, 1], [1, 0, 0]]), 3), FixedLength(5), ExactInference()
    ),
}


@cache
def under_failures(name: str):
    """A team with failures, its program, and episodes."""
    team = TEAMS[name]()
    under = team.under(lost=0.4, silent=0.05)
    return team, team_program(team, team_tensors(team)), under, list(batches(under, 20, seed=3))


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("name", TEAMS)
def test_scores_under_failures_are_those_of_jax(name, to):
    """Lost readings and silent agents, in NumPy, ONNX and JavaScript."""
    if to == "js" and shutil.which("node") is None:
        pytest.skip("Node is not installed")
    if to == "onnx":
        pytest.importorskip("onnxruntime")
    team, program, under, played = under_failures(name)
    assert program.described["misses"] == ["agent", "inference"]
    assert sum((~episode.arrived).sum() for batch in played for episode in batch) > 40
    found = agreement(under, played, FORMATS[to](team, program).runner)
    check(found, name)
    assert (found.episodes, found.differing_choices, found.differing_answers) == (20, 0, 0)


@pytest.mark.parametrize("name", pretrained())
def test_pretrained_teams_take_misses_as_icmape_does(name):
    """One agent through readings and misses, and the answer from data with gaps."""
    full, light, rng = load(name), icmape_agent.load(name), np.random.default_rng(1)
    assert light.takes_missing
    firsts = [reading(light.gate, i, rng) for i in range(light.gate.sizes.agents)] if light.gate.shows_first else None
    pair = [team.agent(1, firsts and firsts[1]) for team in (full, light)]
    rows, seen = [], []
    for number in range(5):
        actions = [agent.act() for agent in pair]
        assert actions[0] == actions[1]
        np.testing.assert_allclose(np.asarray(pair[0].scores), pair[1].scores, atol=1e-4, rtol=1e-5)
        if actions[0] == STOP:
            break
        readings = [reading(light.gate, i, rng) for i in range(light.gate.sizes.agents)]
        readings[1] = None if number % 2 else readings[1]
        for agent in pair:
            agent.missed() if readings[1] is None else agent.see(actions[0], readings[1])
        rows.append([None if i == 0 and number == 1 else actions[0] for i in range(len(readings))])
        readings[0] = None if rows[-1][0] is None else readings[0]
        seen.append(readings)
    if not light.described.masked:
        answers = [team.posterior(rows, seen, firsts) for team in (full, light)]
        assert answers[0].name == answers[1].name
        assert answers[0].confidence == pytest.approx(answers[1].confidence, abs=1e-5)
        assert answers[0].reason == answers[1].reason


def reading(gate: Gate, agent: int, rng: np.random.Generator):
    """A reading in its range."""
    parts = []
    for part in gate.parts:
        limits = part.limits_of(agent)
        x = limits.low + (np.minimum(limits.high, limits.low + 4) - limits.low) * rng.random(part.shape)
        parts.append(np.where(limits.whole, np.round(x), x).astype(part.dtype))
    return tuple(parts) if len(parts) > 1 else parts[0]


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("misses") / "team.safetensors"
    lively_team().save(path)
    return path


def test_past_readings_and_the_reason_are_those_of_icmape(path):
    data = [[0, 0, 1], [0, None, 1], [1, 0, 0]], [[1, None, 0], [None, None, 1], [0, 1, None]]
    answers = [team.posterior(*data) for team in (load(path), icmape_agent.load(path))]
    np.testing.assert_allclose(np.asarray(answers[0].scores), answers[1].scores, atol=1e-5)
    assert answers[0].reason == answers[1].reason
    acts = [team.act(1, [0, 1, 1], [1, None, 0]) for team in (load(path), icmape_agent.load(path))]
    assert acts[0] == acts[1]


@pytest.mark.parametrize(
    "mistake",
    [
        lambda team: team.agent(0).missed(7),
        lambda team: team.agent(0).see(0, None),
        lambda team: team.posterior([[0, None, 1]], [[1, 1, 1]]),
        lambda team: [agent.missed(0) for agent in [team.agent(0)] for _ in range(7)],
        lambda team: stopped(team).missed(),
    ],
)
def test_what_the_full_team_refuses_of_misses_the_light_one_refuses_in_the_same_words(path, mistake):
    refused_alike(path, mistake)


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
def test_a_page_says_that_a_reading_is_missing(tmp_path):
    export(lively_team(), "js", tmp_path, episodes=2)
    told = in_node(
        tmp_path,
        """const agent = team.agent(1), errors = [];
        agent.see(0, 1); agent.missed(); agent.missed(1);
        const answer = team.posterior([[0, 0, 1], [0, null, 1]], [[1, null, 0], [null, null, 1]]);
        const fails = (f) => { try { f(); } catch (error) { errors.push(error.message); } };
        fails(() => agent.missed(7)); fails(() => team.posterior([[0, null, 1]], [[1, 1, 1]]));
        fails(() => agent.see(0, null));
        out({ scores: Array.from(agent.scores), name: answer.name, confidence: answer.confidence, errors });""",
    )
    agent = lively_team().agent(1)
    agent.see(0, 1)
    agent.missed()
    agent.missed(1)
    answer = lively_team().posterior([[0, 0, 1], [0, None, 1]], [[1, None, 0], [None, None, 1]])
    np.testing.assert_allclose(told["scores"], agent.scores, atol=1e-5)
    assert told["name"] == answer.name
    assert told["confidence"] == pytest.approx(answer.confidence, abs=1e-5)
    assert len(told["errors"]) == 3


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
def test_a_page_takes_no_action_from_scores_that_are_no_numbers(tmp_path):
    """Scores that are not numbers."""
    export(lively_team(), "js", tmp_path, episodes=2)
    told = in_node(
        tmp_path,
        """const agent = team.agent(1), errors = [];
        const fails = (f) => { try { f(); errors.push(""); } catch (error) { errors.push(error.message); } };
        agent.scores = agent.scores.map(() => NaN); fails(() => agent.act());
        agent.scores[0] = 1; fails(() => agent.act());
        out(errors);""",
    )
    assert told == ["the scores of agent 1 are not finite after 0 rounds"] * 2


class Waiting(Bandit):
    """The second arm may be pulled after the first round only."""

    def action_mask(self, memory):
        return jnp.array([True, False]) | (memory.arm >= 0)


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
def test_a_page_refuses_data_with_actions_that_the_mask_excludes(tmp_path):
    """Up to the first round in which it is not known what the agent did, as without a page."""
    team = learned(Waiting(arms=2, players=3, horizon=7))
    data = [
        ([[0, 0, 0], [1, 1, 0]], [[1, 0, 1], [0, 0, 1]]),
        ([[0, 1, 0]], [[1, 0, 1]]),
        ([[0, 0, 1]], [[1, 0, None]]),
        ([[0, None, 0], [0, 1, 0]], [[1, None, 1], [1, 0, 1]]),
    ]
    export(team, "js", tmp_path, episodes=2)
    refused = in_node(
        tmp_path,
        f"""const refused = [];
        for (const [actions, seen] of {json.dumps(data)}) {{
          try {{ team.posterior(actions, seen); refused.push(false); }} catch (error) {{ refused.push(error.message); }}
        }}
        out(refused);""",
    )
    light = light_team(team, team_program(team, team_tensors(team)))
    for (actions, seen), said in zip(data, refused, strict=True):
        if said:
            with pytest.raises(UserError, match="action 1 was not allowed to agent"):
                light.posterior(actions, seen)
        else:
            light.posterior(actions, seen)
    assert refused == [False, "action 1 is not allowed", "action 1 is not allowed", False]


def stopped(team):
    """An agent in the round in which it must stop, before it said so."""
    agent = team.agent(0)
    for _ in range(small_bandit().horizon - 1):
        agent.see(0, 1)
    return agent


def test_a_file_of_version_0_12_acts_as_before_and_refuses_misses(path, tmp_path):
    """Its functions have no marks."""
    team = lively_team()
    plain = light_without_misses(team, path, tmp_path / "old.safetensors")
    marked = icmape_agent.load(path)
    assert not plain.takes_missing
    data = [[0, 0, 1], [0, 1, 1]], [[1, 0, 0], [1, 1, 0]]
    np.testing.assert_array_equal(plain.posterior(*data).scores, marked.posterior(*data).scores)
    agents = [each.agent(2) for each in (plain, marked)]
    for agent in agents:
        agent.see(0, 1)
    np.testing.assert_array_equal(*(agent.scores for agent in agents))
    for mistake in (lambda: plain.agent(0).missed(1), lambda: plain.posterior([[0, 0, 0]], [[1, 1, None]])):
        with pytest.raises(UserError, match=r"takes no missing readings; .*icmape export TEAM --to light"):
            mistake()


def light_without_misses(team: Team, path: Path, old: Path) -> icmape_agent.Team:
    """The team from a file as 0.12 wrote it."""
    from icmape.play.programs import functions as traced

    program, tensors = team_program(team, team_tensors(team)), {}
    named = team_tensors(team)
    without = [make(team, named, tensors, False) for make in (traced.agent_functions, traced.inference_functions)]
    described = {**program.described, "functions": without[0] | without[1]}
    del described["misses"]
    with safe_open(str(path), framework="numpy") as file:
        metadata = dict(file.metadata())
        kept = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    from icmape_agent.sealing import BLANK, SEAL, sealed

    save_file(kept | tensors, str(old), metadata=metadata | {"program": json.dumps(described), SEAL: BLANK})
    old.write_bytes(sealed(old.read_bytes()))
    return icmape_agent.load(old)


def test_policies_that_keep_their_own_account_take_no_misses():
    team = Team(small_bandit(), local_greedy(small_bandit(), delta=0.1), LearnedStop(), lively_team().inference)
    program = team_program(team, team_tensors(lively_team()))
    assert "agent" not in program.described["misses"]
    assert "inference" in program.described["misses"]


def test_a_centralized_team_takes_none_and_its_program_is_as_before():
    team = learned(Centralized(Coins(agents=2, actions=2)))
    program = team_program(team, team_tensors(team))
    assert (program.described["misses"], program.described["missing"]) == ([], {})


@pytest.mark.parametrize("make", [lambda: learned(Dials()), lively_team])
def test_teams_of_unreliable_problems_hold_programs(make):
    """The program is that of the team without failures."""
    team = make()
    under = team.under(**FAILURES)
    ours, theirs = (team_program(each, team_tensors(each)).described for each in (team, under))
    assert theirs["misses"] == ours["misses"]
    if "agent" in ours["misses"]:
        assert theirs["functions"]["move"] == ours["functions"]["move"]
        agent = light_team(under, team_program(under, team_tensors(under))).agent(0)
        agent.missed()
        assert agent.round == 1


def test_a_program_whose_marks_do_not_fit_is_refused(path):
    described = json.loads(json.dumps(team_program(lively_team(), team_tensors(lively_team())).described))
    tensors = {name: np.asarray(x) for name, x in team_tensors(lively_team()).items()}
    from icmape_agent.description import read_description

    for misses in (["agent"], [], ["inference"], "agent", ["other"], 3):
        with pytest.raises(ValueError, match=r"missing readings|takes or gives other values"):
            read_description({**described, "misses": misses}, tensors)
