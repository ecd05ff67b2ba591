"""A template changed on the page of a real monitor: tried, applied, and still there after the power went."""

import re
import time
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright")

from tests.service.page.test_real import CONFIG  # noqa: E402
from tests.service.process import MonitorProcess  # noqa: E402

pytestmark = pytest.mark.slow

expect = sync_api.expect
PUMPS = [f"pump/{number}" for number in range(4)]
TEMPLATE = """
[[templates]]
match = "pump/*"
unit = "bar"
detector = { gap = 4 }
"""


@pytest.fixture
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MonitorProcess]:
    """A monitor with four pumps that sent a value every ten seconds, some of them far off."""
    with MonitorProcess(tmp_path_factory.mktemp("real"), CONFIG + TEMPLATE) as monitor:
        monitor.start()
        start = time.time() - 10 * 900
        values = np.random.default_rng(3).normal(size=(len(PUMPS), 900)).round(3)
        values[:, 500::80] += 9
        with httpx.Client(base_url=f"{monitor.address}/api/v1", timeout=120) as client:
            for name, column in zip(PUMPS, values.tolist(), strict=True):
                times = (start + 10 * step for step in range(900))
                rows = [{"signal": name, "time": at, "value": value} for at, value in zip(times, column, strict=True)]
                client.post("/observations", json=rows).raise_for_status()
            client.put(f"/signals/{PUMPS[3]}", json={"detector": {"gap": 9}}).raise_for_status()
        yield monitor


def settings_of(api: httpx.Client, name: str) -> dict[str, Any]:
    found: dict[str, Any] = api.get(f"/signals/{name}/-/details").json()["settings"]
    return found


@pytest.mark.full
def test_a_template_is_tried_applied_and_survives_a_kill(browser: "sync_api.Browser", served: MonitorProcess) -> None:
    api = httpx.Client(base_url=f"{served.address}/api/v1", timeout=60)
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(20_000)
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(f"{served.address}/#/status")
    page.get_by_role("button", name="Change pump/*", exact=True).click()
    dialog = page.get_by_role("dialog", name="Template pump/*")
    dialog.get_by_label("Alarm rate").fill("7")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_contain_text("detector: alarm_rate must be")
    dialog.get_by_label("Alarm rate").fill("0.01")
    dialog.get_by_label("Apply it to those that still have their template's settings").check()
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.locator(".trial")).to_contain_text("Tried on all 3 signals.", timeout=120_000)
    words = dialog.locator(".trial").inner_text()
    new, old = map(int, re.search(r"raised (\d+) incidents? in the last 7 days instead of (\d+)", words).groups())
    raised = api.get("/incidents", params={"kind": "alarm", "limit": 1000}).json()["incidents"]
    assert old == sum(one["signal"] != PUMPS[3] for one in raised)
    assert new < old
    assert api.get("/templates").json()["templates"][0]["stored"] is False  # it was only tried
    dialog.get_by_role("button", name="Save").click()
    expect(page.locator(".notice").last).to_have_text("Applied: 3 done", timeout=120_000)
    expect(page.get_by_text("in place of the file's")).to_be_visible()
    targets = [(one["action"], one["target"]) for one in api.get("/access-log").json()["access_log"]]
    assert targets[:4] == [("PUT", f"/signals/{name}") for name in PUMPS[2::-1]] + [("POST", "/templates")]
    assert [settings_of(api, name)["gap"] for name in PUMPS] == [4, 4, 4, 9]
    assert [settings_of(api, name)["alarm_rate"] for name in PUMPS] == [0.01, 0.01, 0.01, 0.05]

    served.kill()
    served.start()
    (listed,) = api.get("/templates").json()["templates"]
    assert (listed["stored"], listed["detector"]) == (True, {"gap": 4, "alarm_rate": 0.01})
    api.post("/observations", json=[{"signal": "pump/new", "value": 1.0}]).raise_for_status()
    assert settings_of(api, "pump/new")["alarm_rate"] == 0.01
    assert settings_of(api, PUMPS[0])["alarm_rate"] == 0.01

    page.goto("about:blank")
    page.goto(f"{served.address}/#/status")
    page.get_by_role("button", name="Use the file's again pump/*").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Use the file's again").click()
    expect(page.get_by_text("From the file")).to_be_visible()
    api.post("/observations", json=[{"signal": "pump/newer", "value": 1.0}]).raise_for_status()
    assert settings_of(api, "pump/newer")["alarm_rate"] == 0.05
    page.close()
    api.close()
    assert complaints == []
