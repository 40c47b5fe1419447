"""Source localization with a distractor: in which cell of a grid is the signal's source?

Every agent sees a window of cells around itself and moves by whole steps. All but the last are detectors: they register
the source, with some probability, when their window covers it. The last one reads a noisy field that falls off from the
nearer of two places, the source (peak 1) and a distractor of unknown, smaller intensity.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float16, Int, Int8, Int16, Integer, Key, PyTree

from icmape.errors import UserError
from icmape.problem import Categorical, Features, Problem, Range
from icmape.zoo.signal.field_posterior import FieldModel, FieldReadings, SourceBelief
from icmape.zoo.signal.signal_arguments import check_distance, check_prior, check_sizes, start_places
from icmape_agent.display import Display, Moves, Quantity

Information = Literal["strict", "shared-positions"]
MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1), (0, 0))
NAMES = ("up", "down", "left", "right", "stay")
UP, DOWN, LEFT, RIGHT, STAY = range(5)


class SignalWorld(NamedTuple):
    """The hidden state of the world. Cells are numbered row by row."""

    hypothesis: Int16[Array, ""]  # the source's cell
    distractor: Int16[Array, ""]
    intensity: Float[Array, ""]  # of the distractor


class SignalObservation(NamedTuple):
    """What each agent sees: its window, and positions (its own, or everyone's)."""

    window: Float16[Array, "*agents rows columns"]  # hits, or readings of the field; 0 outside the grid
    positions: Int8[Array, "*agents seen 2"]


class SignalMemory(NamedTuple):
    """An agent's running sums and its position (and the others', if positions are shared)."""

    total: Float[Array, "rows columns"]  # hits, or the sum of readings
    queries: Float[Array, "rows columns"]
    last: Float[Array, ""]  # the largest value of the last window
    positions: Int8[Array, "seen 2"]


class Signal(Problem):
    """Source localization on a square grid.

    Args:
        grid: cells on a side (n).
        window: cells on a side of what an agent sees (m), odd.
        move: cells that a move goes (Δ).
        detection: chance that a detector registers the source when its window covers it (q).
        distance: least Manhattan distance between source and distractor.
        exact_distance: the same, but exactly so (the paper's robustness study); none: any from `distance` on.
        decay: λ; the field is exp(-λ distance) around the source.
        noise: standard deviation of a reading of the field (σ); readings are clipped to [0, 1].
        intensity_low: least intensity of the distractor.
        intensity_high: largest.
        intensity_alpha: intensities are Beta(alpha, beta) scaled to [low, high]; none: uniform.
        intensity_beta: see intensity_alpha.
        starts: where the agents start (row, column), the field agent last; none: the centres of the windows in the
            corners, top left, top right, bottom left (and bottom right for a fourth).
        detectors: agents that detect; one more reads the field.
        observe_start: whether the first window is seen before round 0.
        information: whether agents see their own position only ("strict"), or everyone's ("shared-positions", as the
            paper's actors do).
        horizon: rounds at most, the stop round included (T).
    """

    agents: int = eqx.field(static=True)
    actions: int = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    hypotheses: Categorical
    grid: int = eqx.field(static=True)
    window: int = eqx.field(static=True)
    move: int = eqx.field(static=True)
    distance: int = eqx.field(static=True)
    exact_distance: int | None = eqx.field(static=True)
    observe_start: bool = eqx.field(static=True)
    information: Information = eqx.field(static=True)
    starts: tuple[tuple[int, int], ...] = eqx.field(static=True)
    detection: Float[Array, ""]
    decay: Float[Array, ""]
    noise: Float[Array, ""]
    intensity_low: Float[Array, ""]
    intensity_high: Float[Array, ""]
    intensity_alpha: Float[Array, ""] | None
    intensity_beta: Float[Array, ""] | None
    field: FieldModel

    def __init__(
        self,
        grid: int = 25,
        window: int = 5,
        move: int = 5,
        detection: float = 0.95,
        distance: int = 10,
        exact_distance: int | None = None,
        decay: float = 0.3,
        noise: float = 0.07,
        intensity_low: float = 0.0,
        intensity_high: float = 0.7,
        intensity_alpha: float | None = None,
        intensity_beta: float | None = None,
        starts: Sequence[Sequence[int]] | None = None,
        detectors: int = 2,
        observe_start: bool = True,
        information: Information = "strict",
        horizon: int = 25,
    ):
        check_sizes(grid, window, move, detectors, horizon)
        check_distance(grid, distance, exact_distance)
        check_prior(detection, decay, noise, intensity_low, intensity_high, intensity_alpha, intensity_beta)
        if information not in get_args(Information):
            raise UserError(f"information must be one of {', '.join(get_args(Information))}; given {information!r}")
        self.agents, self.actions, self.horizon = detectors + 1, len(MOVES), horizon
        self.hypotheses = Categorical(grid * grid)
        self.grid, self.window, self.move = grid, window, move
        self.distance, self.exact_distance = distance, exact_distance
        self.observe_start, self.information = observe_start, information
        self.starts = start_places(starts, grid, window, detectors + 1)
        self.detection, self.decay, self.noise = jnp.float32(detection), jnp.float32(decay), jnp.float32(noise)
        self.intensity_low, self.intensity_high = jnp.float32(intensity_low), jnp.float32(intensity_high)
        beta_prior = intensity_alpha is not None and intensity_beta is not None
        self.intensity_alpha = jnp.float32(intensity_alpha) if beta_prior else None
        self.intensity_beta = jnp.float32(intensity_beta) if beta_prior else None
        shape = (intensity_alpha or 1.0, intensity_beta or 1.0)
        self.field = FieldModel(
            grid,
            window,
            move,
            self.starts[-1],
            (distance, 2 * grid) if exact_distance is None else (exact_distance, exact_distance),
            (intensity_low, intensity_high, *shape),
            noise,
        )

    @property
    def question(self) -> str:
        """The cell of the source."""
        return f"In which of {self.grid**2:,} cells is the source of the signal?"

    def action_name(self, action: int) -> str:
        """A direction."""
        return NAMES[action]

    def answer_name(self, answer: Any) -> str:
        """Row and column of the source, counted from 1."""
        row, column = divmod(int(np.asarray(answer)), self.grid)
        return f"row {row + 1}, column {column + 1}"

    @property
    def detectors(self) -> int:
        """Agents that detect; the last agent reads the field."""
        return self.agents - 1

    @property
    def paper_inference(self) -> str:
        """Fully convolutional."""
        return "convolutional"

    @property
    def patch(self) -> int:
        """Grids are read in tiles of the window's size."""
        return self.window

    @property
    def cells(self) -> Int[np.ndarray, "hypotheses"]:
        """Every cell of the grid is a hypothesis."""
        return np.arange(self.grid**2)

    @property
    def readings(self) -> int:
        """A window of them."""
        return self.window**2

    @property
    def first_readings(self) -> int:
        """The first window, if it is seen."""
        return self.readings if self.observe_start else 0

    @property
    def shows_first(self) -> bool:
        """The position is always observed."""
        return True

    @property
    def observation_range(self) -> PyTree[Range]:
        """Hits of the detectors are 0 or 1, readings of the field lie between; positions are on the grid."""
        hits = np.arange(self.agents)[:, None, None] < self.detectors
        ranges: Any = Range(0, 1, whole=hits), Range(0, self.grid - 1, whole=True)
        return SignalObservation(*ranges)

    @property
    def display(self) -> Display:
        """Moves on the grid; the own position is part of a reading."""
        position = Quantity("where you are", "row, column (from 0)")
        readings = [Quantity("what you see around you"), position]
        if self.information != "strict":  # a reading holds everyone's positions, which no single agent knows
            return Display(readings=readings, verb="Move")
        moves = (self.move * np.asarray(MOVES)).tolist()
        walk = Moves(self.grid, self.grid, moves, self.starts, position=1, window=0)
        return Display(walk, readings, verb="Move", answers="cells")

    @property
    def explanation(self) -> str:
        """Who sees what."""
        return (
            f"Agent {self.agents} reads a signal that fades with the distance from the source, or from a weaker "
            "distractor if that is nearer; the others see only the source itself, in their window."
        )

    # -- the world

    def sample(self, *, key: Key[Array, ""]) -> SignalWorld:
        """A pair of cells, all pairs far enough apart being equally likely, and the distractor's intensity."""
        for_source, for_distractor, for_intensity = jax.random.split(key, 3)
        apart = self.field.apart
        source = jax.random.categorical(for_source, jnp.log(jnp.sum(apart, axis=1).astype(jnp.float32)))
        distractor = jax.random.categorical(for_distractor, jnp.where(apart[source], 0.0, -jnp.inf))
        if self.intensity_alpha is None or self.intensity_beta is None:
            unit = jax.random.uniform(for_intensity)
        else:
            unit = jax.random.beta(for_intensity, self.intensity_alpha, self.intensity_beta)
        intensity = self.intensity_low + (self.intensity_high - self.intensity_low) * unit
        return SignalWorld(source.astype(jnp.int16), distractor.astype(jnp.int16), intensity)

    def start(self, world: SignalWorld, *, key: Key[Array, ""]) -> tuple[Int8[Array, "agents 2"], SignalObservation]:
        """All agents at their starts, and the first windows, if they are observed."""
        positions = jnp.asarray(self.starts, jnp.int8)
        seen = self.observe(world, positions, key=key)
        if not self.observe_start:
            seen = seen._replace(window=jnp.zeros_like(seen.window))
        return positions, seen

    def step(
        self,
        world: SignalWorld,
        state: Int8[Array, "agents 2"],
        actions: Integer[Array, "agents"],
        *,
        key: Key[Array, ""],
    ) -> tuple[Int8[Array, "agents 2"], SignalObservation]:
        """All agents move and observe."""
        positions = self.moved(state, actions)
        return positions, self.observe(world, positions, key=key)

    def step_some(
        self,
        world: SignalWorld,
        state: Int8[Array, "agents 2"],
        actions: Integer[Array, "agents"],
        acting: Bool[Array, "agents"],
        *,
        key: Key[Array, ""],
    ) -> tuple[Int8[Array, "agents 2"], SignalObservation]:
        """The others stay where they are."""
        return self.step(world, state, jnp.where(acting, actions, STAY), key=key)

    @property
    def agents_interact(self) -> bool:
        """A window depends on the position of its own agent only."""
        return False

    def moved(self, positions: Int8[Array, "agents 2"], actions: Integer[Array, "agents"]) -> Int8[Array, "agents 2"]:
        """Positions after a move; one that would leave the grid is not made."""
        targets = positions + self.move * jnp.asarray(MOVES, jnp.int8)[actions.astype(jnp.int32)]
        inside = jnp.all((targets >= 0) & (targets < self.grid), axis=-1, keepdims=True)
        return jnp.where(inside, targets, positions)

    def observe(
        self, world: SignalWorld, positions: Int8[Array, "agents 2"], *, key: Key[Array, ""]
    ) -> SignalObservation:
        """New readings of all windows."""
        for_hits, for_noise = jax.random.split(key)
        rows, columns, inside = jax.vmap(self.window_at)(positions)
        source, distractor = self.place(world.hypothesis), self.place(world.distractor)
        registers = jax.random.uniform(for_hits, (self.detectors, 1, 1)) < self.detection
        at_source = (rows[:-1] == source[0]) & (columns[:-1] == source[1])
        field_cells = (rows[-1], columns[-1])
        clean = self.signal(_steps(field_cells, source), _steps(field_cells, distractor), world.intensity)
        noisy = clean + self.noise * jax.random.normal(for_noise, clean.shape)
        readings = jnp.where(inside[-1], jnp.clip(noisy, 0.0, 1.0), 0.0)
        window = jnp.concatenate([(at_source & registers).astype(jnp.float16), readings[None].astype(jnp.float16)])
        shared = self.information == "shared-positions"
        everyone = jnp.broadcast_to(positions[None], (self.agents, self.agents, 2))
        return SignalObservation(window, everyone if shared else positions[:, None])

    def signal(
        self, to_source: Integer[Array, "*cells"], to_distractor: Integer[Array, "*cells"], intensity: Float[Array, ""]
    ) -> Float[Array, "*cells"]:
        """The field without noise: that of the nearer of source and distractor, and of the distractor in a tie."""
        nearer = to_source < to_distractor
        steps = jnp.where(nearer, to_source, to_distractor).astype(jnp.float32)
        return jnp.where(nearer, 1.0, intensity) * jnp.exp(-self.decay * steps)

    def window_at(self, position: Int8[Array, "2"]) -> tuple[Int[Array, "m m"], Int[Array, "m m"], Bool[Array, "m m"]]:
        """Rows and columns of the cells in a window, and which of them exist."""
        offsets = jnp.arange(self.window) - self.window // 2
        row, column = position.astype(jnp.int32)
        rows, columns = jnp.meshgrid(row + offsets, column + offsets, indexing="ij")
        return rows, columns, (rows >= 0) & (rows < self.grid) & (columns >= 0) & (columns < self.grid)

    def place(self, cell: Integer[Array, "*some"]) -> tuple[Int[Array, "*some"], Int[Array, "*some"]]:
        """Row and column of a cell."""
        number = cell.astype(jnp.int32)
        return number // self.grid, number % self.grid

    # -- what is remembered

    def init_memory(self, agent: Integer[Array, ""], observation: SignalObservation) -> SignalMemory:
        """The first window, if it was seen."""
        nothing = jnp.zeros((self.grid, self.grid))
        empty = SignalMemory(nothing, nothing, jnp.float32(0), observation.positions)
        return self._add(empty, agent, observation) if self.observe_start else empty

    def update_memory(
        self,
        memory: SignalMemory,
        agent: Integer[Array, ""],
        action: Integer[Array, ""],
        observation: SignalObservation,
    ) -> SignalMemory:
        """Add one more window."""
        return self._add(memory, agent, observation)

    def miss_memory(self, memory: SignalMemory, agent: Integer[Array, ""], action: Integer[Array, ""]) -> SignalMemory:
        """An agent knows that it moved; of others it knows their last shown positions."""
        own_index = agent if self.information == "shared-positions" else 0
        move = jnp.where(action < 0, STAY, action)
        position = self.moved(memory.positions[own_index][None], move[None])[0]
        return memory._replace(last=jnp.zeros(()), positions=memory.positions.at[own_index].set(position))

    @property
    def reads_missed(self) -> bool:
        """The own position."""
        return True

    def _add(self, memory: SignalMemory, agent: Integer[Array, ""], observation: SignalObservation) -> SignalMemory:
        own_index = agent if self.information == "shared-positions" else 0
        position = observation.positions[own_index]
        values = observation.window.astype(jnp.float32)
        return SignalMemory(
            memory.total + self.on_grid(values, position),
            memory.queries + self.on_grid(jnp.ones_like(values), position),
            jnp.max(values),
            observation.positions,
        )

    def on_grid(self, values: Float[Array, "m m"], position: Int8[Array, "2"]) -> Float[Array, "rows columns"]:
        """A window's values on the grid; values outside the grid are dropped."""
        # two small matrix products: a scatter is slow under vmap
        offsets = jnp.arange(self.window) - self.window // 2
        rows = jax.nn.one_hot(position[0].astype(jnp.int32) + offsets, self.grid)
        columns = jax.nn.one_hot(position[1].astype(jnp.int32) + offsets, self.grid)
        return rows.T @ values @ columns

    def features(self, memory: SignalMemory) -> Features:
        """Known positions and the last window's maximum; and maps of means and queries."""
        positions = memory.positions.astype(jnp.int32)
        one_hot = jax.nn.one_hot(positions, self.grid).reshape(-1)
        mean = memory.total / jnp.maximum(memory.queries, 1.0)
        return Features(jnp.append(one_hot, memory.last), jnp.stack([mean, memory.queries]))

    def learner_action_mask(self, memory: SignalMemory) -> Bool[Array, "actions"]:
        """Learners do not use STAY."""
        return jnp.arange(self.actions) != STAY

    # -- exact Bayes

    @property
    def posterior(self) -> str:
        """Exact, if the quadrature over the distractor's intensity is fine enough for the noise."""
        return "exact" if self.field.fine_enough else "misspecified"

    def belief(self, first: SignalObservation | None = None) -> SourceBelief:
        """The prior over pairs of cells and intensities, updated with the first windows."""
        belief = self.field.prior()
        return self._updated(belief, first) if self.observe_start and first is not None else belief

    def update_belief(
        self, belief: SourceBelief, actions: Integer[Array, "agents"], observation: SignalObservation
    ) -> SourceBelief:
        """Update with the new windows of all agents."""
        return self._updated(belief, observation)

    def update_partial_belief(
        self,
        belief: SourceBelief,
        actions: Integer[Array, "agents"],
        observation: SignalObservation,
        acted: Bool[Array, "agents"],
        arrived: Bool[Array, "agents"],
    ) -> SourceBelief:
        """Update with the windows that arrived."""
        return self._updated(belief, observation, arrived)

    def _updated(
        self, belief: SourceBelief, seen: SignalObservation, arrived: Bool[Array, "agents"] | None = None
    ) -> SourceBelief:
        own_index = (
            jnp.arange(self.agents) if self.information == "shared-positions" else jnp.zeros(self.agents, jnp.int32)
        )
        positions = jnp.take_along_axis(seen.positions, own_index[:, None, None], axis=1)[:, 0]
        readings = self.field_readings(seen.window[-1], positions[-1])
        if arrived is None:
            belief = self.field.read(belief, readings)
            return belief._replace(detectors=belief.detectors + self.detectors_say(seen.window[:-1], positions[:-1]))
        belief = self.field.read(belief, readings._replace(inside=readings.inside & arrived[-1]))
        each = jax.vmap(lambda w, p: self.detectors_say(w[None], p[None]))(seen.window[:-1], positions[:-1])
        said = jnp.sum(jnp.where(arrived[:-1, None], each, 0.0), axis=0)
        return belief._replace(detectors=belief.detectors + said)

    def field_readings(self, window: Float16[Array, "m m"], position: Int8[Array, "2"]) -> FieldReadings:
        """A window as input of the field's likelihood."""
        _, _, inside = self.window_at(position)
        return FieldReadings(window.astype(jnp.float32), inside, position, self.decay, self.noise)

    def detectors_say(
        self, windows: Float16[Array, "detectors m m"], positions: Int8[Array, "detectors 2"]
    ) -> Float[Array, "cells"]:
        """log p(these windows | source) for every cell."""
        hits = jax.vmap(self.on_grid)((windows > 0).astype(jnp.float32), positions).reshape(self.detectors, -1)
        seen = jax.vmap(self.on_grid)(jnp.ones_like(windows, jnp.float32), positions).reshape(self.detectors, -1)
        hit = jnp.any(hits > 0, axis=1, keepdims=True)
        missed = jnp.where(seen > 0, jnp.log1p(-self.detection), 0.0)
        return jnp.sum(jnp.where(hit, jnp.where(hits > 0, jnp.log(self.detection), -jnp.inf), missed), axis=0)

    def log_posterior(self, belief: SourceBelief) -> Float[Array, "cells"]:
        """Over the source's cell, distractor and intensity integrated out."""
        return jax.nn.log_softmax(jnp.log(belief.sources) + belief.detectors)


def _steps(
    cells: tuple[Integer[Array, "*cells"], Integer[Array, "*cells"]], place: tuple[Int[Array, ""], Int[Array, ""]]
) -> Int[Array, "*cells"]:
    """Manhattan distance from cells to a place."""
    rows, columns = (axis.astype(jnp.int32) for axis in cells)
    return jnp.abs(rows - place[0]) + jnp.abs(columns - place[1])
