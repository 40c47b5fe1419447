"""The summary of the results page: the paper's numbers, ours, the limits, the gaps and the certificates."""

from __future__ import annotations

from icmape.evaluation.analysis import Analysis
from icmape.evaluation.equal_accuracy import gap
from icmape.evaluation.stop_curves import StopCurve
from icmape.play.team_files import about
from icmape.plot import chapters as c
from icmape.plot.items import DASH, Table, number
from paper import equal
from paper import printed as paper
from paper.collected import NOT_RUN, Results
from paper.experiments import MAIN, Setting
from paper.limits import Limit
from paper.overview import overview_plot
from paper.topics import Problem, Topic
from paper.work_plan import team_files

QUESTION = "How many rounds does it take?"


def summary(results: Results) -> Problem:
    """The chart of all settings; overview, gaps and certificates folded."""
    tables = [overview(results), gaps(results), certificates(results)]
    words = [
        "τ is the mean number of rounds, the stop included. A fixed schedule takes the same actions in every world. "
        "The rules do not learn. They use the exact posterior (nitrate: a mixture of years) of an agent's own data "
        "(decentralized) or of all data (central). They are the best known, not bounds.",
        equal.EXPLAINED,
    ]
    return Problem(QUESTION, [Topic("", words, [overview_plot(results)], tables, columns=False)])


def overview(results: Results) -> Table:
    """A row for every quantity of every setting."""
    rows = [row for setting in results.settings for row in _rows(results, setting)]
    headings = ["setting", "what", "paper", "ours", "decentralized rule", "central rule"]
    return Table("summary", "The paper, ours, and rules without learning", headings, rows, how_many(results))


def _rows(results: Results, setting: Setting) -> list[list[str]]:
    theirs = results.printed(paper.FINAL, setting.name, {}).get(MAIN, paper.Printed())
    ours = results.teams(setting, setting.main)
    limits = [results.limit(setting, name) for name in (setting.rule, setting.central)]

    def measured(printed: str, column: str, form: str) -> list[str]:
        return [printed, in_words(ours, column, form), *(_limit(limit, column, form) for limit in limits)]

    rows = [
        ["accuracy", *measured(theirs.accuracy or DASH, "accuracy", ".3f")],
        ["τ", *measured(number(theirs.tau, ".2f"), "tau", ".2f")],
    ]
    ece = results.printed({"a3p5": f"{paper.ECE}"}, setting.name, DASH)
    rows.append(["ECE", ece, in_words(ours, "ece", ".4f"), DASH, _exact_ece(ours)])
    for variant in () if results.quick else setting.variants:
        other = results.teams(setting, setting.main, variant)
        rows.append([f"accuracy in {variant}", DASH, in_words(other, "accuracy", ".3f"), DASH, DASH])
        rows.append([f"τ in {variant}", DASH, in_words(other, "tau", ".2f"), DASH, DASH])
    cost = results.printed(paper.COST, setting.name, DASH)
    rows.append(["trained in", cost, _cost(results, setting), DASH, DASH])
    return [[setting.short if index == 0 else "", *row] for index, row in enumerate(rows)]


def _exact_ece(teams: list[Analysis]) -> str:
    """ECE of the exact posterior, if it was computed in the same worlds. Samples are finite, so it is not 0."""
    exact = teams[0].exact_calibration if teams and teams[0].evaluation.exact == "exact" else None
    same = exact is not None and exact.count == teams[0].calibration.count
    return f"{exact.ece:.4f} (exact posterior)" if exact is not None and same else DASH


def _limit(limit: Limit | None, column: str, form: str) -> str:
    if limit is None:
        return NOT_RUN
    error = f" ± {limit.tau_error:{form}}" if column == "tau" and limit.tau_error else ""
    return f"{getattr(limit, column):{form}}{error}"


def in_words(teams: list[Analysis], column: str, form: str) -> str:
    """Mean and standard deviation of our teams."""
    return number(c.mean(teams, column), form, c.spread(teams, column)) if teams else NOT_RUN


def _cost(results: Results, setting: Setting) -> str:
    """Wall time and device."""
    rows, files = results.metrics(setting, setting.main), team_files(setting, setting.main, results.plan)
    if not rows:
        return DASH
    device = about(next(iter(files.values()))).card.get("device") if files else None
    minutes = max(row["seconds"] for row in rows) / 60
    return f"{minutes:.1f} min" + (f" ({device.removeprefix('NVIDIA ')})" if device else "")


def how_many(results: Results) -> str:
    """Sample sizes."""
    sizes = sorted({results.plan.scale(setting).episodes for setting in results.settings})
    worlds = " or ".join(f"{n:,}" for n in sizes)
    return f"Ours: mean ± standard deviation over seeds, {worlds} fresh worlds a team; trained in: all seeds together."


def gaps(results: Results) -> Table:
    """Adaptivity gap, price of decentralization, and accuracy without data."""
    rows = []
    for setting in results.settings:
        analyses, ours = results.teams(setting, setting.main), results.curves(setting, setting.main)
        no_data = f"{c.mean(analyses, 'no_data_accuracy'):.3f}" if analyses else DASH
        teams = f" ({len(ours)} teams)" if len(ours) > 1 else ""
        at_target = equal.tau_in_words(ours) + teams if ours else NOT_RUN
        rules = [results.rule_curve(setting, name) for name in (setting.schedule, setting.rule, setting.central)]
        rows.append([setting.short, no_data, at_target, *map(_gap, rules, [ours] * 3, (1, 1, -1))])
    headings = ["setting", "accuracy without data", "our τ at 0.9", "adaptivity gap: best fixed schedule's τ less ours"]
    headings += ["best decentralized rule's τ less ours", "price of decentralization: our τ less the central rule's"]
    note = (
        "All at accuracy 0.9 exactly: every stop is moved until 0.9 of the answers are right. In brackets: 95 % "
        f"intervals, then τ of the other method. {equal.WORDS} For nitrate the schedule is a list of cells with a stop "
        "on all agents' data."
    )
    return Table("gaps", "Adaptivity gap and price of decentralization, at equal accuracy", headings, rows, note)


def _gap(rule: StopCurve | None, ours: list[StopCurve], sign: int) -> str:
    if rule is None or not ours:
        return NOT_RUN
    difference = gap([rule], ours) if sign > 0 else gap(ours, [rule])
    shown = equal.tau_in_words([rule])
    return f"{difference} ({shown})" if difference else f"{DASH} ({shown})"


def certificates(results: Results) -> Table:
    """Certificates of all our teams."""
    rows = []
    for setting in results.settings:
        certified = results.certificates(setting)
        for seed in results.plan.scale(setting).seeds:
            cells = c.certificate_cells(certified[seed]) if seed in certified else [*[DASH] * 4, NOT_RUN]
            rows.append([setting.short, str(seed), *cells])
    headings = ["setting", "seed", *c.certificate_headings("95 %")]
    note = (
        "One-sided Clopper–Pearson bounds at 95 %, on worlds that are used for nothing else. Each is an average over "
        "the declared prior (for nitrate given the measurements of the years used), not a guarantee for every world."
    )
    return Table("certificates", "Certificates of our teams for accuracy 0.9", headings, rows, note)
