"""Time ranges, zones, and links that reopen what one sees."""

import re
from datetime import datetime, timedelta

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright")

from tests.service.page import fake_data as data  # noqa: E402
from tests.service.page.fake_data import of_signal  # noqa: E402
from tests.service.page.fake_server import fill  # noqa: E402

pytestmark = pytest.mark.slow

expect = sync_api.expect
PUMP = "plant/pump 3/pressure"


def asked_from(monitor) -> timedelta:
    """How long ago the newest history that was asked for begins."""
    return data.now() - datetime.fromisoformat(monitor.histories[-1]["from"])


def wait_for_history(page, monitor, count: int) -> None:
    for _ in range(400):
        if len(monitor.histories) >= count:
            return
        page.wait_for_timeout(20)
    raise AssertionError(f"{monitor.histories} are fewer than {count}")


def drag(page, first: float, last: float) -> None:
    box = page.locator(".charts .u-over").first.bounding_box()
    page.mouse.move(box["x"] + first * box["width"], box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + last * box["width"], box["y"] + 50, steps=4)
    page.mouse.up()


def test_the_shortest_range_with_enough_observations_is_shown_first(opened, monitor):
    page = opened(of_signal(PUMP))
    expect(page.get_by_role("button", name="1h", exact=True)).to_have_attribute("aria-pressed", "true")
    page.wait_for_url(re.compile("range=1h"))
    wait_for_history(page, monitor, 1)
    assert abs(asked_from(monitor) - timedelta(hours=1)) < timedelta(seconds=30)
    assert monitor.histories[-1]["points"] == "5000"


def test_ranges_are_chosen_and_undone(opened, monitor):
    page = opened(of_signal(PUMP))
    page.wait_for_selector(".charts canvas")
    page.get_by_role("button", name="7d", exact=True).click()
    page.wait_for_url(re.compile("range=7d"))
    wait_for_history(page, monitor, 2)
    assert abs(asked_from(monitor) - timedelta(days=7)) < timedelta(seconds=30)
    page.get_by_role("button", name="all", exact=True).click()
    wait_for_history(page, monitor, 3)
    assert "from" not in monitor.histories[-1]
    page.go_back()
    expect(page.get_by_role("button", name="7d", exact=True)).to_have_attribute("aria-pressed", "true")
    page.go_back()
    expect(page.get_by_role("button", name="1h", exact=True)).to_have_attribute("aria-pressed", "true")
    page.go_forward()
    expect(page.get_by_role("button", name="7d", exact=True)).to_have_attribute("aria-pressed", "true")


def test_an_absolute_range_survives_a_reload(opened, monitor):
    page = opened(of_signal(PUMP), timezone_id="Asia/Tokyo")
    page.get_by_label("Range from").fill("2026-11-15T21:00:00")
    page.get_by_label("Range to").fill("2026-11-15T20:00:00")
    page.get_by_role("button", name="Show").click()
    assert page.get_by_label("Range to").evaluate("input => input.validationMessage") != ""
    page.get_by_label("Range to").fill("2026-11-15T22:30:05")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url(re.compile("from=2026-11-15T12%3A00%3A00.000Z"))
    for _ in range(2):
        expect(page.get_by_label("Range to")).to_have_value("2026-11-15T22:30:05")
        expect(page.locator(".filters [aria-pressed=true]")).to_have_count(0)
        assert monitor.histories[-1]["to"] == "2026-11-15T13:30:05.000Z"
        page.reload()


def test_dragging_fetches_what_is_in_sight(opened, monitor):
    page = opened(of_signal(PUMP))
    page.wait_for_selector(".charts canvas")
    drag(page, 0.5, 0.75)
    wait_for_history(page, monitor, 2)
    seen = monitor.histories[-1]
    start, end = (datetime.fromisoformat(seen[name]) for name in ("from", "to"))
    assert abs(end - start - timedelta(minutes=15)) < timedelta(minutes=1)
    assert len(monitor.histories) == 2  # once, though the chart of p zooms along
    page.wait_for_url(re.compile("from=.*to="))
    page.locator(".charts .u-over").first.dblclick()
    page.wait_for_url(re.compile("range=1h"))
    drag(page, 0.5, 0.75)
    page.wait_for_url(re.compile("from=.*to="))
    page.go_back()
    page.wait_for_url(re.compile("range=1h"))


def test_what_comes_live_moves_a_range_up_to_now_and_no_other(opened, monitor):
    page = opened(of_signal(PUMP))
    page.wait_for_selector(".charts canvas")
    page.wait_for_selector(".connection.live")
    verdict = {
        "signal": PUMP, "time": data.text(data.now()), "status": "scored", "value": 77.25, "p": 0.5, "alarm": False,
        "forecast": 40.0, "low": 37.0, "high": 43.0, "warm": True, "incident": None, "message": None,
    }  # fmt: skip
    monitor.push("verdict", verdict)
    expect(page.locator(".readout").first).to_contain_text("77.25 bar")
    drag(page, 0.25, 0.5)
    wait_for_history(page, monitor, 2)
    page.mouse.move(5, 5)
    expect(page.locator(".readout").first).not_to_contain_text("77.25 bar")
    before = page.locator(".readout").first.text_content()
    monitor.push("verdict", {**verdict, "time": data.text(data.now() + data.STEP), "value": 88.5})
    monitor.push("incident", monitor.incidents[4])
    page.wait_for_timeout(400)
    assert page.locator(".readout").first.text_content() == before


def test_times_are_in_the_browsers_zone_or_in_utc(opened, monitor):
    page = opened(of_signal(PUMP), timezone_id="Asia/Tokyo")
    page.wait_for_selector(".charts canvas")
    expect(page.locator("#zone")).to_have_text("Times are in Asia/Tokyo (UTC+9)")
    local = page.get_by_label("Range from").input_value()
    page.get_by_role("button", name="Use UTC").click()
    expect(page.locator("#zone")).to_have_text("Times are in UTC")
    page.wait_for_url(re.compile("zone=utc"))
    utc = page.get_by_label("Range from").input_value()
    apart = datetime.fromisoformat(local) - datetime.fromisoformat(utc)
    assert abs(apart - timedelta(hours=9)) < timedelta(minutes=1)
    page.get_by_label("Range from").fill("2026-11-15T12:00:00")
    page.get_by_label("Range to").fill("2026-11-15T13:00:00")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url(re.compile("from=2026-11-15T12%3A00"))
    page.goto(f"{monitor.url}/#/status")  # it stays from view to view
    page.wait_for_url(re.compile("zone=utc"))
    link = page.url
    page.get_by_role("button", name="Use this browser's zone").click()
    expect(page.locator("#zone")).to_have_text("Times are in Asia/Tokyo (UTC+9)")
    assert "zone" not in page.url
    page.goto(link)  # and a link brings its own
    page.reload()
    expect(page.locator("#zone")).to_have_text("Times are in UTC")


def test_filters_can_be_undone(opened):
    page = opened()
    page.click(".filter.silent")
    page.wait_for_url(re.compile("filter=silent"))
    page.click(".filter.warming-up")
    expect(page.locator(".windowed .row")).to_have_count(1)
    page.go_back()
    expect(page.locator(".filter.silent")).to_have_attribute("aria-pressed", "true")
    page.go_back()
    expect(page.locator(".filter.all")).to_have_attribute("aria-pressed", "true")


#: Where the line of the values is in the first chart: how far from the left and from the top, from 0 to 1.
EXTENT = """async () => {
    const { colour } = await import('/static/js/theme.js');
    const pen = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    pen.fillStyle = colour('--value');
    pen.fillRect(0, 0, 1, 1);
    const wanted = pen.getImageData(0, 0, 1, 1).data;
    const over = document.querySelector('.charts .u-over');
    const canvas = document.querySelector('.charts canvas');
    const { data, width } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    const [across, down] = [[], []];
    for (let at = 0; at < data.length; at += 4) {
        if ([0, 1, 2].some(part => Math.abs(data[at + part] - wanted[part]) > 24) || data[at + 3] < 200) continue;
        across.push(((at / 4) % width - over.offsetLeft) / over.offsetWidth);
        down.push((Math.floor(at / 4 / width) - over.offsetTop) / over.offsetHeight);
    }
    const ends = found => [found.reduce((a, b) => Math.min(a, b), 9), found.reduce((a, b) => Math.max(a, b), -9)];
    return [...ends(across), ...ends(down)];
}"""


def extent(page) -> tuple[float, float, float, float]:
    """The left, right, upper and lower end of the line of the values, once it is drawn as it stays."""
    before, found = None, page.evaluate(EXTENT)
    while before != found:
        page.wait_for_timeout(400)
        before, found = found, page.evaluate(EXTENT)
    return found


def test_a_range_ends_at_the_newest_observation_however_old_that_is(opened, monitor):
    monitor.now = data.now() - timedelta(days=300)
    fill(monitor)
    page = opened(of_signal(PUMP))
    page.wait_for_selector(".charts canvas")
    expect(page.get_by_role("button", name="1h", exact=True)).to_have_attribute("aria-pressed", "true")
    stored = 2000 * data.STEP
    lengths = {"1h": 1, "6h": 6, "1d": 24, "7d": 7 * 24, "30d": 30 * 24}
    for name, hours in lengths.items():
        page.get_by_role("button", name=name, exact=True).click()
        page.wait_for_url(re.compile(f"range={name}"))
        left, right, *_ = extent(page)
        length = timedelta(hours=hours)
        asked = monitor.now - datetime.fromisoformat(monitor.histories[-1]["from"])
        assert abs(asked - length) < timedelta(seconds=1)
        assert right > 0.99, name
        assert left == pytest.approx(1 - min(stored / length, 1), abs=0.02), name
        assert page.get_by_label("Range to").input_value() == page.evaluate(
            "async time => (await import('/static/js/zone.js')).toInput(Date.parse(time))", data.text(monitor.now)
        )
    page.get_by_role("button", name="all", exact=True).click()
    page.wait_for_url(re.compile("range=all"))
    left, right, *_ = extent(page)
    assert (left, right) == pytest.approx((0, 1), abs=0.01)


def test_an_open_incident_of_old_data_is_shown_around_it_not_until_now(opened, monitor):
    monitor.now = data.now() - timedelta(days=300)
    fill(monitor)
    page = opened("#/incidents/2")
    page.wait_for_selector(".charts canvas")
    start = datetime.fromisoformat(monitor.histories[-1]["from"])
    assert monitor.now - start < timedelta(hours=1)


@pytest.mark.parametrize("level", [0.0, 130.0])
def test_values_set_the_scale_of_a_chart_and_a_wide_band_does_not(opened, monitor, monkeypatch, level):
    def history(count, features, seed, end):
        columns = usual(count, features, seed, end)
        wide = {"low": [[-1300.0] * count], "high": [[1500.0] * count], "forecast": [[level + 900.0] * count]}
        return {**columns, **wide, "value": [[level + spread * (at % 2) for at in range(count)]]}

    usual = data.history
    monkeypatch.setattr(data, "history", history)
    spread = 0.25
    page = opened(of_signal(PUMP))
    page.wait_for_selector(".charts canvas")
    *_, top, bottom = extent(page)
    assert (top, bottom) == pytest.approx((1 / 12, 11 / 12), abs=0.02)
    spread = 0.0  # of a constant, there is room around it
    page.reload()
    page.wait_for_selector(".charts canvas")
    *_, top, bottom = extent(page)
    assert (top, bottom) == pytest.approx((0.5, 0.5), abs=0.02)


def test_numbers_on_an_axis_can_be_told_apart(opened):
    page = opened()
    labels = page.evaluate(
        """async given => {
            const { axisLabels } = await import('/static/js/charts/parts.js');
            return given.map(([at, step]) => axisLabels(null, at, 0, 0, step));
        }""",
        [[[1013.25, 1013.5, None], 0.25], [[1234560, 1234570], 10], [[0, 50, 100], 50], [[0.001, 0.0015], 0.0005]],
    )
    assert labels == [["1013.25", "1013.50", ""], ["1234560", "1234570"], ["0", "50", "100"], ["0.001", "0.0015"]]
