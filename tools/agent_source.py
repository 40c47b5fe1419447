"""The source of the distribution icmape-agent as one folder: python -m tools.agent_source FOLDER.

`agent/pyproject.toml` takes the package from the folder beside it. A source archive cannot: there it has a copy.
"""

import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
IGNORED = shutil.ignore_patterns("__pycache__", "*.pyc")


def write_source(folder: Path) -> None:
    """The package, its description, licence and settings."""
    folder.mkdir(parents=True)
    shutil.copytree(ROOT / "icmape_agent", folder / "icmape_agent", ignore=IGNORED)
    shutil.copy(ROOT / "agent" / "README.md", folder)
    shutil.copy(ROOT / "LICENSE", folder)
    settings = (ROOT / "agent" / "pyproject.toml").read_text()
    if '"../icmape_agent' not in settings:
        raise ValueError("agent/pyproject.toml names no folder beside it")
    (folder / "pyproject.toml").write_text(settings.replace('"../icmape_agent', '"icmape_agent'))


if __name__ == "__main__":
    write_source(Path(sys.argv[1]))
