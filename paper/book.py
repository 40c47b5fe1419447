"""The chapters of the results page: the paper's numbers, ours and the limits side by side."""

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
from paper.equal import equal_accuracy
from paper.experiments import ABLATION, BASELINES, MAIN, STOPPED, Setting
from paper.summary import how_many, in_words, summary
from paper.worlds import worlds

DELTA = 0.1


def chapters(results: Results) -> list[Chapter]:
    """All chapters that have items."""
    parts = (
        summary,
        training,
        performance,
        equal_accuracy,
        ablation,
        calibration,
        survival,
        robustness,
        coordination,
        worlds,
    )
    return [chapter for part in parts if (chapter := part(results)).items]


# -- training and stopping


def training(results: Results) -> Chapter:
    """τ and confidence during training."""
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
        title, name = f"Accuracy and stopping time: {results.title(setting)}", f"{setting.name}-methods"
        note = f"{how_many(results)} forced: episodes that the horizon ended."
        methods: dict[str, list[Analysis] | str] = {
            named(results, setting, m): results.teams(setting, m) or NOT_RUN for m in setting.methods
        }
        items += [c.performance_table(name, title, methods, note), budgets(results, setting), _rules(results, setting)]
        shown = {
            named(results, setting, m): {
                kind or "training prior": teams
                for kind in ("", *setting.variants)
                if (teams := results.teams(setting, m, kind))
            }
            for m in setting.methods
            if results.teams(setting, m)
        }
        if shown:
            items.append(c.performance_plot(name, title, shown, _lines(results, setting), results.mark))
    return Chapter("All methods", items)


def _rules(results: Results, setting: Setting) -> Table:
    """Baselines that do not learn."""
    rows = []
    roles = {setting.schedule: "schedule", setting.rule: "decentralized limit", setting.central: "central limit"}
    for name in dict.fromkeys((*results.plan.scale(setting).baselines, *roles)):
        limit, cells = results.limit(setting, name), [DASH, NOT_RUN, DASH]
        if limit is not None:
            error = f" ± {limit.tau_error:.2f}" if limit.tau_error else ""
            cells = [f"{limit.accuracy:.3f}", f"{limit.tau:.2f}{error}", f"{limit.episodes:,}"]
        rows.append([name, *cells, roles.get(name, "")])
    headings = ["rule", "accuracy", "τ", "worlds", "used as"]
    note = (
        "Rules that do not learn, with the parameter that reaches 0.9, or their best accuracy; ± is the standard "
        "error. The rules are described in docs/reference/baselines.md."
    )
    return Table(f"{setting.name}-rules", f"Without learning: {results.title(setting)}", headings, rows, note)


def _lines(results: Results, setting: Setting) -> dict[str, Line]:
    rules = {
        "best fixed schedule": setting.schedule,
        "decentralized rule": setting.rule,
        "central rule": setting.central,
    }
    limits = {label: limit.tau for label, name in rules.items() if (limit := results.limit(setting, name))}
    taus = {"paper": results.printed(paper.FINAL, setting.name, {}).get(MAIN, paper.Printed()).tau, **limits}
    return {label: Line(None, tau) for label, tau in taus.items() if tau is not None}


def ablation(results: Results) -> Chapter:
    """Effects of reward, stop and sampling cost."""
    setting = next((candidate for candidate in results.settings if candidate.method(ABLATION[0])), None)
    if setting is None:
        return Chapter("Ablations", [])
    rows = []
    printed = {**paper.ABLATION, "td3": paper.ABLATION[MAIN], MAIN: paper.Printed()}  # the paper's method is TD3
    for role in (MAIN, STOPPED.role, "td3", *ABLATION):
        method = setting.method(role)
        teams = results.teams(setting, method) if method else []
        name = named(results, setting, method) if method else BASELINES[role].label
        theirs = results.printed(printed, role, paper.Printed())
        ours = [in_words(teams, "accuracy", ".3f"), in_words(teams, "tau", ".2f")]
        rows.append([name, theirs.accuracy or DASH, number(theirs.tau, ".1f"), *ours])
    headings = ["variant", "paper: accuracy", "paper: τ", "accuracy", "τ"]
    note = "Thresholds apply to the posterior of all agents' data. The paper's 0.70 at 37.3 is not to be reproduced."
    return Chapter("Ablations", [Table("ablation", f"Ablations: {results.title(setting)}", headings, rows, note)])


def calibration(results: Results) -> Chapter:
    """Calibration of the posterior."""
    teams = {
        f"{setting.short}{f', {variant}' if variant else ''}, {seed}": analysis
        for setting in results.settings
        for variant in ("", *setting.variants)
        for seed, analysis in results.seeds(setting, setting.main, variant)
    }
    items: list[Item] = c.trust_tables("trust", teams) if teams else []
    for setting in results.settings if teams else ():
        if representative := results.representative(setting):
            seed, analysis = representative
            title = f"Calibration: {results.title(setting)}, seed {seed}"
            bins, size = results.printed({"a3p5": paper.CALIBRATION}, setting.name, ()), c.counts([analysis])
            items.append(c.reliability_plot(f"{setting.name}-reliability", title, "team", analysis, results.mark))
            items.append(c.calibration_table(f"{setting.name}-calibration", title, analysis.calibration, bins, size))
    return Chapter("Calibration", items)


def survival(results: Results) -> Chapter:
    """Share of episodes that have not stopped."""
    items: list[Item] = []
    for setting in results.settings:
        methods = {named(results, setting, m): teams for m in setting.methods if (teams := results.teams(setting, m))}
        if methods:
            theirs, title = results.printed(paper.ACTIVE, setting.name, ()), f"Survival: {results.title(setting)}"
            items.append(c.survival_plot(f"{setting.name}-survival", title, methods, theirs, results.mark))
    return Chapter("Survival", items)


# -- other priors, and coordination


def robustness(results: Results) -> Chapter:
    """Our representative team under other priors."""
    items: list[Item] = []
    for setting in results.settings:
        for name, (sweep, points) in results.sweeps(setting).items():
            title = f"Robustness ({name}): {results.title(setting)}"
            printed = results.printed(paper.ROBUSTNESS, (setting.name, name), "")
            plot = sweep_plot(f"{setting.name}-{name}", title, sweep, {"ours": points}, DELTA, results.mark)
            note = f"The paper says: {printed}." if printed else "The paper prints no numbers for it."
            note += f" Every point: tables/{setting.name}-{name}.csv."
            items.append(Plot(plot.name, plot.title, plot.figure, note))
            items.append(sweep_table(f"{setting.name}-{name}", title, points))
    words = ["One team, trained on the uniform prior and evaluated in worlds of other priors."]
    return Chapter("Robustness", items, words if items else ())


def coordination(results: Results) -> Chapter:
    """Joint actions, actions of each agent, and stops."""
    items: list[Item] = []
    for setting in results.settings:
        representative, title = results.representative(setting), results.title(setting)
        if not representative:
            continue
        (seed, analysis), name, mark = representative, setting.name, results.mark
        joint = results.printed({"a3p5": paper.JOINT}, name, ())
        items += c.coordination_items(name, f"{title}, seed {seed}", analysis, mark, joint=joint)
        habits = results.printed({"signal": paper.HABITS}, name, ())
        items.append(c.habits_table(f"{name}-habits", f"{title}, seed {seed}: what each agent does", analysis, habits))
        printed = results.printed(paper.STOPPERS, name, {})
        shares = {"ours": c.stop_shares(analysis)} | ({"paper": printed} if printed else {})
        title = f"How many stop together: {title}"
        items.append(c.stoppers_plot(f"{name}-stoppers", title, shares, c.counts([analysis]), mark))
    return Chapter("Coordination", items)
