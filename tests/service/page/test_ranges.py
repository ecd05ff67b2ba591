"""Time ranges, zones, and links that reopen what one sees."""

import re
from datetime import datetime, timedelta

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright")

from tests.service.page import fake_data as data  # noqa: E402
from tests.service.page.fake_data import of_signal  # noqa: E402

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
