"""The page of `tocsin report` in a real browser: whole in itself, with charts that show each incident."""

import pytest

from tests.cli.calling import invoke
from tests.service.test_report import now as now
from tests.service.test_report import office as office
from tests.service.test_report import stopped as stopped

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("width", [1200, 400])
def test_the_page_in_a_browser(browser, office, tmp_path, width):
    page = tmp_path / "week.html"
    assert invoke("report", "--data", tmp_path, "--out", page).exit_code == 0
    context = browser.new_context(viewport={"width": width, "height": 900})
    tab = context.new_page()
    problems = []
    tab.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.on("dialog", lambda dialog: problems.append(dialog.message))
    tab.on("request", lambda request: None if request.url == page.as_uri() else problems.append(request.url))
    tab.goto(page.as_uri())
    tab.wait_for_selector("#charts canvas")
    assert tab.locator("#charts figure").count() == 2
    assert tab.locator("#incidents + .table tbody tr").count() == 6
    before = tab.locator("#signal-0").get_attribute("data-from")
    tab.locator('#incidents + .table tr[data-chart="0"] button').first.click()
    tab.wait_for_function("was => document.querySelector('#signal-0').dataset.from !== was", arg=before)
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert problems == []
    context.close()


def test_the_incidents_of_an_event_unfold_in_its_row(browser, stopped, tmp_path):
    page = tmp_path / "week.html"
    assert invoke("report", "--data", tmp_path, "--out", page).exit_code == 0
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    tab = context.new_page()
    tab.goto(page.as_uri())
    tab.wait_for_selector("#charts canvas")
    row = tab.locator("#incidents + .table tbody tr", has_text="4 incidents on 4 signals")
    before = tab.evaluate("scrollY")
    row.locator("summary").click()
    assert row.locator("li").count() == 4
    assert tab.evaluate("scrollY") == before  # it does not jump to the chart
    row.locator("button").click()
    tab.wait_for_function("was => scrollY > was", arg=before)
    context.close()
