"""What is declared can be done: names exist, arguments fit, and settings are accepted before anything compiles."""

import inspect
from dataclasses import replace
from pathlib import Path

import pytest

from icmape import UserError
from icmape.baselines.registry import baseline_names, baselines_for
from icmape.learning.algorithms import Frozen
from icmape.learning.check_config import check
from icmape.learning.config import algorithms
from icmape.learning.presets import preset, presets
from icmape.problem import arguments
from icmape.settings import override
from paper import printed as paper
from paper.estimates import plan_worlds, training_worlds
from paper.experiments import ABLATION, MAIN, SETTINGS, Setting, setting_named
from paper.training import settings_of, training
from paper.work import chains
from paper.work_plan import Plan

BOTH = [
    pytest.param(of, quick, id=f"{name}-{'quick' if quick else 'full'}")
    for name, of in SETTINGS.items()
    for quick in (True, False)
]


@pytest.mark.parametrize("of", SETTINGS.values(), ids=SETTINGS)
def test_methods_are_known_and_have_a_role_and_a_folder_of_their_own(of: Setting) -> None:
    assert {method.algorithm for method in of.methods if method.level is None} <= set(algorithms())
    assert len({method.role for method in of.methods}) == len(of.methods)
    assert len({method.folder for method in of.methods}) == len(of.methods)
    assert len({method.label for method in of.methods}) == len(of.methods)
    assert of.main.role == MAIN
    assert setting_named(of.name) is of


def test_presets_that_share_a_name_have_folders_of_their_own() -> None:
    """A full run's folder is its preset's, a quick one's its setting's."""
    assert len({of.full.preset for of in SETTINGS.values()}) == len(SETTINGS)
    assert {of.full.preset for of in SETTINGS.values()} | {of.quick.preset for of in SETTINGS.values()} <= set(
        presets()
    )


@pytest.mark.parametrize(("of", "quick"), BOTH)
def test_baselines_fit_and_limits_are_known_names(of: Setting, quick: bool) -> None:
    scale = of.scale(quick)
    assert set(scale.baselines) | {of.central, of.schedule, of.rule} <= set(baseline_names())
    if not of.needs_data or quick:
        fitting = baselines_for(scale.problem())
        assert set(scale.baselines) | {of.central, of.schedule, of.rule} <= set(fitting)


@pytest.mark.parametrize(("of", "quick"), BOTH)
def test_sweeps_and_variants_change_arguments_that_the_problem_has(of: Setting, quick: bool) -> None:
    scale = of.scale(quick)
    known = set(inspect.signature(preset(scale.preset).problem).parameters)
    assert set(scale.arguments) <= known
    assert {name for sweep in scale.sweeps for name in sweep.axes} <= known
    assert {name for changed in of.variants.values() for name in changed} <= known
    if of.needs_data and not quick:
        return
    for sweep in scale.sweeps:  # the ends of every sweep can be built
        for changes in (next(sweep.points()), list(sweep.points())[-1]):
            built = arguments(scale.problem(**changes))
            assert {name: built[name] for name in changes} == changes


@pytest.mark.parametrize(("of", "quick"), BOTH)
def test_every_methods_settings_are_accepted(of: Setting, quick: bool, tmp_path) -> None:
    if of.needs_data and not quick:
        pytest.skip("its worlds come from measurements")
    for method in (*of.methods, *of.trials):
        problem, config = training(of, method, Plan(tmp_path, quick=quick))
        check(config, problem)
        assert config.seeds == of.scale(quick).seeds
        assert config == override(config, dict(method.settings))


@pytest.mark.parametrize(("of", "quick"), BOTH)
def test_policies_that_do_not_learn_have_no_plan(of: Setting, quick: bool) -> None:
    """It would take longer than their training."""
    plan = Plan(Path("nowhere"), quick=quick)
    configs = [settings_of(of, method, plan) for method in of.methods if method.level is None]
    frozen = [config for config in configs if isinstance(config.algorithm, Frozen)]
    assert frozen
    assert not any(config.plan.iterations for config in frozen)


def test_the_ablation_varies_what_the_paper_varies() -> None:
    assert set(ABLATION) == set(paper.ABLATION) - {MAIN}
    of = SETTINGS["a3p5"]
    changed = [of.method(role).settings for role in ABLATION]
    assert changed == [{"reward": "environment"}, {"stopping": "threshold"}, {"cost": "none"}]


def test_the_papers_numbers_are_for_settings_and_sweeps_that_exist() -> None:
    assert set(paper.FINAL) | set(paper.ACTIVE) | set(paper.STOPPERS) | set(paper.COST) <= set(SETTINGS)
    for name, sweep in paper.ROBUSTNESS:
        assert sweep in {one.name for one in SETTINGS[name].full.sweeps}


def test_shares_of_who_stops_add_up_to_one() -> None:
    for shares in paper.STOPPERS.values():
        assert sum(shares.values()) == pytest.approx(1.0, abs=0.002), "rounded to three digits"


def test_the_papers_table_of_actions_agrees_with_its_active_episodes_but_for_round_14() -> None:
    """No more episodes go on with one action than are active in the next round. In round 14 what is printed are those
    that stop: 3,872 of 4,236.
    """
    active = [row[2] for row in paper.JOINT]
    assert tuple(active) == paper.ACTIVE["a3p5"]
    pairs = zip(paper.JOINT[:-1], active[1:], strict=True)
    assert [index for index, ((_, common, _), going) in enumerate(pairs) if common > going] == [14]
    assert paper.JOINT[14][1] == active[14] - active[15]


@pytest.mark.parametrize("of", SETTINGS.values(), ids=SETTINGS)
def test_every_method_simulates_as_many_worlds_and_has_networks_as_wide(of: Setting) -> None:
    """Those of the plan and of all members included. Those with fewer say why."""
    plan = Plan(Path("nowhere"))
    methods = [method for method in of.methods if method.level is None]
    configs = {method.role: settings_of(of, method, plan) for method in methods}
    fewer = {method.role for method in methods if method.fewer_worlds}
    totals = {role: training_worlds(config) + plan_worlds(config) for role, config in configs.items()}
    assert {totals[role] for role in set(configs) - fewer} == {of.full.worlds}
    assert all(totals[role] < of.full.worlds for role in fewer)
    assert fewer <= {"thompson", "thompson-paper"}
    assert {config.network.hidden_size for config in configs.values()} == {128}
    assert {config.validation_episodes for role, config in configs.items() if role not in fewer} == {10_240}
    assert len({config.max_rounds for config in configs.values() if not isinstance(config.algorithm, Frozen)}) == 1
    learning = {role: config for role, config in configs.items() if role != "td3-paper"}
    finetuned = {c.finetune_fraction for c in learning.values() if not isinstance(c.algorithm, Frozen)}
    assert finetuned <= {0.1, 0.15}


def test_trials_are_known_by_name_and_are_no_rows_of_the_page() -> None:
    for of in SETTINGS.values():
        assert not {trial.role for trial in of.trials} & {method.role for method in of.methods}
        for trial in of.trials:
            assert of.method(trial.role) is trial
            assert settings_of(of, trial, Plan(Path("nowhere"))) != settings_of(
                of, replace(trial, settings={}), Plan(Path("nowhere"))
            )
    todo = chains([SETTINGS["a3p5"]], Plan(Path("nowhere")), ["ppo-no-plan", "td3"])
    assert [(chain.role, chain.baseline) for chain in todo] == [("td3", ""), ("ppo-no-plan", "")]
    assert not {"ppo-no-plan"} & {chain.role for chain in chains([SETTINGS["a3p5"]], Plan(Path("nowhere")))}
    with pytest.raises(UserError, match=r"--methods nobody: .*ppo-no-plan"):
        chains([SETTINGS["a3p5"]], Plan(Path("nowhere")), ["nobody"])


def test_a_method_is_named_for_all_settings_or_for_one() -> None:
    both = [SETTINGS["a3p5"], SETTINGS["a5p3"]]
    todo = chains(both, Plan(Path("nowhere")), ["td3", "a5p3/vdn"])
    assert {str(chain) for chain in todo} == {"a3p5/td3", "a5p3/td3", "a5p3/vdn"}
    with pytest.raises(UserError, match="--methods a3p5/sweep"):
        chains(both, Plan(Path("nowhere")), ["a3p5/sweep"])


def test_our_a5p3_teams_aim_higher() -> None:
    """So that each seed is certified."""
    margins = {
        name: settings_of(SETTINGS[name], SETTINGS[name].main, Plan(Path("nowhere"))).dual.margin for name in SETTINGS
    }
    assert margins["a5p3"] == 0.015
    assert {margin for name, margin in margins.items() if name != "a5p3"} == {0.01}
