"""Readings by lines of text: an answer belongs to the request that it names."""

import io
import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from icmape_agent.mqtt import Lines, Request


class Asked:
    """A reader of lines, whose answers are written by hand."""

    def __init__(self, timeout: float | None):
        here, there = os.pipe()
        self.incoming, self.answers = io.FileIO(here), io.FileIO(there, "w")
        self.out = io.BytesIO()
        self.lines = Lines(self.incoming, self.out, timeout)

    def read(self, number: int, action: int | None, *answers: dict[str, Any]) -> Any:
        for answer in answers:
            self.answers.write(json.dumps(answer).encode() + b"\n")
        return self.lines.read(Request(0, number, action, "", lambda: False))

    def close(self) -> None:
        self.answers.close()
        self.lines._listener.join(5)
        self.incoming.close()

    @property
    def said(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.getvalue().splitlines()]


@pytest.fixture
def timed() -> Iterator[Asked]:
    asked = Asked(timeout=0.4)
    yield asked
    asked.close()


@pytest.fixture
def patient() -> Iterator[Asked]:
    asked = Asked(timeout=None)
    yield asked
    asked.close()


def test_an_answer_after_the_time_out_is_not_that_of_the_next_action(timed):
    assert timed.read(0, 1) is None
    assert timed.lines.told == "no answer came in time"
    assert timed.read(1, 0, {"reading": 7}, {"reading": 8, "round": 0}, {"reading": 9, "round": 1}) == 9
    assert timed.said[-1] == {
        "type": "error",
        "text": 'with a time-out an answer names its round, here "round": 1; it was left',
    }


def test_the_observation_before_round_0_is_not_the_reading_of_round_0(timed):
    assert timed.read(0, None) is None
    assert timed.said[0]["round"] == "first"
    assert timed.read(0, 2, {"reading": 5, "round": "first"}, {"reading": 6, "round": 0}) == 6
    assert timed.read(0, None, {"reading": 6, "round": 0}, {"reading": 5, "round": "first"}) == 5


def test_without_a_time_out_the_next_answer_is_that_of_the_request(patient):
    assert patient.read(0, 1, {"reading": 3}) == 3
    assert patient.read(1, 1, {"missed": True}) is None
    assert patient.lines.told == "", "that it does not come was told"
    assert patient.read(0, None, {"reading": 4}) == 4
