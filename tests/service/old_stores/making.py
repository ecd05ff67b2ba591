"""Have a monitor of an earlier version write a store, to keep it: `python making.py FOLDER URL`, with that version.

    PYTHONPATH=CHECKOUT/src python tests/service/old_stores/making.py FOLDER sqlite
    xz -9e FOLDER/data/tocsin.db
    PYTHONPATH=CHECKOUT/src python tests/service/old_stores/making.py FOLDER postgresql://...
    pg_dump --no-owner --no-privileges ... | xz -9e

Only with the standard library, and over HTTP: it must work with any version.
"""

import json
import math
import random
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

PORT = 8799
START = 1_793_000_000  # in seconds; far in the future would be refused, long ago be removed
SIGNALS = ("pump/1", "pump/2")
# So many are sent to the earlier version; after these a fault is still going on, in the second signal.
SENT = 420
CONFIG = """
[storage]
keep_observations = "3650d"
keep_incidents = "3650d"
[detector]
alarm_rate = 0.05
preset = "light"
forecaster = "last-value"
views = ["error"]
"""


def observed(name: str, count: int) -> list[float]:
    """The values of a signal, the same for everybody who asks."""
    chance = random.Random(name)
    faults = [(300, 312), (410, 440)] if name.endswith("2") else [(330, 345)]
    return [
        round(math.sin(number / 9) + chance.gauss(0, 0.3) + 6 * any(a <= number < b for a, b in faults), 6)
        for number in range(count)
    ]


def batch(first: int, last: int) -> list[dict[str, object]]:
    """Observations of all signals, from one number up to, but not including, another."""
    return [
        {"signal": name, "time": START + 60 * number, "value": value}
        for name in SIGNALS
        for number, value in enumerate(observed(name, last))
        if number >= first
    ]


def main() -> None:
    folder, url = Path(sys.argv[1]), sys.argv[2]
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "tocsin.toml"
    config.write_text(CONFIG if url == "sqlite" else CONFIG.replace("[storage]", f'[storage]\nurl = "{url}"'))
    command = [sys.executable, "-m", "tocsin", "serve", "--config", str(config), "--port", str(PORT)]
    monitor = subprocess.Popen(command + (["--data", str(folder / "data")] if url == "sqlite" else []))
    address = f"http://127.0.0.1:{PORT}"
    while True:
        try:
            urllib.request.urlopen(f"{address}/readyz", timeout=5).close()
            break
        except OSError:
            if monitor.poll() is not None:
                raise SystemExit("the monitor ended") from None
            time.sleep(0.2)
    for first in range(0, SENT, 60):
        ask = urllib.request.Request(
            f"{address}/api/v1/observations",
            json.dumps(batch(first, first + 60)).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(ask, timeout=120) as reply:
            outcomes = json.load(reply)["outcomes"]
        print(first, {one["status"] for one in outcomes}, sum(bool(one["alarm"]) for one in outcomes))
    with urllib.request.urlopen(f"{address}/api/v1/incidents", timeout=30) as reply:
        for one in json.load(reply)["incidents"]:
            print(one["signal"], one["start"], one["end"], "open" if one["open"] else one["ended"])
    monitor.send_signal(signal.SIGTERM)
    monitor.wait(60)


if __name__ == "__main__":
    main()
