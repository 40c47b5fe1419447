"""A session whose process is killed at random moments (`benchmarks.session_kills` does it 500 times)."""

import json
from pathlib import Path

from benchmarks.session_kills import measure
from benchmarks.session_team import Coins


def test_kills_lose_no_acknowledged_reading_and_change_no_answer(tmp_path):
    counts = measure(Coins(agents=3, horizon=9), kills=8, seed=0, folder=tmp_path)
    assert (counts.lost, counts.other_replies, counts.other_answers) == (0, 0, 0)
    assert counts.kills == 8
    assert counts.journals_read >= 2  # the others were killed before there was one: more on a busy machine
    assert counts.acknowledged > 4


def test_the_page_says_what_the_file_of_the_500_kills_says():
    root = Path(__file__).parents[2]
    counts = json.loads((root / "results" / "session-kills.json").read_text())["value"]
    page = (root / "docs" / "reference" / "session.md").read_text()
    assert (counts["kills"], counts["lost"], counts["other_replies"], counts["other_answers"]) == (500, 0, 0, 0)
    for row in (
        f"| readings that were acknowledged | {counts['acknowledged']:,} |",
        f"| kills with a journal to read; journals that could not be read | {counts['journals_read']}; 0 |",
        f"| journals with an unfinished last line | {counts['unfinished_lines']} |",
        f"| kills between the record and its reply | {counts['recorded_without_reply']} |",
    ):
        assert row in page
