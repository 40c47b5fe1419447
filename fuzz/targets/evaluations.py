"""Evaluations that `icmape compare` is given: its own, those of several teams, and other people's."""

import copy
import dataclasses
import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from rich.console import Console

from fuzz import tree_mutations as trees
from fuzz.byte_mutations import MUTATIONS, damaged
from fuzz.cases import Case, Target, must_refuse, same_as
from icmape.evaluation.comparison import compare, plan
from icmape.evaluation.metrics import Evaluation
from icmape.learning.presets import preset
from icmape.plot.comparison_table import markdown, render
from icmape.problem.spec import describe

EVALUATION = Evaluation(
    accuracy=0.92,
    accuracy_low=0.9,
    accuracy_high=0.94,
    tau=6.5,
    tau_error=0.1,
    rounds=5.5,
    readings=16.5,
    forced=0.0,
    ece=0.01,
    confidence=0.91,
    log_loss=0.2,
    no_data_accuracy=0.3,
    exact="exact",
    exact_accuracy=0.93,
    exact_ece=0.01,
    exact_log_loss=0.2,
    episodes=1000,
    seed=0,
    delta=0.1,
)
SHARES = (
    "accuracy",
    "accuracy_low",
    "accuracy_high",
    "forced",
    "ece",
    "confidence",
    "no_data_accuracy",
    "exact_accuracy",
)
WRONG: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(SHARES, (-0.1, 1.5, 92, "0.9", None, [0.9], True, math.nan, math.inf, {}, 10**20)),
    **dict.fromkeys(("tau", "episodes"), (-1, 0, "6", None, [6], math.nan, math.inf, -math.inf, {})),
    **dict.fromkeys(("tau_error", "rounds", "readings"), (-1, "6", None, [6], math.nan, {}, math.inf)),
    "delta": (-0.1, 0, 1, 2, "0.1", None, [0.1], math.nan, math.inf),
    "seed": ("0", 0.5, None, [], math.nan),
    "log_loss": ("0", None, [], math.nan, -1),
}
"""Metric → values that it cannot have. Those of an exact posterior may be missing."""


def contents() -> dict[str, dict[str, Any]]:
    """The three forms of a file."""
    problem = describe(preset("bandit-quick").build(), local=False)
    single = {
        "team": "a",
        "problem": problem,
        **dataclasses.asdict(EVALUATION),
        "provenance": {"seconds": 12.5, "environment_steps": 99},
    }
    teams = {"teams": {name: {**copy.deepcopy(single), "team": name} for name in "ab"}, "mean": {"accuracy": 0.92}}
    stops = [6, 7] * 50
    foreign = {"name": "theirs", "problem": "bandit-quick", "accuracy": 0.92, "tau": 6.5, "episodes": 100, "delta": 0.1}
    foreign |= {"seconds": 3.5, "worlds": "w", "stop_times": stops, "correct": [True] * 92 + [False] * 8}
    return {"one team": single, "several teams": teams, "another's": foreign}


def make(folder: Path) -> Target:
    """The target."""
    path = folder / "given.json"

    def run(given: bytes) -> str:
        """The comparison as it is shown."""
        path.write_bytes(given)
        planned = plan([str(path)], baselines=("none",))
        comparison = compare(planned)
        shown = Console(file=io.StringIO(), width=160)
        shown.print(render(comparison, 160))
        text = shown.file.getvalue() + markdown(comparison)  # type: ignore[attr-defined]
        assert "\x1b" not in text, "control characters reach the terminal"
        return text

    forms = contents()
    originals = {name: run(json.dumps(tree).encode()) for name, tree in forms.items()}

    def form(random: Random) -> tuple[str, dict[str, Any]]:
        name = random.choice(list(forms))
        return name, forms[name]

    def inside(name: str) -> trees.Path:
        return ("teams", "b") if name == "several teams" else ()

    def metric(random: Random) -> Case:
        name, tree = form(random)
        parent: Any = tree["teams"]["b"] if name == "several teams" else tree
        field = random.choice([field for field in WRONG if field in parent])
        values = [value for value in WRONG[field] if not (field.startswith("exact") and value is None)]
        new = trees.replaced(tree, (*inside(name), field), random.choice(values))
        return Case(json.dumps(new).encode(), must_refuse)

    def outcomes(random: Random) -> Case:
        """Lists by episode: of another length, with impossible entries, or of another mean."""
        tree = forms["another's"]
        field = random.choice(["stop_times", "correct"])
        values = list(tree[field])
        bad = [
            values[:-1],
            [*values, 1],
            [*values[:-1], random.choice(["x", None, -3, 0.5, [1], 10**30, math.nan])],
            {},
            "x",
            [],
        ]
        return Case(json.dumps({**tree, field: random.choice(bad)}).encode(), must_refuse)

    def wrong_part(random: Random) -> Case:
        name, tree = form(random)
        at = random.choice([("problem",), *((("teams",), ("teams", "b")) if name == "several teams" else ())])
        at = at if at[0] == "teams" else (*inside(name), *at)
        value: Any = random.choice(
            [None, [], 3, "", "no such preset", {"kind": "bandit"}, {"kind": [], "arguments": {}}, True, [[]]]
        )
        return Case(json.dumps(trees.replaced(tree, at, value)).encode(), must_refuse)

    def missing(random: Random) -> Case:
        name, tree = form(random)
        needed = ("accuracy", "tau", "episodes")
        return Case(json.dumps(trees.without(tree, (*inside(name), random.choice(needed)))).encode(), must_refuse)

    def typo(random: Random) -> Case:
        name, tree = form(random)
        field = random.choice(["accuracy", "tau", "episodes", "delta"])
        return Case(
            json.dumps(trees.renamed(tree, (*inside(name), field), trees.typo(field, random))).encode(), must_refuse
        )

    def words(random: Random) -> Case:
        """Names of teams and methods are texts: shown, never obeyed."""
        name, tree = form(random)
        field = "name" if name == "another's" else "team"
        text = random.choice(
            ["[bold]", "[/]", "\x1b[31mred\x07", "a|b", "<script>", "x" * 5000, "\u202e", "[link=x]y", "{x}"]
        )
        return Case(json.dumps(trees.replaced(tree, (*inside(name), field), text)).encode(), lambda result: None)

    def cost(random: Random) -> Case:
        name = random.choice(["one team", "several teams"])
        value: Any = random.choice(
            [None, [], 3, "x", {"seconds": "x"}, {"seconds": math.nan}, {"environment_steps": []}, {"seconds": -1}]
        )
        return Case(json.dumps(trees.replaced(forms[name], (*inside(name), "provenance"), value)).encode(), _no_nan)

    def strange_json(random: Random) -> Case:
        _, tree = form(random)
        text = json.dumps(tree)
        options = [
            "null",
            "[]",
            "3",
            '"x"',
            "{}",
            '{"teams": {}}',
            '{"teams": []}',
            '{"teams": 3}',
            trees.nested(200_000),
        ]
        options += [f"[{text}]", text[:-1], text + text, '{"name": "x"}', '{"teams": {"a": null}}', "\ufeff{}"]
        return Case(random.choice(options).encode(), must_refuse)

    def bytes_damaged(random: Random) -> Case:
        """Damage may make another number of a number; it may not make one that cannot be."""
        _, tree = form(random)
        return Case(damaged(json.dumps(tree).encode(), random.choice(list(MUTATIONS)), random), _no_nan)

    def twice(random: Random) -> Case:
        name, tree = form(random)
        return Case(trees.twice(json.dumps(tree), random).encode(), same_as(originals[name]))

    mutations: dict[str, Callable[[Random], Case]] = {
        "metric that cannot be": metric,
        "outcomes that cannot be": outcomes,
        "part of another type": wrong_part,
        "metric missing": missing,
        "name with a typo": typo,
        "texts": words,
        "provenance": cost,
        "strange JSON": strange_json,
        "name twice": twice,
        "damaged": bytes_damaged,
    }
    return Target(run, mutations)


def _no_nan(result: str) -> str | None:
    return "nan in the comparison" if "nan" in result.lower() else None
