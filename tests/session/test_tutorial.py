"""The program of the tutorial, killed and started again."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from icmape_agent.session import journal

PAGE = Path(__file__).parents[2] / "docs" / "tutorials" / "deploy.md"
PULLS = """
import os, sys
left = int(sys.argv[1])

def pull(arm):
    global left
    left -= 1
    if left == 0:
        os._exit(9)
    return int(arm == 0)
"""


def run(folder: Path, pulls: int) -> tuple[int, str]:
    """Exit code and output of the program, which dies in this one of its pulls."""
    code = re.search(r"## Sessions\n.*?```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert code is not None
    folder.mkdir(exist_ok=True)
    quick = code[1].replace("import icmape\n", "import icmape_agent as icmape\n")  # the same without JAX
    words = [sys.executable, "-c", PULLS + quick, str(pulls)]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def recorded(folder: Path) -> list[tuple]:
    entries = [line.entry for line in journal.read(folder / "runs" / "july" / journal.NAME).lines[1:]]
    return sorted(
        tuple(str(entry.get(name)) for name in ("type", "agent", "round", "action", "reading")) for entry in entries
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> list[tuple]:
    """The entries of a program that nobody killed."""
    folder = tmp_path_factory.mktemp("whole")
    code, said = run(folder, 0)
    assert code == 0, said
    return recorded(folder)


@pytest.mark.parametrize("pulls", [1, 5, 6, 10])
def test_the_program_goes_on_as_if_it_had_not_been_killed(pulls, whole, tmp_path):
    """In the middle of a round, too: 4 readings are told before the fifth pull."""
    assert run(tmp_path, pulls)[0] == 9
    code, said = run(tmp_path, 0)
    assert code == 0, said
    assert "answer: capacities" in said
    assert recorded(tmp_path) == whole
