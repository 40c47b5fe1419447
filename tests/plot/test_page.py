"""A page is one file: whatever is written on it stays text, and nothing on it comes from elsewhere."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from matplotlib.figure import Figure

from icmape.plot import page
from icmape.plot.charts import Axis, Curves, Panel, Series
from icmape.plot.embedded import drawn, picture
from icmape.plot.page import Columns, Drawn, Grid, Heading, Picture, Replay, Section, Text, render_page, write_page

NASTY = "</script><script>alert('x')</script> & \"quoted\" <b>"
SCENE = {"title": NASTY, "ending": NASTY, "rounds": [], "views": []}


class Seen(HTMLParser):
    """Elements with their attributes, and all text outside scripts."""

    def __init__(self, text: str):
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.said = ""
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "img", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, "every element is closed where it was opened"

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        elif self.open and self.open[-1] != "style":
            self.said += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def figure(points: int = 3, width: float = 4) -> Figure:
    drawn = Figure(figsize=(width, 2))
    drawn.subplots().plot(range(points), [number * 7919 % 101 for number in range(points)], marker="o")
    return drawn


def full() -> str:
    parts = [Text(NASTY), Grid([NASTY, "τ"], [[NASTY, "1"], ["b", NASTY]], NASTY), Picture(figure(), NASTY, NASTY)]
    sections = [
        Section(NASTY, parts),
        Section("Two", [Picture(figure(), "c", "a"), Replay([SCENE])]),
        Section("Two", []),
    ]
    return render_page(NASTY, NASTY, sections, NASTY)


def test_what_is_written_stays_text() -> None:
    seen = Seen(full())
    assert seen.open == []
    assert not seen.all("b")
    assert seen.said.count(NASTY) == 14, "all that were given, the title twice and the section's also in the contents"
    assert len(seen.all("script")) == 2, "the replay's data, and the page's own script"
    assert json.loads(seen.scripts[0])[0]["title"] == NASTY
    assert next(image["alt"] for image in seen.all("img")) == NASTY


def test_nothing_comes_from_elsewhere() -> None:
    text = full()
    seen = Seen(text)
    addresses = [value or "" for _, found in seen.elements for name, value in found.items() if name in ("src", "href")]
    assert addresses
    assert all(address.startswith(("data:", "#")) for address in addresses)
    inside = set(re.findall(r"https?:[^\"'\s>)]+", unquote(text)))
    assert inside == {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}, "names of SVG, which nobody loads"
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|WebSocket", "".join(map(page._asset, ASSETS)))


ASSETS = ("report.css", *page.SCRIPTS)


def test_only_the_pages_own_script_may_run() -> None:
    seen = Seen(full())
    policy = next(meta["content"] or "" for meta in seen.all("meta") if "http-equiv" in meta)
    digest = base64.b64encode(hashlib.sha256(seen.scripts[-1].encode()).digest()).decode()
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{digest}'" in policy
    assert "script-src 'none'" in render_page("t", "s", [Section("a", [Text("b")])])


def test_sections_are_linked_once_each() -> None:
    seen = Seen(full())
    links = [a["href"] for a in seen.all("a")]
    names = [heading["id"] for heading in seen.all("h2") if "id" in heading]
    assert links == [f"#{name}" for name in names]
    assert len(set(names)) == 3
    assert names[1:] == ["two", "two-2"]


def test_a_table_has_headings_of_both_kinds() -> None:
    seen = Seen(render_page("t", "s", [Section("a", [Grid(["x", "y"], [["1", "2"], ["3", "4"]])])]))
    assert [cell["scope"] for cell in seen.all("th")] == ["col", "col", "row", "row"]
    assert len(seen.all("td")) == 2


def test_a_small_picture_is_a_drawing_and_a_large_one_pixels() -> None:
    small, large = (picture(figure(points), "c", "a") for points in (3, 4000))
    assert 'src="data:image/svg+xml,' in small
    assert 'src="data:image/png;base64,' in large
    assert 'width="384" height="192"' in small
    assert "scroll" not in small
    assert "scroll" in picture(figure(width=9), "c", "a")


def test_a_picture_is_the_same_every_time() -> None:
    assert drawn(figure()) == drawn(figure())
    assert "<metadata" not in drawn(figure())


def test_numbers_that_json_lacks_are_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        render_page("t", "s", [Section("a", [Replay([{**SCENE, "p": float("nan")}])])])


def test_a_page_is_written_whole(tmp_path: Path) -> None:
    path = write_page(tmp_path / "new" / "report.html", "τ & co", "s", [Section("a", [Text("b")])], mark="quick")
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert [one.name for one in path.parent.iterdir()] == ["report.html"]
    seen = Seen(path.read_text(encoding="utf-8"))
    assert "quick" in seen.said
    assert seen.all("html")[0]["lang"] == "en"


def test_headings_are_linked_and_contents_stand_beside_pages_that_have_them() -> None:
    text = render_page("t", "s", [Section("One", [Heading("Why?"), Text("a")]), Section("Two", [Heading("Why?")])])
    seen = Seen(text)
    assert [a["href"] for a in seen.all("a")] == ["#one", "#one-why", "#two", "#two-why"]
    assert [heading["id"] for heading in seen.all("h3")] == ["one-why", "two-why"]
    assert seen.all("body")[0]["class"] == "sided"
    assert "class" not in Seen(render_page("t", "s", [Section("One", [Text("a")])])).all("body")[0]


def test_a_title_is_above_its_table_and_its_chart_and_the_rest_below() -> None:
    chart = Curves("T", panels=[Panel(Axis("x"), Axis("y"), [Series("a", [(0, 0), (1, 1)], "var(--ink)")])])
    parts = Columns([Drawn(chart, "said", "Title", "wide")]), Grid(["x"], [["1"]], "Table", "note")
    text = render_page("t", "s", [Section("One", list(parts))])
    assert Seen(text).open == []
    order = [text.index(word) for word in (">Title<", "<svg", ">said<", ">Table<", "<table>", ">note<")]
    assert order == sorted(order)
    assert [figure.get("class") for figure in Seen(text).all("figure")] == ["wide", None]
    assert text.count('role="img"') == 2, "two widths"


def test_scripts_and_styles_have_no_colours_of_their_own() -> None:
    """All come from `icmape_agent.look`; only rasters lie on white, which is drawn into them."""
    for name in ASSETS:
        lines = [line for line in page._asset(name).splitlines() if not line.startswith(".card {")]
        assert not re.findall(r"#[0-9a-fA-F]{3,8}\b", "\n".join(lines)), name
