"""The live display shows what a person waits for."""

import io
import logging
import re

import pytest
from rich.console import Console

from icmape.learning.config import Config
from icmape.learning.phases import TRAINING, Phase, begin
from icmape.learning.run import Progress
from icmape.plot.progress import COLUMNS, WIDTH, Frame, clock, display, phases_shown, render
from icmape.settings import override

ROW = dict.fromkeys(COLUMNS, 0.5) | {"seed": 215, "tau": 6.25, "critic_loss": None}
REPORT = Progress(iteration=900, iterations=1800, seconds=70.0, left=3700.0, steps_per_second=8123.0, rows=[ROW])


def shown(**options) -> str:
    out = io.StringIO()
    Console(file=out, width=120, **options).print(render(REPORT, Config()))
    return out.getvalue()


def printed(frame: Frame, **options) -> str:
    out = io.StringIO()
    Console(file=out, width=120, **options).print(frame)
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
        begin("judging", "the best team", "up to a minute")
    *lines, last = out.getvalue().splitlines()
    assert last == "judging: the best team (up to a minute)"
    assert [line.split("/")[0].strip() for line in lines] == ["1", "1,800"]


def test_the_best_team_comes_with_the_worlds_that_chose_it() -> None:
    """√(0.92 · 0.08 / 2,048) is 0.006."""
    best = REPORT._replace(rows=[ROW | {"best_accuracy": 0.92, "best_tau": 5.5}])
    out, config = io.StringIO(), override(Config(), {"validation_episodes": 2048})
    with display(config, Console(file=out, width=200)) as show:
        show(REPORT._replace(rows=[ROW | {"best_accuracy": 0.0}]))
        show(best._replace(iteration=REPORT.iterations))
    first, last = out.getvalue().splitlines()
    assert "best 0.000  at τ" in first, "there is none yet"
    assert "best 0.920 (standard error 0.006, 2,048 worlds)  at τ 5.50" in last
    frame = Frame(config)
    frame.show(best)
    assert "best: on 2,048 validation worlds, standard error 0.006; the best of many" in printed(frame)


@pytest.mark.parametrize("terminal", [False, True])
def test_slow_work_before_an_evaluation_says_what_it_is_at(terminal: bool) -> None:
    out = io.StringIO()
    console = Console(file=out, width=200, force_terminal=terminal)
    with phases_shown("preparing plan", console):
        if not terminal:
            assert out.getvalue() == "preparing plan\n"
        begin("plan", "16 rounds, 60 of 300 iterations", "12 s left")
        if not terminal:
            assert out.getvalue().endswith("plan: 16 rounds, 60 of 300 iterations (12 s left)\n")
        logging.getLogger("icmape").info("best schedule found")
    assert "best schedule found\n" in out.getvalue()
    assert "plan: 16 rounds, 60 of 300 iterations (12 s left)" in out.getvalue()


def test_a_frame_says_what_the_run_is_at_for_how_long_and_how_long_it_takes() -> None:
    now = [0.0]
    frame = Frame(Config(), lambda: now[0])
    frame.begin(Phase("compiling", "the training", "10 to 60 s"))
    now[0] = 65.0
    assert "compiling 1:05   the training   10 to 60 s" in printed(frame)
    frame.begin(Phase(TRAINING, "1,800 iterations"))
    frame.show(REPORT)
    text = printed(frame)
    assert "✓ compiling 1:05" in text
    assert "1,800 iterations" not in text  # the report says it
    now[0] = 70.0
    frame.begin(Phase("judging", "the best team"))
    text = printed(frame)
    assert text.index("✓ training 0:05") < text.index("judging 0:00   the best team") < text.index("iteration 900")
    frame.end()
    assert "✓ judging 0:00" in printed(frame)


def test_news_of_a_phase_do_not_start_it_again() -> None:
    now = [0.0]
    frame = Frame(Config(), lambda: now[0])
    for seconds, detail in ((0.0, "compiling"), (20.0, "30 of 150 iterations")):
        now[0] = seconds
        frame.begin(Phase("plan", detail))
    now[0] = 25.0
    assert printed(frame).split()[1:] == ["plan", "0:25", "30", "of", "150", "iterations"]
    frame.end(stopped=True)
    assert printed(frame).split() == ["■", "plan", "0:25"]


def test_an_error_leaves_nothing_of_the_frame() -> None:
    out = io.StringIO()
    console = Console(file=out, width=100, force_terminal=True, force_interactive=False)

    def fail() -> None:
        with display(Config(), console):
            begin("settings", "checking the problem")
            raise ValueError("no data")

    with pytest.raises(ValueError, match="no data"):
        fail()
    assert re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", out.getvalue()).strip() == ""


@pytest.mark.parametrize(("width", "losses"), [(120, True), (80, False)])
def test_headings_are_whole_in_a_narrow_terminal_too(width: int, losses: bool) -> None:
    frame, out = Frame(Config()), io.StringIO()
    frame.show(REPORT)
    Console(file=out, width=width).print(frame)
    heading = next(line for line in out.getvalue().splitlines() if line.startswith("seed  "))
    assert "…" not in heading
    assert ("critic" in heading) == losses


def test_courses_of_accuracy_and_tau_are_green_from_where_the_target_holds() -> None:
    frame = Frame(Config())
    for accuracy, tau in ((0.5, 20.0), (0.7, 15.0), (0.95, 10.0)):
        frame.show(REPORT._replace(rows=[ROW | {"accuracy": accuracy, "tau": tau}]))
    line = printed(frame, color_system="standard", force_terminal=True).splitlines()[-1]
    green = re.findall(r"\x1b\[32m(.)\x1b\[0m", line)
    assert green == ["█", "▄"]  # the last of each
    assert re.sub(r"\x1b\[\d+m", "", line).split() == ["seed", "215", "accuracy", "▅▆█", "τ", "█▆▄"]


def test_long_courses_keep_their_width_and_their_last_value() -> None:
    frame = Frame(Config())
    for count in range(1000):
        frame.show(REPORT._replace(rows=[ROW | {"accuracy": count / 1000}]))
    course = printed(frame).splitlines()[-1].split()[3]
    assert len(course) == WIDTH
    assert (course[0], course[-1]) == ("▁", "█")


def test_clock() -> None:
    assert [clock(s) for s in (5.0, 65.0, 3661.0)] == ["0:05", "1:05", "1:01:01"]
