"""A team of this package in a session: the same agents, the same answer, with and without JAX."""

import dataclasses
import time

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import icmape_agent
from benchmarks.session_team import Coins, crew, toss
from icmape import STOP, UserError
from icmape.baselines.greedy import local_greedy
from icmape.baselines.tuning import with_level
from icmape.play.inference import ExactInference
from icmape.play.open_loop import Schedule
from icmape.play.sessions import crew as crew_of
from icmape.play.stop import FixedLength, Threshold
from icmape.play.team import Team
from icmape.play.team_files import load
from icmape.zoo.bandit.bandit import Bandit
from icmape.zoo.signal.signal import Signal
from icmape_agent.session import Refusal, open_session
from tests.coins import Coins as Tossed
from tests.support import lively_team, small_bandit

PROBLEM = small_bandit()


def reading(agent: int, number: int, arm: int) -> int:
    return int(number < 3) if agent == 0 else (agent + number * arm) % 2


def test_a_session_is_the_team_and_goes_on_after_a_restart_with_or_without_jax(tmp_path):
    """Three programs take turns at one journal; beside them agents that were never interrupted."""
    team = lively_team()
    team.save(tmp_path / "team.safetensors")
    light = icmape_agent.load(tmp_path / "team.safetensors")
    programs = [team, light, load(tmp_path / "team.safetensors")]
    agents = [team.agent(i) for i in range(PROBLEM.agents)]
    rows, seen = [], []
    for number in range(PROBLEM.horizon):
        with programs[number % 3].session(tmp_path / "s") as session:
            asked = [session.ask(i) for i in range(PROBLEM.agents)]
            expected = [agent.act() for agent in agents]
            if STOP in expected:
                break
            assert asked == expected
            rows.append(asked)
            seen.append([reading(i, number, arm) for i, arm in enumerate(asked)])
            for i in reversed(range(PROBLEM.agents)):
                session.tell(i, asked[i], seen[-1][i], round=number)
                agents[i].see(asked[i], seen[-1][i])
    assert asked[expected.index(STOP) :] == [STOP] * (PROBLEM.agents - expected.index(STOP))
    assert 2 <= len(rows) < PROBLEM.horizon - 1  # an agent stopped by itself
    expected = team.posterior(rows, seen)
    for program in programs[:2]:
        with program.session(tmp_path / "s") as session:
            answer = session.answer()
            np.testing.assert_array_equal(answer.decision, expected.decision)
            assert answer.confidence == pytest.approx(expected.confidence, rel=1e-4)
            reply = session.handle({"type": "answer"})
            assert (reply["name"], reply["decision"]) == (expected.name, expected.decision.tolist())
            assert reply["rounds"] == list(range(len(rows)))


def test_a_session_with_misses_is_the_team_that_is_told_of_them(tmp_path):
    """Agents decide as in the field with `missed`, and the answer is that of the posterior with None."""
    team = lively_team()
    agents = [team.agent(i) for i in range(PROBLEM.agents)]
    missed = {(1, 0), (0, 1), (2, 1)}
    rows, seen = [], []
    for number in range(2):
        with team.session(tmp_path / "s") as session:
            asked = [session.ask(i) for i in range(PROBLEM.agents)]
            assert asked == [agent.act() for agent in agents]
            rows.append(list(asked))
            seen.append([None if (i, number) in missed else reading(i, number, asked[i]) for i in range(3)])
            for i, value in enumerate(seen[-1]):
                if value is None:
                    session.missed(i, asked[i])
                    agents[i].missed(asked[i])
                else:
                    session.tell(i, asked[i], value)
                    agents[i].see(asked[i], value)
    with team.session(tmp_path / "s") as session:
        assert session.ask(0) == agents[0].act() == STOP
        reply, answer = session.handle({"type": "answer"}), session.answer()
    assert (reply["rounds"], reply["partial"]) == ([], [0, 1])
    expected = team.posterior(rows, seen)
    np.testing.assert_array_equal(answer.scores, expected.scores)
    assert not np.allclose(expected.scores, team.posterior([], []).scores)


def test_who_did_something_nobody_knows_did_nothing_in_the_answer(tmp_path):
    """A miss without an action: None in the data. An agent that was never asked plays what it would have done."""
    team = lively_team()
    with team.session(tmp_path) as session:
        session.missed(0)
        session.tell(1, 0, 1)
        session.tell(2, 1, 0)
        session.stop(round=1)
        answer = session.answer()
    np.testing.assert_array_equal(answer.scores, team.posterior([[None, 0, 1]], [[None, 1, 0]]).scores)


def test_a_team_that_takes_no_misses_counts_whole_rounds(tmp_path):
    """Its policy keeps its own account of readings."""
    team = with_level(local_greedy(Tossed(), 0.1), 0.999)
    assert not crew_of(team).takes_missing
    with team.session(tmp_path) as session:
        first = session.ask(0)
        session.missed(0)
        assert session.ask(0) == first
        session.tell(0, first, 1)
        session.stop(round=2)
        reply = session.handle({"type": "answer"})
        assert (reply["rounds"], reply["partial"]) == ([1], [])
        assert reply["confidence"] == pytest.approx(team.posterior([[first]], [[1]]).confidence, abs=1e-6)


def test_readings_pass_the_gate_of_the_problem(tmp_path):
    with lively_team().session(tmp_path) as session:
        for value, named in ((0.9, "0 or 1"), (300, "300"), ([1, 0], "shape"), (True, "True")):
            reply = session.handle({"type": "tell", "agent": 0, "round": 0, "action": 0, "reading": value})
            assert reply["error"]["kind"] == "refused"
            assert named in reply["error"]["text"]
        with pytest.raises(Refusal, match="finite"):
            session.tell(0, 0, np.nan)


def test_another_team_and_another_problem_are_refused(tmp_path):
    team = lively_team()
    team.session(tmp_path).close()
    moved = eqx.tree_at(lambda t: t.policy.actors.actor.head.bias, team, replace_fn=lambda b: b + 1e-3)
    for other in (moved, dataclasses.replace(team, delta=0.2)):
        with pytest.raises(UserError, match="started with another team"):
            other.session(tmp_path)
    prior = dataclasses.replace(team, problem=Bandit(arms=2, players=3, horizon=7, mean_low=0.4))
    with pytest.raises(UserError, match="started with another problem"):
        prior.session(tmp_path)


def test_a_team_that_stops_on_everyones_data_has_no_session(tmp_path):
    team = Team(PROBLEM, Schedule(jnp.zeros((1, 3), jnp.int32), 3), Threshold(0.9), ExactInference())
    with pytest.raises(UserError, match="cannot act alone in a session"):
        team.session(tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_readings_of_several_parts_are_nested_lists(tmp_path):
    """Windows and positions on a grid, the first before round 0, as JSON and as arrays."""
    problem = Signal(grid=7, window=3, move=1, distance=3, horizon=6, detectors=1, starts=[[3, 3], [1, 1]])
    team = Team(problem, Schedule(jnp.array([[1, 4], [3, 4]]), problem.actions + 1), FixedLength(2), ExactInference())
    windows = np.zeros((3, 3))
    first = [(windows, [[3, 3]]), (windows, [[1, 1]])]
    assert [np.shape(part) for part in crew_of(team).gate.reading(0, first[0])] == [(3, 3), (1, 2)]
    with team.session(tmp_path, first=first) as session:
        assert [session.ask(i) for i in range(2)] == [team.agent(i, first[i]).act() for i in range(2)]
        session.tell(0, 1, (windows, [[4, 3]]))
        message = {"type": "tell", "agent": 1, "round": 0, "action": 4, "reading": [windows.tolist(), [[1, 1]]]}
        assert session.handle(message)["ok"]
        for agent, action, place in ((0, 3, [[4, 4]]), (1, 4, [[1, 1]])):
            assert session.ask(agent) != STOP
            session.tell(agent, action, (windows, place))
        assert session.ask(0) == STOP
        answer = session.answer()
    seen = [[(windows, [[4, 3]]), (windows, [[1, 1]])], [(windows, [[4, 4]]), (windows, [[1, 1]])]]
    assert answer.decision == team.posterior([[1, 4], [3, 4]], seen, first).decision
    with team.session(tmp_path, first=first) as session:
        assert session.answer().confidence == answer.confidence


def test_a_long_session_is_open_at_once(tmp_path, monkeypatch):
    """50 rounds of six agents: a second of work is many times what it takes."""
    monkeypatch.setattr("os.fsync", lambda file: None)
    team = crew(Coins(agents=6, horizon=52, lead=60))
    with open_session(team, tmp_path) as session:
        for number in range(50):
            for agent in range(6):
                session.tell(agent, number % 4, toss(0, agent, number, number % 4), round=number)
        expected = [session.ask(agent) for agent in range(6)]
    began = time.process_time()
    with open_session(team, tmp_path) as session:
        assert [session.ask(agent) for agent in range(6)] == expected
    assert time.process_time() - began < 1
