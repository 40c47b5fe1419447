"""A server of a small team."""

from collections.abc import Iterator

import pytest

from tests.server.support import Running, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("served")) as server:
        yield server
