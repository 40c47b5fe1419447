"""A comparison: read what was given, refuse what cannot be compared, then play."""

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from icmape.compiling import use_compilation_cache
from icmape.errors import UserError
from icmape.evaluation.baseline_curves import baseline_curves, check_baselines, untrained_baselines
from icmape.evaluation.methods import Comparison, Tick
from icmape.evaluation.sources import Posed, Source, check_comparable, judge, read_source
from icmape.play.episodes import check_seed
from icmape.play.team import Team
from icmape.problem import Problem
from icmape.problem.entry import problem_classes
from icmape.problem.spec import build


@dataclass(frozen=True)
class Plan:
    """Everything that was asked for, known to fit together; nothing was played yet."""

    sources: tuple[Source, ...]
    problem: Posed | None
    delta: float
    episodes: int
    seed: int
    baselines: tuple[str | Team, ...]
    all_baselines: bool  # all that fit, instead of those named
    baseline_episodes: int
    own: type[Problem] | None
    changes: Mapping[str, Any]

    @property
    def work(self) -> int:
        """Episodes to play for the teams, and as many for every baseline: the length of a progress bar."""
        teams = sum(len(source.teams) + len(source.built) for source in self.sources)
        return self.episodes * (teams + len(self.baselines))

    @property
    def instance(self) -> Problem:
        """The problem that baselines are played on: that of a team at hand, or one built as the files say."""
        assert self.problem is not None  # no baseline is asked for otherwise
        for source in self.sources:
            for team in source.built:
                return team.problem.unwrapped
        return build(self.problem._replace(centralized=False)._asdict(), self.own, self.changes)


def plan(
    given: Sequence[str | Team],
    episodes: int = 10_000,
    seed: int = 0,
    names: Sequence[str] = (),
    baselines: Sequence[str | Team] = (),
    baseline_episodes: int = 2_000,
    own: type[Problem] | None = None,
    changes: Mapping[str, Any] | None = None,
) -> Plan:
    """Read sources and refuse what cannot be compared. Baselines: those named, or all that fit untrained."""
    if not given:
        raise UserError("give one or more run folders, team files, pretrained teams, or JSON files with results")
    for what, count in (("--episodes", episodes), ("--baseline-episodes", baseline_episodes)):
        if count < 1:
            raise UserError(f"{what} must be at least 1; given {count}")
    check_seed(seed)
    if names and len(names) != len(given):
        raise UserError(f"--names needs a name for each of the {len(given)} methods; given {len(names)}")
    chosen = check_baselines(baselines)
    at_hand = [type(one.problem.unwrapped) for one in given if isinstance(one, Team)]
    own = own or next((kind for kind in at_hand if kind not in problem_classes().values()), None)
    sources = [read_source(one, own, changes) for one in given]
    sources = [dataclasses.replace(s, name=n) for s, n in zip(sources, names or [s.name for s in sources], strict=True)]
    twice = [name for name, count in Counter(source.name for source in sources).items() if count > 1]
    if twice:
        raise UserError(f"{twice[0]!r} would name several methods: tell them apart with --names, one for each")
    problem, delta = check_comparable(sources)
    sources = [source.for_target(delta) for source in sources]
    playable = problem is not None and (problem.kind in problem_classes() or own is not None)
    if chosen and not playable:
        named = "do not name their problem" if problem is None else f"are for {problem.kind}"
        raise UserError(f"the files given {named}, so no baseline can be played: --baselines none, or --problem")
    wanted: list[str | Team] = chosen if baselines else [*untrained_baselines()] if playable else []
    return Plan(
        tuple(sources),
        problem,
        delta,
        episodes,
        seed,
        tuple(wanted),
        not baselines,
        baseline_episodes,
        own,
        changes or {},
    )


def compare(planned: Plan, *, folder: Path | None = None, tick: Tick | None = None) -> Comparison:
    """Play teams and baselines. `folder` keeps the baselines' curves for the next time."""
    use_compilation_cache()
    methods = [judge(s, planned.episodes, planned.seed, own=planned.own, tick=tick) for s in planned.sources]
    curves = {}
    if planned.baselines and planned.problem:
        curves = baseline_curves(
            planned.instance,
            planned.baselines,
            delta=planned.delta,
            episodes=planned.baseline_episodes,
            seed=planned.seed,
            only_fitting=planned.all_baselines,
            folder=folder,
            tick=None if tick is None else lambda count: tick(count * planned.episodes),
        )
    return Comparison(
        str(planned.problem or "a problem that its files do not name"),
        planned.delta,
        planned.episodes,
        planned.seed,
        tuple(methods),
        curves,
        planned.baseline_episodes,
    )
