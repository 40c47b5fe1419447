"""An episode that is drawn is the one that was evaluated, and the picture shows what happened in it."""

import sys
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape.errors import UserError
from icmape.evaluation.single import Played, _unwrapped, choose_inference, play_one
from icmape.networks import ConvolutionalInference
from icmape.play.episodes import play
from icmape.play.inference import ExactInference, NetworkInference
from icmape.play.open_loop import Schedule
from icmape.play.stop import FixedLength, LearnedStop, Threshold
from icmape.play.team import Team
from icmape.plot import drawing as drawing_module
from icmape.plot.drawing import HOLD, PACE, probability, write_episode
from icmape.plot.drawings import drawing_of
from icmape.plot.timeline import Timeline
from icmape.problem import Centralized
from icmape.zoo.bandit.bandit_drawing import BanditDrawing
from icmape.zoo.signal.signal import Signal
from icmape.zoo.signal.signal_drawing import SignalDrawing, clean_field, field_figure, noisy_field
from tests.coins import Coins
from tests.support import drawn, lively_team, script, small_bandit


class Unsolved(Coins):
    """Coins for which nobody has worked out Bayes' rule."""

    @property
    def posterior(self) -> str:
        return "none"


@cache
def signal_team() -> Team:
    """Three rounds of data on a small grid, walked around in by everyone and read by an untrained network."""
    problem = Signal(grid=10, window=5, move=5, distance=4, horizon=6)
    table = jnp.asarray([[1, 1, 0], [3, 2, 3], [0, 0, 1]])
    network = drawn(partial(ConvolutionalInference, problem, 4, key=jax.random.key(0)))
    return Team(problem, Schedule(table, problem.actions + 1), FixedLength(3), NetworkInference(network))


@cache
def signal_episode(world: int = 4) -> Played:
    return play_one(signal_team(), world)


@cache
def coin_team() -> Team:
    """Two toss until it is clear: episodes differ in length."""
    policy = Schedule(jnp.zeros((1, 2), jnp.int32), 2)
    return Team(Coins(agents=2, horizon=6), policy, Threshold(0.99), ExactInference())


@cache
def bandit_team() -> Team:
    """The second of three players stops in round 2."""
    problem = small_bandit()
    policy = script(problem, [[0, 0, 1], [0, 1, 1], [0, problem.actions, 1]])
    return Team(problem, policy, LearnedStop(), ExactInference())


def frames(path: Path) -> list[int]:
    """Milliseconds of every frame of an animation."""
    from PIL import Image

    durations = []
    with Image.open(path) as image:
        for number in range(image.n_frames):
            image.seek(number)
            durations.append(image.info["duration"])
    return durations


def test_the_episode_is_the_one_that_evaluation_plays() -> None:
    judged = play(coin_team(), episodes=12, seed=7)
    assert len(set(judged.played.stop.tolist())) > 2
    for world in (0, 5, 11):
        played = play_one(coin_team(), world, seed=7)
        assert played.rounds == judged.played.stop[world] + 1
        assert played.world.hypothesis == played.episode.hypothesis == judged.played.hypothesis[world]
        np.testing.assert_array_equal(played.episode.actions, judged.played.actions[world])
        np.testing.assert_array_equal(played.episode.observations, judged.played.observations[world])
        np.testing.assert_allclose(played.confidence, judged.team.confidence[world][: played.rounds], rtol=1e-5)
        np.testing.assert_array_equal(played.correct, judged.team.correct[world][: played.rounds])


def test_the_world_is_the_one_that_was_played_in() -> None:
    found = [signal_episode(world) for world in range(5)]
    assert len({int(played.world.hypothesis) for played in found}) > 2
    assert all(played.world.hypothesis == played.episode.hypothesis for played in found)


def test_the_posterior_is_the_teams_own_unless_told() -> None:
    assert choose_inference(lively_team(), None).kind == choose_inference(lively_team(), "network").kind == "network"
    assert choose_inference(lively_team(), "exact").kind == choose_inference(coin_team(), None).kind == "exact"
    np.testing.assert_allclose(play_one(bandit_team()).probabilities[0], 1 / 3, rtol=1e-5)  # nothing seen yet


def test_a_posterior_that_is_not_there_is_refused() -> None:
    with pytest.raises(UserError, match="no inference network"):
        choose_inference(coin_team(), "network")
    with pytest.raises(UserError, match="no exact posterior"):
        choose_inference(replace(lively_team(), problem=Unsolved()), "exact")


@pytest.mark.parametrize("world", [-1, 2**31])
def test_worlds_are_counted_from_0(world: int) -> None:
    with pytest.raises(UserError, match="numbered from 0"):
        play_one(coin_team(), world)


def test_whoever_stopped_is_named() -> None:
    played = play_one(bandit_team())
    assert (played.rounds, played.stopped, played.forced) == (3, [1], False)


def test_a_centralized_episode_is_told_as_that_of_its_agents() -> None:
    problem, played = Centralized(small_bandit()), play_one(bandit_team())
    joint = np.array([[problem.join([0, 1, 1])], [problem.join([1, 0, 1])], [problem.actions], *[[0]] * 4])
    centralized = played.episode._replace(actions=joint, observations=played.episode.observations[:, None])
    inside, world, episode = _unwrapped(problem, played.world, centralized)
    assert inside is problem.problem
    assert world is played.world
    np.testing.assert_array_equal(episode.actions[:3], [[0, 1, 1], [1, 0, 1], [2, 2, 2]])
    np.testing.assert_array_equal(episode.observations, played.episode.observations)


def test_a_bandit_is_told_in_arms_and_payoffs() -> None:
    drawing = drawing_of(play_one(bandit_team()))
    assert [drawing.choice(agent, 0) for agent in range(3)] == ["arm 1", "arm 1", "arm 2"]
    assert drawing.choice(1, 2) == "STOP"
    paid = drawing.played.episode.observations[1] > 0
    assert [drawing.seen(agent, 1) == "paid" for agent in range(3)] == paid.tolist()
    assert drawing.answer(np.array([0, 2])) == "capacities 1, 3"


def test_a_posterior_is_drawn_as_it_is() -> None:
    played = signal_episode()
    strip = drawing_of(played).strip()
    maps = [axis.images[0].get_array() for axis in strip.axes if axis.images]
    assert len(maps) == 1 + played.rounds, "the world, and every round"
    for number, shown in enumerate(maps[1:]):
        assert float(shown.sum()) == pytest.approx(1, abs=1e-5)
        assert int(np.argmax(shown)) == int(played.decisions[number])
    titles = [axis.get_title() for axis in strip.axes if axis.images]
    assert titles[1] == f"before round 1: p = {probability(played.confidence[0])}"
    assert titles[-1].endswith("right" if played.correct[-1] else "wrong")


def test_positions_are_read_however_they_are_shared() -> None:
    played = signal_episode()
    seen, problem = played.episode.observations, played.problem
    everyone = np.broadcast_to(seen.positions[:, None, :, 0], (problem.horizon, 3, 3, 2))
    shared = played._replace(
        problem=Signal(grid=10, window=5, move=5, distance=4, horizon=6, information="shared-positions"),
        episode=played.episode._replace(observations=seen._replace(positions=everyone)),
    )
    drawings = [SignalDrawing(played), SignalDrawing(shared)]
    assert drawings[0].positions[:, 0].tolist() == [[2, 2], [7, 2], [7, 7], [2, 7]]  # down, right, up
    np.testing.assert_array_equal(drawings[0].positions, drawings[1].positions)


def test_hits_are_where_the_source_is() -> None:
    counts = []
    for world in range(5):
        drawing = SignalDrawing(signal_episode(world))
        found = [hit for agent in range(2) for number in range(4) for hit in drawing.hits(agent, number)]
        assert set(found) <= {divmod(int(drawing.played.world.hypothesis), 10)}
        counts.append(len(found))
        assert drawing.hits(2, 0) == [], "readings of the field are no hits"
    assert max(counts) > 0


@pytest.mark.parametrize("which", ["signal", "bandit", "any problem"])
def test_pictures_need_no_display_and_have_a_frame_a_round(
    which: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.setattr(drawing_module, "DPI", 40)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # the part of matplotlib that looks for a display
    played, kind = {
        "signal": lambda: (signal_episode(), SignalDrawing),
        "bandit": lambda: (play_one(bandit_team()), BanditDrawing),
        "any problem": lambda: (play_one(coin_team()), Timeline),
    }[which]()
    drawing = drawing_of(played)
    assert type(drawing) is kind
    picture, animation = write_episode(drawing, tmp_path / "new")
    assert picture.read_bytes().startswith(b"\x89PNG")
    times = frames(animation)
    assert times == [1000 // PACE] * (played.rounds - 1) + [HOLD * 1000 // PACE]


def test_the_field_peaks_at_its_two_places() -> None:
    problem, world = signal_team().problem, signal_episode().world
    clean = clean_field(problem, world)
    places = [divmod(int(cell), problem.grid) for cell in (world.hypothesis, world.distractor)]
    assert clean[places[0]] == clean.max() == 1
    assert clean[places[1]] == pytest.approx(float(world.intensity))
    noisy = noisy_field(problem, world, jax.random.key(0))
    assert 0 <= noisy.min() <= noisy.max() <= 1
    inner = (clean > 0.3) & (clean < 0.7)  # far from where readings are clipped
    assert 0 < np.abs(noisy - clean)[inner].max() < 5 * float(problem.noise)


def test_the_field_is_drawn_with_both_places() -> None:
    problem, world = signal_team().problem, signal_episode().world
    axis = field_figure(problem, world, jax.random.key(0)).axes[0]
    crosses = [(int(line.get_ydata()[0]), int(line.get_xdata()[0])) for line in axis.lines]
    assert crosses == [divmod(int(cell), problem.grid) for cell in (world.hypothesis, world.distractor)]
    np.testing.assert_allclose(axis.images[0].get_array(), noisy_field(problem, world, jax.random.key(0)))
