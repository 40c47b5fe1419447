"""What is said of a run that does not learn: one remark for each cause, and none where all is well."""

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape.learning.advice import Watch, advice
from icmape.learning.config import Config
from icmape.learning.plan import PlanFound
from icmape.networks import Inference
from icmape.settings import override
from tests.coins import Coins
from tests.support import drawn

CONFIG = override(Config(), {"delta": 0.1, "iterations": 100})
HEALTHY: dict[str, Any] = {
    "seed": 3,
    "iteration": 60,
    "validation_accuracy": 0.91,
    "validation_tau": 7.0,
    "validation_forced": 0.1,
    "step_cost": 0.02,
}
PLAN = 8.0
CASES = [
    ({"validation_forced": 0.99}, "nobody stops before the last round"),
    ({"step_cost": 0.0}, "the cost of a round is 0"),
    ({"validation_accuracy": 0.7}, r"it stops at accuracy 0\.70, far below 0\.9"),
    ({"validation_accuracy": 0.7, "validation_forced": 0.6}, r"even the longest episodes give accuracy 0\.70"),
    ({"validation_tau": 9.0}, r"its non-adaptive plan takes τ 8\.0, the team 9\.0"),
]


@pytest.mark.parametrize(("row", "told"), CASES, ids=[told[:20] for _, told in CASES])
def test_each_cause_has_a_remark_of_its_own(row, told):
    (remark,) = advice(CONFIG, HEALTHY | row, PLAN)
    assert re.match(told, remark)
    assert ":" in remark  # behind it stands which setting to try


@pytest.mark.parametrize("plan", [PLAN, None, float("inf")])
def test_a_healthy_run_needs_none(plan):
    assert advice(CONFIG, HEALTHY, plan) == []


@pytest.mark.parametrize(("row", "told"), CASES, ids=[told[:20] for _, told in CASES])
def test_a_team_may_know_little_early_on(row, told):
    assert advice(CONFIG, HEALTHY | row | {"iteration": 39}, PLAN) == []


def test_what_was_not_measured_is_no_cause():
    assert advice(CONFIG, dict.fromkeys(HEALTHY, None) | {"iteration": 60}, None) == []


@pytest.mark.parametrize(
    ("settings", "row"), [({"stopping": "threshold"}, {"validation_forced": 1.0}), ({"cost": "none"}, {"step_cost": 0})]
)
def test_what_is_meant_to_be_so_is_not_told(settings, row):
    assert advice(override(CONFIG, settings), HEALTHY | row, PLAN) == []


def test_a_remark_is_logged_once_and_kept_as_long_as_it_holds(caplog):
    inference = drawn(lambda: Inference(Coins(), 2, "paper", key=jax.random.key(0)))
    length = jnp.array([PLAN - 1])
    plans = PlanFound(jnp.zeros((1, 7, 1, 1)), jnp.zeros((1, 8)), length, length, inference)
    watch = Watch(override(CONFIG, {"seeds": (3,)}), plans)
    for number, tau in enumerate((9.0, 9.5)):
        watch.look([HEALTHY | {"iteration": 60 + number, "validation_tau": tau}])
    assert [record.getMessage()[:20] for record in caplog.records] == ["seed 3, iteration 60"]
    (remark,) = watch.remarks[3]
    assert "the team 9.5" in remark
    watch.look([HEALTHY])
    assert watch.remarks == {3: []}
    assert np.isclose(watch.plan_tau[3], PLAN)
