"""Settings on the page: tried first, then applied; the audit as it changes; and the display on a wall."""

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright")

from tests.service.page import fake_data as data  # noqa: E402
from tests.service.page.fake_data import of_signal  # noqa: E402

pytestmark = pytest.mark.slow

expect = sync_api.expect
PUMP = "plant/pump 3/pressure"


def trial(monitor, **more):
    since, until = (data.text(monitor.now - step * data.STEP) for step in (7 * 8640, 0))
    return {
        "stage": "running", "since": since, "until": until, "done": 2000, "total": 9000, "incidents": 3, "raised": 11,
        "complete": True, "warm": True, "message": "",
    } | more  # fmt: skip


def test_what_settings_would_have_raised_is_said_before_they_are_applied(opened, monitor):
    monitor.trials = [trial(monitor), trial(monitor), trial(monitor, stage="done")]
    page = opened(of_signal(PUMP))
    page.get_by_role("button", name="Change settings").click()
    page.locator("[name=alarm_rate]").fill("1/day")
    page.get_by_label("Interval").fill("10")
    page.get_by_role("button", name="Try on stored observations").click()
    expect(page.locator(".trial")).to_have_text("Would have raised 3 incidents in the last 7 d instead of 11.")
    wanted = {"forecaster": "embedded", "preset": "full", "window": 2000, "alarm_rate": "1/day", "interval": 10}
    assert monitor.calls == [("POST", f"/signals/{PUMP}/-/trial", {"detector": wanted})]
    page.get_by_role("button", name="Apply").click()
    expect(page.locator(".notice")).to_have_text("Settings changed")
    assert monitor.calls[1] == ("PUT", f"/signals/{PUMP}", {"detector": wanted, "unit": "bar"})
    expect(page.get_by_role("button", name="Change settings")).to_be_visible()


SENTENCES = [
    "at 1/week a shift of 0.8 bar is found within 20 min in 27 of 30 cases (95% interval 74% to 97%)",
    "at 1/week a stuck sensor is found in only 3 of 30 cases (95% interval 3% to 26%)",
]


def test_what_can_be_found_is_said_when_somebody_asks(opened, monitor):
    page = opened(of_signal(PUMP))
    panel = page.locator(".panel", has_text="What can be found?")
    expect(panel).to_contain_text("Faults injected into copies of the stored past show")
    running = data.detectable("running", done=7, total=30)
    monitor.detectable = [data.detectable("running"), running, data.detectable("done", sentences=SENTENCES)]
    panel.get_by_role("button", name="Inject faults").click()
    expect(panel).to_contain_text("Injected faults at 7 of 30 places…")
    expect(panel.locator("li")).to_have_text([one[0].upper() + one[1:] for one in SENTENCES])
    assert monitor.calls == [("POST", f"/signals/{PUMP}/-/detectable", None)]
    monitor.detectable = [data.detectable("failed", message="values must change")]
    panel.get_by_role("button", name="Inject faults").click()
    expect(panel).to_contain_text("It cannot be told: values must change.")
    monitor.detectable = [running] * 1000
    panel.get_by_role("button", name="Inject faults").click()
    panel.get_by_role("button", name="End", exact=True).click()
    expect(panel).to_contain_text("Ending…")
    monitor.detectable = [data.detectable("cancelled")] * 3
    expect(panel).to_contain_text("Faults injected into copies of the stored past show")
    assert monitor.calls[-1] == ("DELETE", f"/signals/{PUMP}/-/detectable", None)


def test_a_trial_is_ended(opened, monitor):
    monitor.trials = [trial(monitor) for _ in range(1000)]
    page = opened(of_signal(PUMP))
    page.get_by_role("button", name="Change settings").click()
    page.get_by_role("button", name="Try on stored observations").click()
    expect(page.locator(".trial")).to_have_text("Judged 2,000 of 9,000 observations…")
    monitor.trials = [trial(monitor, stage="cancelled")] * 3
    page.get_by_role("button", name="End trial").click()
    expect(page.locator(".trial")).to_have_text("The trial was ended.")
    assert ("DELETE", f"/signals/{PUMP}/-/trial", None) in monitor.calls


def test_what_the_monitor_refuses_is_said(opened, monitor, complaints):
    monitor.refusal = "alarm_rate must be a number above 0 and below 0.5, got 7"
    page = opened(of_signal(PUMP))
    page.get_by_role("button", name="Change settings").click()
    page.get_by_label("Other settings").fill("{nonsense")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("alert").last).to_contain_text("must be JSON")
    page.get_by_label("Other settings").fill("{}")
    page.locator("[name=alarm_rate]").fill("7")
    for button in ("Try on stored observations", "Apply"):
        page.get_by_role("button", name=button).click()
        expect(page.get_by_role("alert").last).to_have_text(monitor.refusal)
    assert all("422" in complaint for complaint in complaints)
    complaints.clear()


def test_who_may_not_change_settings_sees_them(opened, monitor):
    monitor.role = "operate"
    page = opened(of_signal(PUMP))
    expect(page.get_by_role("heading", name="Settings")).to_be_visible()
    expect(page.get_by_role("button", name="Change settings")).to_have_count(0)


def test_the_audit_follows_what_comes(opened, monitor):
    page = opened(of_signal(PUMP))
    expect(page.locator(".audit")).to_contain_text("observed 1.2 in 100")
    page.wait_for_selector(".connection.live")
    page.get_by_role("button", name="Change settings").click()
    page.locator("[name=alarm_rate]").fill("0.5")
    audit = data.details(1)["audit"]
    monitor.details = {"audit": {**audit, "rate": 0.05, "high": 0.08, "finding": "too many", "ratio": 5.0}}
    verdict = {"signal": PUMP, "time": data.text(data.now()), "status": "scored", "value": 1.0, "p": 0.5}
    monitor.push("verdict", verdict)
    expect(page.locator(".audit.too-many")).to_contain_text("observed 5 in 100", timeout=20_000)
    expect(page.locator("[name=alarm_rate]")).to_have_value("0.5")  # what is being filled in stays


def test_a_display_on_a_wall_shows_levels_the_worst_first(opened, monitor):
    page = opened("#wall", color_scheme="light")
    expect(page.locator(".tile").first).to_contain_text("plant")
    states = page.eval_on_selector_all(".tile", "tiles => tiles.map(tile => tile.dataset.state)")
    order = ["quarantined", "incident", "silent", "maintenance", "learning", "fine"]
    assert states == sorted(states, key=order.index)
    assert states[:4] == ["incident", "silent", "maintenance", "learning"]
    expect(page.locator(".tile").first).to_contain_text("pump 3/pressure")
    expect(page.locator(".tile .number").first).to_have_text("2")
    assert page.locator("main :is(a, button, input)").count() == 0
    expect(page.locator(".top")).to_be_hidden()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(15, 20, 26)"  # dark all the same
    size = page.evaluate("parseFloat(getComputedStyle(document.querySelector('.tile .label')).fontSize)")
    assert size >= 36
    monitor.push("incident", data.incident(9, "line 1/motor 8/load", data.now(), severity=9.0))
    expect(page.locator(".tile[data-state=incident]")).to_have_count(2)
    page.goto(f"{monitor.url}/#/wall?level=plant")
    expect(page.locator(".tile")).to_have_count(2)
    page.goto(f"{monitor.url}/#/")
    expect(page.locator(".top")).to_be_visible()


def test_the_signals_of_a_template_are_found(opened, monitor):
    for number in (6, 7, 8):
        monitor.signals[f"line {number % 7}/motor {number}/load"]["template"] = "line */motor *"
    page = opened("#/status")
    expect(page.get_by_text('{"alarm_rate":"1/day"}')).to_be_visible()
    page.get_by_role("link", name="3 signals").click()
    expect(page.locator(".windowed .row")).to_have_count(3)
