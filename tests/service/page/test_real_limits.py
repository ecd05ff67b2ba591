"""Limits in a signal's unit, and recurring maintenance, as an operator sets them on the page of a real monitor."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import numpy as np
import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright")

from tests.service.page.test_real import CONFIG  # noqa: E402
from tests.service.process import MonitorProcess  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.full]
expect = sync_api.expect
#: Where pictures go, for somebody to look at.
PICTURES = os.environ.get("TOCSIN_PICTURES")


@pytest.fixture
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MonitorProcess]:
    with MonitorProcess(tmp_path_factory.mktemp("real"), CONFIG) as monitor:
        monitor.start()
        yield monitor


def picture(page: "sync_api.Page", name: str) -> None:
    if PICTURES:
        for scheme, width in (("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390)):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 900})
            page.screenshot(path=Path(PICTURES) / f"{name}-{scheme}-{width}.png", animations="disabled")
        page.set_viewport_size({"width": 1280, "height": 900})


@pytest.fixture
def api(served: MonitorProcess) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{served.address}/api/v1", timeout=120) as client:
        yield client


def test_limits_and_recurring_maintenance_on_the_page(
    browser: "sync_api.Browser", served: MonitorProcess, api: httpx.Client
) -> None:
    name, start = "plant/pump 3/temperature", time.time() - 10 * 300
    values = np.random.default_rng(3).normal(70, 1, 300).round(2).tolist()

    def send(first: int, some: list[float]) -> list[str]:
        rows = [{"signal": name, "time": start + 10 * (first + at), "value": one} for at, one in enumerate(some)]
        return [one["status"] for one in api.post("/observations", json=rows).raise_for_status().json()["outcomes"]]

    api.put(f"/signals/{name}", json={"unit": "°C"}).raise_for_status()
    send(0, values[:250])
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(20_000)
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))

    page.goto(f"{served.address}/#/signals/{quote(name, safe='')}")
    page.get_by_role("button", name="Change settings").click()
    page.get_by_label("Valid range").fill("150 to -40")
    page.get_by_label("High limit").fill("95")
    page.get_by_label("Minimum deviation").fill("2")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("alert").first).to_contain_text("the first less than the second")
    page.get_by_label("Valid range").fill("-40 to 150")
    picture(page, "settings")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("valid range", exact=True)).to_be_visible()
    rules = api.get(f"/signals/{name}/-/details").json()["rules"]
    given = {"valid_range": [-40.0, 150.0], "limit_high": 95.0, "min_deviation": 2.0}
    assert rules == {**given, "limit_low": None, "min_level": None, "no_data_is_zero": None}
    assert send(250, [850.0, 850.0]) == ["out_of_range"] * 2
    (found,) = api.get("/incidents", params={"kind": "range"}).json()["incidents"]
    page.goto(f"{served.address}/#/incidents/{found['id']}")
    expect(page.locator(".lead")).to_contain_text("out of range: 850 °C, valid is -40 to 150 °C; 2 observations so far")
    picture(page, "range")
    assert send(252, values[252:255]) == ["scored"] * 3
    expect(page.get_by_text("The signal is in its valid range again.")).to_be_visible()

    assert send(255, [97.5]) == ["scored"]
    (found,) = api.get("/incidents", params={"kind": "limit"}).json()["incidents"]
    page.goto(f"{served.address}/#/incidents/{found['id']}")
    expect(page.locator(".lead")).to_contain_text("97.5 °C, limit 95 °C")
    picture(page, "limit")
    send(256, values[256:266])
    expect(page.get_by_text("The signal is within its limit again.")).to_be_visible()

    page.goto(f"{served.address}/#/maintenance")
    page.get_by_role("button", name="Add a recurring one").click()
    dialog = page.get_by_role("dialog", name="Recurring maintenance")
    dialog.get_by_label("Signals").fill("plant/*")
    dialog.get_by_label("Or as in cron").fill("0 25 * * *")
    expect(dialog.get_by_role("alert")).to_contain_text("Bad hour")
    dialog.get_by_label("Or as in cron").fill("")
    dialog.get_by_label("Sat").check()
    dialog.get_by_label("Time zone").fill("Europe/Vienna")
    expect(dialog.locator(".occurrences li")).to_have_count(5)
    picture(page, "recurring-dialog")
    dialog.get_by_role("button", name="Add").click()
    expect(page.locator(".card")).to_contain_text("every sat, sun at 02:00 (Europe/Vienna), for 2 h")
    expect(page.locator(".card .occurrences li")).to_have_count(5)
    picture(page, "recurring")
    (window,) = api.get("/maintenance").json()["maintenance"]
    assert (window["schedule"], window["duration"], window["end"]) == ("0 2 * * sat,sun", 7200.0, None)

    page.goto(f"{served.address}/#/")
    page.get_by_role("button", name="Select", exact=True).click()
    page.get_by_role("button", name="Remove…").click()
    dialog = page.get_by_role("dialog", name="Remove 1 signal")
    expect(dialog).to_contain_text(name)
    picture(page, "removal")
    dialog.get_by_role("button", name="Remove 1 signal").click()
    expect(page.get_by_text("Remove: 1 done")).to_be_visible()
    assert api.get("/signals").json()["signals"] == []
    assert complaints == []
