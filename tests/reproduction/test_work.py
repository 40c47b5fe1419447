"""Shares of the work, who may do them, and what becomes of a job."""

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from icmape import UserError, cli
from icmape.learning.run import read_config
from icmape.reproduction import training as module
from icmape.reproduction import work
from icmape.reproduction.experiments import SETTINGS, setting
from icmape.reproduction.found import Found
from icmape.reproduction.pages import write_pages
from icmape.reproduction.plan import DONE, FAILED, NOT_RUN, THERE, Outcome, Plan, team_files
from icmape.reproduction.store import ANY, Store, answers
from icmape.reproduction.training import train_method, training
from icmape.reproduction.work import Chain, alone, chains, do_all, part_of
from tests.reproduction import tiny
from tests.reproduction.tiny import SEED, TINY


def test_shares_are_disjoint_and_complete() -> None:
    todo = chains(list(SETTINGS.values()), Plan(Path("nowhere")))
    assert len(set(todo)) == len(todo) > 20
    for count in (1, 2, 3, 7, len(todo) + 1):
        shares = [part_of(todo, f"{number}/{count}") for number in range(1, count + 1)]
        assert sorted(chain for share in shares for chain in share) == sorted(todo)
        assert max(map(len, shares)) - min(map(len, shares)) <= 1


@pytest.mark.parametrize("part", ["0/3", "4/3", "3", "a/b", "/", "1/0", "-1/3"])
def test_a_share_that_is_none_is_refused(part: str) -> None:
    with pytest.raises(UserError, match=r"--part takes I/N"):
        part_of([Chain("a3p5", role="td3")], part)


def test_our_own_methods_come_first() -> None:
    todo = chains(list(SETTINGS.values()), Plan(Path("nowhere")))
    assert [chain.role for chain in todo[: len(SETTINGS)]] == ["icmape"] * len(SETTINGS)
    assert todo[-1].reference


def test_two_processes_do_not_do_the_same_share(tmp_path: Path) -> None:
    plan = Plan(tmp_path)
    with alone(plan, "1/2"):
        with pytest.raises(UserError, match=r"another process is at work in .*share 1-of-2"), alone(plan, "1/2"):
            pass
        with alone(plan, "2/2"):
            pass
        with pytest.raises(UserError, match=r"share 1-of-2"), alone(plan, "1/1"):  # all of it is also that share
            pass
    with alone(plan, "1/2"):
        pass


def test_a_result_is_taken_if_it_answers_just_the_question(tmp_path: Path) -> None:
    store = Store(tmp_path / "new", tmp_path / "old")
    asked = {"team": "abc", "episodes": 100, "axes": {"a": [1.0, 2.0]}}
    assert store.read("x/r.json", asked) is None
    Store(tmp_path / "old").write("x/r.json", asked, 1)
    assert store.read("x/r.json", asked) == 1
    for other in ({"team": "abd"}, {"episodes": 200}, {"axes": {"a": [1.0]}}, {"more": 1}):
        assert store.read("x/r.json", {**asked, **other}) is None
    assert store.read("x/r.json", {"team": "abc", "episodes": 100}) is None
    assert store.read("x/r.json", {**asked, "team": ANY}) == 1, "there is no team that could contradict it"
    assert not answers({**asked, "team": ANY}, asked), "a result of who knows what team"


def test_new_results_go_before_old_ones_and_only_into_the_new_folder(tmp_path: Path) -> None:
    old, store = Store(tmp_path / "old"), Store(tmp_path / "new", tmp_path / "old")
    old.write("r.json", {"n": 1}, "old")
    store.write("r.json", {"n": 1}, "new")
    store.write("s.json", {"n": 1}, "new")
    assert (store.read("r.json", {"n": 1}), old.read("r.json", {"n": 1})) == ("new", "old")
    assert store.find("r.json") == tmp_path / "new/r.json"
    assert [path.relative_to(tmp_path).as_posix() for path in store.names("*.json")] == ["new/r.json", "new/s.json"]
    assert sorted(path.name for path in (tmp_path / "old").iterdir()) == ["r.json"]


def test_a_broken_result_does_not_hide_an_old_one(tmp_path: Path) -> None:
    Store(tmp_path / "old").write("r.json", {"n": 1}, "old")
    store = Store(tmp_path / "new", tmp_path / "old")
    store.write("r.json", {"n": 1}, "new")
    (tmp_path / "new/r.json").write_text('{"asked": {"n"')
    assert store.read("r.json", {"n": 1}) == "old"


def test_a_job_that_fails_is_told_and_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def train(*_: object) -> tuple[str, str]:
        raise UserError("no accelerator")

    tiny.prepare(monkeypatch.setattr)
    monkeypatch.setattr(work, "train_method", train)
    told: list[str] = []
    outcomes = work.work(Chain("tiny", role="icmape"), tiny.quick(tmp_path), told.append)
    assert [(one.state, one.why) for one in outcomes[:2]] == [(FAILED, "no accelerator"), (NOT_RUN, "there is no team")]
    assert told[0].startswith("tiny/random/train: failed (no accelerator)")
    assert len(outcomes) == 4


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was called in the place of training."""
    calls: list[str] = []
    tiny.prepare(monkeypatch.setattr)

    def note(name: str, finished: bool = True):
        def call(problem, config, folder, **options):
            calls.append(name)
            done = tiny.train_run(problem, config, folder)
            return done if finished else SimpleNamespace(finished=False, iteration=3, config=config, faults=dict)

        return call

    monkeypatch.setattr(module, "train_run", note("train", finished=False))
    monkeypatch.setattr(module, "resume_run", note("resume"))
    return calls


def test_training_that_was_interrupted_goes_on(tmp_path: Path, trained: list[str]) -> None:
    plan = tiny.quick(tmp_path)
    state, why = train_method(TINY, TINY.main, plan)
    assert (state, why[:15]) == (FAILED, "stopped after 3")
    assert team_files(TINY, TINY.main, plan) == {}
    assert train_method(TINY, TINY.main, plan) == (DONE, "")
    assert trained == ["train", "resume"]
    assert list(team_files(TINY, TINY.main, plan)) == [SEED]
    assert train_method(TINY, TINY.main, plan) == (THERE, "")
    assert len(trained) == 2


def test_training_of_something_else_in_the_folder_is_begun_anew(tmp_path: Path, trained: list[str]) -> None:
    plan = tiny.quick(tmp_path)
    train_method(TINY, TINY.main, plan)
    other = replace(TINY.main, settings={"delta": 0.2})
    train_method(TINY, other, plan)
    assert trained == ["train", "train"]
    assert read_config(tmp_path / "tiny/random/config.json")[2].delta == 0.2


def test_settings_of_a_method_come_last(tmp_path: Path) -> None:
    """The preset's, then the scale's for all, for its algorithm, and the method's own; seeds are the scale's."""
    scale = replace(TINY.quick, settings={"": {"iterations": 5, "delta": 0.3}, "td3": {"iterations": 6, "batch": 9}})
    of = replace(TINY, quick=scale)
    method = replace(TINY.methods[1], settings={"batch": 7}, centralized=True)
    problem, config = training(of, method, tiny.quick(tmp_path))
    assert (config.iterations, config.delta, config.batch, config.seeds) == (6, 0.3, 7, (SEED,))
    assert (problem.agents, problem.problem.agents) == (1, 2)


def test_nothing_is_trained_at_full_size_unless_asked(tmp_path: Path, trained: list[str]) -> None:
    plan = Plan(tmp_path)
    outcomes = do_all(chains([TINY], plan), plan)
    assert {one.state for one in outcomes} == {NOT_RUN}
    assert outcomes[0] == Outcome(
        outcomes[0].name, NOT_RUN, "training was not asked for (--train)", outcomes[0].seconds
    )
    assert trained == []
    page, *_ = write_pages(Found([TINY], plan, outcomes), outcomes, tmp_path)
    text = page.read_text()
    assert "| tiny | accuracy | – | not run |" in text
    assert "not run: training was not asked for (--train)" in text
    assert "quick" not in text.replace("signal-quick", "")


def test_data_that_is_not_at_hand_is_named(tmp_path: Path) -> None:
    of = setting("nitrate")
    plan = Plan(tmp_path, train=True)
    assert train_method(of, of.methods[1], plan) == (NOT_RUN, "its measurements are not at hand (--data)")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a3p6"], "unknown setting 'a3p6'.*a3p5"),
        (["--workers", "0"], "--workers must be at least 1"),
        (["--episodes", "10"], "--episodes must be at least 100"),
        (["--part", "3/2"], "--part takes I/N"),
    ],
)
def test_what_cannot_be_reproduced_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, words: list[str], said: str
) -> None:
    assert cli.main(["reproduce", *words, "--out", str(tmp_path / "out")]) == 2
    assert re.search(said, " ".join(capsys.readouterr().err.split()))
    assert not (tmp_path / "out").exists()


def test_a_list_of_the_work_does_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, trained: list[str]
) -> None:
    tiny.save_teams(SimpleNamespace(config=SimpleNamespace(seeds=(SEED,))), tmp_path / "tiny/random")
    before = sorted(tmp_path.rglob("*"))
    assert cli.main([*tiny.words(tmp_path), "--list"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert f"tiny/icmape: missing analysis-{SEED}.json, certificate-{SEED}.json, robustness-capacities.json" in printed
    assert f"tiny/td3: missing train, analysis-{SEED}.json" in printed
    assert "tiny/random: missing reference-random.json" in printed
    assert sorted(tmp_path.rglob("*")) == before
    assert trained == []


@pytest.mark.parametrize(("state", "code"), [(DONE, 0), (NOT_RUN, 0), (FAILED, 1)])
def test_a_share_draws_nothing_and_a_failure_is_told_by_the_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, code: int
) -> None:
    asked = []
    tiny.prepare(monkeypatch.setattr)
    monkeypatch.setattr(
        "icmape.cli.reproduce.do_all", lambda todo, *_: (asked.extend(todo), [Outcome("a", state, "so")])[1]
    )
    assert cli.main([*tiny.words(tmp_path), "--part", "2/2"]) == code
    assert asked == [Chain("tiny", role="td3")]
    assert [path.name for path in tmp_path.iterdir()] == [".working-2-of-2.lock"]


def test_several_processes_share_the_work(tmp_path: Path) -> None:
    """Two chains of a setting that cannot be played here, each in a process of its own: both are told."""
    plan, told = Plan(tmp_path), []
    outcomes = do_all([Chain("nitrate", role="td3"), Chain("nitrate", role="vdn")], plan, 2, told.append)
    assert {one.name.split("/")[1] for one in outcomes} == {"td3", "vdn"}
    assert {one.state for one in outcomes} == {NOT_RUN}
