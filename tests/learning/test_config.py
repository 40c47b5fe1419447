"""Settings that cannot work are refused in a sentence, before anything is compiled."""

import dataclasses
import json

import jax
import pytest

import icmape
from icmape import UserError
from icmape.learning import train
from icmape.learning.algorithms import SoftStops
from icmape.learning.check_config import check
from icmape.learning.config import DEFAULT_ALGORITHM, Config, PaperTD3, algorithms, with_algorithm
from icmape.learning.presets import preset, presets
from icmape.problem import Centralized
from icmape.settings import override, to_dict
from icmape.zoo.bandit.bandit import Bandit
from tests.coins import Coins
from tests.support import build_preset

PROBLEM = Coins()


@pytest.mark.parametrize("algorithm", algorithms())
@pytest.mark.parametrize("name", sorted(presets()))
def test_presets_are_possible_with_every_algorithm(name, algorithm):
    config = presets()[name].config(algorithm)
    check(config, build_preset(name))
    assert type(config.algorithm) is type(with_algorithm(Config(), algorithm).algorithm)


@pytest.mark.parametrize("name", sorted(set(algorithms()) - {"guided"}))
def test_algorithms_are_possible(name):
    check(with_algorithm(Config(), name), PROBLEM)


def test_guided_needs_to_be_told_whom_to_follow():
    config = with_algorithm(Config(), "guided")
    with pytest.raises(UserError, match="nobody to follow"):
        check(config, PROBLEM)
    check(override(config, {"teacher.policy": "team.safetensors"}), PROBLEM)


def test_the_default_is_a_named_algorithm():
    assert with_algorithm(Config(), DEFAULT_ALGORITHM) == Config()


IMPOSSIBLE = [
    ({"delta": 0.0}, "delta must lie strictly between 0 and 1; given 0"),
    ({"delta": 1.0}, "delta must lie strictly between 0 and 1; given 1"),
    ({"delta": float("nan")}, "delta"),
    ({"num_envs": 0}, r"num_envs must be at least 1.*given 0"),
    ({"iterations": 0}, "iterations must be at least 1"),
    ({"gradient_steps": -1}, "gradient_steps must be at least 1"),
    ({"batch_size": 0}, "batch_size must be at least 1"),
    ({"iterations_per_call": 0}, "iterations_per_call must be at least 1"),
    ({"validation_interval": 0}, "validation_interval must be at least 1"),
    ({"validation_episodes": 0}, "validation_episodes must be at least 1"),
    ({"settling_episodes": 0}, "settling_episodes must be at least 1"),
    ({"learning_starts": -1}, "learning_starts must be at least 0"),
    ({"batch_size": 100, "buffer_size": 50}, "batch of 100 episodes does not fit a buffer_size of 50"),
    ({"num_envs": 100, "buffer_size": 80}, "100 episodes an iteration do not fit a buffer_size of 80"),
    ({"seeds": ()}, "seeds"),
    ({"seeds": (3, 4, 3)}, r"seeds.*\[3, 4, 3\]"),
    ({"seeds": (2**40,)}, "seeds"),
    ({"seeds": (-1,)}, "seeds"),
    ({"network.hidden_size": 0}, "hidden_size"),
    ({"network.stop_bias": float("inf")}, "stop_bias"),
    ({"algorithm.policy_delay": 0}, "policy_delay"),
    ({"greedy_fraction": 1.5}, "greedy_fraction must be between 0 and 1"),
    ({"algorithm.gae_lambda": -0.1}, "gae_lambda must be between 0 and 1"),
    ({"algorithm.target_update_rate": 1.1}, "target_update_rate"),
    ({"algorithm.target_update_rate": 0.0}, "target_update_rate"),
    ({"algorithm.min_round_weight": 1.5}, "min_round_weight must be between 0 and 1"),
    ({"algorithm.min_stop_prob": -0.1}, "min_stop_prob must be between 0 and 1"),
    ({"algorithm.random_terminations": -1.0}, "random_terminations must be at least 0"),
    ({"algorithm.stop_kl_coef": float("inf")}, "stop_kl_coef"),
    ({"dual.lr": -1e-3}, "dual.lr must be at least 0"),
    ({"dual.margin": 2.0}, "dual.margin"),
    ({"actor_lr": 0.0}, "actor_lr must be positive"),
    ({"critic_lr": -1.0}, "critic_lr must be positive"),
    ({"inference_lr": float("nan")}, "inference_lr must be positive"),
    ({"actor_lr": float("inf")}, "actor_lr"),
    ({"max_grad_norm": 0.0}, "max_grad_norm must be positive"),
    ({"minutes": 0.0}, "minutes must be positive"),
]


@pytest.mark.parametrize(("settings", "named"), IMPOSSIBLE, ids=[str(s) for s, _ in IMPOSSIBLE])
def test_an_impossible_setting_is_refused(settings, named):
    with pytest.raises(UserError, match=named) as told:
        check(override(with_algorithm(Config(), "td3"), settings), PROBLEM)
    assert "\n" not in str(told.value)


IMPOSSIBLE_TOGETHER = [
    ("ppo", {"num_envs": 10, "greedy_fraction": 0.3}, "7 drawn episodes do not split into 4 minibatches"),
    ("ppo", {"greedy_fraction": 1.0}, "greedy_fraction 1.0 leaves no drawn episode to learn from"),
    ("td3", {"greedy_fraction": 1.0}, "greedy_fraction 1.0 leaves no drawn episode to learn from"),
    (
        "ppo",
        {"num_envs": 20, "greedy_fraction": 0.4, "gradient_steps": 5},
        "12 drawn episodes do not split into 5 gradient steps",
    ),
    ("ppo", {"plan.num_plans": 1, "plan.num_envs": 30}, "1 plans of 30 worlds do not split into 4 gradient steps"),
    ("ppo", {"plan.lr": 0.0}, "plan.lr must be positive"),
    ("ppo", {"plan.follow_prob": 1.5}, "plan.follow_prob must be between 0 and 1"),
    ("ppo", {"dual.init": -0.1}, "dual.init must be at least 0"),
    ("ppo", {"algorithm.stop_anneal_fraction": 0.0}, "stop_anneal_fraction must be above 0 and at most 1"),
    ("ppo", {"algorithm.clip_eps": 0.0}, "clip_eps must be positive"),
    ("ppo", {"algorithm.ent_coef": 0.0}, "ent_coef must be positive"),
    ("ppo", {"algorithm.update_epochs": 0}, "epochs must be at least 1"),
    ("ppo", {"algorithm.truth_weight": 1.5}, "truth_weight must be between 0 and 1"),
    ("td3-paper", {"algorithm.stop_obey_prob": float("nan")}, "stop_obey_prob"),
    ("td3-paper", {"algorithm.gumbel_temperature": 0.0}, "temperature must be positive"),
    ("td3-paper", {"algorithm.stop_consistency_coef": -1.0}, "stop_consistency_coef must be at least 0"),
    ("td3-paper", {"greedy_fraction": 0.0}, "no greedy episode"),
    ("vdn", {"greedy_fraction": 0.0}, "no greedy episode"),
    ("vdn", {"algorithm.epsilon": -0.5}, "epsilon must be between 0 and 1"),
    ("iql", {"algorithm.epsilon_final": 2.0}, "epsilon_final must be between 0 and 1"),
    ("iql", {"algorithm.optimistic_init": float("nan")}, "optimistic_init must be finite"),
    ("random", {"stopping": "learned"}, "a uniform policy never stops by itself: set stopping to threshold"),
    ("td3", {"network.encoder": "transformr"}, "unknown network.encoder 'transformr'"),
    ("vdn", {"algorithm.mixing": "product"}, "unknown algorithm.mixing 'product'"),
    ("td3", {"reward": "environment"}, "Coins has no payoff, so there is no environment reward"),
    ("ppo", {"reward": "environment"}, "Coins has no payoff, so there is no environment reward"),
]


@pytest.mark.parametrize(
    ("name", "settings", "told"), IMPOSSIBLE_TOGETHER, ids=[f"{a} {s}" for a, s, _ in IMPOSSIBLE_TOGETHER]
)
def test_what_an_algorithm_cannot_do_is_refused(name, settings, told):
    with pytest.raises(UserError, match=told) as refused:
        check(override(with_algorithm(Config(), name), settings), PROBLEM)
    assert "\n" not in str(refused.value)


def test_without_a_plan_its_worlds_need_not_split():
    check(override(Config(), {"plan.num_plans": 1, "plan.num_envs": 30, "plan.iterations": 0}), PROBLEM)


def test_exact_confidence_needs_an_exact_posterior():
    class Vague(Coins):
        """Nobody knows better."""

        @property
        def posterior(self):
            return "none"

    check(override(Config(), {"posterior": "exact"}), PROBLEM)
    with pytest.raises(UserError, match=r"this Vague has no exact posterior .*set posterior to network"):
        check(override(Config(), {"posterior": "exact"}), Vague())


SAME_PROGRAM = {
    "iterations": 7,
    "actor_lr": 0.5,
    "final_lr_fraction": 0.5,
    "dual.lr": 0.25,
    "dual.max": 0.5,
    "plan.lr": 0.5,
    "teacher.until": 0.5,
    "algorithm.ent_coef": 0.5,
    "algorithm.random_terminations": 0.5,
}
OTHER_PROGRAM = {
    "num_envs": 8,
    "delta": 0.2,
    "max_rounds": 5,
    "network.hidden_size": 8,
    "plan.iterations": 3,
    "dual.rule": "additive",
}


@pytest.mark.parametrize(("name", "value"), [*SAME_PROGRAM.items(), *OTHER_PROGRAM.items()])
def test_numbers_that_only_weigh_are_given_to_a_program_and_sizes_are_part_of_it(name, value):
    """So a change of the former compiles nothing anew. Settings survive being taken apart and put together."""
    changed = override(Config(), {name: value})
    leaves, program = jax.tree.flatten(changed)
    assert (program == jax.tree.structure(Config())) == (name in SAME_PROGRAM)
    assert jax.tree.unflatten(program, leaves) == changed != Config()


def test_a_problem_with_payoffs_has_an_environment_reward():
    for problem in (Bandit(arms=2, players=2, horizon=4), Centralized(Bandit(arms=2, players=2, horizon=4))):
        check(override(Config(), {"reward": "environment"}), problem)


def test_a_centralized_problem_without_payoffs_has_none_either():
    with pytest.raises(UserError, match="Coins has no payoff"):
        check(override(Config(), {"reward": "environment"}), Centralized(Coins(agents=2)))


@pytest.mark.parametrize(
    "settings", [{"delta": 1.5}, {"num_envs": 0}, {"seeds": (1, 1)}, {"batch_size": 99, "buffer_size": 9}]
)
def test_refusal_comes_before_the_first_program_is_built(monkeypatch, settings):
    def start(*_: object) -> None:
        raise AssertionError("training started")

    monkeypatch.setattr(train, "start", start)
    with pytest.raises(UserError):
        icmape.train(PROBLEM, progress=False, **settings)


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        ("detla", "did you mean delta"),
        ("worlds", "the setting 'worlds' is called 'num_envs' now"),
        ("algorithm.trace", "'algorithm.trace' is called 'algorithm.gae_lambda' now"),
        ("guide.share", "'guide.share' is called 'teacher.weight' now"),
        ("iteration", "did you mean iterations"),
        ("network.hiddn_size", "did you mean hidden_size"),
        ("algorithm.gae_lamda", "did you mean gae_lambda"),
        ("dual.marginn", "did you mean margin"),
    ],
)
def test_an_unknown_setting_names_the_nearest(name, suggested):
    with pytest.raises(UserError, match=suggested):
        override(Config(), {name: 1})


def test_unknown_presets_and_algorithms_name_the_nearest():
    with pytest.raises(UserError, match="bandit-quick"):
        preset("bandit-quik")
    with pytest.raises(UserError, match="td3-paper"):
        with_algorithm(Config(), "td3_paper")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("delta", "small"),
        ("delta", None),
        ("delta.x", 0.1),
        ("num_envs", 1.5),
        ("num_envs", True),
        ("network", 3),
        ("network.share_weights", 1),
        ("seeds", "215"),
        ("seeds", [1, "two"]),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(name, value):
    with pytest.raises(UserError, match="delta" if name == "delta.x" else name.split(".")[-1]):
        override(Config(), {name: value})


def test_dotted_and_nested_names_say_the_same():
    dotted = override(Config(), {"network.hidden_size": 8, "dual.init": 0.05, "delta": 0.2})
    nested = override(Config(), {"network": {"hidden_size": 8}, "dual": {"init": 0.05}, "delta": 0.2})
    assert dotted == nested
    assert (dotted.network.hidden_size, dotted.dual.init, dotted.delta) == (8, 0.05, 0.2)
    assert dotted.network.encoder == Config().network.encoder  # the rest stays


def test_numbers_and_lists_from_json_become_what_is_meant():
    config = override(Config(), {"delta": 0.2, "max_grad_norm": 2, "seeds": [1, 2], "minutes": 3})
    assert (config.max_grad_norm, config.seeds, config.minutes) == (2.0, (1, 2), 3.0)
    assert isinstance(config.max_grad_norm, float)
    assert override(Config(), {"seeds": 7}).seeds == (7,)
    assert override(config, {"minutes": None}).minutes is None


@pytest.mark.parametrize("name", algorithms())
def test_a_configuration_survives_json(name):
    config = override(with_algorithm(Config(), name), {"seeds": [3, 1], "minutes": 2.5, "network.hidden_size": 7})
    assert override(Config(), json.loads(json.dumps(to_dict(config)))) == config


def test_the_papers_recipe_is_set_as_noted():
    """One-step targets without bounds; every STOP obeyed; ζ added to by the pooled confidence, without a limit or a
    margin; the paper's networks; no plan, no exact Bayes; and none of the pulls that are ours.
    """
    config = with_algorithm(Config(), "td3-paper")
    own = config.algorithm
    assert isinstance(own, PaperTD3)
    assert (own.gae_lambda, own.clip_targets, own.stop_obey_prob) == (0.0, False, 1.0)
    assert (own.gumbel_temperature, own.stop_consistency_coef) == (1.0, 0.0)
    assert (own.actor_value, own.policy_delay) == ("q1", 2)
    assert dataclasses.astuple(config.dual) == ("additive", 5e-3, 1e6, 0.0, "pooled", 0.0)
    assert (config.network.encoder, config.network.inference, config.network.stop_bias) == ("paper", "paper", 0.0)
    assert (config.plan.iterations, config.posterior, config.stopping) == (0, "network", "learned")


@pytest.mark.parametrize("name", ["td3", "ppo", "guided"])
def test_soft_stops_need_no_greedy_episode(name):
    """What they measure is an average over who stops when."""
    config = override(
        with_algorithm(Config(), name), {"greedy_fraction": 0.0, "teacher.policy": "x", "teacher.weight": 1.0}
    )
    assert isinstance(config.algorithm, SoftStops)
    check(config, PROBLEM)


@pytest.mark.parametrize("name", algorithms())
def test_naming_an_algorithm_undoes_another(name):
    for other in algorithms():
        assert with_algorithm(with_algorithm(Config(), other), name) == with_algorithm(Config(), name)
