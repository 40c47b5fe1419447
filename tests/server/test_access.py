"""Who sees what: a wrong link nothing, an agent its own, the coordinator everything."""

import dataclasses
import json
import logging
import re
from urllib.parse import urljoin

import pytest

from icmape_agent.look import stylesheet
from icmape_agent.server.app import AGENT_FILES, COORDINATOR_FILES
from icmape_agent.server.links import COORDINATOR
from tests.server.support import running, team, tell

PAGES = ("", "state", "about.json", "team.json", "messages", "journal", "answer?early", "worker.js", "links", "x/y")


@pytest.mark.parametrize("method", ["GET", "POST", "HEAD", "PUT", "OPTIONS", "DELETE"])
def test_without_a_valid_token_every_path_is_the_same_401(server, method):
    real = server.service.links.agents[0]
    wrong = ["/", "//", "/favicon.ico", "/robots.txt", "/state", f"/{real[:-1]}/", f"/{real}x/", "/" + "A" * 32 + "/"]
    replies = [server.ask(method, path + page) for path in wrong for page in PAGES]
    assert {reply.status for reply in replies} == {401}
    assert len({reply.body for reply in replies}) == 1, "nothing tells what is there"
    assert len({json.dumps(reply.headers) for reply in replies}) == 1
    if method != "HEAD":
        assert replies[0].json["error"]["kind"] == "forbidden"


def test_an_agents_link_reaches_its_own_page_only(server):
    assert server.get("", 0).status == 200
    assert {page: server.get(page, 0).status for page in ("journal", "answer", "answer?early", "coordinator.js")} == {
        "journal": 404,
        "answer": 404,
        "answer?early": 404,
        "coordinator.js": 404,
    }
    for message in (tell(1, 0), {"type": "answer", "early": True}, {"type": "show"}, {"type": "status"}):
        reply = server.send(message, holder=0)
        assert (reply.status, reply.json["error"]["kind"]) == (403, "forbidden")
    assert server.session.entries(1) == []


def test_messages_are_those_of_the_session(server):
    reply = server.send(tell(2, 0, 1, 0, id="a"), holder=2)
    assert (reply.status, reply.json) == (
        200,
        {"ok": True, "type": "tell", "agent": 2, "round": 0, "late": False, "id": "a"},
    )
    assert server.send(tell(2, 0, 1, 0, id="a"), holder=2).body == reply.body, "a repeat is the same tell"
    assert server.send(tell(2, 0, 1, 1), holder=2).status == 409
    assert server.send(tell(2, 1, 1, 7), holder=2).status == 422
    own = server.get("state", 2).json["entries"]
    assert [(entry["type"], entry["round"], entry["reading"]) for entry in own] == [("tell", 0, 0)]
    assert server.get("state", 1).json["entries"] == []


def test_pages_have_the_colours_of_all_pages(server):
    for holder in (0, COORDINATOR):
        served = server.get("page.css", holder).body.decode()
        assert served.startswith(stylesheet())
        named = set(re.findall(r"var\(--([a-z0-9-]+)\)", served)) - {"columns"}  # set by the script
        assert named <= set(re.findall(r"--([a-z0-9-]+):", stylesheet()))
        assert not re.search("#[0-9a-f]{3,6}", served.removeprefix(stylesheet())), "no colours but these"


def test_every_page_has_its_files_and_no_address_outside(server):
    for holder, names in ((0, AGENT_FILES), (COORDINATOR, COORDINATOR_FILES)):
        page = server.get("", holder).body.decode()
        for name in names:
            reply = server.get(name, holder)
            assert reply.status == 200
            assert reply.headers["cache-control"] == "private, no-cache"
            outside = reply.body.replace(b"http://www.w3.org/", b"")
            assert b"http:" not in outside
            assert b"https:" not in outside
        assert "http" not in page
        assert "style=" not in page
        assert "<script>" not in page


def test_every_reply_says_what_browsers_must_not_do(server):
    token = server.service.links.agents[0]
    for reply in (server.get("", 0), server.get("state", 0), server.ask("GET", "/x"), server.get("nothing", 0)):
        assert "default-src 'none'" in reply.headers["content-security-policy"]
        assert "unsafe" not in reply.headers["content-security-policy"]
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["referrer-policy"] == "no-referrer"
        assert reply.headers["x-frame-options"] == "DENY"
        assert "server" not in reply.headers
        assert token.encode() not in reply.body
    assert server.get("state", 0).headers["cache-control"] == "no-store"
    redirect = server.ask("GET", server.path(0).rstrip("/"))
    assert (redirect.status, redirect.headers["location"]) == (307, f"./{token}/")
    behind = "https://field.example.org/july"
    assert urljoin(f"{behind}/{token}", redirect.headers["location"]) == f"{behind}/{token}/", "under a proxy"


def test_the_page_gets_the_agents_program_and_nothing_of_the_inference(server):
    program = server.get("team.json", 0).json["program"]
    assert sorted(program["functions"]) == ["move", "open"]
    assert "answers" not in program
    tag = server.get("team.json", 0).headers["etag"]
    again = server.ask("GET", server.path(0) + "team.json", headers={"If-None-Match": tag})
    assert (again.status, again.body) == (304, b"")


def test_the_coordinator_sees_stops_and_gets_the_answer(tmp_path):
    with running(tmp_path) as server:
        agents = range(team().gate.sizes.agents)
        for agent in agents:
            server.send(tell(agent, 0, 0, 1), holder=agent)
        assert server.get("answer").status == 409, "nobody stopped"
        early = server.get("answer?early").json
        assert early["rounds"] == [0]
        assert server.get("state", 1).json["stopped"] is False
        assert server.send({"type": "stop"}).status == 200
        assert all(server.get("state", agent).json["stopped"] for agent in agents)
        answer = server.get("answer").json
        assert (answer["name"], answer["confidence"]) == (early["name"], early["confidence"])
        chances = [chance for _, chance, _ in answer["ranks"]]
        assert chances == sorted(chances, reverse=True)
        assert answer["ranks"][0] == [answer["name"], pytest.approx(answer["confidence"], abs=1e-5), ""]
        assert not {"chance", "near"} & set(answer), "one answer is right, and it is no place"
        state = server.get("state").json
        assert state["stops"] == [{"agent": None, "round": 1}]
        assert [agent["readings"] for agent in state["agents"]] == [1] * len(agents)
        assert (state["whole"], state["partial"]) == ([0], []), "as in the answer"
        assert server.get("journal").body == (tmp_path / "journal.jsonl").read_bytes()


def test_rounds_in_part_count_if_the_team_takes_missing_readings(tmp_path):
    with running(tmp_path) as server:
        for agent, number in ((0, 0), (1, 0), (2, 0), (0, 1), (0, 2)):
            server.send(tell(agent, number), holder=agent)
        state = server.get("state").json
        assert (state["whole"], state["partial"]) == ([0], []), "players load arms, and two told nothing"
        for agent, number in ((1, 1), (2, 1)):
            server.send({"type": "missed", "agent": agent, "round": number, "action": 0}, holder=agent)
        state = server.get("state").json
        assert (state["whole"], state["partial"]) == ([0], [1])
        crew = server.session.crew
        server.session.crew = dataclasses.replace(crew, takes_missing=False)
        state = server.get("state").json
        assert (state["whole"], state["partial"]) == ([0], [])


def test_no_token_is_logged(server, caplog):
    with caplog.at_level(logging.DEBUG):
        server.get("", 0)
        server.send({"type": "nothing"}, 0)
        server.raw(b"GET " + server.path(0).encode() + b"\x00 HTTP/1.1\r\n\r\n")
    assert server.service.links.agents[0] not in caplog.text
