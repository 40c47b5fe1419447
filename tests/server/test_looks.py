"""The pages as people see them on a phone: words that can be read, buttons that can be touched, nothing cut."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from icmape_agent.server.links import COORDINATOR
from tests.server.in_browser import PHONE, opened, text, until
from tests.server.support import Running, running


@pytest.fixture
def server(tmp_path: Any) -> Iterator[Running]:
    with running(tmp_path, "nitrate-n1", hold=0.5) as server:
        yield server


CONTRAST = """
const colour = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
const part = (v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
const luminance = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
const behind = (node) => {
  for (; node; node = node.parentElement) {
    const c = colour(getComputedStyle(node).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c.slice(0, 3);
  }
  return [255, 255, 255];
};
const found = [];
for (const node of document.querySelectorAll("body *")) {
  const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
  if (!own || !node.getClientRects().length || node.closest("svg, [disabled], noscript, option")) continue;
  const [a, b] = [luminance(colour(getComputedStyle(node).color)), luminance(behind(node))];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < 4.5) found.push([node.tagName, node.className, node.textContent.slice(0, 30), ratio.toFixed(2)]);
}
return JSON.stringify(found);
"""
SMALL = """
return JSON.stringify([...document.querySelectorAll("button, a, input, select, summary")]
  .filter((node) => node.getClientRects().length && node.getBoundingClientRect().height < 43.5)
  .map((node) => [node.tagName, node.textContent.slice(0, 20), node.getBoundingClientRect().height]));
"""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("holder", [COORDINATOR, 0])
def test_words_can_be_read_and_buttons_touched(driver, server, holder, theme):
    """WCAG AA contrast of all text (4.5), targets of 44 pixels, nothing wider than the phone."""
    driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    )
    server.send({"type": "tell", "agent": 0, "round": 0, "action": 2, "reading": [0.5]}, 0)
    opened(driver, server, holder)
    if holder == COORDINATOR:
        driver.find_element("id", "early").click()
        until(lambda: "Not for the agents" in text(driver, "answer"))
    else:
        driver.find_element("css selector", "#else summary").click()
    assert json.loads(driver.execute_script(CONTRAST)) == []
    assert json.loads(driver.execute_script(SMALL)) == []
    assert driver.execute_script("return document.documentElement.scrollWidth") <= PHONE["width"]
    assert [entry for entry in driver.get_log("browser") if "Content Security Policy" in entry["message"]] == []


EDGES = """
const [display, map, places] = arguments, inside = (box, other) =>
  box.left >= other.left - 1 && box.right <= other.right + 1 &&
  box.top >= other.top - 1 && box.bottom <= other.bottom + 1;
const cut = [], holder = document.getElementById("picture");
const look = (name, svg, parts) => {
  holder.replaceChildren(svg);
  const all = [...svg.querySelectorAll(parts)].map((part) => part.getBoundingClientRect());
  if (!all.length || !all.every((box) => inside(box, svg.getBoundingClientRect()))) cut.push(name);
  return all;
};
const names = display.actions.coordinates.map(String);
for (const action of places) for (const zoom of [null, { action, degrees: 1.3 }]) {
  const target = { action, agent: 1 };
  look([action, zoom], views.mapView({ display, map, target, zoom, names, label: "" }), ".pin, .pin-number");
}
for (const [row, column] of [[0, 0], [0, 24], [24, 0], [24, 24], [9, 9]]) {
  const spots = [0, 1, 2].map((agent) => ({ row, column, agent, text: agent + 1 }));
  const dots = look([row, column], views.gridView({ rows: 25, columns: 25, spots, label: "" }), ".past");
  if (dots.some((dot, n) => n && dot.left - dots[n - 1].left < dot.width / 2)) cut.push(["covered", row, column]);
}
return cut;
"""


def test_no_pin_or_dot_is_cut_at_the_edge_or_covered_by_another(driver, server):
    """Of the outermost places in each direction, and three agents in one cell."""
    opened(driver, server)
    about = server.service.about()
    latitude, longitude = np.array(about["display"]["actions"]["coordinates"]).T
    places = [int(n) for way in (latitude, longitude) for n in (way.argmin(), way.argmax())]
    assert driver.execute_script(EDGES, about["display"], about["map"], places) == []


def test_the_map_of_maryland_shows_the_state_and_towns(driver, server):
    opened(driver, server)
    driver.find_element("css selector", "#zoom button").click()
    assert driver.find_element("css selector", "#picture .land.home").rect["width"] > 300, "of 390 pixels"
    towns = {town.text for town in driver.find_elements("css selector", "#picture .town-name")}
    assert {"Baltimore", "Washington"} <= towns
    assert server.service.map["home"] == "Maryland"


def test_the_coordinator_is_told_of_what_the_answer_is_sure_and_where(driver, server):
    """Any of the five highest cells is right, so the chances of cells do not sum to one."""
    opened(driver, server, COORDINATOR)
    driver.find_element("id", "early").click()
    until(lambda: "Not for the agents" in text(driver, "answer"))
    answer = server.get("answer?early").json
    said, near = text(driver, "answer"), server.session.crew.near(answer["decision"])
    assert f"{answer['name']} {near} · chance to be one of the 5 highest: " in said
    assert "Chance to be one of the 5 highest:" in said
    assert "sure" not in said
    assert all(f"{name} {place}" in said for name, _, place in answer["ranks"])
    assert " of " in near or near.startswith("at ")


def test_all_readings_of_six_crews_are_in_sight(driver, tmp_path):
    """Five numbers each on a screen of 1400 pixels; on a phone the table scrolls."""
    with running(tmp_path, "nitrate-synthetic") as server:
        for agent in range(6):
            server.send({"type": "tell", "agent": agent, "round": 0, "action": agent, "reading": [18.88] * 5}, agent)
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {**PHONE, "width": 1400, "mobile": False})
        try:
            opened(driver, server, COORDINATOR)
            until(lambda: "18.88" in text(driver, "rounds"))
            widths = (
                "const box = document.getElementById('rounds').parentElement; return [box.scrollWidth, box.clientWidth]"
            )
            inside, box = driver.execute_script(widths)
            assert inside <= box
        finally:
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)


def test_what_is_typed_stays_when_the_map_changes(driver, server):
    opened(driver, server)
    driver.find_element("css selector", "#fields input").send_keys("0.7")
    driver.find_element("css selector", "#zoom button").click()
    until(lambda: driver.find_element("css selector", "#zoom button").text == "closer")
    assert driver.find_element("css selector", "#fields input").get_attribute("value") == "0.7"


def test_keys_alone_suffice(driver, server):
    from selenium.webdriver.common.keys import Keys

    opened(driver, server)
    for _ in range(12):
        if driver.execute_script("return document.activeElement.tagName") == "INPUT":
            break
        driver.switch_to.active_element.send_keys(Keys.TAB)
    driver.switch_to.active_element.send_keys("0.7", Keys.ENTER)
    until(lambda: "round 2" in text(driver, "where"))
    assert driver.execute_script("return document.activeElement.id") == "title", "the next action is read out"
