"""Errors that the user can fix, each reported in one sentence."""


class UserError(Exception):
    """Bad input: says what was given, what was expected and what to do. The command line prints it and exits with 2."""
