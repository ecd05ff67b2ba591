"""What the monitor can carry: latency, CPU, memory and disk at a steady load, and the highest rate that it holds.

    python benchmarks/service.py

A monitor in a process of its own, with its defaults (SQLite, embedded forecaster), is sent observations of 1,000
signals over HTTP by a process beside it, on the same machine. First every signal is sent so many observations that it
is warm, as fast as they are taken. Then each signal sends one observation a second, for ten minutes, in requests of 50
signals spread over the second: the latency is that of a request, from when it was due to its reply, when everything in
it is scored and durable. Then the signals send more observations in each request, a tenth more at a time, until the
monitor answers 429 or no longer keeps up. Then the monitor is killed, and started again: `ready_s` is how long it takes
until it takes observations, and `ready_cpu_s` the CPU time of all its cores until then. At the end what is stored is
counted.

Last comes the flood: another monitor, whose only sender stops with 800 signals. `flood_messages` is how many messages
about that a receiver gets.

    python benchmarks/service.py --minutes 0 --hold 0  # only how long a start after a kill takes
    python benchmarks/service.py flood                 # only the flood
    python benchmarks/service.py import                # only an import, which "all" does not include

The import: another monitor gets the history of some signals with `tocsin import`, from one file with a value a minute.
CPU times are those of all cores. `import_ratio` is the CPU time of the monitor in units of what the library alone takes
for the same observations, 16 signals at a time in one thread, measured right after it.
"""

import argparse
import asyncio
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import deque
from pathlib import Path

import httpx
import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.flood import flood
from tests.service.process import MonitorProcess

from tocsin import Fleet
from tocsin_monitor.store import Store

CONFIG = """
[server]
requests_per_second = 100000
burst = 100000
[engine]
max_waiting = 20000
max_signals = {signals}
[detector]
preset = "{preset}"
"""
AS_JSON = {"Content-Type": "application/json"}
TOGETHER = 50
CLIENTS = 4
# Recent, since what is old is removed from the store.
START = time.time_ns() - 10 * 86400 * 10**9
# A rate is held if no request was refused and none took longer than this.
KEPT_UP = 2.0


class Load:
    """Sends observations of signals, and remembers what was acknowledged."""

    def __init__(self, address, signals, seed=0):
        self.address = address
        self.random = np.random.default_rng(seed)
        self.phases = self.random.random(signals)
        self.sent = np.zeros(signals, dtype=np.int64)
        self.acknowledged = np.zeros(signals, dtype=np.int64)
        self.groups = [slice(first, first + TOGETHER) for first in range(0, signals, TOGETHER)]
        self.latencies = []
        self.refused = self.broken = 0

    def batch(self, signals, steps=1):
        """The body of a request with the next observations of some signals.

        It is written without a library, since the sender's time is not the monitor's.
        """
        numbers = self.sent[signals, np.newaxis] + np.arange(steps)
        waves = 3 * np.sin(2 * np.pi * (numbers / 96 + self.phases[signals, np.newaxis]))
        values = (waves + self.random.standard_normal(waves.shape)).tolist()
        times = (START + numbers * 10**9).tolist()
        self.sent[signals] += steps
        return "[{}]".format(
            ",".join(
                f'{{"signal":"signal/{signal}","time":{time},"value":{value}}}'
                for signal, row in zip(range(signals.start, signals.stop), zip(times, values, strict=True), strict=True)
                for time, value in zip(*row, strict=True)
            )
        ).encode()

    async def send(self, client, signals, steps, due):
        """Send the next observations of some signals until they are taken; the latency counts from when it was due."""
        body = self.batch(signals, steps)
        while True:
            try:
                reply = await client.post(f"{self.address}/api/v1/observations", content=body, headers=AS_JSON)
            except httpx.TransportError:
                self.broken += 1
                continue
            if reply.status_code == 429:
                self.refused += 1
                await asyncio.sleep(float(reply.headers["Retry-After"]))
                continue
            reply.raise_for_status()
            self.latencies.append(time.perf_counter() - due)
            taken = sum(reply.content.count(b'"status":"%s"' % status) for status in (b"scored", b"duplicate"))
            if taken != (signals.stop - signals.start) * steps:
                raise RuntimeError(f"an observation was not taken: {reply.text[:2000]}")
            self.acknowledged[signals] += steps
            return

    async def fill(self, steps, advance):
        """Send so many observations of every signal, as fast as they are taken."""
        waiting = deque(group for _ in range(0, steps, 10) for group in self.groups)

        async def work(client):
            while waiting:
                await self.send(client, waiting.popleft(), 10, time.perf_counter())
                advance(TOGETHER * 10)

        async with httpx.AsyncClient(timeout=120) as client:
            await asyncio.gather(*(work(client) for _ in range(CLIENTS)))

    async def keep(self, per_second, seconds, advance):
        """Send so many observations a second, each signal's in one request a second, whether or not replies came."""
        self.latencies, self.refused, self.broken = [], 0, 0
        pause = 1 / len(self.groups)
        tasks, started = set(), time.perf_counter()
        # A signal's observations must not overtake each other.
        locks = [asyncio.Lock() for _ in self.groups]
        async with httpx.AsyncClient(timeout=120, limits=httpx.Limits(max_connections=len(locks))) as client:

            async def one(group, steps, due):
                async with locks[group]:
                    await self.send(client, self.groups[group], steps, due)
                advance(TOGETHER * steps)

            for number in range(round(seconds / pause)):
                due = started + number * pause
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                turn, group = divmod(number, len(self.groups))
                each = per_second / self.sent.size
                steps = int((turn + 1) * each) - int(turn * each)
                task = asyncio.create_task(one(group, steps, due))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
            await asyncio.gather(*tasks)
        return time.perf_counter() - started


def process_figures(pid):
    """CPU seconds and resident megabytes of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    cpu = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    rss = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    return cpu, rss


def count_stored(url, load):
    """How many acknowledged observations are not in the store, and how many are there more than once."""
    lost = doubled = 0
    store = Store.open(url)
    with store.reading() as reader:
        for row in reader.signals():
            times = [one.time for one in reader.observations(row.id, limit=10**9)]
            doubled += len(times) - len(set(times))
            lost += load.acknowledged[int(row.name.removeprefix("signal/"))] - len(set(times))
    store.close()
    return int(lost), doubled


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = ("all", "load", "flood", "import")
    parser.add_argument("part", nargs="?", choices=parts, default="all", help="what to measure")
    parser.add_argument("--flood", type=int, default=800, help="how many signals stop at once")
    parser.add_argument(
        "--imported", type=int, nargs=2, default=(20, 20_000), metavar=("SIGNALS", "EACH"), help="what is imported"
    )
    parser.add_argument("--preset", choices=("full", "light"), default="full", help="of the detectors")
    parser.add_argument("--signals", type=int, default=1000, help=f"how many, a multiple of {TOGETHER}")
    parser.add_argument("--fill", type=int, default=600, help="observations of each signal at first")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long the steady load lasts; 0 for none")
    parser.add_argument(
        "--hold", type=float, default=15.0, help="how many seconds each higher rate lasts; 0 to try none"
    )
    given = parser.parse_args()
    table = Table("what", "figure", box=SIMPLE_HEAD)
    figures = []
    if given.part in ("all", "load"):
        figures.append(under_load(given, table))
    if given.part in ("all", "flood"):
        figures.append(under_flood(given, table))
    if given.part == "import":
        figures.append(under_import(given, table))
    Console().print(table)
    print(*figures)


def under_flood(given, table):
    with tempfile.TemporaryDirectory(prefix="tocsin-flood-") as folder:
        began, over, delay = flood(Path(folder), given.flood)
    table.add_row(f"{given.flood} signals stop at once: messages that it began", f"{began}")
    table.add_row("  messages that it is over", f"{over}")
    table.add_row("  from the last observation to the first message", f"{delay:.1f} s")
    return f"flood_messages={began}"


def under_import(given, table):
    signals, each = given.imported
    count, steps, source = signals * each, np.arange(each)[:, np.newaxis], np.random.default_rng(0)
    waves = 3 * np.sin(2 * np.pi * (steps / 96 + source.random(signals)))
    values = (waves + source.standard_normal(waves.shape)).round(6)
    times = np.datetime64(time.time_ns() - each * 60 * 10**9, "ns") + steps * np.timedelta64(60, "s")
    with tempfile.TemporaryDirectory(prefix="tocsin-import-") as folder:
        file = Path(folder) / "history.csv"
        with file.open("w") as written:
            written.write(",".join(("time", *(f"s{number}" for number in range(signals)))) + "\n")
            for moment, row in zip(np.datetime_as_string(times[:, 0], "s"), values.tolist(), strict=True):
                written.write(f"{moment},{','.join(map(str, row))}\n")
        config = CONFIG.format(signals=signals, preset=given.preset) + '[storage]\nkeep_observations = "10000d"\n'
        with MonitorProcess(Path(folder), config, forked=False) as monitor:
            monitor.start()
            before, rss = process_figures(monitor.pid)
            command = [sys.executable, "-m", "tocsin", "import", file, "--separate", "--url", monitor.address]
            started, stored = time.perf_counter(), None
            client = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            while client.poll() is None:
                found = httpx.get(f"{monitor.address}/api/v1/imports", timeout=60).json()["imports"]
                if stored is None and len(found) == signals and all(one["stage"] != "storing" for one in found):
                    stored = time.perf_counter() - started, process_figures(monitor.pid)[0] - before
                time.sleep(0.2)
            took, used = time.perf_counter() - started, process_figures(monitor.pid)[0] - before
            sent = resource.getrusage(resource.RUSAGE_CHILDREN)
            after = process_figures(monitor.pid)[1]
            peak = int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{monitor.pid}/status").read_text())[1]) / 2**10
            monitor.stop()
    if client.returncode:
        raise RuntimeError("the import failed")
    alone = library_alone(values, times, given.preset)
    until_stored, used_until_stored = stored or (took, used)
    table.add_row(f"import of {count:,} observations", f"{took:.1f} s, {count / took:,.0f} a second")
    table.add_row("  until all were stored", f"{until_stored:.1f} s")
    table.add_row("  CPU of the monitor, an observation", f"{1e6 * used / count:.1f} us")
    table.add_row("    until all were stored", f"{1e6 * used_until_stored / count:.1f} us")
    table.add_row("  CPU of the command", f"{1e6 * (sent.ru_utime + sent.ru_stime) / count:.1f} us")
    table.add_row("  memory before, afterwards, and at most", f"{rss:.0f} MB, {after:.0f} MB, {peak:.0f} MB")
    table.add_row("the library alone, an observation", f"{1e6 * alone / count:.1f} us")
    return (
        f"import_s={took:.1f} import_cpu_us={1e6 * used / count:.1f} import_ratio={used / alone:.2f} "
        f"import_rss_mb={after:.0f} import_peak_mb={peak:.0f}"
    )


def library_alone(values, times, preset):
    """Seconds of CPU that fleets of 16 signals take for a history."""
    seconds = 0.0
    for first in range(0, values.shape[1], 16):
        some = values[:, first : first + 16]
        Fleet(some.shape[1], preset=preset).run_arrays(some[:1000])  # load the loops
        fleet, started = Fleet(some.shape[1], preset=preset), time.process_time()
        for step in range(0, len(some), 256):
            moments = np.repeat(times[step : step + 256], some.shape[1], axis=1)
            fleet.run_arrays(some[step : step + 256], times=moments)
        seconds += time.process_time() - started
    return seconds


def under_load(given, table):
    console = Console(stderr=True)
    with tempfile.TemporaryDirectory(prefix="tocsin-service-") as folder:
        # Nothing is imported before: its start and its memory are those of a service.
        serving = MonitorProcess(Path(folder), CONFIG.format(signals=given.signals, preset=given.preset), forked=False)
        with serving as monitor, Progress(console=console) as progress:
            started = time.perf_counter()
            monitor.start()
            table.add_row("start with nothing stored", f"{time.perf_counter() - started:.1f} s")
            load = Load(monitor.address, given.signals)
            task = progress.add_task("filling", total=given.signals * given.fill)
            started = time.perf_counter()
            asyncio.run(load.fill(given.fill, lambda done: progress.advance(task, done)))
            rate = given.signals * given.fill / (time.perf_counter() - started)
            table.add_row("first observations, as fast as they are taken", f"{rate:,.0f} a second")
            steady = steady_load(progress, monitor, load, given, table) if given.minutes else {"p99": 0.0, "rss": 0.0}
            held = highest_rate(progress, load, given, table, rate) if given.hold else 0.0
            monitor.kill()
            started = time.perf_counter()
            monitor.start(wait=False)
            monitor.wait_until_ready(600)
            ready = time.perf_counter() - started
            ready_cpu, ready_rss = process_figures(monitor.pid)
            table.add_row("start after a kill", f"{ready:.1f} s")
            table.add_row("  CPU", f"{ready_cpu:.1f} s, {1000 * ready_cpu / given.signals:.1f} ms a signal")
            table.add_row("  memory", f"{ready_rss:.0f} MB, {ready_rss / given.signals:.2f} MB a signal")
            monitor.stop()
        lost, doubled = count_stored(f"sqlite:///{folder}/data/tocsin.db", load)
    table.add_row("acknowledged", f"{load.acknowledged.sum():,}")
    return (
        f"p99_ms={steady['p99']:.1f} held_per_s={held:.0f} rss_mb={steady['rss']:.0f} ready_s={ready:.1f} "
        f"ready_cpu_s={ready_cpu:.1f} lost={lost} doubled={doubled}"
    )


def steady_load(progress, monitor, load, given, table):
    seconds = given.minutes * 60
    cpu, _ = process_figures(monitor.pid)
    disk = folder_size(monitor.folder / "data")
    task = progress.add_task("one observation a second each", total=given.signals * seconds)
    took = asyncio.run(load.keep(given.signals, seconds, lambda done: progress.advance(task, done)))
    used, rss = process_figures(monitor.pid)
    p50, p99, worst = (1000 * np.percentile(load.latencies, q) for q in (50, 99, 100))
    grown = folder_size(monitor.folder / "data") - disk
    table.add_row(f"{given.signals} a second for {given.minutes:g} min: latency p50", f"{p50:.1f} ms")
    table.add_row("  p99", f"{p99:.1f} ms")
    table.add_row("  worst", f"{worst:.1f} ms")
    table.add_row("  refused requests, broken connections", f"{load.refused}, {load.broken}")
    table.add_row("  CPU, of one core", f"{100 * (used - cpu) / took:.0f} %")
    table.add_row("  memory", f"{rss:.0f} MB, {rss / given.signals:.2f} MB a signal")
    table.add_row("  disk", f"{folder_size(monitor.folder / 'data') / 2**20:.0f} MB, grown by {grown / 2**20:.0f} MB")
    return {"p99": p99, "rss": rss}


def highest_rate(progress, load, given, table, rate):
    """The highest rate, in steps of a tenth from half of `rate` on, that is held."""
    held = float(given.signals)
    wanted = max(held * 1.1, rate / 2)
    while True:
        task = progress.add_task(f"{wanted:,.0f} a second", total=wanted * given.hold)
        took = asyncio.run(load.keep(wanted, given.hold, lambda done, task=task: progress.advance(task, done)))
        worst = max(load.latencies)
        kept = not load.refused and worst < KEPT_UP and took < given.hold + KEPT_UP
        table.add_row(
            f"{wanted:,.0f} a second",
            f"{'held' if kept else 'not held'}: worst latency {worst:.2f} s, {load.refused} refused",
        )
        if not kept:
            return held
        held, wanted = wanted, wanted * 1.1


def folder_size(folder):
    return sum(file.stat().st_size for file in folder.iterdir())


if __name__ == "__main__":
    main()
