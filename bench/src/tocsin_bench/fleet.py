"""A simulated fleet of services with its history, and two live weeks with faults whose truth is known.

Each service sends four signals, one value a minute: requests a second, latency in milliseconds, errors in per cent, and
one of processor time, memory or disk space. Traffic has days and weeks, and nights are quieter. Deploys restart
services: a few minutes of errors, and another level of memory from then on. Jobs run every hour, night or week. One
service is idle at weekends.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

HOUR, DAY = 60, 24 * 60
WEEK = 7 * DAY
HISTORY, LIVE = 5 * WEEK, 2 * WEEK
#: Which service has which fourth signal, in turn.
RESOURCES = ("cpu", "memory", "disk")
UNITS = {"requests": "1/s", "latency": "ms", "errors": "%", "cpu": "%", "memory": "GB", "disk": "%"}
#: What an operator knows: a disk is full at 95%, and the new service should answer within half a second.
LIMITS = {"*/disk": 95.0, "service-new/latency": 500.0}


@dataclass(frozen=True)
class Fault:
    """What went wrong, on which signals, from which minute of the whole time until which."""

    name: str
    signals: tuple[str, ...]
    begin: int
    end: int


@dataclass(frozen=True)
class SimulatedFleet:
    """The values of each signal, NaN where it sends none, and what happened."""

    signals: dict[str, Floats]
    faults: tuple[Fault, ...]
    #: The signals with jobs that anybody would know from the history, and those with a new one in the live weeks.
    rhythms: tuple[str, ...]
    new_rhythm: str
    #: When each service was restarted.
    deploys: dict[str, tuple[int, ...]]
    live_from: int = HISTORY


@dataclass
class _Service:
    """A service, and what its signals are made of; faults change these before `signals` makes values of them."""

    name: str
    resource: str
    rng: np.random.Generator
    traffic: Floats  # requests a second
    slowness: Floats  # factors on latency
    failing: Floats  # share of requests
    busy: Floats  # processor time besides that of requests
    kept: Floats  # memory, as a factor
    full: Floats  # disk space
    jitter: Floats  # a factor on the noise of latency
    base: dict[str, float]
    deploys: list[int] = field(default_factory=list)

    def signal(self, metric: str) -> str:
        return f"{self.name}/{metric}"

    def values(self) -> dict[str, Floats]:
        """The four signals."""
        rng, size = self.rng, self.traffic.size
        arrived = rng.poisson(self.traffic * HOUR)
        load = self.traffic / self.base["traffic"]
        noise = autoregressive(rng, size, 0.8, 0.03) + rng.normal(0, 1, size) * (0.01 + 0.03 * load)
        latency = self.base["latency"] * (1 + 0.4 * load) * self.slowness * np.exp(noise * self.jitter)
        failed = rng.binomial(arrived, np.clip(self.failing, 0, 1))
        values = {
            "requests": np.round(arrived / HOUR, 2),
            "latency": np.round(np.where(arrived > 0, latency, 0.0), 1),
            "errors": np.round(100 * failed / np.maximum(arrived, 1), 3),
        }
        if self.resource == "cpu":
            noise = autoregressive(rng, size, 0.7, 1.0) * (0.4 + 0.6 * load)
            values["cpu"] = np.round(np.clip(4 + 45 * load + self.busy + noise, 0, 100), 2)
        elif self.resource == "memory":
            noise = autoregressive(rng, size, 0.5, 0.006)
            values["memory"] = np.round(self.base["memory"] * self.kept * (1 + noise), 3)
        else:
            values["disk"] = np.round(np.clip(self.full + rng.normal(0, 0.05, size), 0, 100), 2)
        return {self.signal(metric): np.asarray(one, dtype=np.float64) for metric, one in values.items()}


def autoregressive(rng: np.random.Generator, size: int, persistence: float, spread: float) -> Floats:
    """Noise of this standard deviation in which a value remembers the one before it."""
    own = rng.normal(0, spread * np.sqrt(1 - persistence**2), size).tolist()
    return np.array(list(accumulate(own, lambda before, new: persistence * before + new)))


def simulate(seed: int, services: int = 40) -> SimulatedFleet:
    """The fleet of this seed: five weeks of history and two live weeks with fourteen faults.

    >>> fleet = simulate(0, services=24)
    >>> len(fleet.signals), len(fleet.faults), len(fleet.signals["service-00/latency"])
    (100, 14, 70560)
    """
    if services < 24:
        raise ValueError(f"services must be at least 24, so that each fault has one of its own, got {services}")
    rng = np.random.default_rng(seed)
    minutes = np.arange(HISTORY + LIVE)
    fleet = [
        _make(f"service-{i:02}", RESOURCES[i % 3], minutes, np.random.default_rng([seed, i])) for i in range(services)
    ]
    idle = fleet[services - 1]
    weekend = minutes % WEEK >= 5 * DAY
    idle.traffic[weekend] = 0.0
    computing = [one for one in fleet if one.resource == "cpu"]
    rhythms = [idle.signal("requests"), *_jobs(computing, minutes)]
    for one in fleet:
        _deploy(one, minutes)
    new = _make("service-new", "cpu", minutes, np.random.default_rng([seed, 1000]))
    new.base["latency"] = 120.0
    faults, new_rhythm = _break(rng, fleet[: services - 1], new, minutes)
    signals: dict[str, Floats] = {}
    for one in (*fleet, new):
        signals |= one.values()
    _lose(signals, faults)
    deploys = {one.name: tuple(sorted(one.deploys)) for one in fleet}
    return SimulatedFleet(signals, tuple(faults), tuple(rhythms), new_rhythm, deploys)


def _make(name: str, resource: str, minutes: NDArray[np.int64], rng: np.random.Generator) -> _Service:
    size = minutes.size
    base = {
        "traffic": float(np.exp(rng.uniform(np.log(40), np.log(400)))),
        "latency": float(np.exp(rng.uniform(np.log(20), np.log(200)))),
        "memory": float(rng.uniform(1.5, 6.0)),
    }
    peak = rng.uniform(12, 16) / 24
    day = 0.2 + 0.8 * np.exp(2.0 * (np.cos(2 * np.pi * (minutes / DAY - peak)) - 1))
    weekend = np.where(minutes % WEEK >= 5 * DAY, rng.uniform(0.5, 0.8), 1.0)
    slow = autoregressive(rng, size, 0.99, 0.05)
    growth = rng.uniform(2.0, 5.0)  # per cent of the disk a day, until it is cleaned up at night
    return _Service(
        name, resource, rng,
        traffic=base["traffic"] * day * weekend * np.exp(slow),
        slowness=np.ones(size),
        failing=rng.uniform(0.0008, 0.002) * np.exp(autoregressive(rng, size, 0.99, 0.1)),
        busy=np.zeros(size),
        kept=np.ones(size),
        full=rng.uniform(40, 60) + growth * ((minutes - rng.integers(120, 240)) % DAY) / DAY,
        jitter=np.ones(size),
        base=base,
    )  # fmt: skip


def _jobs(computing: list[_Service], minutes: NDArray[np.int64]) -> list[str]:
    """Hourly, nightly and weekly jobs on services that report processor time; returns their signals."""
    for number, one in enumerate(computing):
        lasts, more = int(one.rng.integers(2, 5)), one.rng.uniform(8, 15)
        if number % 3 == 0:
            one.busy += more * (minutes % HOUR < lasts)
        elif number % 3 == 1:
            one.busy += 2 * more * ((minutes - 2 * HOUR) % DAY < 20)
        elif number % 6 == 2:
            one.busy += 2 * more * ((minutes - 6 * DAY - 4 * HOUR) % WEEK < 10)
    return [one.signal("cpu") for number, one in enumerate(computing) if number % 6 != 5]


def _deploy(one: _Service, minutes: NDArray[np.int64]) -> None:
    """One or two deploys a week, during working hours."""
    for day in range(minutes.size // DAY):
        if day % 7 < 5 and one.rng.random() < 0.3:
            _restart(one, day * DAY + int(one.rng.integers(9 * HOUR, 17 * HOUR)))


def _restart(one: _Service, at: int) -> None:
    rng, four = one.rng, slice(at, at + 4)
    one.deploys.append(at)
    one.failing[four] += rng.uniform(0.002, 0.007)
    one.slowness[four] *= rng.uniform(1.15, 1.4)
    one.busy[at : at + 3] += rng.uniform(10, 20)
    one.traffic[at : at + 2] *= 0.9
    since = np.arange(one.kept.size - at)
    one.kept[at:] = rng.uniform(0.85, 1.15) * (1 - 0.4 * np.exp(-since / 4) - 0.03 * np.exp(-since / 90))


def _break(
    rng: np.random.Generator, fleet: list[_Service], new: _Service, minutes: NDArray[np.int64]
) -> tuple[list[Fault], str]:
    """Faults of the live weeks, each on a service of its own but for the outage; and the signal with a new job."""
    left = list(rng.permutation(len(fleet)))

    def take(resource: str | None = None) -> _Service:
        number = next(i for i in left if resource in (None, fleet[i].resource))
        left.remove(number)
        return fleet[number]

    def at(day: int, hour: float) -> int:
        return HISTORY + day * DAY + round(hour * HOUR) + int(rng.integers(-20, 21))

    faults = []

    def note(name: str, signals: Iterable[str], begin: int, lasts: int) -> slice:
        faults.append(Fault(name, tuple(signals), begin, begin + lasts))
        return slice(begin, begin + lasts)

    # It begins on the first live morning, with no history.
    begins = at(0, 7)
    during = note("new", [new.signal(one) for one in ("latency", "cpu")], begins + 3 * HOUR, 30)
    new.slowness[during] *= 6
    new.busy[during] += 30
    down = [take() for _ in range(10)]
    share = rng.uniform(0.63, 0.92, len(down))
    every = ("requests", "latency", "errors")
    begin = at(1, 14)
    during = note("outage", [one.signal(metric) for one in down for metric in (*every, one.resource)], begin, 20)
    for one, failing in zip(down, share, strict=True):
        one.failing[during], one.slowness[during] = failing, 3.0
        one.traffic[during] *= 0.5
    # Ten services that were down may have another fault later.
    left += [fleet.index(one) for one in down]

    leaking = take("memory")
    during = note("leak", [leaking.signal("memory")], at(2, 9), 9 * HOUR)
    _steady_memory(leaking, during)
    leaking.kept[during] *= 1 + 0.25 * np.arange(9 * HOUR) / (9 * HOUR)
    one = take()
    during = note("night errors", [one.signal("errors")], at(3, 3), HOUR)
    one.failing[during] *= 5
    slow = take()
    during = note("latency step", [slow.signal("latency")], at(3, 11), 6 * HOUR)
    slow.slowness[during] *= 1.4
    one = take()
    one.failing[note("errors while open", [one.signal("errors")], at(3, 13), 30)] += 0.02
    one = take()
    one.traffic[note("traffic while open", _with_resource(one, "requests"), at(3, 14.5), 45)] *= 0.3
    one = take("cpu")
    note("stuck", [one.signal("cpu")], at(4, 10), 6 * HOUR)
    one = take()
    one.traffic[note("half traffic", _with_resource(one, "requests"), at(6, 15), 2 * HOUR)] *= 0.5
    one = take("disk")
    during = note("slow disk", [one.signal("disk")], at(7, 6), 4 * DAY)
    saw = one.full[during] - one.full[during].min()
    one.full[during] = 58 + 39 * np.arange(4 * DAY) / (4 * DAY) + 0.3 * saw
    one = take()
    note("lost series", [one.signal(metric) for metric in (*every, one.resource)], at(7, 12), 3 * HOUR)
    one = next(other for other in fleet if other.resource == "cpu" and _nightly(other))
    missed = (minutes >= HISTORY + 8 * DAY) & (minutes < HISTORY + 9 * DAY) & ((minutes - 2 * HOUR) % DAY < 20)
    one.busy[missed] = 0.0
    note("cron missed", [one.signal("cpu")], HISTORY + 8 * DAY + 2 * HOUR, 20)
    one = take()
    begin = at(9, 10)
    _restart(one, begin)
    during = note("bad deploy", [one.signal(metric) for metric in (*every, one.resource)], begin, 40)
    one.failing[during] += 0.05
    one.slowness[during] *= 1.5
    one = take()
    one.jitter[note("noise doubled", [one.signal("latency")], at(10, 12), 6 * HOUR)] *= 2.0

    job = next(fleet[i] for i in left if fleet[i].resource == "cpu" and not _nightly(fleet[i]))
    job.busy += 30 * ((minutes >= HISTORY) & ((minutes - 5 * HOUR - 20) % (6 * HOUR) < 15))
    return faults, job.signal("cpu")


def _with_resource(one: _Service, metric: str) -> list[str]:
    return [one.signal(metric), *([one.signal("cpu")] if one.resource == "cpu" else [])]


def _nightly(one: _Service) -> bool:
    return bool(np.mean(one.busy[2 * HOUR :: DAY] > 10) > 0.9 and np.mean(one.busy[3 * HOUR :: DAY] > 10) < 0.5)


def _steady_memory(one: _Service, during: slice) -> None:
    """No deploy from a day before until a day after: the leak is the only change of the level."""
    calm = slice(during.start - DAY, during.stop + DAY)
    one.kept[calm.stop :] *= one.kept[calm.start] / one.kept[calm.stop]
    one.kept[calm] = one.kept[calm.start]


def _lose(signals: dict[str, Floats], faults: list[Fault]) -> None:
    """Values that are not sent, or do not change."""
    for fault in faults:
        during = slice(fault.begin, fault.end)
        for name in fault.signals:
            if fault.name == "lost series":
                signals[name][during] = np.nan
            elif fault.name == "stuck":
                signals[name][during] = signals[name][fault.begin]
            elif fault.name == "new":
                service = name.split("/")[0]
                for metric in ("requests", "latency", "errors", "cpu"):
                    signals[f"{service}/{metric}"][: fault.begin - 3 * HOUR] = np.nan
