"""`icmape app`: the file that it writes, and what it refuses."""

import re
from pathlib import Path

import pytest

from icmape.app.page import LARGEST, render_app, scripts
from icmape.cli import app
from tests.app.support import made
from tests.cli.test_cli import run


def test_the_default_app_is_small_and_names_nothing_outside(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "app.html"
    code, printed = run(capsys, "app", "--out", str(path))
    assert code == 0, printed
    content = path.read_text()
    assert path.stat().st_size <= LARGEST
    assert re.findall(r'data-name="([^"]*)"', content) == list(app.SHIPPED.values())
    outside = set(re.findall(r"""(?:src|href)=["']([^"']*)|url\(([^)]*)\)|(https?://[^\s"'`]*)""", content))
    assert {"".join(match) for match in outside} == {"data:,", "http://www.w3.org/2000/svg"}, "an icon, a name of SVG"
    assert "fetch(" not in scripts()
    assert "XMLHttpRequest" not in scripts()


def test_help_and_demo_name_all_teams_of_the_default_app(capsys: pytest.CaptureFixture[str]):
    _, printed = run(capsys, "app", "--help")
    makefile = (Path(__file__).parent.parent.parent / "Makefile").read_text()
    demo = next(line for line in makefile.splitlines() if "icmape app " in line)
    for name, tab in app.SHIPPED.items():
        assert name in " ".join(printed.split())
        assert tab in demo


def test_a_tab_cannot_add_markup():
    content = made("bandit-quick")._replace(name='"><script>alert(1)</script>')
    assert "<script>alert" not in render_app([content])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--out", "app.htm"], "a name that ends with .html"),
        (["bandit-quick", "bandit-quick", "--out", "a.html"], "each tab needs a name of its own"),
        (["bandit-quick", "--names", "a", "b", "--out", "a.html"], "a name for each of the 1 teams"),
        (["bandit-quick", "--worlds", "0", "--out", "a.html"], "--worlds must lie in"),
        (["bandit-quick", "--seed", "-1", "--out", "a.html"], "seed must lie in"),
        (["nothing-like-it", "--out", "a.html"], "no team file nothing-like-it"),
        (["nitrate-n1", "--out", "a.html"], "come from measurements"),
    ],
)
def test_what_cannot_be_is_said_at_once(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.chdir(tmp_path)
    code, printed = run(capsys, "app", *arguments)
    assert code == 2
    assert said in " ".join(printed.split())
    assert list(tmp_path.iterdir()) == []
