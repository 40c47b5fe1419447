"""The gate for readings: what agents did and saw is checked before a team uses it.

Shape, type, range and finiteness are those of the problem. What does not fit is refused with one sentence; nothing is
reshaped, wrapped or cut.
"""

import reprlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from icmape_agent.errors import UserError
from icmape_agent.ranges import Part


class Sizes(NamedTuple):
    """Sizes of a problem."""

    agents: int
    actions: int
    horizon: int


READING = "a reading of this problem"


class Misfit(ValueError):
    """A value that is no reading of a problem."""


class Gate:
    """Checks the actions and observations of one problem, and stores observations in its types.

    An observation of one agent is what the problem's `step` returns for it, or plain tuples or lists in that layout.
    Those of several rounds or agents are stacked arrays in the layout, or lists over rounds of lists over agents.

    A layout is the number of an array, None, a tuple or a mapping of layouts, or a function that lists the arrays.
    `inner` are the leading axes of each array of one agent along which single readings may be missing.

    Where the name of a method begins with `some_`, None in nested lists stands for what is missing. The arrays then
    hold zeros in its place, and a second value says what is there.
    """

    def __init__(
        self,
        title: str,
        sizes: Sizes,
        parts: Sequence[Part],
        layout: Any,
        shows_first: bool,
        inner: tuple[int, ...] = (),
    ):
        self.title, self.sizes, self.parts, self.layout = title, sizes, list(parts), layout
        self.shows_first, self.inner = shows_first, inner

    def agent(self, index: Any) -> int:
        """The number of an agent."""
        return self._number(index, "agents", self.sizes.agents)

    def action(self, action: Any) -> int:
        """The number of an action."""
        return self._number(action, "actions", self.sizes.actions)

    def _number(self, value: Any, what: str, count: int) -> int:
        try:
            number = _numbers(value)
        except Misfit as error:
            raise UserError(f"{what} are numbered 0..{count - 1}; given {shown(value)}") from error
        if number.ndim > 0 or number.dtype.kind not in "iu" or not 0 <= number < count:
            raise UserError(f"{what} are numbered 0..{count - 1}; given {shown(value)}")
        return int(number)

    def reading(self, agent: int, observation: Any) -> Any:
        """One observation of one agent."""
        return self._whole(READING, observation, (), agent)

    def some_reading(self, agent: int, observation: Any) -> tuple[Any, np.ndarray]:
        """One observation of one agent, of which parts along the inner axes may be missing, and what is there."""
        return self._gathered(READING, observation, (), agent)

    def readings(self, agent: int, rounds: int, observations: Any) -> Any:
        """Observations of one agent, with a leading axis of rounds."""
        return self._whole(f"the readings of {several(rounds, 'round')}", observations, (rounds,), agent)

    def some_readings(self, agent: int, rounds: int, observations: Any) -> tuple[Any, np.ndarray]:
        """Observations of one agent in rounds, of which some may be missing, and what is there."""
        return self._gathered(f"the readings of {several(rounds, 'round')}", observations, (rounds,), agent)

    def joint(self, observation: Any) -> Any:
        """One observation of all agents."""
        return self._whole(f"`first` of {self._team()}", observation, (self.sizes.agents,), None)

    def joint_readings(self, rounds: int, observations: Any) -> Any:
        """Observations of all agents, with leading axes of rounds and agents."""
        return self._whole(self._of_team(rounds), observations, (rounds, self.sizes.agents), None)

    def some_joint_readings(self, rounds: int, observations: Any) -> tuple[Any, np.ndarray]:
        """Observations of all agents in rounds, of which some may be missing, and what is there."""
        return self._gathered(self._of_team(rounds), observations, (rounds, self.sizes.agents), None)

    def joint_actions(self, actions: Any) -> np.ndarray:
        """Actions of all agents in each round."""
        agents, count = self.sizes.agents, self.sizes.actions
        self.rounds(len(actions) if isinstance(actions, list | tuple) else 0)  # before a long list is converted
        try:
            rows = _numbers(actions)
        except Misfit as error:
            raise UserError(f"actions must be whole numbers, a row of {agents} for each round: {error}") from error
        if rows.shape in ((0,), (0, agents)):
            rows = np.zeros((0, agents), np.int32)
        if rows.ndim != 2 or rows.shape[1] != agents:
            raise UserError(f"actions must be rounds of {agents} agents each; given shape {rows.shape}")
        if rows.dtype.kind not in "iu":
            raise UserError(f"actions must be whole numbers; given {shown(actions)}, which is {rows.dtype}")
        if rows.size and not (rows.min() >= 0 and rows.max() < count):
            raise UserError(f"actions must lie in 0..{count - 1}; given {rows.min()}..{rows.max()}")
        self.rounds(len(rows))
        return rows.astype(np.int32)

    def some_joint_actions(self, actions: Any) -> tuple[np.ndarray, np.ndarray]:
        """Actions of all agents in each round, with 0 for agents that did nothing, and who did something."""
        if not has_missing(actions, 2) or actions is None:
            rows = self.joint_actions(actions)
            return rows, np.ones(rows.shape, bool)
        try:
            filled, acted = split_missing(actions, (len(actions), self.sizes.agents), np.zeros((), np.int32))
        except Misfit as error:
            raise UserError(f"actions must be rounds of {self.sizes.agents} agents each; given {error}") from error
        return self.joint_actions(filled), acted

    def rounds(self, count: int) -> None:
        """Refuse more rounds than an episode has."""
        if count >= (horizon := self.sizes.horizon):
            raise UserError(f"{count} rounds are more than the horizon allows ({horizon - 1})")

    def first(self, first: Any) -> None:
        """Refuse a missing observation before round 0."""
        if first is None and self.shows_first:
            raise UserError(
                f"{self.title} shows something before round 0: give it as `first`, in the layout of "
                "what `problem.start(world, key=key)` returns second (an agent gets its own row)"
            )

    def nothing(self) -> Any:
        """A joint observation of zeros, as before round 0."""
        return self.structured([np.zeros((self.sizes.agents, *part.shape), part.dtype) for part in self.parts])

    def structured(self, arrays: list[np.ndarray]) -> Any:
        """Observations from their arrays: here the list itself."""
        return arrays

    def flat(self, observations: Any) -> list[np.ndarray]:
        """The arrays of observations, in the order of `parts`."""
        return list(observations)

    def _whole(self, what: str, given: Any, batch: tuple[int, ...], agent: int | None) -> Any:
        """Observations of which none is missing."""
        observations, arrived = self._gathered(what, given, batch, agent)
        if not arrived.all():
            raise UserError(f"{what}: expected {self._in_words(batch, agent)}; given a reading that is None")
        return observations

    def _gathered(self, what: str, given: Any, batch: tuple[int, ...], agent: int | None) -> tuple[Any, np.ndarray]:
        """Observations, and what is there of them (batch and inner axes)."""
        try:
            if given is None and self.layout is not None:
                raise Misfit("None")
            leaves, arrived = self._leaves(given, batch, agent, "")
        except (Misfit, RecursionError) as error:
            raise UserError(f"{what}: expected {self._in_words(batch, agent)}; given {error}") from error
        return self.structured(leaves), arrived

    def _in_words(self, batch: tuple[int, ...], agent: int | None) -> str:
        layout = " and ".join(part.in_words(agent) for part in self.parts)
        return layout + (f", with leading axes {batch}" if batch else "")

    def _leaves(
        self, given: Any, batch: tuple[int, ...], agent: int | None, where: str
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """The arrays of observations with these leading axes; the last of them is that of agents if none is named."""
        axes = (*batch, *self.inner)
        if given is None and self.layout is not None:
            return [np.zeros((*batch, *part.shape), part.dtype) for part in self.parts], np.zeros(axes, bool)
        if batch and isinstance(given, list | tuple) and len(given) == 0 == batch[0]:
            return [np.zeros((*batch, *part.shape), part.dtype) for part in self.parts], np.ones(axes, bool)
        if not batch or isinstance(self.layout, int) or _is_stacked(given):
            values = _in_layout(self.layout, given, where)
            pairs = [
                _stored(part, value, batch, agent, where, axes) for part, value in zip(self.parts, values, strict=True)
            ]
            arrived = pairs[0][1] if pairs else np.ones(axes, bool)
            if any((here != arrived).any() for _, here in pairs):
                raise Misfit(f"a reading of which one part is None and another is not{where}")
            return [stored for stored, _ in pairs], arrived
        if len(given) != batch[0]:
            raise Misfit(f"{len(given)} entries{where}")
        axis = "agent" if len(batch) == 1 and agent is None else "round"
        rows = [
            self._leaves(item, batch[1:], number if axis == "agent" else agent, f"{where}, {axis} {number}")
            for number, item in enumerate(given)
        ]
        arrays, there = zip(*rows, strict=True)
        return [np.stack(column) for column in zip(*arrays, strict=True)], np.stack(there)

    def _of_team(self, rounds: int) -> str:
        return f"the readings of {several(rounds, 'round')} of {self._team()}"

    def _team(self) -> str:
        return several(self.sizes.agents, "agent")


def refuse_masked(action: int, who: str) -> None:
    """Raise the error for an action that was not allowed."""
    raise UserError(f"action {action} was not allowed to {who}: the problem's action mask excludes it")


def _is_stacked(given: Any) -> bool:
    """Whether observations are one tree of arrays, rather than a list over rounds or agents."""
    return not isinstance(given, list) or (len(given) > 0 and all(hasattr(item, "dtype") for item in given))


def _in_layout(layout: Any, given: Any, where: str) -> list[Any]:
    """The parts of an observation, in the order of the arrays of the layout."""
    if isinstance(layout, int):
        return [given]
    plain = type(given) in (tuple, list) or hasattr(given, "_fields")
    if isinstance(layout, tuple) and plain and len(given) == len(layout):
        return [part for like, item in zip(layout, given, strict=True) for part in _in_layout(like, item, where)]
    if isinstance(layout, Mapping) and isinstance(given, Mapping) and set(given) == set(layout):
        return [part for name in sorted(layout) for part in _in_layout(layout[name], given[name], where)]
    if layout is None and given is None:
        return []
    if callable(layout) and (parts := layout(given)) is not None:
        return list(parts)
    raise Misfit(f"{shown(given)}{where}")


def _stored(
    part: Part, value: Any, batch: tuple[int, ...], agent: int | None, where: str, axes: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """A part in its storage type, with zeros where it is missing, and what is there along its first axes."""
    named, here = f"{part.name} " if part.name else "", np.ones(axes, bool)
    try:
        if value is not None and has_missing(value, len(axes)):
            nothing = np.zeros((*batch, *part.shape)[len(axes) :], part.dtype)
            value, here = split_missing(value, axes, nothing)
        values = _numbers(value, allow_bool=part.dtype == bool)
    except Misfit as error:
        raise Misfit(f"{named}{error}{where}") from error
    if values.shape != (*batch, *part.shape):
        raise Misfit(f"{named}{shown(value)} of shape {values.shape}{where}")
    inside = part.within(values, agent) | ~here.reshape((*axes, *(1,) * (values.ndim - len(axes))))
    if not inside.all():
        odd = "" if values.ndim == 0 else f", which holds {values[~inside][0]}"
        raise Misfit(f"{named}{shown(value)}{odd}{where}")
    return values.astype(part.dtype), here


def _numbers(value: Any, allow_bool: bool = False) -> np.ndarray:
    """An array of numbers, from an array, a number or nested lists of numbers."""
    if isinstance(value, np.ma.MaskedArray):
        raise Misfit("a masked array: give None for a reading that never came")
    try:
        array = np.asarray(value)
    except Exception as error:  # ragged lists; objects whose conversion may raise anything
        raise Misfit(shown(value)) from error
    if array.dtype.name.startswith(("bfloat", "float8")):  # kinds that NumPy does not know
        array = array.astype(np.float32)
    if array.dtype.kind not in ("biuf" if allow_bool else "iuf") and array.size:
        raise Misfit(f"{shown(value)}, which is no number" if array.ndim == 0 else shown(value))
    if not allow_bool and isinstance(value, list | tuple) and _holds_bool(value):
        raise Misfit(f"{shown(value)}, which holds true or false")
    return array


def has_missing(values: Any, axes: int) -> bool:
    """Whether nested lists hold None along their first axes."""
    if values is None:
        return True
    return axes > 0 and isinstance(values, list | tuple) and any(has_missing(value, axes - 1) for value in values)


def split_missing(values: Any, axes: tuple[int, ...], nothing: np.ndarray) -> tuple[Any, np.ndarray]:
    """Nested lists with `nothing` in place of None along these axes, and what is there."""
    if values is None:
        return np.broadcast_to(nothing, (*axes, *nothing.shape)), np.zeros(axes, bool)
    if not axes or not isinstance(values, list | tuple):
        return values, np.ones(axes, bool)
    if len(values) != axes[0]:
        raise Misfit(f"{len(values)} entries where {axes[0]} are expected; a missing one is None")
    rows = [split_missing(value, axes[1:], nothing) for value in values]
    return [filled for filled, _ in rows], np.stack([here for _, here in rows])


def _holds_bool(value: Any) -> bool:
    """Whether nested lists, which NumPy would convert, hold true or false."""
    if isinstance(value, list | tuple):
        return any(map(_holds_bool, value))
    return isinstance(value, bool | np.bool_) or getattr(getattr(value, "dtype", None), "kind", "") == "b"


def shown(value: Any) -> str:
    """A short text for a value that may be anything."""
    try:
        return reprlib.repr(value)
    except Exception:  # such as a number of ten thousand digits
        return f"a {type(value).__name__} that cannot be shown"


def several(count: int, what: str) -> str:
    """A number of things."""
    return f"{count} {what}{'' if count == 1 else 's'}"
