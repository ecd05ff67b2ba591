"""The page with a real monitor behind it: what the stand-in of other tests promises is so."""

import re
import time
from collections.abc import Iterator

import httpx
import numpy as np
import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright")

from tests.service.process import MonitorProcess  # noqa: E402

pytestmark = pytest.mark.slow

expect = sync_api.expect
CONFIG = """
[detector]
forecaster = "last-value"
views = ["error"]
promise = "observations"
alarm_rate = 0.05
window = 250
"""
PUMPS = [f"plant/line {number}/pump" for number in (1, 2)]
COUNT = 1500


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MonitorProcess]:
    """A monitor with two pumps that sent a value every ten seconds, the last of them far off, and a door."""
    with MonitorProcess(tmp_path_factory.mktemp("real"), CONFIG) as monitor:
        monitor.start()
        start = time.time() - 10 * COUNT
        values = np.random.default_rng(3).normal(size=(len(PUMPS), COUNT)).round(3)
        values[:, 900::100] += 9
        values[:, -1] += 30
        with httpx.Client(base_url=f"{monitor.address}/api/v1", timeout=120) as client:
            for name, column in zip(PUMPS, values.tolist(), strict=True):
                rows = [
                    {"signal": name, "time": start + 10 * step, "value": value} for step, value in enumerate(column)
                ]
                client.post("/observations", json=rows).raise_for_status()
            client.post("/observations", json=[{"signal": "door", "value": 1.0}]).raise_for_status()
        yield monitor


def test_the_page_and_a_real_monitor(browser: "sync_api.Browser", served: MonitorProcess) -> None:
    api = httpx.Client(base_url=f"{served.address}/api/v1", timeout=60)
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(20_000)
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(f"{served.address}/#/?view=tree")
    expect(page.locator(".filter.all b")).to_have_text("3")
    expect(page.locator(".row.level .counts").first).to_have_text(re.compile("2 with an incident, 2 in all"))
    # The newest observations have come.
    expect(page.locator(".row[data-state=incident] canvas").first).to_have_attribute("data-drawn", re.compile("^20"))

    page.get_by_role("button", name="Select", exact=True).click()
    page.get_by_label("Select plant", exact=True).check()
    page.get_by_role("button", name="Acknowledge…").click()
    expect(page.locator("dialog h2")).to_have_text("Acknowledge 2 open incidents of 2 signals")
    page.locator("dialog").get_by_role("button", name="Acknowledge", exact=True).click()
    expect(page.locator(".notice")).to_have_text("Acknowledge: 2 done")
    found = api.get("/incidents", params={"open": True, "kind": "alarm"}).json()["incidents"]
    assert [one["acknowledged_by"] for one in found] == ["local", "local"]
    deeds = [one["target"] for one in api.get("/access-log").json()["access_log"]]
    assert sorted(deeds) == sorted(f"/incidents/{one['id']}/acknowledge" for one in found)

    page.get_by_role("link", name="line 1/pump").click()
    expect(page.get_by_role("button", name="1h", exact=True)).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="all", exact=True).click()
    page.wait_for_url(re.compile("range=all"))
    expect(page.locator(".charts canvas")).to_have_count(2)
    expect(page.locator(".audit")).to_contain_text("promised 1 in 20")

    page.get_by_role("button", name="Change settings").click()
    page.locator("[name=alarm_rate]").fill("7")
    page.get_by_role("button", name="Try on stored observations").click()
    expect(page.get_by_role("alert").last).to_contain_text("alarm_rate must be")
    assert len(complaints) == 1  # the browser tells of the refusal, too
    page.locator("[name=alarm_rate]").fill("0.02")
    page.get_by_role("button", name="Try on stored observations").click()
    expect(page.locator(".trial")).to_contain_text("Would have raised", timeout=60_000)
    trial = api.get(f"/signals/{PUMPS[0]}/-/trial").json()
    assert (trial["stage"], trial["complete"], trial["done"]) == ("done", True, COUNT)
    assert 0 < trial["incidents"] < trial["raised"]
    expect(page.locator(".trial")).to_contain_text(f"{trial['incidents']} incidents")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator(".notice").last).to_have_text("Settings changed")
    assert api.get(f"/signals/{PUMPS[0]}").json()["alarm_rate"] == 0.02
    page.close()
    api.close()
    assert len(complaints) == 1
