"""Teams under failures: accuracy and τ against the rate of lost readings, silent agents or late stop bits."""

from collections.abc import Iterator, Sequence

from icmape.compiling import use_compilation_cache
from icmape.errors import UserError
from icmape.evaluation.methods import Tick
from icmape.evaluation.robustness import SweepPoint, sweep_point
from icmape.play.episodes import play
from icmape.play.team import Team

LABELS = {
    "lost": "probability that a reading is lost",
    "silent": "probability of falling silent, per agent and round",
    "late": "probability that a stop bit is late, per agent",
}


def failure_curve(
    team: Team,
    name: str,
    rates: Sequence[float],
    *,
    episodes: int,
    seed: int = 0,
    known: Sequence[SweepPoint] = (),
    tick: Tick | None = None,
) -> Iterator[SweepPoint]:
    """Play a team in the same worlds at each rate of one kind of failure, except rates in `known`."""
    if name not in LABELS:
        raise UserError(f"a failure is one of {', '.join(LABELS)}; given {name!r}")
    if episodes < 1:
        raise UserError(f"a curve needs at least one episode a point; given {episodes}")
    use_compilation_cache()
    done = {point.changes[name]: point for point in known if point.episodes == episodes}
    for rate in rates:
        point = done.get(rate)
        if point is None:
            failing = team.under(**{name: rate})
            point = sweep_point({name: rate}, play(failing, episodes, seed, exact=0), team.problem.horizon)
        if tick:
            tick(1)
        yield point
