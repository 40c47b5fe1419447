"""The command line refuses bad input in one sentence and exit code 2, before anything compiles."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from icmape import cli
from icmape.cli.listing import learned_by
from icmape.play.team_files import about, pretrained
from icmape.problem.spec import build

QUICK = ["train", "bandit-quick"]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Exit code and everything printed."""
    try:
        code = cli.main(list(arguments))
    except SystemExit as left:  # tyro's own errors
        code = int(left.code or 0)
    printed = capsys.readouterr()
    return code, printed.out + printed.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["trian"], "train"),
        (["train", "bandit-qick"], "bandit-quick"),
        (["train"], "give a PRESET"),
        ([*QUICK, "--algorithm", "td4"], "td3"),
        ([*QUICK, "--network.hiddn-size", "8"], "--network.hidden-size"),
        ([*QUICK, "--delta", "0"], "delta must lie strictly between 0 and 1"),
        ([*QUICK, "--delta", "1.5"], "delta must lie strictly between 0 and 1"),
        ([*QUICK, "--problem.arms", "0"], "at least one arm"),
        ([*QUICK, "--problem.horizon", "1"], "at least two rounds"),
        ([*QUICK, "--batch-size", "4096"], "does not fit a buffer_size of 256"),
        ([*QUICK, "--worlds", "64"], "--worlds is called --num-envs now"),
        ([*QUICK, "--algorithm.trace=0.5"], "--algorithm.trace is called --algorithm.gae-lambda now"),
        ([*QUICK, "--guide.share", "1"], "--guide.share is called --teacher.weight now"),
        ([*QUICK, "--num-envs", "0"], "num_envs must be at least 1"),
        ([*QUICK, "--seeds", "3000000000"], "seeds must lie in"),
        ([*QUICK, "--dual.max", "-1"], "dual.max must be at least 0"),
        ([*QUICK, "--actor-lr", "nan"], "actor_lr must be positive and finite"),
        ([*QUICK, "--algorithm", "vdn", "--greedy-fraction", "0"], "no greedy episode"),
        (["train", "--problem", ":X"], "expected module:Class"),
        ([*QUICK, "--seeds", "1", "1"], "different integers"),
        (["train", "--problem", "nowhere:Nothing"], "cannot import nowhere"),
        (["train", "--problem", "json:JSONDecoder"], "not a subclass of icmape.Problem"),
        (["train", "--config", "missing.json"], "missing.json cannot be read"),
        (["resume", "nowhere"], "nowhere holds no run"),
        (["evaluate", "nowhere.safetensors"], "no team file nowhere.safetensors"),
        (["evaluate", "x.safetensors", "--episodes", "0"], "at least one episode"),
        (["evaluate"], "give a team file, a run's folder or a pretrained team's name"),
        (["evaluate", "bandit-quick", "--rounds", "3"], "--rounds sets up a baseline"),
        (["evaluate", "bandit-quick", "--delta", "0.2"], "--delta sets up a baseline"),
        (["evaluate", "--baseline", "random"], "needs a problem: give a PRESET"),
        (["evaluate", "bandit-quick", "--baseline", "random", "--problem", "a:B"], "one of them"),
        (["evaluate", "bandit-quick", "--baseline", "rndom"], "unknown baseline 'rndom'"),
        (["evaluate", "bandit-qick", "--baseline", "random"], "unknown preset 'bandit-qick'"),
        (["evaluate", "bandit-quick", "--baseline", "open-loop", "--level", "0.9"], "has no level"),
        (["compare"], "give one or more run folders"),
        (["compare", "nowhere"], "nowhere is nothing that can be compared"),
        (["compare", "bandit-quick", "--baselines", "rndom"], "unknown baseline 'rndom'"),
        ([*QUICK, "--algorithm"], "--algorithm needs a value (NAME)"),
        ([*QUICK, "--algorithm", "td3", "--algorithm=td3"], "--algorithm is given twice"),
        ([*QUICK, "--centralized=yes"], "--centralized takes no value"),
    ],
)
def test_bad_input_is_refused_with_a_sentence_that_helps(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, printed = run(capsys, *arguments)
    assert code == 2
    assert said in " ".join(printed.split())
    assert "Traceback" not in printed
    assert not (tmp_path / "runs").exists(), "nothing may be written for a run that never starts"


def test_a_broken_team_file_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "team.safetensors"
    path.write_bytes(b"\x00" * 40)
    code, printed = run(capsys, "evaluate", str(path))
    assert code == 2
    assert str(path) in printed
    assert "Traceback" not in printed


def test_short_help_shows_the_main_settings_only(capsys: pytest.CaptureFixture[str]) -> None:
    code, printed = run(capsys, "train", "--help")
    assert code == 0
    flags = re.findall(r"^[^\w-]*(?:-h, )?--([a-z][\w.-]*)", printed, re.M)
    assert flags == [
        *("help", "algorithm", "problem", "config"),
        *("out", "seeds", "delta", "iterations", "minutes", "num-envs", "overwrite"),
    ]
    assert "--help-all" in printed


def test_a_team_with_a_teacher_is_called_guided() -> None:
    teachers = ({}, {"guide": {"policy": ""}}, {"guide": {"policy": "turns"}}, {"teacher": {"policy": "turns"}})
    found = [learned_by({"algorithm": {"kind": "ppo"}, **one}) for one in teachers]
    assert found == ["ppo", "ppo", "guided", "guided"]
    cards = {name: about(name).card["configuration"] for name in ("bandit-a3p5", "signal", "nitrate-synthetic")}
    assert [learned_by(one) for one in cards.values()] == ["guided", "ppo", "guided"], "as the front page says"


def test_list_says_what_the_shipped_teams_reach(capsys: pytest.CaptureFixture[str]) -> None:
    code, printed = run(capsys, "list")
    line = next(line for line in printed.splitlines() if line.split()[:3] == ["bandit-a3p5", "0.9", "0.904"])
    assert code == 0
    assert "10.44" in line
    assert "H200, 4 min" in line, "in one line of 80 columns"
    assert "1 CPU cores" not in printed


def test_list_marks_teams_that_need_measurements_and_says_what_to_give(capsys: pytest.CaptureFixture[str]) -> None:
    """Those whose problem has no worlds when it is built from its file."""
    _, printed = run(capsys, "list")
    starred = {line.split()[0] for line in printed.splitlines() if line.split()[1:2] == ["*"]}
    assert starred == {name for name in pretrained() if not build(about(name).problem).has_worlds}
    assert starred == {"nitrate", "nitrate-n1"}
    note = next(line for line in printed.splitlines() if line.startswith(" * needs measurements"))
    assert "--data" in note
    assert "icmape data fetch" in note


def test_list_explains_random_before_what_is_like_it(capsys: pytest.CaptureFixture[str]) -> None:
    _, printed = run(capsys, "list")
    assert 0 < printed.index("\n random ") < printed.index("as random, with another policy")


def test_a_command_imports_only_what_it_needs() -> None:
    code = "import sys, icmape.cli as cli; cli.command_named('list'); print('icmape.cli.train' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_list_names_every_preset_and_baseline(capsys: pytest.CaptureFixture[str]) -> None:
    from icmape.baselines.registry import baseline_names

    code, printed = run(capsys, "list")
    assert code == 0
    assert all(name in printed for name in ("bandit-quick", "bandit-a3p5", "bandit-a5p3", "td3-paper"))
    assert all(name in printed for name in baseline_names())


@pytest.mark.parametrize("algorithm", ["td3", "td3-paper", "ppo", "vdn", "random"])
def test_help_explains_every_setting(capsys: pytest.CaptureFixture[str], algorithm: str) -> None:
    from dataclasses import fields

    from icmape.cli.options import help_of
    from icmape.learning.config import Config, Dual, Plan, Teacher, with_algorithm
    from icmape.networks.sizes import Network

    code, printed = run(capsys, *QUICK, "--algorithm", algorithm, "--help-all")
    assert code == 0
    assert all(f"--{flag} " in printed for flag in cli.train.CHOICES)
    groups = {
        "": Config,
        "network.": Network,
        "algorithm.": type(with_algorithm(Config(), algorithm).algorithm),
        "dual.": Dual,
    }
    groups |= {"teacher.": Teacher, "plan.": Plan}
    for prefix, owner in groups.items():
        for field in fields(owner):
            if field.name in ("network", "algorithm", "dual", "teacher", "plan"):
                continue
            assert f"--{prefix}{field.name.replace('_', '-')}" in printed
            explained = [help_of(base, field.name) for base in owner.__mro__[:-1]]
            assert any(explained), f"{prefix}{field.name} is not explained"


def test_a_preset_without_a_shipped_team_is_told_from_a_typo(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("icmape.cli.teams.pretrained", list)
    code, printed = run(capsys, "evaluate", "bandit-a3p5")
    assert code == 2
    assert "icmape evaluate bandit-a3p5 --baseline NAME" in " ".join(printed.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("bandit-quick", "--episodes", "10"), "at least 100 worlds; given 10"),
        (("bandit-quick", "--out", "."), "expected the name of a JSON file"),
        (("nobody",), "no team file nobody"),
    ],
)
def test_a_diagnosis_that_cannot_be_made_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    code, printed = run(capsys, "diagnose", *arguments)
    assert code == 2
    assert message in " ".join(printed.split())


def test_flags_that_decide_the_settings_are_taken_out_of_them() -> None:
    name, choices, rest = cli.train._split_train(
        ["--centralized", "bandit-quick", "--delta", "0.2", "--algorithm=td3", "--config", "x"]
    )
    assert name == "bandit-quick"
    assert choices == {"centralized": "", "algorithm": "td3", "config": "x"}
    assert rest == ["--delta", "0.2"]


def finished_run(folder: Path, iterations: int) -> None:
    """A run that says it is done after so many iterations; there is no checkpoint, so that nothing can be resumed."""
    from icmape.learning.config import Config
    from icmape.learning.run_folder import write_config
    from icmape.play.inference import ExactInference
    from icmape.play.open_loop import Schedule, schedule_from_loads
    from icmape.play.stop import FixedLength
    from icmape.play.team import Team
    from icmape.zoo.bandit.bandit import Bandit

    problem = Bandit(1, 2, 4)
    write_config(folder, problem, Config(iterations=50, seeds=(1,)))
    card = json.dumps({"iterations": iterations})
    parts = Schedule(schedule_from_loads([(2,)]), 2), FixedLength(2), ExactInference()
    Team(problem, *parts, card=card).save(folder / "team-1.safetensors")


def test_resume_of_a_finished_run_says_so_and_trains_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("trained")

    monkeypatch.setattr(cli.train, "resume_run", forbidden)
    finished_run(tmp_path / "done", 50)
    code, printed = run(capsys, "resume", str(tmp_path / "done"))
    assert (code, "is already finished: all 50 iterations are done" in printed) == (0, True)
    for folder, done, more in (("short", 40, []), ("longer", 50, ["--iterations", "60"])):
        finished_run(tmp_path / folder, done)
        with pytest.raises(AssertionError, match="trained"):
            run(capsys, "resume", str(tmp_path / folder), "--quiet", *more)


def test_a_baseline_is_judged_like_a_team(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "open.json"
    words = ["bandit-quick", "--baseline", "open-loop", "--rounds", "3", "--delta", "0.2", "--episodes", "50"]
    code, printed = run(capsys, "evaluate", *words, "--out", str(out))
    assert code == 0, printed
    result = json.loads(out.read_text())
    assert (result["team"], result["tau"], result["delta"]) == ("open-loop rounds 3 delta 0.2", 4.0, 0.2)
    assert result["problem"]["arguments"]["arms"] == 2


def test_compare_says_where_it_wrote(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    finished_run(tmp_path / "mine", 50)
    words = [str(tmp_path / "mine"), "--episodes", "50", "--baselines", "none", "--names", "two rounds"]
    code, printed = run(capsys, "compare", *words, "--out", str(tmp_path / "c"))
    assert code == 0, printed
    (line,) = [line for line in printed.splitlines() if line.startswith("two rounds")]
    assert " 3.00 " in line
    assert " 2.00 " in line
    assert " 0.0% " in line
    for kind in ("png", "json", "md"):
        assert str(tmp_path / "c" / f"comparison.{kind}") in printed
        assert (tmp_path / "c" / f"comparison.{kind}").stat().st_size > 0


def test_evaluate_writes_the_promised_keys(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from icmape.play.inference import ExactInference
    from icmape.play.open_loop import Schedule, schedule_from_loads
    from icmape.play.stop import FixedLength
    from icmape.play.team import Team
    from icmape.zoo.bandit.bandit import Bandit

    team = Team(Bandit(1, 2, 4), Schedule(schedule_from_loads([(2,)]), 2), FixedLength(2), ExactInference())
    team.save(tmp_path / "team.safetensors")
    out = tmp_path / "out.json"
    code, printed = run(
        capsys, "evaluate", str(tmp_path / "team.safetensors"), "--episodes", "50", "--seed", "4", "--out", str(out)
    )
    assert code == 0, printed
    result = json.loads(out.read_text())
    keys = [
        "accuracy",
        "accuracy_low",
        "accuracy_high",
        "tau",
        "rounds",
        "readings",
        "forced",
        "ece",
        "episodes",
        "seed",
        "problem",
        "provenance",
    ]
    assert set(keys) <= set(result)
    assert (result["episodes"], result["seed"], result["tau"], result["rounds"], result["readings"]) == (50, 4, 3, 2, 4)


def test_the_page_of_settings_is_the_one_that_the_code_writes():
    from icmape.cli.settings_page import page

    written = (Path(__file__).parents[2] / "docs/reference/settings.md").read_text()
    assert written == page(), "run python -m icmape.cli.settings_page docs/reference/settings.md"
    assert "| `algorithm.gae_lambda` | `0.6` |" in written
