"""What a person at a terminal sees: the first line at once, and one clean frame after Ctrl-C."""

import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

CURSOR_SHOWN = "\x1b[?25h"
SECONDS = 120
OWN_TERMINAL = """
import fcntl, os, signal, sys, termios
signal.signal(signal.SIGINT, signal.SIG_DFL)  # a program started in the background ignores it
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
"""Makes standard input the terminal of a session, so that Ctrl-C arrives. `preexec_fn` forks, of which JAX warns."""


class Terminal:
    """The command in a terminal of its own."""

    def __init__(self, *words: str, cwd: Path):
        self.ours, theirs = pty.openpty()
        streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
        command = [sys.executable, "-c", OWN_TERMINAL, "-m", "icmape.cli", *words]
        environment = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(Path(__file__).parents[2])}
        self.process = subprocess.Popen(command, cwd=cwd, env=environment, start_new_session=True, **streams)
        os.close(theirs)
        self.text = ""

    def read_until(self, pattern: str) -> None:
        """Read until a pattern was written, or to the end."""
        late = time.monotonic() + SECONDS
        while not re.search(pattern, self.text) and time.monotonic() < late:
            if not select.select([self.ours], [], [], 1.0)[0]:
                continue
            try:
                piece = os.read(self.ours, 65536)
            except OSError:  # the other side is closed
                return
            self.text += piece.decode(errors="replace")

    def press(self, key: bytes) -> None:
        os.write(self.ours, key)

    def end(self) -> int:
        self.read_until("^never$")
        os.close(self.ours)
        return self.process.wait(SECONDS)


def test_the_first_line_names_what_is_loaded_and_is_taken_away(tmp_path: Path) -> None:
    terminal = Terminal("train", "no-such-preset", cwd=tmp_path)
    assert terminal.end() == 2
    first, cleared, rest = terminal.text.partition("\r\x1b[2K")
    assert first.startswith("loading icmape train: 1 s")
    assert cleared
    assert rest.startswith("error: unknown preset")


def test_ctrl_c_leaves_one_clean_frame(tmp_path: Path) -> None:
    terminal = Terminal("train", "bandit-quick", "--out", "mine", cwd=tmp_path)
    terminal.read_until("settings 0:0")
    terminal.press(b"\x03")
    assert terminal.end() == 130
    assert "^C" not in terminal.text
    assert "Traceback" not in terminal.text
    assert CURSOR_SHOWN in terminal.text
    plain = re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", terminal.text)
    _, mark, rest = plain.rpartition("■ ")
    assert mark, plain
    assert re.fullmatch(r"(settings|plan) 0:\d\d\s*(stopped; go on with `icmape resume mine`)?\s*", rest), rest
