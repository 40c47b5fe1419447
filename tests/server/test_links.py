"""Each link has a token of its own, which survives a restart and is nobody else's to read."""

import json

import pytest

from icmape_agent.errors import UserError
from icmape_agent.server.links import COORDINATOR, NAME, open_links


def test_links_are_kept_for_their_owner_alone_and_stay_the_same(tmp_path):
    links = open_links(tmp_path, "s", 3)
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600
    assert len({links.coordinator, *links.agents}) == 4
    assert min(map(len, (links.coordinator, *links.agents))) == 32, "24 random bytes"
    (tmp_path / NAME).chmod(0o644)
    assert open_links(tmp_path, "s", 3) == links
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600, "a mode that a copy lost comes back"


def test_new_links_end_the_old_ones(tmp_path):
    old, new = open_links(tmp_path, "s", 2), open_links(tmp_path, "s", 2, renew=True)
    assert [new.holder(token) for token in (old.coordinator, *old.agents)] == [None] * 3
    assert [new.holder(token) for token in (new.coordinator, *new.agents)] == [COORDINATOR, 0, 1]
    assert open_links(tmp_path, "s", 2) == new


@pytest.mark.parametrize("token", ["", "x", "\udc80", "é" * 32, "x" * 10_000])
def test_no_other_text_is_a_token(tmp_path, token):
    links = open_links(tmp_path, "s", 2)
    assert links.holder(token) is None
    assert links.holder(links.agents[0] + token) is (0 if token == "" else None)
    assert links.holder(links.agents[0][:-1]) is None


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", "null", '{"session": "s", "coordinator": "", "agents": ["", ""]}', "[" * 50_000],
)
def test_damaged_links_are_an_error_that_says_what_to_do(tmp_path, content):
    (tmp_path / NAME).write_text(content)
    with pytest.raises(UserError, match="--new-links"):
        open_links(tmp_path, "s", 2)
    assert (tmp_path / NAME).read_text() == content


def test_links_of_another_session_or_too_few_are_refused(tmp_path):
    open_links(tmp_path, "s", 2)
    for session, agents in (("other", 2), ("s", 3)):
        with pytest.raises(UserError, match="not those of this session"):
            open_links(tmp_path, session, agents)
    kept = json.loads((tmp_path / NAME).read_text())
    (tmp_path / NAME).write_text(json.dumps({**kept, "agents": [kept["coordinator"]] * 2}))
    with pytest.raises(UserError, match="--new-links"):
        open_links(tmp_path, "s", 2)
