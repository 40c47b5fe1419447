"""Certificates: a lower confidence bound on the accuracy of a team, and its limits in words."""

import dataclasses
import json
import textwrap
from dataclasses import dataclass
from typing import Any

from icmape.compiling import use_compilation_cache
from icmape.errors import UserError
from icmape.evaluation.intervals import interval_of, lower_bound, needed_successes
from icmape.evaluation.methods import Tick
from icmape.evaluation.tally import Tally
from icmape.io import circumstances
from icmape.play.episodes import RESERVED, play_parts
from icmape.play.team import Team
from icmape.problem.spec import describe

WORLDS = 10_000
LEVEL = 0.95
WIDTH = 96  # columns of a certificate on a terminal
SEEDS = 2**20  # size of the range of seeds that is reserved for certificates


@dataclass(frozen=True)
class Certificate:
    """Granted if the bound on accuracy reaches 1-δ."""

    granted: bool
    target: float  # 1-δ
    bound: float  # one-sided, on the probability of a right answer
    level: float  # of the bound, and of the interval for τ
    right: int
    worlds: int
    needed: int | None  # right answers that suffice; None if even all worlds would not
    tau: float
    tau_low: float
    tau_high: float
    forced: float  # fraction of episodes that the horizon ended
    seed: int  # in the reserved range
    problem: dict[str, Any]  # its arguments include the parameters of the prior
    given: str  # what the prior is conditional on, in words
    team: str  # hash of the team file, if there is one
    provenance: dict[str, Any]  # of this certificate
    card: dict[str, Any]  # of the team

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**dataclasses.asdict(self), "statement": self.statement}

    @staticmethod
    def from_dict(values: dict[str, Any]) -> "Certificate":
        """The inverse of `to_dict`."""
        return Certificate(**{key: value for key, value in values.items() if key != "statement"})

    @property
    def statement(self) -> str:
        """The guarantee and its limits, in words."""
        return " ".join([self._promise(), self._time(), self._limits(), self._prior()])

    def _prior(self) -> str:
        """The short parameters of the prior, and the seed."""
        shown = {name: value for name, value in self.problem["arguments"].items() if _short(value)}
        words = ", ".join(f"{name} {value}" for name, value in shown.items())
        return f"Prior: {self.problem['kind']} with {words}. Seed {self.seed} of those kept for certificates."

    def _promise(self) -> str:
        counts = f"{self.right:,} of {self.worlds:,} fresh worlds"
        if self.granted:
            return (
                f"With {percent(self.level)} confidence this team answers right with probability at least "
                f"{self.bound:.4f}, which is no less than its target {self.target:g}: it was right in {counts}."
            )
        short = "no number of right answers in so few worlds would do" if self.needed is None else f"{self.needed:,}"
        needed = short if self.needed is None else f"it takes {short} for {self.target:g}"
        return (
            f"NOT GRANTED: with {percent(self.level)} confidence this team answers right with probability at least "
            f"{self.bound:.4f} only; it was right in {counts}, and {needed}."
        )

    def _time(self) -> str:
        return (
            f"On average it stops after τ = {self.tau:.3f} rounds, the stop included ({percent(self.level)} interval "
            f"{self.tau_low:.3f} to {self.tau_high:.3f})."
        )

    def _limits(self) -> str:
        where = f", given {self.given}" if self.given else ""
        return (
            f"This is an average over worlds drawn from the prior declared here{where}: it says nothing about any "
            "single world, nor about worlds that another prior or another process makes. The certificate holds for "
            "this team file unchanged, and once: whoever tries many teams, seeds or numbers of worlds until one is "
            "granted has no such certificate."
        )

    def __str__(self) -> str:
        """A few short lines for a terminal; `statement` is the whole."""
        head = "certificate GRANTED" if self.granted else "certificate REFUSED"
        needed = "too few worlds for any" if self.needed is None else f"{self.needed:,} needed"
        lines = [
            f"right in {self.right:,} of {self.worlds:,} fresh worlds ({needed})",
            f"τ {self.tau:.3f}  [{self.tau_low:.3f}, {self.tau_high:.3f}]   rounds, the stop included",
            self._prior(),
            *([f"Given {self.given}."] if self.given else []),
            "On average over worlds of this prior, not in every world, and not for another prior.",
            "For this team file unchanged, and once: repeated attempts until one is granted void it.",
        ]
        lines = [row for line in lines for row in textwrap.wrap(line, WIDTH, subsequent_indent="  ")]
        first = f"{head}: accuracy ≥ {self.bound:.4f} at {percent(self.level)} (target {self.target:g})"
        return "\n  ".join([first, *lines])


def _short(value: Any) -> bool:
    return value is not None and not (isinstance(value, list | tuple) and len(value) > 4)


def percent(level: float) -> str:
    """A level in percent, such as 95 %."""
    return f"{100 * level:.6g} %"


def certify(
    team: Team,
    *,
    worlds: int | None = None,
    level: float = LEVEL,
    seed: int = 0,
    digest: str = "",
    tick: Tick | None = None,
) -> Certificate:
    """Certify a team by episodes in worlds that are reserved for certificates (default: `worlds_for`)."""
    worlds = worlds_for(team) if worlds is None else worlds
    check_request(worlds, level, seed)
    use_compilation_cache()
    tally = Tally(team.problem.horizon)
    for part in play_parts(team, worlds, RESERVED + seed, tick, exact=0, certifying=True):
        tally.add(part)
    return certificate_of(
        tally,
        delta=team.delta,
        level=level,
        seed=seed,
        problem=describe(team.problem, local=False),
        given=team.problem.given,
        team=digest,
        provenance=circumstances(),
        card=json.loads(team.card),
    )


def certificate_of(tally: Tally, *, delta: float, level: float, **fields: Any) -> Certificate:
    """The certificate for these episodes."""
    target, right, worlds = 1 - delta, tally.team.right, tally.episodes
    bound = lower_bound(right, worlds, level)
    low, high = interval_of(tally.tau, tally.tau_deviation, worlds, level)
    return Certificate(
        granted=bound >= target,
        target=target,
        bound=bound,
        level=level,
        right=right,
        worlds=worlds,
        needed=needed_successes(worlds, target, level),
        tau=tally.tau,
        tau_low=low,
        tau_high=high,
        forced=tally.forced,
        **fields,
    )


def worlds_for(team: Team) -> int:
    """The number of worlds that its stops were set for: on fewer, a good team may be refused."""
    card = json.loads(team.card)
    for source in ("retargeted", "configuration"):
        if worlds := card.get(source, {}).get("certificate_worlds"):
            return int(worlds)
    return WORLDS


def check_request(worlds: int, level: float, seed: int) -> None:
    """Raise `UserError` for invalid arguments, before anything is loaded."""
    if worlds < 2:
        raise UserError(f"a certificate needs at least two worlds; given {worlds}")
    if not 0 < level < 1:
        raise UserError(f"a certificate's level lies between 0 and 1; given {level}")
    if not 0 <= seed < SEEDS:
        raise UserError(f"certificates have seeds 0..{SEEDS - 1} to themselves; given {seed}")
