"""The reference page of all settings: python -m icmape.cli.settings_page docs/reference/settings.md."""

import dataclasses
import sys
from pathlib import Path
from typing import Any

from icmape.cli.options import help_of
from icmape.io import write_atomically
from icmape.learning.algorithms import PPO, TD3, Frozen, PaperTD3, Value
from icmape.learning.config import Config, Dual, Plan, Teacher
from icmape.networks.sizes import Network

SECTIONS: tuple[tuple[str, str, type], ...] = (
    ("Training run", "", Config),
    ("Networks", "network.", Network),
    ("Dual variable", "dual.", Dual),
    ("Plan", "plan.", Plan),
    ("Teacher", "teacher.", Teacher),
    ("PPO", "algorithm.", PPO),
    ("TD3", "algorithm.", TD3),
    ("TD3 to the letter (td3-paper)", "algorithm.", PaperTD3),
    ("VDN, QMIX, independent Q-learning, DQN", "algorithm.", Value),
    ("Policies that do not learn", "algorithm.", Frozen),
)
HEAD = """# Settings

All settings of a training run with their defaults. On the command line `_` may be written `-`:
`--network.hidden-size 64`. In Python: `icmape.train(..., network={"hidden_size": 64})`. Presets change some of them:
`icmape/zoo/*/presets/*.toml`.
This page is written by `python -m icmape.cli.settings_page docs/reference/settings.md`.
"""


def page() -> str:
    """The whole page in Markdown."""
    return HEAD + "".join(_section(title, prefix, settings) for title, prefix, settings in SECTIONS)


def _section(title: str, prefix: str, settings: type) -> str:
    rows = [
        f"| `{prefix}{field.name}` | {_default(field)} | {help_of(settings, field.name).replace('|', chr(92) + '|')} |"
        for field in dataclasses.fields(settings)
        if field.default is not dataclasses.MISSING
    ]
    return "\n".join([f"\n## {title}\n", "| setting | default | meaning |", "|---|---|---|", *rows]) + "\n"


def _default(field: Any) -> str:
    value = field.default
    shown = "none" if value is None or value == () else str(list(value)) if isinstance(value, tuple) else str(value)
    return f"`{shown}`" if shown else "empty"


def main() -> None:
    """Write the page."""
    write_atomically(Path(sys.argv[1]), page().encode())


if __name__ == "__main__":
    main()
