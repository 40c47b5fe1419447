"""The inference is trained on every prefix that existed, and on nothing behind the stop."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape.learning.inference_loss import inference_loss, judge
from icmape.networks import Inference
from icmape.play.rollout import Episode, histories
from tests.coins import Coins
from tests.support import drawn, unroll

PROBLEM = Coins(horizon=4)


@pytest.fixture(scope="module")
def inference() -> Inference:
    return drawn(lambda: Inference(PROBLEM, 4, "paper+last", key=jax.random.key(0)), scale=1.0)


def episodes(padding: int) -> Episode:
    """Two episodes, stopped in rounds 1 and 3, with anything in the rows behind the stop."""
    tosses = np.array([[0, 1, padding, padding], [0, -1, 1, -1]], np.int8)[..., None]
    stops, truths = jnp.array([1, 3]), jnp.array([1, 0], jnp.int8)
    actions = jnp.zeros((2, 4, 1), jnp.int8)
    return Episode(actions, jnp.asarray(tosses), jnp.zeros((2, 4), bool), stops, truths, jnp.ones(2, bool))


views = jax.jit(jax.vmap(lambda episode: histories(PROBLEM, episode).team))
loss_of = eqx.filter_jit(lambda *args: inference_loss(PROBLEM, *args))


def test_loss_is_the_mean_over_all_prefixes_up_to_the_stop(inference):
    data = episodes(0)
    team = views(data)
    terms = []
    for row in range(2):
        scores = np.asarray(unroll(inference, jax.tree.map(lambda x, i=row: x[i], team)), np.float64)
        logs = scores - np.log(np.exp(scores).sum(1, keepdims=True))
        terms += [-logs[t, int(data.hypothesis[row])] for t in range(int(data.stop[row]) + 1)]
    assert len(terms) == 2 + 4
    assert float(loss_of(inference, team, data)) == pytest.approx(np.mean(terms), abs=1e-5)


def test_rows_behind_the_stop_do_not_count(inference):
    clean, dirty = episodes(0), episodes(-1)
    assert float(loss_of(inference, views(clean), clean)) == float(loss_of(inference, views(dirty), dirty))


def test_confidence_is_the_larger_of_both_probabilities(inference):
    team = views(episodes(0))
    found = eqx.filter_jit(judge)(PROBLEM, inference, team, episodes(0)).confidence
    scores = np.stack([unroll(inference, jax.tree.map(lambda x, i=i: x[i], team)) for i in range(2)])
    np.testing.assert_allclose(found, np.asarray(jax.nn.softmax(scores)).max(-1), atol=1e-6)
