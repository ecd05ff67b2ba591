"""How long it takes until a monitor on standby has taken over from the one that led, with signals to rebuild.

    python benchmarks/takeover.py

Two monitors with their defaults (but PostgreSQL) share a database. The one that leads is sent observations of 100
signals, as many as make them warm, and then it is killed, or paused. `takeover_s` is the time from then until the other
one has accepted an observation, `takeover_paused_s` the same for one that was paused: that one has to show no sign of
life for 6 seconds first. `takeover_cpu_s` is the CPU time that the other one took for it after a kill, which tells more
on a machine that is busy with other work.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

import httpx

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.service import AS_JSON, CONFIG, TOGETHER, Load, process_figures
from tests.service.postgres import Postgres, find_programs
from tests.service.process import MonitorProcess


def until_accepted(monitor, load):
    """Seconds until the monitor has accepted an observation."""
    began = time.perf_counter()
    body = load.batch(slice(0, 1))
    while True:
        try:
            reply = httpx.post(f"{monitor.address}/api/v1/observations", content=body, headers=AS_JSON, timeout=60)
            if reply.status_code == 200:
                return time.perf_counter() - began
        except httpx.HTTPError:
            pass
        time.sleep(0.05)


def until_on_standby(monitor):
    while True:
        try:
            if "standby: process" in httpx.get(f"{monitor.address}/readyz", timeout=60).text:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--signals", type=int, default=100, help=f"how many, a multiple of {TOGETHER}")
    parser.add_argument("--fill", type=int, default=600, help="observations of each signal at first")
    given = parser.parse_args()
    programs = find_programs()
    if programs is None:
        parser.error("PostgreSQL is not installed")
    database = Postgres(programs, durable=True)
    try:
        database.start()
        config = f'{CONFIG}[storage]\nurl = "{database.new_database()}"\nstandby = true\n'
        with (
            tempfile.TemporaryDirectory() as first,
            tempfile.TemporaryDirectory() as second,
            MonitorProcess(Path(first), config) as leader,
            MonitorProcess(Path(second), config) as other,
        ):
            leader.start()
            other.start(wait=False)
            until_on_standby(other)
            load = Load(leader.address, given.signals)
            asyncio.run(load.fill(given.fill, lambda done: None))
            before, _ = process_figures(other.pid)
            leader.kill()
            killed = until_accepted(other, load)
            cpu = process_figures(other.pid)[0] - before
            leader.start(wait=False)
            until_on_standby(leader)
            other.pause()
            paused = until_accepted(leader, load)
            other.go_on()
    finally:
        database.remove()
    print(f"signals={given.signals} takeover_s={killed:.1f} takeover_cpu_s={cpu:.1f} takeover_paused_s={paused:.1f}")


if __name__ == "__main__":
    main()
