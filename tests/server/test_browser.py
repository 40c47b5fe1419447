"""The pages in a real browser, phone-sized: they work, go offline, come back, and lose nothing.

Needs Debian's chromium and chromium-driver, and selenium; without them the tests are skipped, unless
ICMAPE_BROWSER=required is set: then they fail.
"""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from icmape_agent.display import Cells, Display, Quantity
from icmape_agent.server.links import COORDINATOR
from tests.server.in_browser import opened, report, text, until
from tests.server.support import Running, running, team

TEAM = "nitrate-n1"
READINGS = ["0.1", "1,1", "2.1"]


@pytest.fixture
def server(tmp_path: Any) -> Iterator[Running]:
    with running(tmp_path, TEAM, hold=0.5) as server:
        yield server


NETWORK = """
const real = window.fetch, held = [];
window.posted = [];
window.fetch = (path, options) => {
  if (path !== "messages") return real(path, options);
  window.posted.push([JSON.parse(options.body).type, Boolean(options.keepalive)]);
  if (window.network === "off") return Promise.reject(new TypeError("offline"));
  if (window.network !== "slow") return real(path, options);
  return new Promise((done) => held.push(() => done(real(path, options))));
};
window.waiting = () => held.length;
window.deliver = () => { window.network = "on"; held.splice(0).forEach((send) => send()); };
"""
"""Lets a test say what happens to messages: `window.network` is on, off, or slow, until `window.deliver()`."""
HIDE = """
Object.defineProperty(document, "hidden", { configurable: true, get: () => true });
document.dispatchEvent(new Event("visibilitychange"));
"""
"""What a browser does when the phone is locked."""


def told(server: Running, agent: int = 0) -> list[tuple[int, Any]]:
    return [(entry["round"], entry["reading"]) for entry in server.session.entries(agent) if entry["type"] == "tell"]


def test_a_crew_goes_offline_and_comes_back_and_nothing_is_lost(driver, tmp_path):
    """The server is stopped, so that no request can reach it, and started again at the same port."""
    light = team(TEAM).agent(0)
    with running(tmp_path, TEAM, hold=0.3) as server:
        opened(driver, server)
        until(lambda: driver.execute_script("return navigator.serviceWorker.controller !== null"))
        assert text(driver, "title") == f"Go to {team(TEAM).action_name(light.act())}"
        report(driver, READINGS[0])
        until(lambda: text(driver, "network") == "everything is sent")
    for reading in READINGS[1:]:
        report(driver, reading)
    until(lambda: text(driver, "network") == "offline, 2 readings kept")
    driver.refresh()
    until(lambda: text(driver, "network") == "offline, 2 readings kept")
    for reading in READINGS:
        light.see(light.act(), [float(reading.replace(",", "."))])
    assert text(driver, "title") == f"Go to {team(TEAM).action_name(light.act())}", "after a reload without a network"
    with running(tmp_path, TEAM, port=server.port) as again:
        assert len(told(again)) == 1
        driver.execute_script("window.dispatchEvent(new Event('online'))")
        until(lambda: len(told(again)) == 3, 15)
        assert told(again) == [(0, [0.1]), (1, [1.1]), (2, [2.1])]
        until(lambda: text(driver, "network") == "everything is sent")


def test_the_last_reading_can_be_corrected_until_it_is_sent_and_a_wrong_one_is_not_kept(driver, tmp_path):
    """Also while an earlier one is being posted; the page sends both at once when it is hidden."""
    with running(tmp_path, TEAM, hold=60) as server:
        opened(driver, server)
        driver.execute_script(NETWORK)
        field = driver.find_element("css selector", "#fields input")
        field.send_keys("-3")
        driver.find_element("id", "report").click()
        assert "is not a number, 0 or more" in text(driver, "wrong")
        assert driver.execute_script("return document.activeElement.getAttribute('aria-invalid')") == "true"
        assert driver.execute_script("return document.activeElement.tagName") == "INPUT"
        field.clear()
        driver.execute_script("window.network = 'off'")
        report(driver, "0.1")
        report(driver, "44")
        driver.find_element("css selector", "#entries button").click()
        assert text(driver, "title") == "Correct round 2"
        field = driver.find_element("css selector", "#fields input")
        assert field.get_attribute("value") == "44"
        field.clear()
        field.send_keys("0.4")
        driver.execute_script("window.network = 'slow'; window.dispatchEvent(new Event('online'))")
        until(lambda: driver.execute_script("return window.waiting()") == 1)
        time.sleep(1.1)  # the page looks once a second whether the correction still holds
        assert driver.find_element("css selector", "#fields input").get_attribute("value") == "0.4"
        driver.find_element("id", "report").click()
        assert "round 3" in text(driver, "where")
        driver.execute_script("window.deliver()")
        driver.execute_script(HIDE)
        until(lambda: len(told(server)) == 2)
        assert told(server) == [(0, [0.1]), (1, [0.4])]
        assert driver.execute_script("return window.posted")[-3:].count(["tell", True]) > 0, "while the page may end"
        until(lambda: driver.find_elements("css selector", "#entries button") == [])


def test_a_reading_that_does_not_come_and_another_action(driver, tmp_path):
    with running(tmp_path, TEAM, hold=0) as server:
        opened(driver, server)
        asked = light_action(server)
        for name, number in (("missed", 2), ("skipped", 3)):
            driver.find_element("css selector", "#else summary").click()
            driver.find_element("id", name).click()
            assert len(server.session.entries(0)) == number - 2, "it asks once more"
            driver.find_element("id", name).click()
            until(lambda: f"round {number}" in text(driver, "where"))  # noqa: B023
            until(lambda: len(server.session.entries(0)) == number - 1)  # noqa: B023
            assert text(driver, "title") == f"Go to {team(TEAM).action_name(light_action(server))}"
        driver.find_element("css selector", "#else summary").click()
        driver.find_element("css selector", "#action option[value='5']").click()
        assert text(driver, "title") == f"Go to {team(TEAM).action_name(5)}"
        report(driver, "0.3")
        until(lambda: len(server.session.entries(0)) == 3)
        assert [(e["type"], e["round"], e.get("action")) for e in server.session.entries(0)] == [
            ("missed", 0, asked),
            ("missed", 1, None),
            ("tell", 2, 5),
        ]


def light_action(server: Running) -> int:
    """What the session would ask agent 0 to do."""
    return int(server.session.handle({"type": "ask", "agent": 0}, 0)["action"])


FULL = """
const store = Storage.prototype.setItem;
Storage.prototype.setItem = function (name, value) {
  if (!window.room && value.includes('"type":"stop"')) throw new Error("no room");
  store.call(this, name, value);
};
"""
"""A browser that has no room for a stop, until `window.room` is set."""


def test_its_own_stop_goes_to_everyone_in_plain_words(driver, server):
    opened(driver, server)
    driver.execute_script(FULL)
    for _ in range(20):
        if not driver.find_element("id", "form").is_displayed():
            break
        report(driver, "9")
    assert "Your readings say: STOP for everyone" in text(driver, "over")
    assert "The stop could not be kept on this phone" in text(driver, "over"), "the browser has no room for it"
    driver.execute_script("window.room = true")
    until(lambda: "could not be kept" not in text(driver, "over"))
    until(lambda: server.session.stopped)
    stop = server.session.entries(0)[-1]
    assert (stop["type"], stop["agent"]) == ("stop", 0)
    until(lambda: "The stop was sent" in text(driver, "over"))
    opened(driver, server, 1)
    until(lambda: "Stop: the round is over" in text(driver, "over"))
    assert not driver.find_element("id", "form").is_displayed()
    assert "9" not in text(driver, "over")


def test_the_coordinator_stops_the_team_after_a_question(driver, server):
    for agent in range(6):
        server.send({"type": "tell", "agent": agent, "round": 0, "action": 2, "reading": [0.5]}, agent)
    server.send({"type": "tell", "agent": 0, "round": 1, "action": 3, "reading": [0.5]}, 0)
    opened(driver, server, COORDINATOR)
    until(lambda: text(driver, "title") == "6 crews at work")
    assert text(driver, "subtitle").endswith("The answer would count 1 whole round and 1 in part.")
    assert driver.find_element("id", "agents").text.count("crew") == 7
    driver.find_element("id", "early").click()
    until(lambda: "Not for the agents" in text(driver, "answer"))
    driver.find_element("id", "stop").click()
    driver.find_element("id", "no").click()
    assert not server.session.stopped
    driver.find_element("id", "stop").click()
    driver.find_element("id", "yes").click()
    until(lambda: text(driver, "title") == "The team has stopped")
    until(lambda: text(driver, "answer").startswith("The answer") and "so far" not in text(driver, "answer"))
    assert server.session.answer().name in text(driver, "answer")
    assert "From 1 whole round and 1 in part; 5 readings missing." in text(driver, "answer")
    assert "not counted" not in text(driver, "rounds"), "the round in part counts"


def test_moves_fill_in_the_position(driver, tmp_path):
    """The signal's grid: a first observation, then a move; positions are known to the page."""
    with running(tmp_path, "signal", hold=0) as server:
        opened(driver, server)
        assert text(driver, "title") == "Before you start: what do you see?"
        driver.find_element("id", "report").click()
        nothing, light = [[0] * 5] * 5, team("signal").agent(0, ([[0] * 5] * 5, [[2, 2]]))
        until(lambda: text(driver, "title") == f"Move {team('signal').action_name(light.act())}")
        driver.find_elements("css selector", "#fields .cell")[3].click()
        driver.find_element("id", "report").click()
        until(lambda: any(entry["type"] == "tell" for entry in server.session.entries(0)))
        first, told = server.session.entries(0)[:2]
        assert first["reading"] == [nothing, [[2, 2]]]
        assert told["reading"][0] == [[0, 0, 0, 1, 0], *nothing[1:]]
        row, column = {"up": (2, 2), "down": (7, 2), "left": (2, 2), "right": (2, 7), "stay": (2, 2)}[
            team("signal").action_name(told["action"])
        ]
        assert told["reading"][1] == [[row, column]]


def test_a_reading_from_before_the_end_is_told_of_the_place_where_it_was_taken(driver, server):
    """The page names the place that it asked for, and another one can be chosen."""
    server.session.stop()
    opened(driver, server)
    until(lambda: "the round is over" in text(driver, "over"))
    asked, names = server.session.crew.team.agent(0).act(), server.session.crew.action_name
    driver.find_element("css selector", "#late summary").click()
    driver.find_element("id", "late-open").click()
    assert text(driver, "title") == f"A reading from before the end: {names(asked)}"
    assert not driver.find_element("id", "missed").is_displayed()
    choice = driver.find_element("css selector", f"#action option[value='{asked + 1}']")
    assert choice.is_displayed()
    choice.click()
    until(lambda: text(driver, "title").endswith(names(asked + 1)))
    driver.find_element("css selector", "#fields input").send_keys("1.5")
    driver.find_element("id", "report").click()
    until(lambda: bool(server.session.entries(0)))
    told = server.session.entries(0)[0]
    assert (told["action"], told["reading"]) == (asked + 1, [1.5])


def test_what_was_seen_at_the_start_is_told_after_a_stop(driver, tmp_path):
    with running(tmp_path, "signal", hold=0) as server:
        server.session.stop()
        opened(driver, server)
        until(lambda: "the round is over" in text(driver, "over"))
        driver.find_element("css selector", "#late summary").click()
        driver.find_element("id", "late-open").click()
        driver.find_element("id", "report").click()
        until(lambda: text(driver, "network") == "everything is sent")
        assert [(entry["type"], entry.get("action")) for entry in server.session.entries(0)] == [("first", None)]


DISPLAYS = {
    "choices": Display(),
    "cells": Display(Cells(3, 3, [4, 8]), [Quantity("gold", "", ("no", "yes"))], "digger", "Dig at"),
}


@pytest.mark.parametrize("name", DISPLAYS)
def test_a_problem_of_ones_own_gets_a_page(driver, tmp_path, name):
    """Whatever it declares, or nothing: an action, fields for a reading, no error."""
    with running(tmp_path, hold=0, display=DISPLAYS[name]) as server:
        opened(driver, server)
        assert text(driver, "title") == f"{DISPLAYS[name].verb} arm 1"
        assert len(driver.find_elements("css selector", "#picture svg, #picture .tiles")) == 1
        driver.find_elements("css selector", ".choice")[1].click()
        driver.find_element("id", "report").click()
        until(lambda: len(server.session.entries(0)) == 1)
        assert server.session.entries(0)[0]["reading"] == 1
        opened(driver, server, COORDINATOR)
        until(lambda: text(driver, "title") == f"3 {DISPLAYS[name].agent}s at work")
        assert [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"] == []
