"""A session that is open."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from icmape_agent.session import Session
from tests.session.support import opened


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with opened(tmp_path) as session:
        yield session
