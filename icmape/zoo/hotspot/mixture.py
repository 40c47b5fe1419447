"""An approximate posterior for fields from data: a mixture over years of Gaussian fields.

Means and covariances are those of many fields drawn from each year. Some of these fields are ensemble members: they are
updated with the same gains as the mean and with independent noise (an ensemble Kalman filter). The share of members in
which a cell is among the highest is its probability.
"""

from functools import partial
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Float16, Int, Integer, PyTree

from icmape.play.inference import BeliefInference
from icmape.problem import check_worlds
from icmape.zoo.hotspot.history import check_years
from icmape.zoo.hotspot.hotspot import Hotspot

DRAWN = 400  # fields of each year
MEMBERS = 48  # of each year
SEED = 0x9EA25
LEAST = 1e-3  # least probability of a cell


class MixtureBelief(NamedTuple):
    """The field of every year, and the probability of each year."""

    years: Float[Array, "years"]  # log-probabilities, not normalised
    means: Float[Array, "years cells"]
    covariances: Float[Array, "years cells cells"]
    members: Float[Array, "years members cells"]
    read: Int[Array, ""]  # number of updates


class YearMixture(eqx.Module):
    """The prior of a hotspot problem by year, and its update by readings."""

    prior: MixtureBelief
    noise: Float[Array, "years cells"]  # variance of the mean of a query's readings
    k: int = eqx.field(static=True)

    def told(
        self, belief: MixtureBelief, cells: Integer[Array, "queries"], values: Float[Array, "queries"]
    ) -> MixtureBelief:
        """Belief after several queries. `values` are the means of log(1 + concentration) of each."""
        rows = belief.covariances[:, cells, :]  # years, queries, cells
        noise = self.noise[:, cells]
        total = rows[:, :, cells] + noise[:, :, None] * jnp.eye(cells.shape[0])[None]
        root = jnp.linalg.cholesky(total)
        surprise = values[None] - belief.means[:, cells]
        # in sequence: two simultaneous batches can deadlock on a CPU
        right_sides = jnp.concatenate([rows, surprise[..., None]], axis=2)
        whitened = jax.scipy.linalg.solve_triangular(root, right_sides, lower=True)
        gain = jax.scipy.linalg.solve_triangular(root, whitened[..., :-1], lower=True, trans=1)
        white = whitened[..., -1]
        evidence = -0.5 * jnp.sum(white**2, axis=1) - jnp.sum(jnp.log(jnp.diagonal(root, axis1=1, axis2=2)), axis=1)
        key = jax.random.fold_in(jax.random.key(SEED), belief.read)
        member_noise = jax.random.normal(key, (*belief.members.shape[:2], cells.shape[0])) * jnp.sqrt(noise)[:, None, :]
        moved = values[None, None] + member_noise - belief.members[:, :, cells]
        return MixtureBelief(
            belief.years + evidence,
            belief.means + jnp.einsum("yqc,yq->yc", gain, surprise),
            belief.covariances - jnp.einsum("yqc,yqd->ycd", gain, rows),
            belief.members + jnp.einsum("yqc,ymq->ymc", gain, moved),
            belief.read + 1,
        )

    def among(self, belief: MixtureBelief) -> Float[Array, "years members cells"]:
        """Whether a cell is among the highest, in every member."""
        remaining = belief.members
        for _ in range(self.k - 1):  # k is small: a sort would take many times as long
            remaining = jnp.where(remaining >= jnp.max(remaining, axis=-1, keepdims=True), -jnp.inf, remaining)
        return (belief.members >= jnp.max(remaining, axis=-1, keepdims=True)).astype(jnp.float32)

    def chances(self, belief: MixtureBelief) -> Float[Array, "cells"]:
        """Probability of every cell to be among the highest."""
        share = jnp.einsum("y,ymc->c", jax.nn.softmax(belief.years), self.among(belief)) / belief.members.shape[1]
        return jnp.clip(share, LEAST, 1 - LEAST)

    def scores(self, belief: MixtureBelief) -> Float[Array, "cells"]:
        """The same as log-odds."""
        chance = self.chances(belief)
        return jnp.log(chance) - jnp.log1p(-chance)

    def outlook(self, belief: MixtureBelief) -> "Outlook":
        """Covariances for choosing the next cells."""
        weights = jax.nn.softmax(belief.years)
        each = jnp.repeat(weights, belief.members.shape[1]) / belief.members.shape[1]
        fields = belief.members.reshape(each.shape[0], -1)
        among = self.among(belief).reshape(fields.shape)
        chance = each @ among
        centred = fields - (each @ fields)[None]
        weighed = each[:, None] * centred
        return Outlook(weighed.T @ centred, (among - chance[None]).T @ weighed, weights @ self.noise, chance)


class Outlook(NamedTuple):
    """Covariances of cells' values, and of membership among the highest with them (a linear approximation)."""

    fields: Float[Array, "cells cells"]  # covariance of values
    among: Float[Array, "cells cells"]  # covariance of membership (rows) with values
    noise: Float[Array, "cells"]  # variance of a query's mean
    chance: Float[Array, "cells"]

    def best(self) -> Int[Array, ""]:
        """The most informative cell: its reading reduces the variance of membership most.

        Cells are weighted by their probability, because a likely cell will be the answer.
        """
        total = jnp.diagonal(self.fields) + self.noise
        return jnp.argmax(self.chance @ self.among**2 / total)

    def after(self, cell: Integer[Array, ""]) -> "Outlook":
        """The outlook after a reading of a cell, which does not depend on the value."""
        row = self.fields[cell]
        gain = row / (row[cell] + self.noise[cell])
        return self._replace(
            fields=self.fields - row[:, None] * gain[None, :],
            among=self.among - self.among[:, cell][:, None] * gain[None, :],
        )


class MixtureInference(BeliefInference):
    """The posterior by a mixture of years."""

    model: YearMixture
    kind: ClassVar[str] = "mixture of years"

    def belief(self, problem: Hotspot, first: PyTree = None) -> MixtureBelief:
        """The prior: nothing is seen before round 0."""
        return self.model.prior

    def update(
        self, problem: Hotspot, belief: MixtureBelief, actions: Integer[Array, "agents"], observation: PyTree
    ) -> MixtureBelief:
        """After one more round of all agents."""
        return self.model.told(belief, actions, query_means(observation))

    def scores(self, problem: Hotspot, belief: MixtureBelief) -> Float[Array, "cells"]:
        """Log-odds of the cells."""
        return self.model.scores(belief)


def query_means(readings: Float16[Array, "queries repeats"]) -> Float[Array, "queries"]:
    """The mean of log(1 + concentration) of each query."""
    return jnp.mean(jnp.log1p(readings.astype(jnp.float32)), axis=1)


@eqx.filter_jit
def year_mixture(problem: Hotspot, training_years: Int[Array, "years"]) -> YearMixture:
    """The model of these years, counted from the first of the history."""
    draw = lambda year, key: problem.world_of(year, key=key)  # noqa: E731
    keys = partial(jax.random.split, num=DRAWN)

    def year_moments(year: Int[Array, ""]) -> tuple:
        worlds = jax.vmap(partial(draw, year))(keys(jax.random.fold_in(jax.random.key(SEED), year)))
        mean = jnp.mean(worlds.mean, axis=0)
        centred = worlds.mean - mean[None]
        return mean, centred.T @ centred / (DRAWN - 1), worlds.mean[:MEMBERS], jnp.mean(worlds.deviation**2, axis=0)

    means, covariances, members, noise = jax.lax.map(year_moments, training_years)
    prior = MixtureBelief(jnp.zeros(means.shape[0]), means, covariances, members, jnp.int32(0))
    return YearMixture(prior, noise / problem.repeats, problem.k)


def mixture_of(problem: Hotspot) -> YearMixture:
    """The model of a problem's training years: worlds may be drawn from others."""
    check_worlds(problem)
    check_years(problem.fields.history, problem.training_years, problem.fit, "problem.training_years")
    history_years = problem.fields.history.years
    return year_mixture(problem, jnp.asarray([history_years.index(year) for year in problem.training_years]))
