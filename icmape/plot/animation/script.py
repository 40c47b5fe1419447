"""When what is seen: CSS keyframes of an animation of given length.

Without animation (a reader who wants less motion, or a program that knows none) the last state is shown.
"""

from __future__ import annotations

from collections.abc import Sequence

TIMES = 3  # that it is played
FADE = 0.25  # seconds


class Script:
    """Classes of elements that appear, move and grow, and their rules."""

    def __init__(self, seconds: float):
        self.seconds = seconds
        self._classes: dict[tuple[str, str], str] = {}

    def between(self, start: float, end: float | None = None) -> str:
        """Seen from `start` to `end`, or to the end of the animation."""
        stops = [] if start <= 0 else [(0.0, "opacity:0"), (start - FADE / 2, "opacity:0")]
        stops.append((max(start + FADE / 2, 0.0) if start > 0 else 0.0, "opacity:1"))
        if end is not None:
            stops += [(end - FADE / 2, "opacity:1"), (end + FADE / 2, "opacity:0")]
        return self._animated(stops)

    def moves(self, stops: Sequence[tuple[float, tuple[float, float]]]) -> str:
        """At these points at these times; what lies between is a move, or a stay if the points are the same."""
        return self._animated([(time, f"transform:translate({x:.1f}px,{y:.1f}px)") for time, (x, y) in stops])

    def grows(self, stops: Sequence[tuple[float, float]]) -> str:
        """A line of which these parts are drawn at these times; its `pathLength` must be 1."""
        return self._animated([(time, f"stroke-dashoffset:{1 - part:.3f}") for time, part in stops])

    def pulses(self, start: float, count: int, each: float) -> str:
        """A ring that widens and fades, `count` times."""
        gone = "opacity:0;transform:scale(1)"
        stops = [(0.0, gone)]
        for number in range(count):
            begins = start + number * each
            stops += [(begins, gone), (begins + 0.02, "opacity:1;transform:scale(1)")]
            stops.append((begins + each * 0.9, "opacity:0;transform:scale(2.6)"))
        return self._animated([*stops, (start + count * each, gone)])

    def _animated(self, stops: Sequence[tuple[float, str]]) -> str:
        """The class of elements with these states; the first holds from the start, the last one to the end."""
        states = [(0.0, stops[0][1])] * (stops[0][0] > 0) + [*stops, (self.seconds, stops[-1][1])]
        frames = "".join(f"{100 * min(time / self.seconds, 1.0):.4g}%{{{state}}}" for time, state in states)
        return self._classes.setdefault((frames, stops[-1][1]), f"m{len(self._classes)}")

    def css(self) -> str:
        """All rules."""
        names = ",".join(f".{name}" for name in self._classes.values())
        rules = [f"{names}{{animation:{self.seconds:g}s ease-in-out {TIMES} both}}"]
        for (frames, last), name in self._classes.items():
            rules.append(f".{name}{{{last};animation-name:{name}}}@keyframes {name}{{{frames}}}")
        rules.append(f"@media (prefers-reduced-motion:reduce){{{names}{{animation:none}}}}")
        return "\n".join(rules)
