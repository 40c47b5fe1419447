"""The picture of a run is drawn from its metrics, and holds every seed."""

import json
from pathlib import Path

import pytest

from icmape.learning.config import Config
from icmape.learning.run_folder import write_config
from icmape.plot.training_curves import draw_curves, smooth
from icmape.zoo.bandit.bandit import Bandit


def test_no_metrics_no_picture(tmp_path: Path) -> None:
    assert draw_curves(tmp_path) is None


def test_a_run_with_gaps_is_drawn(tmp_path: Path) -> None:
    write_config(tmp_path, Bandit(2, 3, 5), Config())
    names = ("accuracy", "tau", "step_cost", "inference_loss", "validation_accuracy", "validation_tau")
    rows = [
        {"seed": seed, "iteration": at} | dict.fromkeys(names, None if at == 2 else 0.5)
        for seed in (1, 2)
        for at in (1, 2, 3)
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = draw_curves(tmp_path)
    assert path is not None
    assert path.read_bytes().startswith(b"\x89PNG")


def test_smoothing_is_an_exponential_moving_average() -> None:
    assert smooth([1.0, 2.0, 2.0]) == pytest.approx([1.0, 1.2, 1.36])
