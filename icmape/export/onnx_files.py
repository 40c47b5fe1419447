"""Teams as ONNX graphs: one for an agent's round, one for a round of the inference and its answer.

Each graph is one step. In round 0 the state that it is given is not read.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from icmape.export.compare import Answering, Runner
from icmape.export.episodes import Played
from icmape.export.onnx_graph import ARRAYS, TYPES, Graph, emit, family
from icmape.play.programs.describe import Program
from icmape.play.team import Team
from icmape.play.team_files import team_tensors
from icmape_agent.description import MISSES
from icmape_agent.elementwise import OPERATIONS as ELEMENTWISE
from icmape_agent.kinds import Kind
from icmape_agent.program import OPERATIONS, Function, read_function

OPSET, IR = 18, 9
AGENT, INFERENCE = "agent.onnx", "inference.onnx"
ANSWER = ("scores", "probabilities", "decision", "confidence")
NUMBER = Kind("int32", ())
MARKS = ("acted", "arrived")


def onnx_files(team: Team, program: Program) -> dict[str, bytes]:
    """The graphs that a team has, checked by ONNX."""
    tensors = {name: np.asarray(leaf) for name, leaf in team_tensors(team).items()} | program.tensors
    parts = [part["name"] for part in program.described["parts"]]
    readings = [f"reading.{name}" if name else "reading" for name in parts]
    files = {}
    for part, name, make in (("agent", AGENT, _agent), ("inference", INFERENCE, _inference)):
        if part not in program.described["missing"]:
            inputs = readings + [*MARKS] * (part in program.described[MISSES])
            model = make(program.described["functions"], tensors, inputs, len(readings))
            onnx.checker.check_model(model, full_check=True)
            files[name] = model.SerializeToString()
    return files


def _agent(
    functions: dict[str, Any], tensors: dict[str, np.ndarray], readings: list[str], first_readings: int
) -> onnx.ModelProto:
    first, later = (read_function(functions[name], tensors) for name in ("open", "move"))
    states = [f"state.{i}" for i in range(len(first.outputs) - 3)]
    inputs = dict(zip(["agent", "round", "action", *readings, *states], later.inputs, strict=True))
    graph, given = Graph(), {}
    for name, kind in inputs.items():
        given[name] = _input(graph, name, kind)
    opened = _run(
        graph, functions["open"], first, tensors, [given[name] for name in ("agent", *readings[:first_readings])]
    )
    moved = _run(graph, functions["move"], later, tensors, list(given.values()))
    results = _chosen(graph, given["round"], opened, moved, first.outputs)
    names = [f"next.{name}" for name in states] + ["scores", "offered", "allowed"]
    return _model("agent", graph, inputs, dict(zip(names, zip(results, first.outputs, strict=True), strict=True)))


def _inference(
    functions: dict[str, Any], tensors: dict[str, np.ndarray], readings: list[str], first_readings: int
) -> onnx.ModelProto:
    begin, add, answer = (read_function(functions[name], tensors) for name in ("begin", "add", "answer"))
    states = [f"state.{i}" for i in range(len(begin.outputs))]
    inputs = {"round": NUMBER} | dict(zip(["actions", *readings, *states], add.inputs, strict=True))
    graph, given = Graph(), {}
    for name, kind in inputs.items():
        given[name] = _input(graph, name, kind)
    begun = _run(graph, functions["begin"], begin, tensors, [given[name] for name in readings[:first_readings]])
    added = _run(graph, functions["add"], add, tensors, [given[name] for name in ("actions", *readings, *states)])
    state = _chosen(graph, given["round"], begun, added, begin.outputs)
    found = _run(graph, functions["answer"], answer, tensors, state)
    results = [*zip(state, begin.outputs, strict=True), *zip(found, answer.outputs, strict=True)]
    names = [f"next.{name}" for name in states] + list(ANSWER)
    return _model("inference", graph, inputs, dict(zip(names, results, strict=True)))


def _input(graph: Graph, name: str, kind: Kind) -> str:
    """An input as the operations read it: 16-bit numbers are rounded to what they can hold."""
    if kind.type != "float16":
        return name
    return graph.cast(graph.node("Cast", name, to=TensorProto.FLOAT16), "float")


def _run(
    graph: Graph, described: dict[str, Any], function: Function, tensors: dict[str, np.ndarray], inputs: list[str]
) -> list[str]:
    """The outputs of a function."""
    values, kinds = list(inputs), function.kinds
    for name, operands, params in described["operations"]:
        kind = kinds[len(values)]
        if name == "tensor":
            values.append(graph.constant(tensors[params["name"]], ARRAYS[family(kind)], params["name"]))
        elif not operands:  # constants
            value = OPERATIONS[name].make((), params, kind)()
            values.append(graph.constant(value, ARRAYS[family(kind)]))
        else:
            result = emit(graph, name, [values[i] for i in operands], [kinds[i] for i in operands], params, kind)
            half = kind.type == "float16" and name in ELEMENTWISE and name != "convert"
            values.append(_input(graph, result, kind) if half else result)
    return [values[i] for i in described["outputs"]]


def _chosen(graph: Graph, number: str, first: list[str], later: list[str], kinds: Sequence[Kind]) -> list[str]:
    """The first results in round 0, and otherwise the later ones."""
    starting = graph.node("Equal", number, graph.number(0, NUMBER))
    rows = zip(first, later, kinds, strict=True)
    return [emit(graph, "select", [starting, a, b], [Kind("bool", ()), k, k], {}, k) for a, b, k in rows]


def _model(name: str, graph: Graph, inputs: dict[str, Kind], outputs: dict[str, tuple[str, Kind]]) -> onnx.ModelProto:
    for output, (value, _) in outputs.items():
        graph.node("Identity", value, name=output)
    results = {key: kind for key, (_, kind) in outputs.items()}
    constants = list(graph.constants.values())
    made = helper.make_graph(graph.nodes, name, _declared(inputs), _declared(results), initializer=constants)
    return helper.make_model(
        made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR, producer_name="icmape"
    )


def _declared(values: dict[str, Kind]) -> list[onnx.ValueInfoProto]:
    return [helper.make_tensor_value_info(name, TYPES[family(kind)], list(kind.shape)) for name, kind in values.items()]


class Session:
    """Runs one of the graphs round by round."""

    def __init__(self, model: bytes):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._inputs = self._session.get_inputs()
        self._names = [output.name for output in self._session.get_outputs()]
        self._state: dict[str, np.ndarray] = {}

    def restart(self) -> None:
        """Forget the state."""
        self._state = {}

    def step(self, **given: Any) -> dict[str, np.ndarray]:
        """The outputs of a round; the state is kept."""
        values = given | self._state
        fed = {}
        for entry in self._inputs:
            kind = {"tensor(float)": np.float32, "tensor(int32)": np.int32, "tensor(bool)": np.bool_}[entry.type]
            fed[entry.name] = np.asarray(values.get(entry.name, np.zeros(entry.shape)), kind).reshape(entry.shape)
        found = dict(zip(self._names, self._session.run(None, fed), strict=True))
        self._state = {name.removeprefix("next."): x for name, x in found.items() if name.startswith("next.")}
        return found


def onnx_runner(program: Program, files: dict[str, bytes]) -> Runner:
    """Plays episodes in onnxruntime."""
    sessions = {name: Session(model) for name, model in files.items()}
    parts = [part["name"] for part in program.described["parts"]]
    readings = [f"reading.{name}" if name else "reading" for name in parts]
    agents = range(program.described["sizes"]["agents"])

    def run(batch: list[Played]) -> Iterable[Answering]:
        for episode in batch:
            scores = [_agent_scores(sessions[AGENT], readings, episode, i) for i in agents] if AGENT in files else None
            answer = _answer(sessions[INFERENCE], readings, episode) if INFERENCE in files else None
            yield None if scores is None else np.stack(scores, axis=1), answer

    return run


def _agent_scores(session: Session, readings: list[str], episode: Played, agent: int) -> np.ndarray:
    session.restart()
    rows = []
    for t in range(len(episode.actions) + 1):
        action = episode.actions[t - 1, agent] if t else 0
        seen = {name: part[t, agent] for name, part in zip(readings, episode.observations, strict=True)}
        marks = {name: part[t - 1, agent] for name, part in _marks(episode, t).items()}
        rows.append(session.step(agent=agent, round=t, action=action, **seen, **marks)["scores"])
    return np.stack(rows)


def _answer(session: Session, readings: list[str], episode: Played) -> np.ndarray:
    session.restart()
    found: dict[str, np.ndarray] = {}
    for t in range(len(episode.actions) + 1):
        actions = episode.actions[t - 1] if t else np.zeros(episode.observations[0].shape[1], np.int32)
        seen = {name: part[t] for name, part in zip(readings, episode.observations, strict=True)}
        marks = {name: part[t - 1] for name, part in _marks(episode, t).items()}
        found = session.step(round=t, actions=actions, **seen, **marks)
    return found["scores"]


def _marks(episode: Played, number: int) -> dict[str, Any]:
    """What graphs that take missing readings read; in round 0 they read nothing."""
    return dict(zip(MARKS, (episode.acted, episode.arrived), strict=True)) if number else {}
