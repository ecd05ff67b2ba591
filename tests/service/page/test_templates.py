"""Templates and the settings of many signals on the page: tried first, then stored and applied."""

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright")

from tests.service.page.fake_data import many_trial, template  # noqa: E402

pytestmark = pytest.mark.slow

expect = sync_api.expect
MOTORS = "line */motor *"
WEEK = "Would have raised 7 incidents in the last 7 days instead of 18."


def dialog_of(page, button):
    page.get_by_role("button", name=button, exact=True).click()
    return page.get_by_role("dialog")


def test_templates_say_where_they_are_from(opened, monitor):
    of_file = {"match": "pump/*", "detector": {"gap": 4}}
    monitor.templates += [
        template(
            "pump/*", detector={"gap": 5}, unit="bar", every=60, peers=True, stored=True, file=of_file, changed_by="ana"
        ),
        template("door", stored=True, problem="colour: Extra inputs are not permitted"),
    ]
    page = opened("#/status")
    cards = page.locator("section", has=page.get_by_role("heading", name="Templates")).locator(".card")
    expect(cards).to_have_count(3)
    expect(cards.nth(0)).to_contain_text("From the file")
    expect(cards.nth(1)).to_contain_text("by ana, in place of the file's")
    expect(cards.nth(1)).to_contain_text('{"gap":5} · bar · mean over 1 min · compared with each other')
    expect(cards.nth(2)).to_contain_text("Not in force: colour")
    monitor.role = "write"
    page.reload()
    expect(cards).to_have_count(3)
    expect(cards.get_by_role("button")).to_have_count(0)
    expect(page.get_by_role("button", name="Add a template…")).to_have_count(0)


def test_a_template_is_tried_stored_and_applied_to_the_signals_chosen(opened, monitor):
    names = [f"line 1/motor {number}/load" for number in range(12)]
    monitor.affected = {"signals": names, "own": ["line 2/motor 9/load"]}
    monitor.failures = {names[11]: "alarm_rate='1/week' is a budget over time"}
    monitor.trials = [many_trial(stage="running", tried=3, done=5000), many_trial()]
    page = opened("#/status")
    dialog = dialog_of(page, f"Change {MOTORS}")
    expect(dialog.get_by_label("Pattern")).to_have_value(MOTORS)
    expect(dialog.get_by_label("Pattern")).not_to_be_editable()
    expect(dialog.get_by_text("Matches 34 signals now")).to_be_visible()
    expect(dialog.get_by_label("Alarm rate")).to_have_value("1/day")
    dialog.get_by_label("Alarm rate").fill("1/week")
    dialog.get_by_label("Silent after").fill("600")
    dialog.get_by_label("Apply it to those that still have their template's settings").check()
    dialog.get_by_role("button", name="Save").click()  # not yet: what it would change is shown first
    result = dialog.locator(".trial")
    expect(result).to_contain_text(WEEK)
    expect(result).to_contain_text("Tried on 20 of 340 signals.")
    expect(result.get_by_role("listitem")).to_have_text(
        ["plant/pump 3/pressure: 1 instead of 9", "hall/door: 2 instead of 5"]
    )
    expect(result).to_contain_text("press “Save” once more")
    wanted = {"match": MOTORS, "detector": {"alarm_rate": "1/week"}, "silent_after": 600}
    assert monitor.calls == [("POST", "/trials", {"pattern": "*", "template": wanted, "own": False})]
    dialog.get_by_role("button", name="Save").click()
    failed = page.get_by_role("dialog", name="1 item failed")
    expect(failed).to_contain_text("is a budget over time")
    failed.get_by_role("button", name="Close").click()
    bulk = [("POST", "/bulk/signals", {"signals": some, "template": True}) for some in (names[:10], names[10:])]
    assert monitor.calls[1:] == [("POST", "/templates", wanted), *bulk]
    expect(page.get_by_role("heading", name="Templates")).to_be_focused()
    expect(page.get_by_text("by ana, in place of the file's")).to_be_visible()


def test_what_was_tried_is_what_is_applied(opened, monitor):
    monitor.affected = {"signals": ["a"], "own": ["b"]}
    monitor.trials = [many_trial() for _ in range(3)]
    page = opened("#/status")
    dialog = dialog_of(page, f"Change {MOTORS}")
    dialog.get_by_label("Apply it to all of them").check()
    dialog.get_by_role("button", name="Try on stored observations").click()
    expect(dialog.locator(".trial")).to_contain_text(WEEK)
    dialog.get_by_label("Alarm rate").fill("1/year")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.locator(".trial")).to_contain_text("once more")
    assert [path for _, path, _ in monitor.calls] == ["/trials", "/trials"]
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    monitor.wait_for_call("POST", "/bulk/signals", {"signals": ["a", "b"], "template": True})


def test_a_new_template_has_every_field_and_refusals_are_said_in_the_dialog(opened, monitor, complaints):
    page = opened("#/status")
    dialog = dialog_of(page, "Add a template…")
    dialog.get_by_label("Pattern").fill("plant/*")
    expect(dialog.get_by_text("Matches 2 signals now")).to_be_visible()
    dialog.get_by_label("Features").fill("x\ny, z\n")
    dialog.get_by_label("Aggregate over").fill("1min")
    dialog.get_by_label("Aggregate by").select_option("max")
    dialog.get_by_label("The signals should behave alike").check()
    dialog.get_by_label("Unit").fill("bar")
    monitor.refusal = "detector: alarm_rate must be a number above 0 and below 0.5, got 7"
    dialog.get_by_label("Alarm rate").fill("7")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_have_text(monitor.refusal)
    monitor.refusal = None
    dialog.get_by_label("Alarm rate").fill("0.01")
    dialog.get_by_role("button", name="Save").click()
    expect(page.locator(".notice")).to_have_text("Template saved")
    wanted = {"match": "plant/*", "detector": {"alarm_rate": 0.01}, "unit": "bar", "features": ["x", "y, z"]}
    monitor.wait_for_call("POST", "/templates", {**wanted, "every": "1min", "aggregate": "max", "peers": True})
    assert len(complaints) == 1
    complaints.clear()  # the browser tells of the refusal, too
    page.get_by_role("button", name="Remove plant/*", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page.get_by_role("button", name="Remove plant/*", exact=True)).to_have_count(0)
    monitor.wait_for_call("DELETE", "/templates/plant/*")


def test_the_files_template_is_used_again(opened, monitor):
    of_file = {key: value for key, value in monitor.templates[0].items() if key not in ("stored", "file", "problem")}
    of_file = {key: value for key, value in of_file.items() if not key.startswith("changed")}
    monitor.templates = [template(MOTORS, detector={"gap": 5}, stored=True, file=of_file)]
    monitor.trials = [many_trial(stage="cancelled", tried=4, complete=False)]
    page = opened("#/status")
    button = page.get_by_role("button", name=f"Use the file's again {MOTORS}")
    button.click()
    page.keyboard.press("Escape")
    expect(button).to_be_focused()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text('{"alarm_rate":"1/day"}')
    dialog.get_by_role("button", name="Try on stored observations").click()
    expect(dialog.locator(".trial")).to_contain_text("Tried on 4 of 340 signals. The trial was ended.")
    monitor.wait_for_call("POST", "/trials", {"pattern": "*", "template": of_file, "own": True})
    dialog.get_by_role("button", name="Use the file's again").click()
    expect(page.get_by_text("From the file")).to_be_visible()
    monitor.wait_for_call("DELETE", f"/templates/{MOTORS}")


def test_settings_of_many_have_the_same_form_and_trial(opened, monitor):
    monitor.trials = [
        many_trial(stage="running"),
        many_trial(signals=2, chosen=2, tried=1, complete=False, failed=[{"signal": "a", "error": "too large"}]),
    ]
    page = opened("#/?search=pump")
    page.get_by_role("button", name="Select", exact=True).click()
    page.get_by_role("button", name="Settings…").click()
    dialog = page.get_by_role("dialog", name="Settings of 2 signals")
    dialog.get_by_role("button", name="Change 2 signals").click()
    expect(dialog.get_by_role("alert")).to_have_text("Fill in at least one setting.")
    dialog.get_by_label("Alarm rate").fill("0.001")
    dialog.get_by_role("button", name="Try on stored observations").click()
    expect(dialog.locator(".trial")).to_contain_text("Tried on 1 of 2 signals. It reached the limit of a trial")
    expect(dialog.locator(".trial")).to_contain_text("1 signal cannot have these settings, such as a: too large.")
    names = ["plant/pump 3/pressure", "plant/pump 4/vibration"]
    assert monitor.calls == [("POST", "/trials", {"signals": names, "detector": {"alarm_rate": 0.001}})]
    dialog.get_by_label("Unit").fill("bar")
    dialog.get_by_role("button", name="Change 2 signals").click()
    expect(page.locator(".notice")).to_have_text("Settings: 2 done")
    change = {"signals": names, "settings": {"detector": {"alarm_rate": 0.001}, "unit": "bar"}}
    monitor.wait_for_call("POST", "/bulk/signals", change)
    page.get_by_role("button", name="Settings…").click()
    dialog.get_by_label("Silent after").fill("60")
    dialog.get_by_role("button", name="Change 2 signals").click()
    expect(dialog).to_have_count(0)
    monitor.wait_for_call("POST", "/bulk/signals", {"signals": names, "settings": {"silent_after": 60}})


def test_a_template_is_changed_with_the_keyboard_alone(opened, monitor):
    page = opened("#/status")
    change = page.get_by_role("button", name=f"Change {MOTORS}", exact=True)
    expect(change).to_be_visible()
    change.focus()
    page.keyboard.press("Enter")
    reached = []

    def tab_to(name):
        for _ in range(20):
            page.keyboard.press("Tab")
            reached.append(page.evaluate("document.activeElement.name || document.activeElement.textContent"))
            if reached[-1] == name:
                return
        raise AssertionError(f"{name} is not reached: {reached}")

    for name in ("alarm_rate", "interval", "silent_after", "unit", "others", "features", "every", "aggregate"):
        tab_to(name)
    tab_to("apply")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_label("Apply it to those that still have their template's settings")).to_be_checked()
    page.keyboard.press("ArrowUp")
    tab_to("Try on stored observations")
    tab_to("Cancel")
    tab_to("Save")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Templates")).to_be_focused()
    assert monitor.calls == [("POST", "/templates", {"match": MOTORS, "detector": {"alarm_rate": "1/day"}})]
