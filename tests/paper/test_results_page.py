"""The results page of this repository in a real browser: short, readable on phones and in the dark, and alone."""

import json
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parent.parent.parent / "results" / "index.html"
DESK, PHONE = (1400, 900), (390, 844)
MOST = 12 * 900  # pixels: twelve screens
CONTRAST = """
const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
const light = (colour) => colour.slice(0, 3).map((v) => linear(v / 255))
  .reduce((sum, v, index) => sum + v * [0.2126, 0.7152, 0.0722][index], 0);
const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
const behind = (element) => {
  for (let one = element; one; one = one.parentElement) {
    const colour = parse(getComputedStyle(one).backgroundColor);
    if (colour.length === 3 || colour[3] > 0.99) return colour.slice(0, 3);
  }
  return parse(getComputedStyle(document.body).backgroundColor).slice(0, 3);
};
const bad = [];
let seen = 0;
for (const one of document.querySelectorAll("main *, header *, nav *")) {
  const said = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  if (!said || one.closest("script, style, title, noscript, .replay") || !one.checkVisibility()) continue;
  const style = getComputedStyle(one), inside = one instanceof SVGElement;
  if (one.classList.contains("on-agent")) continue;  // its own disc is behind it
  const found = ratio(parse(inside ? style.fill : style.color), behind(inside ? one.closest("figure") : one));
  seen += 1;
  if (found < 4.5) bad.push(`${one.textContent.trim().slice(0, 30)}: ${found.toFixed(2)}`);
}
return [seen, bad];
"""


def opened(driver: Any, size: tuple[int, int], dark: bool = False) -> Any:
    metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size == PHONE}
    theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [theme]})
    driver.get_log("performance")
    driver.get_log("browser")
    driver.get(PAGE.as_uri())
    return driver


def measured(driver: Any, what: str) -> Any:
    return driver.execute_script(f"return {what}")


def test_the_page_is_under_twelve_screens_and_asks_nobody_for_anything(driver: Any) -> None:
    opened(driver, DESK)
    assert measured(driver, "document.querySelectorAll('details[open]').length") == 0, "tables are folded"
    assert 3 * 900 < measured(driver, "document.documentElement.scrollHeight") <= MOST
    sent = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    urls = [one["params"]["request"]["url"] for one in sent if one["method"] == "Network.requestWillBeSent"]
    assert [url for url in urls if not url.startswith(("file:", "data:"))] == []
    assert driver.get_log("browser") == []


def test_the_first_chart_is_on_the_first_screens_and_has_five_rows(driver: Any) -> None:
    opened(driver, DESK)
    first = "document.querySelector('main .chart svg.wide')"
    assert measured(driver, f"{first}.getBoundingClientRect().top") < 900
    names = measured(driver, f"[...{first}.querySelectorAll('text.strong')].map((one) => one.textContent).join(' ')")
    for name in ("bandit A3P5", "bandit A5P3", "source localization", "five readings", "one reading"):
        assert name in names
    assert measured(driver, f"{first}.querySelectorAll('circle title').length") >= 18


@pytest.mark.parametrize("size", [DESK, PHONE])
@pytest.mark.parametrize("dark", [False, True])
def test_all_words_have_the_contrast_of_wcag_aa(driver: Any, size: tuple[int, int], dark: bool) -> None:
    seen, bad = opened(driver, size, dark).execute_script(CONTRAST)
    assert seen > 300
    assert bad == []


def test_on_a_phone_nothing_is_wider_than_the_screen_and_words_in_charts_can_be_read(driver: Any) -> None:
    opened(driver, PHONE)
    assert measured(driver, "document.documentElement.scrollWidth") <= PHONE[0]
    shown = "[...document.querySelectorAll('main .chart > svg')].filter((one) => one.getClientRects().length)"
    assert measured(driver, f"{shown}.every((one) => one.classList.contains('narrow'))")
    scales = measured(driver, f"{shown}.map((one) => one.getBoundingClientRect().width / one.viewBox.baseVal.width)")
    assert len(scales) > 20
    assert 12 * min(scales) >= 11, "pixels of the smallest words"


def test_the_first_column_of_a_wide_table_stays_and_titles_are_above(driver: Any) -> None:
    opened(driver, PHONE)
    driver.execute_script("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    box = "[...document.querySelectorAll('main .scroll')].find((one) => one.scrollWidth > one.clientWidth + 40)"
    before = measured(driver, f"{box}.querySelector('tbody th').getBoundingClientRect().left")
    driver.execute_script(f"{box}.scrollLeft = 200")
    assert measured(driver, f"{box}.querySelector('tbody th').getBoundingClientRect().left") == before
    above = f"{box}.parentElement.querySelector('figcaption').getBoundingClientRect().bottom"
    assert measured(driver, above) <= measured(driver, f"{box}.getBoundingClientRect().top")


def test_contents_stay_beside_the_page_and_lead_to_every_question(driver: Any) -> None:
    opened(driver, DESK)
    driver.execute_script("window.scrollTo({top: 4000, behavior: 'instant'})")
    assert 0 <= measured(driver, "document.querySelector('nav').getBoundingClientRect().top") < 100
    lost = "[...document.querySelectorAll('nav a')].filter((one) => !document.querySelector(one.getAttribute('href')))"
    assert measured(driver, f"{lost}.length") == 0
    assert measured(driver, "document.querySelectorAll('nav ol ol a').length") >= 12
