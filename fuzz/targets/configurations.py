"""`config.json`: edited by hand, written by other versions, or sent by somebody."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from fuzz import tree_mutations as trees
from fuzz.byte_mutations import MUTATIONS, damaged
from fuzz.cases import Case, Judge, Target, must_refuse, same_as
from icmape.learning.check_config import check
from icmape.learning.presets import preset
from icmape.learning.run_folder import read_config, write_config
from icmape.problem.spec import arguments, build_named
from icmape.settings import to_dict

SIGNED = ("stop_bias", "margin", "delta", "init")
"""Numbers of which small negative ones may have a meaning."""
MOST = 2**31
EVIL = "from pathlib import Path\nPath({marker!r}).touch()\nclass Problem: pass\n"
STRANGE_KINDS: tuple[str, ...] = (
    "evil:Problem",
    "evil",
    "centralized-evil:Problem",
    "os:system",
    "builtins:eval",
    "",
    "bandit ",
    "BANDIT",
)
STRANGE_KINDS += ("centralized-centralized-bandit", "../bandit", "bandit\0", "banditt", "icmape.problem:Problem")


def make(folder: Path) -> Target:
    """The target."""
    chosen = preset("bandit-quick")
    write_config(folder, chosen.build(), chosen.config())
    path, marker = folder / "config.json", folder / "ran"
    text = path.read_text()
    tree = json.loads(text)
    (folder / "evil.py").write_text(EVIL.format(marker=str(marker)))

    def run(given: bytes) -> dict[str, Any]:
        """The problem and the settings, as a run would have them."""
        path.write_bytes(given)
        kind, described, config = read_config(path)
        problem = build_named(kind, described)
        check(config, problem)
        assert not marker.exists(), "code that the file names was run"
        return {"kind": kind, "arguments": arguments(problem), "learning": to_dict(config)}

    original = run(text.encode())
    every = [(at, value) for at, value in trees.leaves(tree) if at[0] in ("problem", "learning")]

    def changed(at: trees.Path, value: Any, judge: Judge) -> Case:
        return Case(json.dumps(trees.replaced(tree, at, value)).encode(), judge)

    def wrong_type(random: Random) -> Case:
        at, value = random.choice(every)
        new = trees.wrong_type(value, random)
        fits = isinstance(value, list) and value and type(new) is type(value[0])  # one seed is a list of one
        return changed(at, new, _taken(at, new) if value is None or fits or new == [] or value == [] else must_refuse)

    def wrong_number(random: Random) -> Case:
        at, value = random.choice([(at, value) for at, value in every if type(value) in (int, float)])
        new = random.choice(trees.WRONG_NUMBERS)
        counted = isinstance(value, int)
        impossible = not math.isfinite(new) or (counted and (new >= MOST or new != int(new)))
        negative = new < 0 and at[-1] not in SIGNED
        return changed(at, new, must_refuse if impossible or negative else _taken(at, new))

    def typo(random: Random) -> Case:
        inner = [at for at, _ in every if len(at) > 1]
        at = random.choice([*inner, *{part[:-1] for part in inner if len(part) > 2}])
        return Case(json.dumps(trees.renamed(tree, at, trees.typo(at[-1], random))).encode(), must_refuse)

    def unknown(random: Random) -> Case:
        at = random.choice(
            [(), ("problem",), ("problem", "arguments"), ("learning",), ("learning", "algorithm"), ("learning", "dual")]
        )
        name = random.choice(["arm", "learning_rate", "__class__", "", "0", "delta "])
        return changed((*at, name), random.choice([1, "x", None, {}]), must_refuse)

    def missing(random: Random) -> Case:
        at = random.choice([("problem",), ("learning",), ("problem", "kind"), ("problem", "arguments")])
        return Case(json.dumps(trees.without(tree, at)).encode(), must_refuse)

    def section(random: Random) -> Case:
        at = random.choice(
            [("problem",), ("learning",), ("problem", "arguments"), ("learning", "network"), ("learning", "plan")]
        )
        return changed(at, random.choice([None, [], "x", 3, [{}], True]), must_refuse)

    def kind(random: Random) -> Case:
        return changed(("problem", "kind"), random.choice(STRANGE_KINDS), must_refuse)

    def policies(random: Random) -> Case:
        at = random.choice(
            [("learning", "teacher", "policy"), ("learning", "algorithm", "kind"), ("learning", "network", "encoder")]
        )
        return changed(
            at, random.choice(["evil:Problem", "no such", "x" * 99999, "../x", "\0", "ppo "]), _never_runs(at)
        )

    def strange_json(random: Random) -> Case:
        inside = json.dumps(trees.replaced(tree, ("problem", "arguments", "arms"), "HERE"))
        depth = random.choice([100, 5000, 200_000])
        options = [
            trees.nested(depth),
            inside.replace('"HERE"', trees.nested(depth)),
            inside.replace('"HERE"', "9" * 5000),
        ]
        options += [
            inside.replace('"HERE"', "1e999"),
            "[" * depth,
            f'"{text}"',
            text[:-2],
            text + "}",
            "\ufeff" + text[1:],
        ]
        return Case(random.choice(options).encode(), must_refuse)

    def twice(random: Random) -> Case:
        return Case(trees.twice(text, random).encode(), same_as(original))

    def bytes_damaged(random: Random) -> Case:
        """Damage may make another number of a number, but nothing that is not taken as it stands in the file."""
        data = damaged(text.encode(), random.choice(list(MUTATIONS)), random)
        return Case(data, _as_in(data))

    mutations: dict[str, Callable[[Random], Case]] = {
        "wrong type": wrong_type,
        "wrong number": wrong_number,
        "name with a typo": typo,
        "unknown name": unknown,
        "part missing": missing,
        "part of another type": section,
        "problem of another name": kind,
        "policies and kinds of other names": policies,
        "strange JSON": strange_json,
        "name twice": twice,
        "damaged": bytes_damaged,
    }
    return Target(run, mutations)


def _taken(at: trees.Path, value: Any) -> Judge:
    """The value is taken as it is; one for a list is a list of one."""

    def judge(result: dict[str, Any]) -> str | None:
        part: Any = result["learning"] if at[0] == "learning" else result
        for name in at[1:]:
            part = part[name]
        taken = list(part) if isinstance(part, tuple) else part
        return None if taken in (value, [value]) else f"{'.'.join(at)} is {taken!r}, given was {value!r}"

    return judge


def _never_runs(at: trees.Path) -> Judge:
    """A name of a policy may be looked up later; other names are known or refused."""
    return (lambda result: None) if at[1] == "teacher" else must_refuse


def _as_in(data: bytes) -> Judge:
    def judge(result: dict[str, Any]) -> str | None:
        try:
            given = json.loads(data)
        except ValueError:
            return "accepted, though it is no JSON"
        known = {name for name, _ in trees.leaves(json.loads(json.dumps(result)))}
        strange = [at for at, _ in trees.leaves(given) if at[0] == "learning" and at not in known]
        return f"unknown settings were accepted: {strange}" if strange else None

    return judge
