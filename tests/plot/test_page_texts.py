"""Texts from files are text in a page, wherever they stand."""

from icmape.plot.page import Grid, Replay, Section, Text, render_page, write_page

EVIL = '</script><script>alert("x")</script><img src=x onerror=alert(1)>'


def test_a_script_in_a_name_is_text():
    scenes = [{"title": EVIL, "ending": EVIL, "words": [EVIL]}]
    parts = [Text(EVIL), Grid([EVIL, EVIL], [[EVIL, EVIL]], EVIL), Replay(scenes)]
    page = render_page(EVIL, EVIL, [Section(EVIL, parts)], EVIL)
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert page.count("&lt;script&gt;alert") > 8


def test_half_a_surrogate_pair_can_be_written(tmp_path):
    """JSON may hold one, and UTF-8 cannot."""
    path = write_page(tmp_path / "page.html", "a\ud800b", "", [])
    assert b"a\\ud800b" in path.read_bytes()
