"""An animated episode needs no script, tells its story in order, and stands still for readers who want that."""

import re
from functools import cache, partial
from html import escape
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape.errors import UserError
from icmape.evaluation.single import Played, play_one
from icmape.networks.ground import DenseInference
from icmape.play.inference import ExactInference, NetworkInference
from icmape.play.open_loop import Schedule
from icmape.play.stop import FixedLength
from icmape.play.team import Team
from icmape.plot.animation import animated
from icmape.plot.animation.course import drawn as drawn_course
from icmape.plot.animation.course import percent, steps
from icmape.plot.animation.ground import blend
from icmape.plot.animation.scene import SECONDS
from icmape.plot.animation.script import Script
from icmape.plot.drawings import drawing_of
from icmape.zoo.bandit.bandit import Bandit
from icmape_agent.look import LIGHT
from tests.support import drawn
from tests.zoo.hotspots import small_hotspot

SENT = [[3, 3], [5, 3], [20, 21]]  # both to one cell; one of them comes back to it


@cache
def episode() -> Played:
    """Three rounds of samples, read by an untrained network."""
    problem = small_hotspot()
    network = drawn(partial(DenseInference, problem, 4, key=jax.random.key(0)))
    policy = Schedule(jnp.asarray(SENT, jnp.int32), problem.actions + 1)
    return play_one(Team(problem, policy, FixedLength(3), NetworkInference(network)), world=2)


@cache
def picture() -> str:
    return animated(drawing_of(episode()))


def of_a_learned_stop() -> str:
    """The same episode, if agent 2 had stopped it."""
    played = episode()
    actions = np.array(played.episode.actions)
    actions[played.rounds - 1] = [0, played.problem.actions]
    stopped = played._replace(episode=played.episode._replace(actions=actions), stop_rule="learned")
    return animated(drawing_of(stopped))


def keyframes(text: str) -> dict[str, list[float]]:
    found = re.findall(r"@keyframes (\w+)\{((?:[\d.e+-]+%\{[^}]*\})+)\}", text)
    return {name: [float(at) for at in re.findall(r"([\d.e+-]+)%\{", frames)] for name, frames in found}


def test_it_is_xml_without_scripts_and_without_links() -> None:
    root = ElementTree.fromstring(picture())
    names = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert not names & {"script", "foreignObject", "image", "a", "use"}
    assert not any(value.startswith(("http", "//")) for element in root.iter() for value in element.attrib.values())
    assert "@import" not in picture()
    assert set(re.findall(r"url\((.*?)\)", picture())) == {"#map", "#blur"}


def test_frames_of_every_element_are_in_order_and_end_with_the_animation() -> None:
    times = keyframes(picture())
    assert len(times) > 10
    for ats in times.values():
        assert ats[0] == 0
        assert ats[-1] == 100
        assert ats == sorted(ats)
    assert f"animation:{SECONDS:g}s" in picture()


def test_a_reader_who_wants_no_motion_sees_the_end() -> None:
    script = Script(12.0)
    early, late = script.between(0.0, 5.0), script.between(5.0)
    moving = script.moves([(0.0, (1.0, 2.0)), (3.0, (4.0, 5.0))])
    css = script.css()
    assert f".{early}{{opacity:0;" in css
    assert f".{late}{{opacity:1;" in css
    assert f".{moving}{{transform:translate(4.0px,5.0px);" in css
    assert re.search(r"@media \(prefers-reduced-motion:reduce\)\{[^}]*animation:none", css)


def test_one_state_of_knowledge_a_round_is_seen_at_a_time() -> None:
    """Confidences are shown one after the other, without a gap and without two at once."""
    text = picture()
    classes = re.findall(r'class="large[^"]* (\w+)"', text)
    assert len(classes) == episode().rounds
    times = keyframes(text)
    for before, after in pairwise(classes):
        assert times[before][-3:-1] == times[after][1:3]  # one fades out while the next one fades in


def test_the_map_shows_the_state_and_its_towns() -> None:
    assert ">Baltimore</text>" in picture()
    assert picture().count('class="home"') == 1


def test_only_an_agent_that_stops_says_so() -> None:
    assert "STOP" not in picture()  # a fixed number of rounds
    told = of_a_learned_stop()
    assert "Crew 2 says STOP, and all stop, after 3 rounds" in told
    assert told.count(">STOP</text>") == 1


def test_the_verdict_is_that_of_the_episode() -> None:
    right = bool(episode().correct[-1])
    assert (" is right</text>" in picture()) == right
    assert (" is wrong</text>" in picture()) == (not right)


def test_rounds_of_readings_count_from_1_and_the_stop_is_none() -> None:
    shown = re.findall(r">confidence ([a-z0-9 ]+)</text>", picture())
    assert shown == ["at the start", "after round 1", "after round 2", "after round 3"]
    assert episode().rounds - 1 == len(SENT) == 3
    assert ">The team stops after 3 rounds</text>" in picture()


def test_confidence_goes_in_steps_and_is_said_in_percent() -> None:
    (course,) = re.findall(r'd="([^"]+)" pathLength', picture())
    points = [tuple(float(x) for x in point.split()) for point in course.removeprefix("M").split("L")]
    assert len(points) == 2 * episode().rounds
    for before, after in pairwise(points):
        assert before[0] == after[0] or before[1] == after[1]
    said = [percent(float(confidence)) for confidence in episode().confidence]
    assert re.findall(r'class="large[^"]*">([^<]+)<', picture()) == [escape(text) for text in said]


def test_nothing_uncertain_is_said_to_be_certain() -> None:
    assert [percent(chance) for chance in (0.9996, 0.994, 0.905, 0.001)] == ["> 99 %", "99 %", "90 %", "< 1 %"]


def test_each_level_is_drawn_when_it_is_known() -> None:
    points = steps([3.0, 2.0, 0.0], 0.0, 6.0)
    assert points == [(0, 3), (2, 3), (2, 2), (4, 2), (4, 0), (6, 0)]
    expected = [(0.0, 2 / 9), (4.8, 2 / 9), (5.2, 5 / 9), (8.8, 5 / 9), (9.2, 1.0)]
    np.testing.assert_allclose(drawn_course(points, [0.0, 5.0, 9.0]), expected)


def test_the_truth_is_a_ring_above_everything_and_no_crew_hides_it() -> None:
    root = ElementTree.fromstring(picture())
    nodes = list(root.iter())
    rings = [node for node in nodes if node.tag.endswith("circle") and node.get("class") == "truth"]
    truths = drawing_of(episode()).ground().truths
    assert len(rings) == len(truths) + 1, "and one in the key"
    discs = [
        number for number, node in enumerate(nodes) if node.tag.endswith("circle") and node.get("class") == "agent"
    ]
    assert max(discs) < min(nodes.index(ring) for ring in rings)
    gone = [group.get("class") for group in root if len(group) == 1 and group[0].get("class", "").startswith("m")]
    assert len(gone) == episode().problem.agents
    assert all(f".{name}{{opacity:0;" in picture() for name in gone), "the last state"


def test_the_glow_goes_through_the_colours_of_maps() -> None:
    assert [blend(dict(LIGHT), part) for part in (0.0, 0.5, 1.0)] == [LIGHT[f"glow-{level}"] for level in range(3)]


def test_the_same_episode_gives_the_same_file() -> None:
    assert animated(drawing_of(episode())) == picture()


def test_without_a_map_there_is_no_animation() -> None:
    problem = Bandit(arms=2, players=2, horizon=3)
    policy = Schedule(jnp.zeros((1, problem.agents), jnp.int32), problem.actions + 1)
    played = play_one(Team(problem, policy, FixedLength(1), ExactInference()))
    with pytest.raises(UserError, match="Bandit has no map"):
        animated(drawing_of(played))


def test_the_whole_land_is_in_the_picture_and_no_reading_leaves_it() -> None:
    """Of the animation of the front page: people know a state by its outline."""
    root = ElementTree.fromstring((Path(__file__).parents[2] / "docs" / "episode.svg").read_text())
    every = [one for one in root.iter() if one.tag.endswith("path") and one.get("class") == "home"]
    (clip,) = [one for one in root.iter() if one.tag.endswith("clipPath")]
    left, top, width, height = (float(clip[0].get(name, "")) for name in ("x", "y", "width", "height"))
    numbers = [float(one) for path in every for one in re.findall(r"-?[\d.]+", path.get("d", ""))]
    across, down = numbers[::2], numbers[1::2]
    assert left < min(across) < left + 0.1 * width
    assert left + 0.9 * width < max(across) < left + width
    assert top < min(down)
    assert max(down) < top + height
    texts = [one for one in root.iter() if one.tag.endswith("text") and "mg/L" in (one.text or "")]
    assert len(texts) >= 6
    for one in texts:
        assert float(one.get("x", "")) + 0.62 * 18 * len(one.text or "") < 880
