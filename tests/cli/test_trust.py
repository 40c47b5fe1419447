"""Nothing in a folder that somebody sent is run, unless the user names it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from icmape import UserError, cli
from icmape.evaluation.sources import read_source
from icmape.imports import check_named, named_code
from icmape.learning.config import Config, with_algorithm
from icmape.learning.run_folder import write_config
from icmape.play.inference import ExactInference
from icmape.play.open_loop import Uniform
from icmape.play.stop import FixedLength
from icmape.play.team import Team
from icmape.search_path import module_to_run
from icmape.settings import override
from icmape.zoo.bandit.bandit import Bandit

NAMES = (
    *("safetensors", "numpy", "json", "jax", "equinox", "scipy", "rich", "tyro", "typing", "re", "matplotlib"),
    *("pandas", "tinygp", "icmape_plugins", "jax_plugins", "tests"),
)
TRAP = "import os, pathlib; pathlib.Path(__file__).with_name('RAN-' + __name__).touch()\n"
OWN = (
    TRAP + "from examples.coins import Coins as Sent\n\n\ndef teach(problem):\n    raise ZeroDivisionError('called')\n"
)


@pytest.fixture
def sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as it may be received: a team, a run, and files with the names of modules; `lib` is on the path."""
    for name in NAMES:
        (tmp_path / f"{name}.py").write_text(TRAP)
    (tmp_path / "evil-1.0.dist-info").mkdir()
    (tmp_path / "evil-1.0.dist-info" / "METADATA").write_text("Name: evil\nVersion: 1.0\n")
    entry = "[icmape.problems]\nevil = icmape_plugins:ENTRY\n"
    (tmp_path / "evil-1.0.dist-info" / "entry_points.txt").write_text(entry)
    for folder in (tmp_path, tmp_path / "lib"):
        folder.mkdir(exist_ok=True)
        (folder / "received.py").write_text(OWN)
    monkeypatch.delitem(sys.modules, "received", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))  # what commands append to it is undone
    Team(Bandit(1, 2, 4), Uniform(2, 2), FixedLength(1), ExactInference()).save(tmp_path / "team.safetensors")
    return tmp_path


def ran(folder: Path) -> list[str]:
    """The modules of a folder that were run."""
    return sorted(path.name.removeprefix("RAN-") for path in folder.rglob("RAN-*"))


def run(folder: Path, *words: str) -> tuple[int, str]:
    """A program of its own in this folder: exit code and what it printed."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([*words], cwd=folder, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    "program",
    [
        [str(Path(sys.executable).with_name("icmape"))],
        [sys.executable, "-Wignore", "-um", "icmape.cli"],
    ],
    ids=["icmape", "python -m"],
)
def test_modules_beside_a_received_team_are_not_run(sent: Path, program: list[str]) -> None:
    code, printed = run(sent, *program, "evaluate", "team.safetensors", "--episodes", "10")
    assert (code, ran(sent)) == (0, []), printed
    assert "10 worlds" in printed


def received_run(folder: Path, **names: str) -> Path:
    """A run whose configuration names code."""
    run = folder / "run"
    config = override(with_algorithm(Config(), "guided"), {"teacher.policy": names.get("teacher", "")})
    write_config(run, Bandit(1, 2, 4), config)
    if "problem" in names:
        content = json.loads((run / "config.json").read_text())
        content["problem"] = {"kind": names["problem"], "arguments": {}}
        (run / "config.json").write_text(json.dumps(content))
    return run


TRAINING = (["resume", "run"], ["train", "--config", "run/config.json", "--out", "new"])


@pytest.mark.parametrize("words", TRAINING, ids=["resume", "train"])
@pytest.mark.parametrize(("flag", "part"), [("--problem", "problem"), ("--teacher.policy", "teacher")])
def test_code_that_a_configuration_names_is_not_imported(
    words: list[str],
    flag: str,
    part: str,
    sent: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Not even from the folder of the command, or where it could be imported; the error says how to run it."""
    path = {"problem": "received:Sent", "teacher": "received:teach"}[part]
    received_run(sent, **{part: path})
    monkeypatch.chdir(sent)
    monkeypatch.syspath_prepend(str(sent / "lib"))
    assert cli.main([*words]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"is {path}, which is not part of icmape: to run this code, add {flag} {path}" in said
    assert ran(sent) == []
    assert not (sent / "new").exists()


@pytest.mark.parametrize("words", TRAINING, ids=["resume", "train"])
def test_another_name_on_the_command_line_does_not_allow_it(
    words: list[str], sent: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    received_run(sent, problem="received:Sent")
    monkeypatch.chdir(sent)
    assert cli.main([*words, "--problem", "tests.coins:Coins"]) == 2
    assert "received:Sent" in capsys.readouterr().err
    assert ran(sent) == []


def test_the_core_command_does_not_import_it_either(sent: Path) -> None:
    """Until it is named: then the module is found in the current folder, and others there still are not."""
    received_run(sent, teacher="received:teach")
    words = [sys.executable, "-m", "icmape.learning", "run/config.json", "new"]
    code, printed = run(sent, *words)
    assert (code, ran(sent)) == (2, []), printed
    assert "add --teacher.policy received:teach" in printed
    code, printed = run(sent, *words, "--teacher.policy", "received:teach")
    assert (code, ran(sent)) == (2, ["received"]), printed
    assert "calling it with (Bandit) failed: ZeroDivisionError: called" in printed or "examples" in printed


def test_code_that_is_named_is_found_here_and_shadows_nothing(
    sent: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path_before = list(sys.path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", str(sent))])
    monkeypatch.chdir(sent)
    assert cli.main(["train", "--problem", "received:Nothing"]) == 2
    assert "received has no class Nothing" in capsys.readouterr().err
    assert ran(sent) == ["received"], "no entry point of this folder was looked up"
    assert sys.path[-1] == str(sent)
    assert sys.path[:-1] == [entry for entry in path_before if entry not in ("", str(sent))]


def test_without_a_name_the_path_stays_as_it_is(sent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = list(sys.path)
    monkeypatch.chdir(sent)
    assert cli.main(["evaluate", "team.safetensors", "--episodes", "10"]) == 0
    assert sys.path == before


def test_a_file_of_results_imports_nothing(sent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = {"name": "theirs", "problem": "received:Sent", "accuracy": 0.9, "tau": 3.0, "episodes": 10}
    (sent / "theirs.json").write_text(json.dumps(content))
    monkeypatch.syspath_prepend(str(sent / "lib"))
    assert [problem.kind for problem in read_source(str(sent / "theirs.json")).problems] == ["received:Sent"]
    assert ran(sent) == []


def test_a_team_that_names_code_imports_nothing(sent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.coins import Coins

    Team(Coins(agents=2), Uniform(2, 2), FixedLength(2), ExactInference()).save(sent / "coins.safetensors")
    monkeypatch.chdir(sent)
    code, printed = run(sent, sys.executable, "-m", "icmape.cli", "evaluate", "coins.safetensors")
    assert (code, ran(sent)) == (2, [])
    assert "--problem tests.coins:Coins" in " ".join(printed.split())


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["train", "--problem", "a.b:C"], {"a.b:C"}),
        (["evaluate", "x", "--problem=a:C", "--baseline", "b:D"], {"a:C", "b:D"}),
        (["compare", "--baselines", "random", "b:D", "c:E", "--out", "d:F"], {"b:D", "c:E"}),
        (["resume", "a:C"], set()),
        (["train", "--config", "a:C"], set()),
        (["train", "p", "--teacher.policy", "runs/team.safetensors"], set()),
    ],
)
def test_flags_that_name_code(words: list[str], named: set[str]) -> None:
    assert named_code(words) == named


def test_a_name_must_be_the_same() -> None:
    check_named("a:B", ["a:B"], "its problem", "--problem")
    with pytest.raises(UserError, match=r"its problem is a:B, which is not part of icmape: .* add --problem a:B"):
        check_named("a:B", ["a:C"], "its problem", "--problem")


@pytest.mark.parametrize(
    ("words", "module"),
    [
        (["-m", "icmape.cli", "evaluate"], "icmape.cli"),
        (["-micmape.learning"], "icmape.learning"),
        (["-X", "dev", "-W", "error", "-um", "icmape.cli"], "icmape.cli"),
        (["-c", "import icmape"], ""),
        (["script.py"], ""),
    ],
)
def test_the_module_that_python_runs(words: list[str], module: str) -> None:
    assert module_to_run(words) == module
