"""Whatever the order, the delays and the repetitions of messages: the same answer."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.session_team import Coins, crew, toss
from icmape_agent.session import open_session

SEEDS = range(12)


@pytest.fixture(autouse=True)
def unflushed(monkeypatch) -> None:
    """These tests are about order, not about disks."""
    monkeypatch.setattr("os.fsync", lambda file: None)


def tell(world: int, agent: int, number: int, action: int) -> dict[str, Any]:
    return {
        "type": "tell",
        "agent": agent,
        "round": number,
        "action": action,
        "reading": toss(world, agent, number, action),
        "id": f"{agent}.{number}",
    }


def in_order(coins: Coins, world: int, folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Round by round, agent by agent: the answer and the messages."""
    told = []
    with open_session(crew(coins), folder) as session:
        for number in range(coins.horizon):
            for agent in range(coins.agents):
                reply = session.handle({"type": "ask", "agent": agent, "round": number})
                if reply["stop"]:
                    return session.handle({"type": "answer"}), told
                told.append(tell(world, agent, number, reply["action"]))
                assert session.handle(told[-1])["ok"]
    raise AssertionError("nobody stopped")


def coins_of(seed: int) -> Coins:
    return Coins(agents=3 + seed % 4, horizon=10, lead=3)


@pytest.mark.parametrize("seed", SEEDS)
def test_agents_in_step_reach_the_answer_of_the_session_in_order(seed, tmp_path):
    """In every round agents ask and readings arrive in any order; copies of messages arrive rounds later."""
    coins, chance = coins_of(seed), random.Random(seed)
    answer, _ = in_order(coins, seed, tmp_path / "in order")
    copies: list[dict[str, Any]] = []
    with open_session(crew(coins), tmp_path / "mixed") as session:
        for number in range(coins.horizon):
            way: list[dict[str, Any]] = []
            for agent in chance.sample(range(coins.agents), coins.agents):
                for _ in range(chance.randint(1, 2)):
                    reply = session.handle({"type": "ask", "agent": agent})
                if not reply["stop"]:
                    way.append(tell(seed, agent, number, reply["action"]))
            copies += chance.sample(way, len(way) // 2)
            chance.shuffle(way)
            while way:
                assert session.handle(way.pop())["ok"]
                if copies and chance.random() < 0.5:
                    assert session.handle(copies.pop(chance.randrange(len(copies))))["ok"]
            if session.stopped:
                break
        assert session.handle({"type": "answer"})["decision"] == answer["decision"]
        assert session.handle({"type": "answer"})["confidence"] == answer["confidence"]
        assert session.handle({"type": "answer"})["rounds"] == answer["rounds"]


def one_by_one(messages: list[dict[str, Any]], chance: random.Random) -> Iterator[dict[str, Any]]:
    """The messages in any order, a third of them twice."""
    everything = messages + chance.sample(messages, len(messages) // 3)
    chance.shuffle(everything)
    yield from everything


def counted(messages: list[dict[str, Any]], agents: int) -> tuple[list[int], list[list[int]], list[list[int]]]:
    """What the rules say, from the set of messages alone: rounds, actions and readings that count."""
    end = min(m["round"] for m in messages if m["type"] == "stop")
    told = {(m["round"], m["agent"]): m for m in messages if m["type"] == "tell"}
    rounds = [n for n in range(end) if all((n, agent) in told for agent in range(agents))]
    rows = [[told[n, agent] for agent in range(agents)] for n in rounds]
    return rounds, [[m["action"] for m in row] for row in rows], [[m["reading"] for m in row] for row in rows]


@pytest.mark.parametrize("seed", SEEDS)
def test_only_the_set_of_messages_counts(seed, tmp_path):
    """Agents that act by themselves and send later: some readings never come, some after their miss, and several stop.

    The process is restarted in between. The order changes neither the answer, nor what any agent would do next.
    """
    coins, chance = coins_of(seed), random.Random(100 + seed)
    _, told = in_order(coins, seed, tmp_path / "in order")
    lost = chance.sample(told, 2)
    messages = [message for message in told if message not in lost]
    for message in [*lost, *chance.sample(messages, 2)]:
        messages.append({"type": "missed", "agent": message["agent"], "round": message["round"]})
    last = max(message["round"] for message in told)
    for agent, number in ((0, last), (1, last + 1)):
        messages.append({"type": "stop", "agent": agent, "round": number, "id": f"stop {agent}"})
    rounds, actions, readings = counted(messages, coins.agents)
    expected = coins.posterior(actions, readings)
    states = []
    for order in range(3):
        folder = tmp_path / str(order)
        session = open_session(crew(coins), folder)
        first_replies: dict[str, Any] = {}
        for message in one_by_one(messages, chance):
            reply = session.handle(message)
            assert reply["ok"]
            if message["type"] == "tell":  # a repeated message has the reply that it had
                assert first_replies.setdefault(message["id"], reply) == reply
            if chance.random() < 0.05:
                session.close()
                session = open_session(crew(coins), folder)
        answer = session.handle({"type": "answer"})
        assert answer["rounds"] == rounds
        assert (answer["decision"], answer["confidence"]) == (expected.decision, expected.confidence)
        agents = session.records.agents
        states.append([(record.open_round, session._handler.agents.act(i, record)) for i, record in enumerate(agents)])
        session.close()
    assert states[0] == states[1] == states[2]
