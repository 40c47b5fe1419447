"""Tables and plots of analyses. `Teams` are all seeds of one method."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from icmape.evaluation.analysis import Analysis
from icmape.evaluation.calibration import Bin, Calibration
from icmape.evaluation.certificate import Certificate
from icmape.plot import team_charts as charts
from icmape.plot.honesty import fit_of_bins, honesty_chart
from icmape.plot.items import DASH, Item, Plot, Table, number
from icmape.plot.team_charts import Bar, Line

Teams = Sequence[Analysis]
MOST_SETS = 12  # rows of the table of agents that stop together


def mean(teams: Teams, column: str) -> float:
    """Mean over seeds of a column of the evaluations."""
    return statistics.fmean(getattr(analysis.evaluation, column) for analysis in teams)


def spread(teams: Teams, column: str) -> float | None:
    """Standard deviation over seeds; none for a single seed."""
    return statistics.stdev(getattr(analysis.evaluation, column) for analysis in teams) if len(teams) > 1 else None


def counts(teams: Teams) -> str:
    """Numbers of worlds and teams, as text."""
    first = teams[0].evaluation
    return f"{first.episodes:,} fresh worlds {each(len(teams))}(seed {first.seed}), {team_count(len(teams))}"


def team_count(teams: int) -> str:
    """A number of teams."""
    return f"{teams} team{'s' * (teams > 1)}"


def each(teams: int) -> str:
    """What a number of worlds is for, if there are several teams."""
    return "each " if teams > 1 else ""


def performance_table(name: str, title: str, methods: Mapping[str, Teams | str], note: str = "") -> Table:
    """A row for every method; a text in place of teams is the reason why there are none."""
    rows = []
    for label, teams in methods.items():
        if isinstance(teams, str):
            rows.append([label, *[DASH] * 6, teams])
            continue
        columns = (("accuracy", ".3f"), ("tau", ".2f"), ("rounds", ".2f"))
        shown = [number(mean(teams, column), form, spread(teams, column)) for column, form in columns]
        shares = [f"{mean(teams, 'forced'):.1%}", f"{mean(teams, 'ece'):.4f}"]
        rows.append([label, str(len(teams)), *shown, *shares, _verdict(teams)])
    headings = ["method", "seeds", "accuracy", "τ", "rounds of data", "forced", "ECE", "remark"]
    return Table(name, title, headings, rows, note, raw=_raw(methods))


def _raw(methods: Mapping[str, Teams | str]) -> tuple[list[str], list[list[Any]]]:
    """Numbers of every team, one row each."""
    columns = ("episodes", "seed", "accuracy", "accuracy_low", "accuracy_high", "tau", "tau_error", "forced", "ece")
    rows: list[list[Any]] = []
    for label, teams in methods.items():
        for place, analysis in enumerate(() if isinstance(teams, str) else teams, 1):
            rows.append([label, place, *(getattr(analysis.evaluation, column) for column in columns)])
    return ["method", "team", *columns], rows


def _verdict(teams: Teams) -> str:
    first = teams[0].evaluation
    low = min(analysis.evaluation.accuracy_high for analysis in teams)
    if not all(analysis.evaluation.beats_no_data for analysis in teams):
        return "does not beat the answer without data"
    return f"misses {1 - first.delta:g}" if low < 1 - first.delta else ""


def performance_plot(
    name: str, title: str, methods: Mapping[str, Mapping[str, Teams]], lines: Mapping[str, Line], mark: str = ""
) -> Plot:
    """Accuracy and τ, by method and kind of worlds."""
    bars = {
        label: {
            kind: Bar([t.evaluation.accuracy for t in teams], [t.evaluation.tau for t in teams])
            for kind, teams in kinds.items()
        }
        for label, kinds in methods.items()
    }
    first = next(iter(next(iter(methods.values())).values()))
    below = f"mean over seeds ± one standard deviation, small dots: seeds; {counts(first)}"
    return Plot(name, title, charts.performance(bars, lines, first[0].evaluation.delta, title, below, mark))


def calibration_table(
    name: str, title: str, calibration: Calibration, paper: Sequence[Bin] = (), note: str = ""
) -> Table:
    """Ten bins, with the paper's if it prints them."""
    rows = []
    for index, bin_ in enumerate(calibration.bins):
        cells = [f"[{bin_.low:.1f}, {bin_.high:.1f})", number(bin_.confidence, ".3f"), number(bin_.accuracy, ".3f")]
        cells += [f"{abs(bin_.gap):.3f}", f"{bin_.size:,}"]
        if paper:
            theirs = paper[index]
            cells += [number(theirs.confidence, ".2f"), number(theirs.accuracy, ".2f"), f"{theirs.size:,}"]
        rows.append(cells)
    headings = ["confidence", "mean confidence", "share right", "|difference|", "answers"]
    headings += ["paper: confidence", "paper: right", "paper: answers"] if paper else []
    return Table(name, title, headings, rows, note)


def trust_tables(name: str, teams: Mapping[str, Analysis]) -> list[Item]:
    """Calibration, scores and distance to the exact posterior: a row for every team."""
    return [_calibration_rows(f"{name}-calibration", teams), _score_rows(f"{name}-scores", teams)]


def _calibration_rows(name: str, teams: Mapping[str, Analysis]) -> Table:
    rows = []
    for label, analysis in teams.items():
        pooled, stop = analysis.calibration, analysis.at_stop
        bayes, matched = analysis.exact_calibration, analysis.own_calibration
        cells = [f"{pooled.ece:.4f}", f"{pooled.largest_gap:.3f}", _p(pooled.p_value)]
        cells += [f"{bayes.ece:.4f}", f"{matched.ece:.4f}", f"{bayes.count:,}"] if bayes and matched else [DASH] * 3
        cells += [f"{stop.ece:.4f}", f"{analysis.evaluation.confidence:.3f}", f"{analysis.evaluation.accuracy:.3f}"]
        rows.append([label, *cells, _p(stop.p_value)])
    headings = ["team", "ECE", "largest gap", "p", _posterior(teams, "{}'s ECE"), "the team's on the same", "answers"]
    headings += ["ECE at the stop", "confidence there", "share right", "p there"]
    note = (
        "ECE over all rounds, ten bins. The exact posterior's ECE is not 0, because the sample is finite. p: "
        "probability of gaps at least this large under perfect calibration."
    )
    return Table(name, "Calibration over all rounds and at the stop", headings, rows, note)


def _score_rows(name: str, teams: Mapping[str, Analysis]) -> Table:
    rows = []
    for label, analysis in teams.items():
        pooled, stop, distance = analysis.calibration, analysis.at_stop, analysis.distance
        sets = next((c for c in analysis.credible if c.level == 0.95), None)
        cells = [f"{pooled.brier:.4f}", f"{stop.brier:.4f}"]
        cells += [number(pooled.log_loss, ".4f"), number(stop.log_loss, ".4f")]
        cells += [f"{distance.nats:.4f}", f"{distance.nats_at_stop:.4f}"] if distance else [DASH, DASH]
        rows.append([label, *cells, *([f"{sets.covered:.3f}", f"{sets.size:.1f}"] if sets else [DASH, DASH])])
    headings = ["team", "Brier", "Brier at the stop", "log loss (nats)", "log loss at the stop"]
    headings += [
        _posterior(teams, "from {} (nats)"),
        "the same at the stop",
        "95 % set holds the truth",
        "answers in it",
    ]
    note = (
        "Brier: mean squared difference between confidence and being right. Distance: mean Kullback–Leibler "
        "divergence. Credible sets at the stop; for top-k questions they are computed as if cells were independent."
    )
    return Table(name, "Scores, distance to Bayes' posterior, credible sets", headings, rows, note)


def _posterior(teams: Mapping[str, Analysis], form: str) -> str:
    """Name of the posterior by Bayes' rule; it is misspecified under another prior."""
    kinds = {analysis.evaluation.exact for analysis in teams.values()} - {"none"}
    return form.format("the exact posterior" if kinds <= {"exact"} else "a misspecified posterior")


def _p(value: float | None) -> str:
    return DASH if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"


def honesty_plot(name: str, title: str, label: str, analysis: Analysis, mark: str = "") -> Plot:
    """Right answers by confidence at the stop, from the stored bins."""
    below = f"at the stop, fitted to ten bins; {counts([analysis])}"
    return Plot(name, title, honesty_chart(title, label, fit_of_bins(analysis.at_stop), below, mark))


def survival_plot(
    name: str, title: str, methods: Mapping[str, Teams], paper: Sequence[int] = (), mark: str = ""
) -> Plot:
    """Share of episodes that are still active."""
    first = next(iter(methods.values()))
    active = {label: [analysis.active for analysis in teams] for label, teams in methods.items()}
    several = any(len(teams) > 1 for teams in methods.values())
    below = f"{'thin lines: single teams; ' if several else ''}{counts(first)}"
    return Plot(name, title, charts.survival(active, title, below, paper, mark))


def training_plot(
    name: str, title: str, runs: Mapping[str, Sequence[Mapping[str, Any]]], delta: float, mark: str = ""
) -> Plot:
    """τ and confidence during training, from the metrics of runs."""
    return Plot(name, title, charts.dynamics(runs, delta, title, mark))


def joint_table(
    name: str, title: str, analysis: Analysis, paper: Sequence[tuple[tuple[int, ...], int, int]] = ()
) -> Table:
    """Most common joint action of every round."""
    rows = []
    for row in analysis.coordination.joint:
        cells = [str(row.round + 1), _actions(row.actions, analysis.names), f"{row.episodes:,}", f"{row.active:,}"]
        cells.append(f"{row.episodes / row.active:.1%}")
        if paper:
            theirs = paper[row.round] if row.round < len(paper) else None
            cells += (
                [DASH, DASH]
                if theirs is None
                else [_actions(theirs[0], analysis.names), f"{theirs[1] / theirs[2]:.1%}"]
            )
        rows.append(cells)
    headings = ["round", "joint action", "episodes", "active", "share"]
    headings += ["paper: joint action", "paper: share"] if paper else []
    note = f"Episodes with this joint action, agent by agent, among active ones; {counts([analysis])}."
    return Table(name, title, headings, rows, note)


def _actions(actions: Sequence[int], names: Mapping[int, str]) -> str:
    return ", ".join(names.get(action, f"action {action + 1}") for action in actions)


def habits_table(name: str, title: str, analysis: Analysis, paper: Sequence[Sequence[tuple[str, float]]] = ()) -> Table:
    """Most common action of every agent and round, with the paper's if it prints them."""
    agents = max(habit.agent for habit in analysis.coordination.habits) + 1
    rows = []
    for start in range(0, len(analysis.coordination.habits), agents):
        habits = analysis.coordination.habits[start : start + agents]
        cells = [f"{analysis.names[h.actions[0][0]]} ({h.actions[0][1] / h.active:.1%})" for h in habits]
        cells.append(f"{habits[0].active:,}")
        if paper:
            theirs = paper[habits[0].round] if habits[0].round < len(paper) else ()
            cells += [f"{action} ({share:.1%})" for action, share in theirs] or [DASH] * agents
        rows.append([str(habits[0].round + 1), *cells])
    headings = ["round", *(f"agent {agent + 1}" for agent in range(agents)), "active"]
    headings += [f"paper: agent {agent + 1}" for agent in range(agents)] if paper else []
    note = f"The most common action and its share of active episodes; {counts([analysis])}."
    return Table(name, title, headings, rows, note)


def habits_plot(name: str, title: str, analysis: Analysis, mark: str = "") -> Plot:
    """The most common action, by agent and round."""
    below = (
        "the most common choice and its share of the episodes that have not ended; STOP takes no reading; "
        f"{counts([analysis])}"
    )
    return Plot(name, title, charts.habits(analysis.coordination, analysis.names, title, below, mark))


def stops_table(name: str, title: str, analysis: Analysis) -> Table:
    """Sets of agents that stopped together."""
    coordination = analysis.coordination
    rows = []
    for row in sorted(coordination.stops, key=lambda r: -r.episodes)[:MOST_SETS]:
        agents = "{" + ", ".join(str(agent + 1) for agent in row.agents) + "}"
        shares = [row.episodes / max(coordination.voluntary, 1), row.episodes / coordination.episodes]
        rows.append([agents, f"{row.episodes:,}", *(f"{share:.1%}" for share in shares)])
    omitted = len(coordination.stops) - len(rows)
    rarer = f"; {omitted} rarer sets left out" if omitted > 0 else ""
    note = f"{coordination.voluntary:,} of {coordination.episodes:,} episodes ended voluntarily{rarer}."
    return Table(name, title, ["agents", "episodes", "of voluntary stops", "of all episodes"], rows, note)


def stop_shares(analysis: Analysis) -> dict[int, float]:
    """Number of agents that stopped together, as shares of voluntary stops."""
    shares: dict[int, float] = {}
    for row in analysis.coordination.stops:
        share = row.episodes / max(analysis.coordination.voluntary, 1)
        shares[len(row.agents)] = shares.get(len(row.agents), 0.0) + share
    return shares


def stoppers_plot(name: str, title: str, shares: Mapping[str, Mapping[int, float]], below: str, mark: str = "") -> Plot:
    """Number of agents that stop together."""
    return Plot(name, title, charts.stoppers(shares, title, below, mark))


def certificate_headings(level: str) -> list[str]:
    """Headings of `certificate_cells`; `level` is the interval of τ."""
    return ["accuracy at least", "right", "needed", f"τ ({level})", "certificate"]


def certificate_cells(certificate: Certificate) -> list[str]:
    """A certificate in a table."""
    tau = f"{certificate.tau:.2f} ({certificate.tau_low:.2f}–{certificate.tau_high:.2f})"
    right = f"{certificate.right:,} of {certificate.worlds:,}"
    verdict = "granted" if certificate.granted else "REFUSED"
    return [f"{certificate.bound:.4f}", right, number(certificate.needed, ","), tau, verdict]


def coordination_items(prefix: str, title: str, analysis: Analysis, mark: str = "", **paper: Any) -> list[Item]:
    """Joint actions, actions of each agent, and stops."""
    return [
        joint_table(f"{prefix}-joint-actions", f"{title}: most common joint action", analysis, paper.get("joint", ())),
        habits_plot(f"{prefix}-habits", f"{title}: what each agent does", analysis, mark),
        stops_table(f"{prefix}-stops", f"{title}: who stops", analysis),
    ]
