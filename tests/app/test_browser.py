"""An app in a real browser: whole games by touch and by keys, and right scores.

Needs Debian's chromium and chromium-driver, and selenium; without them the tests are skipped, unless
ICMAPE_BROWSER=required is set: then they fail.
"""

import json
from typing import Any

from icmape.play.team import Team
from icmape_agent.display import describe_display
from icmape_agent.geography import by_towns
from tests.app.in_browser import (
    MAP,
    appears,
    first,
    lengths,
    network_alone,
    replayed,
    results,
    tab,
    truth_of,
    until,
    world,
)
from tests.app.support import WORLDS, made

STOP_AFTER = 2


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


def test_a_tap_beside_the_agent_moves_it(opened: Any):
    from selenium.webdriver.common.action_chains import ActionChains

    tab(opened, 1, ".pad")
    grid = appears(opened, ".grid-map")
    ActionChains(opened).move_to_element(grid).click().perform()
    until(lambda: opened.find_elements("id", "news") or opened.find_elements("id", "verdict"))
