"""What a report says first is true of its numbers."""

import dataclasses

import pytest

from icmape.evaluation.certificate import Certificate, certificate_of
from icmape.evaluation.tally import Tally
from icmape.plot.page import Cards, Replay
from icmape.plot.team_report import Judged, opening
from icmape.plot.verdict import cards, team_words, times, verdict_sentence
from icmape.problem import Centralized
from icmape.zoo.hotspot.hotspot import Hotspot
from icmape.zoo.signal.signal import Signal
from tests.coins import Coins
from tests.plot.analyses import analysis, evaluation
from tests.support import small_bandit


def certificate(right: int, worlds: int = 500) -> Certificate:
    named = {
        "seed": 0,
        "problem": {"kind": "bandit", "arguments": {"arms": 2}},
        "given": "",
        "team": "",
        "provenance": {},
        "card": {},
    }
    tally = Tally(5)
    tally.stops[4] = tally.team.episodes = worlds
    tally.team.right = right
    return certificate_of(tally, delta=0.1, level=0.95, **named)


def test_the_verdict_names_the_team_its_share_and_its_certificate() -> None:
    said = verdict_sentence(small_bandit(), evaluation(0.878, 5.7), certificate(453))
    assert said == (
        "Three players, each with its own readings only, give the right answer 87.8 times in 100 after 4.7 rounds of "
        "readings; the target of 90 in 100 is not certified: 453 of 500 other worlds were right, too few worlds to be "
        "sure."
    )
    granted = verdict_sentence(small_bandit(), evaluation(0.88), certificate(480))
    assert granted.endswith("the target of 90 in 100 is certified by 480 right answers in 500 other worlds.")
    poor = verdict_sentence(small_bandit(), evaluation(0.88), certificate(440))
    assert poor.endswith("440 of 500 other worlds were right, fewer than 90 in 100.")


def test_a_team_that_is_no_better_than_no_readings_is_said_to_be() -> None:
    poor = dataclasses.replace(evaluation(0.5), no_data_accuracy=0.6)
    said = verdict_sentence(small_bandit(), poor, certificate(480))
    assert said.endswith("that is no better than the best answer without any reading.")


def test_one_controller_sees_all_readings() -> None:
    assert team_words(Centralized(small_bandit())).startswith("Three players with one controller, which sees all")
    assert team_words(Coins(agents=1)) == "One agent"


@pytest.mark.parametrize(
    ("confidence", "said", "tone"),
    [
        (0.96, "too sure by 5.0 points", "bad"),
        (0.86, "right more often than it says, by 5.0 points", ""),
        (0.912, "as sure as it should be on average, within the noise of 10,000 worlds", "good"),
    ],
)
def test_the_card_of_honesty_allows_for_the_noise_of_the_worlds(confidence: float, said: str, tone: str) -> None:
    shown = dataclasses.replace(analysis(), evaluation=evaluation(0.91, confidence=confidence))
    card = cards(small_bandit(), shown, None)[2]
    assert said in card.remark
    assert card.tone == tone


def test_the_card_does_not_contradict_the_figure() -> None:
    shown = dataclasses.replace(analysis(), evaluation=evaluation(0.91, confidence=0.912))
    card = cards(small_bandit(), shown, None, everywhere=False)[2]
    assert (card.remark, card.tone) == (
        "as sure as it should be on average, not at every confidence, in 10,000 worlds",
        "",
    )


def test_four_cards_and_what_the_certificate_needed() -> None:
    right, rounds, honest, certified = cards(small_bandit(), analysis(0.878), certificate(453))
    assert (right.value, right.tone) == ("87.8\u00a0%", "bad")
    assert right.remark == "target 90\u00a0% · without readings 5\u00a0%"
    assert (rounds.value, honest.value) == ("12.5", "87.8\u00a0%")
    assert rounds.remark.startswith("60 readings in all")
    assert cards(Signal(), analysis(), None)[1].remark.startswith("60 cells read in all"), "a window has many cells"
    assert (certified.value, certified.tone) == ("refused", "bad")
    assert certified.remark == "453 of 500 other worlds right; 462 needed for 95 % confidence"
    assert cards(small_bandit(), analysis(), certificate(480))[3].value == "granted"


def test_every_problem_asks_its_question() -> None:
    questions = [small_bandit().question, Signal().question, Hotspot(synthetic=0, years=[2001]).question]
    assert questions == [
        "How many players can each of 2 arms serve at once?",
        "In which of 625 cells is the source of the signal?",
        "Where is the nitrate highest?",
    ]
    assert Coins().question == "Which hypothesis is true?"
    assert Centralized(small_bandit()).question == questions[0]


def test_of_several_methods_the_first_comes_before_the_replay() -> None:
    scenes = [{"title": "t", "ending": "e"}]
    first, second = (Judged(name, {"1": analysis()}, {}, (), (), scenes) for name in ("ours", "td3"))
    shown = opening([first, second], small_bandit(), "bandit")
    assert [type(part) for part in shown.parts] == [Cards, Replay, Cards]
    assert [part.name for part in shown.parts if isinstance(part, Cards)] == ["ours", "td3"]
    assert shown.sentence.startswith("ours: Three players")
    assert shown.above == "Report on ours and td3 · problem bandit"
    alone = opening([first], small_bandit(), "bandit")
    assert alone.sentence.startswith("Three players")
    assert [type(part) for part in alone.parts] == [Cards, Replay]


def test_times_in_100() -> None:
    assert [times(share) for share in (0.9, 0.8775, 1.0)] == ["90", "87.8", "100"]
