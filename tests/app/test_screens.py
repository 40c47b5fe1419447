"""The screens of an app in a real browser: what if, what is shown afterwards, no request, readable in both themes."""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icmape.play.episodes import play
from icmape.play.team import Team
from tests.app.in_browser import DESK, MAP, PHONE, appears, look, tab, until
from tests.app.support import WORLDS, made


def test_after_a_search_every_crew_has_a_number_and_readings_are_means_with_a_unit(opened: Any):
    look(opened, DESK, dark=False)
    team = made(MAP).team
    tab(opened, 2, "#go")
    opened.find_element("id", "go").click()
    if not opened.find_elements("id", "verdict"):
        opened.find_element("id", "stop").click()
    appears(opened, "#verdict")
    find = opened.find_elements
    numbers = {text.text for text in find("css selector", ".board .map .pin-number")}
    assert numbers == {str(agent + 1) for agent in range(team.problem.agents)}
    rings = find("css selector", ".board .map .truth")
    assert len(rings) == team.problem.k
    assert all(ring.tag_name == "circle" for ring in rings)
    assert len(find("css selector", ".board .map .answer")) == 1
    assert find("css selector", ".board .map .stop-sign")
    for cell in find("css selector", ".stage > .scroll tbody strong[title]"):
        shown, *unit = cell.text.split()
        values = [float(value) for value in cell.get_attribute("title").split(" · ")]
        assert len(values) == team.problem.repeats
        assert float(shown) == pytest.approx(np.mean(values), rel=0.01)
        assert " ".join(unit) == "mg/L as N"
    assert "Chance to be one of the 5 highest:" in opened.find_element("id", "stage").text
    towns = find("css selector", ".board .map .town-name")
    assert max(town.size["height"] for town in towns) < 22
    table = opened.find_element("css selector", ".stage > .scroll")
    wide, shown_width = opened.execute_script("return [arguments[0].scrollWidth, arguments[0].clientWidth]", table)
    assert wide <= shown_width, "no crew is cut off on a desk"


def test_the_comparison_fits_a_phone_and_hidden_numbers_have_names(opened: Any):
    opened.find_element("id", "stop").click()
    appears(opened, "#verdict")
    assert "chance of pay by arm 0." in opened.find_element("css selector", ".facts").text
    for number in (0, 1, 2):
        tab(opened, number, "#stop, #again")
        if opened.find_elements("id", "stop"):
            opened.find_element("id", "stop").click()
        box = appears(opened, "#compared").find_element("xpath", "..")
        wide, screen = opened.execute_script("return [arguments[0].scrollWidth, arguments[0].clientWidth]", box)
        assert wide <= screen


def test_changing_a_reading_changes_posterior_and_wish_to_stop_as_in_python(opened: Any):
    team = made("bandit-quick").team
    opened.find_element("id", "mode-whatif").click()
    appears(opened, "#wishes")
    episode = play(team, WORLDS, 0, exact=0).played
    rounds = int(episode.stop[0])
    actions, readings = episode.actions[0, :rounds], np.array(episode.observations[0, 1 : rounds + 1])
    assert shown_margins(opened) == pytest.approx(margins(team, actions, readings), abs=0.006)
    before = opened.find_element("id", "answer").text
    for agent in range(team.problem.agents):
        opened.find_element("css selector", f'[data-round="0"][data-agent="{agent}"]').click()
        readings[0, agent] = 1 - readings[0, agent]
    until(lambda: "computing" not in opened.find_element("id", "answer").text)
    assert opened.find_element("id", "answer").text != before
    assert shown_margins(opened) == pytest.approx(margins(team, actions, readings), abs=0.006)
    answer = team.posterior(actions.tolist(), readings.tolist())
    shown = opened.find_elements("css selector", ".bar .number")
    values = [percent(cell.text) for cell in shown[::2]]  # the network's, then the exact one's
    assert values == pytest.approx(np.asarray(answer.probabilities).reshape(-1).tolist(), abs=0.006)
    opened.find_element("id", "undo").click()
    until(lambda: opened.find_element("id", "answer").text == before)


def test_readings_that_no_answer_explains_have_no_exact_posterior(opened: Any):
    tab(opened, 1, ".pad")
    opened.find_element("id", "mode-whatif").click()
    appears(opened, "#wishes")
    for agent in (0, 1):  # both see a source: each in a cell of its own corner
        opened.find_element("css selector", f'.cell-button[data-round="0"][data-agent="{agent}"]').click()
        cells = opened.find_elements("css selector", "#editor button.cell")
        next(cell for cell in cells if cell.text == "0" and cell.is_enabled()).click()
    appears(opened, "#contradiction")
    assert "exact" not in opened.find_element("id", "answer").text
    assert opened.get_log("browser") == []


def percent(text: str) -> float:
    return {"> 99 %": 0.9975, "< 0.1 %": 0.0}.get(text) or float(text.strip("<> %")) / 100 * (not text.startswith("<"))


def shown_margins(driver: Any) -> list[float]:
    rows = driver.find_elements("css selector", "#wishes tr")
    return [float(row.get_attribute("data-margin")) for row in rows]


def margins(team: Team, actions: np.ndarray, readings: np.ndarray) -> list[float]:
    found = []
    for agent in range(team.problem.agents):
        mind = team.agent(agent)
        for action, reading in zip(actions[:, agent], readings[:, agent], strict=True):
            mind.see(int(action), int(reading))
        scores = np.asarray(mind.scores)
        found.append(float(scores[-1] - scores[:-1].max()))
    return found


def test_the_page_asks_nobody_for_anything_and_reports_no_error(opened: Any):
    tab(opened, 1, ".pad")
    opened.find_element("id", "mode-whatif").click()
    appears(opened, "#wishes")
    events = [json.loads(entry["message"])["message"] for entry in opened.get_log("performance")]
    asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert all(url.startswith(("file:", "data:", "blob:")) for url in asked)
    assert sum(url.startswith("file:") for url in asked) == 1
    assert opened.get_log("browser") == []


def test_the_first_game_can_start_within_five_seconds(driver: Any, path: Path):
    start = time.monotonic()
    driver.get(path.as_uri())
    appears(driver, "#stop")
    assert time.monotonic() - start < 5


def test_a_browser_that_keeps_nothing_still_plays_and_counts(opened: Any):
    opened.execute_script("Storage.prototype.setItem = () => { throw new Error('no'); };")
    opened.find_element("id", "stop").click()
    assert "1 world" in appears(opened, "#tally").text


@pytest.mark.parametrize(("device", "dark"), [(PHONE, True), (DESK, False)], ids=["phone-dark", "desk-light"])
def test_all_screens_pass_axe_and_nothing_scrolls_sideways(opened: Any, device: dict[str, Any], dark: bool):
    look(opened, device, dark=dark)
    for number, control in ((0, ".choice"), (1, ".pad"), (2, "#go")):
        tab(opened, number, control)
        check(opened)
        opened.find_element("id", "stop").click()
        appears(opened, "#verdict")
        check(opened)
        opened.find_element("id", "mode-whatif").click()
        appears(opened, "#wishes")
        check(opened)
        opened.find_element("id", "mode-play").click()


def check(driver: Any) -> None:
    """No violation of WCAG 2 A and AA that axe-core finds, and no wider than the screen."""
    axe = pytest.importorskip("axe_core_python")
    driver.execute_script((Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
    rules = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}
    found = driver.execute_async_script(
        "const done = arguments[1]; axe.run(document, {runOnly: arguments[0]}).then(done, (e) => done(String(e)))",
        rules,
    )
    assert isinstance(found, dict), found
    wrong = [(one["id"], [node["html"][:200] for node in one["nodes"][:3]]) for one in found["violations"]]
    assert wrong == []
    assert any(one["id"] == "color-contrast" for one in found["passes"])
    wide, screen = driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert wide <= screen
