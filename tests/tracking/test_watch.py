"""The page of `--watch`: what it is told, who may ask, and what a phone shows."""

import json
import time
import urllib.error
import urllib.request
from dataclasses import replace

import pytest

import icmape
from icmape.learning.phases import begin, log
from icmape.learning.run import Progress
from icmape.tracking.board import Board
from icmape.tracking.watch import stay, watching
from icmape.tracking.watch_server import serving
from tests.browser import started_browser
from tests.training import COINS_CONFIG

CONFIG = replace(COINS_CONFIG, seeds=(1, 2), iterations=40, delta=0.1)


def rows(iteration):
    values = {"accuracy": iteration / 50, "tau": 9.0 - iteration / 10, "step_cost": 0.01, "inference_loss": None}
    return [{"seed": seed, "iteration": iteration, **values, "critic_loss": 1.0} for seed in (1, 2)]


def report(board, iteration):
    board.report(Progress(iteration, 40, 2.0, 3.0, 1000.0, rows(iteration)))


@pytest.fixture
def board(tmp_path):
    return Board(tmp_path / "run-7", CONFIG, resumed=False)


def asked(url, **headers):
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as reply:
        return reply.headers, reply.read()


def test_a_page_is_given_the_rows_that_it_does_not_have(board):
    report(board, 10)
    first = board.state(0)
    assert [row[:2] for row in first["rows"]] == [[1, 10], [2, 10]]
    report(board, 20)
    assert [row[:2] for row in board.state(first["count"])["rows"]] == [[1, 20], [2, 20]]
    report(board, 20)  # a resumed run trains iterations again
    assert board.state(0)["count"] == 4


def test_the_page_says_what_the_run_is_at(tmp_path):
    said = []
    with watching(tmp_path / "run-7", CONFIG, 0, said.append) as board:
        log.setLevel("INFO")
        begin("compiling", "the training")
        url = said[0].split()[2]
        state = json.loads(asked(url + "state")[1])
    assert state["phase"] == "compiling: the training"
    assert state["target"] == pytest.approx(0.9)
    assert (state["seeds"], state["ended"]) == ([1, 2], "")
    assert board not in log.handlers
    with pytest.raises(urllib.error.URLError):  # the page ends with the block
        asked(url)


def test_only_this_machine_may_ask_and_no_page_of_others(board):
    with serving(board, 0) as url:
        assert url.startswith("http://127.0.0.1:")
        headers, page = asked(url)
        assert b"watch.js" in page
        assert "default-src 'none'" in headers["content-security-policy"]
        assert b"--method-ours" in asked(url + "watch.css")[1]
        for text in ("", "-1", "x", "%C2%B2", 99 * "9"):  # all that is no number, such as ², is 0
            assert json.loads(asked(f"{url}state?after={text}")[1])["count"] == 0
        with pytest.raises(urllib.error.HTTPError, match="400"):  # a name that leads here: DNS rebinding
            asked(url + "state", Host="curves.example.org")
        taken = int(url.rpartition(":")[2].strip("/"))
        with pytest.raises(icmape.UserError, match="--watch-port"), serving(board, taken):
            pass


def test_the_page_stays_until_ctrl_c_on_a_terminal_and_keeps_no_script(monkeypatch):
    said, slept = [], []

    def interrupted(seconds):
        slept.append(seconds)
        raise KeyboardInterrupt

    monkeypatch.setattr("icmape.tracking.watch.time.sleep", interrupted)
    for terminal in (False, True):
        monkeypatch.setattr("sys.stderr.isatty", lambda terminal=terminal: terminal)
        stay(said.append)
        assert bool(slept) is bool(said) is terminal


@pytest.fixture(scope="module")
def driver():
    started = started_browser()
    phone = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    started.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    yield started
    started.quit()


def until(condition, seconds=15):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def test_on_a_phone_curves_grow_and_stay_when_the_command_has_ended(board, driver):
    def lines():
        return driver.execute_script("return document.querySelectorAll('#chart-accuracy path.played').length")

    def state():
        return driver.find_element("id", "state").text

    report(board, 10)
    with serving(board, 0) as url:
        driver.get(url)
        until(lambda: lines() == 2)  # a line for each seed
        shown = driver.find_element("id", "at-accuracy").text
        report(board, 20)
        until(lambda: driver.find_element("id", "at-accuracy").text != shown)
        assert driver.find_element("id", "at-accuracy").text == "now: 0.400, 0.400 · target 0.90"
        assert "20 of 40 iterations" in state()
        assert driver.execute_script("return document.documentElement.scrollWidth") == 390
        assert driver.execute_script("return document.querySelectorAll('#chart-inference_loss path').length") == 0
        assert not driver.get_log("browser")
    until(lambda: "No connection" in state())
    assert lines() == 2
