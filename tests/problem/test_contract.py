"""Problems that break the contract are refused with a sentence that names the fault."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape import UserError, check_problem
from icmape.learning.presets import presets
from icmape.problem import Centralized, Features, arguments
from icmape.problem import check as checks
from icmape.problem.check import _gap_faults
from icmape.problem.spec import load_class
from icmape.zoo.bandit.bandit import Bandit
from tests.coins import Coins
from tests.support import build_preset


@pytest.mark.parametrize("name", sorted(presets()))
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
    def update_memory(self, memory, agent, action, observation):
        return jnp.concatenate([memory, memory])

    def features(self, memory):
        return Features(memory[:2].astype(jnp.float32))


class MemoryOfAnotherType(Coins):
    def update_memory(self, memory, agent, action, observation):
        return memory.astype(jnp.float32)

    def features(self, memory):
        return Features(memory.astype(jnp.float32))


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
    def action_mask(self, memory):
        return jnp.zeros(self.actions, bool)


class WrongAllowed(Coins):
    def action_mask(self, memory):
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
        (WrongAllowed(), r"action_mask\(\) must be bool"),
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


class TooSure(Coins):
    """It counts every toss twice, so that its confidence is above its accuracy."""

    def log_posterior(self, belief):
        return jax.nn.log_softmax(2 * super().log_posterior(belief))


class NotFinite(Coins):
    def log_posterior(self, belief):
        return jnp.where(jnp.sum(belief) > 3, jnp.nan, super().log_posterior(belief))


def test_a_posterior_that_is_not_exact_is_told_both_numbers():
    """By hand, after one toss: p = 0.8 squared and normalised is 16/17 = 0.941, and it is right in 0.8 of worlds."""
    with pytest.raises(
        UserError,
        match=r"not exact: after \d rounds .* 4,096 worlds .*confidence is 0\.941 and its accuracy 0\.(79|80)",
    ):
        check_problem(TooSure())
    check_problem(TooSure(), simulate=False)
    with pytest.raises(UserError, match="no finite confidence"):
        check_problem(NotFinite())


def test_a_posterior_said_to_be_misspecified_may_differ():
    class Honest(TooSure):
        posterior = "misspecified"

    check_problem(Honest())


def test_rare_errors_are_no_fault_and_errors_of_the_certain_are():
    """Of 4,096 answers of confidence 1 - 1e-4 two may well be wrong. At confidence 1 none may; 7 and more are told."""
    nearly, correct = np.full((4096, 1), 1 - 1e-4, np.float32), np.ones((4096, 1), bool)
    correct[:2] = False
    assert _gap_faults(nearly, correct) == []
    correct[:8] = False
    assert "1.000 and its accuracy 0.998" in _gap_faults(np.ones_like(nearly), correct)[0]


def test_a_posterior_is_simulated_once_a_problem(monkeypatch):
    check_problem(Coins(agents=2, horizon=4))
    monkeypatch.setattr(checks, "_simulated", lambda *_: pytest.fail("again"))
    check_problem(Coins(agents=2, horizon=4))


@pytest.mark.parametrize("name", ["signal", "nitrate-synthetic"])
def test_what_takes_long_or_has_no_posterior_is_not_simulated(name, monkeypatch):
    monkeypatch.setattr(checks, "_simulated", lambda *_: pytest.fail("simulated"))
    assert checks._posterior_faults(build_preset(name)) == []


# -- names for people


def test_answers_have_names_that_count_from_one():
    assert Bandit(3, 3, 7).answer_name(np.array([1, 0, 2])) == "capacities 2, 1, 3"
    assert Centralized(Bandit(1, 2, 7)).answer_name(jnp.array([1])) == "capacities 2"
    signal = build_preset("signal")
    assert signal.answer_name(2 * signal.grid + 6) == "row 3, column 7"
    assert Coins().answer_name(np.int8(1)) == "1", "as it is, where a problem says nothing"


# -- one agent's data alone


def test_a_single_agents_data_are_everyones():
    problem, zero = Coins(), jnp.int32(0)
    assert problem.has_own_beliefs
    own = problem.update_own_belief(problem.own_belief(zero, jnp.int8(0)), zero, zero, jnp.int8(1))
    np.testing.assert_array_equal(own, problem.update_belief(problem.belief(), zero[None], jnp.int8(1)[None]))


def test_who_has_no_posterior_of_one_agents_data_says_so():
    problem, zero = Coins(agents=2), jnp.int32(0)
    assert not problem.has_own_beliefs
    with pytest.raises(UserError, match="Coins has no posterior of one agent's data alone: write update_own_belief"):
        problem.update_own_belief(problem.belief(), zero, zero, jnp.int8(1))


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


def test_lists_of_numbers_are_as_short():
    class Biased(Coins):
        """Several numbers in one argument."""

        chances: jax.Array

        def __init__(self, chances=(0.1, 0.7)):
            super().__init__()
            self.chances = jnp.asarray(chances, jnp.float32)

    assert arguments(Biased()) == {"chances": [0.1, 0.7]}


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
