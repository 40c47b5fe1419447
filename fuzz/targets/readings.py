"""Readings and actions that a program or a person gives to a team: the last line before an answer."""

import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

from fuzz.cases import Case, Target, must_answer, must_refuse, same_as
from fuzz.targets.played import ROUNDS, Played, played
from icmape.play.team import STOP, Team

TEAMS = ("bandit-quick", "signal")
BAD_NUMBERS = (
    float("nan"),
    float("inf"),
    -float("inf"),
    -1,
    -0.25,
    300,
    2**32,
    2**32 + 1,
    2**63,
    10**30,
    1e308,
    1e-3 + 1,
    32768,
)
NO_NUMBERS: tuple[Any, ...] = (
    None,
    "1",
    "",
    b"1",
    1j,
    [],
    {},
    (1, 2),
    object(),
    np.datetime64("2020-01-01"),
    float,
    "nan",
    "٣",
)
BAD_ACTIONS = (-1, STOP, 99, 2**31, 2**32, 2**32 + 1, 2**64 + 1, 10**400, 0.5, float("nan"), float("inf"), -0.5, 1e308)


class Awkward:
    """An object whose conversion to an array fails."""

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        """Fails."""
        raise RuntimeError("no array")

    def __len__(self) -> int:
        return 2

    def __repr__(self) -> str:
        raise RuntimeError("no text")


class Given(NamedTuple):
    """What is called with which arguments."""

    call: str
    """posterior, see or act."""
    team: Team
    agent: Any
    actions: Any
    observations: Any
    first: Any


def run(given: Given) -> dict[str, Any]:
    """The answer, or the scores and the next action of an agent; never with NaN."""
    team = given.team
    if given.call == "posterior":
        answer = team.posterior(given.actions, given.observations, given.first)
        result = {"decision": np.asarray(answer.decision), "confidence": answer.confidence}
        result |= {
            "probabilities": np.asarray(answer.probabilities),
            "set": str(answer.credible_set(0.9)),
            "why": answer.reason,
        }
    elif given.call == "act":
        return {"action": team.act(given.agent, given.actions, given.observations, given.first)}
    else:
        agent = team.agent(given.agent, given.first)
        for action, observation in zip(given.actions, given.observations, strict=True):
            agent.see(action, observation)
        result = {"scores": np.asarray(agent.scores), "action": agent.act()}
    for name, value in result.items():
        assert isinstance(value, str) or np.isfinite(np.asarray(value, float)).all(), f"{name} is {value}"
    return result


def make(folder: Path) -> Target:
    """The target."""
    episodes = {name: played(name) for name in TEAMS}
    calls = ("posterior", "see", "act")

    def plain(episode: Played, call: str, agent: int = 0) -> Given:
        """What is right, in lists over rounds, as a person writes it."""
        team, problem = episode.team, episode.team.problem
        first = episode.first if problem.shows_first else None
        if call == "posterior":
            seen = [
                [_joined([part[t, i].tolist() for part in episode.parts]) for i in range(problem.agents)]
                for t in range(ROUNDS)
            ]
            before = None if first is None else episode.rebuild(first)
            return Given(call, team, None, episode.actions.tolist(), seen, before)
        seen = [_joined([part[t, agent].tolist() for part in episode.parts]) for t in range(ROUNDS)]
        before = None if first is None else _joined([part[agent].tolist() for part in first])
        return Given(call, team, agent, episode.actions[:, agent].tolist(), seen, before)

    originals = {(name, call): run(plain(episode, call)) for name, episode in episodes.items() for call in calls}

    def drawn(random: Random) -> tuple[str, str, Given]:
        name, call = random.choice(TEAMS), random.choice(calls)
        return name, call, plain(episodes[name], call)

    def value(options: tuple[Any, ...]) -> Callable[[Random], Case]:
        def make_case(random: Random) -> Case:
            name, call, given = drawn(random)
            odd = random.choice(options)
            if odd is None and call != "see" and len(episodes[name].parts) == 1:
                odd = object()  # None stands for a reading that never came
            return Case(given._replace(observations=_somewhere(given.observations, odd, random)), must_refuse)

        return make_case

    def missing(random: Random) -> Case:
        """None for readings that never came, and for the actions of agents that did nothing: an answer that is one."""
        name, call = random.choice(TEAMS), random.choice(["posterior", "act"])
        given = plain(episodes[name], call)
        if call == "act":
            some = [None if random.random() < 0.5 else reading for reading in given.observations]
            return Case(given._replace(observations=some), must_answer)
        actions: list[list[int | None]] = [list(row) for row in given.actions]
        seen = [list(row) for row in given.observations]
        for row, readings in zip(actions, seen, strict=True):
            for i in range(len(row)):
                if random.random() < 0.3:
                    readings[i] = None
                    row[i] = None if random.random() < 0.5 else row[i]
        return Case(given._replace(actions=actions, observations=seen), must_answer)

    def action(random: Random) -> Case:
        _, _, given = drawn(random)
        return Case(
            given._replace(actions=_somewhere(given.actions, random.choice((*BAD_ACTIONS, *NO_NUMBERS)), random)),
            must_refuse,
        )

    def agent(random: Random) -> Case:
        name, call = random.choice(TEAMS), random.choice(["see", "act"])
        bad = random.choice([-1, 99, 2**32, 2**64, 0.5, float("nan"), None, "0", [], [0, 1], 1j])
        return Case(plain(episodes[name], call)._replace(agent=bad), must_refuse)

    def shape(random: Random) -> Case:
        """Rounds or agents that are missing, too many, or in each other's place."""
        name, call, given = drawn(random)
        arrays = [part if call == "posterior" else part[:, 0] for part in episodes[name].parts]
        other = random.choice(
            [_transposed, lambda x: x[None], lambda x: x[..., None], lambda x: x.reshape(-1)[:-1], lambda x: x[1:]]
        )
        changed = [other(array) for array in arrays]
        if call == "see":  # one round at a time
            other = random.choice([lambda x: x[None], lambda x: np.array([x.item(0)] * 3), lambda x: x[..., None]])
            seen = [episodes[name].rebuild([other(array[t]) for array in arrays]) for t in range(ROUNDS)]
            return Case(given._replace(observations=seen), must_refuse)
        if all(a.shape == b.shape for a, b in zip(arrays, changed, strict=True)):
            changed = [array[:0] for array in arrays]
        return Case(given._replace(observations=episodes[name].rebuild(changed)), must_refuse)

    def rounds(random: Random) -> Case:
        """More rounds than an episode has, or lists of different lengths."""
        _, call, given = drawn(random)
        times = random.choice([30, 1000])
        options = [given._replace(actions=given.actions * times, observations=given.observations * times)]
        if call != "see":
            options += [
                given._replace(actions=given.actions[:-1]),
                given._replace(observations=given.observations[:-1]),
            ]
            options += [given._replace(actions=given.actions + given.actions[:1])]
        return Case(random.choice(options), must_refuse)

    def whole(random: Random) -> Case:
        """Something that is no list of readings at all."""
        _, call, given = drawn(random)
        circle: list[Any] = []
        circle.append(circle)
        deep: Any = 0
        for _ in range(sys.getrecursionlimit() * 5):
            deep = [deep]
        bad: Any = random.choice(
            [
                None,
                -3,
                "0101",
                b"\1\0",
                circle,
                deep,
                Awkward(),
                {"a": 1},
                {1, 2},
                np.zeros((4, 3), object),
                float("nan"),
            ]
        )
        bad = [bad] * ROUNDS if call == "see" else bad
        if random.random() < 0.5:
            return Case(given._replace(actions=bad), must_refuse)
        return Case(given._replace(observations=bad), must_refuse)

    def first(random: Random) -> Case:
        """What was seen before round 0: missing, or of another kind."""
        given = plain(episodes["signal"], random.choice(calls))
        return Case(
            given._replace(
                first=random.choice([None, 3, "x", [], (1,), float("nan"), Awkward(), (None, None), [[1, 2], 3]])
            ),
            must_refuse,
        )

    def other_types(random: Random) -> Case:
        """The same numbers in other types: an answer is the same, or there is none."""
        name, call, given = drawn(random)
        kind: Any = random.choice(
            [np.int8, np.int64, np.uint8, np.float16, np.float64, np.int32, object, np.bool_, ">i2"]
        )
        exact = [part for part in episodes[name].parts if np.array_equal(part.astype(kind).astype(part.dtype), part)]
        if len(exact) < len(episodes[name].parts):
            kind = np.float64
        parts = [(part if call == "posterior" else part[:, 0]).astype(kind) for part in episodes[name].parts]
        if call == "see":
            seen: Any = [_joined([part[t] for part in parts]) for t in range(ROUNDS)]
        else:
            seen = episodes[name].rebuild(parts)
        actions = random.choice(
            [np.asarray(given.actions), given.actions, np.asarray(given.actions, float), tuple(given.actions)]
        )
        return Case(given._replace(actions=actions, observations=seen), same_as(originals[name, call]))

    return Target(
        run,
        {
            "reading out of range": value(BAD_NUMBERS),
            "reading that is no number": value(NO_NUMBERS),
            "reading that never came": missing,
            "action that is none": action,
            "agent that is none": agent,
            "another shape": shape,
            "number of rounds": rounds,
            "no list of readings": whole,
            "before round 0": first,
            "numbers of other types": other_types,
        },
    )


def _joined(parts: list[Any]) -> Any:
    """An observation as plain numbers; one part stands for itself."""
    return parts[0] if len(parts) == 1 else tuple(parts)


def _transposed(array: np.ndarray) -> np.ndarray:
    return np.swapaxes(array, 0, 1) if array.ndim > 1 else array[:, None]


def _somewhere(tree: Any, value: Any, random: Random) -> Any:
    """Nested lists with this value in the place of one of their numbers."""
    if isinstance(tree, list | tuple) and tree:
        at = random.randrange(len(tree))
        changed = [_somewhere(item, value, random) if place == at else item for place, item in enumerate(tree)]
        return type(tree)(changed)
    return value
