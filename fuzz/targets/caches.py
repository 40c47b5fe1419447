"""Results that are kept on disk: episodes, and evaluations of a run's teams. What is damaged is computed again."""

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from fuzz import tree_mutations as trees
from fuzz.byte_mutations import MUTATIONS, damaged
from fuzz.cases import Case, Target, equal
from fuzz.targets.evaluations import EVALUATION
from icmape.evaluation.results import CachedEvaluations, Store, load_episodes, save_episodes
from icmape.evaluation.stop_curves import CurvePoint, StopCurve
from icmape.play.episodes import Episodes, Judged
from icmape.play.rollout import Episode

KEY = "team problem code"
COUNT, ROUNDS, AGENTS = 30, 6, 3
POINTS = CurvePoint(0.1, 5.0, 0.88), CurvePoint(0.2, 6.0, 0.92)
CURVE = StopCurve(POINTS, POINTS[1], 0.9, 5.5, (5.4, 5.6), "worlds", 1000, 0)


def episodes() -> Episodes:
    """Some episodes."""
    rng = np.random.default_rng(0)
    stop = rng.integers(1, ROUNDS, COUNT)
    stop[0] = ROUNDS - 1
    no, yes = np.zeros((COUNT, ROUNDS), bool), np.ones(COUNT, bool)
    actions = rng.integers(0, 2, (COUNT, ROUNDS, AGENTS)).astype(np.int8)
    played: Any = Episode(actions, None, no, stop, rng.integers(0, 2, (COUNT, 2)), yes)  # type: ignore[arg-type]
    judged = [
        Judged(rng.random((COUNT, ROUNDS)), rng.random((COUNT, ROUNDS)) < 0.5, rng.random((COUNT, ROUNDS)))
        for _ in "ab"
    ]
    return Episodes(played, judged[0], judged[1], rng.normal(size=(COUNT, 2, 3)), rng.random((COUNT, ROUNDS)))


def columns(found: Episodes | None) -> dict[str, Any] | None:
    """All arrays, and what every analysis begins with."""
    if found is None:
        return None
    played = {name: getattr(found.played, name) for name in ("actions", "stop", "hypothesis")}
    judged = {
        f"{name}_{key}": value for name in ("team", "exact") for key, value in getattr(found, name)._asdict().items()
    }
    return {
        **played,
        **judged,
        "final": found.final,
        "distance": found.distance,
        "at_stop": found.at_stop(found.team.confidence),
    }


def make_episodes(folder: Path) -> Target:
    """Episodes in a file of arrays."""
    path = folder / "episodes.npz"
    save_episodes(path, KEY, episodes())
    data = path.read_bytes()

    def run(given: bytes) -> dict[str, Any] | None:
        path.write_bytes(given)
        return columns(load_episodes(path, KEY))

    original = run(data)
    assert original is not None
    arrays = dict(np.load(io.BytesIO(data)))

    def judge(result: Any) -> str | None:
        return None if result is None or equal(result, original) else "episodes other than those that were kept"

    def never(result: Any) -> str | None:
        return None if result is None else "episodes that do not fit each other were taken"

    def of_bytes(mutation: str) -> Callable[[Random], Case]:
        return lambda random: Case(damaged(data, mutation, random), judge)

    def of_shape(random: Random) -> Case:
        name = random.choice([name for name, array in arrays.items() if array.ndim])
        array = arrays[name]
        options = [
            array[:-1],
            array[..., None],
            array.astype(np.float16) if array.dtype.kind in "iub" else array.astype("U9"),
        ]
        options += [np.zeros(0), np.array("x"), array.astype(complex)]
        return Case(_packed({**arrays, name: random.choice(options)}), never)

    def of_values(random: Random) -> Case:
        name, value = random.choice(
            [("stop", -1), ("stop", 10**6), ("actions", -9), ("team_confidence", np.nan), ("team_confidence", 2.0)]
        )
        changed = arrays[name].copy()
        changed.flat[0] = value
        return Case(_packed({**arrays, name: changed}), never)

    def of_members(random: Random) -> Case:
        name = random.choice([name for name in arrays if not name.startswith(("exact", "distance"))])
        return Case(_packed({key: value for key, value in arrays.items() if key != name}), never)

    def of_headers(random: Random) -> Case:
        """Arrays that say that they are huge, or hold code."""
        header = random.choice(["(1000000000000,)", "(-1,)", "(2,) ,", "(10,10,10,10,10,10,10,10,10,10,10,10)", "'x'"])
        form = random.choice(["<f8", "|O", "<U999999999"])
        text = f"{{'descr': '{form}', 'fortran_order': False, 'shape': {header}, }}".ljust(117).encode() + b"\n"
        member = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + b"cos\nsystem\n(S'true'\ntR."
        return Case(_packed(arrays, {"stop.npy": member}), never)

    mutations: dict[str, Callable[[Random], Case]] = {name: of_bytes(name) for name in MUTATIONS}
    mutations |= {
        "arrays of other shapes": of_shape,
        "values that cannot be": of_values,
        "arrays missing": of_members,
        "headers of arrays": of_headers,
    }
    return Target(run, mutations)


def _packed(arrays: dict[str, np.ndarray], members: dict[str, bytes] | None = None) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            opened = io.BytesIO()
            np.lib.format.write_array(opened, np.asanyarray(array), allow_pickle=False)
            archive.writestr(f"{name}.npy", (members or {}).get(f"{name}.npy", opened.getvalue()))
    return content.getvalue()


def make_evaluations(folder: Path) -> Target:
    """Evaluations of a run's teams, and results of `reproduce`, in JSON."""
    cache = CachedEvaluations(folder, 1000, 0)
    cache.put("team-1", "digest", EVALUATION, CURVE)
    store, key = Store(folder / "store"), {"team": "digest", "episodes": 1000}
    stored = store.write("result.json", key, {"accuracy": 0.92})
    texts = {cache.file.path: cache.file.path.read_text(), stored: stored.read_text()}

    def run(given: tuple[Path, bytes]) -> tuple[Any, Any]:
        path, data = given
        path.write_bytes(data)
        try:
            found = cache.get("team-1", "digest")
            return (None if found == (None, None) else str(found), store.read("result.json", key))
        finally:
            path.write_text(texts[path])

    original = run((stored, stored.read_bytes()))

    def judge(result: tuple[Any, Any]) -> str | None:
        wrong = [new for new, old in zip(result, original, strict=True) if new is not None and new != old]
        return f"other results than those that were kept: {wrong}" if wrong else None

    def numbers(random: Random) -> Case:
        tree = json.loads(texts[cache.file.path])
        at, value = random.choice(
            [(at, value) for at, value in trees.leaves(tree) if "value" in at and value is not None]
        )
        new = trees.replaced(tree, at, trees.wrong_type(value, random))
        return Case((cache.file.path, json.dumps(new).encode()), judge)

    def structure(random: Random) -> Case:
        path = random.choice(list(texts))
        return Case(
            (
                path,
                random.choice(
                    ["null", "[]", "{}", "3", '{"team-1": 3}', '{"asked": []}', trees.nested(99999)]
                ).encode(),
            ),
            judge,
        )

    def bytes_damaged(random: Random) -> Case:
        """A digit that becomes another one cannot be told; all else is."""
        path = random.choice(list(texts))
        mutation = random.choice(
            [name for name in MUTATIONS if "bit" not in name and name not in ("block of noise", "block twice")]
        )
        return Case((path, damaged(texts[path].encode(), mutation, random)), judge)

    return Target(run, {"numbers of another type": numbers, "another structure": structure, "damaged": bytes_damaged})
