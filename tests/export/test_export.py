"""Exports play as JAX does, and are not written where they do not."""

import json
import shutil
import subprocess
from pathlib import Path

import equinox as eqx
import numpy as np
import pytest

import icmape_agent
from icmape import UserError
from icmape.cli import main
from icmape.export import export
from icmape.export.compare import Agreement, check
from icmape.play.team_files import load
from tests.support import lively_team

EPISODES = 20
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")


@needs_node
def test_javascript_agrees_and_a_page_can_use_it(tmp_path):
    files, found = export(lively_team(), "js", tmp_path / "js", episodes=EPISODES)
    assert [file.name for file in files] == ["team.json", "icmape.js"]
    assert (found.episodes, found.beyond, found.differing_choices, found.differing_answers) == (EPISODES, 0, 0, 0)
    assert found.decisions > EPISODES
    told = in_node(
        tmp_path / "js",
        """const agent = team.agent(1), scores = [];
        let action = agent.act();
        agent.see(0, 1); agent.see(1, 0);
        const answer = team.posterior([[0, 0, 0]], [[1, 1, 1]]);
        out({ scores: Array.from(agent.scores), name: answer.name, confidence: answer.confidence, action });""",
    )
    agent, answer = lively_team().agent(1), lively_team().posterior([[0, 0, 0]], [[1, 1, 1]])
    assert told["action"] == agent.act()
    agent.see(0, 1)
    agent.see(1, 0)
    np.testing.assert_allclose(told["scores"], agent.scores, atol=1e-5)
    assert told["name"] == answer.name
    assert told["confidence"] == pytest.approx(answer.confidence, abs=1e-5)


@needs_node
@pytest.mark.parametrize(
    "mistake",
    [
        "team.agent(3)",
        "team.agent(0).see(2, 1)",
        "team.agent(0).see(0, 2)",
        "team.agent(0).see(0, 0.5)",
        "team.agent(0).see(0, NaN)",
        "team.agent(0).see(0, '1')",
        "team.agent(0).see(0, [1])",
        "team.posterior([[0, 0, 7]], [[1, 1, 1]])",
        "team.posterior([[0, 0, 0]], [])",
        "icmape.load({})",
    ],
)
def test_javascript_refuses_what_is_no_reading(javascript, mistake):
    assert in_node(javascript, f"try {{ {mistake}; out(''); }} catch (error) {{ out(error.message); }}")


@pytest.fixture(scope="module")
def javascript(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("js")
    export(lively_team(), "js", folder, episodes=1)
    return folder


def in_node(folder: Path, code: str) -> object:
    script = (
        "const icmape = require('./icmape.js'), team = icmape.load(require('./team.json'));"
        f"const out = (x) => console.log(JSON.stringify(x)); {code}"
    )
    done = subprocess.run(["node", "-e", script], cwd=folder, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_onnx_agrees_and_its_graphs_are_valid(tmp_path):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    files, found = export(lively_team(), "onnx", tmp_path / "onnx", episodes=EPISODES)
    assert [file.name for file in files] == ["agent.onnx", "inference.onnx", "team.json"]
    assert (found.episodes, found.beyond, found.differing_choices, found.differing_answers) == (EPISODES, 0, 0, 0)
    for file in files[:2]:
        onnx.checker.check_model(str(file), full_check=True)
    inputs = [entry.name for entry in onnx.load(str(files[0])).graph.input]
    assert inputs[:4] == ["agent", "round", "action", "reading"]
    assert json.loads(files[2].read_text())["sizes"] == {"agents": 3, "actions": 2, "horizon": 7}


def test_a_team_of_an_older_file_gets_its_program(tmp_path, capsys):
    old, new = Path(__file__).parents[1] / "play" / "of-0.7.safetensors", tmp_path / "new.safetensors"
    assert main(["export", str(old), "--to", "light", "--out", str(new), "--episodes", "10"]) == 0
    assert "0 of" in capsys.readouterr().out
    assert icmape_agent.load(new).agent(0).act() == load(old).agent(0).act()
    assert main(["export", str(old), "--to", "light", "--out", str(new)]) == 2
    assert "--overwrite" in capsys.readouterr().err


def test_what_differs_from_jax_is_not_written(tmp_path, monkeypatch):
    """Weights that changed on the way: nothing is written."""
    from icmape.export import formats as module

    original = module.FORMATS["light"]
    team = lively_team()
    shift = team.policy.actors.actor.head.bias + 0.001
    moved = eqx.tree_at(lambda t: t.policy.actors.actor.head.bias, team, shift)
    monkeypatch.setitem(module.FORMATS, "light", lambda team, program: original(moved, program))
    with pytest.raises(UserError, match="is not written: its scores differ from JAX's by up to"):
        export(team, "light", tmp_path / "team.safetensors", episodes=10)
    assert not list(tmp_path.iterdir())


def test_a_choice_may_differ_only_between_scores_that_are_nearly_equal():
    check(Agreement(episodes=1, differing_choices=1, largest_difference=9e-6, largest_gap=9e-6), "it")
    with pytest.raises(UserError, match="1 choices differ"):
        check(Agreement(episodes=1, differing_choices=1, largest_difference=9e-6, largest_gap=2e-5), "it")


def test_an_unknown_format_is_refused(tmp_path):
    with pytest.raises(UserError, match="unknown format 'tflite'"):
        export(lively_team(), "tflite", tmp_path)
