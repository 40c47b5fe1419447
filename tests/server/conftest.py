"""A server of a small team, and a browser."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser import started_browser
from tests.server.in_browser import PHONE
from tests.server.support import Running, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("served")) as server:
        yield server


@pytest.fixture(scope="package")
def driver() -> Iterator[Any]:
    """As large as a phone."""
    started = started_browser()
    started.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    yield started
    started.quit()
