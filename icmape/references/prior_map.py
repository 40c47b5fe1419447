"""The GP prior map: cells drawn in proportion to one field that is fitted to the past, whatever is read."""

from collections.abc import Callable
from functools import partial
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer, Key

from icmape.errors import UserError
from icmape.problems import Hotspot, View
from icmape.references.open_loop import Chance

READINGS = 3000  # of the training years, as in the paper
SEED = 0x6A9
NEVER = -1e9  # what a cell scores that is never drawn: finite, as team files hold nothing else


class PriorMap(Chance):
    """Every agent draws a cell with these probabilities in every round."""

    logits: Float[Array, "cells"]
    kind: Literal["gp-map", "gp-map-top6", "gp-map-top20"] = eqx.field(static=True)

    def decide_agent(
        self, state: tuple, agent: Integer[Array, ""], view: View, number: Integer[Array, ""], *, key: Key[Array, ""]
    ) -> tuple[tuple, Float[Array, "choices"]]:
        """Its draw scores highest; never STOP."""
        return state, jnp.append(self.logits + jax.random.gumbel(key, self.logits.shape), -jnp.inf)


def prior_map(problem: Hotspot) -> Float[Array, "cells"]:
    """Concentrations by a field that is fitted to readings of all training years together."""
    if not problem.has_worlds:
        raise UserError("the GP prior map is fitted to historical measurements: give them with --data")
    history = problem.fields.history
    rows = history.rows(problem.training_years)  # known also where the readings are traced, as in a training program
    chosen = np.random.default_rng(SEED).choice(rows, min(READINGS, len(rows)), replace=False)
    field = problem.fields.fit(history.stations[chosen], history.values[chosen])
    return jnp.expm1(jnp.maximum(field.mean, 0.0))


def _policy(kind: Literal["gp-map", "gp-map-top6", "gp-map-top20"], top: int | None, problem: Hotspot) -> PriorMap:
    heights = prior_map(problem)
    least = jnp.float32(0) if top is None else jnp.sort(heights)[-min(top, heights.shape[0])]
    drawn = (heights >= least) & (heights > 0)
    logits = jnp.where(drawn, jnp.log(jnp.where(drawn, heights, 1.0)), NEVER)
    return PriorMap(problem.agents, logits, kind)


PRIOR_MAPS: dict[str, tuple[str, Callable[[Hotspot], PriorMap]]] = {
    "gp-map": ("cells drawn in proportion to a field fitted to the past", partial(_policy, "gp-map", None)),
    "gp-map-top6": ("the same among that field's six highest cells", partial(_policy, "gp-map-top6", 6)),
    "gp-map-top20": ("the same among its twenty highest", partial(_policy, "gp-map-top20", 20)),
}
"""By name: a line on what it does, and the policy."""
