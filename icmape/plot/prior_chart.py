"""Pictures of a prior check: each statistic of recorded sessions beside its simulated band."""

from pathlib import Path

import numpy as np

from icmape.errors import UserError
from icmape.evaluation.prior_check import PriorCheck
from icmape.evaluation.prior_check.check import Row, number
from icmape.plot.charts import Axis, Dot, DotPanel, Dots, Key
from icmape.plot.page import Drawn, Grid, Opening, Part, Section, Text, write_page

MOST = 24  # statistics in a picture
FAR = 8.0  # standard deviations at the ends of the axis
INSIDE, OUTSIDE = "var(--accent)", "var(--bad)"
SUBTITLE = "Statistics of recorded sessions beside those of sessions that the team plays in worlds of its prior."
KINDS = (".html", ".svg", ".json")


def check_kind(path: Path | None) -> None:
    """Refuse other kinds of files before anything is played."""
    if path is not None and path.suffix not in KINDS:
        raise UserError(f"--out is a file whose name ends with {', '.join(KINDS)}; given {path}")


def prior_chart(check: PriorCheck) -> Dots:
    """A dot for each of the statistics that deviate most, on an axis of standard deviations."""
    every = check.most_surprising()
    rows = every[:MOST]
    axis = Axis("standard deviations from the mean", *_ends(rows))
    return Dots(
        f"Recorded sessions against the prior: p = {check.p_value:.3g}",
        f"{len(rows)} of {len(every)} statistics, the most surprising first; {check.groups:,} simulated groups of "
        f"{len(check.sessions)}. Dots further out than {FAR:g} stand at the edge.",
        names=[row.name for row in rows],
        panels=[DotPanel(axis, [[_dot(row)] for row in rows], 0)],
        keys=[
            Key("95 % of simulated groups", INSIDE),
            Key("recorded, within", INSIDE, shape="hollow"),
            Key("recorded, outside", OUTSIDE, shape="dot"),
        ],
    )


def _ends(rows: list[Row]) -> tuple[float, float]:
    """The ends of the axis: all dots and bands, but not beyond `FAR`."""
    values = [value for row in rows for value in (_drawn(row.standardized), *_band(row))]
    return min([-3.0, *values]) - 0.3, max([3.0, *values]) + 0.3


def _drawn(value: float) -> float:
    return float(np.clip(np.nan_to_num(value, nan=0.0, posinf=FAR, neginf=-FAR), -FAR, FAR))


def _band(row: Row) -> tuple[float, float]:
    if not row.deviation > 0:
        return 0.0, 0.0
    low, high = (_drawn((end - row.mean) / row.deviation) for end in (row.low, row.high))
    return low, high


def _dot(row: Row) -> Dot:
    within = row.low <= row.recorded <= row.high or not np.isfinite(row.recorded)
    low, high = _band(row)
    unit = f" {row.unit}" if row.unit else ""
    words = f"{number(row.recorded)} ({number(row.low)} to {number(row.high)}{unit})"
    return Dot("recorded", _drawn(row.standardized), INSIDE if within else OUTSIDE, low, high, words, hollow=within)


def write_picture(check: PriorCheck, path: Path) -> Path:
    """An HTML page with the picture and all numbers, or the picture alone as SVG."""
    chart = prior_chart(check)
    if path.suffix == ".svg":
        return chart.save(path.with_suffix(""))
    verdict = str(check).splitlines()[0]
    opening = Opening("icmape check-prior", verdict, [])
    notes: list[Part] = [Text(f"Note: {remark}.") for remark in check.remarks]
    picture = Drawn(chart, chart.below, "Statistics of the recorded sessions, and of simulated ones")
    sections = [
        Section("Picture", [picture, *notes]),
        Section("All statistics", [_table(check)]),
        Section("Sessions", [_sessions(check)]),
    ]
    return write_page(path, "Do these sessions fit the prior?", SUBTITLE, sections, opening=opening)


def _table(check: PriorCheck) -> Grid:
    headings = ("statistic", "recorded", "simulated median", "95 % of simulated", "unit", "p of it alone")
    rows = [
        (
            row.name,
            number(row.recorded),
            number(row.median),
            f"{number(row.low)} to {number(row.high)}",
            row.unit,
            f"{row.p_value:.3g}",
        )
        for row in check.rows
    ]
    note = (
        "The verdict rests on the most surprising of them, ranked among simulated groups, which corrects for their "
        "number. A p-value of one statistic alone is not corrected."
    )
    return Grid(headings, rows, "", note)


def _sessions(check: PriorCheck) -> Grid:
    rows = [
        (
            Path(row["folder"]).name,
            f"{row['p_value']:.3g}",
            row["deviates"].split(";")[0],
            f"{row['rounds']}",
            "the team" if row["ended"] else "a person, or not over",
            f"{row['overruled']}",
            f"{row['missing']}",
        )
        for row in check.by_p_value()
    ]
    headings = ("session", "p alone", "deviates most", "rounds", "ended by", "actions overruled", "readings missing")
    note = (
        "p alone: each session as if it had been checked alone, the least likely first. It is not corrected for the "
        "number of sessions; the verdict is."
    )
    return Grid(headings, rows, "", note)
