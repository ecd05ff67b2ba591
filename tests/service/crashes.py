"""Kill a monitor again and again while observations come in, and see whether anything was lost, doubled or changed.

`python -m tests.service.crashes --kills 50`, and with `--postgresql` the database is killed and restarted as well. With
`--standby` two monitors share a database: the one that leads is killed or paused, and the other one takes over.
"""

import argparse
import random
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import numpy as np
from numpy.typing import NDArray

from tests.service.postgres import Postgres, find_programs
from tests.service.process import MonitorProcess
from tocsin.detection import Detector
from tocsin.detection.peers import PeerLevels
from tocsin_monitor.observations import Status
from tocsin_monitor.store import Store, StoreReader

SETTINGS = {"alarm_rate": 0.02, "preset": "light", "views": ["error", "movement"]}
CONFIG = """
[engine]
snapshot_every = 150
[server]
requests_per_second = 100000
burst = 100000
[detector]
alarm_rate = 0.02
preset = "light"
views = ["error", "movement"]
[[templates]]
match = "pump/*"
peers = true
detector = {interval = "1s"}
"""
# Signals that are compared with each other, sent by one sender.
PUMPS = 4
SECOND = 1_000_000_000
# Recent, since what is old is removed from the store.
START = (time.time_ns() // SECOND - 10 * 86400) * SECOND


@dataclass
class Sent:
    """What one signal sent, and what was acknowledged of it."""

    name: str
    values: list[float] = field(default_factory=list)
    acknowledged: dict[int, float | None] = field(default_factory=dict)


@dataclass
class Findings:
    """What the trial found."""

    kills: int = 0
    observations: int = 0
    repeated: int = 0
    incidents: int = 0
    lost: int = 0
    doubled: int = 0
    different: int = 0
    #: How many seconds it took each time until another monitor took observations.
    takeovers: list[float] = field(default_factory=list)


class Sender(threading.Thread):
    """Sends observations of some signals, each batch again and again until it is acknowledged, by whichever monitor."""

    def __init__(self, addresses: Sequence[str], signals: list[Sent], seed: int, together: bool = False) -> None:
        super().__init__(daemon=True)
        self._addresses, self._signals, self._together = list(addresses), signals, together
        self._random = np.random.default_rng(seed)
        self.stopping = threading.Event()
        self.failed: Exception | None = None
        self.repeated = 0

    def run(self) -> None:
        try:
            # Where another monitor may answer, it is asked soon.
            with httpx.Client(timeout=70 if len(self._addresses) == 1 else 3) as client:
                while not self.stopping.is_set():
                    self._send(client, self._next())
        except Exception as error:  # told by the thread that waits
            self.failed = error

    def _next(self) -> list[dict[str, object]]:
        batch: list[dict[str, object]] = []
        counts = self._random.integers(0, 40, len(self._signals))
        for signal, count in zip(self._signals, counts, strict=True):
            for _ in range(int(counts[0] if self._together else count)):
                number = len(signal.values)
                # Now and then something happens.
                fault = 8.0 * (number % 400 > 390)
                signal.values.append(float(np.sin(number / 8) + 0.3 * self._random.normal() + fault))
                batch.append({"signal": signal.name, "time": START + number * SECOND, "value": signal.values[-1]})
        self._random.shuffle(batch)  # the monitor puts them in order
        return batch

    def _send(self, client: httpx.Client, batch: list[dict[str, object]]) -> None:
        if not batch:
            return
        by_name = {signal.name: signal for signal in self._signals}
        while True:
            try:
                reply = client.post(f"{self._addresses[0]}/api/v1/observations", json=batch)
            except httpx.HTTPError:
                self._try_the_next(0.05)
                continue
            if reply.status_code in (429, 503):
                self._try_the_next(0.1)
                continue
            reply.raise_for_status()
            for sent, outcome in zip(batch, reply.json()["outcomes"], strict=True):
                if outcome["status"] not in ("scored", "duplicate"):
                    raise RuntimeError(f"{sent} became {outcome}")
                by_name[str(sent["signal"])].acknowledged[int(str(sent["time"]))] = outcome["p"]
            return

    def _try_the_next(self, pause: float) -> None:
        self.repeated += 1
        self._addresses.append(self._addresses.pop(0))
        time.sleep(pause)


class Monitors:
    """One monitor, or two of which one leads, and what is done to them."""

    def __init__(self, stack: ExitStack, folder: Path, config: str, count: int) -> None:
        self.all = []
        for number in range(count):
            (folder / str(number)).mkdir()
            self.all.append(stack.enter_context(MonitorProcess(folder / str(number), config)))

    def start(self) -> None:
        for monitor in self.all:
            monitor.start(wait=monitor is self.all[0])

    def kill(self) -> None:
        """Kill the one that leads, and start it again."""
        leader = self._leader()
        leader.kill()
        leader.start(wait=False)

    def pause(self) -> None:
        """Stop the one that leads from doing anything until another one leads, and then let it go on."""
        leader = self._leader()
        leader.pause()
        try:
            self.wait_until_ready([one for one in self.all if one is not leader])
        finally:
            leader.go_on()

    def stop(self) -> None:
        for monitor in self.all:
            monitor.stop()

    def wait_until_ready(self, some: Sequence[MonitorProcess] | None = None, seconds: float = 300.0) -> MonitorProcess:
        """Which one leads, as soon as one does."""
        until = time.monotonic() + seconds
        while True:
            for monitor in self.all if some is None else some:
                if monitor.is_ready():
                    return monitor
            if time.monotonic() > until:
                raise RuntimeError(f"no monitor is ready after {seconds:g} s")
            time.sleep(0.05)

    def _leader(self) -> MonitorProcess:
        """The one that leads; one that is still busy with its start where there is no other."""
        return self.all[0] if len(self.all) == 1 else self.wait_until_ready()


def trial(
    kills: int, signals: int, seed: int, database: Postgres | None, report: bool = False, least: int = 0,
    standby: bool = False,
) -> Findings:  # fmt: skip
    """Kill a monitor so many times; with a database, that is killed or restarted every other time instead.

    With `standby`, it is the one of two that leads, and every other time it is paused until the other one leads. This
    goes on until at least so many observations of each signal are acknowledged, however busy the machine is.
    """
    chance = random.Random(seed)
    sent = [Sent(f"machine/{number}") for number in range(signals)]
    pumps = [Sent(f"pump/{number}") for number in range(PUMPS)]
    findings = Findings(kills=kills)
    with tempfile.TemporaryDirectory(prefix="tocsin-crashes-") as folder, ExitStack() as stack:
        url = database.new_database() if database else f"sqlite:///{folder}/0/data/tocsin.db"
        config = CONFIG + (f'[storage]\nurl = "{url}"\nstandby = {str(standby).lower()}\n' if database else "")
        monitors = Monitors(stack, Path(folder), config, 2 if standby else 1)
        monitors.start()
        addresses = [one.address for one in monitors.all]
        senders = [Sender(addresses, sent[part::3], seed + part) for part in range(3)]
        senders.append(Sender(addresses, pumps, seed + 3, together=True))
        sent += pumps
        for sender in senders:
            sender.start()
        for number in range(kills):
            if standby or chance.random() < 0.8:  # else it is killed while it is still busy with what was stored
                wait_for_more(sent, monitors)
            time.sleep(chance.uniform(0.0, 1.0))
            began = time.monotonic()
            if standby and number % 2:
                monitors.pause()
            elif database is not None and not standby and number % 2:
                # One that cannot reach its database when it starts ends, and whatever started it has to do so again.
                monitors.all[0].wait_until_it_listens()
                database.kill() if chance.random() < 0.5 else database.stop()
                database.start()
            else:
                monitors.kill()
            if standby:
                monitors.wait_until_ready()
                wait_for_more(sent, monitors)
                findings.takeovers.append(time.monotonic() - began)
            if report:
                print(f"{number + 1} of {kills} kills, {sum(len(one.acknowledged) for one in sent)} acknowledged")
        monitors.wait_until_ready()
        wait_for_more(sent, monitors)
        while min(len(one.acknowledged) for one in sent) < least:
            wait_for_more(sent, monitors)
        for sender in senders:
            sender.stopping.set()
        for sender in senders:
            sender.join(300)
            if sender.failed is not None or sender.is_alive():
                raise RuntimeError("a sender failed") from sender.failed
        monitors.stop()
        findings.repeated = sum(sender.repeated for sender in senders)
        store = Store.open(url)
        try:
            with store.reading() as reader:
                values = np.array([one.values for one in pumps]).T[..., np.newaxis]
                apart = np.full((PUMPS, values.shape[0]), np.nan)
                apart[:, 1:] = PeerLevels(PUMPS, 1).compare(values, np.arange(PUMPS))[:-1, :, 0].T
                for one in sent:
                    compare(reader, one, findings, apart[pumps.index(one)] if one in pumps else None)
                findings.different += torn_events(reader)
        finally:
            store.close()
    return findings


def wait_for_more(sent: list[Sent], monitors: Monitors, seconds: float = 300.0) -> None:
    """Until something more is acknowledged. Meanwhile no monitor may end by itself."""
    before, until = sum(len(one.acknowledged) for one in sent), time.monotonic() + seconds
    while sum(len(one.acknowledged) for one in sent) == before:
        for monitor in monitors.all:
            monitor.must_run()
        if time.monotonic() > until:
            raise RuntimeError(f"nothing was acknowledged in {seconds:g} s")
        time.sleep(0.02)


def compare(reader: StoreReader, sent: Sent, findings: Findings, apart: NDArray[np.float64] | None) -> None:
    """What is stored of a signal beside what a detector says that was never interrupted.

    `apart` are its distances from its peers, if it has any.
    """
    row = reader.signal(sent.name)
    assert row is not None
    stored = reader.observations(row.id, after=None, until=None, limit=10**9)
    times = [START + number * SECOND for number in range(len(sent.values))]
    findings.observations += len(stored)
    findings.lost += len(set(sent.acknowledged) - {one.time for one in stored})
    findings.doubled += len(stored) - len({one.time for one in stored})
    values, detector = np.array(sent.values), Detector(["value"], **SETTINGS)
    if apart is not None:
        values = np.stack([values, apart], axis=1)
        detector = Detector(["value", "value against peers"], interval=1, **SETTINGS)
    verdicts = detector.run(values, np.array(times).view("datetime64[ns]")).verdicts
    by_time = {one.time: one for one in stored}
    for step, time_of in enumerate(times):
        one = by_time.get(time_of)
        if one is None:
            findings.lost += 1
            continue
        judged = one.judged
        expected = [verdicts.value, verdicts.forecast, verdicts.low, verdicts.high]
        same = one.status is Status.SCORED and all(
            np.array_equal(got, array[step, 0], equal_nan=True)
            for got, array in zip((judged.value, judged.forecast, judged.low, judged.high), expected, strict=True)
        )
        same = same and np.array_equal(
            [judged.p, judged.merged, judged.alarm, judged.warm],
            [verdicts.p[step, 0], verdicts.merged[step, 0], verdicts.alarm[step, 0], verdicts.warm[step, 0]],
            equal_nan=True,
        )
        told = sent.acknowledged.get(time_of, judged.p)
        findings.different += not (
            same and np.array_equal([np.nan if told is None else told], [judged.p], equal_nan=True)
        )
    incidents = reader.incidents(signal_id=row.id, kind="alarm", limit=10**6)[::-1]
    findings.incidents += len(incidents)
    expected_incidents = [
        (int(one.start.astype(np.int64)), int(one.end.astype(np.int64)), one.alarms, one.duration, one.ended)
        for one in detector.incidents
    ]
    found = [(one.start, one.end, one.alarms, one.duration, one.ended) for one in incidents]
    findings.different += found != expected_incidents


def torn_events(reader: StoreReader) -> int:
    """How many incidents are in no event, and how many events are open or over while their incidents are not."""
    open_members: dict[int | None, bool] = {}
    for row in reader.incidents(limit=10**6):
        open_members[row.event] = open_members.get(row.event, False) or row.open
    events = {row.id: row.open for row in reader.events(limit=10**6)}
    return len(open_members.items() ^ events.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50, help="how many times something is killed")
    parser.add_argument("--signals", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--postgresql", action="store_true", help="kill the database, too")
    parser.add_argument("--standby", action="store_true", help="kill or pause the one of two monitors that leads")
    given = parser.parse_args()
    database = None
    if given.postgresql or given.standby:
        programs = find_programs()
        if programs is None:
            parser.error("PostgreSQL is not installed")
        database = Postgres(programs, durable=True)
        database.start()
    try:
        found = trial(given.kills, given.signals, given.seed, database, report=True, standby=given.standby)
    finally:
        if database is not None:
            database.remove()
    print(f"\nstored {found.observations}, sent again {found.repeated} batches, {found.incidents} incidents")
    if found.takeovers:
        print(f"takeover_s={max(found.takeovers):.1f} at most, {np.median(found.takeovers):.1f} in the middle")
    print(f"kills={found.kills} lost={found.lost} doubled={found.doubled} different={found.different}")


if __name__ == "__main__":
    main()
