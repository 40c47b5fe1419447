"""A sweep is every combination of arguments, and each of its points an evaluation under another prior."""

from pathlib import Path

import pytest

from icmape import UserError
from icmape.evaluation import robustness as module
from icmape.evaluation.metrics import evaluate
from icmape.evaluation.robustness import Sweep, SweepPoint, robustness, sweeps_of
from icmape.play.team_files import load
from icmape.problem import arguments
from icmape.zoo.bandit import Bandit
from icmape.zoo.bandit.bandit_sweeps import CAPACITIES, MEANS
from icmape.zoo.signal import Signal
from icmape.zoo.signal.signal_sweeps import DISTANCE
from tests.support import lively_team

EPISODES = 200
PAIR = Sweep("pair", {"mean_alpha": (0.5, 5.0), "mean_beta": (1.0, 3.0, 7.0)})
SOME = Sweep("some", {"capacity_concentration": (0.1, 10.0)})


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("teams") / "lively.safetensors"
    lively_team().save(path)
    return str(path)


@pytest.fixture(scope="module")
def found(file: str) -> list[SweepPoint]:
    return list(robustness(file, SOME, episodes=EPISODES, seed=1))


def test_points_are_all_combinations_and_the_last_argument_runs_fastest() -> None:
    points = list(PAIR.points())
    assert points[:4] == [
        {"mean_alpha": 0.5, "mean_beta": 1.0},
        {"mean_alpha": 0.5, "mean_beta": 3.0},
        {"mean_alpha": 0.5, "mean_beta": 7.0},
        {"mean_alpha": 5.0, "mean_beta": 1.0},
    ]
    assert len(points) == PAIR.size == 6


def test_a_thinned_sweep_keeps_its_ends() -> None:
    assert list(DISTANCE.thinned(3).axes["exact_distance"]) == [10, 29, 48]
    assert list(CAPACITIES.thinned(5).axes["capacity_concentration"]) == [0.1, 0.5, 1.0, 5.0, 10.0]
    assert MEANS.thinned(3).size == 9


def test_the_papers_sweeps_change_arguments_of_their_problems() -> None:
    for kind in (Bandit, Signal):
        sweeps = sweeps_of(kind())
        for sweep in sweeps:
            assert set(sweep.axes) <= set(arguments(kind())), sweep.name


def test_a_point_is_the_evaluation_on_the_changed_problem(file: str, found: list[SweepPoint]) -> None:
    assert [point.changes for point in found] == list(SOME.points())
    assert found[0].accuracy != found[1].accuracy
    for point in found:
        judged = evaluate(load(file, **point.changes), episodes=EPISODES, seed=1, exact=0)
        for name in ("accuracy", "accuracy_low", "accuracy_high", "tau", "tau_error", "forced", "ece", "confidence"):
            assert getattr(point, name) == pytest.approx(getattr(judged, name), rel=1e-5), name


def test_known_points_are_not_played_again(file: str, found: list[SweepPoint], monkeypatch: pytest.MonkeyPatch) -> None:
    made, play = [], module.play
    monkeypatch.setattr(module, "play", lambda *given, **options: (made.append(given[0]), play(*given, **options))[1])
    assert list(robustness(file, SOME, episodes=EPISODES, seed=1, known=found)) == found
    assert made == []
    told: list[int] = []
    assert list(robustness(file, SOME, episodes=EPISODES, seed=1, known=found[1:], tick=told.append)) == found
    assert [float(team.problem.capacity_concentration) for team in made] == [pytest.approx(0.1)]
    assert told == [1, 1]


def test_a_point_with_another_number_of_episodes_is_not_known(
    file: str, found: list[SweepPoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    def play(*_: object, **__: object) -> None:
        raise AssertionError("played")

    monkeypatch.setattr(module, "play", play)
    with pytest.raises(AssertionError, match="played"):
        next(robustness(file, SOME, episodes=EPISODES + 1, seed=1, known=found))


def test_points_that_the_problem_refuses_are_left_out(file: str, found: list[SweepPoint]) -> None:
    """A concentration is positive: refused is what no world has, and the others are there."""
    more = Sweep("more", {"capacity_concentration": (-1.0, 0.1, 0.0, 10.0)})
    assert list(robustness(file, more, episodes=EPISODES, seed=1, known=found)) == found
    none = Sweep("none", {"capacity_concentration": (-1.0,)})
    assert list(robustness(file, none, episodes=EPISODES)) == []


def test_a_change_that_is_refused_is_not_the_sweeps_fault(file: str) -> None:
    with pytest.raises(UserError, match="mean_beta"):
        next(robustness(file, SOME, episodes=10, mean_beta=-1.0))


def test_what_cannot_be_swept_is_refused(file: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="at least one episode a point; given 0"):
        next(robustness(file, SOME, episodes=0))
    with pytest.raises(UserError, match="mean_alpa"):
        next(robustness(file, Sweep("typo", {"mean_alpa": (1.0,)}), episodes=10))
