"""Take the current folder off the import path of `python -m icmape...`, before anything else is imported.

Python puts it first, so that a `numpy.py` that lies beside a received team would be run instead of the package. The
`icmape` command does not have it. A flag that names code, such as --problem, puts it last (`problem/entry.py`).
"""

import os
import sys

WITHOUT_VALUE = set("bBdEhiIOPqsSuvVx?")  # Python's own options that take no value


def module_to_run(words: list[str]) -> str:
    """The module that `python ... -m MODULE` runs, from Python's own command line."""
    for place, word in enumerate(words):
        before, m, name = word[1:].partition("m")
        if word.startswith("-") and m and set(before) <= WITHOUT_VALUE:
            return name or "".join(words[place + 1 : place + 2])
    return ""


if (
    sys.argv[:1] == ["-m"]  # while the packages around that module are imported
    and module_to_run(sys.orig_argv[1:]).partition(".")[0] == "icmape"
    and sys.path[:1] == [os.getcwd()]
):
    del sys.path[0]


def without_matplotlibrc() -> None:
    """Import matplotlib from elsewhere if the current folder has settings for it: they could make it run LaTeX."""
    if not os.path.exists("matplotlibrc") or "matplotlib" in sys.modules:
        return
    here = os.getcwd()
    os.chdir(os.path.dirname(os.path.abspath(__file__)))
    try:
        import matplotlib  # noqa: F401
    finally:
        os.chdir(here)
