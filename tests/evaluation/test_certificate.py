"""A certificate is granted where the counts allow it, to the world, and says what it is worth."""

import json
import math
from dataclasses import replace

import jax.numpy as jnp
import pytest

from icmape import UserError, cli
from icmape.evaluation import certificate as module
from icmape.evaluation.certificate import SEEDS, Certificate, certificate_of, certify, percent
from icmape.evaluation.intervals import lower_bound
from icmape.play.episodes import RESERVED, play
from icmape.play.inference import ExactInference
from icmape.play.open_loop import Schedule
from icmape.play.stop import FixedLength
from icmape.play.team import Team
from icmape.zoo.bandit.bandit import Bandit
from tests.support import tally
from tests.zoo.hotspots import YEARS, small_hotspot

WORLDS = 300
PRIOR = {"kind": "bandit", "arguments": {"arms": 3, "mean_alpha": 0.5, "data": None, "years": list(range(2001, 2020))}}
REST = {"seed": 0, "problem": PRIOR, "given": "", "team": "", "provenance": {}, "card": {}}


def counted(right: int, worlds: int = 10_000, delta: float = 0.1, **rest) -> Certificate:
    """Of so many right answers; episodes end after 2 or 4 rounds."""
    stops = [0, worlds // 2, 0, worlds - worlds // 2, 0]
    return certificate_of(tally(right, stops), delta=delta, level=0.95, **{**REST, **rest})


@pytest.fixture(scope="module")
def team() -> Team:
    """Both players on the only arm for three rounds: wrong if it serves two, but six draws pay nothing."""
    policy = Schedule(jnp.zeros((1, 2), jnp.int32), 2)
    return Team(Bandit(1, 2, 6), policy, FixedLength(3), ExactInference(), 0.1, json.dumps({"seed": 7}))


@pytest.fixture(scope="module")
def granted(team: Team) -> Certificate:
    return certify(team, worlds=WORLDS, digest="abc")


def test_it_takes_9050_of_ten_thousand_and_one_fewer_is_refused() -> None:
    enough, short = counted(9050), counted(9049)
    assert (enough.granted, enough.needed) == (True, 9050)
    assert (short.granted, short.needed) == (False, 9050)
    assert enough.bound >= 0.9 > short.bound


@pytest.mark.parametrize(("worlds", "delta"), [(100, 0.1), (500, 0.05), (1000, 0.2)])
def test_it_is_granted_from_just_the_needed_number_on(worlds: int, delta: float) -> None:
    needed = counted(0, worlds, delta).needed
    assert [counted(right, worlds, delta).granted for right in range(needed - 2, needed + 2)] == [0, 0, 1, 1]


def test_too_few_worlds_are_refused_even_if_all_are_right_and_it_says_why() -> None:
    found = counted(28, 28)
    assert (found.granted, found.needed) == (False, None)
    assert "no number of right answers in so few worlds would do" in found.statement


def test_what_is_promised_stands_in_the_statement() -> None:
    found = counted(9150)
    for words in (f"{found.bound:.4f}", "95 %", "9,150 of 10,000 fresh worlds", "0.9", "τ = 3.000"):
        assert words in found.statement
    assert "NOT GRANTED" not in found.statement
    assert "no number" not in found.statement


def test_a_refusal_says_what_would_have_been_enough() -> None:
    said = counted(9000).statement
    assert said.startswith("NOT GRANTED")
    assert "9,000 of 10,000" in said
    assert "it takes 9,050 for 0.9" in said


@pytest.mark.parametrize("right", [9500, 9000])
def test_what_is_not_promised_stands_there_too(right: int) -> None:
    said = counted(right).statement
    assert "average over worlds drawn from the prior" in said
    assert "nothing about any single world" in said
    assert "tries many teams, seeds or numbers of worlds" in said


def test_the_priors_parameters_and_the_seed_stand_there_as_far_as_a_sentence_can_hold_them() -> None:
    assert counted(9500, seed=4).statement.endswith(
        "Prior: bandit with arms 3, mean_alpha 0.5. Seed 4 of those kept for certificates."
    )


@pytest.mark.parametrize(("level", "said"), [(0.95, "95 %"), (0.999, "99.9 %"), (0.68, "68 %"), (0.99999, "99.999 %")])
def test_a_level_is_not_rounded(level: float, said: str) -> None:
    assert percent(level) == said


def test_worlds_made_from_measurements_are_said_to_be_given_these_years() -> None:
    said = counted(9500, given=small_hotspot().given).statement
    assert f"given the made-up measurements of {min(YEARS)}-{max(YEARS)}" in said


def test_a_terminal_gets_short_lines_that_name_every_limit() -> None:
    for found in (counted(9500, given=small_hotspot().given), counted(9000), counted(28, 28)):
        lines = str(found).splitlines()
        assert len(lines) <= 9
        assert max(map(len, lines)) <= 100
    said = " ".join(str(counted(9500, given="the measurements of 2001-2018")).split())
    for words in (
        *("certificate GRANTED: accuracy ≥ ", "right in 9,500 of 10,000 fresh worlds (9,050 needed)"),
        *("τ 3.000", "Prior: bandit with arms 3, mean_alpha 0.5.", "Given the measurements of 2001-2018."),
        *("not in every world, and not for another prior", "this team file unchanged, and once"),
    ):
        assert words in said
    assert "too few worlds for any" in str(counted(28, 28))


def test_the_interval_for_the_stopping_time_by_hand() -> None:
    """Half of them 2, half 4: mean 3, standard deviation √(n / (n-1))."""
    found = counted(90, 100)
    half = 1.959964 * math.sqrt(100 / 99) / 10
    assert (found.tau, found.tau_low, found.tau_high) == pytest.approx((3.0, 3.0 - half, 3.0 + half), abs=1e-6)


def test_a_team_is_judged_in_worlds_kept_for_certificates(team: Team, granted: Certificate) -> None:
    episodes = play(team, WORLDS, RESERVED, exact=0, certifying=True)
    assert granted.right == episodes.at_stop(episodes.team.correct).sum()
    assert granted.bound == lower_bound(granted.right, WORLDS)
    assert granted.granted
    assert (granted.tau, granted.forced, granted.team, granted.card) == (4.0, 0.0, "abc", {"seed": 7})
    assert granted.problem["arguments"]["players"] == 2


def test_seeds_of_certificates_lie_behind_those_of_evaluations(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, honest = [], module.play_parts
    monkeypatch.setattr(
        module, "play_parts", lambda *given, **rest: (asked.append(given[2]), honest(*given, **rest))[1]
    )
    certify(team, worlds=WORLDS, seed=5)
    assert asked == [RESERVED + 5]
    assert RESERVED + SEEDS <= 2**31, "a seed is an int32"


def test_a_promise_that_is_too_high_is_refused(team: Team, granted: Certificate) -> None:
    found = certify(replace(team, delta=0.001), worlds=WORLDS)
    assert (found.granted, found.right) == (False, granted.right)


def test_a_certificate_survives_json(granted: Certificate) -> None:
    values = json.loads(json.dumps(granted.to_dict()))
    assert values["statement"] == granted.statement
    assert Certificate.from_dict(values) == granted


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"worlds": 1}, "at least two worlds; given 1"),
        ({"level": 1.0}, "between 0 and 1"),
        ({"seed": SEEDS}, "seeds 0"),
    ],
)
def test_what_cannot_be_certified_is_refused_before_anything_is_played(team: Team, options: dict, said: str) -> None:
    with pytest.raises(UserError, match=said):
        certify(team, **options)


@pytest.mark.parametrize(("delta", "code", "word"), [(0.1, 0, "GRANTED"), (0.001, 1, "REFUSED")])
def test_the_command_ends_with_1_where_it_refuses(
    team: Team, tmp_path, capsys, delta: float, code: int, word: str
) -> None:
    replace(team, delta=delta).save(tmp_path / "t.safetensors")
    out = tmp_path / "c.json"
    words = ["certify", str(tmp_path / "t.safetensors"), "--worlds", str(WORLDS), "--out", str(out)]
    assert cli.main(words) == code
    assert f"certificate {word}" in capsys.readouterr().out
    found = Certificate.from_dict(json.loads(out.read_text()))
    assert found.granted == (code == 0)
    assert (found.worlds, found.target, len(found.team)) == (WORLDS, 1 - delta, 16)


def test_one_refusal_among_several_teams_is_a_refusal(team: Team, tmp_path, capsys) -> None:
    team.save(tmp_path / "team-1.safetensors")
    replace(team, delta=0.001).save(tmp_path / "team-2.safetensors")
    out = tmp_path / "c.json"
    assert cli.main(["certify", str(tmp_path), "--worlds", str(WORLDS), "--out", str(out)]) == 1
    found = json.loads(out.read_text())["teams"]
    assert {name: one["granted"] for name, one in found.items()} == {"team-1": True, "team-2": False}


def test_a_folder_in_the_place_of_a_file_is_refused(tmp_path, capsys) -> None:
    assert cli.main(["certify", "bandit-quick", "--out", str(tmp_path)]) == 2
    assert "is a folder; expected the name of a JSON file" in " ".join(capsys.readouterr().err.split())
