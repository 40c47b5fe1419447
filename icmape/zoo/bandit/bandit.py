"""Capacity identification: how many players can each arm serve at once?

K arms, N players. Arm k serves up to C_k of them: each of its players is then paid with probability μ_k; one player
more, and nobody on the arm is paid. C_k is one of 1..N; μ_k lies in [0.3, 1]. The question is the whole vector C.
"""

import math
from functools import lru_cache
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Int8, Integer, Key

from icmape.errors import UserError
from icmape.memory import check_fits
from icmape.problem import BIT, Factored, Features, Problem, Range
from icmape.problem.quadrature import gauss_jacobi
from icmape_agent.display import Display, Quantity

TeamTokens = Literal["loads", "readings"]
MOST_READINGS = 4000  # of one arm in an episode; the table then takes 64 MB


class BanditWorld(NamedTuple):
    """The hidden state of the world. `hypothesis` is C - 1, so that it counts from 0."""

    hypothesis: Int8[Array, "arms"]
    means: Float[Array, "arms"]


class BanditMemory(NamedTuple):
    """A player's last round; the encoder keeps the history."""

    arm: Int[Array, ""]  # -1 before the first round, and if it did not play
    paid: Bool[Array, ""]
    read: Bool[Array, ""]  # whether the reading arrived


class BanditBelief(NamedTuple):
    """Successes and failures on each arm at loads 1..N: a sufficient statistic of the posterior."""

    successes: Int[Array, "arms players"]
    failures: Int[Array, "arms players"]


class Bandit(Problem):
    """Capacity identification for any number of arms and players.

    Args:
        arms: number of arms (K).
        players: number of players, which is also the largest capacity (N).
        horizon: rounds at most, the stop round included (T).
        mean_low: smallest mean payoff of an arm.
        mean_high: largest mean payoff of an arm.
        mean_alpha: means are Beta(alpha, beta) scaled to [low, high]; none: uniform.
        mean_beta: see mean_alpha.
        capacity_concentration: θ of a symmetric Dirichlet over capacity values, drawn once a world and shared by its
            arms; none: uniform and independent.
        team_tokens: what critic and inference read of a round: every player's reading ("readings", the paper's), or
            these and the counts of paid and unpaid players at each arm's load ("loads"). The counts add no information,
            but the inference network approaches the exact posterior in far fewer steps (docs/results/ablations.md).
    """

    agents: int = eqx.field(static=True)
    actions: int = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    hypotheses: Factored
    mean_low: Float[Array, ""]
    mean_high: Float[Array, ""]
    mean_alpha: Float[Array, ""] | None
    mean_beta: Float[Array, ""] | None
    capacity_concentration: Float[Array, ""] | None
    log_evidence: Float[Array, "successes failures"]
    team_tokens: TeamTokens = eqx.field(static=True)

    UNSAID: ClassVar[dict[str, Any]] = {"team_tokens": "readings"}

    def __init__(
        self,
        arms: int = 3,
        players: int = 5,
        horizon: int = 50,
        mean_low: float = 0.3,
        mean_high: float = 1.0,
        mean_alpha: float | None = None,
        mean_beta: float | None = None,
        capacity_concentration: float | None = None,
        team_tokens: TeamTokens = "loads",
    ):
        _check_sizes(arms, players, horizon)
        if team_tokens not in get_args(TeamTokens):
            raise UserError(f"team_tokens must be one of {', '.join(get_args(TeamTokens))}; given {team_tokens!r}")
        self.team_tokens = team_tokens
        _check_prior(mean_low, mean_high, mean_alpha, mean_beta, capacity_concentration)
        self.agents, self.actions, self.horizon = players, arms, horizon
        self.hypotheses = Factored(arms, players)
        self.mean_low, self.mean_high = jnp.float32(mean_low), jnp.float32(mean_high)
        self.mean_alpha, self.mean_beta = _leaf(mean_alpha), _leaf(mean_beta)
        self.capacity_concentration = _leaf(capacity_concentration)
        shape = (1.0, 1.0) if mean_alpha is None or mean_beta is None else (mean_alpha, mean_beta)
        table = log_evidence_table(players * (horizon - 1), mean_low, mean_high, *shape)
        self.log_evidence = jnp.asarray(table, jnp.float32)

    @property
    def arms(self) -> int:
        """K."""
        return self.actions

    @property
    def players(self) -> int:
        """N."""
        return self.agents

    @property
    def question(self) -> str:
        """The capacities."""
        which = f"each of {self.arms} arms" if self.arms > 1 else "the arm"
        return f"How many players can {which} serve at once?"

    def action_name(self, action: int) -> str:
        """An arm, counted from 1."""
        return f"arm {action + 1}"

    def answer_name(self, answer: Any) -> str:
        """A capacity for every arm."""
        return "capacities " + ", ".join(str(value + 1) for value in np.atleast_1d(np.asarray(answer)).tolist())

    @property
    def observation_range(self) -> Range:
        """Paid or not."""
        return BIT

    @property
    def display(self) -> Display:
        """Players pull arms."""
        return Display(readings=[Quantity("result", values=("not paid", "paid"))], agent="player", verb="Pull")

    @property
    def explanation(self) -> str:
        """Overloads."""
        return "With more players than an arm can serve, it pays nobody; otherwise each is paid by chance."

    def sample(self, *, key: Key[Array, ""]) -> BanditWorld:
        """Capacities and means from the prior."""
        for_means, for_capacities, for_shares = jax.random.split(key, 3)
        if self.mean_alpha is None or self.mean_beta is None:
            unit = jax.random.uniform(for_means, (self.arms,))
        else:
            unit = jax.random.beta(for_means, self.mean_alpha, self.mean_beta, (self.arms,))
        means = self.mean_low + (self.mean_high - self.mean_low) * unit
        if self.capacity_concentration is None:
            capacities = jax.random.randint(for_capacities, (self.arms,), 0, self.players)
        else:
            # log-gamma draws, since at θ = 0.1 a share may be too small for a float
            logits = jax.random.loggamma(for_shares, self.capacity_concentration, (self.players,))
            capacities = jax.random.categorical(for_capacities, logits, shape=(self.arms,))
        return BanditWorld(capacities.astype(jnp.int8), means)

    def start(self, world: BanditWorld, *, key: Key[Array, ""]) -> tuple[tuple, Int8[Array, "players"]]:
        """No state, and no observation yet."""
        return (), jnp.zeros(self.players, jnp.int8)

    def step(
        self, world: BanditWorld, state: tuple, actions: Int[Array, "players"], *, key: Key[Array, ""]
    ) -> tuple[tuple, Int8[Array, "players"]]:
        """Each player is paid or not; an overloaded arm pays nobody."""
        loads = self.loads(actions)
        serves = loads <= world.hypothesis.astype(loads.dtype) + 1
        paid = jax.random.uniform(key, (self.players,)) < world.means[actions]
        return state, (paid & serves[actions]).astype(jnp.int8)

    def step_some(
        self,
        world: BanditWorld,
        state: tuple,
        actions: Int[Array, "players"],
        acting: Bool[Array, "players"],
        *,
        key: Key[Array, ""],
    ) -> tuple[tuple, Int8[Array, "players"]]:
        """The others do not play: they are no load."""
        return self.step(world, state, jnp.where(acting, actions, -1), key=key)

    def loads(self, actions: Integer[Array, "players"]) -> Int[Array, "arms"]:
        """Number of players on each arm; arm -1 is none."""
        return jnp.sum(jax.nn.one_hot(actions, self.arms, dtype=jnp.int32), axis=0)

    def init_memory(self, agent: Integer[Array, ""], observation: Int8[Array, ""]) -> BanditMemory:
        """Nothing yet."""
        return BanditMemory(jnp.int32(-1), jnp.array(False), jnp.array(True))

    def update_memory(
        self, memory: BanditMemory, agent: Integer[Array, ""], action: Integer[Array, ""], observation: Int8[Array, ""]
    ) -> BanditMemory:
        """The last arm, and whether it paid."""
        return BanditMemory(action.astype(jnp.int32), observation > 0, jnp.array(True))

    def miss_memory(self, memory: BanditMemory, agent: Integer[Array, ""], action: Integer[Array, ""]) -> BanditMemory:
        """The last arm, whose load the player counted for."""
        return BanditMemory(action.astype(jnp.int32), jnp.array(False), jnp.array(False))

    @property
    def reads_missed(self) -> bool:
        """Players take turns on the arms by the number of rounds."""
        return True

    def features(self, memory: BanditMemory) -> Features:
        """One-hot of the arm if it paid, one-hot of the arm if it did not; zeros before the first round or reading."""
        arm = jax.nn.one_hot(jnp.where(memory.read, memory.arm, -1), self.arms)
        return Features(jnp.concatenate([jnp.where(memory.paid, arm, 0.0), jnp.where(memory.paid, 0.0, arm)]))

    def team_features(self, memories: BanditMemory) -> Features:
        """All views, and with `team_tokens="loads"` the round's readings at the load of each arm."""
        plain = super().team_features(memories)
        if self.team_tokens == "readings":
            return plain
        counts = self.readings_at_loads(memories.arm, memories.paid, memories.read)
        return Features(jnp.concatenate([plain.token, *(count.astype(jnp.float32).reshape(-1) for count in counts)]))

    # -- exact Bayes

    @property
    def posterior(self) -> str:
        """Exact for independent uniform capacities; it ignores the coupling by a shared Dirichlet draw."""
        return "exact" if self.capacity_concentration is None else "misspecified"

    def belief(self, first: Int8[Array, "players"] | None = None) -> BanditBelief:
        """No readings before round 0."""
        zeros = jnp.zeros((self.arms, self.players), jnp.int32)
        return BanditBelief(zeros, zeros)

    def update_belief(
        self, belief: BanditBelief, actions: Integer[Array, "players"], observation: Int8[Array, "players"]
    ) -> BanditBelief:
        """Count the round's readings at the load each arm had."""
        everyone = jnp.ones(self.players, bool)
        return self.update_partial_belief(belief, actions, observation, everyone, everyone)

    def update_partial_belief(
        self,
        belief: BanditBelief,
        actions: Integer[Array, "players"],
        observation: Int8[Array, "players"],
        acted: Bool[Array, "players"],
        arrived: Bool[Array, "players"],
    ) -> BanditBelief:
        """A player whose reading is missing counts for the load; one that did not play does not."""
        arms = jnp.where(acted, actions.astype(jnp.int32), -1)
        return jax.tree.map(jnp.add, belief, self.readings_at_loads(arms, observation > 0, arrived))

    def readings_at_loads(
        self, arms: Integer[Array, "players"], paid: Bool[Array, "players"], read: Bool[Array, "players"]
    ) -> BanditBelief:
        """One round's successes and failures at each arm and load, as far as they were read; arm -1 is none."""
        on_arm = jax.nn.one_hot(arms, self.arms, dtype=jnp.int32)
        pulls = jnp.sum(on_arm, axis=0)
        known = on_arm * read[:, None].astype(jnp.int32)
        hits = jnp.sum(known * paid[:, None].astype(jnp.int32), axis=0)
        misses = jnp.sum(known, axis=0) - hits
        at_load = jax.nn.one_hot(pulls - 1, self.players, dtype=jnp.int32)  # no row for an arm without players
        return BanditBelief(at_load * hits[:, None], at_load * misses[:, None])

    def log_posterior(self, belief: BanditBelief) -> Float[Array, "arms players"]:
        """p(C=c | D) ∝ 1{no success at a load above c} · ∫ μ^S (1-μ)^F p(μ) dμ, S and F counted at loads up to c."""
        successes = jnp.cumsum(belief.successes, axis=1)
        failures = jnp.cumsum(belief.failures, axis=1)
        possible = successes == successes[:, -1:]
        return jax.nn.log_softmax(jnp.where(possible, self.log_evidence[successes, failures], -jnp.inf), axis=1)

    def payoff(self, world: BanditWorld, observation: Int8[Array, "players"]) -> Float[Array, ""]:
        """Mean payoff of the players."""
        return jnp.mean(observation.astype(jnp.float32))


def _leaf(value: float | None) -> Float[Array, ""] | None:
    return None if value is None else jnp.float32(value)


@lru_cache(maxsize=32)
def log_evidence_table(readings: int, low: float, high: float, alpha: float, beta: float) -> np.ndarray:
    """log ∫ μ^S (1-μ)^F p(μ) dμ for all S, F up to `readings`; cells with S + F beyond it are not used.

    Gauss-Jacobi quadrature with enough nodes to be exact for these polynomials, in float64 (256 nodes suffice for any
    size to float32 accuracy).
    """
    nodes, weights = gauss_jacobi(min(readings // 2 + 1, 256), alpha, beta)
    means = low + (high - low) * nodes
    with np.errstate(divide="ignore"):
        log_hit, log_miss, log_weight = np.log(means), np.log1p(-np.minimum(means, 1.0)), np.log(weights)
    failures = np.arange(readings + 1)[:, None]
    misses = np.where(failures == 0, 0.0, failures * np.where(failures == 0, 0.0, log_miss))
    table = np.zeros((readings + 1, readings + 1))
    for successes in range(readings + 1):
        columns = readings + 1 - successes
        terms = successes * log_hit + log_weight + misses[:columns]
        peak = terms.max(axis=1, keepdims=True)
        table[successes, :columns] = np.log(np.exp(terms - peak).sum(axis=1)) + peak[:, 0]
    return table


def _check_sizes(arms: int, players: int, horizon: int) -> None:
    for name, value in (("arms", arms), ("players", players), ("horizon", horizon)):
        if not isinstance(value, int):
            raise UserError(f"{name} must be a whole number; given {value!r}")
    if arms < 1:
        raise UserError(f"a bandit needs at least one arm; arms is {arms}")
    if not 1 <= players <= 127:
        raise UserError(f"a bandit needs 1 to 127 players; players is {players}")
    if horizon < 2:
        raise UserError(f"a problem needs at least two rounds, one to sample and one to stop; horizon is {horizon}")
    belief = f"the exact posterior of {arms:,} arms and {players} players"
    check_fits(belief, 1000 * 8.0 * arms * players, "choose fewer arms")  # of the episodes of a batch
    if players * (horizon - 1) > MOST_READINGS:
        raise UserError(
            f"{players} players over {horizon} rounds give an arm more readings than the exact posterior's table holds "
            f"({MOST_READINGS}): shorten the horizon"
        )


def _check_prior(low: float, high: float, alpha: float | None, beta: float | None, concentration: float | None) -> None:
    if not 0 <= low < high <= 1:
        raise UserError(f"means need 0 <= mean_low < mean_high <= 1; given {low} and {high}")
    if (alpha is None) != (beta is None) or any(
        value is not None and not 0 < value < math.inf for value in (alpha, beta)
    ):
        raise UserError(f"a Beta prior needs two positive parameters; mean_alpha is {alpha}, mean_beta is {beta}")
    if concentration is not None and not 0 < concentration < math.inf:
        raise UserError(f"a Dirichlet prior needs a positive capacity_concentration; it is {concentration}")
