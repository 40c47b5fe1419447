"""What tests do with a page in a browser."""

import time
from collections.abc import Callable
from typing import Any

from tests.server.support import Running

PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}


def text(driver: Any, name: str) -> str:
    return str(driver.execute_script("return document.getElementById(arguments[0]).textContent", name))


def until(condition: Callable[[], bool], seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def opened(driver: Any, server: Running, holder: int = 0) -> None:
    driver.get("about:blank")
    driver.get_log("browser")
    driver.get(server.url(holder))
    until(lambda: text(driver, "title") != "Loading…")


def report(driver: Any, value: str) -> None:
    before = text(driver, "where")
    field = driver.find_element("css selector", "#fields input")
    field.send_keys(value)
    driver.find_element("id", "report").click()
    until(lambda: text(driver, "where") != before)
