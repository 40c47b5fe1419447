"""What people see of actions and readings: from the problem into the team's file, checked, and never in the way."""

import copy
import json

import numpy as np
import pytest

import icmape_agent
from icmape import Problem, UserError, check_problem
from icmape.play.programs.describe import describe
from icmape.play.team_files import load, pretrained
from icmape_agent.description import read_description
from icmape_agent.display import PLAIN, Cells, Display, Moves, Places, Quantity, check_display, describe_display
from icmape_agent.files import read
from icmape_agent.readings import Sizes
from tests.coins import Coins

SIZES = Sizes(agents=2, actions=3, horizon=9)
SHAPES = [(3, 3), (1, 2)]
DISPLAYS = {
    "choices": (Display(), 4),
    "words": (Display(readings=[Quantity("alarm", "", ("no", "yes")), Quantity("x", "m")], agent="guard"), 4),
    "places": (Display(Places([(1.0, 2.0)] * 3, (0, 2, 1, 3), (0.5, 0.5)), answers="actions"), 3),
    "cells": (Display(Cells(2, 2, [0, 1, 3]), answers="cells"), 4),
    "moves": (Display(Moves(2, 2, [(0, 1), (1, 0), (0, 0)], [(0, 0), (1, 1)], 1, 0), answers="cells"), 4),
}


@pytest.mark.parametrize("name", DISPLAYS)
def test_a_display_is_the_same_after_a_file(name):
    display, scores = DISPLAYS[name]
    described = describe_display(display)
    assert check_display(json.loads(json.dumps(described)), SIZES, SHAPES, scores) == described


@pytest.mark.parametrize("name", DISPLAYS)
def test_any_change_of_a_display_is_refused_or_fits(name):
    """Whatever stands in its place: ValueError, KeyError or TypeError, which `load` turns into one sentence."""
    rng, refused = np.random.default_rng(0), 0
    display, scores = DISPLAYS[name]
    values = [None, -1, 7, 1e9, float("nan"), "", "x" * 999, [], [[]], {}, True, "cells", "moves"]
    for _ in range(200):
        bent = copy.deepcopy(describe_display(display))
        place = bent
        while isinstance(place, dict | list) and len(place):
            key = list(place)[rng.integers(len(place))] if isinstance(place, dict) else int(rng.integers(len(place)))
            if not isinstance(place[key], dict | list) or not len(place[key]) or rng.random() < 0.2:
                place[key] = values[rng.integers(len(values))]
                break
            place = place[key]
        try:
            check_display(bent, SIZES, SHAPES, scores)
        except (ValueError, KeyError, TypeError):
            refused += 1
    assert refused > 80


@pytest.mark.parametrize("name", pretrained())
def test_files_hold_what_the_problem_says(name):
    assert icmape_agent.load(name).described.display == describe(load(name))["display"]


def test_a_file_without_a_display_has_plain_choices():
    file = read("bandit-quick")
    older = {key: value for key, value in file.described.items() if key != "display"}
    assert read_description(older, file.tensors).display == PLAIN


class Misplaced(Coins):
    """Coins on a grid that has another number of cells."""

    @property
    def display(self) -> Display:
        return Display(Cells(2, 2, [0] * (self.actions + 1)))


def test_a_display_that_does_not_fit_is_told_before_training_and_left_out_of_a_file():
    with pytest.raises(UserError, match="its display does not fit: each action needs a cell"):
        check_problem(Misplaced(agents=2, actions=2), simulate=False)


def test_a_problem_without_a_display_is_shown_plainly():
    assert describe_display(Problem.display.fget(None)) == PLAIN  # type: ignore[attr-defined]
