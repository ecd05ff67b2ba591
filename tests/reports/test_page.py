"""The page of what was found, in a real browser: whole in itself, with charts that zoom, in every light and width."""

import json
import re

import numpy as np
import pytest

from tests.cli.calling import csv_text, invoke, noisy_values, words
from tests.reports.test_tables import an_incident
from tocsin.reports.page import _onsets, _picked, filled_page

QUICK = ("--preset", "light", "--views", "error", "--gap", 2, "--alarm-rate", "1/day")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    for name in ("pump", "</script><b>fan"):
        text = csv_text(noisy_values(3000, seed=len(name))).replace("value", "value [bar],other <i>", 1)
        rows = text.splitlines()
        path = folder / f"{name.replace('/', '_')}.csv"
        path.write_text("\n".join([rows[0], *(f"{row},{i % 7}" for i, row in enumerate(rows[1:]))]))
    page = folder / "report.html"
    done = invoke("detect", folder / "*.csv", "--joint", *QUICK, "--report", page)
    assert done.exit_code == 0, done.output
    assert f"report: {page}" in done.output
    return page


@pytest.fixture
def opened(browser, report):
    """Opens the report; at the end there must be no error, and nothing asked of any network."""
    complaints, asked, contexts = [], [], []

    def open_page(**options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(report.as_uri())
        page.wait_for_selector("figure .u-over")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
    assert set(asked) == {report.as_uri()}


def test_it_tells_what_was_found_understood_and_promised(opened):
    page = opened()
    for heading in ("By signal", "Incidents", "Pictures", "What was understood", "What is promised"):
        assert page.get_by_role("heading", name=heading).is_visible()
    text = page.inner_text("main")
    assert "above the forecast" in text
    assert text.count("time: time; 2 features; every 5 min") == 2
    assert "tolerated" in text
    assert page.locator("figure").count() == 2
    assert page.locator("figure .chart").count() == 6
    assert page.locator("b, i").count() == 0  # names are texts, whatever they hold


def test_an_incident_is_shown_at_a_click_and_the_whole_signal_at_another(opened):
    page = opened()
    page.locator("tbody tr button").first.click()
    row = page.locator("tbody tr[data-chart]").first
    figure = page.locator(f"#signal-{row.get_attribute('data-chart')}")
    page.wait_for_function(
        "([id, from]) => Number(document.getElementById(id).dataset.from) === Number(from)",
        arg=[figure.get_attribute("id"), row.get_attribute("data-from")],
    )
    seen = float(figure.get_attribute("data-to")) - float(figure.get_attribute("data-from"))
    assert seen < 6 * 3600
    figure.get_by_role("button", name="Whole signal").click()
    page.wait_for_function(
        "(id) => { const d = document.getElementById(id).dataset; return d.to - d.from > 8e5; }",
        arg=figure.get_attribute("id"),
    )


def test_the_features_that_an_incident_is_about_come_first(opened):
    page = opened()
    row = page.locator("tbody tr[data-chart]").first
    figure = page.locator(f"#signal-{row.get_attribute('data-chart')}")
    charts = figure.locator(".chart")
    before = [charts.nth(number).get_attribute("aria-label") for number in range(3)]
    assert row.get_attribute("data-first") == "0 1"
    row.evaluate("(row) => { row.dataset.first = '1 0'; }")
    row.locator("button").click()
    after = [charts.nth(number).get_attribute("aria-label") for number in range(3)]
    assert after == [before[1], before[0], before[2]]
    page.emulate_media(color_scheme="dark")  # each is drawn again where it is
    page.wait_for_timeout(100)
    assert [charts.nth(number).get_attribute("aria-label") for number in range(3)] == after
    assert charts.first.locator(".u-over").count() == 1


def test_when_an_incident_began_is_drawn_if_it_was_noticed_late():
    late = an_incident(start=90, began_earliest=50, began_latest=70)
    at_once = an_incident(start=90, began_earliest=80, began_latest=90)
    assert _onsets([late, at_once, an_incident()]) == [[50.0, 90.0]]


def test_a_stretch_is_zoomed_to_by_dragging(opened):
    page = opened()
    over = page.locator("figure .u-over").first
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 40, steps=5)
    page.mouse.up()
    page.wait_for_function("() => { const d = document.querySelector('figure').dataset; return d.to - d.from < 2e5; }")
    over.dblclick()
    page.wait_for_function("() => { const d = document.querySelector('figure').dataset; return d.to - d.from > 8e5; }")


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_light_and_width(opened, width, scheme):
    page = opened(viewport={"width": width, "height": 800}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    colours = page.evaluate("['color', 'backgroundColor'].map((name) => getComputedStyle(document.body)[name])")
    ink, paper = (sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in colours)
    assert (ink < paper) == (scheme == "light")
    page.emulate_media(color_scheme="light" if scheme == "dark" else "dark")
    page.wait_for_selector("figure .u-over")  # drawn anew, without an error


def test_long_signals_are_thinned_but_not_around_incidents():
    values = np.random.default_rng(0).normal(size=100_000)
    values[70_001] = 50

    class Found:
        first, last, severity = 40_000, 40_010, 3.0

    at = _picked(values, [Found()], 2000)
    assert len(at) < 3000
    assert {0, 70_001, 99_999} <= set(at.tolist())
    assert set(range(39_850, 40_161)) <= set(at.tolist())
    assert values[at].min() == values.min()


@pytest.mark.slow
def test_data_are_plain(report):
    text = report.read_text()
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    assert data["dated"]
    assert len(data["charts"][0]["charts"][0]["time"]) == 3000
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", text)


def test_no_name_opens_an_element():
    """A comment and a script in a name would swallow the end of the element that holds the data."""
    name = "<!--<script>"
    data = filled_page("$data", [{"name": name}], dated=True)
    assert "<" not in data
    assert json.loads(data)["charts"] == [{"name": name}]


def test_a_page_of_another_kind_is_refused_before_the_work(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(csv_text(noisy_values(100)))
    done = invoke("detect", path, "--report", tmp_path / "report.txt")
    assert done.exit_code == 2
    assert "must end in one of .html, .htm" in words(done)


def test_numbers_have_names_where_there_is_no_heading(opened):
    page = opened(viewport={"width": 390, "height": 800})
    named = "getComputedStyle(document.querySelector('td[data-name=severity]'), '::before').content"
    assert "severity" in page.evaluate(named)
    page.set_viewport_size({"width": 1280, "height": 800})
    assert page.evaluate(named) == "none"
