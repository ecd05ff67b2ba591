"""The display on a wall: nobody can scroll there, so what is shown fits, the worst first, and the rest is counted."""

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright")

from tests.cases import full  # noqa: E402
from tests.service.page import fake_data as data  # noqa: E402

pytestmark = pytest.mark.slow

expect = sync_api.expect

OUTSIDE = """() => {
    const inside = (one, box) => one.bottom <= box.bottom + 1 && one.right <= box.right + 1;
    const screen = { bottom: innerHeight, right: innerWidth };
    const area = one => one.getBoundingClientRect();
    const tiles = [...document.querySelectorAll('.tile')];
    const divs = tile => [...tile.querySelectorAll(':scope > div')];
    const parts = tiles.flatMap(tile => divs(tile).map(part => [area(part), area(tile)]));
    return [
        ...tiles.filter(tile => !inside(area(tile), screen)).map(() => 'a tile is outside the display'),
        ...parts.filter(([part, tile]) => !inside(part, tile)).map(() => 'words are outside their tile'),
        ...(document.documentElement.scrollHeight > innerHeight ? ['the page scrolls'] : []),
    ];
}"""


def fill(monitor, levels: int) -> None:
    made = data.signal("one", data.now())
    monitor.signals.clear()
    monitor.incidents.clear()
    for number in range(levels):
        for sensor in ("pressure_bar", "oil_temperature_c"):
            name = f"plant/line-3/press-{number}/hydraulics/{sensor}"
            monitor.signals[name] = {**made, "name": name}


@pytest.mark.parametrize("size", [(1920, 1080), full((1280, 800)), (390, 844)])
@pytest.mark.parametrize("levels", [full(1), full(7), full(30), 200])
def test_everything_on_the_wall_fits_on_it(opened, monitor, size, levels):
    fill(monitor, levels)
    for number in (levels - 1, levels // 2):
        name = f"plant/line-3/press-{number}/hydraulics/pressure_bar"
        monitor.incidents[number] = data.incident(number, name, data.now())
    page = opened()
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.goto(f"{monitor.url}/#/wall?level=plant/line-3")
    expect(page.locator(".tile").first).to_have_attribute("data-state", "incident")
    assert page.evaluate(OUTSIDE) == []
    shown = page.locator(".tile").count()
    left = page.locator(".wall-foot strong")
    missing = f"{levels - shown} more level{'' if levels - shown == 1 else 's'} not shown: no trouble there"
    expect(left).to_have_text(missing if shown < levels else "")
    assert shown == levels or shown >= 5


def test_slashes_in_labels_are_no_levels(opened, monitor):
    made = data.signal("one", data.now())
    monitor.signals.clear()
    monitor.incidents.clear()
    for name in ('free{mount="/var/log"}', 'host/free{mount="/"}', 'host/free{mount="/home"}/inodes'):
        monitor.signals[name] = {**made, "name": name}
    page = opened("#/wall")
    expect(page.locator(".tile .label")).to_have_text(["host", "other signals"])
    page.goto(f"{monitor.url}/#/wall?level=host")
    expect(page.locator(".tile .label")).to_have_text(['free{mount="/home"}', "other signals"])


def test_the_wall_says_what_is_in_trouble_out_of_sight(opened, monitor):
    fill(monitor, 300)
    for number in range(300):
        name = f"plant/line-3/press-{number}/hydraulics/pressure_bar"
        monitor.incidents[number] = data.incident(number, name, data.now())
    second = "plant/line-3/press-299/hydraulics/oil_temperature_c"
    monitor.incidents[999] = data.incident(999, second, data.now())
    page = opened("#/wall?level=plant/line-3")
    expect(page.locator(".tile").first).to_contain_text("press-299")  # two in trouble come before one
    shown = page.locator(".tile").count()
    hidden = 300 - shown
    expect(page.locator(".wall-foot strong")).to_have_text(
        f"{hidden} more levels not shown: {hidden} signals in trouble there"
    )
    expect(page.locator(".wall-foot")).to_contain_text("plant/line-3: 301 with an incident, 600 in all")
    monitor.incidents.clear()
