"""The command: what it refuses, lists, draws and tells."""

import re
from pathlib import Path
from types import SimpleNamespace

import jax
import pytest

from icmape import cli
from paper import training as module
from paper.collected import Results
from paper.pages import write_pages
from paper.queue import do_all
from paper.work import chains, part_of
from paper.work_plan import DONE, FAILED, NOT_RUN, Outcome, Plan
from tests.paper import tiny
from tests.paper.tiny import SEED, TINY


@pytest.fixture
def untrained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is to be trained."""

    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("trained")

    tiny.prepare(monkeypatch.setattr)
    for name in ("train_run", "resume_run"):
        monkeypatch.setattr(module, name, forbidden)


def test_nothing_is_trained_at_full_size_unless_asked(tmp_path: Path, untrained: None) -> None:
    plan = Plan(tmp_path)
    outcomes = do_all(chains([TINY], plan), plan)
    assert {one.state for one in outcomes} == {NOT_RUN}
    assert outcomes[0] == Outcome(
        outcomes[0].name, NOT_RUN, "training was not asked for (--train)", outcomes[0].seconds
    )
    page, *_ = write_pages(Results([TINY], plan), outcomes, tmp_path)
    text = page.read_text()
    assert "| tiny | accuracy | – | not run |" in text
    assert "not run: training was not asked for (--train)" in text
    assert "quick" not in text.replace("signal-quick", "")


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


def test_a_list_of_the_work_does_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path, untrained: None) -> None:
    tiny.save_teams(SimpleNamespace(config=SimpleNamespace(seeds=(SEED,))), tmp_path / "tiny/random")
    before = sorted(tmp_path.rglob("*"))
    assert cli.main([*tiny.words(tmp_path), "--list"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    of_team = "".join(f"{name}-{SEED}.json, " for name in ("analysis", "curve", "certificate"))
    assert f"tiny/icmape: missing {of_team}robustness-capacities.json" in printed
    assert f"tiny/td3: missing train, analysis-{SEED}.json" in printed
    assert "tiny/rule random: missing baseline-random.json, curve-random.json" in printed
    assert sorted(tmp_path.rglob("*")) == before


def test_the_device_is_left_to_the_processes_that_train(
    tmp_path: Path, untrained: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JAX would take most of its memory as soon as the memory of a run is estimated here, from its problem."""
    platforms: list[str] = []
    monkeypatch.setattr("paper.command.list_work", lambda *_: platforms.append(jax.config.jax_platforms) or 0)
    before = jax.config.jax_platforms
    jax.config.update("jax_platforms", None)
    try:
        cli.main([*tiny.words(tmp_path), "--list"])
    finally:
        jax.config.update("jax_platforms", before)
    assert platforms == ["cpu"]


def test_only_results_that_are_named_are_work(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, untrained: None
) -> None:
    assert cli.main([*tiny.words(tmp_path), "--list", "--only", "curve-", "certificate"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert f"tiny/icmape: missing certificate-{SEED}.json tiny/td3: there" in printed
    assert "tiny/rule random: missing curve-random.json" in printed


@pytest.mark.parametrize(("state", "code"), [(DONE, 0), (NOT_RUN, 0), (FAILED, 1)])
def test_a_share_draws_nothing_and_a_failure_is_told_by_the_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, code: int
) -> None:
    asked = []
    tiny.prepare(monkeypatch.setattr)
    monkeypatch.setattr("paper.command.do_all", lambda todo, *_: (asked.extend(todo), [Outcome("a", state, "so")])[1])
    assert cli.main([*tiny.words(tmp_path), "--part", "1/2"]) == code
    assert asked == part_of(chains([TINY], tiny.quick(tmp_path)), "1/2") != []
    assert list(tmp_path.iterdir()) == []
