"""A headless Chromium for tests of pages."""

import importlib.util
import os
import shutil
from typing import Any

import pytest


def lacking() -> str:
    """What is not there for a browser to be started, in words."""
    if importlib.util.find_spec("selenium") is None:
        return "selenium is not installed (pip install -e '.[dev]')"
    missing = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return f"{' and '.join(missing)} not found (apt-get install chromium chromium-driver)" if missing else ""


def started_browser() -> Any:
    """A browser with its logs; the test is skipped where there is none, unless ICMAPE_BROWSER=required is set."""
    if lacking():
        if os.environ.get("ICMAPE_BROWSER") == "required":
            pytest.fail(lacking())
        pytest.skip(lacking())
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
