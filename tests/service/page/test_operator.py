"""What whoever watches a plant reads when something is wrong: a stopped gateway, maintenance, a quarantined signal."""

from datetime import timedelta

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright")

from tests.service.page import fake_data as data  # noqa: E402
from tests.service.page.fake_data import of_signal  # noqa: E402
from tests.service.page.test_events import TITLE, stopped  # noqa: E402

pytestmark = pytest.mark.slow

expect = sync_api.expect


def stop_gateway(monitor) -> None:
    monitor.events[7] = stopped(monitor)
    monitor.incidents |= {one["id"]: one for one in monitor.events[7]["members"]}


def test_a_large_event_is_one_line_among_the_incidents(opened, monitor):
    stop_gateway(monitor)
    page = opened("#/incidents")
    expect(page.locator(".card")).to_have_count(4)  # the event, and the three incidents that are not in it
    expect(page.locator(".card").first).to_contain_text(TITLE)
    page.get_by_role("button", name="Acknowledge").first.click()
    expect(page.locator(".card").first).to_contain_text("acknowledged by ana")
    assert ("POST", "/events/7/acknowledge", {}) in monitor.calls
    page.locator(".card").first.get_by_role("link").click()
    expect(page.locator("h1")).to_have_text(TITLE)


def test_an_event_that_becomes_large_while_it_is_watched_is_gathered(opened, monitor):
    page = opened("#/incidents")
    expect(page.locator(".card")).to_have_count(3)
    stop_gateway(monitor)
    for incident in monitor.events[7]["members"]:
        monitor.push("incident", incident)
    expect(page.locator(".card")).to_have_count(4)
    expect(page.locator(".card").first).to_contain_text("30 of 30 incidents open")
    monitor.events[7]["open_count"] = 2
    monitor.push("event", {"id": 7})
    expect(page.locator(".card").first).to_contain_text("2 of 30 incidents open")


def test_an_event_says_what_it_has_and_nothing_else(opened, monitor):
    stop_gateway(monitor)
    page = opened("#/events/7")
    expect(page.locator("ol.cards .card")).to_have_count(30)
    expect(page.locator("main")).not_to_contain_text("false")
    expect(page.locator(".suspects h2")).to_have_text("First to fall silent")


def test_maintenance_is_no_learning(opened, monitor):
    page = opened("#/?search=motor 9/load")
    row = page.locator(".windowed .row", has_text="line 2/motor 9/load")
    expect(row).to_have_attribute("data-state", "maintenance")  # line 2 is in a window
    expect(page.locator(".filter.maintenance b")).to_have_text("5")
    name = "line 2/motor 9/load"
    judged = {"signal": name, "time": data.text(data.now()), "status": "scored", "value": 1.0, "p": 0.5, "warm": True}
    monitor.push("verdicts", {"signals": {name: judged}})
    expect(row).to_have_attribute("data-state", "fine")
    later = {"signal": name, "time": data.text(data.now()), "status": "maintenance", "value": 1.0}
    monitor.push("verdicts", {"signals": {name: later}})
    expect(row).to_have_attribute("data-state", "maintenance")
    page.goto(f"{monitor.url}/{of_signal(name)}")
    expect(page.locator(".summary .state")).to_have_text("maintenance")


def test_windows_that_last_come_first(opened, monitor):
    def window(number: int, start: int, end: int) -> dict:
        hours = [data.text(data.now() + timedelta(hours=hour)) for hour in (start, end)]
        return {
            **data.WINDOW,
            "id": number,
            "pattern": f"{number}",
            "start": hours[0],
            "end": hours[1],
            "reason": "",
            "created_by": "",
        }

    monitor.windows = [window(1, -9, -8), window(2, 5, 6), window(3, -3, -2), window(4, 2, 3), window(5, -1, 1)]
    page = opened("#/maintenance")
    expect(page.locator(".card .title")).to_have_text(["5", "4", "2", "3", "1"])
    expect(page.locator(".card .tag").last).to_have_text("over")
    page.locator(".card").last.get_by_role("button", name="Remove").click()
    expect(page.locator("dialog")).to_contain_text("The window is over")


def test_a_quarantined_signal_says_why(opened, monitor):
    name = "lab/new sensor"
    monitor.signals[name] |= {
        "quarantined": "alarm_rate must be a number, got 7",
        "alarm_rate": None,
        "last_time": None,
    }
    page = opened(of_signal(name))
    expect(page.locator(".summary")).to_contain_text("alarm_rate must be a number, got 7; configure it, reset it or")
    expect(page.locator(".charts canvas")).to_have_count(2)
    page.goto(f"{monitor.url}/#/")
    expect(page.locator(".windowed .row").first).to_contain_text("quarantined")
    expect(page.locator(".filter.quarantined b")).to_have_text("1")


def test_a_signal_that_is_not_there_appears_when_it_is(opened, monitor):
    page = opened(of_signal("no/such"))
    expect(page.locator("main")).to_contain_text("There is no signal of this name")
    expect(page.get_by_role("button", name="Reset")).to_have_count(0)
    monitor.signals["no/such"] = data.signal("no/such", data.now())
    monitor.push("signal", {"name": "no/such", "change": "created"})
    expect(page.locator(".charts canvas")).to_have_count(2)


def test_incidents_come_before_silent_signals(opened, monitor):
    monitor.signals["hall/door"]["severity"] = 99.0
    page = opened()
    expect(page.locator(".windowed .row").nth(2)).to_contain_text("hall/door")


def test_the_status_names_what_is_wrong(opened, monitor):
    quarantined = {"name": "lab/new sensor", "reason": "its state cannot be read"}
    told = {"quarantined": [quarantined], "ahead": ["hall/door"], "clock_jump": None, "clock_jumped": None}
    told |= data.status(3, data.now()) | {"outbox": {"pager": 12}}
    monitor.status = told
    page = opened("#/status")
    headings = ["Monitor", "Quarantined signals", "Signals ahead of the clock", "Sources", "Sinks", "Templates"]
    expect(page.locator(".panel h2")).to_have_text(headings)
    expect(page.get_by_role("link", name="hall/door")).to_be_visible()
    expect(page.locator(".panel", has_text="quarantined")).to_contain_text("its state cannot be read")
    expect(page.locator(".panel", has_text="Sinks")).to_contain_text("Messages waiting12")
    told |= {"quarantined": [], "ahead": []}
    page.reload()
    expect(page.locator(".panel h2")).to_have_text(["Monitor", "Sources", "Sinks", "Templates"])


def test_sinks_are_tried_out_on_the_page(opened, monitor):
    told = data.status(3, data.now())
    monitor.status = told | {"sinks": [told["sinks"][0], {**told["sinks"][0], "name": "plant mail"}]}
    monitor.failures["plant mail"] = "all recipients are refused: a@plant.example: 550 unknown"
    page = opened("#/status")
    cards = page.locator(".panel", has_text="Sinks").locator(".card")
    button = cards.first.get_by_role("button", name="Send test message")
    button.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".notice")).to_have_text("1 of 1 test message delivered")
    expect(cards.first).to_contain_text("Test message delivered at")
    expect(button).to_be_focused()  # though the panel is a new one
    assert monitor.calls == [("POST", "/sinks/test", {"name": "pager"})]
    page.get_by_role("button", name="Send test messages to all").click()
    expect(cards.last).to_contain_text("not delivered: all recipients are refused: a@plant.example: 550 unknown")
    expect(page.locator(".notice.failed")).to_have_text("1 of 2 test messages delivered")
    assert monitor.calls[-1] == ("POST", "/sinks/test", {"name": None})
    monitor.role = "write"
    page.reload()
    expect(cards).to_have_count(2)
    expect(page.get_by_role("button", name="Send test message")).to_have_count(0)


def test_words_of_the_head_are_whole_on_a_phone(opened, monitor):
    stop_gateway(monitor)
    page = opened(width=390)
    expect(page.locator("#open-count")).to_have_text("33")
    for part in (".brand", ".top nav a"):
        heights = page.eval_on_selector_all(part, "all => all.map(one => one.getBoundingClientRect().height)")
        assert max(heights) < 45, part


def test_a_level_keeps_its_name_on_a_phone(opened, monitor):
    stop_gateway(monitor)
    for name in list(monitor.signals)[5:25]:
        monitor.signals[f"plant/{name}"] = {**monitor.signals[name], "name": f"plant/{name}", "silent": True}
    page = opened("#/?view=tree", width=390)
    name = page.locator(".row.level", has_text="with an incident").locator("bdi").first
    expect(name).to_have_text("plant")
    assert name.evaluate("one => one.clientWidth === 0 || one.scrollWidth <= one.clientWidth")
    assert name.bounding_box()["width"] > 30
