"""The chapters of the results page: paper, ours and limit beside each other, for every table and figure."""

from __future__ import annotations

from icmape.evaluation.analysis import Analysis
from icmape.plot import chapters as c
from icmape.plot import figures
from icmape.plot.figures.performance import Line
from icmape.plot.items import DASH, Chapter, Item, Plot, Table, number
from icmape.plot.priors import sweep_plot, sweep_table
from paper import printed as paper
from paper.budgets import budgets, named
from paper.experiments import ABLATION, MAIN, RIVALS, STOPPED, Setting
from paper.found import NOT_RUN, Found
from paper.summary import how_many, in_words, summary
from paper.worlds import worlds

DELTA = 0.1


def chapters(found: Found) -> list[Chapter]:
    """All of them, without those that have nothing to tell."""
    made = [
        summary(found),
        training(found),
        performance(found),
        ablation(found),
        calibration(found),
        survival(found),
        robustness(found),
        coordination(found),
        worlds(found),
    ]
    return [chapter for chapter in made if chapter.items]


# -- from training to the stop


def training(found: Found) -> Chapter:
    """τ and confidence while learning."""
    items: list[Item] = []
    for of in found.settings:
        runs = {named(found, of, m): rows for m in of.methods if (rows := found.metrics(of, m))}
        if runs:
            title = f"Training dynamics: {found.title(of)}"
            figure = figures.dynamics(runs, DELTA, title, found.mark)
            items.append(Plot(f"{of.name}-training", title, figure, "Only methods whose metrics are at hand."))
    return Chapter("Training", items)


def performance(found: Found) -> Chapter:
    """Accuracy and τ of all methods."""
    items: list[Item] = []
    for of in found.settings:
        title = f"Accuracy and stopping time: {found.title(of)}"
        note = f"{how_many(found)} forced: episodes that the horizon ended."
        items.append(c.performance_table(f"{of.name}-methods", title, _methods(found, of), note))
        items.append(budgets(found, of))
        items.append(_rules(found, of))
        kinds = {"": "", **{v: v for v in of.variants}}
        shown = {
            named(found, of, m): {
                kind or "training prior": teams for kind in kinds if (teams := found.teams(of, m, kind))
            }
            for m in of.methods
            if found.teams(of, m)
        }
        if shown:
            items.append(c.performance_plot(f"{of.name}-methods", title, shown, _lines(found, of), found.mark))
    return Chapter("All methods", items)


def _methods(found: Found, of: Setting) -> dict[str, list[Analysis] | str]:
    """All of a setting's methods by their labels."""
    return {named(found, of, m): found.teams(of, m) or NOT_RUN for m in of.methods}


def _rules(found: Found, of: Setting) -> Table:
    """Baselines: what is reached without learning."""
    rows = []
    for name in dict.fromkeys((*found.plan.scale(of).baselines, of.schedule, of.rule, of.central)):
        one = found.limit(of, name)
        error = "" if one is None or not one.tau_error else f" ± {one.tau_error:.2f}"
        known = [DASH, NOT_RUN, DASH]
        if one is not None:
            known = [f"{one.accuracy:.3f}", f"{one.tau:.2f}{error}", f"{one.episodes:,}"]
        role = {of.schedule: "schedule", of.rule: "decentralized limit", of.central: "central limit"}.get(name, "")
        rows.append([name, *known, role])
    headings = ["rule", "accuracy", "τ", "worlds", "stands for"]
    note = (
        "Rules that do not learn, with the parameter that reaches 0.9, or what they reach at most; ± is the standard "
        "error. How each decides is in docs/reference/baselines.md."
    )
    return Table(f"{of.name}-rules", f"Without learning: {found.title(of)}", headings, rows, note)


def _lines(found: Found, of: Setting) -> dict[str, Line]:
    printed = paper.FINAL.get(of.name, {}).get(MAIN, paper.Printed())
    known = {} if found.plan.quick else {"paper": printed.tau}
    rules = {"best fixed schedule": of.schedule, "decentralized rule": of.rule, "central rule": of.central}
    for label, name in rules.items():
        limit = found.limit(of, name)
        known[label] = limit.tau if limit else None
    return {label: Line(None, tau) for label, tau in known.items() if tau is not None}


def ablation(found: Found) -> Chapter:
    """What reward, stop and cost are for."""
    of = next((one for one in found.settings if one.method(ABLATION[0])), None)
    if of is None:
        return Chapter("Ablations", [])
    rows = []
    for role in (MAIN, STOPPED.role, "td3", *ABLATION):
        method = of.method(role)
        teams = found.teams(of, method) if method else []
        name = named(found, of, method) if method else RIVALS[role].label
        printed = {**paper.ABLATION, "td3": paper.ABLATION[MAIN], MAIN: paper.Printed()}  # the paper's is TD3
        theirs = paper.Printed() if found.plan.quick else printed.get(role, paper.Printed())
        ours = [in_words(teams, "accuracy", ".3f"), in_words(teams, "tau", ".2f")]
        rows.append([name, theirs.accuracy or DASH, number(theirs.tau, ".1f"), *ours])
    headings = ["variant", "paper: accuracy", "paper: τ", "accuracy", "τ"]
    note = "A stop at a fixed threshold reads everyone's posterior; the paper's 0.70 at 37.3 is not one to reproduce."
    return Chapter("Ablations", [Table("ablation", f"Ablations: {found.title(of)}", headings, rows, note)])


def calibration(found: Found) -> Chapter:
    """How far confidence can be trusted."""
    items: list[Item] = []
    teams: dict[str, Analysis] = {}
    for of in found.settings:
        for variant in ("", *of.variants):
            where = f", {variant}" if variant else ""
            teams |= {f"{of.short}{where}, {s}": one for s, one in found.seeds(of, of.main, variant)}
    if not teams:
        return Chapter("Calibration", [])
    items += c.trust_tables("trust", teams)
    for of in found.settings:
        own = found.own(of)
        if own:
            seed, one = own
            title = f"Calibration: {found.title(of)}, seed {seed}"
            theirs = paper.CALIBRATION if of.name == "a3p5" and not found.plan.quick else ()
            items.append(c.reliability_plot(f"{of.name}-reliability", title, "team", one, found.mark))
            items.append(c.calibration_table(f"{of.name}-calibration", title, one.calibration, theirs, c.counts([one])))
    return Chapter("Calibration", items)


def survival(found: Found) -> Chapter:
    """Who has not stopped yet."""
    items: list[Item] = []
    for of in found.settings:
        methods = {named(found, of, m): teams for m in of.methods if (teams := found.teams(of, m))}
        if methods:
            theirs = () if found.plan.quick else paper.ACTIVE.get(of.name, ())
            title = f"Survival: {found.title(of)}"
            items.append(c.survival_plot(f"{of.name}-survival", title, methods, theirs, found.mark))
    return Chapter("Survival", items)


# -- other worlds, and who does what


def robustness(found: Found) -> Chapter:
    """One of our teams under other priors."""
    items: list[Item] = []
    for of in found.settings:
        for name, (sweep, points) in found.sweeps(of).items():
            title = f"Robustness ({name}): {found.title(of)}"
            printed = "" if found.plan.quick else paper.ROBUSTNESS.get((of.name, name), "")
            plot = sweep_plot(f"{of.name}-{name}", title, sweep, {"ours": points}, DELTA, found.mark)
            said = f"The paper says: {printed}." if printed else "The paper prints no numbers for it."
            said += f" Every point: tables/{of.name}-{name}.csv."
            items.append(Plot(plot.name, plot.title, plot.figure, said))
            items.append(sweep_table(f"{of.name}-{name}", title, points))
    words = ["One team, trained on the uniform prior, in worlds of other priors; it is not told."]
    return Chapter("Robustness", items, words if items else ())


def coordination(found: Found) -> Chapter:
    """Joint actions, habits, stops."""
    items: list[Item] = []
    for of in found.settings:
        own = found.own(of)
        if not own:
            continue
        seed, one = own
        joint = paper.JOINT if of.name == "a3p5" and not found.plan.quick else ()
        items += c.coordination_items(of.name, f"{found.title(of)}, seed {seed}", one, found.mark, joint=joint)
        title = f"{found.title(of)}, seed {seed}: what each agent does"
        printed = paper.HABITS if of.name == "signal" and not found.plan.quick else ()
        items.append(c.habits_table(f"{of.name}-habits", title, one, printed))
        shares = {"ours": c.stop_shares(one)}
        if of.name in paper.STOPPERS and not found.plan.quick:
            shares["paper"] = paper.STOPPERS[of.name]
        title = f"How many stop together: {found.title(of)}"
        items.append(c.stoppers_plot(f"{of.name}-stoppers", title, shares, c.counts([one]), found.mark))
    return Chapter("Coordination", items)
