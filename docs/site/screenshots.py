"""The screenshots of the monitor's page in docs/images: `python docs/site/screenshots.py`, from the repository root.

A real monitor is sent two weeks of a small plant: one sensor drifts, another one is stuck, and a gateway stops.
"""

import shutil
import sys
import tempfile
import time
from pathlib import Path

import httpx
import numpy as np
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))

from tests.service.process import MonitorProcess  # noqa: E402

IMAGES = ROOT / "docs" / "images"
MINUTES = 5
COUNT = 14 * 24 * 60 // MINUTES
DETECTOR = 'detector = { alarm_rate = "1/week", interval = "5min" }'
CONFIG = f"""
[[templates]]
match = "plant/line-3/oven/*"
silent_after = "10s"
{DETECTOR}
[[templates]]
match = "*/pressure"
unit = "bar"
{DETECTOR}
[[templates]]
match = "*/temperature"
unit = "°C"
{DETECTOR}
[[templates]]
match = "*/vibration"
unit = "mm/s"
{DETECTOR}
"""
PLACES = [f"plant/line-{line}/{part}" for line in (1, 2, 3) for part in ("pump", "oven")]
SENSORS = ("pressure", "temperature", "vibration")


def plant() -> dict[str, "np.ndarray"]:
    """The values of each signal; NaN where it sends nothing."""
    random = np.random.default_rng(7)
    times = np.arange(COUNT) * MINUTES / (24 * 60)
    signals = {}
    for place in PLACES:
        for sensor in SENSORS:
            level, swing = random.uniform(20, 80), random.uniform(2, 6)
            values = level + swing * np.sin(2 * np.pi * (times + random.random())) + random.normal(size=COUNT)
            signals[f"{place}/{sensor}"] = values
    signals["plant/line-2/oven/temperature"][-150:] += np.linspace(0, 14, 150)
    signals["plant/line-1/pump/pressure"][-60:] = signals["plant/line-1/pump/pressure"][-60]
    for sensor in SENSORS:
        signals[f"plant/line-3/oven/{sensor}"][-40:] = np.nan
    return signals


def send(address: str, signals: dict[str, "np.ndarray"]) -> None:
    """Everything in the order of time, up to now."""
    start = time.time_ns() - COUNT * MINUTES * 60 * 10**9
    with httpx.Client(timeout=300) as client:
        for first in range(0, COUNT, 250):
            rows = [
                {"signal": name, "time": start + step * MINUTES * 60 * 10**9, "value": float(values[step])}
                for step in range(first, min(COUNT, first + 250))
                for name, values in signals.items()
                if not np.isnan(values[step])
            ]
            client.post(f"{address}/api/v1/observations", json=rows).raise_for_status()
            print(f"\r{first + 250:,} of {COUNT:,}", end="", flush=True)  # noqa: T201
    print()  # noqa: T201


def main() -> None:
    """Take the pictures."""
    with tempfile.TemporaryDirectory() as folder, MonitorProcess(Path(folder), CONFIG) as monitor:
        monitor.start()
        send(monitor.address, plant())
        time.sleep(25)  # until the gateway's silence is noticed and told
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1280, "height": 860}, color_scheme="light")
            for name, route in (("overview", ""), ("signal", "#/signals/plant%2Fline-2%2Foven%2Ftemperature")):
                page.goto(f"{monitor.address}/{route}")
                page.wait_for_load_state("load")
                page.wait_for_timeout(4000)
                page.screenshot(path=IMAGES / f"monitor-{name}.png", full_page=name == "signal")
            browser.close()
        monitor.stop()


if __name__ == "__main__":
    main()
