"""Command lines: typed in haste, or by a script that has gone wrong."""

import contextlib
import io
import shutil
from pathlib import Path
from random import Random

from fuzz import tree_mutations as trees
from fuzz.byte_mutations import MUTATIONS, damaged
from fuzz.cases import Case, Exit, Target
from fuzz.targets.exports import HEADER, table, whole_rows
from icmape.cli import COMMANDS, main

WORDS = (
    "",
    " ",
    "-",
    "--",
    "---",
    "--=",
    "-h=",
    "\0",
    "é",
    "x" * 9999,
    "*",
    "$(id)",
    "../..",
    "--out",
    "--set",
    "=",
    "@x",
    "[bold]",
    "{}",
)
NUMBERS = (
    "-1",
    "0",
    "1e400",
    "nan",
    "inf",
    "x",
    "",
    "1.5",
    "99999999999999999999",
    "1_0",
    "0x10",
    "--1",
    "１",
    "1,5",
    "True",
)
SIZES = {
    ("evaluate", "bandit-quick"): ("--episodes", "--seed"),
    ("certify", "bandit-quick"): ("--worlds", "--seed"),
    ("diagnose", "bandit-quick"): ("--episodes", "--seed"),
    ("compare", "bandit-quick"): ("--episodes", "--baseline-episodes", "--seed"),
    ("report", "bandit-quick"): ("--episodes", "--sweep-episodes", "--seed"),
    ("retarget", "bandit-quick", "--out=moved.safetensors"): ("--delta", "--worlds", "--seed"),
    ("play", "bandit-quick"): ("--world",),
    ("train", "bandit-quick"): (
        "--num-envs",
        "--iterations",
        "--network.hidden-size",
        "--problem.arms",
        "--problem.players",
    ),
}
"""Command → options that take a number."""
NEVER = ("-1", "1e400", "nan", "inf", "x", "", "1.5", "99999999999999999999", "--1", "1,5", "0x10")
"""What none of them takes."""
SETS = (
    "arms",
    "=3",
    "arm=3",
    "arms=-1",
    "arms=1e999",
    "arms=99999999999",
    "horizon=0",
    "mean_low=nan",
    "__class__=x",
    "arms=[[]]",
    "players=x",
)
FILES = (
    "team.safetensors",
    "given.csv",
    "given.json",
    "config.json",
    ".",
    "/dev/null",
    "/dev/zero",
    "missing",
    "/proc/self/mem",
)


def make(folder: Path) -> Target:
    """The target. None of these lines may start work: all of it takes longer than an input may."""
    good = table(whole_rows()).encode()

    def run(words: list[str]) -> Exit:
        shutil.rmtree("runs", ignore_errors=True)
        (folder / "given.csv").write_bytes(good)
        for name in ("team.safetensors", "given.json", "config.json"):
            (folder / name).write_text("{}")
        out, err = io.StringIO(), io.StringIO()
        with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = main(list(words))
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 2
        return Exit(code, err.getvalue() or out.getvalue())

    def unknown_word(random: Random) -> Case:
        command = random.choice(list(COMMANDS))
        return Case(
            [command, random.choice([*WORDS, f"--{trees.typo('episodes', random)}", "no-such-team"]), "--no-such"],
            _refused,
        )

    def command(random: Random) -> Case:
        return Case([trees.typo(random.choice(list(COMMANDS)), random), "bandit-quick"], _refused)

    def number(random: Random) -> Case:
        words = random.choice(list(SIZES))
        option, value = random.choice(SIZES[words]), random.choice(NEVER)
        value = "x" if option == "--delta" and value == "1.5" else value
        return Case([*words, f"{option}={value}"], _refused)

    def assigned(random: Random) -> Case:
        name = random.choice(["evaluate", "certify", "diagnose", "play"])
        return Case([name, "bandit-quick", "--set", random.choice(SETS)], _refused)

    def trained(random: Random) -> Case:
        """Settings that are unknown, of another type, or cannot work together."""
        settings = [
            "--delta=0",
            "--delta=1.5",
            "--seeds",
            "--seeds=-1",
            "--algorithm=pop",
            "--num-env=4",
            "--batch-size=999999999",
        ]
        settings += [
            "--network.hidden-size=0",
            "--teacher.policy=no-such",
            "--teacher.policy=os:system",
            "--problem.arms=1000000000",
        ]
        settings += [
            "--problem.horizon=99999999999999999999",
            "--iterations=-5",
            "--config=missing",
            "--config=.",
            "--config=given.csv",
        ]
        settings += [
            "--out=given.csv",
            "--deltas=2",
            "--network.encoder=x",
            "--dual.lr=nan",
            "--minutes=nan",
            "--problem=os:system",
        ]
        return Case(["train", "bandit-quick", random.choice(settings)], _refused)

    def sources(random: Random) -> Case:
        """Files that are something else."""
        name = random.choice(["evaluate", "certify", "diagnose", "play", "compare", "report", "retarget", "resume"])
        extra = ["--delta=0.2"] if name == "retarget" else ["--baselines", "none"] if name == "compare" else []
        return Case([name, random.choice(FILES), *extra], _refused)

    def outputs(random: Random) -> Case:
        """Places where nothing can be written, told before any work."""
        place = random.choice(["given.csv/x.json", "/proc/x/y.json", "/dev/null/x"])
        words = random.choice(
            [
                ["data", "check", "given.csv", "--json", place],
                ["evaluate", "bandit-quick", "--episodes=1", "--out", place],
            ]
        )
        return Case(words, _refused)

    def data(random: Random) -> Case:
        """`data check` of a damaged file: an account, or a sentence."""
        damage = damaged(good[len(HEADER) :], random.choice(list(MUTATIONS)), random)
        (folder / "odd.csv").write_bytes(good[: len(HEADER)] + damage)
        option = random.choice(
            [
                [],
                ["--nondetect=2"],
                ["--nondetect=nan"],
                ["--basis=X"],
                ["--medium="],
                ["--characteristic="],
                ["--json=."],
            ]
        )
        return Case(["data", "check", "odd.csv", *option], _refused if option else _said)

    def jumbled(random: Random) -> Case:
        """Words of right command lines in another order, twice, or with others between them."""
        words = [
            "evaluate",
            "bandit-quick",
            "--episodes",
            "--baseline",
            "plan",
            "--set",
            "--problem",
            "--data",
            random.choice(WORDS),
        ]
        return Case([*random.choices(words, k=random.randint(1, 6)), "--no-such-option"], _refused)

    return Target(
        run,
        {
            "unknown word": unknown_word,
            "unknown command": command,
            "number that is none": number,
            "--set": assigned,
            "settings of training": trained,
            "file that is another": sources,
            "place that cannot be written": outputs,
            "data check": data,
            "jumbled": jumbled,
        },
    )


def _refused(result: Exit) -> str:
    return f"exit code {result.code}: {result.said[-300:]}"


def _said(result: Exit) -> str | None:
    return None if result.said else "ended without a word"
