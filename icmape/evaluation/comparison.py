"""Comparisons: read the sources, check that they are comparable, then play."""

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
from icmape.play.episodes import check_episodes, check_seed
from icmape.play.team import Team
from icmape.problem import Problem
from icmape.problem.entry import problem_classes
from icmape.problem.spec import build


@dataclass(frozen=True)
class Plan:
    """A checked comparison, before any episode is played."""

    sources: tuple[Source, ...]
    problem: Posed | None
    delta: float
    episodes: int
    seed: int
    baselines: tuple[str | Team, ...]
    all_baselines: bool  # all that fit, instead of named ones
    baseline_episodes: int
    own: type[Problem] | None
    changes: Mapping[str, Any]

    @property
    def work(self) -> int:
        """The length of the progress bar: episodes and curves of all teams, and as many for each baseline."""
        teams = sum(len(source.teams) + len(source.built) for source in self.sources)
        return self.episodes * (2 * teams + len(self.baselines))

    @property
    def instance(self) -> Problem:
        """The problem of the baselines: that of a team object, or built from the description in the files."""
        assert self.problem is not None  # otherwise there are no baselines
        for source in self.sources:
            for team in source.built:
                return team.problem.unwrapped
        try:
            return build(self.problem._replace(centralized=False)._asdict(), self.own, self.changes)
        except (TypeError, ValueError, ArithmeticError) as error:
            raise UserError(f"the problem {self.problem} of these files cannot be built: {error}") from error


def plan(
    methods: Sequence[str | Team],
    episodes: int = 10_000,
    seed: int = 0,
    names: Sequence[str] = (),
    baselines: Sequence[str | Team] = (),
    baseline_episodes: int = 2_000,
    problem_class: type[Problem] | None = None,
    changes: Mapping[str, Any] | None = None,
) -> Plan:
    """Read sources and check that they are comparable. Baselines: the named ones, or all that fit without training."""
    if not methods:
        raise UserError("give one or more run folders, team files, pretrained teams, or JSON files with results")
    for what, count in (("--episodes", episodes), ("--baseline-episodes", baseline_episodes)):
        if count < 1:
            raise UserError(f"{what} must be at least 1; given {count}")
    check_seed(seed)
    if names and len(names) != len(methods):
        raise UserError(f"--names needs a name for each of the {len(methods)} methods; given {len(names)}")
    chosen = check_baselines(baselines)
    classes = [type(method.problem.unwrapped) for method in methods if isinstance(method, Team)]
    problem_class = problem_class or next((kind for kind in classes if kind not in problem_classes().values()), None)
    sources = [read_source(method, problem_class, changes) for method in methods]
    sources = [dataclasses.replace(s, name=n) for s, n in zip(sources, names or [s.name for s in sources], strict=True)]
    twice = [name for name, count in Counter(source.name for source in sources).items() if count > 1]
    if twice:
        raise UserError(f"{twice[0]!r} would name several methods: tell them apart with --names, one for each")
    problem, delta = check_comparable(sources)
    sources = [source.for_target(delta) for source in sources]
    playable = problem is not None and (problem.kind in problem_classes() or problem_class is not None)
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
        problem_class,
        changes or {},
    )


def compare(planned: Plan, *, folder: Path | None = None, tick: Tick | None = None) -> Comparison:
    """Play teams and baselines. `folder` caches the curves of baselines."""
    use_compilation_cache()
    if planned.baselines and planned.problem:  # fail now, not after the teams were played
        check_episodes(planned.instance, planned.baseline_episodes)
    methods = [judge(s, planned.episodes, planned.seed, problem_class=planned.own, tick=tick) for s in planned.sources]
    rules = {}
    if planned.baselines and planned.problem:
        rules = baseline_curves(
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
        {name: curve.points for name, curve in rules.items()},
        planned.baseline_episodes,
        rules,
    )
