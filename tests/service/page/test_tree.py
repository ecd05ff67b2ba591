"""Signals by level, what can be done with many of them, and views that are saved."""

import re

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright")

from tests.service.page import fake_data as data  # noqa: E402

pytestmark = pytest.mark.slow

expect = sync_api.expect
PUMP = "plant/pump 3/pressure"


def rows(page) -> list[str]:
    """The rows in their order on the screen, levels with a slash at their end."""
    return page.eval_on_selector_all(
        ".windowed .row",
        """rows => rows.sort((a, b) => a.ariaPosInSet - b.ariaPosInSet).map(row =>
            row.querySelector('.name').textContent + (row.classList.contains('level') ? '/' : ''))""",
    )


@pytest.fixture
def plant(monitor):
    """Two lines with 50 pumps each, one of which has an incident, beside a small hall."""
    monitor.signals.clear()
    monitor.incidents.clear()
    names = [f"plant/line {line}/pump {pump:02}" for line in (1, 2) for pump in range(50)]
    for name in [*names, "hall/door", "hall/gate", "alone"]:
        monitor.signals[name] = data.signal(name, monitor.now)
    monitor.incidents[1] = data.incident(1, "plant/line 2/pump 07", monitor.now)
    monitor.incidents[2] = data.incident(2, "plant/line 2/pump 09", monitor.now)
    monitor.signals["hall/gate"]["silent"] = True
    return monitor


def test_levels_show_the_worst_first_and_how_many(opened, plant):
    page = opened("#/?view=tree")
    expect(page.locator(".row.level")).to_have_count(2)
    assert rows(page) == ["plant/", "hall/", "gate", "door", "alone"]
    expect(page.locator(".row.level .counts").nth(0)).to_have_text("2 with an incident, 100 in all")
    expect(page.locator(".row.level .counts").nth(1)).to_have_text("1 silent, 2 in all")
    page.get_by_role("button", name="plant").click()
    assert rows(page)[:4] == ["plant/", "line 2/", "line 1/", "hall/"]
    plant.push("incident", data.incident(1, "plant/line 2/pump 07", plant.now, open=False, ended="returned"))
    expect(page.locator(".row.level .counts").nth(0)).to_have_text("1 with an incident, 100 in all")


def test_the_tree_by_keyboard(opened, plant):
    page = opened("#/?view=tree")
    page.wait_for_selector(".row.level")
    page.keyboard.press("j")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.textContent.trim()").endswith("line 2")
    page.keyboard.press("Enter")
    expect(page.locator(".row .name", has_text="pump 07")).to_be_visible()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.textContent") == "pump 07"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert rows(page)[:4] == ["plant/", "line 2/", "line 1/", "hall/"]
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert rows(page)[:2] == ["plant/", "hall/"]


def test_a_level_alone_and_back(opened, plant):
    page = opened("#/?view=tree")
    page.get_by_role("link", name="only this: plant").click()
    expect(page.locator(".filter.all b")).to_have_text("100")
    page.wait_for_url(re.compile("level=plant"))
    assert rows(page) == ["line 2/", "line 1/"]
    page.get_by_role("button", name="List", exact=True).click()
    expect(page.locator(".row.level")).to_have_count(0)
    assert rows(page)[0] == "plant/line 2/pump 07"
    page.reload()
    expect(page.locator(".path")).to_have_text("All signalsplant")
    page.get_by_role("link", name="All signals").click()
    expect(page.locator(".filter.all b")).to_have_text("103")
    page.go_back()
    expect(page.locator(".filter.all b")).to_have_text("100")


def test_a_search_opens_what_it_finds(opened, plant):
    page = opened("#/?view=tree")
    page.wait_for_selector(".row.level")
    page.fill("input[type=search]", "line 1/pump 49")
    expect(page.locator(".windowed .row")).to_have_count(1)
    assert rows(page) == ["plant/line 1/pump 49"]  # levels for one signal are left out
    page.fill("input[type=search]", "pump 4")
    expect(page.locator(".row.level")).to_have_count(3)
    assert rows(page)[:3] == ["plant/", "line 1/", "pump 04"]


def test_views_are_saved_opened_and_removed(opened, plant):
    page = opened("#/?view=tree&level=plant&filter=incidents")
    page.wait_for_selector(".row.level")
    page.get_by_role("button", name="Views").click()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("dialog")).to_be_visible()  # it needs a name
    page.get_by_label("Save what is shown as").fill("night shift")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("dialog")).to_have_count(0)
    page.goto(f"{plant.url}/#/status")
    page.reload()
    page.get_by_role("button", name="Views").click()
    page.get_by_role("link", name="night shift").click()
    page.wait_for_url(re.compile("level=plant"))
    expect(page.locator(".path")).to_have_text("All signalsplant")
    expect(page.locator(".filter.incidents")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Views").click()
    page.get_by_role("button", name="Remove night shift").click()
    expect(page.locator("dialog")).to_contain_text("None saved yet.")


def test_what_is_shown_is_acknowledged_at_once(opened, plant):
    page = opened("#/?filter=incidents")
    expect(page.locator(".windowed .row")).to_have_count(2)
    expect(page.locator(".choose").first).to_be_hidden()
    page.get_by_role("button", name="Select", exact=True).click()
    expect(page.locator(".bulk")).to_contain_text("All 2 signals shown")
    page.get_by_role("button", name="Acknowledge…").click()
    expect(page.locator("dialog h2")).to_have_text("Acknowledge 2 open incidents of 2 signals")
    page.locator("dialog").get_by_role("button", name="Acknowledge", exact=True).click()
    expect(page.locator(".notice")).to_have_text("Acknowledge: 2 done")
    names = ["plant/line 2/pump 07", "plant/line 2/pump 09"]
    assert plant.calls == [("POST", "/bulk/incidents", {"signals": names, "acknowledge": {"note": None}})]
    expect(page.locator(".windowed small").first).to_contain_text("acknowledged")


def test_a_level_is_selected_and_what_fails_is_said(opened, plant):
    plant.failures["hall/gate"] = "it is quarantined"
    page = opened("#/?view=tree")
    page.get_by_role("button", name="Select", exact=True).click()
    page.get_by_label("Select hall", exact=True).check()
    page.get_by_label("Select alone").check()
    expect(page.locator(".bulk")).to_contain_text("3 signals selected")
    expect(page.get_by_label("Select hall/door")).to_be_checked()
    page.get_by_label("Select hall/door").uncheck()
    expect(page.get_by_label("Select hall", exact=True)).not_to_be_checked()
    page.get_by_role("button", name="Reset…").click()
    expect(page.locator("dialog h2")).to_have_text("Reset 2 signals")
    page.get_by_role("button", name="Reset 2 signals").click()
    expect(page.locator("dialog h2")).to_have_text("1 item failed")
    expect(page.locator("dialog li")).to_have_text("hall/gate: it is quarantined")
    ((_, path, body),) = plant.calls
    assert (path, sorted(body["signals"]), body["reset"]) == ("/bulk/signals", ["alone", "hall/gate"], True)


def test_the_other_actions_ask_for_what_they_need(opened, plant):
    page = opened("#/?search=hall")
    page.get_by_role("button", name="Select", exact=True).click()
    page.get_by_role("button", name="Maintenance…").click()
    page.get_by_label("Reason").fill("new locks")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator(".notice")).to_have_text("Maintenance: 2 done")
    page.get_by_role("button", name="Settings…").click()
    page.get_by_label("Other settings").fill("{")
    page.get_by_role("button", name="Change 2 signals").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("must be JSON")
    page.get_by_label("Other settings").fill('{"alarm_rate": "1/day"}')
    page.get_by_role("button", name="Change 2 signals").click()
    expect(page.locator(".notice").last).to_have_text("Settings: 2 done")
    for action in ("Acknowledge…", "Snooze…", "Label…"):
        page.get_by_role("button", name=action).click()
        expect(page.locator(".notice").last).to_have_text("None of these signals has an open incident")
        expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("searchbox").fill("pump 07")
    page.get_by_role("button", name="Snooze…").click()
    page.get_by_label("1 day").check()
    page.get_by_role("button", name="Snooze", exact=True).click()
    page.get_by_role("button", name="Label…").click()
    page.get_by_label("Expected").check()
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".notice").last).to_have_text("Label: 1 done")
    (_, where, window), (_, _, settings), (_, _, snooze), (_, _, label) = plant.calls
    assert (where, window["reason"]) == ("/bulk/maintenance", "new locks")
    assert settings["settings"] == {"detector": {"alarm_rate": "1/day"}}
    assert snooze["snooze"] == {"seconds": 86400}
    assert label["label"]["label"] == "expected"


def test_who_only_reads_selects_nothing(opened, plant):
    plant.role = "read"
    page = opened()
    page.wait_for_selector(".windowed .row")
    expect(page.get_by_role("button", name="Select", exact=True)).to_have_count(0)
