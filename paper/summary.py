"""The summary of the results page: paper | ours | limit, the gaps, the certificates."""

from __future__ import annotations

from icmape.evaluation.analysis import Analysis
from icmape.play.team_files import about
from icmape.plot import chapters as c
from icmape.plot.items import DASH, Chapter, Item, Table, number
from paper import printed as paper
from paper.experiments import MAIN, Setting
from paper.found import NOT_RUN, Found
from paper.limits import Limit
from paper.work_plan import team_files


def summary(found: Found) -> Chapter:
    """Paper | ours | limit, the gaps, the certificates."""
    items: list[Item] = [overview(found), gaps(found), certificates(found)]
    words = [
        "τ counts rounds, the stop included. Limits are the best rules known that are made from the exact posterior "
        "(for nitrate from a mixture of years) and do not learn: a decentralized one, and a central one that sees "
        "everything. They are no lower bounds. “not run” means what it says."
    ]
    return Chapter("Summary", items, words)


def overview(found: Found) -> Table:
    """One row for every number that the paper prints or could have printed."""
    rows = [row for of in found.settings for row in _rows(found, of)]
    headings = ["setting", "what", "paper", "ours", "limit: decentralized", "limit: central"]
    return Table("summary", "Paper, ours and what is known without learning", headings, rows, how_many(found))


def _rows(found: Found, of: Setting) -> list[list[str]]:
    theirs = paper.Printed() if found.plan.quick else paper.FINAL.get(of.name, {}).get(MAIN, paper.Printed())
    ours = found.teams(of, of.main)
    limits = [found.limit(of, name) for name in (of.rule, of.central)]
    rows = [
        [
            "accuracy",
            theirs.accuracy or DASH,
            in_words(ours, "accuracy", ".3f"),
            *(_limit(one, "accuracy", ".3f") for one in limits),
        ],
        ["τ", number(theirs.tau, ".2f"), in_words(ours, "tau", ".2f"), *(_limit(one, "tau", ".2f") for one in limits)],
    ]
    printed = f"{paper.ECE}" if of.name == "a3p5" and not found.plan.quick else DASH
    rows.append(["ECE", printed, in_words(ours, "ece", ".4f"), DASH, _floor(ours)])
    for variant in () if found.plan.quick else of.variants:
        other = found.teams(of, of.main, variant)
        rows.append([f"accuracy in {variant}", DASH, in_words(other, "accuracy", ".3f"), DASH, DASH])
        rows.append([f"τ in {variant}", DASH, in_words(other, "tau", ".2f"), DASH, DASH])
    cost = DASH if found.plan.quick else paper.COST.get(of.name, DASH)
    rows.append(["trained in", cost, _cost(found, of), DASH, DASH])
    return [[of.short if index == 0 else "", *row] for index, row in enumerate(rows)]


def _floor(teams: list[Analysis]) -> str:
    """The exact posterior's ECE, where it was asked for as many worlds: samples are finite, so it is not 0."""
    exact = teams[0].exact_calibration if teams and teams[0].evaluation.exact == "exact" else None
    alike = exact is not None and exact.count == teams[0].calibration.count
    return f"{exact.ece:.4f} (exact posterior)" if exact is not None and alike else DASH


def _limit(one: Limit | None, column: str, form: str) -> str:
    if one is None:
        return NOT_RUN
    error = f" ± {one.tau_error:{form}}" if column == "tau" and one.tau_error else ""
    return f"{getattr(one, column):{form}}{error}"


def in_words(teams: list[Analysis], column: str, form: str) -> str:
    """Mean and spread of our teams."""
    return number(c.mean(teams, column), form, c.spread(teams, column)) if teams else NOT_RUN


def _cost(found: Found, of: Setting) -> str:
    """Wall time and on what."""
    rows, files = found.metrics(of, of.main), team_files(of, of.main, found.plan)
    if not rows:
        return DASH
    device = about(next(iter(files.values()))).card.get("device") if files else None
    minutes = max(row["seconds"] for row in rows) / 60
    return f"{minutes:.1f} min" + (f" ({device.removeprefix('NVIDIA ')})" if device else "")


def how_many(found: Found) -> str:
    """What was counted."""
    sizes = sorted({found.plan.scale(of).episodes for of in found.settings})
    worlds = " or ".join(f"{n:,}" for n in sizes)
    return f"Ours: mean ± standard deviation over seeds, {worlds} fresh worlds a team; trained in: all seeds together."


def gaps(found: Found) -> Table:
    """What adapting gains, what not talking costs, and what no data gives."""
    rows = []
    for of in found.settings:
        ours = found.teams(of, of.main)
        tau = c.mean(ours, "tau") if ours else None
        plan, rule, central = (found.limit(of, name) for name in (of.schedule, of.rule, of.central))
        rows.append(
            [
                of.short,
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


def certificates(found: Found) -> Table:
    """Of all our teams."""
    rows = []
    for of in found.settings:
        known = found.certificates(of)
        for seed in found.plan.scale(of).seeds:
            one = known.get(seed)
            if one is None:
                rows.append([of.short, str(seed), *[DASH] * 4, NOT_RUN])
                continue
            shown = [f"{one.bound:.4f}", f"{one.right:,} of {one.worlds:,}", number(one.needed, ",")]
            tau = f"{one.tau:.2f} ({one.tau_low:.2f}–{one.tau_high:.2f})"
            rows.append([of.short, str(seed), *shown, tau, "granted" if one.granted else "REFUSED"])
    headings = ["setting", "seed", "accuracy at least", "right", "needed", "τ (95 %)", "certificate"]
    note = (
        "One-sided Clopper–Pearson bounds at 95 %, on worlds that nothing else was played in. Each is an average over "
        "the declared prior (for nitrate given the measurements of the years used), not a promise for every world."
    )
    return Table("certificates", "Certificates of our teams for accuracy 0.9", headings, rows, note)
