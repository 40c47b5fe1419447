"""An app in a real browser: whole games by touch and by keys, right scores, no request, readable in both themes.

Needs Debian's chromium and chromium-driver, and selenium; without them the tests are skipped, unless
ICMAPE_BROWSER=required is set: then they fail.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from icmape.app.page import write_app
from icmape.play.episodes import play
from icmape.play.team import Team
from icmape_agent.display import describe_display
from icmape_agent.geography import by_towns
from tests.app.support import WORLDS, made
from tests.browser import started_browser

PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
DESK = {"width": 1400, "height": 900, "deviceScaleFactor": 1, "mobile": False}
MAP = "nitrate-synthetic"
TABS = ("bandit-quick", "signal", MAP)
STOP_AFTER = 2


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    started = started_browser()
    yield started
    started.quit()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_app(tmp_path_factory.mktemp("app") / "app.html", [made(name) for name in TABS])


@pytest.fixture
def opened(driver: Any, path: Path) -> Any:
    """The app as it is when it is opened for the first time, on a phone."""
    look(driver, PHONE, dark=False)
    driver.get(path.as_uri())
    driver.execute_script("localStorage.clear()")
    driver.get_log("browser")
    driver.get_log("performance")
    driver.get(path.as_uri())
    appears(driver, "#stop")
    return driver


def look(driver: Any, device: dict[str, Any], *, dark: bool) -> None:
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", device)
    theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [theme]})


def until(condition: Callable[[], Any], seconds: float = 30) -> Any:
    """What the condition gives as soon as it holds. An element that was just redrawn is looked up again."""
    from selenium.common.exceptions import StaleElementReferenceException

    deadline = time.monotonic() + seconds
    while True:
        with suppress(StaleElementReferenceException):
            if found := condition():
                return found
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.02)


def appears(driver: Any, selector: str) -> Any:
    return until(lambda: driver.find_elements("css selector", selector))[0]


def tab(driver: Any, number: int, control: str) -> None:
    driver.find_element("id", f"tab-{number}").click()
    appears(driver, control)


def results(driver: Any) -> list[tuple[bool, int]]:
    """Right and rounds, with the person and without, as the page shows them."""
    rows = driver.find_elements("css selector", "#compared tbody tr")
    return [(row.get_attribute("data-right") == "true", int(row.get_attribute("data-rounds"))) for row in rows]


def world(driver: Any) -> int:
    """The number of the world that is played."""
    return int(driver.find_element("id", "world").get_attribute("data-world"))


def lengths(team: Team) -> list[int]:
    """Rounds of readings that the network takes in each world."""
    found: list[int] = play(team, WORLDS, 0, exact=0).played.stop.tolist()
    return found


def first(team: Team) -> int:
    """The first world with two rounds or more; if there is none, with one."""
    rounds = lengths(team)
    return next(n for least in (2, 1, 0) for n in range(WORLDS) if rounds[n] >= least)


def replayed(team: Team, number: int, game: dict[str, Any]) -> bool:
    """Whether the answer from the data of a game is right in a world, by Python."""
    answer = team.posterior(game["actions"], game["readings"], game.get("first"))
    truth = play(team, WORLDS, 0, exact=0).played.hypothesis[number]
    return bool(team.problem.hypotheses.correct(jnp.asarray(answer.decision), jnp.asarray(truth)))


def network_alone(team: Team, number: int) -> tuple[bool, int]:
    played = play(team, WORLDS, 0, exact=0)
    return bool(played.at_stop(played.team.correct)[number]), int(played.played.stop[number])


def truth_of(team: Team, number: int) -> list[str]:
    """The right answers of a world by name."""
    truth = np.atleast_1d(play(team, WORLDS, 0, exact=0).played.hypothesis[number])
    return [team.problem.answer_name(one) for one in truth]


def test_a_game_of_choices_by_touch_ends_with_the_right_score(opened: Any):
    team = made("bandit-quick").team
    for number in range(first(team), first(team) + 3):
        assert world(opened) == number
        for _ in range(STOP_AFTER):
            opened.find_elements("css selector", ".choice")[0].click()
        opened.find_element("id", "stop").click()
        appears(opened, "#verdict")
        with_person, alone = results(opened)
        assert alone == network_alone(team, number)
        assert with_person[1] == STOP_AFTER, "the network does not stop as early"
        opened.find_element("id", "again").click()
        appears(opened, "#stop")
    tally = json.loads(opened.execute_script("return localStorage.getItem('icmape-app/bandit-quick')"))
    network = [network_alone(team, number) for number in range(first(team), first(team) + 3)]
    assert (tally["games"], tally["rounds"]) == (3, 3 * STOP_AFTER)
    assert tally["networkRight"] == sum(right for right, _ in network)
    assert tally["networkRounds"] == sum(rounds for _, rounds in network)


def test_the_score_of_a_person_is_that_of_the_answer_from_everyones_readings(opened: Any):
    team = made("bandit-quick").team
    for number in range(4):
        for key in "1212"[: 1 + number]:
            opened.switch_to.active_element.send_keys(key)
        opened.switch_to.active_element.send_keys("s")
        appears(opened, "#verdict")
        (right, rounds), _ = results(opened)
        assert rounds == 1 + number
        assert right == replayed(team, first(team) + number, whole_game(opened, team))
        opened.switch_to.active_element.send_keys("n")
        appears(opened, "#stop")


def whole_game(driver: Any, team: Team) -> dict[str, Any]:
    """Actions and readings from the table that the page shows afterwards."""
    words = {"paid": 1, "not paid": 0}
    rows = driver.find_elements("css selector", ".stage > .scroll tbody tr")[:-1]
    cells = [row.find_elements("css selector", "td")[: team.problem.agents] for row in rows]
    names = [team.problem.action_name(action) for action in range(team.problem.actions)]
    done = [[names.index(cell.find_element("css selector", ".hint").text) for cell in row] for row in cells]
    seen = [[words[cell.find_element("css selector", "strong").text] for cell in row] for row in cells]
    return {"actions": done, "readings": seen}


def test_the_tally_shown_is_the_sum_of_the_games_on_every_tab(opened: Any):
    from selenium.webdriver.common.keys import Keys

    for number, key in enumerate(("1", Keys.ARROW_DOWN, "")):
        tab(opened, number, "#stop")
        sums = [[0, 0], [0, 0]]  # right and rounds, with the person and without
        for count in (1, 2):
            opened.switch_to.active_element.send_keys(key) if key else opened.find_element("id", "go").click()
            if opened.find_elements("id", "stop"):
                opened.find_element("id", "stop").click()
            appears(opened, "#verdict")
            sums = [[a + right, b + rounds] for (a, b), (right, rounds) in zip(sums, results(opened), strict=True)]
            rows = opened.find_elements("css selector", "#tally tbody tr")
            shown = [[cell.text for cell in row.find_elements("css selector", "td")] for row in rows]
            assert shown == [[f"{right} of {count}", f"{rounds / count:.1f}"] for right, rounds in sums]
            opened.find_element("id", "again").click()
            appears(opened, "#stop")


def test_a_walk_on_a_grid_by_keys_ends_with_the_right_score(opened: Any):
    from selenium.webdriver.common.keys import Keys

    team = made("signal").team
    tab(opened, 1, ".pad")
    played, number = world(opened), 0
    assert played == first(team)
    assert "the first in which the network alone takes two rounds or more" in opened.find_element("id", "world").text
    while opened.find_elements("id", "stop"):  # until the network stops, or the person does after some rounds
        opened.switch_to.active_element.send_keys(Keys.ARROW_DOWN if number % 2 else Keys.ARROW_RIGHT)
        number += 1
        if number == 3 and opened.find_elements("id", "stop"):
            opened.switch_to.active_element.send_keys("s")
    (right, rounds), alone = results(opened)
    assert right == (truth_of(team, played)[0] == opened.find_element("css selector", ".verdict strong").text)
    assert rounds <= 3
    assert alone == network_alone(team, played)
    assert alone[1] >= 2


def test_worlds_in_which_the_network_takes_no_reading_are_left_out(opened: Any):
    rounds = lengths(made("signal").team)
    assert 0 in rounds, "or nothing is tested here"
    tab(opened, 1, ".pad")
    seen = []
    for _ in range(WORLDS):
        seen.append(world(opened))
        opened.find_element("id", "stop").click()
        appears(opened, "#again").click()
        appears(opened, "#stop")
    start = first(made("signal").team)
    cycle = [n % WORLDS for n in range(start, start + WORLDS) if rounds[n % WORLDS] > 0]
    assert seen == [cycle[n % len(cycle)] for n in range(WORLDS)]


def test_what_a_window_saw_is_said_with_its_place(opened: Any):
    said = """const [team, reading] = arguments; return pictures.said({team}, reading)"""
    actions = {"kind": "moves", "position": 1, "window": 0}
    team = {
        "layout": [0, 1],
        "display": {"actions": actions, "readings": []},
        "parts": [{"shape": [3, 3]}, {"shape": [2]}],
    }
    nothing = [[0, 0, 0], [0, 0, 0], [0, 0, 0]]
    hit, field = [[0, 0, 0], [0, 0, 1], [0, 0, 0]], [[0.25, 0, 0], [0, 0.5, 0], [0, 0, 0]]
    told = [opened.execute_script(said, team, [window, [4, 2]]) for window in (nothing, hit, field)]
    assert told == ["nothing", "hit at row 5, column 4", "highest 0.5 at row 5, column 3"]


def test_a_search_on_a_map_by_keys_and_by_touch_ends_with_the_right_score(opened: Any):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    problem = made(MAP).team.problem
    near_names = by_towns(describe_display(problem.display)["actions"])
    tab(opened, 2, "#go")
    played = world(opened)
    before = opened.find_element("id", "go").text
    opened.execute_script("document.getElementById('places').focus()")
    for key in (Keys.ARROW_UP, Keys.ARROW_LEFT):
        opened.switch_to.active_element.send_keys(key)
    chosen = opened.find_element("id", "go").text
    assert chosen != before
    opened.switch_to.active_element.send_keys(Keys.ENTER)
    if not opened.find_elements("id", "verdict"):  # a tap on another place
        place = opened.find_elements("css selector", ".spot")[5]
        ActionChains(opened).move_to_element(place).click().perform()
        assert opened.find_element("id", "go").text == f"Go to {near_names[5]}"
        assert f"Chosen: {problem.action_name(5)}." in opened.find_element("id", "stage").text
        opened.find_element("id", "go").click()
    if not opened.find_elements("id", "verdict"):
        opened.find_element("id", "stop").click()
    (right, rounds), alone = results(opened)
    assert rounds <= 2
    assert alone == network_alone(made(MAP).team, played)
    answer = opened.find_element("css selector", ".verdict strong").text
    assert answer in near_names, "answers have the names of reports and maps"
    by_name = {problem.action_name(place): near for place, near in enumerate(near_names)}
    assert right == (answer in [by_name[place] for place in truth_of(made(MAP).team, played)])
    named = opened.find_elements("css selector", ".answer-name")
    assert all(one.text.removeprefix("○ ") in near_names for one in named)
    assert len(named) >= 3


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


def test_a_tap_beside_the_agent_moves_it(opened: Any):
    from selenium.webdriver.common.action_chains import ActionChains

    tab(opened, 1, ".pad")
    grid = appears(opened, ".grid-map")
    ActionChains(opened).move_to_element(grid).click().perform()
    until(lambda: opened.find_elements("id", "news") or opened.find_elements("id", "verdict"))


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
