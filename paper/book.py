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
from paper.collected import NOT_RUN, Results
from paper.experiments import ABLATION, BASELINES, MAIN, STOPPED, Setting
from paper.summary import how_many, in_words, summary
from paper.worlds import worlds

DELTA = 0.1


def chapters(results: Results) -> list[Chapter]:
    """All of them, without those that have nothing to tell."""
    candidates = [
        summary(results),
        training(results),
        performance(results),
        ablation(results),
        calibration(results),
        survival(results),
        robustness(results),
        coordination(results),
        worlds(results),
    ]
    return [chapter for chapter in candidates if chapter.items]


# -- from training to the stop


def training(results: Results) -> Chapter:
    """τ and confidence while learning."""
    items: list[Item] = []
    for setting in results.settings:
        runs = {named(results, setting, m): rows for m in setting.methods if (rows := results.metrics(setting, m))}
        if runs:
            title = f"Training dynamics: {results.title(setting)}"
            figure = figures.dynamics(runs, DELTA, title, results.mark)
            items.append(Plot(f"{setting.name}-training", title, figure, "Only methods whose metrics are at hand."))
    return Chapter("Training", items)


def performance(results: Results) -> Chapter:
    """Accuracy and τ of all methods."""
    items: list[Item] = []
    for setting in results.settings:
        title = f"Accuracy and stopping time: {results.title(setting)}"
        note = f"{how_many(results)} forced: episodes that the horizon ended."
        items.append(c.performance_table(f"{setting.name}-methods", title, _methods(results, setting), note))
        items.append(budgets(results, setting))
        items.append(_rules(results, setting))
        kinds = {"": "", **{v: v for v in setting.variants}}
        shown = {
            named(results, setting, m): {
                kind or "training prior": teams for kind in kinds if (teams := results.teams(setting, m, kind))
            }
            for m in setting.methods
            if results.teams(setting, m)
        }
        if shown:
            items.append(
                c.performance_plot(f"{setting.name}-methods", title, shown, _lines(results, setting), results.mark)
            )
    return Chapter("All methods", items)


def _methods(results: Results, setting: Setting) -> dict[str, list[Analysis] | str]:
    """All of a setting's methods by their labels."""
    return {named(results, setting, m): results.teams(setting, m) or NOT_RUN for m in setting.methods}


def _rules(results: Results, setting: Setting) -> Table:
    """Baselines: what is reached without learning."""
    rows = []
    for name in dict.fromkeys(
        (*results.plan.scale(setting).baselines, setting.schedule, setting.rule, setting.central)
    ):
        limit = results.limit(setting, name)
        error = "" if limit is None or not limit.tau_error else f" ± {limit.tau_error:.2f}"
        cells = [DASH, NOT_RUN, DASH]
        if limit is not None:
            cells = [f"{limit.accuracy:.3f}", f"{limit.tau:.2f}{error}", f"{limit.episodes:,}"]
        role = {
            setting.schedule: "schedule",
            setting.rule: "decentralized limit",
            setting.central: "central limit",
        }.get(name, "")
        rows.append([name, *cells, role])
    headings = ["rule", "accuracy", "τ", "worlds", "stands for"]
    note = (
        "Rules that do not learn, with the parameter that reaches 0.9, or what they reach at most; ± is the standard "
        "error. How each decides is in docs/reference/baselines.md."
    )
    return Table(f"{setting.name}-rules", f"Without learning: {results.title(setting)}", headings, rows, note)


def _lines(results: Results, setting: Setting) -> dict[str, Line]:
    printed = paper.FINAL.get(setting.name, {}).get(MAIN, paper.Printed())
    taus = {} if results.plan.quick else {"paper": printed.tau}
    rules = {
        "best fixed schedule": setting.schedule,
        "decentralized rule": setting.rule,
        "central rule": setting.central,
    }
    for label, name in rules.items():
        limit = results.limit(setting, name)
        taus[label] = limit.tau if limit else None
    return {label: Line(None, tau) for label, tau in taus.items() if tau is not None}


def ablation(results: Results) -> Chapter:
    """What reward, stop and cost are for."""
    setting = next((candidate for candidate in results.settings if candidate.method(ABLATION[0])), None)
    if setting is None:
        return Chapter("Ablations", [])
    rows = []
    for role in (MAIN, STOPPED.role, "td3", *ABLATION):
        method = setting.method(role)
        teams = results.teams(setting, method) if method else []
        name = named(results, setting, method) if method else BASELINES[role].label
        printed = {**paper.ABLATION, "td3": paper.ABLATION[MAIN], MAIN: paper.Printed()}  # the paper's is TD3
        theirs = paper.Printed() if results.plan.quick else printed.get(role, paper.Printed())
        ours = [in_words(teams, "accuracy", ".3f"), in_words(teams, "tau", ".2f")]
        rows.append([name, theirs.accuracy or DASH, number(theirs.tau, ".1f"), *ours])
    headings = ["variant", "paper: accuracy", "paper: τ", "accuracy", "τ"]
    note = "A stop at a fixed threshold reads everyone's posterior; the paper's 0.70 at 37.3 is not one to reproduce."
    return Chapter("Ablations", [Table("ablation", f"Ablations: {results.title(setting)}", headings, rows, note)])


def calibration(results: Results) -> Chapter:
    """How far confidence can be trusted."""
    items: list[Item] = []
    teams: dict[str, Analysis] = {}
    for setting in results.settings:
        for variant in ("", *setting.variants):
            suffix = f", {variant}" if variant else ""
            teams |= {
                f"{setting.short}{suffix}, {s}": analysis
                for s, analysis in results.seeds(setting, setting.main, variant)
            }
    if not teams:
        return Chapter("Calibration", [])
    items += c.trust_tables("trust", teams)
    for setting in results.settings:
        representative = results.own(setting)
        if representative:
            seed, analysis = representative
            title = f"Calibration: {results.title(setting)}, seed {seed}"
            theirs = paper.CALIBRATION if setting.name == "a3p5" and not results.plan.quick else ()
            items.append(c.reliability_plot(f"{setting.name}-reliability", title, "team", analysis, results.mark))
            items.append(
                c.calibration_table(
                    f"{setting.name}-calibration", title, analysis.calibration, theirs, c.counts([analysis])
                )
            )
    return Chapter("Calibration", items)


def survival(results: Results) -> Chapter:
    """Who has not stopped yet."""
    items: list[Item] = []
    for setting in results.settings:
        methods = {named(results, setting, m): teams for m in setting.methods if (teams := results.teams(setting, m))}
        if methods:
            theirs = () if results.plan.quick else paper.ACTIVE.get(setting.name, ())
            title = f"Survival: {results.title(setting)}"
            items.append(c.survival_plot(f"{setting.name}-survival", title, methods, theirs, results.mark))
    return Chapter("Survival", items)


# -- other worlds, and who does what


def robustness(results: Results) -> Chapter:
    """One of our teams under other priors."""
    items: list[Item] = []
    for setting in results.settings:
        for name, (sweep, points) in results.sweeps(setting).items():
            title = f"Robustness ({name}): {results.title(setting)}"
            printed = "" if results.plan.quick else paper.ROBUSTNESS.get((setting.name, name), "")
            plot = sweep_plot(f"{setting.name}-{name}", title, sweep, {"ours": points}, DELTA, results.mark)
            note = f"The paper says: {printed}." if printed else "The paper prints no numbers for it."
            note += f" Every point: tables/{setting.name}-{name}.csv."
            items.append(Plot(plot.name, plot.title, plot.figure, note))
            items.append(sweep_table(f"{setting.name}-{name}", title, points))
    words = ["One team, trained on the uniform prior, in worlds of other priors; it is not told."]
    return Chapter("Robustness", items, words if items else ())


def coordination(results: Results) -> Chapter:
    """Joint actions, habits, stops."""
    items: list[Item] = []
    for setting in results.settings:
        representative = results.own(setting)
        if not representative:
            continue
        seed, analysis = representative
        joint = paper.JOINT if setting.name == "a3p5" and not results.plan.quick else ()
        items += c.coordination_items(
            setting.name, f"{results.title(setting)}, seed {seed}", analysis, results.mark, joint=joint
        )
        title = f"{results.title(setting)}, seed {seed}: what each agent does"
        printed = paper.HABITS if setting.name == "signal" and not results.plan.quick else ()
        items.append(c.habits_table(f"{setting.name}-habits", title, analysis, printed))
        shares = {"ours": c.stop_shares(analysis)}
        if setting.name in paper.STOPPERS and not results.plan.quick:
            shares["paper"] = paper.STOPPERS[setting.name]
        title = f"How many stop together: {results.title(setting)}"
        items.append(c.stoppers_plot(f"{setting.name}-stoppers", title, shares, c.counts([analysis]), results.mark))
    return Chapter("Coordination", items)
