"""The GP prior map: non-adaptive, cells are drawn in proportion to a field fitted to past measurements."""

from functools import partial

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from icmape.errors import UserError
from icmape.play.named_policies import NamedPolicy
from icmape.play.open_loop import FixedLogits
from icmape.zoo.hotspot.hotspot import Hotspot

READINGS = 3000  # of the training years, as in the paper
SEED = 0x6A9
NEVER = -1e9  # logit of cells that are never drawn; finite, as team files require


def prior_map(problem: Hotspot) -> Float[Array, "cells"]:
    """Concentrations of a field fitted to readings of all training years."""
    if not problem.has_worlds:
        raise UserError("the GP prior map is fitted to historical measurements: give them with --data")
    history = problem.fields.history
    rows = history.rows(problem.training_years)  # known also where the readings are traced, as in a training program
    chosen = np.random.default_rng(SEED).choice(rows, min(READINGS, len(rows)), replace=False)
    field = problem.fields.fit(history.stations[chosen], history.values[chosen])
    return jnp.expm1(jnp.maximum(field.mean, 0.0))


def _policy(kind: str, top: int | None, problem: Hotspot) -> FixedLogits:
    heights = prior_map(problem)
    threshold = jnp.float32(0) if top is None else jnp.sort(heights)[-min(top, heights.shape[0])]
    drawn = (heights >= threshold) & (heights > 0)
    logits = jnp.where(drawn, jnp.log(jnp.where(drawn, heights, 1.0)), NEVER)
    return FixedLogits(problem.agents, logits, kind)


POLICIES: dict[str, NamedPolicy] = {
    "gp-map": NamedPolicy("cells drawn in proportion to a field fitted to the past", partial(_policy, "gp-map", None)),
    "gp-map-top6": NamedPolicy("the same among that field's six highest cells", partial(_policy, "gp-map-top6", 6)),
    "gp-map-top20": NamedPolicy("the same among its twenty highest", partial(_policy, "gp-map-top20", 20)),
}
