"""Rises to a limit: told in time with an interval that holds, and seldom where there is none."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.cases import full
from tocsin_monitor.engine.trend import NINE_OF_TEN, Reach, Trend, steady_line

HOUR, DAY = 3600.0, 86400.0
STEP = 300.0
START = 1.7e9
Rng = np.random.Generator
Floats = NDArray[np.float64]


@dataclass
class Followed:
    """When reaching the limit was told, each time anew, with what was told; and when a value crossed it first."""

    told: list[tuple[float, Reach]]
    crossed: float

    @property
    def lead(self) -> float:
        """Hours from the first warning to the crossing; 0 without a warning."""
        return (self.crossed - self.told[0][0]) / HOUR if self.told else 0.0


def follow(values: Floats, limit: float, step: float = STEP) -> Followed:
    trend, told = Trend(), []
    for number, value in enumerate(values.tolist()):
        seconds = START + number * step
        if value > limit:
            return Followed(told, seconds)
        before = trend.reach
        trend.add(seconds, value, limit)
        if before is None and trend.reach is not None:
            told.append((seconds, trend.reach))
    return Followed(told, math.inf)


def days(count: float) -> Floats:
    """The times of so many days, in days."""
    return np.arange(0, count * DAY, STEP) / DAY


def smooth_noise(rng: Rng, count: int, memory: float) -> Floats:
    """Noise with a standard deviation of 1, each value of which remembers the one before."""
    fresh = rng.normal(size=count) * math.sqrt(1 - memory**2)
    for number in range(1, count):
        fresh[number] += memory * fresh[number - 1]
    return fresh


def season(rng: Rng, noise: float) -> Floats:
    times = days(14)
    return 10 * np.sin(2 * np.pi * (times + rng.uniform())) + noise * smooth_noise(rng, len(times), 0.9)


def working_week(rng: Rng) -> Floats:
    times = days(14)
    begin = rng.uniform(0, 7)
    height = np.where((times + begin) % 7 >= 5, 3.0, 10.0)
    return height * np.sin(2 * np.pi * (times + begin)) + 0.5 * smooth_noise(rng, len(times), 0.9)


def cleaned_disk(rng: Rng) -> Floats:
    """From 50% to about 70% each day, by a different amount."""
    times = days(14) + rng.uniform()
    heights = 20 + 1.5 * rng.normal(size=16)
    return 50 + heights[times.astype(int)] * (times % 1) + 0.1 * rng.normal(size=len(times))


def deployed(rng: Rng) -> Floats:
    values = 0.3 * rng.normal(size=len(days(14)))
    for place in rng.integers(0, len(values), rng.poisson(10)):
        values[place:] += rng.normal()
    return values


def collected(rng: Rng) -> Floats:
    """Memory that is collected every few minutes to hours."""
    times = days(14) * DAY / rng.uniform(600, 2 * HOUR)
    return 40 + 20 * (times % 1) + rng.normal(size=len(times))


NORMAL: dict[str, tuple[Callable[[Rng], Floats], float]] = {
    "white noise": (lambda rng: rng.normal(size=len(days(14))), 6),
    "noise with a memory": (lambda rng: smooth_noise(rng, len(days(14)), 0.9), 6),
    "a random walk, its limit far away": (
        lambda rng: rng.normal(size=len(days(14))).cumsum(), 10 * math.sqrt(len(days(14)))
    ),
    "a daily season": (lambda rng: season(rng, 0.3), 16),
    "a daily season with noise": (lambda rng: season(rng, 1.0), 17),
    "working days and weekends": (working_week, 16),
    "a disk that is cleaned each day": (cleaned_disk, 90),
    "steps by deployments": (deployed, 12),
    "collected memory": (collected, 80),
    "bursts": (lambda rng: np.exp(smooth_noise(rng, len(days(14)), 0.97)), 100),
}  # fmt: skip
#: Those that nothing tells from a rise at first: on the first day, and on the first Monday after a weekend.
SEASONS = {"a daily season": 1.3, "a daily season with noise": 1.3, "working days and weekends": 7}


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(3), full(range(3, 20))], ids=str)
@pytest.mark.parametrize("kind", NORMAL)
def test_two_weeks_of_normal_have_no_warning(kind: str, seeds: range) -> None:
    """In 20 seeds of each kind: none, but at first in one of five seasons."""
    make, limit = NORMAL[kind]
    told = [follow(make(np.random.default_rng(seed)), limit).told for seed in seeds]
    first = SEASONS.get(kind, 0) * DAY
    assert not [at - START for one in told for at, _ in one if at - START > first]
    assert sum(map(len, told)) <= math.ceil(0.2 * len(seeds))


def leak(rng: Rng, hours_before: float) -> tuple[Floats, float]:
    times = days((hours_before + 12) / 24) * 24
    return 2.4 + np.maximum(times - hours_before, 0) * 1.5 / 9 + 0.02 * smooth_noise(rng, len(times), 0.9), 4.0


def disk(rng: Rng, cleaned: float) -> tuple[Floats, float]:
    """From 58% to 97% in four days, with so many percent that are cleaned each day."""
    times = days(6)
    cycle = cleaned * ((times + rng.uniform()) % 1 - 0.5)
    return 58 + times * 39 / 4 + cycle + 0.1 * rng.normal(size=len(times)), 95.0


RISING: dict[str, tuple[Callable[[Rng], tuple[Floats, float]], float]] = {
    "a leak after two usual days": (lambda rng: leak(rng, 48), 2),
    "a leak after nine usual days": (lambda rng: leak(rng, 216), 2),
    "a disk": (lambda rng: disk(rng, 0.0), 24),
    "a disk with a small daily cycle": (lambda rng: disk(rng, 2.0), 24),
    "a disk that is cleaned each day": (lambda rng: disk(rng, 5.0), 24),
}


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(5), full(range(5, 30))], ids=str)
@pytest.mark.parametrize("kind", RISING)
def test_rises_are_told_hours_ahead_with_an_interval_that_holds(kind: str, seeds: range) -> None:
    make, hours = RISING[kind]
    found = [follow(*make(np.random.default_rng(100 + seed))) for seed in seeds]
    assert sum(one.lead >= hours for one in found) >= 0.9 * len(seeds)
    assert min(one.lead for one in found) >= 0.75 * hours
    held = [reach.earliest <= one.crossed <= reach.latest for one in found for _, reach in one.told[:1]]
    assert sum(held) >= 0.8 * len(seeds)


@pytest.mark.slow
def test_a_leak_of_a_new_service_is_told_on_its_first_day() -> None:
    """Later than another one, since it might be the flank of a season."""
    leads = [follow(*leak(np.random.default_rng(seed), 0)).lead for seed in range(20)]
    assert np.median(leads) >= 1.5
    assert min(leads) > 0.5


def test_the_next_leak_is_told_too_although_the_last_one_went_as_far() -> None:
    values, limit = leak(np.random.default_rng(1), 36)
    trend, told = Trend(), []
    twice = np.concatenate([values, values]).tolist()
    for number, value in enumerate(twice):
        before, beyond = trend.reach, max(twice[max(number - 9, 0) : number + 1]) > limit
        trend.add(START + number * STEP, value, limit, looking=not beyond)
        if before is None and trend.reach is not None:
            told.append(number)
    assert len(told) == 2
    assert told[1] > len(values)


def test_what_is_told_does_not_depend_on_where_it_was_stored_and_restored() -> None:
    values, limit = disk(np.random.default_rng(2), 5.0)
    trend, restored = Trend(), Trend()
    for number, value in enumerate(values.tolist()):
        for one in (trend, restored):
            one.add(START + number * STEP, value, limit)
        if number % 37 == 0:
            restored = Trend.from_state(json.loads(json.dumps(restored.state())))
        assert restored.reach == trend.reach
    assert trend.state() == restored.state()


def test_memory_is_bounded_and_gaps_are_no_rise() -> None:
    trend = Trend()
    for number in range(20_000):
        trend.add(START + number * 7 * STEP, float(number % 5), 100.0)
    assert len(json.dumps(trend.state())) < 10_000
    rare = Trend()
    for number in range(100):  # one a day: too rare for a trend of hours or days
        rare.add(START + number * DAY, float(number), 200.0)
        assert rare.reach is None


def oracle_error(times: Floats, values: Floats, lag: int, slope: float) -> float:
    """The error of a slope, in loops."""
    left = [values[at + lag] - values[at] - slope * (times[at + lag] - times[at]) for at in range(len(times) - lag)]
    walk = sum(one**2 for one in left)
    if lag == 1:
        lags = [sum(left[at] * left[at + near] for at in range(len(left) - near)) for near in (1, 2)]
        walk = max(walk, walk + 2 * (2 / 3 * lags[0] + 1 / 3 * lags[1]))
    # Of a step over one block; there are so many from the first to the last block.
    step = walk / lag / (len(left) - 1)
    return math.sqrt(step * (len(times) - 1)) / (times[-1] - times[0])


@pytest.mark.parametrize("lag", [1, 8])
def test_the_line_is_that_of_least_squares_with_the_error_of_a_walk(lag: int) -> None:
    rng = np.random.default_rng(lag)
    times = np.sort(rng.choice(30, 24, replace=False)).astype(float) if lag == 1 else np.arange(24.0)
    values = 3 * times + rng.normal(size=24)
    line = steady_line(times, values, lag, 1.0)
    assert line is not None
    wanted = np.polyfit(times, values, 1)[0] if lag == 1 else np.mean(values[8:] - values[:-8]) / 8
    assert line.slope == pytest.approx(wanted)
    assert line.value == pytest.approx(values.mean() - wanted * times.mean())
    assert line.error == pytest.approx(oracle_error(times, values, lag, line.slope))


def test_a_walk_seldom_has_a_slope_of_five_times_its_error() -> None:
    """Of a drift of zero, in 4,000 windows: below one in a hundred."""
    rng = np.random.default_rng(5)
    times = np.arange(24.0)
    found = [steady_line(times, rng.normal(size=24).cumsum(), 1, 5.0) for _ in range(4000)]
    assert sum(line is not None for line in found) < 40
    assert pytest.approx(1.645) == NINE_OF_TEN
