"""Mistakes that a person can mend, said in one sentence."""

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Bad input: says what was given, what was expected and what to do. The command line prints it and exits with 2."""


def nearest(given: str, known: Iterable[str]) -> str:
    """A clause that names the known words nearest to the one given."""
    known = sorted(known)
    close = difflib.get_close_matches(given, known, n=3, cutoff=0.7) or known
    return "did you mean " + " or ".join(close) + "?" if len(close) <= 3 else "known: " + ", ".join(known)
