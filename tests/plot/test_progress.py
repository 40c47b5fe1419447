"""The live display shows what a person waits for."""

import io

from rich.console import Console

from icmape.learning.config import Config
from icmape.learning.run import Progress
from icmape.plot.progress import COLUMNS, clock, display, render

ROW = dict.fromkeys(COLUMNS, 0.5) | {"seed": 215, "tau": 6.25, "critic_loss": None}
REPORT = Progress(iteration=900, iterations=1800, seconds=70.0, left=3700.0, steps_per_second=8123.0, rows=[ROW])


def shown(**options) -> str:
    out = io.StringIO()
    Console(file=out, width=120, **options).print(render(REPORT, Config()))
    return out.getvalue()


def test_every_part_has_a_line_of_its_own() -> None:
    lines = shown().splitlines()
    status = next(line for line in lines if "iteration 900/1,800" in line)
    assert status.startswith("iteration")
    assert "8,123 rounds/s" in status
    assert "1:10 gone, 1:01:40 left" in status
    assert any(line.split()[:3] == ["215", "0.500", "6.25"] for line in lines)


def test_a_number_that_is_not_there_is_a_dash() -> None:
    assert "–" in shown()


def test_a_pipe_gets_a_line_now_and_then_and_the_last_one_always() -> None:
    out = io.StringIO()
    with display(Config(), Console(file=out, width=200)) as show:
        for iteration, seconds in ((1, 0.0), (2, 1.0), (3, 2.0), (1800, 3.0)):
            show(REPORT._replace(iteration=iteration, seconds=seconds))
    first, *lines = out.getvalue().splitlines()
    assert first.startswith("compiling")
    assert [line.split("/")[0].strip() for line in lines] == ["1", "1,800"]


def test_clock() -> None:
    assert [clock(s) for s in (5.0, 65.0, 3661.0)] == ["0:05", "1:05", "1:01:01"]
