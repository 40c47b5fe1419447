"""A prior check is calibrated where sessions come from the prior, and notices readings that do not."""

import json
import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import icmape_agent
from icmape.cli import main
from icmape.errors import UserError
from icmape.evaluation.prior_check import check_prior
from icmape.evaluation.prior_check.check import compare
from icmape.evaluation.prior_check.groups import group_statistics
from icmape.evaluation.prior_check.prepare import prepare
from icmape.evaluation.prior_check.recorded import read_sessions
from icmape.evaluation.prior_check.simulated import simulate
from icmape.evaluation.prior_check.words import words_of
from icmape.play.inference import ExactInference
from icmape.play.open_loop import Schedule
from icmape.play.stop import FixedLength
from icmape.play.team import Team
from icmape.problem import Centralized, Unreliable
from icmape_agent.session.prior import read
from icmape_agent.session.ranks import rank_first, two_sided
from icmape_agent.session.schema import check as check_schema
from icmape_agent.session.statistics import Sessions, Statistic, Words, statistics
from icmape_agent.session.table import conclusion
from tests.evaluation.levels import Levels, level_team, record, unwritten, worlds
from tests.support import small_bandit

WORDS = Words("agent", ("left", "right"), (("depth", "m"),), False)


def by_name(rows):
    return {row.name: float(row.values[0]) for row in rows}


def test_statistics_of_a_session_worked_by_hand():
    # two agents, three rounds; agent 2's reading of the last round is missing
    actions = np.array([[[0, 0], [0, 1], [1, 1]]])
    depth = np.array([[[1, 3], [2, 6], [4, 99]]], float)[..., None]
    here = np.array([[[1, 1], [1, 1], [1, 0]]], bool)
    rows = statistics(Sessions(actions, [depth], here | True, here, np.array([3]), np.array([0.7])), WORDS)
    found = by_name(rows)
    assert found["mean of depth"] == pytest.approx((1 + 3 + 2 + 6 + 4) / 5)
    assert (found["smallest depth"], found["largest depth"]) == (1, 6)
    assert found["spread of depth between agents in a round"] == pytest.approx((1 + 2) / 2)
    assert found["mean of depth of agent 2"] == pytest.approx(4.5)
    assert found["mean of depth at left"] == pytest.approx(2)
    assert found["mean of depth at right"] == pytest.approx(5)
    # around their means, left: -1, 1, 0; right: 1, -1; freedom 2 + 1
    assert found["spread of depth at one action"] == pytest.approx(np.sqrt(4 / 3), abs=1e-4)
    # pairs (1, 2), (2, 4), (3, 6)
    assert found["correlation of successive depth of one agent"] == pytest.approx(1)
    assert found["share of left among actions"] == pytest.approx(0.5)
    assert found["share of actions that repeat the last one"] == pytest.approx(2 / 4)
    assert found["share of pairs of agents that take the same action"] == pytest.approx(2 / 3, abs=1e-4)
    assert (found["rounds before the stop"], found["confidence at the stop"]) == (3, 0.7)


def test_what_a_missing_reading_holds_changes_nothing():
    chance = np.random.default_rng(0)
    here = chance.random((4, 5, 2)) < 0.7
    actions, depth = chance.integers(0, 2, (4, 5, 2)), chance.normal(size=(4, 5, 2, 3))
    spoilt = np.where(here[..., None], depth, 1e6)
    rounds, sure = np.full(4, 5), np.full(4, 0.5)
    for one, other in zip(
        *(statistics(Sessions(actions, [x], here, here, rounds, sure), WORDS) for x in (depth, spoilt)), strict=True
    ):
        np.testing.assert_array_equal(one.values, other.values, err_msg=one.name)


@pytest.mark.parametrize("apart", [6e-8, -6e-8, 1e-6, -1e-6])
@pytest.mark.parametrize("equal", [0.99810201, 0.99815, 0.33335, 0.5, 0.012345, 1e-7, -0.99815, 1013.25005])
def test_values_that_differ_by_rounding_are_ties(equal, apart):
    """Wherever a rounded number would change, alone and beside a statistic that varies."""
    column = np.full(2000, equal)
    column[0] *= 1 + apart
    assert rank_first(column[:, None]).p_value == 1
    assert two_sided(column) == 1
    varying = np.random.default_rng(0).normal(size=2000)
    both = rank_first(np.stack([column, varying], axis=1))
    assert both.p_value == rank_first(varying[:, None]).p_value
    assert both.surprise[0] == 0


def test_values_that_differ_by_rounding_are_ties_among_the_largest():
    """One session in a hundred is surely right: one more of them, larger by a rounding, is not the only one."""
    column = np.random.default_rng(0).uniform(0.5, 0.9, 2000)
    column[:20] = 0.99815
    exact = rank_first(column[:, None]).p_value
    column[0] += 6e-8
    assert rank_first(column[:, None]).p_value == exact >= 20 / 2000


@pytest.mark.parametrize("equal", [0.99815, 0.33335, 1e-7, 1013.25])
def test_a_value_that_no_simulated_session_has_is_no_tie(equal):
    column = np.full(2000, equal)
    column[0] *= 1.01
    assert rank_first(column[:, None]).p_value == 1 / 2000
    assert rank_first(column[:, None]).surprise[0] > 20


def test_a_group_like_the_others_has_a_uniform_p_value():
    """Skewed, dependent, constant, discrete and undefined statistics. False alarm of this test: 1 in 10,000."""
    chance = np.random.default_rng(1)
    p_values = []
    for _ in range(400):
        normal = chance.normal(size=(100, 4))
        skewed, rare = np.exp(2 * normal[:, :2]), np.where(chance.random((100, 1)) < 0.02, 1.0, 0.0)
        undefined = np.where(chance.random((100, 1)) < 0.5, np.nan, normal[:, 2:3] + normal[:, :1])
        p_values.append(rank_first(np.hstack([normal, skewed, rare, undefined, np.ones((100, 1))])).p_value)
    assert stats.kstest(p_values, "uniform").pvalue > 1e-4


def test_statistics_of_groups_worked_by_hand():
    """Two sessions, one statistic; in the second group one session does not define it."""
    places = [np.array([[1.0], [5.0], [0.33335]]), np.array([[4.0], [np.nan], [0.33335001]])]
    groups = group_statistics(places, [0, 0], [Statistic("depth", "m", np.zeros(1))])
    names = ["depth", "standard deviation over sessions", "lowest session", "highest session", "surprise"]
    assert all(name in found.name for name, found in zip(names, groups.names, strict=True))
    expected = [[2.5, np.sqrt(4.5), 1, 4], [5, np.nan, 5, 5], [0.33335, 0, 0.33335, 0.33335]]
    np.testing.assert_allclose(groups.table[:, :4], expected, rtol=1e-6)


def test_several_sessions_like_the_others_have_a_uniform_p_value():
    """Groups of three sessions, two of them alike, with statistics of the session. False alarm: 1 in 10,000."""
    chance, p_values = np.random.default_rng(4), []
    own = [Statistic(name, "", np.zeros(1)) for name in "abcd"]
    for _ in range(300):
        normal = chance.normal(size=(3, 100, 4)) + chance.normal(size=(3, 100, 1))
        normal[2] += 3  # another place
        normal[..., 1] = np.exp(2 * normal[..., 1])
        normal[..., 2] = np.where(chance.random((3, 100)) < 0.3, np.nan, normal[..., 2])
        normal[..., 3] = normal[..., 3] > 1
        p_values.append(rank_first(group_statistics(list(normal), [0, 0, 2], own).table).p_value)
    assert stats.kstest(p_values, "uniform").pvalue > 1e-4


def test_the_rank_of_one_statistic():
    assert two_sided(np.array([5.0, 1, 2, 3, np.nan])) == pytest.approx(0.5)  # the largest of four
    assert two_sided(np.array([2.0, 1, 2, 3])) == 1


@pytest.fixture(scope="module")
def sessions(tmp_path_factory):
    """Six sessions in worlds of the prior, without a fault."""
    folder = tmp_path_factory.mktemp("sessions")
    for world in range(6):
        record(folder, world)
    return read_sessions(level_team(), [str(folder)])


def test_p_values_of_sessions_from_the_prior_are_uniform(sessions):
    """60 groups, each ranked among 99 others that no other group uses. False alarm of this test: 1 in 1,000."""
    table = simulate(level_team(), sessions[:1], words_of(Levels()), 6000, seed=5)[0]
    p_values = [rank_first(block).p_value for block in table.reshape(60, 100, -1)]
    assert stats.kstest(p_values, "uniform").pvalue > 1e-3


@pytest.mark.slow
def test_p_values_of_recorded_sessions_are_uniform(tmp_path):
    """Sessions of `session`, from their journals, alone and in threes; each is ranked among simulated ones that no
    other is ranked among. False alarm of this test: 1 in 500."""
    count, among, three = 150, 199, 3
    for world in range(count):
        record(tmp_path, world, count=count)
    rows = read_sessions(level_team(), [str(tmp_path)])
    words = words_of(Levels())
    own = [statistics(row.sessions, words) for row in rows]
    values = np.array([[statistic.values[0] for statistic in row] for row in own])
    simulated = simulate(level_team(), rows[:1], words, count * among, seed=5)[0].reshape(count, among, -1)
    tables = np.concatenate([values[:, None], simulated], axis=1)
    alone = [rank_first(table).p_value for table in tables]
    places = tables.reshape(count // three, three, among + 1, -1)
    grouped = [rank_first(group_statistics(list(place), [0] * three, own[0]).table).p_value for place in places]
    for p_values in (alone, grouped):
        assert stats.kstest(p_values, "uniform").pvalue > 1e-3


def test_a_journal_says_what_was_played(sessions):
    """The statistics of a recorded session are those of the simulated one whose readings were told."""
    readings, confidence = worlds()
    for world, row in enumerate(sessions):
        np.testing.assert_array_equal(row.sessions.readings[0][0], readings[world])
        assert row.sessions.confidence[0] == pytest.approx(confidence[world], abs=1e-5)
        assert (row.rounds, row.ended, row.overruled, row.missing) == (8, True, 0, 0)


def test_sessions_of_the_prior_fit(sessions):
    check = compare(level_team(), sessions, worlds=1200)
    assert check.fits
    assert check.p_value > 0.05  # of these worlds and this seed
    assert not check.remarks
    assert "fits: nothing in these 6 sessions is unusual" in str(check)


FAULTS = {
    "shifted": lambda x: x + 1.5,
    "noisier": lambda x: x + np.random.default_rng(3).normal(size=x.shape),
    "stuck": lambda x: np.where(np.arange(8)[:, None, None] > 1, 0.25, x),
    "one stuck": lambda x: np.where(np.arange(2)[:, None] == 1, 0.25, x),
    "swapped": lambda x: x[:, ::-1],
    "ten times": lambda x: 10 * x,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_four_sessions_show_a_fault(fault, tmp_path):
    for world in range(10, 14):
        record(tmp_path, world, FAULTS[fault])
    check = check_prior(level_team(), [str(tmp_path)], worlds=1200)
    assert not check.fits, check
    assert "WARNING: these 4 sessions do not look like" in str(check)
    blamed = {"noisier": "within a reading", "swapped": "at one action", "shifted": "mean of level"}
    if fault in blamed:
        assert any(blamed[fault] in row.name for row in check.most_surprising()[:5]), check
    assert all(row.unit == "m" for row in check.rows if row.name.startswith("mean of"))


def test_a_session_without_a_journal_is_what_a_journal_says(sessions):
    """So the tests below need no journals."""
    for world, row in enumerate(sessions):
        made = unwritten(world)
        for one, other in zip(made.sessions, row.sessions, strict=True):
            jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-5), one, other)
        np.testing.assert_array_equal(made.joint, row.joint)


@pytest.mark.parametrize("fault", ["shifted", "noisier", "stuck"])
def test_one_bad_session_of_twenty_shows(fault):
    """The mean over the sessions hides it: p was 0.04 to 0.2 when it was all that counted."""
    rows = [unwritten(world, FAULTS[fault] if world == 7 else lambda x: x) for world in range(20)]
    check = compare(level_team(), rows, worlds=4000)
    assert not check.fits, check
    assert check.by_p_value()[0]["folder"] == "world-7"
    assert check.by_p_value()[0]["p_value"] < 0.002
    lines = str(check).splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("p of each session alone"))
    assert "world-7: " in lines[first + 1]
    assert lines[first + 11] == "  and 10 more with larger p"


def test_opposite_faults_do_not_cancel():
    """Eight sessions that are shifted by +3 and -3 in turn."""
    rows = [unwritten(world, lambda x, sign=(-1) ** world: x + 3 * sign) for world in range(8)]
    check = compare(level_team(), rows, worlds=1600)
    assert not check.fits, check
    assert "standard deviation over sessions" in check.rows[0].name
    assert next(row.p_value for row in check.rows if row.name == "mean of level") > 0.05  # what counted alone before


def test_twenty_good_sessions_fit():
    check = compare(level_team(), [unwritten(world) for world in range(20)], worlds=4000)
    assert check.p_value > 0.05, check  # of these worlds and this seed
    p_values = [row["p_value"] for row in check.sessions]
    assert [row["folder"] for row in check.sessions] == [f"world-{world}" for world in range(20)]
    assert [row["p_value"] for row in check.by_p_value()] == sorted(p_values)


def test_a_session_that_is_not_over_is_compared_up_to_its_round(tmp_path):
    record(tmp_path, 20, rounds=4)
    (row,) = read_sessions(level_team(), [str(tmp_path)])
    assert (row.rounds, row.ended) == (4, False)
    check = compare(level_team(), [row], worlds=1000)
    assert check.fits
    (so_far,) = (row for row in check.rows if row.name == "rounds before the stop")
    assert so_far.low == so_far.high == so_far.recorded == 4
    assert "not ended by the team" in check.remarks[0]


def test_overruled_actions_are_repeated_in_simulated_sessions(tmp_path):
    with level_team().session(tmp_path / "s") as session:
        for number in range(5):
            for gauge in range(2):
                session.tell(gauge, 2, worlds()[0][0][number, gauge].tolist(), round=number)
        session.missed(1, 2, round=5)
        session.tell(0, 2, [0.0, 0.1, 0.2], round=5)
        session.stop(round=6)
    (row,) = read_sessions(level_team(), [str(tmp_path)])
    # of rounds 0..5, each gauge would read place 3 twice
    assert (row.rounds, row.overruled, row.missing) == (6, 8, 1)
    check = compare(level_team(), [row], worlds=1000)
    found = {entry.name: entry for entry in check.rows}
    share = found["share of action 3 among actions"]
    assert share.low == share.high == share.recorded == 1
    assert any("did not do what the team chose (8 actions)" in remark for remark in check.remarks)
    assert any("1 readings are missing" in remark for remark in check.remarks)


def test_too_few_worlds_are_refused(sessions):
    with pytest.raises(UserError, match="give --worlds 600 or more"):
        compare(level_team(), sessions, worlds=300)
    with pytest.raises(UserError, match="lies between 0 and 1"):
        compare(level_team(), sessions, level=2.0)


def test_words_of_adapters_are_those_of_the_problem_inside():
    inside = words_of(small_bandit())
    assert words_of(Centralized(small_bandit())) == inside
    assert words_of(Unreliable(small_bandit())) == inside._replace(fails=True)
    assert inside.actions == ["arm 1", "arm 2"]
    assert words_of(Levels()).actions == ["action 1", "action 2", "action 3"]


def test_the_command_says_so_by_its_exit_code(tmp_path, capsys):
    """A session of a shipped kind: a fixed schedule with the exact posterior of a small bandit."""
    schedule = Schedule(jnp.array([[0, 0, 0], [1, 1, 1]], jnp.int32), 3)
    team = Team(small_bandit(), schedule, FixedLength(4), ExactInference())
    team.save(tmp_path / "team.safetensors")
    fine = [
        [(1, 1, 0), (0, 0, 1), (1, 1, 1), (0, 0, 0)],
        [(0, 0, 0), (1, 0, 0), (0, 0, 0), (0, 1, 0)],
        [(0, 0, 0), (0, 0, 0), (0, 0, 0), (0, 0, 0)],
    ]
    for name, three in (("fine", fine), ("odd", [[(1, 0, 0)] * 4] * 3)):
        for copy, readings in enumerate(three):
            with team.session(tmp_path / name / f"{copy}") as session:
                for number, row in enumerate(readings):
                    for player, reading in enumerate(row):
                        session.tell(player, session.ask(player), reading, round=number)
                session.ask(0)
    command = ["check-prior", str(tmp_path / "team.safetensors"), "--worlds", "1000"]
    assert main([*command, str(tmp_path / "fine"), "--out", str(tmp_path / "fine.json")]) == 0
    assert "fits" in capsys.readouterr().out
    assert json.loads((tmp_path / "fine.json").read_text())["fits"] is True
    assert main([*command, str(tmp_path / "odd"), "--out", str(tmp_path / "odd.html")]) == 1
    said = capsys.readouterr().out
    assert "mean of result of player 1" in said
    page = (tmp_path / "odd.html").read_text()
    assert "WARNING: these 3 sessions do not look like" in page
    assert re.search(r"mean of result of player 1[^<]*: recorded 1 \(", page)
    assert "p alone" in page
    assert main([*command, str(tmp_path / "odd"), "--out", str(tmp_path / "odd.png")]) == 2
    assert main([*command, str(tmp_path / "none")]) == 2
    assert "holds no session" in capsys.readouterr().err


def test_a_prepared_folder_makes_sessions_warn_with_and_without_jax(tmp_path):
    """The warning is that of the rank among the same simulated sessions, in both programs."""
    (path,) = prepare(level_team(), [str(tmp_path)], worlds=1000, level=0.01, seed=0)
    assert read(path).table.shape[0] == 1000
    fine, odd = record(tmp_path, 30), record(tmp_path, 31, lambda x: x + 8)
    with level_team().session(fine, write=False) as session:
        assert "warning" not in session.handle({"type": "answer"})
    with level_team().session(odd, write=False) as session:
        reply = session.handle({"type": "answer"})
        assert "does not look like the worlds that the team was trained on (p = 0.001)" in reply["warning"]
        assert "mean of level" in reply["warning"]
        assert "One good session in 100 warns: check all of them with `icmape check-prior`" in reply["warning"]
        check_schema(reply, "reply", "the reply")
        assert conclusion(reply).splitlines()[-1] == f"warning: {reply['warning']}"
    level_team().save(tmp_path / "team.safetensors")
    with icmape_agent.load(tmp_path / "team.safetensors").session(odd, write=False) as session:
        assert session.handle({"type": "answer"})["warning"] == reply["warning"]


def test_sessions_that_are_not_over_and_folders_that_are_not_prepared_do_not_warn(tmp_path):
    with level_team().session(record(tmp_path / "a", 31, lambda x: x + 8), write=False) as session:
        assert "warning" not in session.handle({"type": "answer"})
    prepare(level_team(), [str(tmp_path / "b")], worlds=1000, level=0.01, seed=0)
    with level_team().session(record(tmp_path / "b", 31, lambda x: x + 8, rounds=4), write=False) as session:
        assert "warning" not in session.handle({"type": "answer", "early": True})


def test_a_damaged_file_of_simulated_sessions_does_not_keep_a_team_from_answering(tmp_path):
    (path,) = prepare(level_team(), [str(tmp_path)], worlds=1000, level=0.01, seed=0)
    path.write_bytes(path.read_bytes()[:-40])
    with level_team().session(record(tmp_path, 32), write=False) as session:
        reply = session.handle({"type": "answer"})
    assert reply["name"]
    assert "holds no simulated sessions" in reply["warning"]
