"""Forward and backward through the encoder (LSTM and pooling, every prefix): PyTorch against ours.

Where torch is installed only. Each library has a process of its own, so that neither's idle threads are in the other's
way. PyTorch's side is its fused `nn.LSTM`; a loop written by hand took three times as long.

The result is for one thread each. PyTorch's threads wait for one another at every operation: with two of them, any
other program made it ten times slower, which says nothing about the encoder; so two are tried on a quiet machine only.
"""

import dataclasses
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.timing import QUIET, Measurement, alternate, assert_same, median_ratio, others_share
from icmape.networks import RecurrentEncoder

BATCH, ROUNDS, WIDTH, FEATURES = 256, 50, 128, 11
SIZES = {"batch": BATCH, "rounds": ROUNDS, "width": WIDTH, "threads": 1}
HERE = Path(__file__).parent


def measure(quick: bool = False) -> Measurement:
    """How many times faster than PyTorch our encoder trains."""
    if importlib.util.find_spec("torch") is None:
        return Measurement(None, SIZES, notes={"missing": "torch is not installed"})
    repeats = 3 if quick else 9
    one_thread = run_process(repeats, 1)
    if (others_share() or 0.0) > QUIET:
        return dataclasses.replace(one_thread, notes={**one_thread.notes, "with_two_threads": None})
    two_threads = run_process(repeats, 2)
    with_two = {"speedup": two_threads.value, "repeats": repeats, "seconds": two_threads.seconds}
    return dataclasses.replace(one_thread, notes={**one_thread.notes, "with_two_threads": with_two})


def run_process(repeats: int, threads: int) -> Measurement:
    """The comparison in a fresh process, because cores must be limited before JAX starts its threads."""
    command = [sys.executable, "-m", "benchmarks.torch_encoder", str(repeats), str(threads)]
    done = subprocess.run(command, cwd=HERE.parent, stdout=subprocess.PIPE, text=True, check=True)
    return Measurement(**json.loads(done.stdout.splitlines()[-1]))


def compare(repeats: int, threads: int) -> Measurement:
    """What that process does: check that both have the same gradient, then time them in turns."""
    encoder = RecurrentEncoder(FEATURES, WIDTH, "paper+last", key=jax.random.key(0))
    tokens = jax.random.normal(jax.random.key(1), (BATCH, ROUNDS, FEATURES))
    gradient = jax.jit(jax.grad(loss))
    with TemporaryDirectory() as folder:
        hand_over(Path(folder), encoder, tokens, threads)
        command = [sys.executable, str(HERE / "torch_worker.py"), folder]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as torch:
            version = torch.stdout.readline().strip()
            theirs = dict(np.load(Path(folder) / "gradient.npz"))
            difference = assert_same("torch", by_name(gradient(encoder, tokens)), theirs, tolerance=1e-3)
            ways = {"ours": lambda: gradient(encoder, tokens), "torch": lambda: ask(torch)}
            samples = alternate(ways, repeats)
            torch.stdin.close()
    notes = {"largest_relative_difference": difference, "torch": version}
    return Measurement(median_ratio(samples), SIZES, samples, repeats, notes)


def loss(encoder: RecurrentEncoder, tokens: jax.Array) -> jax.Array:
    """The mean square of every prefix's summary."""
    return jnp.mean(jax.vmap(encoder.unroll_tokens)(tokens) ** 2)


def by_name(encoder: RecurrentEncoder) -> dict[str, Any]:
    """Our weights, or their gradient, under names of their own."""
    return {
        "embedding": encoder.embedding.weight,
        "embedding_bias": encoder.embedding.bias,
        "gate": encoder.gate.weight,
        "inputs": encoder.lstm.weight_ih,
        "inputs_bias": encoder.lstm.bias,
        "keys": encoder.key_projection.weight,
        "query_in": encoder.query_in,
        "query_out": encoder.query_out,
        "recurrent": encoder.lstm.weight_hh,
    }


def hand_over(folder: Path, encoder: RecurrentEncoder, tokens: jax.Array, threads: int) -> None:
    """All that PyTorch's process needs."""
    np.savez(folder / "weights.npz", **{name: np.asarray(x) for name, x in by_name(encoder).items()})
    np.save(folder / "tokens.npy", np.asarray(tokens))
    (folder / "device").write_text("cuda" if jax.default_backend() == "gpu" else "cpu")
    (folder / "threads").write_text(str(threads))


def ask(worker: subprocess.Popen[str]) -> None:
    """One gradient of PyTorch's process."""
    worker.stdin.write("\n")
    worker.stdin.flush()
    if worker.stdout.readline() != "done\n":
        raise RuntimeError("PyTorch's process ended early; its message is above")


if __name__ == "__main__":
    asked_repeats, asked_threads = map(int, sys.argv[1:])
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:asked_threads])
    print(json.dumps(dataclasses.asdict(compare(asked_repeats, asked_threads))))
