"""What tells a problem from another: arguments, data, and the code of a class that is not part of the package."""

import importlib
import sys
from pathlib import Path

import pytest

from icmape.problem.spec import problem_digest
from icmape.zoo.bandit import Bandit

CODE = """
from tests.coins import Coins


class Tossed(Coins):
    '''{0}.'''
"""


def test_arguments_and_parameters_of_the_prior_count():
    assert problem_digest(Bandit(2, 3, 7)) == problem_digest(Bandit(2, 3, 7))
    assert problem_digest(Bandit(2, 3, 7)) != problem_digest(Bandit(2, 3, 8))
    assert problem_digest(Bandit(2, 3, 7)) != problem_digest(Bandit(2, 3, 7, mean_low=0.4))


def test_the_code_of_ones_own_class_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(tmp_path)
    digests = []
    for words in ("One", "Another"):
        (tmp_path / "tossed_coins.py").write_text(CODE.format(words))
        sys.modules.pop("tossed_coins", None)
        importlib.invalidate_caches()
        digests.append(problem_digest(importlib.import_module("tossed_coins").Tossed()))
    sys.modules.pop("tossed_coins", None)
    assert digests[0] != digests[1]
