"""What the monitor tells the operator of a cluster: two weeks with fourteen faults, after five weeks of history.

    python benchmarks/fleet.py

The fleet is simulated (`tocsin_bench.fleet`): 40 services with four signals each, one value a minute, and one service
that is new in the live weeks. Everything else is real. A monitor in a process of its own, with its store on disk and
one budget for all signals, gets the history as a file by `tocsin import`. Then it is sent the live weeks over HTTP,
all signals in a request, and a receiver takes its messages from a webhook. Who would have been told of what, how soon
and how often for nothing is counted from these messages and from the monitor's incidents, with the simulator's truth.

Only the time is not real: the monitor lives by that of the data (`benchmarks/data_clock.py`), so that all its settings
mean what they say, and two weeks pass in minutes. That time goes on when values are sent, and by half a minute when
they are taken. Requests have one minute in the hour after a fault begins, and otherwise `--together` minutes. A message
has the time at which it came: by so many minutes it may be late, and by more if the machine is busy, but never early.

    python benchmarks/fleet.py --services 24 --weeks-imported 1 --live-days 2  # quickly, whether it works
    python benchmarks/fleet.py --keep FOLDER  # with the settings, the store, the log and the messages
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.data_clock import DataClock
from tests.service.process import MonitorProcess
from tests.service.receiver import Receiver

from tocsin_bench.fleet import DAY, HISTORY, HOUR, LIMITS, LIVE, UNITS, WEEK, simulate
from tocsin_bench.fleet_score import Seen, Told, Truth, minutes_text, score
from tocsin_monitor.observations import moment_of
from tocsin_monitor.rules import RULES

CONFIG = """
[server]
requests_per_second = 100000
burst = 100000
[detector]
preset = "light"
interval = "1min"
{templates}
[[budgets]]
match = "*"
incidents = "{budget}"
[[sinks.webhook]]
name = "pager"
url = "http://{place}"
"""
AS_JSON = {"Content-Type": "application/json"}
MINUTE = 60 * 10**9
# The first minute of the simulated time, a Monday.
START = moment_of("2026-06-01T00:00:00Z")
# Real seconds to wait for the last messages.
PATIENCE = 60.0


class LivingByData(MonitorProcess):
    """A monitor whose time is that of a clock."""

    def __init__(self, folder, config, clock):
        self.program = (str(Path(__file__).with_name("data_clock.py")), str(clock.file))
        super().__init__(folder, config)

    def peak_mb(self):
        """The most memory that it had so far."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1024


class Operator:
    """The monitor of a fleet, and everybody who has to do with it: who sends, who is told, and the clock."""

    def __init__(self, folder, fleet, budget):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.fleet = folder, fleet
        self.clock = DataClock(folder / "clock")
        self.receiver = Receiver(clock=self.clock.now)
        config = CONFIG.format(templates=templates(), budget=budget, place=self.receiver.place)
        self.monitor = LivingByData(folder, config, self.clock)
        self.client = httpx.Client(base_url=f"{self.monitor.address}/api/v1", timeout=600)
        self.clock.set(moment(fleet.live_from) - MINUTE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.close()
        self.monitor.__exit__()
        self.receiver.close()

    def import_history(self, weeks):
        """Import the weeks before the live ones with the command, and wait until they are learned."""
        first, last = self.fleet.live_from - round(weeks * WEEK), self.fleet.live_from
        times = pa.array(moment(np.arange(first, last)), pa.timestamp("ns", "UTC"))
        history = {name: values[first:last] for name, values in self.fleet.signals.items()}
        # What is new has none.
        columns = {name: values for name, values in history.items() if not np.isnan(values).all()}
        file = self.folder / "history.parquet"
        pq.write_table(pa.table({"time": times, **columns}), file)
        command = ["import", str(file), "--separate", "--url", self.monitor.address]
        with (self.folder / "import.log").open("wb") as log:
            subprocess.run([sys.executable, "-m", "tocsin", *command], check=True, stdout=log, stderr=log)
        stages = {one["signal"]: one["stage"] for one in self.ask("/imports")["imports"]}
        if stages != dict.fromkeys(columns, "done"):
            raise RuntimeError(f"not everything was learned: {stages}")

    def feed(self, pieces, advance):
        """Send the values of each of these stretches of minutes when it is over; returns how many there were."""
        sent = 0
        signals = {f'{{"signal":"{name}","time":': values.tolist() for name, values in self.fleet.signals.items()}
        for minutes in pieces:
            rows = [
                f'{name}{moment(minute)},"value":{value}}}'
                for minute in minutes
                for name, values in signals.items()
                if not math.isnan(value := values[minute])
            ]
            self.clock.set(moment(minutes[-1]))
            self._post(f"[{','.join(rows)}]", len(rows))
            self.clock.set(moment(minutes[-1]) + MINUTE // 2)
            sent += len(rows)
            advance(len(minutes))
        return sent

    def _post(self, body, size):
        while True:
            reply = self.client.post("/observations", content=body, headers=AS_JSON)
            if reply.status_code not in (429, 503):
                break
            time.sleep(float(reply.headers["Retry-After"]))
        reply.raise_for_status()
        if reply.content.count(b'"status":"scored"') != size:
            raise RuntimeError(f"an observation was not taken: {reply.text[:2000]}")

    def ask(self, path, **params):
        return self.client.get(path, params=params).raise_for_status().json()

    def messages(self):
        """Those that an event began or grew, once all that are due have come."""
        self.clock.set(self.clock.now() + MINUTE // 2)
        until = time.monotonic() + PATIENCE
        time.sleep(1)
        while any(self.ask("/status")["outbox"].values()):
            if time.monotonic() > until:
                raise RuntimeError(f"messages still wait after {PATIENCE:g} s")
            time.sleep(0.1)
        taken = list(zip(self.receiver.moments, self.receiver.taken, strict=True))
        with (self.folder / "messages.jsonl").open("w") as file:
            file.writelines(f"{json.dumps({'minute': minute(at), **message})}\n" for at, message in taken)
        return [
            Told(
                event=message["event"]["id"],
                at=minute(at),
                words=message["commonAnnotations"]["summary"],
                level=message["commonLabels"]["severity"],
            )
            for at, message in taken
            if message["status"] == "firing"
        ]

    def incidents(self):
        """All of the live weeks, the first first; those that are open last until now."""
        found, more = [], {}
        while rows := self.ask("/incidents", limit=1000, **more)["incidents"]:
            found += rows
            more = {"before": rows[-1]["id"]}
        return [
            Seen(
                signal=row["signal"],
                kind=row["kind"],
                start=minute(moment_of(row["start"])),
                over=minute(moment_of(row["closed"]) if row["closed"] else self.clock.now()),
                ended=row["ended"],
                earliest=math.nan if row["began_earliest"] is None else minute(moment_of(row["began_earliest"])),
                latest=math.nan if row["began_latest"] is None else minute(moment_of(row["began_latest"])),
                event=row["event"],
            )
            for row in reversed(found)
            if row["ended"] != "imported"
        ]


def moment(minute):
    """When a minute of the simulated time begins, in nanoseconds since 1970."""
    return START + minute * MINUTE


def minute(moment):
    """The minute of the simulated time at a moment, in nanoseconds since 1970."""
    return (moment - START) / MINUTE


def templates():
    """A template for the signals of each unit, and before it those with limits."""
    units = {f"*/{metric}": unit for metric, unit in UNITS.items()}
    limits = LIMITS if "limit_high" in RULES else {}
    found = {}
    for pattern in (*limits, *(one for one in units if one not in limits)):
        unit = units[f"*/{pattern.split('/')[1]}"]
        found[pattern] = [f'match = "{pattern}"', f'unit = "{unit}"']
        if pattern in limits:
            found[pattern].append(f"limit_high = {limits[pattern]}")
    return "\n".join("\n".join(("[[templates]]", *lines)) for lines in found.values())


def pieces_of(truth, together):
    """The live time in stretches of so many minutes; in the hour after a fault begins, in single minutes."""
    first = truth.begin
    while first < truth.end:
        soon = any(one.begin - together < first < one.begin + HOUR for one in truth.faults)
        yield range(first, min(first + (1 if soon else together), truth.end))
        first += 1 if soon else together


def truth_of(fleet, days):
    """What happened in so many live days."""
    disk = next(one for one in fleet.faults if one.name == "slow disk")
    above = np.flatnonzero(fleet.signals[disk.signals[0]][disk.begin : disk.end] > LIMITS["*/disk"])
    end = fleet.live_from + round(days * DAY)
    crossed = disk.begin + int(above[0]) if above.size else math.nan
    idle = fleet.rhythms[0].split("/")[0]
    return Truth(
        faults=fleet.faults, rhythms=(*fleet.rhythms, fleet.new_rhythm, idle), deploys=fleet.deploys,
        begin=fleet.live_from, end=end, limit_crossed=crossed if crossed < end else math.nan,
    )  # fmt: skip


def fault_table(found, live_from):
    table = Table(
        "fault", "signals", "begins", "told after", "words", "level", "ended", "lasted", "onset", box=SIMPLE_HEAD
    )
    for one in found.faults:
        fault, message, incident = one.fault, one.message, one.incident
        what = [fault.name, signals_text(fault.signals), when(fault.begin - live_from)]
        if message is None or incident is None:
            table.add_row(*what, "not told")
            continue
        ended = (incident.ended or "still open", minutes_text(incident.over - incident.start))
        onset = "covered" if one.onset_covered else "not covered"
        table.add_row(*what, minutes_text(one.delay), message.words, message.level, *ended, onset)
    return table


def other_table(found, live_from):
    """What else was told."""
    table = Table("reason", "when", "words", "level", box=SIMPLE_HEAD)
    for reason, messages in (("repair", found.repairs), ("known job", found.rhythms), ("false", found.false)):
        for one in messages:
            table.add_row(reason, when(one.at - live_from), one.words, one.level)
    return table


def signals_text(signals):
    return ", ".join(signals) if len(signals) <= 4 else f"{signals[0]} and {len(signals) - 1} others"


def when(minutes):
    """A moment of the live weeks.

    >>> when(1500)
    'day 1 01:00'
    """
    day, rest = divmod(int(minutes), DAY)
    return f"day {day} {rest // 60:02}:{rest % 60:02}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="of the simulated fleet")
    parser.add_argument("--services", type=int, default=40, help="how many, at least 24")
    parser.add_argument("--weeks-imported", type=float, default=HISTORY / WEEK, help="of the history, the newest")
    parser.add_argument("--live-days", type=float, default=LIVE / DAY, help="how many days are sent")
    # After ten minutes without a value, a signal would be silent.
    parser.add_argument("--together", type=int, choices=range(1, 6), default=5, help="minutes in most requests")
    parser.add_argument("--budget", default="2/week", help="incidents that are told of all signals together")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="a new folder for what the monitor stores")
    given = parser.parse_args()
    for option, value, most in (
        ("--weeks-imported", given.weeks_imported, HISTORY // WEEK),
        ("--live-days", given.live_days, LIVE // DAY),
    ):
        if not 0 < value <= most:
            parser.error(f"{option} must be more than 0 and at most {most}, got {value:g}")
    if given.keep is not None and given.keep.exists():
        parser.error(f"--keep must be a new folder, and {given.keep} exists")
    fleet = simulate(given.seed, given.services)
    truth = truth_of(fleet, given.live_days)
    console = Console(width=180, highlight=False)
    place = tempfile.TemporaryDirectory(prefix="tocsin-fleet-") if given.keep is None else nullcontext(given.keep)
    with (
        place as folder,
        Operator(Path(folder), fleet, given.budget) as operator,
        Progress(console=Console(stderr=True)) as progress,
    ):
        operator.monitor.start()
        started = time.perf_counter()
        operator.import_history(given.weeks_imported)
        imported = time.perf_counter() - started
        task = progress.add_task("live", total=truth.end - truth.begin)
        started = time.perf_counter()
        sent = operator.feed(pieces_of(truth, given.together), lambda minutes: progress.advance(task, minutes))
        live = time.perf_counter() - started
        found = score(truth, operator.messages(), operator.incidents())
        peak = operator.monitor.peak_mb()
    console.print(fault_table(found, truth.begin))
    console.print(other_table(found, truth.begin))
    print(
        *(f"{name}={value}" for name, value in found.figures().items()),
        f"import_s={imported:.0f} live_obs_s={sent / live:.0f} rss_mb={peak:.0f}",
    )


if __name__ == "__main__":
    main()
