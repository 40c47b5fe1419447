"""The folder of a run that is to go on: checkpoints, plan, settings and metrics."""

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fuzz import tree_mutations as trees
from fuzz.byte_mutations import MUTATIONS, damaged
from fuzz.cases import Case, Target, equal, must_refuse
from icmape.learning import train
from icmape.learning.check_config import check
from icmape.learning.checkpoints import check_settings, last_checkpoint, save_checkpoint, settings_of
from icmape.learning.config import Config
from icmape.learning.planning import read_rounds
from icmape.learning.presets import preset
from icmape.learning.run_files import MetricsFile, read_metrics
from icmape.learning.run_folder import read_config, write_config
from icmape.plot.training_curves import smooth
from icmape.problem import Problem
from icmape.problem.spec import build_named

ROUNDS = 9
Files = dict[str, bytes]


def state(problem: Problem, config: Config) -> Any:
    """Shapes of the state of training."""
    return train.start.eval_shape(problem, config, jnp.asarray(config.seeds, jnp.int32), None, None)


def filled(skeleton: Any, seed: int) -> Any:
    """A state of random numbers: what it holds does not matter to a file."""
    rng = np.random.default_rng(seed)

    def leaf(shape: Any) -> Any:
        if jax.dtypes.issubdtype(shape.dtype, jax.dtypes.prng_key):
            return jax.random.split(jax.random.key(seed), shape.shape)
        return jnp.asarray(rng.integers(0, 2, shape.shape), shape.dtype)

    return jax.tree.map(leaf, skeleton)


def make(folder: Path) -> Target:
    """The target: what `icmape resume` reads before it compiles."""
    chosen = preset("bandit-quick")
    problem = chosen.build()
    config = dataclasses.replace(chosen.config(), num_envs=64, batch_size=32)
    whole = dataclasses.replace(config, max_rounds=ROUNDS)
    skeleton = state(problem, whole)
    write_config(folder, problem, config)
    (folder / "plan.json").write_text(json.dumps({"rounds": ROUNDS, "plans": []}) + "\n")
    for iteration in (10, 20):
        header: dict[str, Any] = {"version": "0", "iteration": iteration, "seconds": 1.5, "seeds": list(config.seeds)}
        header["settings"] = settings_of(problem, whole)
        save_checkpoint(folder / "checkpoint.eqx", header, filled(skeleton, iteration))
    metrics = MetricsFile(folder / "metrics.jsonl")
    for iteration in (10, 20):
        metrics.write(
            {"seed": config.seeds[0], "iteration": iteration, "accuracy": 0.5, "tau": 3.25, "step_cost": None}
        )
    metrics.close()
    files = {
        path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")
    }
    checkpoints = [name for name in files if name.endswith(".eqx")]
    assert len(checkpoints) == 2

    def run(given: Files) -> dict[str, Any]:
        """Where training would go on, and its metrics."""
        shutil.rmtree(folder)
        folder.mkdir()
        for name, data in given.items():
            (folder / name).write_bytes(data)
        kind, described, settings = read_config(folder / "config.json")
        built = build_named(kind, described)
        check(settings, built)
        checkpoint = last_checkpoint(folder)
        if settings.plan.iterations > 0 and settings.max_rounds is None:
            settings = dataclasses.replace(settings, max_rounds=read_rounds(folder))
        check_settings(checkpoint, built, settings)
        leaves = [np.asarray(_plain(leaf)) for leaf in jax.tree.leaves(checkpoint.states(skeleton))]
        rows = read_metrics(folder / "metrics.jsonl")
        written = MetricsFile(folder / "metrics.jsonl", checkpoint.header["iteration"])
        written.close()
        for name in ("accuracy", "tau") if rows else ():
            smooth([row[name] for row in rows if row.get(name) is not None])
        iteration = checkpoint.header["iteration"]
        return {"iteration": iteration, "leaves": leaves, "rows": rows, "kept": sorted(written.written)}

    original = run(files)
    previous = {**original, **{name: run({**files, "checkpoint.eqx": b""})[name] for name in ("iteration", "leaves")}}
    assert previous["iteration"] == 10

    def continues(result: dict[str, Any]) -> str | None:
        """The newest checkpoint or the one before it, to the bit; and no row of metrics but those that were written."""
        places = [expected for expected in (original, previous) if equal(result["leaves"], expected["leaves"])]
        if not places or result["iteration"] != places[0]["iteration"]:
            return f"a state that no checkpoint held, of iteration {result['iteration']}"
        strange = [row for row in result["rows"] if row not in original["rows"]]
        return f"rows that nobody wrote: {strange}" if strange else None

    def of_bytes(name: str) -> Callable[[Random], Case]:
        def make_case(random: Random) -> Case:
            data = damaged(files[name], random.choice(list(MUTATIONS)), random)
            return Case({**files, name: data}, continues)

        return make_case

    def one_flip(random: Random) -> Case:
        name = random.choice(checkpoints)
        return Case({**files, name: damaged(files[name], "one bit flipped", random)}, continues)

    def both(random: Random) -> Case:
        changed = {name: damaged(files[name], random.choice(list(MUTATIONS)), random) for name in checkpoints}
        return Case({**files, **changed}, must_refuse)

    def missing(random: Random) -> Case:
        name = random.choice(["config.json", "plan.json"])
        return Case({key: data for key, data in files.items() if key != name}, must_refuse)

    def exchanged(random: Random) -> Case:
        one, other = random.sample(list(files), 2)
        return Case({**files, one: files[other]}, continues)

    def settings(random: Random) -> Case:
        """Another configuration under the checkpoint, though a possible one."""
        changes = {
            "delta": 0.2,
            "num_envs": 128,
            "seeds": [1],
            "actor_lr": 1e-3,
            "buffer_size": 512,
            "max_rounds": 12,
            "cost": "none",
        }
        name = random.choice(list(changes))
        tree = trees.replaced(json.loads(files["config.json"]), ("learning", name), changes[name])
        return Case({**files, "config.json": json.dumps(tree).encode()}, must_refuse)

    def problem_of_another(random: Random) -> Case:
        name, value = random.choice([("players", 4), ("arms", 3), ("horizon", 21), ("mean_low", 0.2)])
        tree = trees.replaced(json.loads(files["config.json"]), ("problem", "arguments", name), value)
        return Case({**files, "config.json": json.dumps(tree).encode()}, must_refuse)

    def plan(random: Random) -> Case:
        bad = [
            b'{"rounds": 12}',
            b'{"rounds": 1e9}',
            b'{"rounds": true}',
            b'{"rounds": null}',
            b"[]",
            b"3",
            b'{"rounds": -9}',
        ]
        bad += [
            b'{"rounds": 99999999999999999999}',
            b'{"rounds": NaN}',
            trees.nested(200_000).encode(),
            b'{"rounds": "9"}',
            b"\xff\xfe",
        ]
        return Case({**files, "plan.json": random.choice(bad)}, must_refuse)

    def rows(random: Random) -> Case:
        """Lines of metrics that are no rows, or rows that nobody wrote."""
        lines = files["metrics.jsonl"].splitlines(keepends=True)
        odd = [
            b"[]\n",
            b"3\n",
            b"null\n",
            b'{"seed": []}\n',
            b'{"seed": [], "iteration": {}}\n',
            trees.nested(99_999).encode() + b"\n",
        ]
        odd += [
            b'{"seed": 215, "iteration": 30, "accuracy": "x", "tau": []}\n',
            b"\0" * 500,
            b'{"seed": 1e400, "iteration": NaN}\n',
        ]
        odd += [
            b'{"seed": 215, "iteration": 10, "accuracy": 0.9, "crc32": "00000000"}\n',
            b"\xff\xfe\n",
            b'{"seed": 215, "iterat',
        ]
        lines.insert(random.randint(1, len(lines)), random.choice(odd))
        return Case({**files, "metrics.jsonl": b"".join(lines)}, continues)

    mutations: dict[str, Callable[[Random], Case]] = {
        "checkpoint: one bit flipped": one_flip,
        "newest checkpoint damaged": of_bytes("checkpoint.eqx"),
        "checkpoint before it damaged": of_bytes("checkpoint-previous.eqx"),
        "both checkpoints damaged": both,
        "metrics damaged": of_bytes("metrics.jsonl"),
        "lines of metrics": rows,
        "plan": plan,
        "file missing": missing,
        "files exchanged": exchanged,
        "settings of another run": settings,
        "another problem": problem_of_another,
    }
    return Target(run, mutations)


def _plain(leaf: Any) -> Any:
    is_key = jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return jax.random.key_data(leaf) if is_key else leaf
