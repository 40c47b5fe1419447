"""Operations of programs as ONNX nodes. Whole numbers are int32 and floats are float32 in the graph."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from icmape.errors import UserError
from icmape_agent.kinds import Kind

TYPES = {"bool": TensorProto.BOOL, "float": TensorProto.FLOAT, "int": TensorProto.INT32}
ARRAYS = {"bool": np.bool_, "float": np.float32, "int": np.int32}
FAR = 2**31 - 1


def family(kind: Kind) -> str:
    """The type in the graph: "bool", "int" or "float"."""
    return "bool" if kind.type == "bool" else "float" if kind.is_float else "int"


@dataclass
class Graph:
    """Nodes and constants of a graph; values are known by their names."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, onnx.TensorProto] = field(default_factory=dict)
    _known: dict[Any, str] = field(default_factory=dict)

    def node(self, kind: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """The result of a node."""
        result = name or f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [result], **attributes))
        return result

    def constant(self, value: Any, dtype: Any = np.int64, name: str = "") -> str:
        """A constant; equal ones are stored once."""
        array = np.asarray(value, dtype)
        key = array.dtype.name, array.shape, array.tobytes()
        if key not in self._known:
            self._known[key] = name or f"c{len(self.constants)}"
            self.constants[self._known[key]] = numpy_helper.from_array(array, self._known[key])
        return self._known[key]

    def number(self, value: float | int, kind: Kind) -> str:
        """A scalar in the type of a value."""
        return self.constant(value, ARRAYS[family(kind)])

    def cast(self, value: str, to: str) -> str:
        """A value in another type of the graph."""
        return self.node("Cast", value, to=TYPES[to])


Params = dict[str, Any]
Emit = Callable[[Graph, list[str], Sequence[Kind], Params, Kind], str]


def emit(graph: Graph, name: str, inputs: list[str], kinds: Sequence[Kind], params: Params, out: Kind) -> str:
    """The result of an operation of a program."""
    if name not in EMIT:
        raise UserError(f"the operation {name} of this team's program has no counterpart in ONNX")
    return EMIT[name](graph, inputs, kinds, params, out)


def _plain(kind: str, **attributes: Any) -> Emit:
    return lambda graph, inputs, kinds, params, out: graph.node(kind, *inputs, **attributes)


def _by_family(**names: str) -> Emit:
    def apply(graph: Graph, inputs: list[str], kinds: Sequence[Kind], params: Params, out: Kind) -> str:
        return graph.node(names[family(kinds[0])], *inputs)

    return apply


def _compared(name: str, negated: bool = False) -> Emit:
    def apply(graph: Graph, inputs: list[str], kinds: Sequence[Kind], params: Params, out: Kind) -> str:
        values = [graph.cast(x, "int") for x in inputs] if kinds[0].type == "bool" else inputs
        found = graph.node(name, *values)
        return graph.node("Not", found) if negated else found

    return apply


def _with_one(build: Callable[[Graph, str, str], str]) -> Emit:
    return lambda graph, inputs, kinds, params, out: build(graph, inputs[0], graph.number(1, kinds[0]))


def _log1p(graph: Graph, x: str, one: str) -> str:
    """log(u) · x / (u - 1) with u = 1 + x, which is exact to rounding; x where u is 1."""
    u = graph.node("Add", x, one)
    exact = graph.node("Equal", u, one)
    rest = graph.node("Where", exact, one, graph.node("Sub", u, one))
    return graph.node("Where", exact, x, graph.node("Div", graph.node("Mul", graph.node("Log", u), x), rest))


def _expm1(graph: Graph, x: str, one: str) -> str:
    """2·t / (1 - t) with t = tanh(x / 2)."""
    half = graph.node("Tanh", graph.node("Div", x, graph.constant(2, np.float32)))
    return graph.node("Div", graph.node("Add", half, half), graph.node("Sub", one, half))


def _cbrt(graph: Graph, x: str, one: str) -> str:
    root = graph.node("Pow", graph.node("Abs", x), graph.constant(1 / 3, np.float32))
    return graph.node("Mul", graph.node("Sign", x), root)


def _finite(graph: Graph, x: str, one: str) -> str:
    return graph.node("Not", graph.node("Or", graph.node("IsInf", x), graph.node("IsNaN", x)))


def _select(graph: Graph, inputs: list[str], kinds: Sequence[Kind], params: Params, out: Kind) -> str:
    condition, yes, no = inputs
    if out.type != "bool":
        return graph.node("Where", condition, yes, no)
    other = graph.node("And", graph.node("Not", condition), no)
    return graph.node("Or", graph.node("And", condition, yes), other)


def _convert(graph: Graph, inputs: list[str], kinds: Sequence[Kind], params: Params, out: Kind) -> str:
    if out.type == "float16":
        value = inputs[0] if kinds[0].is_float else graph.cast(inputs[0], "float")
        return graph.cast(graph.node("Cast", value, to=TensorProto.FLOAT16), "float")
    return inputs[0] if family(out) == family(kinds[0]) else graph.cast(inputs[0], family(out))


def _reshape(graph: Graph, inputs: list[str], kinds: Sequence[Kind], params: Params, out: Kind) -> str:
    return graph.node("Reshape", inputs[0], graph.constant(list(out.shape)), allowzero=1)


def _transpose(graph: Graph, inputs: list[str], kinds: Sequence[Kind], params: Params, out: Kind) -> str:
    return graph.node("Transpose", inputs[0], perm=params["axes"])


def _broadcast(graph: Graph, inputs: list[str], kinds: Sequence[Kind], params: Params, out: Kind) -> str:
    return graph.node("Expand", inputs[0], graph.constant(list(out.shape)))


def _concatenate(graph: Graph, inputs: list[str], kinds: Sequence[Kind], params: Params, out: Kind) -> str:
    return graph.node("Concat", *inputs, axis=params["axis"])


def _slice(graph: Graph, inputs: list[str], kinds: Sequence[Kind], params: Params, out: Kind) -> str:
    axes = list(range(len(out.shape)))
    return graph.node(
        "Slice", inputs[0], *(graph.constant(x) for x in (params["start"], params["stop"], axes, params["step"]))
    )


def _flip(graph: Graph, inputs: list[str], kinds: Sequence[Kind], params: Params, out: Kind) -> str:
    count = len(params["axes"])
    parts = [-1] * count, [-FAR] * count, params["axes"], [-1] * count
    return graph.node("Slice", inputs[0], *(graph.constant(x) for x in parts))


def _pad(graph: Graph, inputs: list[str], kinds: Sequence[Kind], params: Params, out: Kind) -> str:
    return graph.node("Pad", inputs[0], graph.constant([*params["before"], *params["after"]]), inputs[1])


def _reduced(name: str) -> Emit:
    def apply(graph: Graph, inputs: list[str], kinds: Sequence[Kind], params: Params, out: Kind) -> str:
        return graph.node(name, inputs[0], graph.constant(params["axes"]), keepdims=0, noop_with_empty_axes=1)

    return apply


def _logical(name: str) -> Emit:
    def apply(graph: Graph, inputs: list[str], kinds: Sequence[Kind], params: Params, out: Kind) -> str:
        return graph.cast(_reduced(name)(graph, [graph.cast(inputs[0], "int")], kinds, params, out), "bool")

    return apply


def _best(name: str) -> Emit:
    def apply(graph: Graph, inputs: list[str], kinds: Sequence[Kind], params: Params, out: Kind) -> str:
        return graph.cast(graph.node(name, inputs[0], axis=params["axis"], keepdims=0), "int")

    return apply


def _cumsum(graph: Graph, inputs: list[str], kinds: Sequence[Kind], params: Params, out: Kind) -> str:
    return graph.node("CumSum", inputs[0], graph.constant(params["axis"]), reverse=int(params["reverse"]))


def _sorted(output: int) -> Emit:
    def apply(graph: Graph, inputs: list[str], kinds: Sequence[Kind], params: Params, out: Kind) -> str:
        count, largest = graph.constant([out.shape[params["axis"]]]), int(params.get("descending", False))
        names = [f"v{len(graph.nodes)}_{part}" for part in ("values", "places")]
        graph.nodes.append(
            helper.make_node("TopK", [inputs[0], count], names, axis=params["axis"], largest=largest, sorted=1)
        )
        return graph.cast(names[1], "int") if output else names[0]

    return apply


def _take(graph: Graph, inputs: list[str], kinds: Sequence[Kind], params: Params, out: Kind) -> str:
    last = kinds[0].shape[params["axis"]] - 1
    inside = graph.node("Min", graph.node("Max", inputs[1], graph.number(0, kinds[1])), graph.number(last, kinds[1]))
    return graph.node("Gather", inputs[0], inside, axis=params["axis"])


def _put(graph: Graph, inputs: list[str], kinds: Sequence[Kind], params: Params, out: Kind) -> str:
    """Into the operand with one more place at its end, which receives what is dropped."""
    size = kinds[0].size
    if kinds[0].type == "bool":
        inputs = [graph.cast(inputs[0], "int"), inputs[1], graph.cast(inputs[2], "int")]
    kind = Kind("int32", ()) if kinds[0].type == "bool" else kinds[0]
    wide = graph.node("Concat", inputs[0], graph.constant([0], ARRAYS[family(kind)]), axis=0)
    low = graph.node("Less", inputs[1], graph.number(0, kinds[1]))
    high = graph.node("GreaterOrEqual", inputs[1], graph.number(size, kinds[1]))
    place = graph.node("Where", graph.node("Or", low, high), graph.number(size, kinds[1]), inputs[1])
    how = {"set": "none"}.get(params["how"], params["how"])
    put = graph.node("ScatterElements", wide, place, inputs[2], axis=0, reduction=how)
    rest = graph.node("Slice", put, *(graph.constant([n]) for n in (0, size, 0)))
    return graph.cast(rest, "bool") if kinds[0].type == "bool" else rest


def _window(graph: Graph, inputs: list[str], kinds: Sequence[Kind], params: Params, out: Kind) -> str:
    last = kinds[0].shape[params["axis"]] - params["size"]
    inside = graph.node("Min", graph.node("Max", inputs[1], graph.number(0, kinds[1])), graph.number(last, kinds[1]))
    start = graph.node("Reshape", inside, graph.constant([1]))
    stop = graph.node("Add", start, graph.number(params["size"], kinds[1]))
    return graph.node("Slice", inputs[0], start, stop, graph.constant([params["axis"]], np.int32))


SAME = {
    **{
        name: name.capitalize()
        for name in ("neg", "abs", "sign", "floor", "ceil", "round", "exp", "log", "sqrt", "erf")
    },
    **{name: name.capitalize() for name in ("sqrt", "erf", "sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{name: name.capitalize() for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")},
    **{"add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "pow": "Pow", "matmul": "MatMul", "logistic": "Sigmoid"},
}
EMIT: dict[str, Emit] = {
    **{name: _plain(kind) for name, kind in SAME.items()},
    "rem": _plain("Mod", fmod=1),
    "max": _by_family(float="Max", int="Max", bool="Or"),
    "min": _by_family(float="Min", int="Min", bool="And"),
    "and": _by_family(int="BitwiseAnd", bool="And"),
    "or": _by_family(int="BitwiseOr", bool="Or"),
    "xor": _by_family(int="BitwiseXor", bool="Xor"),
    "not": _by_family(int="BitwiseNot", bool="Not"),
    "eq": _compared("Equal"),
    "ne": _compared("Equal", negated=True),
    "lt": _compared("Less"),
    "le": _compared("LessOrEqual"),
    "gt": _compared("Greater"),
    "ge": _compared("GreaterOrEqual"),
    "exp2": lambda graph, inputs, kinds, params, out: graph.node("Pow", graph.number(2, kinds[0]), inputs[0]),
    "erfc": _with_one(lambda graph, x, one: graph.node("Sub", one, graph.node("Erf", x))),
    "log1p": _with_one(_log1p),
    "expm1": _with_one(_expm1),
    "cbrt": _with_one(_cbrt),
    "is_finite": _with_one(_finite),
    "select": _select,
    "convert": _convert,
    "reshape": _reshape,
    "transpose": _transpose,
    "broadcast": _broadcast,
    "concatenate": _concatenate,
    "slice": _slice,
    "flip": _flip,
    "pad": _pad,
    "sum": _reduced("ReduceSum"),
    "prod": _reduced("ReduceProd"),
    "reduce_max": _reduced("ReduceMax"),
    "reduce_min": _reduced("ReduceMin"),
    "all": _logical("ReduceMin"),
    "any": _logical("ReduceMax"),
    "argmax": _best("ArgMax"),
    "argmin": _best("ArgMin"),
    "cumsum": _cumsum,
    "sort": _sorted(0),
    "argsort": _sorted(1),
    "take": _take,
    "put": _put,
    "window": _window,
}
