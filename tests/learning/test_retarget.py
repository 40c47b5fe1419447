"""A trained team for another δ: only its stops move."""

import json
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest

from icmape import UserError, load
from icmape.cli import main
from icmape.evaluation.certificate import worlds_for
from icmape.learning.retarget import retarget
from icmape.learning.validation import needed_accuracy
from icmape.play.inference import NetworkInference
from icmape.play.stop import FixedLength, LearnedStop
from icmape.play.team import Team
from tests.learning.test_validation import PROBLEM, Counts, moved
from tests.support import lively_team

WORLDS = 2048


def counting_team() -> Team:
    """Untrained actors whose counts are read by Bayes' rule."""
    return Team(PROBLEM, moved("apart", 0.1).before, LearnedStop(), NetworkInference(Counts()))


@pytest.fixture(scope="module")
def teams() -> dict[float, Team]:
    return {delta: retarget(counting_team(), delta, worlds=WORLDS) for delta in (0.2, 0.1)}


def told(team: Team) -> dict[str, float]:
    return json.loads(team.card)["retargeted"]


def test_the_threshold_is_just_enough(teams):
    for delta, team in teams.items():
        assert team.delta == delta
        needed = float(needed_accuracy(delta, 10_000))
        assert needed <= told(team)["accuracy"] <= needed + 0.06  # its histories are few


def test_a_certificate_on_more_worlds_needs_less_room(teams):
    near = retarget(counting_team(), 0.1, worlds=WORLDS, certificate_worlds=1_000_000)
    assert 0.9 < told(near)["accuracy"] <= told(teams[0.1])["accuracy"]
    assert told(near)["tau"] <= told(teams[0.1])["tau"]
    np.testing.assert_allclose(needed_accuracy(0.1, 10_000) - 0.9, 2 * (needed_accuracy(0.1, 40_000) - 0.9), rtol=1e-3)
    assert (worlds_for(near), worlds_for(teams[0.1]), worlds_for(counting_team())) == (1_000_000, 10_000, 10_000)
    with pytest.raises(UserError, match="certificate_worlds must be at least 1"):
        retarget(counting_team(), 0.1, worlds=WORLDS, certificate_worlds=0)


def test_the_smaller_delta_the_later_the_stop(teams):
    assert told(teams[0.1])["tau"] > told(teams[0.2])["tau"] + 0.1


def test_what_it_tells_is_what_it_does_in_other_worlds(teams):
    assert teams[0.1].evaluate(episodes=4000, seed=3).tau == pytest.approx(told(teams[0.1])["tau"], abs=0.15)


def test_sampling_and_inference_stay(teams):
    before, after = counting_team(), teams[0.1]
    for one, other in zip(jax.tree.leaves(before.inference), jax.tree.leaves(after.inference), strict=True):
        np.testing.assert_array_equal(one, other)
    without = lambda team: eqx.tree_at(lambda t: t.policy.actors.actor.head.bias, team, None)  # noqa: E731
    for one, other in zip(jax.tree.leaves(without(before).policy), jax.tree.leaves(without(after).policy), strict=True):
        np.testing.assert_array_equal(one, other)
    bias = before.policy.actors.actor.head.bias, after.policy.actors.actor.head.bias
    np.testing.assert_array_equal(bias[0][..., :-1], bias[1][..., :-1])


def test_what_cannot_be_is_refused():
    team = lively_team()
    with pytest.raises(UserError, match=r"no threshold of its stops gives accuracy 0\.9"):
        retarget(team, 0.1, worlds=256)
    with pytest.raises(UserError, match="delta must lie strictly between 0 and 1"):
        retarget(team, 1.0)
    with pytest.raises(UserError, match="only teams whose policy, stop and inference were learned"):
        retarget(Team(team.problem, team.policy, FixedLength(3), team.inference), 0.5)


def test_the_command_writes_team_files(tmp_path: Path, capsys):
    lively_team().save(tmp_path / "team-1.safetensors")
    asked = ["retarget", str(tmp_path), "--delta", "0.9", "--worlds", str(WORLDS), "--out", str(tmp_path / "new")]
    assert main(asked) == 0
    assert "δ 0.05 → 0.9" in capsys.readouterr().out
    assert load(tmp_path / "new" / "team-1.safetensors").delta == 0.9
    assert main(asked) == 2
    assert "--overwrite" in capsys.readouterr().err
