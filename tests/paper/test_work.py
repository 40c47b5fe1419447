"""Shares of the work, who may do them, and what becomes of a job."""

from dataclasses import replace
from pathlib import Path

import pytest

from icmape import UserError
from paper import experiments, work
from paper.experiments import SETTINGS, STOPPED
from paper.findings import read_analysis
from paper.work import Chain, chains, part_of
from paper.work_plan import DONE, FAILED, NOT_RUN, Plan
from tests.paper import tiny

ALL = list(SETTINGS.values())
NOWHERE = Plan(Path("nowhere"))


@pytest.mark.parametrize("count", [1, 2, 3, 7, 100])
def test_shares_are_disjoint_and_complete(count: int) -> None:
    todo = chains(ALL, NOWHERE)
    assert len(set(todo)) == len(todo) > 20
    shares = [part_of(todo, f"{number}/{count}") for number in range(1, count + 1)]
    assert sorted(chain for share in shares for chain in share) == sorted(todo)


def test_shares_are_of_about_the_same_size() -> None:
    """Fewer than twice as many chains as if they were all the same, for a few machines."""
    todo = chains(ALL, NOWHERE)
    for count in (2, 3, 4):
        sizes = [len(part_of(todo, f"{number}/{count}")) for number in range(1, count + 1)]
        assert max(sizes) < 2 * len(todo) / count
        assert min(sizes) > 0


@pytest.mark.parametrize("of", ALL, ids=SETTINGS)
def test_a_chain_is_in_the_same_share_whatever_settings_are_listed(of) -> None:
    for number in range(1, 4):
        alone, among = (part_of(chains(some, NOWHERE), f"{number}/3") for some in ([of], ALL))
        assert set(alone) == {chain for chain in among if chain.setting == of.name}


@pytest.mark.parametrize("part", ["0/3", "4/3", "3", "a/b", "/", "1/0", "-1/3"])
def test_a_share_that_is_none_is_refused(part: str) -> None:
    with pytest.raises(UserError, match=r"--part takes I/N"):
        part_of([Chain("a3p5", role="td3")], part)


def test_our_own_methods_come_first() -> None:
    todo = chains(list(SETTINGS.values()), Plan(Path("nowhere")))
    assert [chain.role for chain in todo[: len(SETTINGS)]] == ["icmape"] * len(SETTINGS)
    assert todo[-1].baseline


def test_a_chain_that_is_held_is_not_done_and_others_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A method and a baseline of one name are two chains."""
    calls: list[str] = []
    tiny.prepare(monkeypatch.setattr)
    monkeypatch.setattr(work, "train_method", lambda of, method, *_: (calls.append(method.role), (DONE, ""))[1])
    monkeypatch.setattr(work, "make_limit", lambda of, name, plan: (calls.append(name), (DONE, ""))[1])
    monkeypatch.setattr(work, "make_rule_curve", lambda of, name, plan: (DONE, ""))
    plan, held = tiny.quick(tmp_path), Chain("tiny", role="td3")
    with work._alone(held, plan) as free:
        assert free
        outcomes = work.work(held, plan)
        assert {(one.state, one.why) for one in outcomes} == {(FAILED, "another process is at work on it")}
        assert [one.name for one in outcomes] == ["tiny/td3/train", f"tiny/td3/analysis-{tiny.SEED}.json"]
        assert calls == []
        with work._alone(Chain("tiny", baseline="td3"), plan) as another:
            assert another
        assert work.work(Chain("tiny", baseline="random"), plan)[0].state == DONE
        assert work.work(Chain("tiny", role="icmape"), plan)[0].state == DONE
        elsewhere = tiny.quick(tmp_path / "elsewhere")
        assert work.work(held, elsewhere)[0].state == DONE
    assert work.work(held, plan)[0].state == DONE
    assert calls == ["random", "icmape", "td3", "td3"]


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (UserError("no accelerator"), "no accelerator"),
        (RuntimeError("RESOURCE_EXHAUSTED: out of memory"), "RESOURCE_EXHAUSTED: out of memory"),
        (KeyError("tau"), "'tau'"),
        (MemoryError(), "MemoryError"),
    ],
)
def test_a_job_that_fails_is_told_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, why: str
) -> None:
    def train(*_: object) -> tuple[str, str]:
        raise error

    tiny.prepare(monkeypatch.setattr)
    monkeypatch.setattr(work, "train_method", train)
    told: list[str] = []
    outcomes = work.work(Chain("tiny", role="icmape"), tiny.quick(tmp_path), told.append)
    assert [(one.state, one.why) for one in outcomes[:2]] == [(FAILED, why), (NOT_RUN, "there is no team")]
    assert told[0].startswith(f"tiny/random/train: failed ({why})")
    assert len(outcomes) == 4


def test_our_teams_are_also_played_with_another_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is trained for it: the teams are ours, and it is done with them.

    Ours ask the only arm for three rounds; a posterior of 0.9 is reached a round earlier or later.
    """
    tiny.prepare(monkeypatch.setattr)
    of = replace(tiny.TINY, methods=(*tiny.TINY.methods, STOPPED))
    monkeypatch.setattr(experiments, "SETTINGS", {"tiny": of})
    plan = tiny.quick(tmp_path)
    assert STOPPED.role not in {chain.role for chain in chains([of], plan)}
    outcomes = {one.name: one.state for one in work.work(Chain("tiny", role="icmape"), plan)}
    assert outcomes[f"tiny/our-threshold/analysis-{tiny.SEED}.json"] == DONE
    own, stopped = (read_analysis(of, method, plan, tiny.SEED) for method in (of.main, STOPPED))
    assert own.evaluation.tau == 4
    assert len([count for count in own.active if count]) == 4
    assert stopped.evaluation.tau_error > 0
    assert stopped.evaluation.confidence >= 0.9
    assert not list(tmp_path.glob("tiny/our-threshold/team-*"))
