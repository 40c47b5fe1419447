"""Tables say what analyses say, in Markdown and in CSV; what is missing is a dash."""

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest

from icmape.evaluation.robustness import Sweep
from icmape.plot import chapters as c
from icmape.plot.items import DASH, Plot, Table, number, write_items
from icmape.plot.page import Fold
from icmape.plot.priors import sweep_table
from icmape.plot.team_charts import stoppers
from paper import printed as paper
from paper.collected import NOT_RUN
from paper.topics import Problem, Topic
from tests.plot.analyses import analysis, points

TABLE = Table("t", "What is | what", ["a", "b|c"], [["1", "x|y"], ["2", 'say "z", or not']], "Counted once.")


def test_a_table_in_markdown_by_hand() -> None:
    assert TABLE.markdown() == (
        '**What is | what**\n\n| a | b\\|c |\n|---|---:|\n| 1 | x\\|y |\n| 2 | say "z", or not |\n\nCounted once.\n'
    )


def test_a_table_in_csv_reads_back() -> None:
    assert list(csv.reader(io.StringIO(TABLE.csv()))) == [list(TABLE.headings), *map(list, TABLE.rows)]
    assert TABLE.csv().splitlines()[0] == "a,b|c"


def test_a_csv_file_has_plain_numbers_where_there_are_such() -> None:
    """Every team is a row; what was not run has none."""
    raw = replace(TABLE, raw=(["n"], [[0.1 + 0.2], [None]]))
    assert raw.csv() == 'n\n0.30000000000000004\n""\n'
    assert raw.markdown() == TABLE.markdown()
    teams = [analysis(0.90, 13.0), analysis(0.9234, 14.0)]
    table = c.performance_table("p", "P", {"ours, all": teams, "other": "not run: no time"})
    headings, *rows = csv.reader(io.StringIO(table.csv()))
    assert headings[:6] == ["method", "team", "episodes", "seed", "accuracy", "accuracy_low"]
    assert [row[:5] for row in rows] == [
        ["ours, all", "1", "10000", "0", "0.9"],
        ["ours, all", "2", "10000", "0", "0.9234"],
    ]
    assert [float(cell) for row in rows for cell in row[5:]], "numbers, all of them"


def test_a_posterior_for_another_prior_is_not_called_exact() -> None:
    """Also where it is so for one team of several; teams without any do not matter."""
    exact = analysis()
    other, none = (
        replace(exact, evaluation=replace(exact.evaluation, exact=kind)) for kind in ("misspecified", "none")
    )
    assert c._posterior({"a": exact, "b": none}, "{}'s") == "the exact posterior's"
    assert c._posterior({"a": exact, "b": other}, "{}'s") == "a misspecified posterior's"


def test_numbers_have_their_spread_and_nothing_is_a_dash() -> None:
    assert number(None, ".2f") == DASH
    assert number(0.9144, ".3f") == "0.914"
    assert number(0.9144, ".3f", 0.0051) == "0.914 ± 0.005"
    assert number(9050, ",") == "9,050"


def test_items_are_files_of_their_own_and_a_dot_in_a_name_is_part_of_it(tmp_path: Path) -> None:
    plot = Plot("delta-0.05", "P", stoppers({"ours": {1: 1.0}}, "P", "below"))
    paths = write_items([TABLE, plot], tmp_path)
    assert [p.relative_to(tmp_path).as_posix() for p in paths] == [
        "tables/t.md",
        "tables/t.csv",
        "figures/delta-0.05.svg",
    ]
    assert all(path.stat().st_size > 0 for path in paths)


def test_long_tables_have_files_only() -> None:
    long = replace(TABLE, title="long", on_page=False)
    problem = Problem("P", [Topic("", ["Words."], (), [TABLE, long])])
    assert "long" not in problem.markdown()
    assert problem.markdown().startswith("## P\n\nWords.\n\n**What is")
    _, fold = problem.section().parts
    assert isinstance(fold, Fold)
    assert len(fold.parts) == 1
    assert problem.items == [TABLE, long], "as files"


def test_rows_of_what_was_not_run_are_not_on_the_page_but_in_the_files() -> None:
    table = Table("t", "T", ["method", "τ", "remark"], [["ours", "1.0", ""], ["theirs", DASH, NOT_RUN]])
    assert "theirs" in table.markdown()
    assert "theirs" not in Topic("Q", folded=[table]).markdown()
    none = replace(table, rows=table.rows[1:])
    assert "theirs" in Topic("Q", folded=[none]).markdown(), "a table is not empty"


def test_performance_of_seeds_is_their_mean_and_spread() -> None:
    """0.90 and 0.92: mean 0.91, standard deviation 0.014."""
    teams = [analysis(0.90, 13.0), analysis(0.92, 14.0)]
    table = c.performance_table("p", "P", {"ours": teams, "alone": teams[:1], "other": "not run: no time"})
    assert table.rows[0] == ["ours", "2", "0.910 ± 0.014", "13.50 ± 0.71", "12.50 ± 0.71", "1.2%", "0.0123", ""]
    assert table.rows[1][2:4] == ["0.900", "13.00"]
    assert table.rows[2] == ["other", *[DASH] * 6, "not run: no time"]


@pytest.mark.parametrize(
    ("accuracy", "said"),
    [(0.95, ""), (0.898, ""), (0.85, "misses 0.9"), (0.05, "does not beat the answer without data")],
)
def test_what_fails_is_said_to_fail(accuracy: float, said: str) -> None:
    """0.898 of 10,000 may well be 0.9."""
    assert c.performance_table("p", "P", {"x": [analysis(accuracy)]}).rows[0][-1] == said


def test_bins_stand_beside_those_of_the_paper() -> None:
    found = analysis().calibration
    table = c.calibration_table("c", "C", found, paper.CALIBRATION)
    assert len(table.rows) == 10
    assert table.rows[0] == ["[0.0, 0.1)", DASH, DASH, "0.000", "0", "0.03", "0.03", "69,777"]
    one = found.bins[9]
    assert table.rows[9][1:5] == [
        f"{one.confidence:.3f}",
        f"{one.accuracy:.3f}",
        f"{abs(one.gap):.3f}",
        f"{one.size:,}",
    ]
    assert all(len(row) == len(table.headings) for row in table.rows)


def test_trust_without_exact_posterior_and_sets_has_dashes() -> None:
    whole = analysis()
    less = replace(
        whole,
        exact_calibration=None,
        own_calibration=None,
        distance=None,
        credible=(),
        at_stop=replace(whole.at_stop, p_value=None),
    )
    tables = c.trust_tables("trust", {"whole": whole, "less": less})
    assert all(len(row) == len(table.headings) for table in tables for row in table.rows)
    assert [table.rows[0].count(DASH) for table in tables] == [0, 0]
    assert [table.rows[1].count(DASH) for table in tables] == [4, 4]
    assert "0.0210" in tables[1].rows[0]


def test_joint_actions_by_hand() -> None:
    """(0, 1) in all four; then two of four go on with (0, 0); then one of two."""
    table = c.joint_table("j", "J", analysis(), paper.JOINT)
    assert [row[:5] for row in table.rows] == [
        ["1", "arm 1, arm 2", "4", "4", "100.0%"],
        ["2", "arm 1, arm 1", "2", "4", "50.0%"],
        ["3", "arm 1, arm 1", "1", "2", "50.0%"],
    ]
    assert table.rows[0][5:] == ["STOP, STOP, STOP, STOP, STOP", "100.0%"], "the hand-made team has two arms"


def test_habits_and_stops_by_hand() -> None:
    table = c.habits_table("h", "H", analysis())
    assert table.headings == ["round", "agent 1", "agent 2", "active"]
    assert table.rows[0] == ["1", "arm 1 (100.0%)", "arm 2 (100.0%)", "4"]
    assert table.rows[3] == ["4", "STOP (100.0%)", "STOP (100.0%)", "1"]
    stops = c.stops_table("s", "S", analysis())
    assert stops.rows == [[who, "1", "33.3%", "25.0%"] for who in ("{1}", "{2}", "{1, 2}")]
    assert stops.note == "3 of 4 episodes ended voluntarily."
    assert c.stop_shares(analysis()) == pytest.approx({1: 2 / 3, 2: 1 / 3})


def test_every_point_of_a_sweep_is_a_row() -> None:
    sweep = Sweep("s", {"mean_alpha": (0.5, 1.0), "mean_beta": (3.0,)})
    table = sweep_table("s", "S", points(dict(sweep.axes)))
    assert table.headings[:3] == ["mean_alpha", "mean_beta", "accuracy"]
    assert table.rows[1] == ["1.0", "3.0", "0.8100", "0.7900–0.8300", "6.000", "0.100", "0.0200", "500"]
    assert not table.on_page
