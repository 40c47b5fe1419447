"""Charts take their colours from one place, can be read in both themes, and stay text whatever their words are."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from icmape.plot.charts import Axis, Chart, Curves, Dot, DotPanel, Dots, Grid, Heat, Key, Panel, Series, method_strokes
from icmape.plot.charts.chart import FILE, NARROW
from icmape.plot.charts.heat import MOST_TINT
from icmape.plot.charts.look import STYLE, family_of
from icmape.plot.charts.scales import steps
from icmape_agent.look import DARK, LIGHT, METHODS, contrast, stylesheet
from tests.plot.charts.drawn import SVG, parsed, texts

NASTY = '<b>&"x"</b><script>'
GRID = Grid(NASTY, [[0.8, 0.95]], ".2f", 0.9)
SERIES = Series(NASTY, [(0, 0.1), (1, 0.9)], "var(--method-ours)")
CHARTS: dict[str, Chart] = {
    "dots": Dots(NASTY, NASTY, "quick", [NASTY], [DotPanel(Axis(NASTY, 0.0), [[Dot(NASTY, 1.0, "var(--ink)")]])]),
    "curves": Curves(NASTY, NASTY, "quick", [Panel(Axis(NASTY), Axis(NASTY), [SERIES, SERIES._replace(label="b")])]),
    "heat": Heat(NASTY, NASTY, "quick", [1], [1, 2], (NASTY, NASTY), [GRID]),
}


@pytest.mark.parametrize("name", CHARTS)
def test_words_stay_words_and_nothing_comes_from_elsewhere(name: str, tmp_path: Path) -> None:
    path = CHARTS[name].save(tmp_path / "delta-0.05")
    assert path.name == "delta-0.05.svg"
    root = ET.parse(path).getroot()
    assert {one.tag.removeprefix(SVG) for one in root.iter()} <= {
        *("svg", "g", "text", "title", "style", "rect", "line", "path", "circle")
    }
    assert "<script>" in "".join(texts(root)), "as text"
    assert root.get("role") == "img"
    assert NASTY in str(root.get("aria-label"))
    assert not re.search(r"url\(|@import|href|id=", path.read_text())
    assert set(re.findall(r"https?:[^\"']+", path.read_text())) == {"http://www.w3.org/2000/svg"}


@pytest.mark.parametrize("name", CHARTS)
def test_every_colour_is_a_variable_of_the_look(name: str) -> None:
    text = CHARTS[name].inline() + STYLE
    known = set(re.findall(r"--([\w-]+):", stylesheet()))
    assert set(re.findall(r"var\(--([\w-]+)\)", text)) <= known
    assert not re.search(r"#[0-9a-fA-F]{3,8}\b", text)


@pytest.mark.parametrize("name", CHARTS)
def test_a_file_says_its_title_what_was_counted_and_that_it_is_marked(name: str) -> None:
    said = texts(ET.fromstring(CHARTS[name].file()))
    assert " ".join(said).count(NASTY) >= 2
    assert "quick" in said
    assert any(text.endswith("[quick]") for text in said)


@pytest.mark.parametrize("name", CHARTS)
def test_the_same_numbers_are_the_same_file(name: str) -> None:
    assert CHARTS[name].file() == CHARTS[name].file()


def test_words_can_be_read_on_a_phone() -> None:
    """A page of 390 pixels leaves about 360 to a drawing: nothing is smaller than 9 pixels there."""
    smallest = min(float(size) for size in re.findall(r"font-size: ([\d.]+)px", STYLE))
    assert smallest * 360 / NARROW >= 12
    assert smallest * 360 / (FILE + 24) >= 9


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_numbers_on_tinted_cells_have_the_contrast_of_text(theme: dict[str, str]) -> None:
    mixed = (
        round(MOST_TINT * int(theme["accent"][at : at + 2], 16) + (1 - MOST_TINT) * int(theme["page"][at : at + 2], 16))
        for at in (1, 3, 5)
    )
    assert contrast(theme["ink"], "#" + "".join(f"{part:02x}" for part in mixed)) >= 4.5
    assert contrast(theme["ink"], theme["page"]) >= 4.5
    assert contrast(theme["soft"], theme["page"]) >= 4.5
    assert contrast(theme["bad"], theme["page"]) >= 4.5


def test_methods_keep_their_colour_and_no_two_look_alike() -> None:
    labels = [
        "ours (guided)",
        "ICMAPE-TD3",
        "no sampling cost (TD3)",
        "ICMAPE-PPO",
        "centralized DQN",
        "my own",
        "paper",
    ]
    strokes = method_strokes(labels)
    assert [colour for colour, _ in strokes[:2]] == ["var(--method-ours)", "var(--method-td3)"]
    assert strokes[3][0] == "var(--method-ppo)"
    assert strokes[6][0] == "var(--method-paper)"
    many = method_strokes([f"method {number}" for number in range(30)])
    assert len(set(many)) == 30
    families = [
        family_of(label) for label in ("rule open-loop", "decentralized rule", "central-greedy", "sweep", "other")
    ]
    assert families == ["schedule", "decentralized", "central", "schedule", None]
    assert {family for family in families if family} <= set(METHODS)


@pytest.mark.parametrize(
    ("low", "high", "most"), [(0, 1, 6), (-0.3, 17.2, 9), (0.861, 0.912, 4), (0, 2e7, 5), (3, 3.5, 2)]
)
def test_numbers_at_axes_are_round_and_few(low: float, high: float, most: int) -> None:
    found = steps(low, high, most)
    assert 1 <= len(found) <= most
    assert all(low <= value <= high for value in found)
    assert max(len(Axis("x").written(value)) for value in found) <= 5


def test_large_numbers_at_axes_are_short() -> None:
    axis = Axis("rounds")
    assert [axis.written(value) for value in (500, 20_000, 1.5e6, 2e7)] == ["500", "20k", "1.5M", "20M"]
    assert Axis("share", percent=True).written(0.05) == "5%"


def test_a_single_line_needs_no_legend_and_panels_stand_below_each_other_on_phones() -> None:
    axes = Axis("x"), Axis("y")
    one = Series("only", [(0, 0.0), (1, 1.0)], "var(--ink)")
    assert "only" not in texts(parsed(Curves("T", panels=[Panel(*axes, [one])])))
    two = Curves("T", panels=[Panel(*axes, [one, one._replace(label="other")])] * 2)
    assert {"only", "other"} <= set(texts(parsed(two)))
    assert two.draw(340)[0] > 1.7 * two.draw(720)[0]


def test_a_chart_can_be_heard() -> None:
    keys = [Key("ours", "var(--method-ours)")]
    rows = [[Dot("ours", 10.5, "var(--method-ours)", words="10.50")]]
    chart = Dots("Rounds", "few worlds", names=["A3P5"], panels=[DotPanel(Axis("τ"), rows)], keys=keys)
    assert chart.spoken == "Dot plot: Rounds. A3P5: ours 10.50. few worlds."
    assert chart.inline().count('aria-label="Dot plot: Rounds.') == 2, "two drawings, of which one is displayed"
