"""Teams in the package are rounded only as far as that changes no choice."""

import dataclasses
import json
from pathlib import Path

import equinox as eqx
import pytest
from safetensors.numpy import load_file

from icmape.play import team_files
from paper import pretrained
from tests.support import lively_team


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(pretrained, "FOLDER", tmp_path)
    lively_team().save(tmp_path / "whole.safetensors")
    return tmp_path


def stored_types(path: Path) -> set[str]:
    weights = {name: x for name, x in load_file(path).items() if name.startswith(("policy", "inference"))}
    return {x.dtype.name for x in weights.values() if x.dtype.kind == "f"}


def test_a_team_whose_choices_stay_is_rounded_as_a_whole(package: Path):
    path, half = pretrained.add(package / "whole.safetensors", "mine", episodes=100)
    assert half == ("policy", "inference")
    assert stored_types(path) == {"float16"}
    assert stored_types(package / "whole.safetensors") == {"float32"}
    whole = team_files.about(package / "whole.safetensors")
    assert json.loads(team_files.load(path).card)["rounded_from"] == whole.digest


def test_a_policy_whose_choices_change_keeps_its_bits(package: Path, monkeypatch: pytest.MonkeyPatch):
    tried = iter([1, 0])
    monkeypatch.setattr(pretrained, "changed_choices", lambda *_: next(tried))
    assert pretrained.add(package / "whole.safetensors", "mine", episodes=100)[1] == ("inference",)


def test_changed_choices_are_counted():
    team = lively_team()
    other = dataclasses.replace(team, policy=lively_team().policy)
    assert pretrained.changed_choices(team, other, 100) == 0
    flipped = eqx.tree_at(lambda t: t.policy.actors.actor.head.weight, team, replace_fn=lambda w: -w)
    assert pretrained.changed_choices(team, flipped, 100) > 50


def test_a_team_whose_choices_change_anyway_is_stored_as_it_is(package: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pretrained, "changed_choices", lambda *_: 1)
    path, half = pretrained.add(package / "whole.safetensors", "mine", episodes=100)
    assert half == ()
    assert stored_types(path) == {"float32"}
