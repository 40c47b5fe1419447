"""The capacity bandit's exact posterior against brute force, hand-worked cases and the paper's first lemma."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special

from icmape.zoo.bandit.bandit import Bandit, gauss_jacobi, log_evidence_table

LOW = 0.3


# -- histories, and the posterior by brute force


def random_history(bandit: Bandit, rounds: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rounds of (actions, payments) from one world of the prior under random actions."""
    rng = np.random.default_rng(seed)
    capacity = rng.integers(1, bandit.players + 1, bandit.arms)
    mean = rng.uniform(LOW, 1.0, bandit.arms)
    history = []
    for _ in range(rounds):
        actions = rng.integers(0, bandit.arms, bandit.players)
        load = np.bincount(actions, minlength=bandit.arms)
        paid = (rng.random(bandit.players) < mean[actions]) & (load <= capacity)[actions]
        history.append((actions, paid.astype(np.int8)))
    return history


def reading_chances(capacity: tuple[int, ...], means: tuple[np.ndarray, ...], actions, paid) -> np.ndarray:
    """Probability of a round's payments, player by player, at every point of a grid of means."""
    chance = np.ones_like(means[0])
    for arm, got in zip(actions, paid, strict=True):
        serves = np.sum(actions == arm) <= capacity[arm]
        hit = means[arm] if serves else np.zeros_like(means[arm])
        chance = chance * (hit if got else 1 - hit)
    return chance


def mean_grid(arms: int, nodes: int = 16) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """A product grid over all arms' means at once and its weights under the uniform prior."""
    points, weights = np.polynomial.legendre.leggauss(nodes)
    points = LOW + (1 - LOW) * (points + 1) / 2
    weight = np.ones(())
    for _ in range(arms):
        weight = weight[..., None] * (weights / 2)
    return tuple(np.meshgrid(*[points] * arms, indexing="ij")), weight


def brute_force(bandit: Bandit, history) -> np.ndarray:
    """p(C | D) over all capacity vectors jointly, with the means integrated out on a grid in float64."""
    means, weight = mean_grid(bandit.arms)
    joint = np.zeros((bandit.players,) * bandit.arms)
    for capacity in itertools.product(range(1, bandit.players + 1), repeat=bandit.arms):
        chance = weight
        for actions, paid in history:
            chance = chance * reading_chances(capacity, means, actions, paid)
        joint[tuple(c - 1 for c in capacity)] = chance.sum()
    return joint / joint.sum()


def exact(bandit: Bandit, history) -> np.ndarray:
    """The library's posterior: arms by capacities."""
    belief = bandit.belief()
    for actions, paid in history:
        belief = bandit.update_belief(belief, jnp.asarray(actions, jnp.int32), jnp.asarray(paid, jnp.int8))
    return np.exp(np.asarray(bandit.log_posterior(belief)))


def outer(rows: np.ndarray) -> np.ndarray:
    joint = np.ones(())
    for row in rows:
        joint = joint[..., None] * row
    return joint


@pytest.fixture(scope="module", params=[(2, 3), (3, 2)], ids=["2 arms 3 players", "3 arms 2 players"])
def small(request) -> Bandit:
    arms, players = request.param
    return Bandit(arms=arms, players=players, horizon=9)


@pytest.mark.parametrize("rounds", [0, 1, 3, 8])
def test_posterior_is_the_brute_force_one(small, rounds):
    for seed in range(3):
        history = random_history(small, rounds, seed)
        joint, rows = brute_force(small, history), exact(small, history)
        np.testing.assert_allclose(outer(rows), joint, rtol=2e-4, atol=1e-6)
        for arm, row in enumerate(rows):
            others = tuple(k for k in range(small.arms) if k != arm)
            np.testing.assert_allclose(row, joint.sum(axis=others), rtol=2e-4, atol=1e-6)


def test_posterior_of_a_hand_worked_trajectory():
    """Round 1: both players on arm 0, neither is paid. Round 2: one on each arm, both are paid.

    Arm 0. C=1: round 1 was an overload and says nothing; one success alone: ∫μ dμ/0.7 over [0.3, 1] = 0.65.
           C=2: one success and two failures: ∫μ(1-μ)² dμ/0.7 = (0.7³/3 - 0.7⁴/4)/0.7 = 0.0543083/0.7 = 0.0775833.
           p(C=1) = 0.65 / 0.7275833 = 0.893368.
    Arm 1. One success with one player on it: the same for both capacities, so one half each.
    """
    history = [(np.array([0, 0]), np.array([0, 0])), (np.array([0, 1]), np.array([1, 1]))]
    expected = [[0.893368, 0.106632], [0.5, 0.5]]
    np.testing.assert_allclose(exact(Bandit(arms=2, players=2, horizon=4), history), expected, atol=2e-6)


@pytest.mark.parametrize(("alpha", "beta"), [(0.5, 3.0), (5.0, 0.5), (3.0, 7.0)])
def test_posterior_under_beta_means_is_the_quadrature(alpha, beta):
    bandit = Bandit(arms=2, players=3, horizon=9, mean_alpha=alpha, mean_beta=beta)
    history = random_history(bandit, 6, seed=4)

    def evidence(arm: int, capacity: int) -> float:
        def integrand(unit: float) -> float:
            # the density's own singularities are quad's weight, (1+x)^(α-1) (1-x)^(β-1) on [-1, 1]
            mean = LOW + (1 - LOW) * (unit + 1) / 2
            chance = 1.0
            for actions, paid in history:
                serves = np.sum(actions == arm) <= capacity
                for chosen, got in zip(actions, paid, strict=True):
                    if chosen == arm:
                        hit = mean if serves else 0.0
                        chance *= hit if got else 1 - hit
            return chance

        return integrate.quad(integrand, -1, 1, weight="alg", wvar=(alpha - 1, beta - 1))[0]

    rows = np.array([[evidence(arm, c) for c in (1, 2, 3)] for arm in (0, 1)])
    expected = rows / rows.sum(1, keepdims=True)
    assert 0.01 < expected.max(1).min() < 0.99  # a case that says something
    np.testing.assert_allclose(exact(bandit, history), expected, rtol=2e-4, atol=1e-6)


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (0.5, 0.5), (3.0, 5.0)])
def test_evidence_on_the_unit_interval_is_the_beta_function(alpha, beta):
    """On [0, 1] the prior is conjugate: ∫ μ^S (1-μ)^F p(μ) dμ = B(α+S, β+F) / B(α, β)."""
    readings = 60
    table = log_evidence_table(readings, 0.0, 1.0, alpha, beta)
    hits, misses = np.meshgrid(np.arange(readings + 1), np.arange(readings + 1), indexing="ij")
    expected = special.betaln(alpha + hits, beta + misses) - special.betaln(alpha, beta)
    used = hits + misses <= readings
    np.testing.assert_allclose(table[used], expected[used], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("count", [1, 2, 7, 40])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (0.5, 0.5), (0.5, 7.0), (5.0, 3.0), (1.5, 0.5)])
def test_quadrature_is_scipys(count, alpha, beta):
    nodes, weights = gauss_jacobi(count, alpha, beta)
    theirs, their_weights = special.roots_jacobi(count, beta - 1, alpha - 1)
    np.testing.assert_allclose(nodes, (theirs + 1) / 2, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(weights, their_weights / their_weights.sum(), rtol=1e-7, atol=1e-14)


# -- the paper's first lemma: the policy drops out


def sticky(own: list[tuple[int, int]]) -> list[float]:
    """Stays where it was paid."""
    if not own:
        return [0.5, 0.5]
    arm, paid = own[-1]
    stay = 0.9 if paid else 0.2
    return [stay, 1 - stay] if arm == 0 else [1 - stay, stay]


def restless(own: list[tuple[int, int]]) -> list[float]:
    """Prefers arm 1 the more it has been paid."""
    more = (1 + sum(paid for _, paid in own)) / (2 + len(own))
    return [1 - 0.8 * more, 0.8 * more]


def trajectory_chances(policy, bandit: Bandit, rounds: int) -> dict[tuple, np.ndarray]:
    """Probability of every trajectory together with every capacity vector, played forward under a local policy.

    Each player draws its arm from the policy by its own history, then the world draws the payments.
    """
    means, weight = mean_grid(bandit.arms, nodes=8)
    every_round = list(itertools.product(range(bandit.arms), repeat=bandit.players))
    payments = list(itertools.product((0, 1), repeat=bandit.players))
    capacities = list(itertools.product(range(1, bandit.players + 1), repeat=bandit.arms))

    known = {(): [weight / len(capacities) for _ in capacities]}  # over the grid of means, for each capacity vector
    for _ in range(rounds):
        longer = {}
        for history, by_world in known.items():
            own = [[(int(a[i]), int(x[i])) for a, x in history] for i in range(bandit.players)]
            for actions in every_round:
                chosen = math.prod(policy(own[i])[actions[i]] for i in range(bandit.players))
                for paid in payments:
                    seen = [
                        chosen * world * reading_chances(capacity, means, np.array(actions), paid)
                        for capacity, world in zip(capacities, by_world, strict=True)
                    ]
                    longer[(*history, (actions, paid))] = seen
        known = longer
    return {history: np.array([world.sum() for world in by_world]) for history, by_world in known.items()}


def test_posterior_does_not_depend_on_who_chose_the_actions():
    """All 256 trajectories of two rounds under two local, history-dependent policies.

    The policies produce them with different probabilities; what each says about the world is the same.
    """
    bandit = Bandit(arms=2, players=2, horizon=4)
    tables = [trajectory_chances(policy, bandit, rounds=2) for policy in (sticky, restless)]
    totals = [sum(chance.sum() for chance in table.values()) for table in tables]
    np.testing.assert_allclose(totals, 1.0)  # nothing was left out
    likely = [np.array([chance.sum() for chance in table.values()]) for table in tables]
    assert np.abs(likely[0] - likely[1]).max() > 0.005  # the policies do differ
    possible = [history for history, chance in tables[0].items() if chance.sum() > 0]
    assert len(possible) > 200
    actions, paid = (jnp.array([[turn[part] for turn in h] for h in possible], jnp.int8) for part in (0, 1))

    @jax.jit
    @jax.vmap
    def posterior(actions, paid):
        belief = bandit.belief()
        for t in range(2):
            belief = bandit.update_belief(belief, actions[t], paid[t])
        rows = jnp.exp(bandit.log_posterior(belief))
        return (rows[0][:, None] * rows[1][None, :]).reshape(-1)

    found = posterior(actions, paid)
    for table in tables:
        expected = np.stack([table[history] / table[history].sum() for history in possible])
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=1e-6)


def test_posterior_forgets_the_order_of_rounds_and_the_names_of_players(small):
    history = random_history(small, 8, seed=3)
    rng = np.random.default_rng(0)
    shuffled = [history[t] for t in rng.permutation(8)]
    renamed = [(a[order], x[order]) for a, x in history for order in [rng.permutation(small.players)]]
    for other in (shuffled, renamed):
        np.testing.assert_array_equal(exact(small, other), exact(small, history))


def test_most_probable_capacity_is_the_largest_load_that_ever_paid():
    bandit = Bandit(arms=3, players=5, horizon=31)
    for seed in range(6):
        history = random_history(bandit, 5 * (seed + 1), seed)
        paid_at = np.ones(3, int)  # an arm that never paid is most probably one that serves a single player
        for actions, paid in history:
            for arm in set(actions[paid > 0]):
                paid_at[arm] = max(paid_at[arm], np.sum(actions == arm))
        np.testing.assert_array_equal(exact(bandit, history).argmax(1) + 1, paid_at)


def test_posterior_says_when_it_is_for_another_prior():
    assert Bandit(arms=2, players=2, horizon=3, mean_alpha=0.5, mean_beta=2.0).posterior == "exact"
    assert Bandit(arms=2, players=2, horizon=3, capacity_concentration=1.0).posterior == "misspecified"
