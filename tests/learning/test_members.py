"""Several teams for a seed, of which the best is kept."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape import UserError
from icmape.learning.check_config import check
from icmape.learning.config import Config, with_algorithm
from icmape.learning.reports import leaders
from icmape.learning.run import train_run
from icmape.learning.run_teams import team_of
from icmape.learning.train import member_seeds
from icmape.learning.validation import Best
from icmape.settings import override
from tests.coins import Coins

PROBLEM = Coins()
TINY = {
    "iterations": 2,
    "iterations_per_call": 2,
    "num_envs": 8,
    "buffer_size": 8,
    "batch_size": 4,
    "learning_starts": 4,
    "validation_interval": 1,
    "validation_episodes": 16,
    "settling_episodes": 64,
    "network.hidden_size": 4,
    "plan.iterations": 0,
}
CONFIG = override(with_algorithm(Config(), "random"), TINY)


def test_the_first_member_has_the_seed_itself_and_no_two_share_one():
    found = np.asarray(member_seeds(override(CONFIG, {"population_size": 3}), jnp.array([215, 219, 2**31 - 1])))
    np.testing.assert_array_equal(found[::3], [215, 219, 2**31 - 1])
    assert len(set(found.tolist())) == 9
    assert found.min() >= 0


def test_the_fastest_on_target_leads_and_else_the_most_accurate():
    accuracy = [0.95, 0.93, 0.99, 0.5, 0.7, 0.6, 0.95, 0.92, 0.95]
    tau = [6.0, 5.0, 9.0, 2.0, 3.0, 1.0, 4.0, 4.5, 5.0]
    fault = [0, 0, 0, 0, 0, 0, 1, 0, 0]
    best = Best(None, None, jnp.array(accuracy), jnp.array(tau), jnp.ones(9, int))
    config = override(CONFIG, {"population_size": 3, "seeds": (1, 2, 3)})
    np.testing.assert_array_equal(leaders(config, best, jnp.array(fault)), [1, 4, 7])  # 6 has a fault


def test_a_seed_keeps_the_better_of_what_its_members_are_alone():
    seeds = np.asarray(member_seeds(override(CONFIG, {"population_size": 2}), jnp.array([7]))).tolist()
    alone = train_run(PROBLEM, override(CONFIG, {"seeds": tuple(seeds)}))
    rows = []
    together = train_run(
        PROBLEM,
        override(CONFIG, {"seeds": (7,), "population_size": 2}),
        callback=lambda progress: rows.extend(progress.rows),
    )
    best = int(
        leaders(override(CONFIG, {"seeds": (7,), "population_size": 2}), alone.states.best, alone.states.fault)[0]
    )
    expected, found = team_of(alone, seeds[best]), team_of(together, 7)
    for one, other in zip(jax.tree.leaves(expected.inference), jax.tree.leaves(found.inference), strict=True):
        np.testing.assert_array_equal(one, other)
    assert [row["member"] for row in rows] == [best]
    assert [row["seed"] for row in rows] == [7]


def test_no_member_is_refused():
    with pytest.raises(UserError, match="population_size must be at least 1"):
        check(override(CONFIG, {"population_size": 0}), PROBLEM)
