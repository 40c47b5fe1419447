"""A real browser opens a page from a file, steps through its replay, and asks nobody for anything.

Needs Debian's chromium and chromium-driver, and selenium; without them the tests are skipped, unless
ICMAPE_BROWSER=required is set: then they fail.
"""

import json
from typing import Any

import pytest

from icmape.evaluation.single import play_one
from icmape.plot.drawings import drawing_of
from icmape.plot.episode_replay import scene
from icmape.plot.page import Grid, Picture, Replay, Section, Text, write_page
from tests.plot.test_drawing import bandit_team, signal_episode

PHONE = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
DESK = {"width": 1100, "height": 1000, "deviceScaleFactor": 1, "mobile": False}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page with everything that a page may hold, wide things too."""
    signal, bandit = signal_episode(), play_one(bandit_team())
    wide = Grid(["method", *(f"a long heading {number}" for number in range(9))], [["x" * 30, *["0.914 ± 0.007"] * 9]])
    sections = [
        Section("Words", [Text("A long-word-without-a-place-to-break" * 6), wide]),
        Section("Replay", [Replay([scene(signal, "signal"), scene(bandit, "bandit")])]),
        Section("Picture", [Picture(drawing_of(bandit).strip(), "An episode.", "an episode")]),
    ]
    path = write_page(tmp_path_factory.mktemp("page") / "report.html", "A report", "for a test", sections, "quick")
    return path.as_uri()


@pytest.fixture
def opened(driver: Any, address: str) -> Any:
    """The page as it is when it was just opened, the replay in sight and nothing focused."""
    driver.get_log("browser")
    driver.get_log("performance")
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", DESK)
    driver.get(address)
    driver.execute_script("document.querySelector('.replay').scrollIntoView({behavior: 'instant'})")
    return driver


def click(driver: Any, selector: str) -> None:
    driver.find_element("css selector", selector).click()


def press(driver: Any, *keys: str) -> None:
    """Keys that go to whatever has the focus."""
    for key in keys:
        driver.switch_to.active_element.send_keys(key)


def picture(driver: Any) -> str:
    return driver.execute_script("return document.querySelector('.stage').innerHTML")


def body(driver: Any) -> str:
    return driver.execute_script("return document.querySelector('.side').textContent")


def words(driver: Any) -> str:
    return driver.execute_script("return document.querySelector('.replay-words[aria-live]').textContent")


def test_the_page_opens_without_a_complaint_or_a_request(opened: Any) -> None:
    assert opened.title == "A report"
    assert opened.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in opened.get_log("performance")]
    asked = [one["params"]["request"]["url"] for one in events if one["method"] == "Network.requestWillBeSent"]
    assert [url for url in asked if not url.startswith("data:")] == [opened.current_url]
    loaded = "return [...document.images].every((one) => one.complete && one.naturalWidth > 0)"
    assert opened.execute_script(loaded), "a policy that only allows what is inside must allow pictures"


def test_buttons_and_the_slider_step_through_the_rounds(opened: Any) -> None:
    seen, told = [picture(opened)], [words(opened)]
    for _ in range(3):
        click(opened, "[data-do=next]")
        seen.append(picture(opened))
        told.append(words(opened))
    assert len(set(seen)) == len(set(told)) == 4, "every step changes the picture and the words"
    assert "the agreed rounds were over" in told[-1].lower()
    assert not opened.find_element("css selector", "[data-do=next]").is_enabled()
    click(opened, "[data-do=back]")
    assert (picture(opened), words(opened)) == (seen[2], told[2])
    set_to = "const s = document.querySelector('input[type=range]'); s.value = 1; s.dispatchEvent(new Event('input'))"
    opened.execute_script(set_to)
    assert (picture(opened), words(opened)) == (seen[1], told[1])


def test_keys_work_with_nothing_focused_and_with_the_replay_focused(opened: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    first = picture(opened)
    assert opened.execute_script("return document.activeElement === document.body")
    press(opened, Keys.ARROW_RIGHT)
    assert words(opened).startswith("After round 1.")
    assert picture(opened) != first
    opened.execute_script("document.querySelector('.replay').focus()")
    press(opened, Keys.END)
    assert words(opened).startswith("After round 3.")
    press(opened, Keys.ARROW_LEFT)
    assert words(opened).startswith("After round 2.")
    press(opened, Keys.HOME)
    assert (words(opened)[:15], picture(opened)) == ("Before round 1.", first)
    press(opened, Keys.ARROW_DOWN)
    assert words(opened).startswith("Own view. Before round 1. Agent 1,")
    click(opened, "input[type=range]")  # into its middle; the slider moves by itself, and only once
    press(opened, Keys.HOME, Keys.ARROW_RIGHT)
    assert words(opened).startswith("Own view. After round 1.")


def test_an_agents_view_shows_only_that_agent(opened: Any) -> None:
    press(opened, "\ue014", "2")  # to the right, and agent 2
    assert words(opened).startswith("Own view. After round 1. Agent 2,")
    own, said = picture(opened), body(opened)
    told = scene(signal_episode(), "signal")["views"]
    assert told[1][1]["place"] in said
    assert told[0][1]["place"] not in said
    assert told[2][1]["place"] not in said
    assert "posterior" not in own
    click(opened, "[data-agent='3']")
    assert picture(opened) != own
    click(opened, "[data-agent=team]")
    assert all(view[1]["place"] in body(opened) for view in told)


def test_the_truth_is_shown_when_asked_for_and_at_the_end(opened: Any) -> None:
    truth = f"The truth: {scene(signal_episode(), 'signal')['truth']}."
    before = picture(opened)
    assert truth not in words(opened)
    click(opened, "[data-do=truth]")
    assert truth in words(opened)
    assert picture(opened) != before


def test_another_episode_can_be_chosen_and_played(opened: Any) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    click(opened, "[data-episode='2']")
    assert "arm 1" in picture(opened)
    click(opened, "[data-do=play]")
    WebDriverWait(opened, 10, poll_frequency=0.1).until(lambda one: "player 2 stopped" in words(one).lower())
    play = opened.find_element("css selector", "[data-do=play]")
    WebDriverWait(opened, 5, poll_frequency=0.1).until(lambda _: "Play" in play.text)


@pytest.mark.parametrize("view", ["0", "2"])
@pytest.mark.parametrize("index", [0, 1])
def test_a_phone_need_not_scroll_sideways(opened: Any, index: int, view: str) -> None:
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    click(opened, f"[data-episode='{index + 1}']")
    opened.execute_script("document.querySelector('.replay').focus()")
    press(opened, view, "\ue010")  # the end
    assert opened.execute_script("return document.documentElement.clientWidth") == PHONE["width"]
    assert opened.execute_script("return document.documentElement.scrollWidth") <= PHONE["width"]
    cut = """return [...document.querySelectorAll('.replay :not(svg *)')].filter(
        (one) => one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.outerHTML.slice(0, 80))"""
    assert opened.execute_script(cut) == []
