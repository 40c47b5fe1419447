"""What is missing is trained: from its checkpoint if it is of just this run, and else from the start."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from icmape.learning.run_folder import read_config
from paper import findings, work
from paper import training as module
from paper.experiments import Setting, setting_named
from paper.training import plan_file, plan_to_find, train_method, training
from paper.work import Chain
from paper.work_plan import DONE, FAILED, NOT_RUN, THERE, Plan, own_seed, team_files, trained_share
from tests.paper import tiny
from tests.paper.tiny import SEED, TINY
from tests.plot.analyses import analysis

TWO_SEEDS = replace(TINY, quick=replace(TINY.quick, seeds=(SEED, 216)))


def stand_in(calls: list[str], name: str, interrupted: bool) -> Callable[..., SimpleNamespace]:
    """What leaves a checkpoint in the place of training."""

    def call(problem: Any, config: Any, folder: Path, **options: Any) -> SimpleNamespace:
        calls.append(name)
        tiny.train_run(problem, config, folder)
        (folder / "checkpoint.eqx").touch()
        return SimpleNamespace(interrupted=interrupted, config=config, faults=dict)

    return call


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was called in the place of training: the first time it is interrupted."""
    calls: list[str] = []
    tiny.prepare(monkeypatch.setattr)
    monkeypatch.setattr(module, "train_run", stand_in(calls, "train", interrupted=True))
    monkeypatch.setattr(module, "resume_run", stand_in(calls, "resume", interrupted=False))
    return calls


def interrupted(of: Setting, plan: Plan) -> None:
    with pytest.raises(KeyboardInterrupt):
        train_method(of, of.main, plan)


def test_an_interruption_is_no_result_and_training_goes_on_after_it(tmp_path: Path, trained: list[str]) -> None:
    plan = tiny.quick(tmp_path)
    with pytest.raises(KeyboardInterrupt):  # no failure of a job: it ends all of them
        work.work(Chain("tiny", role="icmape"), plan)
    assert team_files(TINY, TINY.main, plan) == {}
    assert train_method(TINY, TINY.main, plan) == (DONE, "")
    assert trained == ["train", "resume"]
    assert list(team_files(TINY, TINY.main, plan)) == [SEED]
    assert not (tmp_path / "tiny/random/checkpoint.eqx").exists()
    assert train_method(TINY, TINY.main, plan) == (THERE, "")
    assert len(trained) == 2


def test_other_settings_in_the_folder_are_begun_anew(tmp_path: Path, trained: list[str]) -> None:
    plan = tiny.quick(tmp_path)
    interrupted(TINY, plan)
    other = replace(TINY, methods=(replace(TINY.main, settings={"delta": 0.2}),))
    interrupted(other, plan)
    assert trained == ["train", "train"]
    assert read_config(tmp_path / "tiny/random/config.json")[2].delta == 0.2


def test_another_problem_in_the_folder_is_begun_anew(tmp_path: Path, trained: list[str]) -> None:
    """The same kind with another horizon; then the same with its agents moved as one."""
    plan = tiny.quick(tmp_path)
    interrupted(TINY, plan)
    longer = replace(TINY, quick=replace(TINY.quick, arguments={**TINY.quick.arguments, "horizon": 7}))
    interrupted(longer, plan)
    assert read_config(tmp_path / "tiny/random/config.json")[1]["horizon"] == 7
    interrupted(replace(longer, methods=(replace(TINY.main, centralized=True),)), plan)
    assert trained == ["train"] * 3
    train_method(longer, replace(TINY.main, centralized=True), plan)
    assert trained[3:] == ["resume"]


def test_a_run_that_died_before_its_first_checkpoint_is_begun_anew(tmp_path: Path, trained: list[str]) -> None:
    interrupted(TINY, tiny.quick(tmp_path))
    (tmp_path / "tiny/random/checkpoint.eqx").unlink()
    interrupted(TINY, tiny.quick(tmp_path))
    assert trained == ["train", "train"]


def test_a_plan_is_found_once_for_all_methods_of_a_setting_that_have_it(tmp_path: Path) -> None:
    """A centralized team has another plan, and policies that do not learn have none; so have runs with a checkpoint."""
    plan = Plan(tmp_path, quick=True)
    paths = {role: plan_to_find("a3p5", role, plan) for role in ("td3", "vdn", "central-td3", "central-dqn", "random")}
    assert paths["td3"] == paths["vdn"] != paths["central-td3"] == paths["central-dqn"]
    assert paths["td3"] != plan_to_find("a5p3", "td3", plan)
    assert paths["random"] is plan_to_find("a3p5", "td3-paper", plan) is None
    assert plan_to_find("nitrate", "td3", Plan(tmp_path)) is None, "its worlds cannot be drawn"


def test_other_measurements_have_another_plan(tmp_path: Path) -> None:
    """Known by the content of the files: parameters that are computed from them differ in their last bits by device."""
    setting, names = setting_named("nitrate"), set()
    problem, config = training(setting, setting.method("td3"), Plan(tmp_path, quick=True))
    for place, content in (("here", "a"), ("there", "a"), ("other", "b")):
        (tmp_path / place).mkdir()
        (tmp_path / place / "file.csv").write_text(content)
        plan = Plan(tmp_path, data=(str(tmp_path / place),))
        names.add(plan_file(setting, plan, problem, config).name)
    assert len(names) == 2


def test_a_plan_of_stored_results_is_taken_except_with_fresh(tmp_path: Path) -> None:
    stored, out, setting = tmp_path / "stored", tmp_path / "out", setting_named("a3p5")
    method = setting.method("td3")
    problem, config = training(setting, method, Plan(out, stored))
    name = plan_file(setting, Plan(out), problem, config).relative_to(out)
    assert plan_file(setting, Plan(out, stored), problem, config) == out / name
    (stored / name).parent.mkdir(parents=True)
    (stored / name).touch()
    assert plan_file(setting, Plan(out, stored), problem, config) == stored / name
    assert plan_file(setting, Plan(out, None, fresh=True), problem, config) == out / name


def test_a_seed_that_went_non_finite_has_no_team_and_the_others_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(problem: Any, config: Any, folder: Path, **options: Any) -> SimpleNamespace:
        done = tiny.train_run(problem, config, folder)
        return SimpleNamespace(**{**vars(done), "faults": lambda: {216: "inference loss"}})

    tiny.prepare(monkeypatch.setattr)
    monkeypatch.setattr(module, "train_run", run)
    plan = tiny.quick(tmp_path)
    assert train_method(TWO_SEEDS, TINY.main, plan) == (FAILED, "seed 216: inference loss not finite")
    assert list(team_files(TWO_SEEDS, TINY.main, plan)) == [SEED]


def test_analyses_stand_for_teams_that_are_not_at_hand_if_they_answer_what_is_asked(tmp_path: Path) -> None:
    """All of them: an analysis in another format or of other worlds is none."""
    plan = tiny.quick(tmp_path, dry=True)

    def state(**changes: Any) -> str:
        for seed in (SEED, 216):
            asked = findings.analysis_question(TWO_SEEDS, TINY.main, plan, seed)
            name = findings.analysis_name("tiny/random", seed)
            plan.store.write(name, {**asked, "team": "abc", **(changes if seed == 216 else {})}, analysis().to_dict())
        return train_method(TWO_SEEDS, TINY.main, plan)[0]

    assert train_method(TWO_SEEDS, TINY.main, plan)[0] == NOT_RUN
    assert state() == THERE
    assert state(format=findings.FORMAT - 1) == NOT_RUN
    assert state(episodes=TINY.quick.episodes + 1) == NOT_RUN
    assert state(seed=1) == NOT_RUN


def test_settings_of_a_method_come_last(tmp_path: Path) -> None:
    """The preset's, then the scale's for all, for its algorithm, and the method's own; seeds are the scale's."""
    scale = replace(
        TINY.quick, settings={"": {"iterations": 5, "delta": 0.3}, "td3": {"iterations": 6, "batch_size": 9}}
    )
    of = replace(TINY, quick=scale)
    method = replace(TINY.methods[1], settings={"batch_size": 7}, centralized=True)
    problem, config = training(of, method, tiny.quick(tmp_path))
    assert (config.iterations, config.delta, config.batch_size, config.seeds) == (6, 0.3, 7, (SEED,))
    assert (problem.agents, problem.problem.agents) == (1, 2)


def test_data_that_is_not_at_hand_is_named(tmp_path: Path) -> None:
    of = setting_named("nitrate")
    plan = Plan(tmp_path, train=True)
    assert train_method(of, of.methods[1], plan) == (NOT_RUN, "its measurements are not at hand (--data)")


def test_a_run_that_was_cut_is_done_again_only_where_training_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stand-in's metrics end at iteration 3 of many; then they are made to reach the end."""
    tiny.prepare(monkeypatch.setattr)
    rival, plan = TINY.methods[1], tiny.quick(tmp_path)
    asking = tiny.quick(tmp_path, train=True)
    assert train_method(TINY, rival, plan) == (DONE, "")
    assert 0 < trained_share(TINY, rival, plan) < 1
    assert train_method(TINY, rival, plan) == (THERE, "")
    assert train_method(TINY, rival, asking) == (DONE, "")
    path = tmp_path / "tiny" / "td3" / "metrics.jsonl"
    last = training(TINY, rival, plan)[1].iterations
    path.write_text(path.read_text() + f'{{"seed": {SEED}, "iteration": {last}}}\n')
    assert trained_share(TINY, rival, plan) == 1
    assert train_method(TINY, rival, asking) == (THERE, "")


def test_the_team_that_stands_for_all_is_the_one_that_ships(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where none ships, the first seed that has one."""
    tiny.prepare(monkeypatch.setattr)
    assert own_seed(setting_named("a3p5"), Plan(tmp_path)) == 321
    plan = tiny.quick(tmp_path)
    assert own_seed(TINY, plan) is None
    train_method(TINY, TINY.main, plan)
    assert own_seed(TINY, plan) == SEED
