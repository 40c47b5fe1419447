"""Hotspot monitoring: which cell has the highest concentration?

Agents choose cells of a map, read noisy concentrations there, and stop when one of the k highest cells is known well
enough. Every world is a field fitted to a subset of the readings of one year.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float16, Int, Int16, Integer, Key

from icmape.errors import UserError
from icmape.problem import Features, Problem, Range, TopK
from icmape.zoo.hotspot.data.readings import HOW_TO_GET
from icmape.zoo.hotspot.fields import FieldModel
from icmape.zoo.hotspot.history import check_years, no_history, year_spans
from icmape.zoo.hotspot.hotspot_arguments import check_numbers, check_sources, ground, read_history, scale
from icmape.zoo.hotspot.region import Grid, make_grid, map_of, place_name
from icmape_agent.display import Display, Quantity

TRAINING_YEARS = tuple(range(2001, 2019))
NITRATE = ("Nitrate", "Inorganic nitrogen (nitrate and nitrite)")
CHANNELS = 5
UNIT = "mg/L as N"


DATA = "data/wqp"
"""Default folder of `icmape data fetch`."""


class HotspotWorld(NamedTuple):
    """The hidden state of the world; the field is that of log(1 + concentration) in the valid cells."""

    hypothesis: Int16[Array, "k"]  # the highest cells
    mean: Float[Array, "cells"]
    deviation: Float[Array, "cells"]  # of a reading
    year: Int[Array, ""]  # counted from the history's first


class HotspotMemory(NamedTuple):
    """An agent's running sums in every valid cell, of normalised log(1 + concentration), and its last query."""

    number: Float[Array, "cells"]
    total: Float[Array, "cells"]
    scatter: Float[Array, "cells"]  # sum of squared distances from the mean in the cell
    largest: Float[Array, "cells"]
    last: Int16[Array, ""]  # the cell; -1 before the first query
    mean: Float[Array, ""]  # of the last readings
    deviation: Float[Array, ""]


class Hotspot(Problem):
    """Finding one of the k highest cells of a concentration field.

    Args:
        data: files or folders with Water Quality Portal exports (`icmape data check` reads the same). Without data, and
            without `synthetic`, a team can act on new readings but has no worlds for training and evaluation.
        synthetic: seed of synthetic measurements, instead of data.
        characteristics: names of what was measured, those of the data's rows to use.
        average: whether readings of one station on one day (depths, samples) are averaged into one. By default each
            counts, as the paper's subsets are of raw measurements.
        latitudes: south and north edge of the region, in degrees.
        longitudes: west and east edge.
        rows: of the grid, from north to south.
        columns: of the grid, from west to east.
        years: years that worlds are drawn from, all equally likely.
        training_years: years whose readings decide which cells are valid and how values are normalised.
        support: readings that a valid cell has in training years, at least.
        agents: number of agents (M), which are field crews.
        k: how many of the highest cells count as right.
        repeats: readings that one query returns (n_obs).
        cap: largest standard deviation of a reading, in log(1 + concentration) (σ_max).
        fit: readings that a field is fitted to (N_fit).
        length: of the Matérn-3/2 kernel, in cells.
        variance: of the field, in log(1 + concentration).
        noise: variance of a historical reading around the field.
        horizon: rounds at most, the stop round included (T).
        valid: the valid cells, counted row by row; none: by `support`.
        centre: mean of log(1 + concentration) that networks see as 0; none: that of the training years.
        spread: standard deviation that they see as 1; none: that of the training years.
    """

    LOCAL: ClassVar[frozenset[str]] = frozenset({"data"})
    WORLDS_FROM: ClassVar[str] = "To draw worlds, " + HOW_TO_GET

    @classmethod
    def found_locally(cls) -> dict[str, Any]:
        """Measurements that were fetched before."""
        return {"data": [DATA]} if Path(DATA).exists() else {}

    @classmethod
    def lacks(cls, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Measurements, unless worlds are made up."""
        return () if arguments.get("synthetic") is not None else ("data",)

    agents: int = eqx.field(static=True)
    actions: int = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    hypotheses: TopK
    data: tuple[str, ...] | None = eqx.field(static=True)
    synthetic: int | None = eqx.field(static=True)
    characteristics: tuple[str, ...] = eqx.field(static=True)
    average: bool = eqx.field(static=True)
    grid: Grid = eqx.field(static=True)
    years: tuple[int, ...] = eqx.field(static=True)
    training_years: tuple[int, ...] = eqx.field(static=True)
    support: int = eqx.field(static=True)
    repeats: int = eqx.field(static=True)
    fit: int = eqx.field(static=True)
    valid: tuple[int, ...] = eqx.field(static=True)
    length: float = eqx.field(static=True)  # the kernel's tables depend on it
    variance: float = eqx.field(static=True)
    noise: float = eqx.field(static=True)
    cap: Float[Array, ""]
    centre: Float[Array, ""]
    spread: Float[Array, ""]
    weights: Float[Array, "years"]  # of the history's years
    fields: FieldModel

    def __init__(
        self,
        data: Sequence[str] | None = None,
        synthetic: int | None = None,
        characteristics: Sequence[str] = NITRATE,
        average: bool = False,
        latitudes: Sequence[float] = (37.915, 39.719),
        longitudes: Sequence[float] = (-79.179, -75.571),
        rows: int = 20,
        columns: int = 20,
        years: Sequence[int] = TRAINING_YEARS,
        training_years: Sequence[int] = TRAINING_YEARS,
        support: int = 1,
        agents: int = 6,
        k: int = 5,
        repeats: int = 5,
        cap: float = 0.5,
        fit: int = 100,
        length: float = 2.0,
        variance: float = 0.85,
        noise: float = 0.10,
        horizon: int = 40,
        valid: Sequence[int] | None = None,
        centre: float | None = None,
        spread: float | None = None,
    ):
        self.data = check_sources(data, synthetic, valid, centre, spread)
        check_numbers(
            {"agents": agents, "k": k, "repeats": repeats, "fit": fit, "support": support},
            {"cap": cap, "length": length, "variance": variance, "noise": noise},
        )
        if horizon < 2:
            raise UserError(f"a horizon is at least 2, as it includes the stop; given {horizon}")
        self.synthetic, self.characteristics, self.average = synthetic, tuple(characteristics), average
        self.grid = make_grid(latitudes, longitudes, rows, columns)
        self.years, self.training_years = tuple(map(int, years)), tuple(map(int, training_years))
        self.agents, self.horizon, self.repeats, self.fit, self.support = agents, horizon, repeats, fit, support
        history = read_history(self.data, synthetic, (self.characteristics, average), self.grid) or no_history(fit)
        if self.has_worlds:
            check_years(history, self.years, fit, "problem.years")
        self.valid = ground(history, self.grid, self.training_years, support, valid)
        if k > len(self.valid):
            raise UserError(f"k is {k}, but there are {len(self.valid)} valid cells: choose a smaller one")
        middle, width = scale(history, self.training_years, centre, spread)
        self.actions, self.hypotheses = len(self.valid), TopK(len(self.valid), k)
        self.length, self.variance, self.noise = float(length), float(variance), float(noise)
        self.cap, self.centre, self.spread = jnp.float32(cap), jnp.float32(middle), jnp.float32(width)
        self.weights = jnp.asarray([float(year in self.years) for year in history.years] or [1.0])
        middles = jnp.asarray(self.grid.middles(np.asarray(self.valid)), jnp.float32)
        self.fields = FieldModel(history, middles, self.length, self.variance, self.noise)

    # -- the arguments that are not fields of their own

    @property
    def latitudes(self) -> tuple[float, float]:
        """South and north edge of the region."""
        return self.grid.south, self.grid.north

    @property
    def longitudes(self) -> tuple[float, float]:
        """West and east edge."""
        return self.grid.west, self.grid.east

    @property
    def rows(self) -> int:
        """Of the grid."""
        return self.grid.rows

    @property
    def columns(self) -> int:
        """Of the grid."""
        return self.grid.columns

    @property
    def k(self) -> int:
        """How many cells count as right."""
        return self.hypotheses.k

    # -- description

    @property
    def has_worlds(self) -> bool:
        """Whether there is a history to draw fields from."""
        return self.data is not None or self.synthetic is not None

    @property
    def remark(self) -> str:
        """Whether worlds are synthetic."""
        return "" if self.synthetic is None else "synthetic worlds"

    @property
    def question(self) -> str:
        """The place."""
        measured = "nitrate" if self.characteristics == NITRATE else "concentration"
        return f"Where is the {measured} highest?"

    def action_name(self, action: int) -> str:
        """Place of a cell."""
        return place_name(self.coordinates[action])

    def answer_name(self, answer: Any) -> str:
        """Place of a cell, or of several."""
        return " or ".join(map(self.action_name, np.atleast_1d(np.asarray(answer)).tolist()))

    @property
    def given(self) -> str:
        """The measurements and years that worlds come from."""
        years = year_spans(self.years)
        kind = "the measurements" if self.synthetic is None else "the made-up measurements"
        return f"{kind} of {years} that fields are fitted to"

    @property
    def readings(self) -> int:
        """As many as a query returns."""
        return self.repeats

    @property
    def observation_range(self) -> Range:
        """Concentrations are not negative."""
        return Range(low=0)

    @property
    def display(self) -> Display:
        """Cells of a map; crews measure there."""
        readings = [Quantity("nitrate" if self.characteristics == NITRATE else "concentration", UNIT)]
        return Display(map_of(self.grid, self.coordinates), readings, "crew", "Go to", "actions")

    @property
    def explanation(self) -> str:
        """What counts, and what helps."""
        counted = "The highest place is" if self.k == 1 else f"Any of the {self.k} highest places is"
        return f"{counted} right; places near each other are alike, and readings are noisy."

    @property
    def cells(self) -> Int[np.ndarray, "hypotheses"]:
        """The valid ones."""
        return np.asarray(self.valid)

    @property
    def fixed_ground(self) -> bool:
        """The same region in every world."""
        return True

    @property
    def coordinates(self) -> Float[np.ndarray, "cells 2"]:
        """Latitude and longitude of the middle of every valid cell."""
        return self.grid.coordinates(self.cells)

    # -- the world

    def sample(self, *, key: Key[Array, ""]) -> HotspotWorld:
        """A year, a subset of its readings, and the field fitted to them."""
        for_year, for_field = jax.random.split(key)
        year = jax.random.categorical(for_year, jnp.log(self.weights))
        return self.world_of(year, key=for_field)

    def world_of(self, year: Integer[Array, ""], *, key: Key[Array, ""]) -> HotspotWorld:
        """A world of one year."""
        field = self.fields.draw(year, self.fit, key=key)
        highest = jax.lax.top_k(field.mean, self.k)[1]
        return HotspotWorld(highest.astype(jnp.int16), field.mean, jnp.minimum(field.deviation, self.cap), year)

    def start(self, world: HotspotWorld, *, key: Key[Array, ""]) -> tuple[tuple, Float16[Array, "agents repeats"]]:
        """Nothing is seen before the first query."""
        return (), jnp.zeros((self.agents, self.repeats), jnp.float16)

    def step(
        self, world: HotspotWorld, state: tuple, actions: Integer[Array, "agents"], *, key: Key[Array, ""]
    ) -> tuple[tuple, Float16[Array, "agents repeats"]]:
        """Concentrations read in the chosen cells."""
        noise = jax.random.normal(key, (self.agents, self.repeats))
        logs = world.mean[actions][:, None] + world.deviation[actions][:, None] * noise
        return (), jnp.expm1(jnp.maximum(logs, 0.0)).astype(jnp.float16)

    def payoff(self, world: HotspotWorld, observation: Float16[Array, "agents repeats"]) -> Float[Array, ""]:
        """Mean of the normalised readings."""
        return jnp.mean(self.normalised(observation))

    # -- memory

    def normalised(self, concentrations: Float16[Array, "*some"]) -> Float[Array, "*some"]:
        """Concentrations as input of networks."""
        return (jnp.log1p(jnp.maximum(concentrations.astype(jnp.float32), 0.0)) - self.centre) / self.spread

    def init_memory(self, agent: Integer[Array, ""], observation: Float16[Array, "repeats"]) -> HotspotMemory:
        """Nothing."""
        empty = jnp.zeros(self.actions)
        return HotspotMemory(empty, empty, empty, empty, jnp.int16(-1), jnp.zeros(()), jnp.zeros(()))

    def update_memory(
        self,
        memory: HotspotMemory,
        agent: Integer[Array, ""],
        action: Integer[Array, ""],
        observation: Float16[Array, "repeats"],
    ) -> HotspotMemory:
        """Add one more query."""
        values = self.normalised(observation)
        at_cell = jax.nn.one_hot(action, self.actions)
        highest, mean = jnp.max(values), jnp.mean(values)
        largest = jnp.where(memory.number > 0, jnp.maximum(memory.largest, highest), highest)
        return HotspotMemory(
            memory.number + self.repeats * at_cell,
            memory.total + jnp.sum(values) * at_cell,
            memory.scatter + (jnp.sum((values - mean) ** 2) + self._between(memory, mean)) * at_cell,
            jnp.where(at_cell > 0, largest, memory.largest),
            action.astype(jnp.int16),
            mean,
            jnp.std(values),
        )

    def _between(self, memory: HotspotMemory, mean: Float[Array, ""]) -> Float[Array, "cells"]:
        """What a query with this mean adds to the scatter of earlier ones.

        Sums of squares minus squares of sums would leave rounding errors, whose square roots networks see.
        """
        known = memory.number
        return (mean - memory.total / jnp.maximum(known, 1.0)) ** 2 * known * self.repeats / (known + self.repeats)

    def miss_memory(
        self, memory: HotspotMemory, agent: Integer[Array, ""], action: Integer[Array, ""]
    ) -> HotspotMemory:
        """The sums as they are, and no last query."""
        return memory._replace(last=jnp.int16(-1), mean=jnp.zeros(()), deviation=jnp.zeros(()))

    def features(self, memory: HotspotMemory) -> Features:
        """The last query."""
        return Features(self._token(memory))

    def team_features(self, memories: HotspotMemory) -> Features:
        """Last queries of all agents, and maps of all readings."""
        number, total = jnp.sum(memories.number, axis=0), jnp.sum(memories.total, axis=0)
        mean = total / jnp.maximum(number, 1.0)
        apart = memories.total / jnp.maximum(memories.number, 1.0) - mean[None]
        scatter = jnp.sum(memories.scatter + memories.number * apart**2, axis=0)
        largest = jnp.max(jnp.where(memories.number > 0, memories.largest, -jnp.inf), axis=0)
        tokens = jax.vmap(self._token)(memories).reshape(-1)
        return Features(tokens, self._maps(number, mean, scatter, jnp.where(number > 0, largest, 0.0)))

    def _token(self, memory: HotspotMemory) -> Float[Array, "features"]:
        cell = jax.nn.one_hot(memory.last, self.actions)  # nowhere is all 0
        return jnp.concatenate([cell, jnp.stack([memory.mean, memory.deviation])])

    def _maps(
        self,
        number: Float[Array, "cells"],
        mean: Float[Array, "cells"],
        scatter: Float[Array, "cells"],
        largest: Float[Array, "cells"],
    ) -> Float[Array, "channels rows columns"]:
        """Mean, deviation, maximum, count (in logs) of the readings, and whether there are any."""
        deviation = jnp.sqrt(scatter / jnp.maximum(number, 1.0))
        visited = (number > 0).astype(jnp.float32)
        maps = jnp.stack([mean, deviation, largest, jnp.log1p(number / self.repeats), visited])
        # a gather from the valid cells and one empty column: a scatter onto the grid is slow under vmap
        source = np.full(self.grid.size, self.actions)
        source[self.cells] = np.arange(self.actions)
        padded = jnp.concatenate([maps, jnp.zeros((CHANNELS, 1))], axis=1)
        return padded[:, source].reshape(CHANNELS, self.rows, self.columns)
