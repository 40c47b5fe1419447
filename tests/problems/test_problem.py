"""Problems that break the contract are refused with a sentence that names the fault."""

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from icmape import UserError, check_problem
from icmape.presets import PRESETS
from icmape.problems import Bandit, View, arguments, load_class
from tests.coins import Coins
from tests.support import build_preset


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_presets_keep_the_contract(name):
    check_problem(build_preset(name))


def test_a_problem_from_outside_keeps_the_contract():
    check_problem(Coins(agents=3))


class NoAgentAxis(Coins):
    def start(self, world, *, key):
        return (), jnp.zeros((), jnp.int8)


class WrongAgentAxis(Coins):
    def start(self, world, *, key):
        return (), jnp.zeros(self.agents + 1, jnp.int8)

    def step(self, world, state, actions, *, key):
        return state, jnp.ones(self.agents + 1, jnp.int8)


class GrowingMemory(Coins):
    def remember(self, memory, agent, action, observation):
        return jnp.concatenate([memory, memory])

    def view(self, memory):
        return View(memory[:2].astype(jnp.float32))


class MemoryOfAnotherType(Coins):
    def remember(self, memory, agent, action, observation):
        return memory.astype(jnp.float32)

    def view(self, memory):
        return View(memory.astype(jnp.float32))


class ChangingState(Coins):
    def step(self, world, state, actions, *, key):
        return jnp.zeros(3), super().step(world, state, actions, key=key)[1]


class ChangingObservation(Coins):
    def step(self, world, state, actions, *, key):
        return state, super().step(world, state, actions, key=key)[1].astype(jnp.float16)


class RealHypothesis(Coins):
    def sample(self, *, key):
        return super().sample(key=key)._replace(hypothesis=jnp.float32(1.0))


class NoHypothesis(Coins):
    def sample(self, *, key):
        return (jnp.int8(1),)


class NothingAllowed(Coins):
    def allowed(self, memory):
        return jnp.zeros(self.actions, bool)


class WrongAllowed(Coins):
    def allowed(self, memory):
        return jnp.ones(self.actions + 2, bool)


class PythonBranch(Coins):
    def step(self, world, state, actions, *, key):
        if world.hypothesis == 1:
            return state, jnp.ones(self.agents, jnp.int8)
        return state, -jnp.ones(self.agents, jnp.int8)


class WrongPosterior(Coins):
    def log_posterior(self, belief):
        return jnp.zeros(3)


class GrowingBelief(Coins):
    def update_belief(self, belief, actions, observation):
        return jnp.concatenate([belief, belief])


class HiddenArgument(Coins):
    """`secret` is asked for but cannot be read back, so a team file could not name this problem."""

    def __init__(self, secret: int = 1):
        super().__init__(horizon=4 + secret)


class ForgetfulArgument(Coins):
    """`bonus` reads back as something else."""

    bonus: int = eqx.field(static=True)

    def __init__(self, bonus: int = 1):
        super().__init__(horizon=4)
        self.bonus = bonus + 1


class NoSpace(Coins):
    def __init__(self, agents: int = 1):
        super().__init__(agents=agents)
        self.hypotheses = None


@pytest.mark.parametrize(
    ("problem", "named"),
    [
        (NoAgentAxis(), "agent axis of 1"),
        (WrongAgentAxis(agents=2), "agent axis of 2"),
        (GrowingMemory(), "memory changes"),
        (MemoryOfAnotherType(), "memory changes"),
        (ChangingState(), "state changes"),
        (ChangingObservation(), "observation changes"),
        (RealHypothesis(), "hypothesis must be of an integer type"),
        (NoHypothesis(), "hypothesis"),
        (NothingAllowed(), "without any action"),
        (WrongAllowed(), r"allowed\(\) must be bool"),
        (PythonBranch(), "under jit"),
        (WrongPosterior(), "log_posterior must have the shape"),
        (GrowingBelief(), "belief changes"),
        (HiddenArgument(), "secret"),
        (ForgetfulArgument(), "gives another problem"),
        (NoSpace(), "HypothesisSpace"),
        (Coins(horizon=1), "horizon must be an int of at least 2"),
        (Coins(agents=0), "agents must be an int of at least 1"),
        (Coins(actions=0), "actions must be an int of at least 1"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Coins) else "",
)
def test_a_broken_problem_is_told_its_fault(problem, named):
    with pytest.raises(UserError, match=f"{type(problem).__name__} breaks the contract.*{named}"):
        check_problem(problem)


def test_all_faults_are_told_at_once():
    with pytest.raises(UserError, match=r"agents must be.*horizon must be"):
        check_problem(Coins(agents=0, horizon=1))


@pytest.mark.parametrize(
    "problem",
    [
        Bandit(arms=2, players=3, horizon=7),
        Bandit(arms=4, players=2, horizon=5, mean_low=0.1, mean_high=0.7, mean_alpha=0.5, mean_beta=3.0),
        Bandit(arms=2, players=2, horizon=3, capacity_concentration=0.1),
        Coins(agents=2, low=0.1),
    ],
)
def test_arguments_build_the_same_problem_again(problem):
    again = type(problem)(**arguments(problem))
    assert eqx.tree_equal(problem, again, typematch=True)


def test_arguments_are_the_short_numbers_that_were_given():
    told = arguments(Bandit(arms=2, players=3, horizon=7, mean_low=0.3))
    assert told["mean_low"] == 0.3
    assert told["capacity_concentration"] is None
    assert (told["arms"], told["players"], told["horizon"]) == (2, 3, 7)


def test_a_class_is_found_by_its_path():
    assert load_class("tests.coins:Coins") is Coins


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("tests.coins", "module:Class"),
        ("tests.no_such_module:Coins", "PYTHONPATH"),
        ("tests.coins:Dice", "no class Dice"),
        ("tests.coins:CoinWorld", "not a subclass"),
        ("tests.coins:solve", "not a subclass"),
    ],
)
def test_a_wrong_path_is_told_what_is_wrong(path, named):
    with pytest.raises(UserError, match=named):
        load_class(path)


def test_a_problem_without_a_posterior_says_so():
    class Blind(Coins):
        posterior = "none"

        def belief(self, first=None):
            return super(Coins, self).belief()

    with pytest.raises(UserError, match="Blind has no exact posterior"):
        Blind().belief()
    with pytest.raises(UserError, match="no environment reward"):
        Coins().payoff(Coins().sample(key=jax.random.key(0)), jnp.zeros(1, jnp.int8))
