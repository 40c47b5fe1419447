"""The journal: what is acknowledged is kept, what is damaged is noticed."""

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.session_team import Coins, crew
from icmape_agent.errors import UserError
from icmape_agent.session import Refusal, Session, find_sessions, journal, open_session

TEAM = crew(Coins(agents=2, horizon=12))


def opened(folder: Path, **options) -> Session:
    return open_session(TEAM, folder, **options)


@pytest.fixture
def written(tmp_path) -> Path:
    """A journal with a header and six entries."""
    with opened(tmp_path / "a") as session:
        for number in range(3):
            session.tell(0, number, number % 2, id=f"i{number}", note="ten paces north ☂\n")
            session.missed(1)
    return tmp_path / "a" / journal.NAME


def test_a_journal_cut_at_any_byte_keeps_every_whole_line(written):
    data = written.read_bytes()
    ends = [i + 1 for i, byte in enumerate(data) if byte == ord("\n")]
    for length in (*range(ends[0], ends[-2], 13), *range(ends[-2] - 3, len(data) + 1)):
        written.write_bytes(data[:length])
        whole = sum(end <= length + 1 for end in ends)  # a line that lacks nothing but its end is whole
        torn = max(length - ends[whole - 1], 0)
        contents = journal.read(written)
        assert (len(contents.lines), contents.torn) == (whole, torn)
    for length in (ends[2] + 1, ends[3] - 2):
        written.write_bytes(data[:length])
        with opened(written.parent) as session:  # the writer cuts the unfinished line, and goes on behind it
            assert session.torn == length - ends[2]
            session.tell(1, 0, 1, round=7)
        assert journal.read(written).torn == 0
        assert [line.entry.get("round") for line in journal.read(written).lines] == [None, 0, 0, 7]


def test_a_last_line_without_its_end_gets_it(written):
    data = written.read_bytes()
    written.write_bytes(data[:-1])
    with opened(written.parent) as session:
        session.tell(1, 0, 1, round=7)
    after = written.read_bytes()
    assert after.startswith(data)
    assert len(journal.read(written).lines) == data.count(b"\n") + 1


def test_a_change_of_any_byte_of_a_whole_line_is_noticed_and_named(written):
    data = written.read_bytes()
    starts = [0, *(i + 1 for i, byte in enumerate(data) if byte == ord("\n"))]
    for place in (*range(0, len(data), 17), len(data) - 2, len(data) - 1):
        line = sum(start <= place for start in starts)
        for bit in (1, 64):
            written.write_bytes(data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :])
            with pytest.raises(UserError, match=f"line {line} is damaged"):
                journal.read(written)


def test_lines_that_were_removed_swapped_or_repeated_are_noticed(written):
    lines = written.read_bytes().splitlines(keepends=True)
    for changed, number in (
        (lines[:2] + lines[3:], 3),
        ([*lines[:2], lines[3], lines[2], *lines[4:]], 3),
        (lines[:3] + lines[2:], 4),
        ([*lines[:3], b"\n", *lines[3:]], 4),
    ):
        written.write_bytes(b"".join(changed))
        with pytest.raises(UserError, match=f"line {number} is damaged"):
            opened(written.parent)


def test_a_power_cut_that_leaves_zeros_behind_the_last_line_loses_nothing(written):
    data = written.read_bytes()
    written.write_bytes(data + bytes(300))
    with opened(written.parent) as session:
        assert session.torn == 300
        assert session.records.agents[0].open_round == 3
    assert written.read_bytes() == data


def test_a_file_that_is_no_journal_and_one_of_a_later_version_are_refused(tmp_path):
    for text, reason in (
        (b"", "no whole line"),
        (b"some text", "no whole line"),
        (b"some text\n", "line 1 is damaged"),
    ):
        (tmp_path / journal.NAME).write_bytes(text)
        with pytest.raises(UserError, match=reason):
            opened(tmp_path)
    line, _ = journal.encode({"type": "session", "format": "icmape-session", "version": 2}, "")
    (tmp_path / journal.NAME).write_bytes(line)
    with pytest.raises(UserError, match="version 2, this program reads 1"):
        opened(tmp_path)


def test_another_team_is_refused(written):
    other = crew(Coins(agents=2, horizon=12, lead=3))
    with pytest.raises(UserError, match=r"started with another team: it needs coins, lead 8.*given coins, lead 3"):
        open_session(other, written.parent)


def test_one_process_writes_and_others_read(written):
    with opened(written.parent) as session:
        with pytest.raises(UserError, match=f"open for writing in process {os.getpid()}"):
            opened(written.parent)
        reader = opened(written.parent, write=False)
        assert reader.show() == session.show()
        with pytest.raises(Refusal, match="opened for reading"):
            reader.tell(0, 1, 1)
    opened(written.parent).close()


def test_a_reader_ignores_the_line_that_is_just_being_written(written):
    data = written.read_bytes()
    written.write_bytes(data + b'{"type":"tell"')
    assert opened(written.parent, write=False).records.agents[0].open_round == 3
    assert written.read_bytes() == data + b'{"type":"tell"'


def test_on_a_full_disk_nothing_is_acknowledged_and_the_session_goes_on_when_there_is_room(tmp_path, caplog):
    """The limit on a file's size stands for the disk: a part of the line is written, then no more."""
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    path = tmp_path / journal.NAME
    with opened(tmp_path) as session:
        session.tell(0, 1, 1, round=0)
        data = path.read_bytes()
        message = {"type": "tell", "agent": 0, "round": 1, "action": 2, "reading": 0}
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(data) + 20, before[1]))
        try:
            refused = [session.handle(message), session.handle(message, sender=0)]
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            signal.signal(signal.SIGXFSZ, handler)
        assert {reply["error"]["kind"] for reply in refused} == {"storage"}
        assert str(path) in refused[0]["error"]["text"]
        assert str(tmp_path) not in refused[1]["error"]["text"]  # an agent is told of no path; the log names it
        assert f"agent 0: {path} cannot be written" in caplog.text
        assert path.read_bytes() == data  # the part of a line is cut at once
        assert session.handle({"type": "status", "agent": 0})["round"] == 1
        assert session.handle(message) == {"ok": True, "type": "tell", "agent": 0, "round": 1, "late": False}
        again = session.ask(0)
    with opened(tmp_path) as session:
        assert session.records.agents[0].open_round == 2
        assert session.ask(0) == again


def test_an_entry_that_was_written_but_not_flushed_is_not_kept(tmp_path, monkeypatch):
    with opened(tmp_path) as session:
        flush, calls = os.fsync, []

        def fail_once(file):
            calls.append(file)
            if len(calls) == 1:
                raise OSError(5, "Input/output error")
            flush(file)

        monkeypatch.setattr(os, "fsync", fail_once)
        with pytest.raises(Refusal, match="Input/output error"):
            session.tell(0, 1, 1)
        assert len(journal.read(tmp_path / journal.NAME).lines) == 1
        session.tell(0, 2, 0)  # nothing was recorded for this round, so another content is no conflict
    assert journal.read(tmp_path / journal.NAME).lines[-1].entry["action"] == 2


def test_every_acknowledged_entry_was_flushed_and_so_were_the_folders(tmp_path, monkeypatch):
    flushed: list[str] = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (flushed.append(os.readlink(f"/proc/self/fd/{file}")), real(file)))
    folder = tmp_path / "region" / "july"
    with opened(folder) as session:
        assert {str(tmp_path), str(folder.parent), str(folder)} <= set(flushed)
        for number in range(3):
            flushed.clear()
            session.tell(0, 1, 1, round=number)
            assert flushed == [str(folder / journal.NAME)]
            flushed.clear()
            session.tell(0, 1, 1, round=number)  # the same tell: nothing to write
            assert flushed == []


KILLED = """
import os, signal, sys
from tests.session.test_journal import opened
folder, place, after = sys.argv[1:]
flush = os.fsync
def killed(file):
    if os.readlink(f"/proc/self/fd/{file}") == place and os.path.exists(after):
        os.kill(os.getpid(), signal.SIGKILL)
    flush(file)
os.fsync = killed
session = opened(folder)
os.mkdir(os.path.join(folder, "open"))
session.tell(0, 1, 1)
"""


@pytest.mark.parametrize(
    ("place", "after"),
    [("july/journal.jsonl", "july/open"), ("july", "july/journal.jsonl"), (".", "july")],
    ids=["a line was written", "the journal got its name", "the folder got its name"],
)
def test_what_a_kill_kept_from_the_disk_is_flushed_before_the_next_acknowledgement(place, after, tmp_path, monkeypatch):
    """A process is killed inside the flush that follows `after`; another one opens the session and tells the same."""
    folder, target = tmp_path / "july", str((tmp_path / place).resolve())
    words = [sys.executable, "-c", KILLED, str(folder), target, str(tmp_path / after)]
    assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
    flushed, real = list[str](), os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (real(file), flushed.append(os.readlink(f"/proc/self/fd/{file}"))))
    with opened(folder) as session:
        assert len(session.records.agents[0].readings) == (after == "july/open")
        assert session.handle({"type": "tell", "agent": 0, "round": 0, "action": 1, "reading": 1})["ok"]
        assert target in flushed


def test_a_creation_that_was_killed_leaves_nothing_in_the_way(tmp_path):
    (tmp_path / f".{journal.NAME}.part").write_bytes(b'{"type":"sess')
    with opened(tmp_path) as session:
        session.tell(0, 1, 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == [journal.NAME, "writer.lock"]


def test_a_journal_is_for_its_owner_only(written):
    assert written.stat().st_mode & 0o777 == 0o600


def test_sessions_of_a_tree_are_listed_without_their_team(tmp_path):
    with opened(tmp_path / "north" / "1") as session:
        session.tell(0, 1, 1)
        session.stop()
    opened(tmp_path / "south").close()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / journal.NAME).write_bytes(b"?\n")
    listed = {summary.folder.relative_to(tmp_path).as_posix(): summary.text for summary in find_sessions(tmp_path)}
    assert set(listed) == {"north/1", "south", "broken"}
    assert listed["north/1"].endswith("stopped in round 1, counted from 0")
    assert listed["south"].endswith("in rounds 0, 0, counted from 0")
    assert "line 1 is damaged" in listed["broken"]
