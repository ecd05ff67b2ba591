"""How quick the monitor's page is with very many signals, measured in a real browser.

    python benchmarks/page.py

A monitor in a process of its own is sent observations of 10,000 signals in three levels; their detectors are small
ones, since what they compute does not matter here. Chromium then opens the page several times. `ready_s` is the time
from the start of the navigation until the list is drawn with all signals counted; `filter_ms` the time from a key in
the search to the frame with the filtered rows. Both are medians; the slowest are in the table.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import httpx
from playwright.sync_api import sync_playwright
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import track
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.service.process import MonitorProcess

CONFIG = """
[server]
requests_per_second = 100000
burst = 100000
[engine]
max_signals = 100000
snapshot_every = 100000
[detector]
forecaster = "last-value"
views = ["error"]
window = 250
"""
TOGETHER = 5000
SEARCHES = ("pump 7", "line-3", "pump 77", "plant-2/line-4", "zzz", "9", "")

READY = """signals => {
    const number = document.querySelector('.filter.all b')?.textContent;
    return number === signals && document.querySelector('.windowed .row') && performance.now();
}"""
FILTER = """async text => {
    const search = document.querySelector('input[type=search]');
    const frame = () => new Promise(resolve => requestAnimationFrame(resolve));
    await frame();
    const began = performance.now();
    search.value = text;
    search.dispatchEvent(new Event('input'));
    await frame();
    await frame();
    return performance.now() - began;
}"""


def names(count):
    return [f"plant-{n % 5}/line-{n // 5 % 20}/pump {n}" for n in range(count)]


def fill(address, count, steps, console):
    """Send so many observations of every signal, a minute apart, up to now."""
    start = time.time() - 60 * steps
    rows = [(name, start + 60 * step, step) for step in range(steps) for name in names(count)]
    with httpx.Client(timeout=120) as client:
        for first in track(range(0, len(rows), TOGETHER), "sending", console=console):
            some = [
                {"signal": name, "time": at, "value": float((step * 7919 + len(name)) % 13)}
                for name, at, step in rows[first : first + TOGETHER]
            ]
            client.post(f"{address}/api/v1/observations", json=some).raise_for_status()


def measure(address, count, times):
    """Seconds until the page is ready, and milliseconds of each filter."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    ready, filters = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for _ in range(times):
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(address, wait_until="commit")
            shown = page.wait_for_function(READY, arg=f"{count:,}", timeout=120_000)
            ready.append(shown.json_value() / 1000)
            filters += [page.evaluate(FILTER, text) for text in SEARCHES]
            page.close()
        browser.close()
    return ready, filters


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--signals", type=int, default=10_000)
    parser.add_argument("--observations", type=int, default=20, help="of each signal")
    parser.add_argument("--times", type=int, default=5, help="how often the page is opened")
    given = parser.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory() as folder, MonitorProcess(Path(folder), CONFIG) as monitor:
        monitor.start()
        fill(monitor.address, given.signals, given.observations, console)
        began = time.perf_counter()
        size = len(httpx.get(f"{monitor.address}/api/v1/overview", timeout=60).content)
        took = time.perf_counter() - began
        ready, filters = measure(monitor.address, given.signals, given.times)
    table = Table(box=SIMPLE_HEAD)
    for column in ("", "median", "slowest"):
        table.add_column(column, justify="right" if column else "left")
    table.add_row("page ready, s", f"{statistics.median(ready):.2f}", f"{max(ready):.2f}")
    table.add_row("filter, ms", f"{statistics.median(filters):.0f}", f"{max(filters):.0f}")
    console.print(table)
    console.print(f"overview: {size / 1e6:.2f} MB in {took:.2f} s")
    print(f"ready_s={statistics.median(ready):.2f} filter_ms={statistics.median(filters):.0f}")


if __name__ == "__main__":
    main()
