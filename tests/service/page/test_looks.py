"""What the page is like to look at: on a phone, in both themes, with very many signals."""

import itertools

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright")

from tests.service.page import fake_data as data  # noqa: E402
from tests.service.page.fake_data import of_signal  # noqa: E402

pytestmark = pytest.mark.slow

expect = sync_api.expect


def test_only_rows_in_sight_exist(opened, monitor):
    made = data.signal("many", data.now())
    monitor.signals |= {f"many/{number:04}": {**made, "name": f"many/{number:04}"} for number in range(2000)}
    page = opened()
    expect(page.locator(".filter.all b")).to_have_text("2,039")
    assert page.locator(".windowed .row").count() < 50
    page.evaluate("() => scrollBy(0, 20000)")
    expect(page.locator(".windowed .row").first).not_to_contain_text("many/0000")
    assert page.locator(".windowed .row").count() < 50


def test_a_phone_needs_no_sideways_scrolling(opened):
    page = opened(width=375)
    page.wait_for_selector(".windowed .row")
    widths = {}
    signals = [of_signal("plant/pump 4/vibration"), of_signal(data.HOSTILE)]
    for address in (*signals, "#/incidents?show=all", "#/incidents/3", "#/maintenance", "#/status", "#/"):
        page.evaluate("address => { location.hash = address }", address)
        page.wait_for_selector("main > :nth-child(2)")
        expect(page.get_by_text("Loading…")).to_have_count(0)
        widths[address] = page.evaluate("document.documentElement.scrollWidth")
    assert set(widths.values()) == {375}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_can_be_read(opened, scheme):
    page = opened(color_scheme=scheme)
    page.wait_for_selector(".windowed .row")
    texts = ("text", "muted", "accent", "alarm", "silent", "learning", "fine")
    pairs = [
        *itertools.product(texts, ("background", "surface")),
        *itertools.product(("text", "muted", "alarm"), ("alarm-surface",)),
        *itertools.product(("text", "muted", "silent"), ("silent-surface",)),
        *itertools.product(("text", "muted"), ("raised",)),
        ("on-accent", "accent"),
        ("surface", "alarm"),
    ]
    colours = page.evaluate(
        """async names => {
            const { colour } = await import('/static/js/theme.js');
            return Object.fromEntries(names.map(name => [name, colour('--' + name).match(/[\\d.]+/g).map(Number)]));
        }""",
        sorted({name for pair in pairs for name in pair}),
    )
    contrasts = {pair: contrast(colours[pair[0]], colours[pair[1]]) for pair in pairs}
    assert {pair: ratio for pair, ratio in contrasts.items() if ratio < 4.5} == {}


def contrast(one: list[float], other: list[float]) -> float:
    """The contrast of two colours, as WCAG defines it."""

    def luminance(colour: list[float]) -> float:
        parts = [part / 255 for part in colour[:3]]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_theme_is_chosen_and_kept(opened):
    page = opened(color_scheme="light")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.get_by_role("button", name="Use dark colours").click()
    dark = page.evaluate(ground)
    assert dark != light
    page.reload()
    page.get_by_role("button", name="Use light colours").wait_for()
    assert page.evaluate(ground) == dark
