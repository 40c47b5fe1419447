"""A report in a browser: it plays by itself once, can be read in both themes and on a phone, and asks nobody.

As for `test_browser`, these tests are skipped without Chromium, unless ICMAPE_BROWSER=required is set.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icmape.evaluation.robustness import Sweep
from icmape.evaluation.single import play_one
from icmape.plot.episode_replay import scene
from icmape.plot.page import write_page
from icmape.plot.team_report import Judged, opening, report_sections, subtitle
from tests.plot.analyses import analysis, points
from tests.plot.test_drawing import bandit_team, coin_team, signal_episode
from tests.plot.test_verdict import certificate
from tests.zoo.hotspot.test_hotspot_drawing import episode as hotspot_episode

LARGEST = 3 * 2**20  # bytes of a page
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
DESK = {"width": 1400, "height": 900, "deviceScaleFactor": 1, "mobile": False}
TO_THE_END = (
    "const s = document.querySelector('input[type=range]'); s.value = s.max; s.dispatchEvent(new Event('input'))"
)
FOCUSED = "const one = document.activeElement; return one.dataset.do || one.dataset.episode || one.tagName"
CONTRAST = (Path(__file__).parents[1] / "contrast.js").read_text()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of a team on a map of the earth, with everything that a report may hold."""
    played = [hotspot_episode(), signal_episode(), play_one(bandit_team()), play_one(coin_team())]
    scenes = [scene(one, f"Episode {number}: a title of common length") for number, one in enumerate(played, 1)]
    axes = {"a": (0.5, 1, 3), "b": (0.5, 1, 3, 5)}
    sweep = Sweep("means", axes, {"a": "α of the means' Beta prior", "b": "β of the means' Beta prior"})
    chance = np.random.default_rng(0)
    sure = chance.uniform(0.5, 1, 400)
    answers = sure, chance.uniform(size=400) < sure
    found = [(sweep, points(axes))]
    judged = Judged("ours", {"ours": analysis()}, {"ours": certificate(453)}, (), found, scenes, answers)
    problem = played[0].problem
    path = tmp_path_factory.mktemp("report") / "index.html"
    sections = report_sections([judged], problem)
    return write_page(
        path, problem.question, subtitle([judged], ""), sections, "", opening([judged], problem, "hotspot")
    )


def opened(driver: Any, page: Path, look: dict[str, Any], theme: str = "light", still: bool = True) -> Any:
    """The page, freshly opened on a device."""
    driver.get_log("browser")
    driver.get_log("performance")
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", look)
    motion = "reduce" if still else "no-preference"
    wishes = {"prefers-color-scheme": theme, "prefers-reduced-motion": motion}
    features = [{"name": name, "value": value} for name, value in wishes.items()]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    driver.get(page.as_uri())
    return driver


def round_of(driver: Any) -> tuple[int, int]:
    """The round that is shown, and the last one."""
    script = "const s = document.querySelector('input[type=range]'); return [+s.value, +s.max]"
    number, last = driver.execute_script(script)
    return number, last


def play_button(driver: Any) -> str:
    return driver.find_element("css selector", "[data-do=play]").text


def into_sight(driver: Any) -> None:
    driver.execute_script("document.querySelector('.stage').scrollIntoView({block: 'center', behavior: 'instant'})")


def test_a_report_is_one_small_file_that_asks_nobody(driver: Any, page: Path) -> None:
    assert page.stat().st_size <= LARGEST
    shown = opened(driver, page, DESK)
    assert shown.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in shown.get_log("performance")]
    asked = [one["params"]["request"]["url"] for one in events if one["method"] == "Network.requestWillBeSent"]
    assert [url for url in asked if not url.startswith("data:")] == [shown.current_url]


def test_it_opens_with_the_question_the_verdict_four_cards_and_the_replay(driver: Any, page: Path) -> None:
    shown = opened(driver, page, DESK)
    assert shown.find_element("css selector", "h1").text == "Where is the nitrate highest?"
    assert "not certified" in shown.find_element("css selector", ".verdict").text
    assert len(shown.find_elements("css selector", ".fact")) == 4
    top = shown.execute_script("return document.querySelector('.replay').getBoundingClientRect().top")
    assert top < DESK["height"] * 0.6, "the replay is seen without scrolling"


@pytest.mark.parametrize("number", [1, 2, 3])
def test_picture_and_controls_are_on_the_first_screen(driver: Any, page: Path, number: int) -> None:
    shown = opened(driver, page, DESK)
    shown.find_element("css selector", f"[data-episode='{number}']").click()
    shown.execute_script(TO_THE_END)
    bottom = "return document.querySelector(arguments[0]).getBoundingClientRect().bottom"
    assert shown.execute_script(bottom, ".replay-bar") < shown.execute_script(bottom, ".stage > svg")
    assert shown.execute_script(bottom, ".stage > svg") <= DESK["height"]


def test_a_short_episode_plays_for_five_seconds_and_the_truth_comes_last(driver: Any, page: Path) -> None:
    """The first episode has few rounds; the page's own clock measures it."""
    from selenium.webdriver.support.ui import WebDriverWait

    shown = opened(driver, page, DESK, still=False)
    script = """const slider = document.querySelector("input[type=range]");
        window.seen = [];
        const start = performance.now(), timer = setInterval(() => {
          const truth = Boolean(document.querySelector(".answer .right, .answer .wrong"));
          seen.push([performance.now() - start, +slider.value, truth]);
          if (truth) clearInterval(timer);
        }, 50);
        document.querySelector("[data-do=play]").click();"""
    shown.execute_script("document.querySelector('[data-do=play]').click(); scrollTo(0, 0)")  # it may play already
    shown.execute_script("document.querySelector('[data-episode=\"1\"]').click();" + script)
    WebDriverWait(shown, 20).until(lambda one: one.execute_script("return seen.length && seen.at(-1)[2]"))
    seen = shown.execute_script("return seen")
    last = max(number for _, number, _ in seen)
    assert seen[-1][0] >= 4900
    assert max(time for time, number, _ in seen if number == 0) >= 1900, "the start is held for two seconds"
    ends = [time for time, number, _ in seen if number == last]
    assert ends[-1] - ends[0] >= 1400, "who stopped is seen before the truth is"


def test_the_replay_plays_by_itself_once(driver: Any, page: Path) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    shown = opened(driver, page, DESK, still=False)
    into_sight(shown)
    wait = WebDriverWait(shown, 20, poll_frequency=0.1)
    wait.until(lambda one: "Pause" in play_button(one))
    wait.until(lambda one: round_of(one)[0] == round_of(one)[1])
    wait.until(lambda one: "Play" in play_button(one))


def test_a_reader_who_takes_over_is_not_overruled(driver: Any, page: Path) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    shown = opened(driver, page, DESK, still=False)
    into_sight(shown)
    WebDriverWait(shown, 20, poll_frequency=0.1).until(lambda one: "Pause" in play_button(one))
    shown.find_element("css selector", "[data-agent='1']").send_keys("\ue013")  # a key in the replay
    shown.find_element("css selector", "[data-do=play]").click()
    stopped = round_of(shown)[0]
    assert "Play" in play_button(shown)
    WebDriverWait(shown, 1.5, poll_frequency=1.4)
    shown.execute_async_script("setTimeout(arguments[0], 1500)")
    assert round_of(shown)[0] == stopped


def test_without_motion_the_end_is_shown(driver: Any, page: Path) -> None:
    shown = opened(driver, page, DESK, still=True)
    into_sight(shown)
    assert round_of(shown)[0] == round_of(shown)[1]
    assert "Play" in play_button(shown)
    assert shown.find_elements("css selector", ".stage [data-pin] .stop-word"), "who stopped is flagged on the map"
    answer = shown.find_element("css selector", ".answer").text
    assert answer.startswith("Answer: "), "at the stop it is no longer an answer so far"
    assert " of " in answer, "a place has a town that people know"
    assert "Answer: " in shown.find_element("css selector", ".replay-words[aria-live]").get_attribute("textContent")


def test_what_is_dashed_is_in_the_legend(driver: Any, page: Path) -> None:
    shown = opened(driver, page, DESK)
    shown.find_element("css selector", "[data-episode='3']").click()
    assert shown.find_elements("css selector", ".stage > svg rect[stroke-dasharray]"), "or nothing is tested here"
    assert "below 50 %" in shown.find_element("css selector", ".legend").text


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("device", [DESK, PHONE], ids=["desk", "phone"])
def test_words_have_the_contrast_of_wcag_aa(driver: Any, page: Path, device: dict[str, Any], theme: str) -> None:
    shown = opened(driver, page, device, theme)
    shown.execute_script("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    for number in (1, 2, 3, 4):
        shown.execute_script(f"document.querySelector(\"[data-episode='{number}']\").click()")
        shown.execute_script(TO_THE_END)
        seen, faults = shown.execute_script(CONTRAST)
        assert seen > 100
        assert faults == []


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_a_phone_need_not_scroll_sideways(driver: Any, page: Path, number: int) -> None:
    shown = opened(driver, page, PHONE)
    shown.execute_script("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    shown.find_element("css selector", f"[data-episode='{number}']").click()
    assert shown.execute_script("return document.documentElement.scrollWidth") <= PHONE["width"]


def test_fingers_hit_what_can_be_pressed(driver: Any, page: Path) -> None:
    shown = opened(driver, page, PHONE)
    small = """const box = (one) => one.getBoundingClientRect();
        return [...document.querySelectorAll('button, summary, input')].filter(
        (one) => box(one).width < 32 || box(one).height < 36).map((one) => one.outerHTML)"""
    assert shown.execute_script(small) == []


def test_everything_can_be_reached_and_pressed_with_the_keyboard(driver: Any, page: Path) -> None:
    shown = opened(driver, page, DESK)
    reached = set()
    for _ in range(60):
        shown.switch_to.active_element.send_keys("\ue004")
        reached.add(shown.execute_script(FOCUSED))
    assert {"play", "back", "truth", "1", "2", "3", "SUMMARY", "INPUT"} <= reached
    fold = shown.find_element("css selector", "summary")
    fold.send_keys("\ue007")
    assert shown.execute_script("return document.querySelector('details').open")
