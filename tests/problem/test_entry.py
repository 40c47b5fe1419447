"""A problem of another package, which an entry point names, has all that ours have."""

import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from icmape.baselines.registry import baselines_for, catalogue
from icmape.baselines.rules import LevelRule, random_team
from icmape.cli import main
from icmape.errors import UserError
from icmape.evaluation.robustness import Sweep, sweeps_of
from icmape.learning.config import Config, algorithms, with_algorithm
from icmape.learning.presets import preset, presets
from icmape.play.named_policies import NamedPolicy, named_policy
from icmape.play.open_loop import Uniform
from icmape.plot.drawings import drawing_class
from icmape.plot.timeline import Timeline
from icmape.problem import Entry
from icmape.problem import entry as registry
from icmape.problem.entry import entries, problem_name
from icmape.problem.spec import build, describe
from tests.coins import Coins


class CoinDrawing(Timeline):
    """Of coins."""


def greet(words: list[str]) -> int:
    print("tossed", *words)
    return 0


RULES = {"flip": LevelRule("coins are flipped", build=random_team, default="1-δ")}
POLICIES = {"tosses": NamedPolicy("tosses coins", lambda problem: Uniform(problem.agents, problem.actions + 1))}
SWEEPS = (Sweep("bias", {"low": (0.1, 0.2)}),)
COMMANDS = {"toss": greet}
HERE = "tests.problem.test_entry"
ENTRY = Entry(
    "coins",
    Coins,
    presets="coin_presets",
    baselines=f"{HERE}:RULES",
    policies=f"{HERE}:POLICIES",
    sweeps=f"{HERE}:SWEEPS",
    drawing=f"{HERE}:CoinDrawing",
    commands=f"{HERE}:COMMANDS",
)
TOML = """
summary = "two coins"
algorithm = "vdn"
[arguments]
agents = 2
[all]
delta = 0.2
[off_policy]
iterations = 7
[tosses]
iterations = 3
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if a package with this entry point were installed."""
    (tmp_path / "coin_presets").mkdir()
    (tmp_path / "coin_presets" / "__init__.py").touch()
    (tmp_path / "coin_presets" / "coins-two.toml").write_text(TOML)
    monkeypatch.syspath_prepend(tmp_path)
    point = EntryPoint("coins", f"{HERE}:ENTRY", registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point] if group == registry.GROUP else [])
    entries.cache_clear()
    presets.cache_clear()
    yield
    entries.cache_clear()
    presets.cache_clear()
    sys.modules.pop("coin_presets", None)


@pytest.mark.usefixtures("installed")
def test_it_is_known_by_its_name_in_files():
    problem = Coins(agents=2)
    assert problem_name(Coins) == "coins"
    assert describe(problem)["kind"] == "coins"
    assert describe(build(describe(problem))) == describe(problem)


@pytest.mark.usefixtures("installed")
def test_it_has_presets_baselines_policies_sweeps_and_a_drawing():
    chosen = preset("coins-two")
    assert (chosen.build().agents, chosen.config().delta, chosen.config().iterations) == (2, 0.2, 7)
    assert chosen.config("tosses").iterations == 3
    assert chosen.config("ppo").iterations == Config().iterations
    assert "flip" in baselines_for(Coins(agents=2))
    assert ("flip", "coins", "coins are flipped") in catalogue()
    assert "tosses" in algorithms()
    assert with_algorithm(Config(), "tosses").algorithm.policy == "tosses"
    assert isinstance(named_policy("tosses", Coins()), Uniform)
    assert sweeps_of(Coins()) == SWEEPS
    assert drawing_class(Coins) is CoinDrawing


@pytest.mark.usefixtures("installed")
def test_it_brings_commands(capsys: pytest.CaptureFixture):
    assert main(["toss", "twice"]) == 0
    assert capsys.readouterr().out == "tossed twice\n"


def test_without_its_entry_a_problem_has_what_any_has():
    assert problem_name(Coins) == "tests.coins:Coins"
    assert sweeps_of(Coins()) == ()
    assert drawing_class(Coins) is Timeline


def test_an_entry_point_that_cannot_be_loaded_is_named(monkeypatch: pytest.MonkeyPatch):
    point = EntryPoint("ghost", "nowhere.at_all:ENTRY", registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point])
    entries.cache_clear()
    with pytest.raises(UserError, match=r"entry point ghost = nowhere.at_all:ENTRY .* cannot be loaded"):
        entries()
    entries.cache_clear()


def test_two_problems_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch):
    point = EntryPoint("bandit", f"{HERE}:TWICE", registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point])
    entries.cache_clear()
    with pytest.raises(UserError, match="two problems are called bandit"):
        entries()
    entries.cache_clear()


TWICE = Entry("bandit", Coins)


@pytest.mark.usefixtures("installed")
def test_two_presets_of_one_name_are_refused(tmp_path: Path):
    (tmp_path / "coin_presets" / "bandit-quick.toml").write_text(TOML)
    with pytest.raises(UserError, match="two problems have a preset bandit-quick: the second is coins"):
        presets()


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("text", ["[all]\ndelta = 0.1\n", "summary = \n"])
def test_a_preset_that_cannot_be_read_is_named(tmp_path: Path, text: str):
    (tmp_path / "coin_presets" / "coins-bad.toml").write_text(text)
    with pytest.raises(UserError, match="the preset coins-bad needs TOML with summary and algorithm"):
        presets()
