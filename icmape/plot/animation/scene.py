"""The pictures of an animated episode: agents on a map, the posterior, its confidence, and what the agents read."""

from __future__ import annotations

import math

import numpy as np

from icmape.errors import UserError
from icmape.plot.animation.course import drawn, percent, steps
from icmape.plot.animation.ground import Frame, background, glow, glow_css
from icmape.plot.animation.script import Script
from icmape.plot.charts import svg
from icmape.plot.drawing import Drawing, verdict
from icmape_agent.look import AGENTS, stylesheet

SECONDS = 12.0
FIRST, STOP, ANSWER = 1.5, 8.6, 9.8  # when the agents set out, the first says STOP, and the answer is compared
ARRIVAL = 0.55  # of a round: agents are where they read, and the posterior knows
WIDTH, TOP, MARGIN = 880.0, 54.0, 16.0
MAP_WIDTH, MAP_HEIGHT = 604.0, 390.0
MOST_LETTERS = 20  # of a reading beside an agent
PANEL, PANEL_WIDTH = 648.0, 212.0
RADIUS, SMALL = 12.0, 5.0  # of an agent, and of the mark where it has read
MOST_AGENTS, MOST_ROUNDS = 8, 40

STYLE = """\
text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",sans-serif;fill:var(--ink);font-size:18px}
.paper{fill:var(--page);stroke:var(--line)} .title{font-size:22px;font-weight:600} .soft{fill:var(--soft)}
.water{fill:var(--water)} .land{fill:var(--land);stroke:var(--border);stroke-width:.6}
.home{fill:var(--home);stroke:var(--border);stroke-width:1.4} .spot{fill:var(--spot)}
text.town{font-size:13px;fill:var(--soft)} circle.town{fill:var(--soft)}
.large{font-size:50px;font-weight:700} .small{font-size:15px}
.target{stroke:var(--edge);stroke-width:1.5;stroke-dasharray:5 4} .axis{stroke:var(--line);stroke-width:1.5}
.course{fill:none;stroke:var(--accent);stroke-width:3;stroke-linejoin:round;stroke-dasharray:1}
.dot{fill:var(--accent)} .good{fill:var(--good)} .bad{fill:var(--bad)} .verdict{font-weight:700}
.agent{stroke:var(--on-agent);stroke-width:1.4}
text.agent{fill:var(--on-agent);stroke:none;font-size:15px;font-weight:700}
.past{stroke:var(--on-agent);stroke-width:.8}
.truth,.other,.answer,.rim{fill:none;stroke-width:3} .rim{stroke:var(--page);stroke-width:6;stroke-opacity:.85}
.truth{stroke:var(--truth)} .other{stroke:var(--other);stroke-dasharray:5 3} .answer{stroke:var(--ink)}
.ring{fill:none;stroke:var(--stop);stroke-width:4;transform-box:fill-box;transform-origin:center}
.sign{fill:var(--stop);stroke:var(--page);stroke-width:1.5}
text.sign{fill:var(--on-stop);stroke:none;font-size:15px;font-weight:700}
.key{font-size:16px;fill:var(--soft)} text.stop{fill:var(--stop);font-weight:700}
"""
BLUR = (
    '<filter id="blur" x="-20%" y="-20%" width="140%" height="140%"><feGaussianBlur stdDeviation="7" result="b"/>'
    '<feMerge><feMergeNode in="b"/><feMergeNode in="SourceGraphic"/></feMerge></filter>'
)


def animated(drawing: Drawing) -> str:
    """An episode on a map as an SVG of twelve seconds."""
    return Scene(drawing).picture()


class Scene:
    """What is drawn of an episode, and when it is seen."""

    def __init__(self, drawing: Drawing):
        ground, played = drawing.ground(), drawing.played
        if ground is None:
            raise UserError(f"{type(played.problem).__name__} has no map: --animate shows agents on one")
        if played.problem.agents > MOST_AGENTS or not 2 <= played.rounds <= MOST_ROUNDS:
            raise UserError(
                f"--animate shows up to {MOST_AGENTS} agents in 2 to {MOST_ROUNDS} rounds; this episode has "
                f"{played.problem.agents} in {played.rounds}"
            )
        self.drawing, self.played, self.script = drawing, played, Script(SECONDS)
        self.display = played.problem.display
        self.frame = Frame.fitted(ground, self.display.actions, MARGIN, TOP, MAP_WIDTH, MAP_HEIGHT)
        self.step = (STOP - FIRST) / (played.rounds - 1)
        chosen = played.stop_rule == "learned" and not played.forced
        self.stoppers = list(played.stopped) if chosen else []

    # -- times

    def leaves(self, number: int) -> float:
        """When the agents set out to what they know in this state."""
        return FIRST + (number - 1) * self.step

    def known(self, number: int) -> float:
        """When the data of this state are there."""
        return 0.0 if number == 0 else self.leaves(number) + ARRIVAL * self.step

    def during(self, number: int) -> str:
        """The class of what is seen while this is all that is known."""
        last = number == self.played.rounds - 1
        return self.script.between(self.known(number), None if last else self.known(number + 1))

    # -- the picture

    def picture(self) -> str:
        """The whole file."""
        height = self.frame.view[1] + self.frame.view[3] + 50
        agents = range(self.played.problem.agents)
        parts = [
            svg.element("rect", x=0.5, y=0.5, width=WIDTH - 1, height=height - 1, rx=10.0, class_="paper"),
            svg.words(self.played.problem.question, MARGIN, 36.0, "title"),
            svg.words(self._subtitle(), WIDTH - MARGIN, 36.0, "soft", "end"),
            background(self.frame, self.display.actions),
            *(self._posterior(number) for number in range(self.played.rounds)),
            *(self._past(agent) for agent in agents),
            self._confidence(),
            self._readings(),
            *(self._agent(agent) for agent in agents),
            self._stop(),
            self._truth(),
            *self._captions(height - 18),
            self._key(height - 18),
        ]
        style = "\n".join((stylesheet(), STYLE, glow_css(self.frame), self.script.css()))
        title = svg.element("title", self.played.problem.question)
        head = title + svg.element("style", style) + svg.element("defs", BLUR)
        size = {"viewBox": f"0 0 {WIDTH:g} {height:.0f}", "width": WIDTH, "height": float(round(height))}
        attributes = " ".join(f'{name}="{svg.short(v) if isinstance(v, float) else v}"' for name, v in size.items())
        return f'<svg xmlns="http://www.w3.org/2000/svg" {attributes} role="img">{head}{"".join(parts)}</svg>\n'

    def _subtitle(self) -> str:
        problem = self.played.problem
        return ", ".join(filter(None, (f"{problem.agents} {self.display.agent}s", problem.remark)))

    def _posterior(self, number: int) -> str:
        return svg.element("g", glow(self.frame, self.played.probabilities[number]), class_=self.during(number))

    # -- agents

    def _park(self, agent: int) -> tuple[float, float]:
        """An agent's place in the list of readings."""
        return PANEL + RADIUS, self._row(agent)

    def _row(self, agent: int) -> float:
        return 306.0 + agent * min(34.0, 150.0 / self.played.problem.agents)

    def _place(self, agent: int, number: int, apart: float = RADIUS) -> tuple[float, float]:
        """Where an agent is in a state; agents in one cell stand beside each other."""
        spot = self.drawing.spot(agent, number)
        if spot is None:
            return self._park(agent)
        x, y = self.frame.middle(*spot)
        here = [other for other in range(self.played.problem.agents) if self.drawing.spot(other, number) == spot]
        if len(here) == 1:
            return x, y
        angle = 2 * math.pi * here.index(agent) / len(here)
        return x + apart * math.cos(angle), y + apart * math.sin(angle)

    def _agent(self, agent: int) -> str:
        """An agent on its way. It gives way to a small mark when the answer is shown."""
        stops = [(0.0, self._place(agent, 0))]
        for number in range(1, self.played.rounds):
            stops.append((self.leaves(number), stops[-1][1]))
            stops.append((self.known(number), self._place(agent, number)))
        return svg.element(
            "g", svg.element("g", disc(agent), class_=self.script.moves(stops)), class_=self.script.between(0.0, ANSWER)
        )

    def _past(self, agent: int) -> str:
        """Small marks where an agent has read."""
        marks = []
        for number in range(1, self.played.rounds):
            x, y = self._place(agent, number, SMALL)
            last = number == self.played.rounds - 1
            seen = self.script.between(ANSWER if last else self.leaves(number + 1))
            look = {"fill": AGENTS[agent % len(AGENTS)], "class_": f"past {seen}"}
            marks.append(svg.element("circle", cx=x, cy=y, r=SMALL, **look))
        return "".join(marks)

    def _stop(self) -> str:
        """Those that stop, each with a flashing ring, and a sign beside the first."""
        if not self.stoppers:
            return ""
        places = [self._place(agent, self.played.rounds - 1) for agent in self.stoppers]
        flashes = self.script.pulses(STOP, 2, 0.5)
        rings = [svg.element("circle", cx=x, cy=y, r=RADIUS + 3, class_=f"ring {flashes}") for x, y in places]
        x, y = places[0]
        middle = x + (54 if x < self.frame.view[0] + 90 else -54)
        box = svg.element("rect", x=middle - 28, y=y - 12, width=56.0, height=24.0, rx=6.0, class_="sign")
        sign = box + svg.words("STOP", middle, y + 5.5, "sign", "middle")
        return "".join(rings) + svg.element("g", sign, class_=self.script.between(STOP, ANSWER))

    # -- the answer

    def _truth(self) -> str:
        """What was hidden and the answer, at the end, above everything else."""
        size = 0.55 * min(self.frame.cell_size) + 2
        kinds = self._hidden()
        marks = []
        for cell, label in self.frame.ground.truths:
            x, y = self.frame.middle_of(cell)
            look = "truth" if label == kinds[0] else "other"
            marks += [svg.element("circle", cx=x, cy=y, r=size, class_=kind) for kind in ("rim", look)]
        x, y = self.frame.middle_of(self.frame.ground.cells[int(np.atleast_1d(self.played.decisions[-1])[0])])
        marks.append(_square(x, y, *(side + 2 for side in self.frame.cell_size)))
        return svg.element("g", *marks, class_=self.script.between(ANSWER))

    def _hidden(self) -> list[str]:
        """What kinds of hidden things there are."""
        return list(dict.fromkeys(label for _, label in self.frame.ground.truths))

    def _key(self, y: float) -> str:
        """What square and rings mean, from right to left."""
        marks, right = [], WIDTH - MARGIN
        entries = [(label, "other" if number else "truth") for number, label in enumerate(self._hidden())]
        for label, look in (*reversed(entries), ("the answer", "answer")):
            marks.append(svg.words(label, right, y, "key", "end"))
            x = right - svg.width_of(label, 16.0) - 14
            sign = svg.element("circle", cx=x, cy=y - 6, r=7.0, class_=look)
            marks.append(_square(x, y - 6, 14.0, 14.0) if look == "answer" else sign)
            right = x - 26
        return svg.element("g", *marks, class_=self.script.between(ANSWER))

    # -- confidence and readings

    def _confidence(self) -> str:
        """Its course in steps, and the number of the state."""
        target = 1 - self.played.delta
        low, high, right = 252.0, 148.0, PANEL + PANEL_WIDTH
        level = low - (low - high) * target
        heights = [low - (low - high) * float(confidence) for confidence in self.played.confidence]
        points = steps(heights, PANEL, PANEL_WIDTH)
        grows = self.script.grows(drawn(points, [self.known(number) for number in range(self.played.rounds)]))
        marks = [
            svg.line(PANEL, low, right, low, "axis"),
            svg.line(PANEL, level, right, level, "target"),
            svg.words(f"target {percent(target)}", PANEL, level - 6, "soft small"),
            svg.element("path", d=svg.path(points), pathLength=1, class_=f"course {grows}"),
        ]
        for number, confidence in enumerate(self.played.confidence):
            reached = " good" * bool(confidence >= target)
            when = f"after round {number}" if number else "at the start"
            marks.append(svg.words(f"confidence {when}", PANEL, 76.0, f"key {self.during(number)}"))
            marks.append(svg.words(percent(float(confidence)), PANEL, 124.0, f"large{reached} {self.during(number)}"))
        return "".join(marks)

    def _readings(self) -> str:
        """What every agent read last."""
        parts = []
        for agent in range(self.played.problem.agents):
            x, y = self._park(agent)
            parts.append(svg.element("g", disc(agent), transform=f"translate({svg.short(x)} {svg.short(y)})"))
            for number in range(self.played.rounds):
                stops = agent in self.stoppers and number == self.played.rounds - 1
                text = _fitting(self.drawing.seen(agent, number)) or f"{self.display.agent} {agent + 1}"
                end = STOP if stops else None if number == self.played.rounds - 1 else self.known(number + 1)
                parts.append(svg.words(text, x + 24, y + 6, self.script.between(self.known(number), end)))
                if stops:
                    parts.append(svg.words("says STOP", x + 24, y + 6, f"stop {self.script.between(STOP)}"))
        return "".join(parts)

    # -- words

    def _captions(self, y: float) -> list[str]:
        """One line below the map at a time."""
        agent, rounds = self.display.agent, self.played.rounds - 1
        after = f"after {rounds} round{'s' * (rounds != 1)}"
        lines = [
            (0.0, FIRST, f"The glow: {self.frame.ground.shows}, before any reading", "soft"),
            (FIRST, STOP, f"Every {agent} decides from its own readings alone where to read next", "soft"),
        ]
        if self.stoppers:
            says = "says" if len(self.stoppers) == 1 else "say"
            lines.append((STOP, ANSWER, f"{self._those_who_stop()} {says} STOP, and all stop, {after}", "stop"))
        else:
            lines.append((STOP, ANSWER, f"The team stops {after}", "stop"))
        kind = "good" if self.played.correct[-1] else "bad"
        said = f"The answer from all readings is {verdict(self.played)}"
        lines.append((ANSWER, SECONDS, said, f"{kind} verdict"))
        return [
            svg.words(text, MARGIN, y, f"{look} {self.script.between(start, None if end == SECONDS else end)}")
            for start, end, text, look in lines
        ]

    def _those_who_stop(self) -> str:
        numbers = [str(agent + 1) for agent in self.stoppers]
        listed = " and ".join(filter(None, (", ".join(numbers[:-1]), numbers[-1])))
        return f"{self.display.agent.capitalize()}{'s' * (len(numbers) > 1)} {listed}"


def _square(x: float, y: float, wide: float, high: float) -> str:
    """The sign of an answer."""
    box = {"x": x - wide / 2, "y": y - high / 2, "width": wide, "height": high, "rx": 3.0}
    return svg.element("rect", **box, class_="rim") + svg.element("rect", **box, class_="answer")


def _fitting(text: str) -> str:
    """A reading as far as there is space for it: a remark in brackets may be left out."""
    return text if len(text) <= MOST_LETTERS else text.partition(" (")[0]


def disc(agent: int) -> str:
    """An agent's mark, around 0."""
    circle = svg.element("circle", r=RADIUS, fill=AGENTS[agent % len(AGENTS)], class_="agent")
    return circle + svg.words(str(agent + 1), 0.0, 5.3, "agent", "middle")
