"""What is said of an answer: of what it is sure, and where it is."""

import pytest

import icmape_agent
from icmape.play.sessions import crew
from icmape.play.team_files import load
from icmape_agent.answers import Answers, chance_of_highest
from icmape_agent.files import _add_k
from icmape_agent.session import Crew
from icmape_agent.session.schema import check
from icmape_agent.session.table import conclusion

TEAM = "nitrate-synthetic"
READING = [1.9, 2.3, 1.7, 2.0, 2.2]


@pytest.fixture(scope="module")
def reply(tmp_path_factory) -> dict:
    """The answer of a light team after one round."""
    with icmape_agent.load(TEAM).session(tmp_path_factory.mktemp("s")) as session:
        for agent in range(6):
            session.tell(agent, session.ask(agent), READING)
        session.stop()
        return session.handle({"type": "answer"})


def test_an_answer_that_may_be_any_of_several_says_so_and_names_its_place(reply):
    check(reply, "reply", "the reply")
    assert reply["chance"] == "chance to be one of the 5 highest"
    sure = f"chance to be one of the 5 highest: {100 * reply['confidence']:.1f} %"
    assert conclusion(reply).splitlines()[0] == (
        f"answer: {reply['name']}, {reply['near']} ({sure}), from 1 round of all agents"
    )
    assert "p = " not in conclusion(reply)


def test_a_printed_answer_says_the_same():
    rows, readings = [[0, 7, 14, 21, 28, 35]], [[READING] * 6]
    for team in (load(TEAM), icmape_agent.load(TEAM)):
        answer = team.posterior(rows, readings)
        sure = f"{100 * answer.confidence:.1f} %"
        assert str(answer) == f"{answer.name} (chance to be one of the 5 highest: {sure})"


def test_no_answer_is_rounded_to_certainty(reply):
    assert "(chance to be one of the 5 highest: > 99.9 %)" in conclusion({**reply, "confidence": 0.99996})


def test_a_team_and_its_light_twin_say_the_same(reply, tmp_path):
    """And they are the words of the crews' pages."""
    known: Crew = crew(load(TEAM))
    with icmape_agent.load(TEAM).session(tmp_path) as session:
        light = session.crew
        assert light.chance == known.chance == reply["chance"]
        assert [light.near(cell) for cell in range(136)] == [known.near(cell) for cell in range(136)]
    assert reply["near"] == known.near(reply["decision"])


@pytest.mark.parametrize("name", ["bandit-quick", "signal"])
def test_one_right_answer_that_is_no_place_needs_no_words(name, tmp_path):
    with icmape_agent.load(name).session(tmp_path) as session:
        assert (session.crew.chance, session.crew.near([0, 0])) == ("", "")


@pytest.mark.parametrize("name", ["nitrate", "nitrate-n1", TEAM])
def test_files_that_do_not_say_how_many_answers_are_right_are_read_with_those_of_their_problem(name):
    assert icmape_agent.load(name).answers.k == load(name).problem.hypotheses.k == 5


@pytest.mark.parametrize(
    "problem", ["[]", '{"arguments": []}', '{"arguments": {"k": "5"}}', '{"arguments": {"k": 999}}']
)
def test_a_problem_that_does_not_say_it_is_no_error(problem):
    answers = {"kind": "topk", "shape": [9], "names": None}
    _add_k(answers, {"problem": problem})
    assert "k" not in answers


def test_how_many_answers_are_right_is_checked():
    cells = {"kind": "topk", "shape": [4], "names": None}
    assert Answers.read({**cells, "k": 3}).chance == "chance to be one of the 3 highest"
    assert Answers.read(cells).chance == chance_of_highest(None) == "chance to be among the highest"
    assert Answers.read({**cells, "k": 1}).chance == "chance to be the highest"
    for wrong in ({**cells, "k": 5}, {**cells, "k": 0}, {**cells, "k": True}, {**cells, "kind": "categorical", "k": 1}):
        with pytest.raises(ValueError, match="right"):
            Answers.read(wrong)
