"""The exact posterior over the source, against brute force over every pair of cells and a fine grid of intensities."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import beta as beta_distribution
from scipy.stats import norm

from icmape.play.inference import ExactInference
from icmape.play.rollout import play_greedy
from icmape.zoo.signal.field_posterior import clipped_log_density
from icmape.zoo.signal.signal import DOWN, LEFT, RIGHT, UP, Signal
from tests.support import script

SMALL = {"grid": 7, "window": 3, "move": 2, "distance": 3, "decay": 0.4, "noise": 0.3, "detection": 0.7, "horizon": 6}
ROUTE = [[DOWN, LEFT, UP], [RIGHT, DOWN, RIGHT], [UP, LEFT, LEFT], [0, 0, 5]]
STOP, WORLDS = 3, 3
CASES = {
    "the paper's prior": {},
    "a Beta prior": {"intensity_alpha": 3.0, "intensity_beta": 1.5, "intensity_high": 0.9},
    "a fixed distance": {"exact_distance": 6},
    "nothing seen first": {"observe_start": False},
    "shared positions, cut windows": {"information": "shared-positions", "starts": [[0, 0], [6, 6], [6, 1]]},
}


@pytest.mark.parametrize("arguments", CASES.values(), ids=CASES)
def test_it_equals_brute_force(arguments):
    problem = Signal(**SMALL, **arguments)
    keys = jax.random.split(jax.random.key(11), WORLDS)

    @jax.jit
    def run(keys):
        episodes = play_greedy(problem, script(problem, ROUTE), keys)
        return episodes, jax.vmap(lambda e: ExactInference().unroll(problem, e))(episodes)

    episodes, found = run(keys)
    for world in range(WORLDS):
        episode = jax.tree.map(lambda x, w=world: np.asarray(x[w]), episodes)
        assert episode.stop == STOP
        for number in (0, STOP):
            expected = brute_force(problem, episode, number)
            np.testing.assert_allclose(np.exp(found[world, number]), expected, atol=2e-5)


def brute_force(problem: Signal, episode, number: int) -> np.ndarray:
    """p(source | all windows up to a round), by loops over pairs of cells and readings."""
    unit = (np.arange(400) + 0.5) / 400
    alpha = 1.0 if problem.intensity_alpha is None else float(problem.intensity_alpha)
    beta = 1.0 if problem.intensity_beta is None else float(problem.intensity_beta)
    weights = beta_distribution.pdf(unit, alpha, beta) / 400
    low, high = float(problem.intensity_low), float(problem.intensity_high)
    scales = np.append(low + (high - low) * unit, 1.0)  # of the distractor, and of the source
    cells = [divmod(cell, problem.grid) for cell in range(problem.grid**2)]
    readings = list(read(problem, episode, number))
    tables = [field_logs(problem, value, scales) if agent == 2 else None for agent, _, value in readings]
    found = np.zeros(len(cells))
    for s, source in enumerate(cells):
        detected = sum(detector_log(problem, cell == source, value) for agent, cell, value in readings if agent < 2)
        for distractor in cells:
            between = steps(source, distractor)
            wanted = problem.exact_distance
            if between < problem.distance or (wanted is not None and between != wanted):
                continue
            logs = np.full(400, detected)
            for (_, cell, _), table in zip(readings, tables, strict=True):
                if table is not None:
                    to_source, to_other = steps(cell, source), steps(cell, distractor)
                    logs += table[to_source, -1] if to_source < to_other else table[to_other, :-1]
            found[s] += (weights * np.exp(logs)).sum()
    return found / found.sum()


def read(problem: Signal, episode, number: int):
    """Every agent's readings up to a round: agent, cell, value."""
    for t in range(0 if problem.observe_start else 1, number + 1):
        for agent in range(3):
            own = agent if problem.information == "shared-positions" else 0
            row, column = episode.observations.positions[t, agent, own]
            for i in range(3):
                for j in range(3):
                    cell = (int(row) + i - 1, int(column) + j - 1)
                    if all(0 <= x < problem.grid for x in cell):
                        yield agent, cell, float(episode.observations.window[t, agent, i, j])


def steps(a: tuple[int, int], b: tuple[int, int]) -> int:
    return abs(a[0] - b[0]) + abs(a[1] - b[1])


def detector_log(problem: Signal, covers: bool, value: float) -> float:
    chance = float(problem.detection) if covers else 0.0
    with np.errstate(divide="ignore"):
        return float(np.log(chance if value > 0 else 1 - chance))


def field_logs(problem: Signal, value: float, scales: np.ndarray) -> np.ndarray:
    """log p of a reading for every distance to what it shows, and every intensity of that."""
    noise = float(problem.noise)
    mean = np.exp(-float(problem.decay) * np.arange(2 * problem.grid))[:, None] * scales
    if value <= 0:
        return norm.logcdf(-mean / noise)
    return norm.logcdf((mean - 1) / noise) if value >= 1 else norm.logpdf(value, mean, noise)


def test_the_likelihood_of_a_reading_sums_to_one():
    """The density between the ends, and the two probabilities at them."""
    x = np.linspace(0, 1, 4001)[1:-1]
    for mean in (0.0, 0.3, 0.98):
        density = lambda value, mean=mean: np.exp(  # noqa: E731
            clipped_log_density(jnp.asarray(value, jnp.float32), jnp.float32(mean), jnp.float32(0.1))
        )
        total = density(x).sum() / 4000 + density([0.0])[0] + density([1.0])[0]
        assert total == pytest.approx(1.0, abs=2e-3)


def test_sixteen_nodes_are_enough_at_full_size():
    """After windows around the distractor, where its intensity is known best, 16 nodes say what 64 do."""
    from icmape.zoo.signal import field_posterior as source

    readings = []
    for nodes in (source.NODES, 64):
        before, source.NODES = source.NODES, nodes
        try:
            problem = Signal(grid=10, distance=6)
        finally:
            source.NODES = before
        world = problem.sample(key=jax.random.key(4))._replace(
            hypothesis=jnp.int16(9), distractor=jnp.int16(72), intensity=jnp.float32(0.55)
        )

        @jax.jit
        def told(problem, world):
            belief = problem.belief()
            state, _ = problem.start(world, key=jax.random.key(0))
            for number in range(2):  # the field agent stays where the distractor is
                seen = problem.observe(world, state, key=jax.random.key(number))
                belief = problem.update_belief(belief, jnp.zeros(3, jnp.int32), seen)
            return problem.log_posterior(belief)

        readings.append(np.exp(told(problem, world)))
    np.testing.assert_allclose(*readings, atol=2e-3)
