"""Files are whole or not there: after a kill, on a full disk, and whatever lies beside them."""

import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from icmape import UserError, io
from icmape.io import DAY, clean_leftovers, host, write_atomically


def no_room(*_: object) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


def dead_process() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_full_disk_names_the_file_and_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "deep" / "file"
    write_atomically(path, b"old")
    monkeypatch.setattr(os, "fsync", no_room)
    with pytest.raises(UserError, match=f"{path} cannot be written: the disk or the quota is full; free some space"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(path.parent.iterdir()) == [path]


def test_a_rename_and_a_new_folder_are_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[str] = []
    honest = os.fsync
    monkeypatch.setattr(os, "fsync", lambda d: (flushed.append(os.readlink(f"/proc/self/fd/{d}")), honest(d))[1])
    write_atomically(tmp_path / "a" / "b" / "file", b"new")
    folders = [str(tmp_path), str(tmp_path / "a")]
    temporary = str(tmp_path / "a" / "b" / f".file.{os.getpid()}@{host()}.part")
    assert flushed == [*folders, temporary, str(tmp_path / "a" / "b")]


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP])
def test_a_system_that_cannot_flush_folders_still_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    honest = os.fsync

    def only_files(descriptor: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(code, "folders are not flushed")
        honest(descriptor)

    monkeypatch.setattr(os, "fsync", only_files)
    write_atomically(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"


def test_only_leftovers_of_dead_processes_are_deleted(tmp_path: Path) -> None:
    dead, here = dead_process(), host()
    gone = [f".a.json.{dead}@{here}.part", f".b.{os.getpid()}@{here}.part", ".c.7@another.part"]
    stay = [
        f".a.json.{os.getpid()}@{here}.part",
        f".a.json.{os.getppid()}@{here}.part",
        f".d.{dead}@another.part",  # of a machine whose processes are not known
        ".own.part",
        f"e.{dead}@{here}.part",
    ]
    for name in (*gone, *stay):
        (tmp_path / name).write_bytes(b"")
    before = time.time() - DAY - 60
    for name in gone[1:]:
        os.utime(tmp_path / name, (before, before))
    assert sorted(path.name for path in clean_leftovers(tmp_path)) == sorted(gone)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(stay)


def test_the_first_write_to_a_folder_cleans_it(tmp_path: Path) -> None:
    left = tmp_path / f".x.{dead_process()}@{host()}.part"
    left.write_bytes(b"half")
    write_atomically(tmp_path / "y", b"whole")
    assert [path.name for path in tmp_path.iterdir()] == ["y"]


def test_git_is_asked_about_this_source_tree_only_and_starts_no_program_of_its_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A received folder may hold a .git whose settings name a program."""
    monkeypatch.delenv("ICMAPE_COMMIT", raising=False)
    tree, marker = tmp_path / "tree", tmp_path / "ran"
    (tree / "icmape").mkdir(parents=True)
    git = ["git", "-C", str(tree), "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    spy = tree / "spy.sh"
    spy.write_text(f"#!/bin/sh\ntouch {marker}\n")
    spy.chmod(0o755)
    subprocess.run([*git, "config", "core.fsmonitor", str(spy)], check=True)
    monkeypatch.chdir(tree)
    io._commit()
    assert not marker.exists(), "the current folder is not asked"
    monkeypatch.setattr(io, "__file__", str(tree / "icmape" / "io.py"))
    commit = io._commit()
    assert commit is not None
    assert len(commit.removesuffix("-dirty")) == 40
    assert not marker.exists()
