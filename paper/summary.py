"""The summary of the results page: paper | ours | limit, the gaps, the certificates."""

from __future__ import annotations

from icmape.evaluation.analysis import Analysis
from icmape.play.team_files import about
from icmape.plot import chapters as c
from icmape.plot.items import DASH, Chapter, Item, Table, number
from paper import printed as paper
from paper.collected import NOT_RUN, Results
from paper.experiments import MAIN, Setting
from paper.limits import Limit
from paper.work_plan import team_files


def summary(results: Results) -> Chapter:
    """Paper | ours | limit, the gaps, the certificates."""
    items: list[Item] = [overview(results), gaps(results), certificates(results)]
    words = [
        "τ counts rounds, the stop included. Limits are the best rules known that are made from the exact posterior "
        "(for nitrate from a mixture of years) and do not learn: a decentralized one, and a central one that sees "
        "everything. They are no lower bounds. “not run” means what it says."
    ]
    return Chapter("Summary", items, words)


def overview(results: Results) -> Table:
    """One row for every number that the paper prints or could have printed."""
    rows = [row for setting in results.settings for row in _rows(results, setting)]
    headings = ["setting", "what", "paper", "ours", "limit: decentralized", "limit: central"]
    return Table("summary", "Paper, ours and what is known without learning", headings, rows, how_many(results))


def _rows(results: Results, setting: Setting) -> list[list[str]]:
    theirs = paper.Printed() if results.plan.quick else paper.FINAL.get(setting.name, {}).get(MAIN, paper.Printed())
    ours = results.teams(setting, setting.main)
    limits = [results.limit(setting, name) for name in (setting.rule, setting.central)]
    rows = [
        [
            "accuracy",
            theirs.accuracy or DASH,
            in_words(ours, "accuracy", ".3f"),
            *(_limit(limit, "accuracy", ".3f") for limit in limits),
        ],
        [
            "τ",
            number(theirs.tau, ".2f"),
            in_words(ours, "tau", ".2f"),
            *(_limit(limit, "tau", ".2f") for limit in limits),
        ],
    ]
    printed = f"{paper.ECE}" if setting.name == "a3p5" and not results.plan.quick else DASH
    rows.append(["ECE", printed, in_words(ours, "ece", ".4f"), DASH, _floor(ours)])
    for variant in () if results.plan.quick else setting.variants:
        other = results.teams(setting, setting.main, variant)
        rows.append([f"accuracy in {variant}", DASH, in_words(other, "accuracy", ".3f"), DASH, DASH])
        rows.append([f"τ in {variant}", DASH, in_words(other, "tau", ".2f"), DASH, DASH])
    cost = DASH if results.plan.quick else paper.COST.get(setting.name, DASH)
    rows.append(["trained in", cost, _cost(results, setting), DASH, DASH])
    return [[setting.short if index == 0 else "", *row] for index, row in enumerate(rows)]


def _floor(teams: list[Analysis]) -> str:
    """The exact posterior's ECE, where it was asked for as many worlds: samples are finite, so it is not 0."""
    exact = teams[0].exact_calibration if teams and teams[0].evaluation.exact == "exact" else None
    alike = exact is not None and exact.count == teams[0].calibration.count
    return f"{exact.ece:.4f} (exact posterior)" if exact is not None and alike else DASH


def _limit(limit: Limit | None, column: str, form: str) -> str:
    if limit is None:
        return NOT_RUN
    error = f" ± {limit.tau_error:{form}}" if column == "tau" and limit.tau_error else ""
    return f"{getattr(limit, column):{form}}{error}"


def in_words(teams: list[Analysis], column: str, form: str) -> str:
    """Mean and spread of our teams."""
    return number(c.mean(teams, column), form, c.spread(teams, column)) if teams else NOT_RUN


def _cost(results: Results, setting: Setting) -> str:
    """Wall time and on what."""
    rows, files = results.metrics(setting, setting.main), team_files(setting, setting.main, results.plan)
    if not rows:
        return DASH
    device = about(next(iter(files.values()))).card.get("device") if files else None
    minutes = max(row["seconds"] for row in rows) / 60
    return f"{minutes:.1f} min" + (f" ({device.removeprefix('NVIDIA ')})" if device else "")


def how_many(results: Results) -> str:
    """What was counted."""
    sizes = sorted({results.plan.scale(setting).episodes for setting in results.settings})
    worlds = " or ".join(f"{n:,}" for n in sizes)
    return f"Ours: mean ± standard deviation over seeds, {worlds} fresh worlds a team; trained in: all seeds together."


def gaps(results: Results) -> Table:
    """What adapting gains, what not talking costs, and what no data gives."""
    rows = []
    for setting in results.settings:
        ours = results.teams(setting, setting.main)
        tau = c.mean(ours, "tau") if ours else None
        plan, rule, central = (
            results.limit(setting, name) for name in (setting.schedule, setting.rule, setting.central)
        )
        rows.append(
            [
                setting.short,
                f"{c.mean(ours, 'no_data_accuracy'):.3f}" if ours else DASH,
                f"{tau:.2f} (at {c.mean(ours, 'accuracy'):.3f})" if tau else DASH,
                _difference(plan, tau),
                _difference(rule, tau),
                _difference(central, tau, backwards=True),
            ]
        )
    headings = [
        "setting",
        "accuracy without data",
        "our τ",
        "adaptivity gap: best fixed schedule's τ less ours",
        "best decentralized rule's τ less ours",
        "price of decentralization: our τ less the central rule's",
    ]
    note = (
        "In brackets: the other's τ, its accuracy, and how many worlds that is from. Accuracies are not the same, and "
        "a part of each difference comes from that: ours aim above 0.9 for their certificates, a schedule of whole "
        "rounds overshoots it. For nitrate the schedule is a list of cells with a stop on everyone's data."
    )
    return Table("gaps", "What adapting gains and what not talking costs", headings, rows, note)


def _difference(other: Limit | None, tau: float | None, backwards: bool = False) -> str:
    if other is None or tau is None:
        return NOT_RUN
    gap = tau - other.tau if backwards else other.tau - tau
    return f"{gap:+.2f} ({other.tau:.2f} at {other.accuracy:.3f}, {other.episodes:,})"


def certificates(results: Results) -> Table:
    """Of all our teams."""
    rows = []
    for setting in results.settings:
        certified = results.certificates(setting)
        for seed in results.plan.scale(setting).seeds:
            certificate = certified.get(seed)
            if certificate is None:
                rows.append([setting.short, str(seed), *[DASH] * 4, NOT_RUN])
                continue
            shown = [
                f"{certificate.bound:.4f}",
                f"{certificate.right:,} of {certificate.worlds:,}",
                number(certificate.needed, ","),
            ]
            tau = f"{certificate.tau:.2f} ({certificate.tau_low:.2f}–{certificate.tau_high:.2f})"
            rows.append([setting.short, str(seed), *shown, tau, "granted" if certificate.granted else "REFUSED"])
    headings = ["setting", "seed", "accuracy at least", "right", "needed", "τ (95 %)", "certificate"]
    note = (
        "One-sided Clopper–Pearson bounds at 95 %, on worlds that nothing else was played in. Each is an average over "
        "the declared prior (for nitrate given the measurements of the years used), not a promise for every world."
    )
    return Table("certificates", "Certificates of our teams for accuracy 0.9", headings, rows, note)
