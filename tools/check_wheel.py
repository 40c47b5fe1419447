"""Build icmape and icmape-agent, check them, and install each in an empty environment: python -m tools.check_wheel.

Needs `build` and `twine` (the extra `release`). Says the sizes and the seconds.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tools.agent_source import write_source

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = (("icmape", "--help"), ("icmape", "--version"), ("icmape", "list"), ("icmape-agent", "--help"))
AGENT_COMMANDS = (("icmape-agent", "--help"),)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tools.check_wheel", description="Build, check, install.")
    parser.add_argument("--out", type=Path, help="where the numbers are written, as JSON")
    parser.add_argument("--dist", type=Path, help="a folder that keeps the wheels and the source archives")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        said = check_both(Path(folder))
        if chosen.dist:
            shutil.copytree(Path(folder) / "dist", chosen.dist, dirs_exist_ok=True)
    text = json.dumps(said, indent=2) + "\n"
    print(text, end="")
    if chosen.out:
        chosen.out.write_text(text)


def check_both(folder: Path) -> dict[str, Any]:
    """All steps for both distributions; the first that fails raises `CalledProcessError`."""
    commit = git("rev-parse", "HEAD")
    changed = git("status", "--porcelain", "--", "icmape", "icmape_agent", "agent", "pyproject.toml")
    write_source(folder / "agent")
    return {
        "what": "python -m tools.check_wheel",
        "python": sys.version.split()[0],
        "platform": sys.platform,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load before": round(os.getloadavg()[0], 1),
        "commit": commit,
        "changed": bool(changed),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        **check(ROOT, folder / "dist", folder / "environment", COMMANDS),
        "icmape-agent": check(folder / "agent", folder / "dist" / "agent", folder / "alone", AGENT_COMMANDS),
    }


def check(source: Path, built: Path, installed: Path, commands: Iterable[Sequence[str]]) -> dict[str, Any]:
    """Build one distribution, check what was built, install the wheel and run its commands; sizes and seconds."""
    seconds = {"build": timed(sys.executable, "-m", "build", "--outdir", str(built), str(source))}
    files = sorted(path for path in built.iterdir() if path.is_file())
    seconds["twine check"] = timed(sys.executable, "-m", "twine", "check", "--strict", *map(str, files))
    venv.create(installed, with_pip=True)
    before = size_of(installed)
    wheel = next(path for path in files if path.suffix == ".whl")
    seconds["pip install"] = timed(str(installed / "bin" / "python"), "-m", "pip", "install", "--quiet", str(wheel))
    for name, *words in commands:
        seconds[" ".join((name, *words))] = timed(str(installed / "bin" / name), *words, cwd=installed)
    sizes = {("wheel" if path.suffix == ".whl" else "sdist"): megabytes(path.stat().st_size) for path in files}
    sizes["installed with all dependencies"] = megabytes(size_of(installed) - before)
    return {"megabytes": sizes, "seconds": seconds}


def timed(*command: str, cwd: Path = ROOT) -> float:
    """Seconds that a command takes; what it prints is shown if it fails."""
    began = time.perf_counter()
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        print(done.stdout, file=sys.stderr)
    done.check_returncode()
    return round(time.perf_counter() - began, 1)


def size_of(folder: Path) -> int:
    """Bytes of all files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def megabytes(size: int) -> float:
    """Rounded."""
    return round(size / 1e6, 1)


def git(*command: str) -> str:
    """What git says about this source tree."""
    done = subprocess.run(["git", "-C", str(ROOT), *command], capture_output=True, text=True)
    return done.stdout.strip()


if __name__ == "__main__":
    main()
