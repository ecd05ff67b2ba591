"""Events on the page: one line on the overview, one acknowledgement, and where to look first."""

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright")

from tests.service.page import fake_data as data  # noqa: E402

pytestmark = pytest.mark.slow

expect = sync_api.expect
TITLE = "source gateway stopped: 30 signals silent"


def stopped(monitor, count: int = 30) -> dict:
    """A source that stopped, as the monitor tells it."""
    members = [
        data.incident(
            100 + number, f"line {number % 7}/motor {number}/load", data.now() + number * data.STEP / 10,
            kind="silence", severity=None, explanation=None, event=7,
        )
        for number in range(count)
    ]  # fmt: skip
    suspects = [
        {
            "signal": members[number]["signal"], "start": members[number]["start"],
            "seconds_after_first": float(number),
            "past_incidents": 4 * number, "together": [{"signal": members[0]["signal"], "times": 3}] if number else [],
        }
        for number in range(2)
    ]  # fmt: skip
    return data.event(7, TITLE, members, suspects=suspects)


def test_an_event_is_one_line_with_one_acknowledgement(opened, monitor):
    monitor.events[7] = stopped(monitor)
    monitor.events[8] = data.event(8, "alone", [monitor.incidents[2]])  # it is among the signals already
    page = opened()
    card = page.locator(".events .card")
    expect(card).to_have_count(1)
    expect(card.locator(".title")).to_have_text(TITLE)
    expect(card).to_contain_text("first line 0/motor 0/load")
    expect(card).to_contain_text("30 of 30 incidents open")
    card.get_by_role("button", name="Acknowledge").click()
    expect(card).to_contain_text("acknowledged by ana")
    assert ("POST", "/events/7/acknowledge", {}) in monitor.calls
    card.get_by_role("button", name="Unacknowledge").click()
    expect(card.get_by_role("button", name="Acknowledge", exact=True)).to_be_visible()
    assert ("DELETE", "/events/7/acknowledge", None) in monitor.calls


def test_events_come_and_go_live(opened, monitor):
    page = opened()
    page.wait_for_selector(".connection.live")
    expect(page.locator(".events")).to_be_hidden()
    monitor.events[7] = stopped(monitor)
    monitor.push("event", {"id": 7})
    expect(page.locator(".events .card")).to_have_count(1)
    monitor.events.clear()
    monitor.push("event", {"id": 7})
    expect(page.locator(".events")).to_be_hidden()


def test_one_event_with_its_members_and_where_to_look_first(opened, monitor):
    monitor.events[7] = stopped(monitor)
    page = opened("#/events/7")
    expect(page.locator("h1")).to_have_text(TITLE)
    expect(page.locator("ol.cards .card")).to_have_count(30)
    first, second = page.locator(".suspects li").all()
    expect(first).to_have_text("line 0/motor 0/load first")
    expect(second).to_contain_text("1 s later; in 3 of its last 4 incidents, line 0/motor 0/load moved too")
    expect(page.locator(".suspects")).to_contain_text("They do not show the cause.")
    monitor.events[7]["title"] = "source gateway stopped: 31 signals silent"
    monitor.push("event", {"id": 7})
    expect(page.locator("h1")).to_have_text("source gateway stopped: 31 signals silent")


def test_an_event_of_alarms_says_which_signal_moved_first(opened, monitor):
    told = stopped(monitor, 3) | {"kind": "alarm", "signals": 3}
    for number, suspect in enumerate(told["suspects"]):
        suspect["signal"] = f"line {number}"
    monitor.events[7] = told
    began = {"signal": "line 1", "earliest": told["start"], "latest": told["start"], "score": 4.25, "needed_by": []}
    monitor.causes = {"text": "first: line 1, at least 4 min before the rest (p = 0.01)", "signals": [began]}
    page = opened("#/events/7")
    expect(page.locator(".suspects p").first).to_have_text(monitor.causes["text"])
    first, second = page.locator(".suspects li").all()
    expect(first).to_contain_text("went 4.3 times its usual spread; noticed 1 s later")
    expect(second).to_have_text("line 0 first")


def test_what_others_depend_on_says_so(opened, monitor):
    told = stopped(monitor, 3) | {"kind": "alarm", "signals": 3}
    monitor.events[7] = told
    names = [one["signal"] for one in told["suspects"]]
    began = {"earliest": told["start"], "latest": told["start"], "score": None}
    movers = [began | {"signal": names[1], "needed_by": names[:1]}, began | {"signal": names[0], "needed_by": []}]
    monitor.causes = {"text": "cannot tell", "signals": movers}
    page = opened("#/events/7", width=390)
    expect(page.locator(".suspects li").first).to_contain_text(f"; {names[0]} depends on it; noticed 1 s later")
    expect(page.locator(".suspects li").nth(1)).to_contain_text("; noticed first")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    movers[0]["needed_by"] = ["a", "b"]
    page.reload()
    expect(page.locator(".suspects li").first).to_contain_text("; 2 others depend on it")


def test_an_event_is_shown_when_its_signals_cannot_be_compared(opened, monitor, complaints):
    monitor.events[7] = stopped(monitor, 3) | {"kind": "alarm", "signals": 3}
    monitor.causes = None
    page = opened("#/events/7")
    while not complaints:  # the browser reports the failed request
        page.wait_for_timeout(20)
    complaints.clear()
    expect(page.locator(".suspects li")).to_have_count(2)


def test_who_may_only_read_cannot_acknowledge(opened, monitor):
    monitor.events[7] = stopped(monitor)
    monitor.role = "read"
    page = opened()
    expect(page.locator(".events .card")).to_have_count(1)
    expect(page.locator(".events button")).to_have_count(0)
