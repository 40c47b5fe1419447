"""Commands on problems whose worlds come from data: what they say without it, and that settings reach them."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape import UserError
from icmape.cli import main
from icmape.cli.teams import changes_of
from icmape.learning.config import Config
from icmape.learning.run_folder import write_config
from icmape.networks import make_inference
from icmape.play.inference import NetworkInference
from icmape.play.stop import FixedLength
from icmape.play.team import Team
from icmape.play.team_files import load
from icmape.zoo.hotspot.hotspot import Hotspot
from icmape.zoo.hotspot.prior_map import POLICIES
from tests.support import drawn
from tests.zoo.hotspots import small_hotspot


@pytest.mark.parametrize(
    "words", [["train", "nitrate"], ["train", "nitrate-n1", "--data", "nowhere"], ["evaluate", "nitrate"]]
)
def test_without_data_commands_say_how_to_get_it(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    assert "icmape data fetch" in " ".join(capsys.readouterr().err.split())


def test_a_configuration_finds_its_data_where_one_says(tmp_path, monkeypatch, capsys):
    """The problem is not built before the flags are read: the error names the new place, not the old one."""
    problem = small_hotspot()
    write_config(tmp_path, problem, Config())
    content = json.loads((tmp_path / "config.json").read_text())
    content["problem"]["arguments"] |= {"data": ["old-place"], "synthetic": None}
    (tmp_path / "config.json").write_text(json.dumps(content))
    monkeypatch.chdir(tmp_path)
    assert main(["train", "--config", "config.json", "--data", "new-place"]) == 2
    assert "no measurements at new-place" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("name", list(POLICIES))
def test_prior_maps_survive_a_file(name, tmp_path):
    problem = small_hotspot()
    policy = POLICIES[name].make(problem)
    inference = drawn(lambda: make_inference(problem, 8, "paper", "dense", key=jax.random.key(0)))
    Team(problem, policy, FixedLength(2), NetworkInference(inference)).save(tmp_path / "team.safetensors")
    again = load(tmp_path / "team.safetensors")
    assert np.array_equal(again.policy.logits, policy.logits)
    assert again.policy.kind == name


def test_a_negative_reading_counts_as_nothing():
    problem = small_hotspot()
    below, zero = (problem.normalised(jnp.array([value], jnp.float16)) for value in (-0.5, 0.0))
    assert np.array_equal(below, zero)


def test_set_reads_years_numbers_and_lists():
    found = changes_of([], ["years=2001-2003,2005", "latitudes=37.9,39.7", "fit=30", "valid=[1,2]"])
    assert found == {"years": [2001, 2002, 2003, 2005], "latitudes": [37.9, 39.7], "fit": 30, "valid": [1, 2]}
    with pytest.raises(UserError, match="NAME=VALUE"):
        changes_of([], ["years"])


def test_made_up_worlds_say_so():
    assert small_hotspot().remark == "synthetic worlds"
    assert "icmape data fetch" in Hotspot.WORLDS_FROM
