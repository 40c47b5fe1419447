"""The results page by question: rounds to the target, then each problem with its episodes, comparisons and habits."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from statistics import fmean

from icmape.evaluation.analysis import Analysis
from icmape.plot import chapters as c
from icmape.plot.items import DASH, Item, Plot, Table, number
from icmape.plot.priors import sweep_plot, sweep_table
from icmape.plot.team_charts import Line
from paper import printed as paper
from paper.budgets import budgets, named
from paper.collected import NOT_RUN, Results
from paper.episodes import RULE, WHY_MADE_UP, made_up_scenes, scenes
from paper.equal import equal_accuracy
from paper.experiments import ABLATION, BASELINES, MAIN, STOPPED, Setting
from paper.missing import not_run
from paper.overview import rule_label, rule_roles
from paper.summary import how_many, in_words, summary
from paper.topics import Problem, Topic, beside
from paper.worlds import worlds

DELTA = 0.1
MOST_SURVIVALS = 6  # methods in a chart


def problems(results: Results) -> list[Problem]:
    """The summary, and every problem with its settings."""
    groups = groupby(results.settings, key=lambda setting: setting.problem or results.title(setting))
    return [summary(results), *(problem(results, title, list(settings)) for title, settings in groups)]


def problem(results: Results, title: str, settings: list[Setting]) -> Problem:
    """A problem: all questions about its settings."""
    first, last = [ask(results, settings) for ask in (episodes, comparison)], robustness(results, settings)
    does, sure = habits(results, settings), trust(results, settings)
    between = [beside(does, sure)] if len(settings) == 1 and does.items and sure.items else [does, sure]
    return Problem(title, [*first, *between, last])


def episodes(results: Results, settings: list[Setting]) -> Topic:
    """Replays of our teams, and pictures of worlds."""
    names = [results.short(setting) if len(settings) > 1 else "" for setting in settings]
    played = [scene for pair in zip(settings, names, strict=True) for scene in scenes(results, *pair)]
    pictures = [item for setting in settings for item in worlds(results, setting)]
    words = [RULE]
    if any(results.plan.lacks(setting) for setting in settings):
        played, words = made_up_scenes(), [WHY_MADE_UP, RULE]
    words = words if played else []
    return Topic("An episode", words, folded=pictures, scenes=played, fold="Worlds and measurements")


# -- comparison


def comparison(results: Results, settings: list[Setting]) -> Topic:
    """All methods, with their own stops and at equal accuracy; budgets and training folded."""
    seen: list[Item] = []
    folded: list[Item] = []
    for setting in settings:
        title, equal = f"Accuracy and stopping time: {results.title(setting)}", equal_accuracy(results, setting)
        seen += _performance(results, setting, title)
        seen += [equal[1]] if equal else []
        folded += [_methods(results, setting, title), *([equal[0]] if equal else []), *_ablation(results, setting)]
        folded += [_rules(results, setting), budgets(results, setting), *_training(results, setting)]
    missing = [line for setting in settings if (line := not_run(results, setting))]
    return Topic("How does it compare?", (), seen, folded, fold="Tables, budgets and training", after=missing)


def _methods(results: Results, setting: Setting, title: str) -> Table:
    note = f"{how_many(results)} forced: episodes that the horizon ended."
    methods: dict[str, list[Analysis] | str] = {
        named(results, setting, m): results.teams(setting, m) or NOT_RUN for m in setting.methods
    }
    return c.performance_table(f"{setting.name}-methods", title, methods, note)


def _performance(results: Results, setting: Setting, title: str) -> list[Plot]:
    """Accuracy and τ of all methods."""
    shown = {
        named(results, setting, m): {
            kind or "training prior": teams
            for kind in ("", *setting.variants)
            if (teams := results.teams(setting, m, kind))
        }
        for m in setting.methods
        if results.teams(setting, m)
    }
    lines = _lines(results, setting)
    return [c.performance_plot(f"{setting.name}-methods", title, shown, lines, results.mark)] if shown else []


def _training(results: Results, setting: Setting) -> list[Plot]:
    """τ and confidence during training."""
    runs = {named(results, setting, m): rows for m in setting.methods if (rows := results.metrics(setting, m))}
    if not runs:
        return []
    title = f"Training: {results.title(setting)}"
    plot = c.training_plot(f"{setting.name}-training", title, runs, DELTA, results.mark)
    return [replace(plot, note="Only methods whose metrics are at hand.")]


def _rules(results: Results, setting: Setting) -> Table:
    """Baselines that do not learn."""
    rows = []
    roles = rule_roles(setting)
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
    """The paper's τ, and the rules that are used as references."""
    theirs = results.printed(paper.FINAL, setting.name, {}).get(MAIN, paper.Printed())
    printed = {"paper": Line(theirs.right, theirs.tau)} if theirs.tau is not None else {}
    limits = {
        rule_label(setting, name): limit for name in rule_roles(setting) if (limit := results.limit(setting, name))
    }
    return {**printed, **{label: Line(limit.accuracy, limit.tau) for label, limit in limits.items()}}


def _ablation(results: Results, setting: Setting) -> list[Item]:
    """Effects of reward, stop and sampling cost."""
    if setting.method(ABLATION[0]) is None:
        return []
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
    return [Table("ablation", f"Ablations: {results.title(setting)}", headings, rows, note)]


# -- our teams


def habits(results: Results, settings: list[Setting]) -> Topic:
    """Actions of each agent and stops; joint actions folded."""
    timelines: list[Item] = []
    survived: list[Item] = []
    folded: list[Item] = []
    for setting in settings:
        representative, title = results.representative(setting), results.title(setting)
        if not representative:
            continue
        (seed, analysis), name, mark = representative, setting.name, results.mark
        joint = results.printed({"a3p5": paper.JOINT}, name, ())
        table, plot, sets = c.coordination_items(name, f"{title}, seed {seed}", analysis, mark, joint=joint)
        theirs = results.printed({"signal": paper.HABITS}, name, ())
        habit = c.habits_table(f"{name}-habits", f"{title}, seed {seed}: what each agent does", analysis, theirs)
        printed = results.printed(paper.STOPPERS, name, {})
        shares = {"ours": c.stop_shares(analysis)} | ({"paper": printed} if printed else {})
        title = f"How many stop together: {title}"
        timelines.append(plot)
        (survived if name in paper.ACTIVE else folded).append(_survival(results, setting))
        folded.append(c.stoppers_plot(f"{name}-stoppers", title, shares, c.counts([analysis]), mark))
        folded += [table, habit, sets]
    return Topic("What does each agent do?", (), [*timelines, *survived], folded, fold="Tables, and who stops")


def _survival(results: Results, setting: Setting) -> Plot:
    """Share of episodes that reach each round: ours, and few methods that reach the target (more hide each other)."""
    methods = {
        named(results, setting, method): teams
        for method in setting.methods
        if (teams := results.teams(setting, method)) and (method.role == MAIN or _reaches(teams))
    }
    methods = dict(list(methods.items())[:MOST_SURVIVALS])
    theirs, title = results.printed(paper.ACTIVE, setting.name, ()), f"Survival: {results.title(setting)}"
    plot = c.survival_plot(f"{setting.name}-survival", title, methods, theirs, results.mark)
    chosen = f"The first {MOST_SURVIVALS} methods that reach {1 - DELTA:g}." if len(methods) == MOST_SURVIVALS else ""
    return replace(plot, note=" ".join(filter(None, (plot.note, chosen))))


def _reaches(teams: c.Teams) -> bool:
    return fmean(team.evaluation.accuracy for team in teams) >= 1 - DELTA


def trust(results: Results, settings: list[Setting]) -> Topic:
    """Calibration of the posterior."""
    teams = {
        f"{setting.short}{f', {variant}' if variant else ''}, {seed}": analysis
        for setting in settings
        for variant in ("", *setting.variants)
        for seed, analysis in results.seeds(setting, setting.main, variant)
    }
    if not teams:
        return Topic("Can its confidence be trusted?")
    seen: list[Item] = []
    folded = c.trust_tables(f"{settings[0].name}-trust", teams)
    for setting in settings:
        if representative := results.representative(setting):
            seed, analysis = representative
            title = f"Calibration: {results.title(setting)}, seed {seed}"
            bins, size = results.printed({"a3p5": paper.CALIBRATION}, setting.name, ()), c.counts([analysis])
            seen.append(c.honesty_plot(f"{setting.name}-reliability", title, "ours", analysis, results.mark))
            folded.append(c.calibration_table(f"{setting.name}-calibration", title, analysis.calibration, bins, size))
    return Topic("Can its confidence be trusted?", (), seen, folded)


def robustness(results: Results, settings: list[Setting]) -> Topic:
    """Our representative team under other priors."""
    seen: list[Item] = []
    tables: list[Item] = []
    for setting in settings:
        for name, (sweep, points) in results.sweeps(setting).items():
            title = f"Other priors ({name}): {results.title(setting)}"
            printed = results.printed(paper.ROBUSTNESS, (setting.name, name), "")
            plot = sweep_plot(f"{setting.name}-{name}", title, sweep, {"ours": points}, DELTA, results.mark)
            note = f"The paper says: {printed}." if printed else "The paper prints no numbers for it."
            seen.append(replace(plot, note=note))
            tables.append(sweep_table(f"{setting.name}-{name}", title, points))
    words = [
        "One team, trained on the uniform prior and evaluated in worlds of others. The folder tables has all points."
    ]
    return Topic("Does it hold under other priors?", words if seen else (), seen, tables)
