import pytest

from icmape_agent.look import AGENTS, DARK, LIGHT, METHODS, ON_AGENT, OTHERS, contrast, stylesheet

THEMES = pytest.mark.parametrize(("theme", "dark"), [(LIGHT, False), (DARK, True)], ids=["light", "dark"])


def test_contrast_by_hand():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@THEMES
@pytest.mark.parametrize("ground", ["page", "panel"])
@pytest.mark.parametrize("text", ["ink", "soft", "accent", "good", "bad", "stop", "truth", "other"])
def test_text_can_be_read(theme, dark, ground, text):
    assert contrast(theme[text], theme[ground]) >= 4.5


@THEMES
def test_words_on_buttons_can_be_read(theme, dark):
    assert contrast(theme["on-accent"], theme["accent"]) >= 4.5
    assert contrast(theme["on-stop"], theme["stop"]) >= 4.5
    assert contrast(theme["bad"], theme["bad-panel"]) >= 4.5


@THEMES
def test_methods_can_be_seen_and_read(theme, dark):
    for family, pair in METHODS.items():
        assert contrast(pair[dark], theme["page"]) >= 4.5, family


def test_digits_on_agents_can_be_read():
    for colour in AGENTS:
        assert contrast(colour, ON_AGENT) >= 4.5


def test_themes_have_the_same_names_and_each_is_a_variable():
    assert LIGHT.keys() == DARK.keys()
    assert set(OTHERS) <= METHODS.keys()
    text = stylesheet()
    for name in [*LIGHT, "agent-1", "agent-8", "method-ours"]:
        assert f"--{name}: #" in text
