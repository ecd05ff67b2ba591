"""Windows of series, a context and what followed it, on which all models are compared."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tocsin.forecasting import find_period
from tocsin.forecasting.forecaster import Floats
from training.judging.metrics import seasonal_error

LONGEST_CONTEXT = 1024
SEED = 0

PERIODS = {
    "ETTh1": 24,
    "exchange_rate": 1,
    "m4_hourly": 24,
    "nn5": 7,
    "pjm_hourly": 24,
    "tourism monthly": 12,
    "tourism quarterly": 4,
    "tourism yearly": 1,
}
"""Of the data sets that are known; where the series of one differ, by the first word of their names."""


@dataclass(frozen=True)
class Window:
    """What a model is given and what it should have said; `truth` is as long as the longest horizon judged on it."""

    data_set: str
    series: str
    period: int
    context: Floats
    truth: Floats

    @property
    def scale(self) -> float:
        """The unit of its errors, as in MASE."""
        return seasonal_error(self.context, self.period)

    @property
    def usable(self) -> bool:
        """Whether nothing is missing in it, and its errors have a unit."""
        return bool(np.isfinite(self.truth).all() and 0 < self.scale < np.inf)


def known_period(data_set: str, series: str) -> int | None:
    """The period of a series by its name.

    >>> known_period("nn5", "NN5-001"), known_period("tourism", "quarterly_q7"), known_period("mine", "first")
    (7, 4, None)
    """
    return PERIODS.get(data_set, PERIODS.get(f"{data_set} {series.split('_')[0]}"))


def draw_windows(
    data_set: str, series: Mapping[str, Floats], most: int, horizons: Sequence[int], least_context: int = 1
) -> list[Window]:
    """At most `most` windows of a data set, the same every time.

    A context is at least two periods and as long as the horizon, and at least `least_context`. A series takes part with
    the longest of the horizons that it leaves room for, in which the shorter ones are contained. The windows are spread
    evenly over the series, chosen at random where there are more of these, and the windows of one series over time,
    each drawn at random from a part of its own. Origins lie where the longest context is available or, in series too
    short for that, in the later half of where they could lie: a forecaster is judged with some past.
    """
    rng = np.random.default_rng([SEED, zlib.crc32(data_set.encode())])
    rooms = {}
    for name, values in series.items():
        room = _room(values.size, max(2 * (known_period(data_set, name) or 1), least_context), horizons)
        if room is not None:
            rooms[name] = room
    chosen = [str(name) for name in rng.permutation(list(rooms))[:most]]
    windows = []
    for place, name in enumerate(chosen):
        values, room = series[name], rooms[name]
        for origin in _spread(room, most // len(chosen) + (place < most % len(chosen)), rng):
            context = values[max(0, origin - LONGEST_CONTEXT) : origin]
            period = known_period(data_set, name) or find_period(context) or 1
            windows.append(Window(data_set, name, period, context, values[origin : origin + room.steps]))
    return windows


class _Room(NamedTuple):
    """Where the origins of a series may lie, and how many steps follow each."""

    first: int
    last: int
    steps: int


def _room(length: int, least_context: int, horizons: Sequence[int]) -> _Room | None:
    for steps in sorted(horizons, reverse=True):
        shortest = max(least_context, steps)
        last = length - steps
        if last >= shortest:
            return _Room(max(shortest, min(LONGEST_CONTEXT, last // 2)), last, steps)
    return None


def _spread(room: _Room, count: int, rng: np.random.Generator) -> list[int]:
    """At most `count` different origins, one from each of as many equal parts of the room."""
    places = room.last + 1 - room.first
    edges = np.linspace(room.first, room.last + 1, min(count, places) + 1).astype(np.intp)
    return [int(origin) for origin in rng.integers(edges[:-1], edges[1:])]
