"""Colours of all pages and figures, in light and in dark.

Agents have one palette, methods another. Pages take the colours as CSS variables from `stylesheet`, in which
`--agent-1` is the first agent and `--method-ours` a method; pictures in files take them from `LIGHT`, `agent_colour`
and `method_colour`.
"""

from collections.abc import Mapping

LIGHT: Mapping[str, str] = {
    "page": "#ffffff",
    "panel": "#f5f7f9",
    "ink": "#1b1d21",
    "soft": "#565d68",
    "line": "#d9dde3",
    "edge": "#7b8494",  # of what can be pressed or filled in
    "accent": "#0b6b94",
    "on-accent": "#ffffff",
    "good": "#00664a",
    "bad": "#a43d00",
    "bad-panel": "#fff6ee",
    "stop": "#b3261e",
    "on-stop": "#ffffff",
    "truth": "#c8001a",
    "other": "#0057d9",  # a second hidden thing, such as a distractor
    "glow-0": "#fdeccf",  # a posterior on a map, from low to high
    "glow-1": "#f6a04d",
    "glow-2": "#b8321a",
    "land": "#f0efea",
    "home": "#fdfcf8",
    "water": "#d9e6ee",
    "border": "#7b828c",
    "spot": "#8d939c",
}
DARK: Mapping[str, str] = {
    "page": "#14161a",
    "panel": "#1e2127",
    "ink": "#e9ebef",
    "soft": "#a6adb9",
    "line": "#3a3f49",
    "edge": "#7c8594",
    "accent": "#6cc3ee",
    "on-accent": "#0c1419",
    "good": "#4fd0a5",
    "bad": "#ffa366",
    "bad-panel": "#2c2018",
    "stop": "#ff8a80",
    "on-stop": "#2a0805",
    "truth": "#ff6b7d",
    "other": "#7fb0ff",
    "glow-0": "#3b3026",
    "glow-1": "#b5651d",
    "glow-2": "#ffb35c",
    "land": "#1d2025",
    "home": "#2b2f36",
    "water": "#12202b",
    "border": "#8a929e",
    "spot": "#717985",
}
AGENTS = ("#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#f0e442", "#d55e00", "#8fa3c8", "#b0b0b0")
"""Okabe and Ito's colours, told apart by colour-blind readers. Both themes use them, with dark digits and rims."""
ON_AGENT = "#16181c"
"""Of digits and rims on an agent's colour."""
METHODS: Mapping[str, tuple[str, str]] = {  # on light, on dark
    "ours": ("#0b6b94", "#6cc3ee"),
    "paper": ("#7a3e9d", "#c79be6"),
    "td3": ("#b0306a", "#f08bb8"),
    "ppo": ("#a8500b", "#f0a05a"),
    "vdn": ("#7d6a00", "#d8c34a"),
    "iql": ("#3f7d20", "#98d177"),
    "random": ("#6b7280", "#aab2c0"),
    "thompson": ("#8c4a3f", "#dda59a"),
    "central": ("#4b4fa8", "#a9acf2"),
    "schedule": ("#475569", "#b7c3d4"),
    "decentralized": ("#00786a", "#4fcfc0"),
    "exact": ("#1b1d21", "#e9ebef"),
}
"""By the method's family. The decentralized and central rules and the schedule are those without learning."""
OTHERS = ("iql", "ppo", "td3", "central", "vdn", "decentralized", "thompson", "paper", "random")
"""Colours of methods that have no family, in this order."""


def agent_colour(agent: int) -> str:
    """The colour of an agent, counted from 0."""
    return AGENTS[agent % len(AGENTS)]


def method_colour(family: str, dark: bool = False) -> str:
    """The colour of a family of methods."""
    return METHODS[family][dark]


def stylesheet() -> str:
    """The colours as CSS variables that follow the reader's theme. `--agents` is the number of agents' colours."""
    agents = {f"agent-{number}": colour for number, colour in enumerate(AGENTS, 1)}
    fixed = {**agents, "agents": str(len(AGENTS)), "on-agent": ON_AGENT}
    light = {**LIGHT, **fixed, **{f"method-{name}": pair[0] for name, pair in METHODS.items()}}
    dark = {**DARK, **{f"method-{name}": pair[1] for name, pair in METHODS.items()}}
    return (
        f":root {{ color-scheme: light dark; {_variables(light)} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {_variables(dark)} }} }}\n"
    )


def _variables(colours: Mapping[str, str]) -> str:
    return " ".join(f"--{name}: {value};" for name, value in colours.items())


def contrast(first: str, second: str) -> float:
    """Contrast of two colours by WCAG 2: 1 to 21; text needs 4.5, lines and marks 3."""
    bright, dim = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
