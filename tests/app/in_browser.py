"""What the tests of an app in a browser share: how to look, to wait and to read, and what Python says of a game."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import jax.numpy as jnp
import numpy as np

from icmape.play.episodes import play
from icmape.play.team import Team
from tests.app.support import WORLDS

PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
DESK = {"width": 1400, "height": 900, "deviceScaleFactor": 1, "mobile": False}
MAP = "nitrate-synthetic"
TABS = ("bandit-quick", "signal", MAP)


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
