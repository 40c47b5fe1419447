"""Plans that runs share: taken from a file, a run is to the bit what it is with plans of its own."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from icmape.learning import run as run_module
from icmape.learning.algorithms import Value
from icmape.learning.presets import preset
from icmape.learning.run import train_run
from icmape.learning.shared_plans import plan_key, read_shared
from icmape.problem import Centralized
from icmape.settings import override
from icmape.zoo.bandit.bandit import Bandit
from tests.learning.test_run import SETTINGS

PROBLEM = Bandit(2, 2, 8)
SMALL = {**SETTINGS, "deltas": (), "iterations": 6, "iterations_per_call": 3, "seeds": (3, 4)}
RANDOM = override(preset("bandit-quick").config("random"), SMALL | {"posterior": "auto"})
VDN = override(preset("bandit-quick").config("vdn"), SMALL)


def arrays(tree: Any) -> list[np.ndarray]:
    keys = lambda x: jax.random.key_data(x) if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) else x  # noqa: E731
    return [np.asarray(keys(leaf)) for leaf in jax.tree.leaves(tree) if hasattr(leaf, "dtype")]


def without_seconds(path: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    return [{name: x for name, x in row.items() if name not in ("seconds", "crc32")} for row in rows]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plans that a run found whose program compiles quickly."""
    path = tmp_path_factory.mktemp("shared") / "plan.eqx"
    train_run(PROBLEM, RANDOM, shared_plans=path)
    return path


def test_a_run_with_the_plans_of_another_is_the_same_to_the_bit(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of another algorithm, too. Nothing is computed again."""
    own = train_run(PROBLEM, VDN, tmp_path / "own")

    def refuse(*_: object) -> None:
        raise AssertionError("plans are computed")

    monkeypatch.setattr(run_module, "find_plans", refuse)
    taken = train_run(PROBLEM, VDN, tmp_path / "taken", shared_plans=shared)
    for mine, other in zip(arrays(own.states), arrays(taken.states), strict=True):
        np.testing.assert_array_equal(mine, other)
    assert (tmp_path / "own/plan.json").read_bytes() == (tmp_path / "taken/plan.json").read_bytes()
    assert without_seconds(tmp_path / "own") == without_seconds(tmp_path / "taken")


def test_plans_are_known_by_all_that_they_depend_on(shared: Path) -> None:
    key = plan_key(PROBLEM, RANDOM)
    for settings in (
        {"iterations": 99, "num_envs": 4, "algorithm": Value(), "dual.lr": 1.0, "plan.follow_prob": 0.9},
        {"network.stop_bias": 1.0, "actor_lr": 1.0},
    ):
        assert plan_key(PROBLEM, override(RANDOM, settings)) == key
    for settings in (
        *({"seeds": (3,)}, {"delta": 0.5}, {"network.hidden_size": 8}, {"inference_lr": 1.0}, {"posterior": "network"}),
        *({"plan.iterations": 11}, {"plan.num_envs": 16}, {"dual.margin": 0.0}, {"validation_episodes": 32}),
    ):
        assert plan_key(PROBLEM, override(RANDOM, settings)) != key
    assert plan_key(Bandit(2, 2, 9), RANDOM) != key
    assert plan_key(Centralized(PROBLEM), RANDOM) != key
    assert read_shared(shared, PROBLEM, dataclasses.replace(RANDOM, delta=0.5)) is None
    assert read_shared(shared.with_name("none.eqx"), PROBLEM, RANDOM) is None


def test_damaged_plans_are_computed_again(shared: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = bytearray(shared.read_bytes())
    data[-5] ^= 1
    damaged = tmp_path / "plan.eqx"
    damaged.write_bytes(data)
    train_run(PROBLEM, dataclasses.replace(RANDOM, iterations=3), shared_plans=damaged)
    assert "is damaged" in caplog.text
    assert damaged.read_bytes() == shared.read_bytes()
