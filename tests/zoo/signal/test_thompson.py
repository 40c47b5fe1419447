"""Thompson sampling: the movement rule by hand, what its posteriors see, and that a trained team ships."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file

from icmape import UserError, load
from icmape.baselines.by_name import find_frozen
from icmape.learning import train
from icmape.learning.check_config import check
from icmape.learning.config import Config, with_algorithm
from icmape.play.inference import ExactInference
from icmape.play.stop import Threshold
from icmape.play.team import Team
from icmape.settings import override
from icmape.zoo.bandit.bandit import Bandit
from icmape.zoo.signal.signal import DOWN, LEFT, RIGHT, STAY, UP, Signal
from icmape.zoo.signal.thompson import FIELD_ORDER, POLICIES, Thompson, ThompsonPaper, toward
from tests.support import once

PAPERS = Signal()
SMALL = Signal(grid=9, window=3, move=3, distance=4, decay=0.5, horizon=8)


@pytest.mark.parametrize(
    ("order", "position", "cell", "move"),
    [
        ((DOWN, LEFT, UP, RIGHT), (2, 2), (12, 12), DOWN),  # both axes help: the list decides
        ((RIGHT, DOWN, UP, LEFT), (2, 2), (12, 12), RIGHT),
        ((DOWN, LEFT, UP, RIGHT), (2, 2), (0, 12), RIGHT),  # up would leave the grid, and does not help
        ((RIGHT, UP, LEFT, DOWN), (22, 2), (20, 0), STAY),  # in its own window: a move of 5 overshoots
        ((RIGHT, UP, LEFT, DOWN), (22, 2), (19, 2), UP),  # 3 away, 2 after the move
        ((RIGHT, UP, LEFT, DOWN), (12, 12), (12, 2), LEFT),
        ((RIGHT, UP, LEFT, DOWN), (12, 12), (12, 12), STAY),
    ],
)
def test_the_first_move_that_brings_nearer(order, position, cell, move):
    found = toward(PAPERS, jnp.array(order), jnp.array(position, jnp.int8), jnp.int32(cell[0] * 25 + cell[1]))
    assert int(found) == move


def test_everyone_has_its_own_order():
    orders = np.asarray(Thompson(PAPERS).orders())
    np.testing.assert_array_equal(orders, [[DOWN, LEFT, UP, RIGHT], [RIGHT, DOWN, UP, LEFT], FIELD_ORDER])


def told(policy, windows):
    positions = jnp.asarray(SMALL.starts, jnp.int8)
    return once(lambda: policy.logits(policy.take_in(policy.start(), jnp.asarray(windows, jnp.float16), positions)))


def test_where_others_looked_is_less_likely_and_what_they_read_is_unknown():
    windows = np.zeros((3, 3, 3))
    logits = np.asarray(told(Thompson(SMALL), windows)).reshape(3, 9, 9)
    prior = np.log(np.asarray(SMALL.field.prior().sources)).reshape(9, 9)
    missed = np.log(0.05)
    for corner in (np.s_[:3, :3], np.s_[:3, 6:], np.s_[6:, :3]):
        np.testing.assert_allclose(logits[0][corner] - prior[corner], missed, rtol=1e-4)
    np.testing.assert_allclose(logits[0][3:6, 3:6], prior[3:6, 3:6], rtol=1e-5)
    windows[1, 1, 1], windows[2] = 1, 0.5  # what agents 1 and 2 see is their own
    np.testing.assert_array_equal(np.asarray(told(Thompson(SMALL), windows))[0], logits[0].reshape(-1))


def test_a_detector_that_has_detected_knows_the_cell_and_by_the_paper_takes_it_for_its_own():
    windows = np.zeros((3, 3, 3))
    windows[0, 0, 2] = 1
    exact = np.exp(np.asarray(told(Thompson(SMALL), windows))[0])
    literal = np.exp(np.asarray(told(ThompsonPaper(SMALL), windows))[0])
    assert np.flatnonzero(exact).tolist() == [0 * 9 + 2]
    assert np.flatnonzero(literal).tolist() == [1 * 9 + 1]


def test_the_papers_evidence_of_pairs_by_hand():
    """A window of one cell at (3, 0), a reading of 0.4: normal densities around the larger of both signals."""
    problem = Signal(grid=4, window=1, move=1, distance=2, decay=0.5, noise=0.2)
    policy = ThompsonPaper(problem)
    window, position = jnp.full((1, 1), 0.4, jnp.float16), jnp.array([3, 0], jnp.int8)
    logs = np.asarray(policy.read(policy.field_prior(), window, position))
    cells = [(r, c) for r in range(4) for c in range(4)]
    expected = np.full((16, 16), -np.inf)
    for d, (dr, dc) in enumerate(cells):
        for s, (sr, sc) in enumerate(cells):
            if s != d:
                mean = max(np.exp(-0.5 * (3 - sr + sc)), 0.7 * np.exp(-0.5 * (3 - dr + dc)))
                expected[d, s] = -0.5 * ((np.float16(0.4) - mean) / 0.2) ** 2
    np.testing.assert_allclose(logs, expected - expected.max(), atol=1e-4)


TINY = {
    "validation_episodes": 4,
    "settling_episodes": 64,
    "num_envs": 4,
    "batch_size": 4,
    "buffer_size": 16,
    "learning_starts": 4,
    "gradient_steps": 1,
    "network.hidden_size": 8,
    "iterations": 2,
}


@pytest.mark.parametrize("name", ["thompson", "thompson-paper"])
def test_a_team_that_trains_with_it_is_saved_by_its_name(name, tmp_path):
    config = override(with_algorithm(Config(), name), TINY)
    check(config, SMALL)
    policy = find_frozen(SMALL, config)
    assert (policy.kind, policy.takes) == (name, "all")
    team = Team(SMALL, POLICIES[name].make(SMALL), Threshold(0.9), ExactInference())
    team.save(tmp_path / "team.safetensors")
    assert all(tensor.startswith("program.") for tensor in load_file(tmp_path / "team.safetensors"))
    again = load(tmp_path / "team.safetensors")
    assert again.policy.kind == name
    assert eqx.tree_equal(team, again)


@pytest.mark.slow  # a large program
def test_an_inference_network_is_trained_on_its_episodes():
    config = override(with_algorithm(Config(), "thompson"), TINY)
    states = train.start(SMALL, config, jnp.array([0]))
    after, metrics = train.advance(SMALL, config, states, jnp.int32(0), jnp.int32(2))
    assert int(after.fault[0]) == 0
    assert all(np.isfinite(value[0]) for value in metrics.values())


def test_what_cannot_be_trained_says_why():
    config = with_algorithm(Config(), "thompson")
    with pytest.raises(UserError, match="thompson is for signal, agents apart; given was a Bandit"):
        find_frozen(Bandit(), config)
    with pytest.raises(UserError, match="never stops by itself: set stopping to threshold"):
        check(override(config, {"stopping": "learned"}), SMALL)
