"""Every operation gives what JAX gives: in NumPy, in JavaScript and in ONNX."""

import json
import shutil
import subprocess
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from icmape_agent.javascript import RUNTIME_FILE, _typed
from icmape_agent.program import OPERATIONS
from tests.agent.traced import Traced, traced

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4)).astype(np.float32)
Y = RNG.normal(size=(3, 4)).astype(np.float32)
POSITIVE = np.abs(X) + np.float32(0.1)
UNIT = np.tanh(X)
WHOLE, J = RNG.integers(-9, 9, (2, 3, 4)).astype(np.int32)
J[J == 0] = 5

BITS = RNG.random((3, 4)) < 0.5
HALF = RNG.normal(size=(6,)).astype(np.float16)
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -2.5, 2.5, 3.5, 0.5], np.float32)
MATRICES = RNG.normal(size=(5, 3, 4)).astype(np.float32)
WHERE = np.array([2, 0, 7, -1, 1], np.int32)
IMAGE = RNG.normal(size=(1, 2, 6, 5)).astype(np.float32)
KERNEL = RNG.normal(size=(3, 2, 3, 2)).astype(np.float32)
WIDE = RNG.normal(scale=0.05, size=(2, 1089)).astype(np.float32)


def offsets(side: int) -> np.ndarray:
    """Positions in a list of (2·side - 1)² weights, by displacement of two cells."""
    row, column = np.divmod(np.arange(side**2), side)
    down, across = row[:, None] - row + side - 1, column[:, None] - column + side - 1
    return down * (2 * side - 1) + across


PLAIN = ("floor", "ceil", "exp", "exp2", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh", "cbrt")
PLAIN_TOO = ("negative", "abs", "sign", "square")
FLOATS = {
    **{name: (getattr(jnp, name), X) for name in (*PLAIN, *PLAIN_TOO)},
    **{name: (getattr(jnp, name), POSITIVE) for name in ("log", "log1p", "sqrt", "reciprocal")},
    **{f"arc{name}": (getattr(jnp, f"arc{name}"), UNIT) for name in ("sin", "cos", "tan", "tanh")},
    "arcsinh": (jnp.arcsinh, X),
    "arccosh": (jnp.arccosh, POSITIVE + 1),
    "log1p of little": (jnp.log1p, X * np.float32(1e-6)),
    "expm1 of little": (jnp.expm1, X * np.float32(1e-6)),
    "rsqrt": (lax.rsqrt, POSITIVE),
    "logistic": (jax.nn.sigmoid, 20 * X),
    "gelu": (jax.nn.gelu, X),
    "gelu by erf": (lambda x: jax.nn.gelu(x, approximate=False), 3 * X),
    "erf": (jax.scipy.special.erf, 3 * X),
    "erfc": (jax.scipy.special.erfc, 3 * X),
    "round": (jnp.round, SPECIAL[6:]),
    "round away": (lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO), SPECIAL[6:]),
    "integer powers": (lambda x: x**5 + x**-2 + x**0, POSITIVE),
    "log_softmax": (jax.nn.log_softmax, X),
    "softplus": (jax.nn.softplus, X),
    "is_finite": (jnp.isfinite, SPECIAL),
    "isnan": (jnp.isnan, SPECIAL),
    "max with NaN": (lambda x: jnp.maximum(x, 0.0), SPECIAL),
    "clip": (lambda x: jnp.clip(x, -0.5, 0.5), X),
    "to int": (lambda x: x.astype(jnp.int32), 10 * X),
    "to int, out of range": (lambda x: x.astype(jnp.int32), SPECIAL),
    "to bool": (lambda x: (x - 2.5).astype(bool), SPECIAL[5:]),
    "16 bits": (lambda x: (x * x + x).astype(jnp.float32), HALF),
    "rounded to 16 bits": (lambda x: x.astype(jnp.float16).astype(jnp.float32), 1000 * X),
}
PAIRS = {
    **{name: (getattr(jnp, name), X, Y) for name in ("add", "subtract", "multiply", "divide", "maximum", "minimum")},
    **{name: (getattr(jnp, name), WHOLE, J) for name in ("add", "multiply", "maximum", "floor_divide", "remainder")},
    **{name: (getattr(jnp, name), X, Y.round()) for name in ("less", "less_equal", "greater", "greater_equal")},
    "equal": (jnp.equal, WHOLE, J),
    "not_equal": (jnp.not_equal, WHOLE, J),
    "equal bools": (jnp.equal, BITS, BITS.T.reshape(3, 4)),
    "divide whole": (lax.div, WHOLE, J),
    "remainder whole": (lax.rem, WHOLE, J),
    "remainder": (lax.rem, 5 * X, Y),
    "power": (jnp.power, POSITIVE, Y),
    "arctan2": (jnp.arctan2, X, Y),
    "logical": (lambda a, b: (a & b) | ~(a ^ b), BITS, X > 0),
    "bitwise": (lambda a, b: (a & b) | ~(a ^ b), WHOLE, J),
    "shift_left": (lax.shift_left, WHOLE, np.abs(J)),
    "shift_right": (lax.shift_right_arithmetic, WHOLE, np.abs(J)),
    "shift_right_logical": (lax.shift_right_logical, WHOLE, np.abs(J)),
    "where": (lambda x, y: jnp.where(x > y, x, 0.0), X, Y),
    "select_n": (lambda i, x: lax.select_n(jnp.clip(i, 0, 2), x, 2 * x, 3 * x), WHOLE, X),
    "max of bools": (lax.max, BITS, X > 0),
}
SHAPES = {
    "reshape": (lambda x: x.reshape(2, 6), X),
    "transpose": (lambda x: jnp.transpose(x, (2, 0, 1)), MATRICES),
    "broadcast": (lambda x: jnp.broadcast_to(x[:, None], (3, 5, 4)) + 0.0, X),
    "concatenate": (lambda x: jnp.concatenate([x, x[:1], 2 * x], axis=0), X),
    "stack": (lambda x: jnp.stack([x, x + 1], axis=1), X),
    "slice": (lambda x: x[:, 1:4:2], X),
    "split": (lambda x: jnp.concatenate(jnp.split(x, 2, axis=1)[::-1], axis=1), X),
    "pad": (lambda x: jnp.pad(x, ((1, 0), (2, 3)), constant_values=7), X),
    "pad by less than nothing": (lambda x: lax.pad(x, np.float32(0), ((-1, 2, 0), (0, -2, 0))), X),
    "flip": (lambda x: x[:, ::-1], X),
    "iota": (lambda x: x + lax.iota(jnp.float32, 4), X),
    "counting": (lambda x: x + jnp.arange(3000, dtype=jnp.int32).reshape(30, 100)[-3:, :4].astype(jnp.float32), X),
    "one_hot": (lambda i: jax.nn.one_hot(i, 5), WHERE),
    "sum": (lambda x: jnp.sum(x, axis=(0, 2)), MATRICES),
    "prod": (lambda x: jnp.prod(x, axis=1), X),
    "max": (lambda x: jnp.max(x, axis=0) - jnp.min(x), X),
    "any": (lambda x: jnp.any(x > 1, axis=1) ^ jnp.all(x > -1, axis=1), X),
    "argmax": (lambda x: jnp.argmax(x, axis=1) - jnp.argmin(x, axis=1), X.round()),
    "cumsum": (lambda x: jnp.cumsum(x, axis=0) + lax.cumsum(x, 1, reverse=True), X),
    "cumprod": (lambda x: jnp.cumprod(x, axis=1), X),
    "cummax": (lambda x: lax.cummax(x, 1) - lax.cummin(x, 0), X),
    "sort": (lambda x: jnp.sort(x, axis=0), X),
    "argsort": (lambda x: jnp.argsort(x, axis=1), X.round()),
    "argsort down": (lambda x: jnp.argsort(x, axis=1, descending=True), X.round()),
    "top_k": (lambda x: lax.top_k(x, 2)[0] + lax.top_k(x, 2)[1].astype(jnp.float32), X.round()),
    "matmul": (lambda x: x @ x.T, X),
    "vectors": (lambda x: x[0] @ x[1], X),
    "einsum": (lambda x: jnp.einsum("cij,cj->ic", x, x[:, 0]), MATRICES),
    "whole products": (lambda i: i @ i.T, WHOLE),
    "convolution": (
        lambda x: lax.conv_general_dilated(x, jnp.asarray(KERNEL), (2, 1), ((1, 0), (2, 1)), rhs_dilation=(1, 2)),
        IMAGE,
    ),
    "by displacement": (
        lambda x: jnp.einsum("cij,jc->ic", x[:, offsets(17)], x[:, :289].T),
        WIDE,
    ),
    "loop": (lambda x: lax.scan(lambda c, r: (c * 0.5 + r, c.sum()), x[0], x, reverse=True)[1], X),
    "fori_loop": (lambda x: lax.fori_loop(0, 3, lambda i, c: c + x[i], x[0]), X),
    "cond": (lambda x: lax.cond(x[0, 0] > 0, lambda y: y + 1, lambda y: y - 1, x), X),
    "map": (lambda x: lax.map(lambda r: r.sum(), x), X),
    "long map": (lambda x, y: lax.map(lambda r: jnp.cumsum(r @ y) * r[0], jnp.concatenate([x] * 400)), X, Y.T[:, :2]),
}
INDEXING = {
    "take": (lambda x, i: x[i], X, np.clip(WHERE, 0, 2)),
    "take one": (lambda x, i: x[i[0], i[4]], X, WHERE),
    "take, clipped": (lambda x, i: jnp.take(x, i, axis=1, mode="clip"), X, WHERE),
    "take, filled": (lambda x, i: jnp.take(x, i, axis=0, mode="fill", fill_value=9.0), X, WHERE),
    "take along": (lambda x, i: jnp.take_along_axis(x, i[:3, None], axis=1), X, np.clip(WHERE, 0, 3)),
    "two indices": (lambda x, i: x[i, :, i + 1], MATRICES, np.array([0, 2, 1], np.int32)),
    "vmapped": (lambda x, i: jax.vmap(lambda r, k: r[k])(x, i), MATRICES, np.clip(WHERE, 0, 2)),
    "dynamic_slice": (lambda x, i: lax.dynamic_slice(x, (i[2], i[3]), (2, 3)), X, WHERE),
    "dynamic_update_slice": (lambda x, i: lax.dynamic_update_slice(x, -x[:2, :2], (i[2], i[4])), X, WHERE),
    "set": (lambda x, i: x.at[i[0], 1].set(9.0), X, WHERE),
    "set rows": (lambda x, i: x.at[i].set(0.0), X, np.array([2, 0], np.int32)),
    "set where outside": (lambda x, i: x.at[i].set(0.0, mode="drop"), X, np.array([2, 7], np.int32)),
    **{
        f"{how} at": (lambda x, i, how=how: getattr(x.at[i, i], how)(2.0), X, np.array([2, 0, 2], np.int32))
        for how in ("add", "multiply", "min", "max")
    },
    "set bools": (lambda x, i: (x > 0).at[i[0]].set(True), X, WHERE),
}
CASES = {
    f"{group}: {name}": case
    for group, cases in (("float", FLOATS), ("pair", PAIRS), ("shape", SHAPES), ("index", INDEXING))
    for name, case in cases.items()
}
NOT_IN_ONNX = {"arctan2", "shift_left", "shift_right", "shift_right_logical", "cumprod", "cummax"}  # ONNX has none
NOT_IN_ONNX |= {"to int, out of range"}  # not defined there


@cache
def program(name: str) -> Traced:
    function, *inputs = CASES[name]
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        return traced(function, *inputs)


@cache
def expected(name: str) -> np.ndarray:
    function, *inputs = CASES[name]
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        return np.asarray(function(*map(jnp.asarray, inputs)))


def assert_same(found: np.ndarray, name: str) -> None:
    wanted = expected(name)
    assert np.shape(found) == wanted.shape
    if wanted.dtype.kind == "f":
        np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=2e-6)
    else:
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", CASES)
def test_numpy_gives_what_jax_gives(name):
    found = program(name).function(*CASES[name][1:])[0]
    assert np.asarray(found).dtype == expected(name).dtype
    assert_same(found, name)


def test_every_operation_is_tried():
    tried = set().union(*(program(name).names for name in CASES))
    assert set(OPERATIONS) - tried == set()


def test_a_product_by_displacement_does_not_build_its_matrices():
    sizes = [kind.size for kind in program("shape: by displacement").function.kinds]
    assert max(sizes) < 2 * 289**2 / 3


@pytest.fixture(scope="module")
def from_node(tmp_path_factory) -> dict[str, list]:
    """Results of all cases in one process."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed")
    folder = tmp_path_factory.mktemp("node")
    code = RUNTIME_FILE.read_text(encoding="utf-8").replace("return { STOP,", "return { Fn, ARRAYS, STOP,")
    (folder / "icmape.js").write_text(code)
    (folder / "cases.json").write_text(json.dumps({name: case(name) for name in CASES}))
    (folder / "run.js").write_text(
        """const icmape = require("./icmape.js"), cases = require("./cases.json"), found = {};
        const typed = ([type, values]) => icmape.ARRAYS[type].from(values, Number);
        for (const [name, { described, tensors, inputs }] of Object.entries(cases)) {
          for (const key of Object.keys(tensors)) tensors[key] = typed(tensors[key]);
          const out = icmape.Fn.read(described, tensors).call(...inputs.map(typed))[0];
          found[name] = Array.from(out, String);
        }
        console.log(JSON.stringify(found));"""
    )
    done = subprocess.run([node, "run.js"], cwd=folder, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def case(name: str) -> dict:
    made = program(name)
    listed = lambda x: [x.dtype.name, [str(float(v)) if x.dtype.kind == "f" else int(v) for v in x.reshape(-1)]]  # noqa: E731
    text = lambda entry: [entry[0], [v.replace("inf", "Infinity").replace("nan", "NaN") for v in entry[1]]]  # noqa: E731
    plain = lambda x: text(listed(x)) if x.dtype.kind == "f" else listed(x)  # noqa: E731
    return {
        "described": _typed(made.described, made.tensors),
        "tensors": {key: plain(tensor) for key, tensor in made.tensors.items()},
        "inputs": [plain(x) for x in CASES[name][1:]],
    }


@pytest.mark.parametrize("name", CASES)
def test_javascript_gives_what_jax_gives(from_node, name):
    wanted = expected(name)
    found = np.array([float(v) for v in from_node[name]]).reshape(wanted.shape)
    assert_same(found.astype(wanted.dtype) if wanted.dtype.kind != "f" else found, name)


@pytest.mark.parametrize("name", [name for name in CASES if name.partition(": ")[2] not in NOT_IN_ONNX])
def test_onnx_gives_what_jax_gives(name):
    pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    from icmape.export.onnx_files import _input, _model, _run
    from icmape.export.onnx_graph import ARRAYS, Graph, family

    made, graph = program(name), Graph()
    function = made.function
    kinds = {f"x{i}": kind for i, kind in enumerate(function.inputs)}
    given = [_input(graph, key, kind) for key, kind in kinds.items()]
    results = _run(graph, made.described, function, made.tensors, given)
    model = _model("case", graph, kinds, {"out": (results[0], function.outputs[0])})
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    fed = {
        key: np.asarray(x, ARRAYS[family(kind)]) for (key, kind), x in zip(kinds.items(), CASES[name][1:], strict=True)
    }
    assert_same(session.run(None, fed)[0], name)
