"""The page in a real browser, against a monitor that only pretends."""

import re
from datetime import datetime, timedelta

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright")

from tests.service.page import fake_data as data  # noqa: E402
from tests.service.page.fake_data import of_signal  # noqa: E402

pytestmark = pytest.mark.slow

expect = sync_api.expect
PUMP = "plant/pump 3/pressure"


def latest(monitor, name: str, value: float, p: float, alarm: bool = False) -> dict:
    time = data.text(data.now() + timedelta(seconds=5))
    return {"signal": name, "time": time, "status": "scored", "value": value, "p": p, "alarm": alarm, "forecast": 40.0,
            "low": 37.0, "high": 43.0, "warm": True, "incident": None, "message": None}  # fmt: skip


def names(page) -> list[str]:
    """The names of the rows in their order on the screen."""
    return page.eval_on_selector_all(
        ".windowed .row",
        """rows => rows.sort((a, b) => a.ariaPosInSet - b.ariaPosInSet)
            .map(row => row.querySelector('.name').textContent)""",
    )


def test_overview_shows_what_needs_somebody_first(opened, monitor):
    page = opened()
    expect(page.locator(".row[data-state=incident]")).to_have_count(2)
    first = names(page)
    assert first[:2] == [PUMP, "plant/pump 4/vibration"]
    assert first[2] == "hall/door"
    rest = [monitor.signals[name]["severity"] for name in first[3:]]
    assert rest == sorted(rest, reverse=True)
    expect(page.locator(".filter.incidents b")).to_have_text("2")
    expect(page.locator(".filter.silent b")).to_have_text("1")
    page.click(".filter.warming-up")
    expect(page.locator(".windowed .row")).to_have_count(1)
    expect(page.locator(".windowed small")).to_have_text("learning, 120 of 512")
    assert page.title() == "(3) Signals · Tocsin"


def test_signals_come_by_p_as_the_rows_show_it_or_by_name(opened, monitor):
    monitor.signals["line 1/motor 15/load"] |= {"p": 0.0004, "severity": 1.0}
    monitor.signals["line 1/motor 8/load"] |= {"p": 0.0004, "severity": 1.5}
    monitor.signals["line 2/motor 9/load"] |= {"p": 0.3, "severity": 7.0}
    found = {"kind": "range", "severity": None, "p": None, "explanation": "191 bar, valid is at most 150 bar"}
    monitor.incidents[5] = data.incident(5, "line 3/motor 10/load", data.now(), **found)
    page = opened()
    expect(page.locator(".row[data-state=incident]")).to_have_count(3)
    first = names(page)
    assert first[:4] == ["line 3/motor 10/load", PUMP, "plant/pump 4/vibration", "hall/door"]
    assert first[4:6] == ["line 1/motor 8/load", "line 1/motor 15/load"]
    rest = [monitor.signals[name]["p"] for name in first[4:]]
    assert rest == sorted(rest)
    page.get_by_role("button", name="By name").click()
    page.wait_for_url(re.compile("sort=name"))
    page.reload()
    page.wait_for_selector(".windowed .row")
    plain = names(page)
    assert plain.index("line 1/motor 8/load") < plain.index("line 1/motor 15/load") < plain.index("line 2/motor 9/load")
    page.get_by_role("button", name="Tree", exact=True).click()
    assert [name for name in names(page) if name.startswith("line")][:2] == ["line 0", "line 1"]
    page.get_by_role("button", name="By name").click()
    assert names(page)[:2] == ["line 3", "motor 10/load"]
    page.get_by_role("button", name="List", exact=True).click()
    assert names(page)[:3] == first[:3]


def test_search_narrows_the_list_and_stays_in_the_address(opened):
    page = opened()
    page.wait_for_selector(".windowed .row")
    page.keyboard.press("/")
    page.keyboard.type("pump PRESS")
    expect(page.locator(".windowed .row")).to_have_count(2)
    page.reload()
    expect(page.locator(".windowed .row")).to_have_count(2)
    assert page.input_value("input[type=search]") == "pump PRESS"


def test_verdicts_and_incidents_arrive_live(opened, monitor):
    page = opened()
    page.wait_for_selector(".connection.live")
    name = "line 1/motor 8/load"
    monitor.push("verdicts", {"signals": {name: latest(monitor, name, 123.4, 0.5)}})
    row = page.locator(".row", has=page.get_by_text(name, exact=True))
    expect(row.locator(".value")).to_have_text("123.4 bar")
    monitor.push("incident", data.incident(9, name, data.now(), severity=9.0))
    expect(row).to_have_attribute("aria-posinset", "1")
    expect(row.locator(".state")).to_have_text("incident")
    expect(page.locator("#open-count")).to_have_text("4")
    monitor.push("signal", {"name": name, "change": "removed"})
    expect(row).to_have_count(0)


def test_disconnected_banner_and_recovery(opened, monitor, complaints):
    page = opened()
    page.wait_for_selector(".connection.live")
    name = "line 1/motor 8/load"
    monitor.push("verdicts", {"signals": {name: latest(monitor, name, 1.0, 0.5)}})
    row = page.locator(".row", has=page.get_by_text(name, exact=True))
    expect(row.locator(".value")).to_have_text("1 bar")
    monitor.cut()
    expect(page.locator("#banner")).to_contain_text(re.compile(r"Disconnected since .*\d\d:\d\d:\d\d, trying again"))
    assert page.evaluate("getComputedStyle(document.querySelector('.row .value')).opacity") == "0.5"
    monitor.push("verdicts", {"signals": {name: latest(monitor, name, 2.0, 0.5)}})
    monitor.reachable = True
    page.click("#banner button")
    expect(page.locator("#banner")).to_be_hidden()
    expect(row.locator(".value")).to_have_text("2 bar")  # what was missed is made up for
    assert monitor.asked[-1][0] == "run-1"
    assert all("ERR_" in complaint for complaint in complaints)
    complaints.clear()


def test_reset_loads_everything_anew(opened, monitor):
    page = opened()
    page.wait_for_selector(".connection.live")
    made = data.signal("quite new", data.now())
    monitor.signals[made["name"]] = made
    monitor.push("reset", {})
    expect(page.locator(".filter.all b")).to_have_text("40")


def test_signal_page_draws_and_says(opened, monitor):
    page = opened(of_signal("plant/pump 4/vibration"))
    expect(page.locator(".charts canvas")).to_have_count(3)  # two features and p
    expect(page.locator(".panels canvas")).to_have_count(1)
    expect(page.locator(".audit")).to_have_text(
        "as promised, 1.2 times the promised incidents: promised 1 in 100, observed 1.2 in 100 since observation 383 "
        "(between 0.8 and 1.7)"
    )
    expect(page.locator(".interval .seen")).to_have_count(1)
    expect(page.locator(".card")).to_have_count(1)
    drawn = page.evaluate(
        """[...document.querySelectorAll('.chart canvas')].map(canvas => {
            const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
            return new Set(new Uint32Array(pixels.buffer)).size;
        })"""
    )
    assert min(drawn) > 20  # colours: lines, bands, text


def test_signal_page_says_what_is_estimated(opened, monitor):
    monitor.signals[PUMP]["observations"] = 700
    page = opened(of_signal(PUMP))
    expect(page.get_by_text("estimated until observation 1,032")).to_be_visible()


def test_an_incident_that_a_budget_withholds_says_so(opened, monitor):
    monitor.change_incident(4, withheld=True)
    page = opened("#/incidents/4")
    expect(page.get_by_text("not reported")).to_be_visible()


def test_signal_page_goes_on_live_and_zooms(opened, monitor):
    page = opened(of_signal(PUMP))
    page.wait_for_selector(".charts canvas")
    assert monitor.asked[-1][1] == [PUMP]
    expect(page.locator(".readout").last).not_to_contain_text("alarm")
    before = red_pixels(page)
    monitor.push("verdict", latest(monitor, PUMP, 77.25, 0.0004, alarm=True))
    expect(page.locator(".readout").first).to_contain_text("77.25 bar")
    expect(page.locator(".readout").last).to_contain_text("alarm")
    whole = red_pixels(page)
    assert whole > before + 20  # one more triangle
    box = page.locator(".charts .u-over").first.bounding_box()
    page.mouse.move(box["x"] + 100, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + 300, box["y"] + 50, steps=4)
    page.mouse.up()
    page.mouse.move(5, 5)
    # The alarms are out of sight, in the chart of p too: all zoom together.
    eventually(page, lambda: red_pixels(page) < 0.8 * whole)
    page.keyboard.press("z")
    # As before: this monitor does not store what it pushes.
    eventually(page, lambda: red_pixels(page) == pytest.approx(before, rel=0.05))


def eventually(page, happens) -> None:
    """Wait until something is true of what is drawn."""
    for _ in range(750):
        if happens():
            return
        page.wait_for_timeout(40)
    raise AssertionError("it did not happen")


def red_pixels(page, where: str = "0, 0, canvas.width, canvas.height", chart: int = -1) -> int:
    """How much of a chart, that of p, has the colour of alarms: the triangles, or the bars of stretches."""
    return page.evaluate(
        """chart => {
            const canvas = [...document.querySelectorAll('.charts canvas')].at(chart);
            const { data } = canvas.getContext('2d').getImageData(WHERE);
            let red = 0;
            for (let at = 0; at < data.length; at += 4) {
                red += data[at] > 150 && data[at + 1] < 80 && data[at + 3] > 200;
            }
            return red;
        }""".replace("WHERE", where),
        chart,
    )


def test_an_incident_says_what_was_seen_and_how_rare_it_is(opened, monitor):
    page = opened("#/incidents/3")
    seen = "flow: has not moved for 32 observations"
    expect(page.locator(".lead")).to_contain_text(f"{seen}; 7 alarms so far")
    facts = page.locator(".facts")
    expect(facts).to_contain_text(seen)
    expect(facts).to_contain_text("movement")
    expect(facts).to_contain_text("about once in 24 hours")
    page.goto(f"{monitor.url}/#/incidents/4")
    expect(page.locator(".lead")).to_contain_text("no observation for")
    expect(page.locator(".facts")).not_to_contain_text("How rare")
    page.goto(f"{monitor.url}/#/incidents")
    expect(page.locator(".card[data-id='2']")).to_contain_text("9.31 above the forecast; 7 alarms")
    expect(page.locator(".card[data-id='2']")).to_contain_text("about once in 24 hours")


# A chart begins under some room, with the bars of stretches: no triangle of these is as high.
AT_THE_TOP = "0, 0, canvas.width, 22"
BELOW = "0, 22, canvas.width, canvas.height - 22"


def test_a_stretch_has_a_bar_in_place_of_its_alarms(opened, monitor):
    page, marks = opened(), {}
    for view in ("error", "shape"):
        monitor.incidents[2]["view"] = view
        page.goto(f"{monitor.url}/#/incidents/2")
        page.wait_for_selector(".charts canvas")
        page.wait_for_timeout(500)
        marks[view] = [[red_pixels(page, part, chart) for part in (AT_THE_TOP, BELOW)] for chart in (0, 1)]
        page.goto(f"{monitor.url}/#/incidents")
        page.wait_for_selector(".card")
    for top, below in marks["error"]:
        assert top == 0
        assert below > 200  # triangles, and no bar
    for top, below in marks["shape"]:
        assert top > 100
        assert below == 0  # a bar, and not one triangle


def shaded_pixels(page, part: float) -> int:
    """How much of a column of the first chart, so far from the left of where lines are, has a tinge of red."""
    return page.evaluate(
        """part => {
            const canvas = document.querySelector('.charts canvas');
            const over = document.querySelector('.charts .u-over');
            const x = Math.round(over.offsetLeft + part * over.offsetWidth);
            const { data } = canvas.getContext('2d').getImageData(x, 0, 1, canvas.height);
            let red = 0;
            for (let at = 0; at < data.length; at += 4) {
                red += data[at + 3] > 0 && data[at] > data[at + 1] + 10 && data[at] > data[at + 2] + 10;
            }
            return red;
        }""",
        part,
    )


def test_an_incident_that_goes_on_is_shown_as_one_without_alarms_too(opened, monitor):
    """Its last alarm was 20 observations ago, and the newest observations are as any others."""
    page = opened()
    page.wait_for_selector(".connection.live")
    monitor.push("verdicts", {"signals": {PUMP: latest(monitor, PUMP, 40.0, 0.7)}})
    row = page.locator(".row", has=page.get_by_text(PUMP, exact=True))
    expect(row.locator(".value")).to_have_text("40 bar")
    expect(row.locator(".state")).to_have_text("incident")
    page.get_by_role("link", name=PUMP).click()
    page.wait_for_selector(".charts canvas")
    expect(page.locator(".summary .state")).to_have_text("incident")
    expect(page.locator(".card[data-id='2'] .tag")).to_have_text(["warning", "open"])
    page.mouse.move(5, 5)
    for _ in range(100):  # until all of it is drawn
        before, within, after_alarms, now = (shaded_pixels(page, part) for part in (0.5, 0.93, 0.97, 0.995))
        if min(within, after_alarms, now) > 100 + before:
            break
        page.wait_for_timeout(100)
    assert min(within, after_alarms, now) > 100 + before
    over = {"open": False, "ended": "accepted", "closed": data.text(data.now())}
    monitor.push("incident", monitor.change_incident(2, **over))
    expect(page.locator(".card[data-id='2'] .tag")).to_have_text(["warning", "closed: accepted as normal"])
    expect(page.locator(".summary .state")).to_have_text("normal")
    page.wait_for_timeout(500)
    assert shaded_pixels(page, 0.93) > 100 + before
    assert shaded_pixels(page, 0.97) < 20 + before


def test_an_incident_that_is_over_says_why(opened, monitor):
    words = {
        "returned": ("back to normal", "The signal is back to normal."),
        "subsided": ("nothing unusual since", "cannot tell whether its cause is gone"),
        "accepted": ("accepted as normal", "still differs from before, and this now counts as normal"),
        "silent": ("no more values", "no longer has values"),
        "labelled": ("labelled", "A user labelled it a false alarm"),
        "reset": ("detector reset", "The detector was reset."),
        "relearned": ("retrained", "The detector was retrained."),
        "removed": ("signal removed", "A user removed the signal."),
    }
    page = opened("#/incidents/2")
    expect(page.locator(".facts")).not_to_contain_text("Why it closed")
    for ended, (few, sentence) in words.items():
        change = {"open": False, "ended": ended, "closed": data.text(data.now())}
        monitor.push("incident", monitor.change_incident(2, **change))
        expect(page.locator(".tags .tag")).to_have_text(["warning", f"closed: {few}"])
        expect(page.locator(".facts")).to_contain_text(sentence)
    page.goto(f"{monitor.url}/#/incidents/4")
    change = {"open": False, "ended": "returned", "closed": data.text(data.now())}
    expect(page.locator(".tags .tag")).to_have_text(["warning", "open"])
    page.wait_for_selector(".connection.live")
    monitor.push("incident", monitor.change_incident(4, **change))
    expect(page.locator(".tags .tag")).to_have_text(["warning", "closed: sending again"])
    monitor.push("incident", monitor.change_incident(4, ended=None))  # from before that was stored
    expect(page.locator(".tags .tag")).to_have_text(["warning", "closed"])


def test_a_false_alarm_is_said_to_end_what_goes_on(opened, monitor):
    page = opened("#/incidents?show=all")
    hint = page.locator("dialog").get_by_text("ends this incident")
    for number, shown in ((2, 1), (4, 0), (1, 0)):
        page.locator(f".card[data-id='{number}']").get_by_role("button", name="Label").click()
        expect(page.locator("dialog")).to_contain_text("False alarm")
        expect(hint).to_have_count(shown)
        page.get_by_role("button", name="Cancel").click()


def test_another_signal_is_watched_without_a_gap(opened, monitor):
    page = opened()
    page.wait_for_selector(".connection.live")
    page.get_by_role("link", name=PUMP).click()
    page.wait_for_selector(".charts canvas")
    expect(page.locator(".connection.live")).to_have_count(1)
    for _ in range(750):
        if len(monitor.streams) == 1 and len(monitor.asked) > 1:
            break
        monitor.push("status", {})  # only by writing the server notices that the first stream is gone
        page.wait_for_timeout(20)
    assert monitor.asked == [(None, []), (None, [PUMP])]
    monitor.push("verdict", latest(monitor, PUMP, 77.25, 0.4))
    expect(page.locator(".readout").first).to_contain_text("77.25 bar")


def test_reset_asks_first(opened, monitor):
    page = opened(of_signal(PUMP))
    page.get_by_role("button", name="Reset").click()
    page.get_by_role("button", name="Cancel").click()
    assert monitor.calls == []
    page.get_by_role("button", name="Reset").click()
    page.locator("dialog").get_by_role("button", name="Reset").click()
    expect(page.locator(".notice")).to_have_text("Reset")
    assert monitor.calls == [("POST", f"/signals/{PUMP}/-/reset", None)]


def test_a_stretch_that_is_dragged_over_becomes_the_reference(opened, monitor):
    page = opened(of_signal(PUMP))
    bar = page.locator(".reference")
    expect(bar).to_contain_text("Compared with its own past.")
    expect(bar.get_by_role("button", name="Remove reference")).to_be_hidden()
    box = page.locator(".charts .u-over").first.bounding_box()
    page.mouse.move(box["x"] + 0.25 * box["width"], box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 50, steps=4)
    page.mouse.up()
    bar.get_by_role("button", name="Use as reference").click()
    expect(bar).to_contain_text("61 observations, marked by ana")
    ((method, path, body),) = monitor.calls
    assert (method, path) == ("PUT", f"/signals/{PUMP}/-/reference")
    shown = timedelta(hours=1)
    for time, part in ((body["start"], 0.75), (body["end"], 0.5)):
        off = datetime.fromisoformat(time) - (monitor.now - part * shown)
        assert abs(off) < 0.02 * shown, (time, off)
    page.mouse.move(5, 5)
    page.keyboard.press("z")

    def only_the_stretch_is_green() -> bool:
        before, within, after = (green_pixels(page, x) for x in (0.2, 0.35, 0.55))
        return within > 10 * max(1, before, after)

    eventually(page, only_the_stretch_is_green)


def green_pixels(page, part: float) -> int:
    """How much of a column of the first chart, so far from the left of where lines are, has a tinge of green."""
    return page.evaluate(
        """part => {
            const canvas = document.querySelector('.charts canvas');
            const over = document.querySelector('.charts .u-over');
            const x = Math.round(over.offsetLeft + part * over.offsetWidth);
            const { data } = canvas.getContext('2d').getImageData(x, 0, 1, canvas.height);
            let green = 0;
            for (let at = 0; at < data.length; at += 4) {
                green += data[at + 3] > 0 && data[at + 1] > data[at] + 10 && data[at + 1] > data[at + 2];
            }
            return green;
        }""",
        part,
    )


def test_a_reference_by_keyboard_and_without_it(opened, monitor, complaints):
    page = opened(of_signal(PUMP))
    page.get_by_label("Reference from").fill("2026-11-15T12:00:00")
    page.get_by_label("Reference to").fill("2026-11-15T11:00:00")
    monitor.refusal = "start must not be after end"
    page.get_by_label("Reference to").press("Enter")
    expect(page.locator(".notice.failed")).to_have_text("start must not be after end")
    assert all("422" in complaint for complaint in complaints)
    complaints.clear()
    monitor.refusal = None
    page.get_by_role("button", name="Use as reference").press("Enter")
    page.get_by_role("button", name="Remove reference").press("Enter")
    page.locator("dialog").get_by_role("button", name="Remove").click()
    expect(page.locator(".reference")).to_contain_text("Compared with its own past.")
    assert [method for method, *_ in monitor.calls] == ["PUT", "PUT", "DELETE"]


def test_acknowledge_snooze_and_label(opened, monitor):
    page = opened("#/incidents")
    card = page.locator(".card[data-id='2']")
    card.get_by_role("button", name="Acknowledge").click()
    expect(card.locator(".tags")).to_contain_text("acknowledged by ana")
    card.get_by_role("button", name="Snooze").click()
    page.get_by_label("4 hours").check()
    page.locator("dialog").get_by_role("button", name="Snooze").click()
    expect(card.locator(".tags")).to_contain_text("snoozed until")
    card.get_by_role("button", name="End snooze").click()
    expect(card.locator(".tags")).not_to_contain_text("snoozed")
    card.get_by_role("button", name="Label").click()
    page.get_by_label("False alarm").check()
    page.get_by_label("from calibration").check()
    page.get_by_label("Note").fill("<b>cleaning</b>")
    page.get_by_role("button", name="Save").click()
    expect(card.locator(".tags")).to_contain_text("false alarm")
    expect(card.locator(".note")).to_have_text("<b>cleaning</b>")
    assert monitor.calls == [
        ("POST", "/incidents/2/acknowledge", {}),
        ("POST", "/incidents/2/snooze", {"seconds": 14400}),
        ("DELETE", "/incidents/2/snooze", None),
        (
            "POST",
            "/incidents/2/label",
            {"label": "false alarm", "exclude": True, "hold": True, "note": "<b>cleaning</b>"},
        ),
    ]


def test_incidents_that_recur_and_what_their_labels_suppressed(opened, monitor):
    start = data.now() - 600 * data.STEP
    monitor.incidents[7] = data.incident(
        7, PUMP, start, open=False, ended="returned", label="expected", label_of=1, suppressed=True, occurrence=12,
        first_alike=data.text(start - 9000 * data.STEP), event=None,
    )  # fmt: skip
    page = opened("#/incidents")
    expect(page.locator("main")).to_contain_text("Ordered by when they opened, the newest first.")
    page.get_by_role("link", name="Suppressed").click()
    card = page.locator(".card")
    expect(card).to_have_count(1)
    expect(card).to_contain_text("the 12th like this since")
    expect(card).to_contain_text(", one in 2 h 16 min")
    expect(card.locator(".tags")).to_contain_text("expected, like incident 1")
    card.locator("a.title").click()
    page.get_by_role("link", name="the 12th like this: error · value · above").click()
    expect(page.locator("h1")).to_have_text("Incidents like 7")
    card.first.get_by_role("button", name="Label").click()
    page.get_by_label("Not interesting").check()
    page.get_by_label("the next ones like it").uncheck()
    page.get_by_role("button", name="Save").click()
    expect(card.first.locator(".tags")).to_contain_text("not interesting")
    assert monitor.calls[-1][2]["hold"] is False


def test_what_a_budget_withheld_is_a_line_that_opens_it_the_rarest_first(opened, monitor):
    page = opened("#/incidents")
    page.wait_for_selector(".card")
    line = page.get_by_role("link", name="withheld by the budget")
    expect(line).to_have_count(0)
    start, over = data.now() - 600 * data.STEP, {"open": False, "ended": "returned", "withheld": True, "event": None}
    for number, period in ((11, 90.0), (12, 9000.0), (13, 900.0)):
        monitor.incidents[number] = data.incident(number, PUMP, start, return_period=period, **over)
    monitor.incidents[14] = data.incident(14, PUMP, start - timedelta(days=8), **over)
    page.wait_for_selector(".connection.live")
    monitor.push("incident", monitor.incidents[13])
    expect(line).to_have_text("3 withheld by the budget")
    page.goto(f"{monitor.url}/#/incidents?show=all")
    expect(line).to_have_text("3 withheld by the budget")
    line.click()
    expect(page.locator("main")).to_contain_text("the rarest first")
    cards = page.locator(".card")
    expect(cards).to_have_count(3)
    assert [card.get_attribute("data-id") for card in cards.all()] == ["12", "13", "11"]
    expect(cards.first).to_contain_text("not reported")
    page.get_by_role("button", name="Acknowledge").first.click()
    expect(cards.first).to_contain_text("acknowledged by ana")
    assert [card.get_attribute("data-id") for card in cards.all()] == ["12", "13", "11"]
    cards.first.locator("a.title").click()
    expect(page.locator("h1")).to_have_text("Incident 12")
    expect(page.locator(".charts canvas")).to_have_count(2)


def test_incident_page_shows_the_chart_and_the_feature(opened):
    page = opened("#/incidents/3")
    expect(page.locator(".charts canvas")).to_have_count(3)
    expect(page.locator(".bars dt")).to_have_text(["flow", "pressure"])
    expect(page.locator(".bars")).to_contain_text("p 4.0e-4")
    expect(page.locator(".charts strong")).to_have_text(["flow", "pressure", "p"])
    expect(page.locator(".panel", has=page.locator(".bars"))).not_to_contain_text("cannot be told")
    page.keyboard.press("a")
    expect(page.locator(".tags")).to_contain_text("acknowledged")


def test_features_that_cannot_be_told_apart(opened, monitor):
    names = ["flow", "pressure", "c", "d", "e"]
    began = {
        "began_earliest": data.text(data.now() - 40 * data.STEP),
        "began_latest": data.text(data.now() - 30 * data.STEP),
    }
    monitor.change_incident(3, features=dict.fromkeys(names, 2.0), suspects=names, **began)
    page = opened("#/incidents/3")
    words = "flow, cannot be told from pressure, c, d and 1 more"
    expect(page.locator(".panel", has=page.locator(".bars"))).to_contain_text(f"At fault: {words}")
    page.goto(f"{monitor.url}/#/incidents")
    expect(page.locator(".card[data-id='3']")).to_contain_text(f"mostly {words}")


def test_maintenance_windows(opened, monitor):
    page = opened("#/maintenance")
    expect(page.locator(".card")).to_have_count(1)
    page.get_by_role("button", name="Add a window").click()
    page.get_by_label("Signals").fill("line 3/*")
    expect(page.locator("dialog small")).to_contain_text("Matches 5 signals now")
    page.get_by_role("button", name="4 h").click()
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator(".card")).to_have_count(2)
    (method, path, body), *_ = monitor.calls
    assert (method, path, body["pattern"], body["reason"]) == ("POST", "/maintenance", "line 3/*", "")
    page.locator(".card", has_text="line 3/*").get_by_role("button", name="Remove").click()
    page.locator("dialog").get_by_role("button", name="Remove").click()
    expect(page.locator(".card")).to_have_count(1)


def test_hostile_names_are_text(opened, monitor):
    """A name that tries to be markup is shown as it is; the fixture sees to it that no dialog opened."""
    page = opened()
    page.fill("input[type=search]", "<img")
    row = page.locator(".windowed .name")
    assert row.text_content() == data.HOSTILE
    row.click()
    expect(page.locator("h1")).to_have_text(data.HOSTILE)
    page.wait_for_selector(".charts canvas")
    monitor.incidents[8] = data.incident(8, data.HOSTILE, data.now(), note=data.HOSTILE, label="fault")
    monitor.push("incident", monitor.incidents[8])
    expect(page.locator(".note")).to_have_text(data.HOSTILE)
    assert page.locator("img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_token_is_asked_for_and_kept(opened, monitor, complaints):
    monitor.token = "tocsin_right"
    page = opened()
    page.get_by_label("Token", exact=True).fill("wrong")
    page.get_by_role("button", name="Continue").click()
    expect(page.locator("dialog")).to_contain_text("not valid")
    page.get_by_label("Token", exact=True).fill("tocsin_right")
    page.get_by_role("button", name="Continue").click()
    page.wait_for_selector(".windowed .row")
    assert page.evaluate("[sessionStorage.length, localStorage.length]") == [1, 0]
    page.reload()
    page.wait_for_selector(".windowed .row")
    assert all("401" in complaint for complaint in complaints)
    complaints.clear()


def test_what_is_not_allowed_is_not_offered(opened, monitor):
    monitor.role = "read"
    page = opened("#/incidents")
    page.wait_for_selector(".card")
    expect(page.get_by_role("button", name="Acknowledge")).to_have_count(0)
    page.goto(f"{monitor.url}/{of_signal(PUMP)}")
    page.wait_for_selector(".charts canvas")
    expect(page.get_by_role("button", name="Reset")).to_have_count(0)
    expect(page.locator(".reference")).to_have_text("Compared with its own past.")


def test_operators_work_on_incidents_and_leave_signals_alone(opened, monitor):
    monitor.role = "operate"
    page = opened("#/incidents")
    page.wait_for_selector(".card")
    expect(page.get_by_role("button", name="Acknowledge").first).to_be_visible()
    expect(page.get_by_role("link", name="Access log")).to_be_hidden()
    page.goto(f"{monitor.url}/#/maintenance")
    expect(page.get_by_role("button", name="Add a window")).to_be_visible()
    page.goto(f"{monitor.url}/{of_signal(PUMP)}")
    page.wait_for_selector(".charts canvas")
    expect(page.get_by_role("button", name="Maintenance")).to_be_visible()
    expect(page.get_by_role("button", name="Reset")).to_have_count(0)


def test_administrators_see_who_did_what(opened, monitor):
    def deed(number, action, target, details=""):
        time = data.text(monitor.now)
        return {"id": number, "time": time, "who": "ana", "action": action, "target": target, "details": details}

    monitor.deeds = [
        deed(203, "POST", "/incidents/7/label", '{"label": "fault"}'),
        deed(202, "DELETE", f"/signals/{data.HOSTILE}"),
        deed(201, "PATCH", "/unheard/of"),
        *(deed(number, "POST", "/maintenance") for number in range(200, 0, -1)),
    ]
    page = opened("#/access-log")
    expect(page.locator(".card")).to_have_count(100)
    titles = page.locator(".card .title").all_text_contents()
    assert titles[:4] == [
        "ana labelled incident 7",
        f"ana removed {data.HOSTILE}",
        "ana PATCH /unheard/of",
        "ana added a maintenance window",
    ]
    expect(page.locator(".card code").first).to_have_text("label: fault")
    for shown in (200, 203):
        page.get_by_role("button", name="Show older entries").click()
        expect(page.locator(".card")).to_have_count(shown)
    expect(page.get_by_role("button", name="Show older entries")).to_be_hidden()
    assert page.locator("img").count() == 0


def test_keyboard_alone(opened):
    page = opened()
    page.wait_for_selector(".windowed .row")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.textContent") == "plant/pump 4/vibration"
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("plant/pump 4/vibration")
    page.keyboard.press("?")
    expect(page.locator("dialog")).to_contain_text("next and previous row")
    page.keyboard.press("Escape")
    page.keyboard.press("2")
    expect(page.locator("h1")).to_have_text("Incidents")
    page.wait_for_selector(".card")
    page.keyboard.press("j")
    page.keyboard.press("a")
    expect(page.locator(".card .tags").first).to_contain_text("acknowledged")
