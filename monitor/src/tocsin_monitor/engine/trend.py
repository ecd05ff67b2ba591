"""Whether a series rises steadily to a limit, and when it gets there: numbers only, in bounded memory.

The series is kept as means of blocks of three lengths, so that a leak over hours is seen, and a disk that fills over
days. A rise is told if

- its slope is large next to what such a slope would be of a random walk with the same increments;
- both halves of its window rise about as fast, and it does not slow down: a step and the top of a season do not pass;
- it is well above all that the 8 days before it reached: what came back so far is a cycle, and likely does so again;
- it does not have far to go, for how long it was seen and how long the series is known.

In the first day, nothing says whether there are seasons. Only rises that are hardly disturbed are told then.
"""

import math
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_DAY = 86400.0
# Seconds of a block, from leaks within hours to disks that fill within a week.
LENGTHS = (300.0, 1800.0, 10800.0)
# How many of the newest blocks make a window. Half as many look like a trend too often; twice as many see it too late.
WINDOWS = (12, 18, 24)
# A window may be so many times as long as its blocks: some are missing.
MOST_GAPS = 1.5
# How many times its standard error a slope is at least; the second, in a series that is known for less than a day. With
# 4 instead of 5, noise with a memory has warnings.
STEADY, STEADY_AT_FIRST = 5.0, 10.0
# A rise that was told is so until its slope is less than this.
STILL_STEADY = 2.0
# Each half of a window rises at this share of the slope at least, and at most at its inverse.
ALIKE = 0.5
# If it goes on to slow down as it does, it would rise so many times as far as to the limit.
BEYOND = 3.0
# How far above the highest level of the past a level must be to be new, as a share of the range of the past.
ABOVE = 0.25
# The past is kept in pieces as long as the longest block: 8 days, so that each day of the week is in it.
PIECES = 64
# It may have as far to go as this share of what it has risen, in level and in time: by how many days it is known.
SHARES, MOST_SHARE = ((1.0, 0.4), (8.0, 0.6)), 2.0
# Nine of ten times are in the interval, if errors are normal; and slopes are not known more exactly than this share.
NINE_OF_TEN = 1.645
LEAST_ERROR = 1 / 16


class Reach(NamedTuple):
    """When a limit is reached, in seconds since 1970: as expected, at the earliest and at the latest."""

    expected: float
    earliest: float
    latest: float


class Line(NamedTuple):
    """A straight line: its value at time 0, its slope, and the standard error of that."""

    value: float
    slope: float
    error: float


class _Blocks:
    """The newest blocks of one length."""

    def __init__(self, length: float) -> None:
        self.length = length
        #: The number, the mean and the highest value of each complete block.
        self.complete: deque[tuple[int, float, float]] = deque(maxlen=WINDOWS[-1])
        #: The number of the newest block, how many values it has, their sum, and the highest one.
        self.newest = (0, 0, 0.0, -math.inf)
        #: When the rise over these blocks reaches the limit, if there is one.
        self.reach: Reach | None = None
        #: The windows, and over how many blocks their rises are taken: one, or a day, which leaves out its cycle.
        day = round(_DAY / length)
        self.windows = [(count, lag) for count in WINDOWS for lag in (1, day) if lag == 1 or count > 2 * lag]

    def add(self, seconds: float, value: float) -> bool:
        """Add a value; returns whether it completes a block."""
        number = math.floor(seconds / self.length)
        block, count, total, high = self.newest
        over = count > 0 and number != block
        if over:
            self.complete.append((block, total / count, high))
            count, total, high = 0, 0.0, -math.inf
        self.newest = number, count + 1, total + value, max(high, value)
        return over


class Trend:
    """The newest hours and days of a series, and whether it rises to a limit."""

    def __init__(self) -> None:
        self._scales = [_Blocks(length) for length in LENGTHS]
        #: The number of each piece of the past, and the lowest and the highest of the shortest blocks in it.
        self._past: deque[tuple[int, float, float]] = deque(maxlen=PIECES)
        #: The time of the first value.
        self._since: float | None = None

    @property
    def reach(self) -> Reach | None:
        """When it reaches the limit, if it rises to it, as the longest blocks say that do: they know the cycles."""
        return next((scale.reach for scale in reversed(self._scales) if scale.reach is not None), None)

    def add(self, seconds: float, value: float, limit: float, *, looking: bool = True) -> None:
        """Add a value at a time in seconds since 1970. With each block that it completes, `reach` is found anew.

        Unless it is looking, because the limit is crossed: then nothing is ahead.
        """
        if self._since is None:
            self._since = seconds
        if value > limit and self.reach is not None:
            self._past.clear()
        over = [scale for scale in self._scales if scale.add(seconds, value)]
        if over and over[0] is self._scales[0]:
            block, mean, _ = over[0].complete[-1]
            self._remember(math.floor(block * LENGTHS[0] / LENGTHS[-1]), mean, limit)
        for scale in over if looking else self._scales:
            scale.reach = self._reach(scale, seconds, seconds - self._since, limit) if looking else None

    def _remember(self, piece: int, mean: float, limit: float) -> None:
        """Keep the level of a short block, unless the limit was crossed: then rises did not end below it."""
        low = high = mean
        if self._past and self._past[-1][0] == piece:
            _, low, high = self._past.pop()
        self._past.append((piece, min(low, mean), max(high, mean)))
        if mean > limit:
            self._past.clear()

    def _reach(self, scale: _Blocks, seconds: float, known: float, limit: float) -> Reach | None:
        """When the rise over these blocks reaches the limit, in a series known for so long; None if there is none."""
        told, blocks = scale.reach is not None, list(scale.complete)
        # What is not new after the longest window is not after a shorter one.
        if len(blocks) < WINDOWS[0] or not (told or self._is_new(blocks[-1][1], blocks[0][0] * scale.length)):
            return None
        found = []
        for count, lag in scale.windows:
            numbers, values, highs = np.array(blocks[-count:]).T
            if len(numbers) < count or numbers[-1] - numbers[0] > MOST_GAPS * count:
                continue
            begin = float(numbers[0]) * scale.length
            # It may have fallen since: what leaked is started again.
            fell = self._scales[0].complete[-1][1] < values.mean()
            if fell or not (told or self._is_new(float(values[-1]), begin)):
                continue
            times = (numbers + 0.5) * scale.length - seconds
            # A cycle of a day that is in the window is known from before it, or from its own first day.
            before = known - min(seconds - begin, _DAY)
            steady = STILL_STEADY if told else STEADY if before >= _DAY else STEADY_AT_FIRST
            line = steady_line(times, values, lag, steady)
            if line is None:
                continue
            away = limit - line.value
            # Single values are above the line, and cross the limit before it does.
            lift = np.maximum(highs - (line.value + line.slope * times), 0.0)
            first, soon, last = (max(away - one, 0.0) / line.slope for one in (lift.max(), lift.mean(), 0.0))
            if not told:
                share = next((share for days, share in SHARES if before < days * _DAY), MOST_SHARE)
                risen = line.value - min([values[0], *(low for _, low, _ in self._past)])
                newest = max(count // 2, 8)
                if soon > share * (seconds - begin) or away > share * risen:
                    continue
                if lag == 1 and slows_down(times[-newest:], values[-newest:], limit):
                    continue
            spread = NINE_OF_TEN * max(line.error / line.slope, LEAST_ERROR)
            moments = max(soon, scale.length), first / (1 + spread), max(last, scale.length) / (1 - spread)
            found.append(Reach(*(seconds + float(one) for one in moments)))
        return min(found, key=lambda one: one.latest - one.earliest, default=None)

    def _is_new(self, value: float, begin: float) -> bool:
        """Whether a value is above all that there was before a time, since the limit was crossed last."""
        past = [(low, high) for piece, low, high in self._past if (piece + 1) * LENGTHS[-1] <= begin]
        low, high = min((one for one, _ in past), default=-math.inf), max((one for _, one in past), default=-math.inf)
        return not past or value > high + ABOVE * (high - low)

    def state(self) -> list[Any]:
        """All that it remembers, for JSON."""
        scales = [[list(scale.complete), scale.newest, scale.reach] for scale in self._scales]
        return [scales, list(self._past), self._since]

    @classmethod
    def from_state(cls, state: Sequence[Any]) -> "Trend":
        """Continue with what `state` gave."""
        made = cls()
        scales, past, made._since = state
        for scale, (complete, newest, reach) in zip(made._scales, scales, strict=True):
            scale.complete.extend((number, mean, high) for number, mean, high in complete)
            number, count, total, high = newest
            scale.newest = number, count, total, high
            scale.reach = None if reach is None else Reach(*reach)
        made._past.extend((piece, low, high) for piece, low, high in past)
        return made


def steady_line(times: NDArray[np.float64], values: NDArray[np.float64], lag: int, steady: float) -> Line | None:
    """The line through blocks that rise steadily; None if they do not.

    Its slope is at least `steady` times its error, and both halves rise about as fast. `lag` is over how many blocks
    rises are taken: with those over a day, a daily cycle is no change.
    """
    if lag == 1:
        half = len(times) // 2
        parts = slice(None), slice(half), slice(half, None)
        slope, *halves = (_slope(times[part], values[part]) for part in parts)
    else:
        rises = (values[lag:] - values[:-lag]) / (times[lag:] - times[:-lag])
        half = len(rises) // 2
        slope, *halves = (float(part.mean()) for part in (rises, rises[:half], rises[half:]))
    if not (slope > 0 and min(halves) >= ALIKE * slope and max(halves) <= slope / ALIKE):
        return None
    error = _error(times, values, lag, slope)
    return Line(float(values.mean() - slope * times.mean()), slope, error) if slope >= steady * error else None


def _slope(times: NDArray[np.float64], values: NDArray[np.float64]) -> float:
    apart = times - times.mean()
    return float(apart @ values / (apart @ apart))


def _error(times: NDArray[np.float64], values: NDArray[np.float64], lag: int, slope: float) -> float:
    """The standard error of a slope, if the rest is a random walk: of noise around a line, it is less."""
    left = values[lag:] - values[:-lag] - slope * (times[lag:] - times[:-lag])
    walk = left @ left
    if lag == 1:
        # Increments that go on in one direction say less: neighbours count as Newey and West have it.
        walk = max(walk, walk + sum(2 * (1 - near / 3) * (left[near:] @ left[:-near]) for near in (1, 2)))
    steps = len(times) - 1
    return math.sqrt(walk / lag * steps / (len(left) - 1)) / float(times[-1] - times[0])


def slows_down(times: NDArray[np.float64], values: NDArray[np.float64], limit: float) -> bool:
    """Whether a rise slows down so much that, going on like this, it would not get far beyond the limit."""
    bend, slope, now = np.polyfit(times, values, 2).tolist()
    return bool(bend < 0 and (slope <= 0 or slope**2 / (-4 * bend) < BEYOND * (limit - now)))
