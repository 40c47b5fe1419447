"""A run that is killed again and again, on a full disk too, ends as one that was not."""

import pytest

from benchmarks import kills


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_run_that_is_killed_ends_as_one_that_is_not() -> None:
    """The whole of it is `python -m benchmarks.kills`: 100 kills, 20 of them around a full disk."""
    found = kills.measure(20, 4, seed=1)
    assert found["different at the end"] == []
    assert found["kills"] == 20
    assert found["on a full disk"] + found["after a full disk had room again"] == 4
