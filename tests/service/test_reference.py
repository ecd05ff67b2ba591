"""A reference is marked on the page of a real monitor, which is then killed: nothing of it is lost."""

import time
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from playwright.sync_api import Browser, expect

from tests.service.process import MonitorProcess
from tocsin.detection import Detector

pytestmark = pytest.mark.slow

CONFIG = """
[engine]
snapshot_every = 40
[detector]
forecaster = "last-value"
views = ["error", "movement"]
alarm_rate = 0.02
"""
SETTINGS = {"forecaster": "last-value", "views": ["error", "movement"], "alarm_rate": 0.02}
NAME = "plant/pump 1"
#: Not long ago, so that nothing is too old to be kept.
START = int(time.time()) // 60 * 60 - 86_400
TIMES = np.datetime64(START, "s") + np.arange(500) * np.timedelta64(60, "s")
VALUES = np.round(np.random.default_rng(31).normal(size=500), 3)


def send(api: httpx.Client, first: int, last: int) -> list[dict[str, Any]]:
    items = [{"signal": NAME, "time": START + 60 * number, "value": VALUES[number]} for number in range(first, last)]
    return list(api.post("/observations", json=items).json()["outcomes"])


def told(detector: Detector, first: int, last: int) -> list[list[Any]]:
    """What a detector says, as JSON does."""
    found = detector.run(VALUES[first:last], times=TIMES[first:last]).verdicts
    columns = (found.p[:, 0], found.forecast[:, 0, 0], found.low[:, 0, 0], found.high[:, 0, 0])
    return [[None if not np.isfinite(one) else one for one in row] for row in np.stack(columns, axis=1).tolist()]


def numbers(outcomes: list[dict[str, Any]]) -> list[list[Any]]:
    return [[one[name] for name in ("p", "forecast", "low", "high")] for one in outcomes]


@pytest.mark.full
def test_a_reference_is_marked_on_the_page_and_outlives_a_crash(tmp_path: Path, browser: Browser) -> None:
    page = browser.new_page()
    with MonitorProcess(tmp_path, CONFIG) as monitor:
        monitor.start()
        # Each request has a connection of its own, since the monitor is killed between two of them.
        api = httpx.Client(base_url=f"{monitor.address}/api/v1", timeout=60, headers={"Connection": "close"})
        path = f"/signals/{NAME}/-/reference"
        send(api, 0, 400)
        short = api.put(path, json={"start": START, "end": START + 60 * 9})
        assert short.status_code == 422
        assert "at least 51 observations with a value, got 10 from start" in short.json()["error"]["message"]
        assert api.get(path).status_code == 404

        page.goto(f"{monitor.address}/#/signals/{NAME.replace('/', '%2F')}")
        with page.expect_response("**/history?*"):
            page.get_by_role("button", name="all", exact=True).click()
        page.wait_for_timeout(500)  # until all of it is drawn
        bar, over = page.locator(".reference"), page.locator(".charts .u-over").first
        expect(bar).to_contain_text("Compared with its own past.")
        box = over.bounding_box()
        assert box
        page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 40)
        page.mouse.down()
        page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + 40, steps=5)
        page.mouse.up()
        page.get_by_role("button", name="Use as reference").click()
        expect(bar).to_contain_text("Compared with its reference")
        reference = api.get(path).json()
        good = range(*within(reference["start"], reference["end"]))
        assert reference["observations"] == len(good)
        assert 150 < len(good) < 250

        detector = Detector(**SETTINGS)
        detector.learn_reference(VALUES[good.start : good.stop])
        detector.run(VALUES[good.stop : 400], times=TIMES[good.stop : 400])
        wanted = told(detector, 400, 500)
        found = numbers(send(api, 400, 450))
        monitor.kill()
        monitor.start()
        assert api.get(path).json() == reference == api.get(f"/signals/{NAME}").json()["reference"]
        found += numbers(send(api, 450, 500))
        assert found == wanted

        page.get_by_label("Reference from").fill("2026-01-01T02:00:00")
        page.get_by_label("Reference to").fill("2026-01-01T01:00:00")
        page.get_by_role("button", name="Use as reference").click()
        expect(page.locator(".notice.failed").last).to_contain_text("start must not be after end, got start 20")
        page.get_by_role("button", name="Remove reference").click()
        page.locator("dialog").get_by_role("button", name="Remove").click()
        expect(bar).to_contain_text("Compared with its own past.")
        assert api.get(path).status_code == 404
    page.close()


def within(start: str, end: str) -> tuple[int, int]:
    """The number of the first observation that is not before the start, and of the first that is after the end."""
    first, last = ((datetime.fromisoformat(time).timestamp() - START) / 60 for time in (start, end))
    return int(np.ceil(first)), int(np.floor(last)) + 1
