"""What is kept of an episode: the scores at the stop, and how far they are from the exact posterior."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape import UserError
from icmape.evaluation.certificate import SEEDS
from icmape.evaluation.comparison import plan
from icmape.evaluation.diagnosis import diagnose
from icmape.evaluation.metrics import evaluate
from icmape.evaluation.robustness import Sweep, robustness
from icmape.evaluation.single import play_one
from icmape.learning.retarget import retarget
from icmape.play.episodes import RESERVED, check_seed, play, world_keys
from icmape.play.inference import ExactInference
from icmape.play.rollout import Episode
from tests.support import lively_team

EPISODES = 300


@pytest.fixture(scope="module")
def played():
    return play(lively_team(), EPISODES, seed=1)


@pytest.fixture(scope="module")
def scores(played) -> tuple[np.ndarray, np.ndarray]:
    """What the network and the exact posterior say in every round of the first twenty episodes."""
    team, some = (
        lively_team(),
        Episode(*(None if x is None else jax.tree.map(lambda y: y[:20], x) for x in played.played)),
    )

    @eqx.filter_jit
    def say(inference):
        return jax.vmap(lambda episode: inference.unroll(team.problem, episode))(some)

    return np.asarray(say(team.inference)), np.asarray(say(ExactInference()))


def test_final_scores_are_those_at_the_stop(played, scores):
    assert played.final.shape == (EPISODES, 2, 3)
    for row in range(20):
        np.testing.assert_allclose(played.final[row], scores[0][row, played.played.stop[row]], atol=1e-5)


def test_the_answer_at_the_stop_is_that_of_the_final_scores(played):
    space = lively_team().problem.hypotheses
    sure = np.asarray(jax.vmap(space.confidence)(jnp.asarray(played.final)))
    np.testing.assert_allclose(sure, played.at_stop(played.team.confidence), rtol=1e-5)


def test_distance_is_the_divergence_of_the_networks_posterior_from_the_exact_one(played, scores):
    """Σ p log(p / q) over all nine capacity pairs, for the rounds of twenty episodes."""

    def whole(rows: np.ndarray) -> np.ndarray:
        chances = np.exp(rows - rows.max(axis=-1, keepdims=True))
        chances /= chances.sum(axis=-1, keepdims=True)
        return chances[..., 0, :, None] * chances[..., 1, None, :]

    network, exact = map(whole, scores)
    terms = np.where(exact > 0, exact * np.log(np.maximum(exact, 1e-30) / network), 0.0)
    exists = played.exists[:20]
    np.testing.assert_allclose(played.distance[:20][exists], terms.sum(axis=(2, 3))[exists], rtol=1e-3, atol=1e-4)
    assert played.distance[played.exists].min() > -1e-4


def test_an_exact_inference_is_no_distance_from_itself():
    team = eqx.tree_at(lambda t: t.inference, lively_team(), ExactInference())
    found = play(team, EPISODES, seed=1)
    assert np.abs(found.distance[found.exists]).max() < 1e-5


def test_worlds_of_certificates_are_no_others():
    """Keys decide worlds: those of the first certificates and of many evaluations are all different."""
    seeds = [0, 1, 2, RESERVED - 1, RESERVED, RESERVED + 1, RESERVED + SEEDS - 1]
    keys = [tuple(row) for seed in seeds for row in jax.random.key_data(world_keys(seed, jnp.arange(50))).tolist()]
    assert len(set(keys)) == len(keys)


def test_negative_seeds_and_endless_work_are_refused_before_anything_is_played():
    for refuse in (lambda: diagnose(lively_team(), seed=-1), lambda: retarget(lively_team(), 0.1, seed=-1)):
        with pytest.raises(UserError, match="seed must lie in"):
            refuse()
    with pytest.raises(UserError, match="episodes would take"):
        retarget(lively_team(), 0.1, worlds=10**20)


def test_reserved_seeds_are_refused_wherever_a_seed_is_given(tmp_path):
    lively_team().save(tmp_path / "t.safetensors")
    one = Sweep("one", {"capacity_concentration": (1.0,)})
    for refuse in (
        lambda: check_seed(RESERVED),
        lambda: play(lively_team(), 10, seed=RESERVED),
        lambda: play_one(lively_team(), seed=RESERVED),
        lambda: next(robustness(str(tmp_path / "t.safetensors"), one, episodes=10, seed=RESERVED)),
        lambda: evaluate(lively_team(), episodes=10, seed=RESERVED),
        lambda: plan(["bandit-quick"], 100, RESERVED, baselines=["none"]),
    ):
        with pytest.raises(UserError, match=rf"0\.\.{RESERVED - 1} \(later ones are reserved for `icmape certify`\)"):
            refuse()
    check_seed(RESERVED - 1)
    with pytest.raises(UserError, match=r"seed must lie in 0\.\.[0-9]+; given -1"):
        check_seed(-1)
