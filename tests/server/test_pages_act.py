"""The page of an agent acts as the light agent does, and loses no reading. Run in Node."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icmape_agent.files import read
from icmape_agent.javascript import RUNTIME_FILE, exported_agent
from icmape_agent.server.app import PAGES
from icmape_agent.session import Session
from tests.server.support import team

HERE = Path(__file__).parent


def in_node(*words: Any, given: str = "") -> str:
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed")
    done = subprocess.run([node, *map(str, words)], input=given, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def drawn_reading(name: str, agent: int, rng: np.random.Generator) -> Any:
    """A reading in the range of a team, in its layout."""
    parts = []
    for part in team(name).gate.parts:
        limits = part.limits_of(agent)
        share = rng.random(part.shape) * (rng.random(part.shape) < (0.01 if len(part.shape) > 1 else 1))  # few hits
        values = limits.low + (np.minimum(limits.high, limits.low + 8) - limits.low) * share
        parts.append(np.where(limits.whole, np.round(values), values).astype(part.dtype).tolist())
    return parts[0] if team(name).gate.layout == 0 else parts


def played(session: Session, agent: int, name: str, rng: np.random.Generator) -> list[tuple[list, dict]]:
    """An agent's entries after each step of a session, and what the session then says: readings, misses, gaps."""
    seen = []
    if team(name).gate.shows_first:
        session.first(agent, drawn_reading(name, agent, rng))
    while not session.stopped:
        number = session.records.agents[agent].open_round
        entries = session.entries(agent)
        reply = session.handle({"type": "ask", "agent": agent}, agent)
        seen.append((entries, reply))
        if reply["stop"] or len(seen) > 12:
            break
        kind = rng.choice(["tell", "missed", "ahead"], p=[0.7, 0.15, 0.15])
        if kind == "missed":
            session.missed(agent, reply["action"] if rng.random() < 0.5 else None, round=number)
            if rng.random() < 0.3:  # it came after all
                done = session.records.agents[agent].misses[number].get("action", reply["action"])
                session.tell(agent, done, drawn_reading(name, agent, rng), round=number)
            continue
        if kind == "ahead" and number + 2 < team(name).gate.sizes.horizon - 1:
            session.tell(agent, reply["action"], drawn_reading(name, agent, rng), round=number + 1)
        session.tell(agent, reply["action"], drawn_reading(name, agent, rng), round=number)
    return seen


@pytest.mark.parametrize(("name", "episodes"), [("bandit-quick", 12), ("nitrate-n1", 6), ("signal", 2)])
def test_the_page_chooses_what_the_light_agent_chooses(name, episodes, tmp_path):
    """With misses, readings that come late, and readings of later rounds; every choice, stops too."""
    rng, asked = np.random.default_rng(1), []
    agents = team(name).gate.sizes.agents
    for episode in range(episodes):
        for agent in range(min(agents, 3)):
            with team(name).session(tmp_path / f"{episode}-{agent}") as session:
                asked += [(agent, *step) for step in played(session, agent, name, rng)]
    file = read(name)
    (tmp_path / "team.json").write_bytes(exported_agent(file.described, file.tensors, file.delta))
    lines = [json.dumps({"agent": agent, "entries": entries}) for agent, entries, _ in asked]
    files = RUNTIME_FILE, PAGES / "acting.js", tmp_path / "team.json"
    out = in_node(HERE / "next_actions.js", *files, given="\n".join(lines))
    for line, (_, _, reply) in zip(out.splitlines(), asked, strict=True):
        step = json.loads(line)
        assert step["round"] == reply["round"]
        assert step["stop"] == reply["stop"]
        assert step.get("action") == reply["action"]
    stops = sum(reply["stop"] for _, _, reply in asked)
    assert len(asked) > 20
    assert 0 < stops < len(asked)


def test_a_kept_reading_reaches_the_journal_whatever_the_network_does():
    """300 trials: requests and replies get lost, others reply, two tabs are open, and readings are corrected."""
    counts = json.loads(in_node(HERE / "outbox_trials.js", PAGES / "outbox.js"))
    assert (counts["trials"], counts["lost"], counts["doubled"], counts["differing"]) == (300, 0, 0, 0), counts
    happened = ("records", "reloads", "corrections", "lostRequests", "lostReplies", "foreignReplies", "bothTabs")
    assert min(counts[name] for name in happened) > 150, counts


@pytest.fixture(scope="module")
def outbox() -> Any:
    return json.loads(in_node(HERE / "outbox_facts.js", PAGES / "outbox.js"))


def test_only_the_sessions_reply_to_this_message_settles_an_entry(outbox):
    states = {name: reply[0] for name, reply in outbox["replies"].items()}
    settled = {"recorded": "sent", "refused": "refused", "conflict": "refused"}
    assert states == dict.fromkeys(states, "kept") | settled
    assert len(states) > len(settled) + 8
    ended = {name for name, reply in outbox["replies"].items() if reply[2]}
    assert ended == {"a link that ended"}, "nothing else ends the sending"
    assert not outbox["replies"]["a portal's page"][1], "a page of another server is no connection"


def test_what_the_journal_lacks_is_sent_again(outbox):
    """A reading that was sent after the journal was asked stays; so does a miss whose reading is in the journal."""
    assert outbox["sentAfterTheQuestion"] == "sent sent sent"
    assert outbox["lackedByTheJournal"] == [["tell", 0, "kept"], ["missed", 1, "sent"], ["tell", 1, "sent"]]
    assert outbox["sentAgain"] == "sent sent sent"


def test_what_is_corrected_is_not_sent_until_the_correction_ends(outbox):
    """Nor is the stop behind it, whatever ends the page; a tab that is gone holds nothing back for ever."""
    assert outbox["postedWhileCorrected"] == outbox["postedWhileCorrectionIsRenewed"] == []
    assert outbox["postedWhenLeft"] == [["tell", 3]], "with the correction, at once when the page is hidden"
    assert outbox["pausedByATabThatIsGone"] == "sent"


def test_without_room_nothing_is_shown_as_kept_and_nothing_kept_is_lost(outbox):
    assert outbox["full"] == [["full", "full"], [["tell", 2, "kept"]]]
    assert outbox["recordedWithoutRoom"] == [[0, "kept"], [4, "sent"]], "what the journal holds is shown from memory"


def test_the_list_that_version_0_13_0_stored_is_taken_over(outbox):
    assert outbox["ofVersion13"] == ["sent sent", None]


def test_the_worker_prefers_its_copy_to_errors_portals_and_long_waits():
    facts = json.loads(in_node(HERE / "worker_facts.js", PAGES / "worker.js"))
    new, kept = [200, "new"], [200, "kept"]
    assert facts["errors"].pop("401") == [401, "error"], "the link ended"
    assert set(map(tuple, facts["errors"].values())) == {tuple(kept)}
    assert facts["fresh"] == facts["page"] == {"shown": new, "kept": new}
    assert facts["offline"]["shown"] == facts["silent"] == kept
    assert facts["slow"] == {"shown": new, "kept": new}, "within the three seconds"
    assert list(facts["portal"].values()) == [{"shown": kept, "kept": kept}] * 3
    assert facts["firstVisit"] == {"error": [502, "error"], "offline": "offline", "portal": None}
    assert facts["state"] == ["left alone"]
