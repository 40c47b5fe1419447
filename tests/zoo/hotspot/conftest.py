"""A hotspot problem of readings in files, for every test of this folder."""

from pathlib import Path

import pytest

from icmape.zoo.hotspot.hotspot import Hotspot
from tests.zoo.hotspots import FROM_FILES, few_readings, write

NITRATE = Path(__file__).parents[4] / "shared" / "nitrate"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Where the few readings lie."""
    return write(tmp_path_factory.mktemp("exports"), few_readings())


@pytest.fixture(scope="module")
def from_files(folder: list[str]) -> Hotspot:
    return Hotspot(data=folder, **FROM_FILES)
