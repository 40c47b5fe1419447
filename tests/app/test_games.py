"""Games in a browser are those of `icmape.evaluate`: the same worlds, readings, choices, stops and answers."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape.play.episodes import play
from icmape.play.inference import ExactInference
from tests.app.support import CREWS, WORLDS, made, network_games

TOLERANCE = 1e-5


@pytest.mark.parametrize("name", ["bandit-quick", "signal", CREWS])
def test_the_network_plays_in_a_browser_as_it_does_in_python(name: str, tmp_path: Path):
    content = made(name)
    team, games = content.team, network_games(content, tmp_path)
    played = play(team, WORLDS, 0, exact=0)
    assert [game["rounds"] for game in games] == played.played.stop.tolist()
    assert [game["right"] for game in games] == played.at_stop(played.team.correct).tolist()
    for number, game in enumerate(games):
        rounds = game["rounds"]
        actions = played.played.actions[number]
        assert game["actions"] == actions[:rounds].tolist()
        stops = [team.problem.actions if choice < 0 else choice for choice in game["last"]]
        assert stops == actions[rounds].tolist()
        episode = jax.tree.map(lambda x, number=number: x[number], played.played)
        for t in range(rounds):
            seen = [leaf[t + 1] for leaf in jax.tree.leaves(episode.observations)]
            told = [parts(reading, len(seen)) for reading in game["readings"][t]]
            for k, part in enumerate(seen):
                assert [np.array(row[k]).reshape(part.shape[1:]).tolist() for row in told] == part.tolist()
        scores = jnp.asarray(played.final[number])
        probabilities = np.exp(team.problem.hypotheses.log_probabilities(scores)).reshape(-1)
        np.testing.assert_allclose(game["probabilities"], probabilities, atol=TOLERANCE)
        assert game["decision"] == np.atleast_1d(team.problem.hypotheses.decide(scores)).tolist()


def parts(reading: Any, count: int) -> list[Any]:
    """The parts of a reading in plain lists."""
    return [reading] if count == 1 else list(reading)


@pytest.mark.parametrize("name", ["bandit-quick", "signal"])
def test_the_exact_posterior_in_a_browser_is_that_of_python(name: str, tmp_path: Path):
    content = made(name)
    problem = content.team.problem
    keys = play(content.team, 3, 0, exact=0).played
    for number, game in enumerate(network_games(content, tmp_path)[:3]):
        episode = jax.tree.map(lambda x, number=number: jnp.asarray(x[number]), keys)
        scores = jax.jit(ExactInference().unroll)(problem, episode)[game["rounds"]]
        exact = np.exp(problem.hypotheses.log_probabilities(scores)).reshape(-1)
        np.testing.assert_allclose(game["exact"], exact, atol=TOLERANCE)
