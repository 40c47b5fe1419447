"""An app in a browser, as it is when it is opened for the first time."""

from pathlib import Path
from typing import Any

import pytest

from icmape.app.page import write_app
from tests.app.in_browser import PHONE, TABS, appears, look
from tests.app.support import made


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
