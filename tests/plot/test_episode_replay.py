"""A scene tells an episode as it was, and every agent's part of it with nothing but its own data."""

import json
from typing import Any

import jax
import numpy as np
import pytest

from icmape.evaluation.single import Played, play_one
from icmape.plot.drawing import ending, reason
from icmape.plot.drawings import drawing_of
from icmape.plot.episode_replay import SHOWN, digits, scene
from tests.plot.test_drawing import bandit_team, coin_team, signal_episode
from tests.zoo.hotspot.test_hotspot_drawing import SENT
from tests.zoo.hotspot.test_hotspot_drawing import episode as hotspot_episode

EPISODES = ("bandit", "signal", "hotspot", "any problem")


def episode(which: str) -> Played:
    makers = {
        "bandit": lambda: play_one(bandit_team()),
        "signal": signal_episode,
        "hotspot": hotspot_episode,
        "any problem": lambda: play_one(coin_team()),
    }
    return makers[which]()


def with_others_changed(played: Played, agent: int) -> Played:
    """The same episode with what other agents did and saw shifted by a round."""

    def shifted(rows: Any) -> np.ndarray:
        changed = np.roll(np.asarray(rows), 1, axis=0)
        changed[:, agent] = np.asarray(rows)[:, agent]
        return changed

    told = played.episode._replace(
        actions=shifted(played.episode.actions), observations=jax.tree.map(shifted, played.episode.observations)
    )
    return played._replace(episode=told, probabilities=played.probabilities[::-1], confidence=played.confidence[::-1])


@pytest.mark.parametrize("which", EPISODES)
def test_a_scene_is_finite_json_of_every_round(which: str) -> None:
    played = episode(which)
    told = scene(played, "one")
    assert json.loads(json.dumps(told, allow_nan=False)) == json.loads(json.dumps(told))
    assert len(told["rounds"]) == played.rounds
    assert [len(view) for view in told["views"]] == [played.rounds] * played.problem.agents
    assert len(json.dumps(told)) < 30_000
    drawing = drawing_of(played)
    for number, row in enumerate(told["rounds"]):
        named = told["answers"][int(played.decisions[number])] if told["answers"] else ""
        assert row["answer"] == (named or drawing.answer(played.decisions[number]))
        assert row["right"] == bool(played.correct[number])
        assert row["confidence"] == pytest.approx(played.confidence[number], rel=5e-3)
    ringed = "any of the 2 ringed cells" if which == "hotspot" else None
    assert told["truth"] == (ringed or drawing.answer(played.episode.hypothesis))
    assert (told["reason"], told["ending"][1:]) == (reason(played), ending(drawing)[1:] + ".")


@pytest.mark.parametrize("which", EPISODES)
def test_an_agents_own_view_holds_nothing_of_anothers_data(which: str) -> None:
    played = episode(which)
    before = scene(played, "one")["views"]
    for agent in range(played.problem.agents):
        after = scene(with_others_changed(played, agent), "one")["views"]
        assert after[agent] == before[agent]
        assert [other for other in range(len(after)) if after[other] != before[other]], "others' data did change"


def test_an_agent_knows_nothing_ahead_of_time() -> None:
    played = episode("bandit")
    later = np.array(played.episode.observations)
    later[2] = 1 - later[2]
    told = scene(played._replace(episode=played.episode._replace(observations=later)), "one")["views"]
    before = scene(played, "one")["views"]
    assert [view[:2] for view in told] == [view[:2] for view in before]
    assert all(after[2] != view[2] for after, view in zip(told, before, strict=True))


def test_a_bandits_posterior_is_bars_by_arm() -> None:
    played = episode("bandit")
    told = scene(played, "one")
    assert [group["name"] for group in told["groups"]] == ["arm 1", "arm 2"]
    assert told["groups"][0]["values"] == ["1", "2", "3"]
    assert [group["truths"] for group in told["groups"]] == [[value] for value in played.world.hypothesis.tolist()]
    np.testing.assert_allclose(told["rounds"][-1]["posterior"], played.probabilities[-1], rtol=5e-3)
    choices = [[view[number]["choice"] for view in told["views"]] for number in range(3)]
    assert choices[:2] == [["arm 1", "arm 1", "arm 2"], ["arm 1", "arm 2", "arm 2"]]
    assert [view[2]["stops"] for view in told["views"]] == [False, True, False]
    assert [view[2]["does"] for view in told["views"]] == [
        "would have chosen arm 1",
        "chooses STOP",
        "would have chosen arm 2",
    ]
    assert told["reason"] == "player 2 stopped"
    paid = np.asarray(played.episode.observations[1]) > 0
    assert [view[1]["mark"] for view in told["views"]] == ["✓" if one else "–" for one in paid]
    assert [view[1]["value"] for view in told["views"]] == paid.astype(int).tolist()
    assert (told["values"], told["slots"]) == (["not paid", "paid"], 3)


def test_a_source_is_looked_for_on_a_map() -> None:
    played = episode("signal")
    told, drawing = scene(played, "one"), drawing_of(played)
    ground, side = told["ground"], 10
    assert (ground["rows"], ground["columns"], ground["reach"], ground["walks"]) == (side, side, 5, True)
    assert ground["truths"][0] == (int(played.world.hypothesis), "source")
    assert [view["spot"] for view in told["views"][0]] == [(2, 2), (7, 2), (7, 7), (2, 7)]
    posterior = np.array([row["posterior"] for row in told["rounds"]])
    np.testing.assert_allclose(posterior, played.probabilities, rtol=5e-3)
    window = np.asarray(played.episode.observations.window[1, 2], float)
    row, column = told["views"][2][1]["spot"]
    read = dict(told["views"][2][1]["readings"])
    assert read[row * side + column] == pytest.approx(window[2, 2], rel=5e-3)
    assert read[(row - 2) * side + column + 1] == pytest.approx(window[0, 3], rel=5e-3)
    for agent in range(3):
        found = [cell for view in told["views"][agent] for cell in view["found"]]
        assert set(found) <= {ground["truths"][0][0]}
        assert len(found) == sum(len(drawing.hits(agent, number)) for number in range(played.rounds))


def test_windows_do_not_reach_over_the_edge() -> None:
    played = episode("signal")
    at_the_edge = np.zeros_like(played.episode.observations.positions)
    seen = played.episode.observations._replace(positions=at_the_edge)
    told = scene(played._replace(episode=played.episode._replace(observations=seen)), "one")
    assert [cell for cell, _ in told["views"][0][0]["readings"]] == [
        row * 10 + column for row in range(3) for column in range(3)
    ]


def test_hotspots_lie_on_their_region() -> None:
    played = episode("hotspot")
    told, problem = scene(played, "one"), played.problem
    assert told["ground"]["cells"] == problem.cells.tolist()
    assert len(told["rounds"][0]["posterior"]) == problem.actions
    truths = [cell for cell, _ in told["ground"]["truths"]]
    assert truths == problem.cells[played.world.hypothesis].tolist()
    assert told["views"][0][0]["spot"] is None
    for number in (1, 2, 3):
        for agent, action in enumerate(SENT[number - 1]):
            view, cell = told["views"][agent][number], int(problem.cells[action])
            assert view["spot"] == divmod(cell, problem.columns)
            mean = np.asarray(played.episode.observations[number, agent], float).mean()
            assert view["readings"] == [[cell, digits(mean)]]
    assert told["reason"] == "the agreed rounds were over"
    assert {view[-1]["does"] for view in told["views"]} == {"is made to stop"}


def test_of_many_values_the_most_probable_are_told() -> None:
    played = episode("any problem")
    chances = np.random.default_rng(0).dirichlet(np.ones(50), played.rounds)
    told = scene(played._replace(probabilities=chances), "one")
    assert told["groups"] == [{"name": "answer", "values": None, "truths": [int(played.world.hypothesis)]}]
    (shown,) = told["rounds"][0]["posterior"]
    assert [index for index, _, _ in shown] == np.argsort(-chances[0])[:SHOWN].tolist()
    assert shown[0] == [int(chances[0].argmax()), str(chances[0].argmax()), digits(chances[0].max())]


def test_numbers_keep_three_digits_and_stay_numbers() -> None:
    assert [digits(value) for value in (0.123456, 1.0, 0.0000123456)] == [0.123, 1.0, 1.23e-05]
    assert digits(float("inf")) is digits(float("nan")) is None
