"""Templates and the settings of many signals on the page: tried first, then stored and applied."""

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright")

from tests.service.page.fake_data import detectable, many_trial, template, template_detectable  # noqa: E402

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


MOTOR = "line 6/motor 6/load"
SENTENCES = [
    "at 1/week, in the median of 3 signals, a shift of between 0.8 and 0.9 bar is found within 20 min in 27 of 30 "
    f"cases (95% interval 74% to 97%); in the worst, {MOTOR}, within 65 min in 27 of 30 cases",
    "at 1/week, in the median of 3 signals, a stuck sensor is found in only 3 of 30 cases (95% interval 3% to 26%); "
    "no signal is worse",
]
OWN = "at 1/week a shift of 0.9 bar is found within 65 min in 27 of 30 cases (95% interval 74% to 97%)"


def of_template(monitor):
    """The template has signals; what was found in three of them."""
    for number in (6, 7, 8):
        monitor.signals[f"line {number % 7}/motor {number}/load"]["template"] = MOTORS
    done = {"signal": MOTOR, **detectable("done", sentences=[OWN])}
    failed = {"signal": "line 1/motor 8/load", **detectable("failed", message="values must change")}
    return done, failed, {"signal": "line 0/motor 7/load", **detectable("running", done=7, total=30)}


def test_what_a_templates_signals_find_is_said_when_somebody_asks(opened, monitor):
    done, failed, running = of_template(monitor)
    page = opened("#/status")
    card = page.locator(".card", has_text=MOTORS)
    card.get_by_text("What can be found?").click()
    expect(card).to_contain_text("Each signal takes up to two minutes.")
    last = {**running, "stage": "done"}
    monitor.detectable = [
        template_detectable("running", running),
        template_detectable("running", done, failed, running),
        template_detectable("done", done, failed, last, sentences=SENTENCES),
    ]
    card.get_by_role("button", name="Inject faults").click()
    expect(card).to_contain_text("Signal 1 of 5, line 0/motor 7/load: injected faults at 7 of 30 places…")
    expect(card).to_contain_text("Signal 3 of 5")
    expect(card.locator(".found > div > div > ul > li")).to_have_text([one[0].upper() + one[1:] for one in SENTENCES])
    expect(card).to_contain_text("From faults injected into the past of 2 of 34 signals.")
    expect(card.get_by_role("button", name="End", exact=True)).to_be_hidden()
    assert monitor.calls == [("POST", f"/templates/{MOTORS}/-/detectable", None)]
    card.get_by_text("Each signal", exact=True).click()
    expect(card.locator(".of-signal").nth(0)).to_contain_text("At 1/week a shift of 0.9 bar is found within 65 min")
    expect(card.locator(".of-signal").nth(1)).to_contain_text("It cannot be told: values must change.")
    card.get_by_role("link", name=MOTOR).click()
    expect(page.get_by_role("heading", name=MOTOR)).to_be_visible()


def test_faults_in_a_templates_signals_go_on_unseen_and_are_ended(opened, monitor):
    done, _, running = of_template(monitor)
    monitor.detectable = [template_detectable("running", done, running)] * 1000
    page = opened("#/status")
    card = page.locator(".card", has_text=MOTORS)
    card.get_by_text("What can be found?").click()
    expect(card).to_contain_text("Signal 2 of 5")
    assert monitor.calls == []  # somebody else began it
    card.get_by_text("What can be found?").click()
    expect(card.get_by_text("Signal 2 of 5")).to_be_hidden()
    card.get_by_text("What can be found?").click()
    card.get_by_role("button", name="End", exact=True).click()
    expect(card).to_contain_text("Ending…")
    cancelled = template_detectable("cancelled", done, {**running, "stage": "cancelled"}, sentences=SENTENCES[1:])
    monitor.detectable = [cancelled] * 3
    expect(card).to_contain_text("of 1 of 34 signals. It was ended before all 5 were tried.")
    assert monitor.calls == [("DELETE", f"/templates/{MOTORS}/-/detectable", None)]
    monitor.detectable = []
    monitor.role = "read"
    page.reload()
    card.get_by_text("What can be found?").click()
    expect(card).to_contain_text("Each signal takes up to two minutes.")
    expect(card.get_by_role("button")).to_have_count(0)


def test_what_cannot_be_told_of_a_template_is_said(opened, monitor, complaints):
    of_template(monitor)
    page = opened("#/status")
    card = page.locator(".card", has_text=MOTORS)
    card.get_by_text("What can be found?").click()
    monitor.refusal = "2 trials run already: wait for one of them, or end it"
    card.get_by_role("button", name="Inject faults").click()
    expect(card).to_contain_text(monitor.refusal)
    expect(card.get_by_role("button", name="Inject faults")).to_be_enabled()
    assert all("422" in complaint for complaint in complaints)
    complaints.clear()
