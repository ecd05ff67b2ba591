"""Signals whose noise is small at times, for faults that are small by day and large at night."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tocsin.evaluation.simulation import Floats
from tocsin_bench.faults import FaultySignals, noise_times, shift

#: How long faults last at most: as long as a night of twelve hours.
LASTS = 12
#: They come where the noise is smallest: in the quietest share of so many places.
PLACES, QUIETEST = 1000, 0.05
#: The standard deviations at night and by day.
NIGHT, DAY = 0.2, 1.0

#: What is expected, the noise around it, and its standard deviation, each `[T, S]`.
Parts = tuple[Floats, Floats, Floats]


@dataclass(frozen=True, eq=False)
class QuietSignals(FaultySignals):
    """Signals with a quiet place; `sd` is the largest of the noise there, of each signal."""

    _: KW_ONLY
    expected: Floats

    def season(self, ahead: Floats | float = 0.0) -> Floats:
        """What is expected; no fault is about its phase."""
        return self.expected


@dataclass(frozen=True)
class QuietBase:
    """One kind of signal. Call it with a generator, a number of signals, where they are quiet, and how long after."""

    name: str
    about: str
    _draw: Callable[[np.random.Generator, int, int], Parts]
    #: Whether it is quiet because of the time.
    night: bool = False
    positive: bool = False

    def __call__(self, rng: np.random.Generator, signals: int, start: int, after: int) -> QuietSignals:
        """Draw `signals` independent signals, each of which is quiet in `LASTS` observations from `start` on."""
        parts = self._draw(rng, signals, start + PLACES + after)
        loudest = sliding_window_view(parts[2][start : start + PLACES + LASTS - 1], LASTS, axis=0).max(axis=-1)
        quiet = loudest <= np.quantile(loudest, QUIETEST, axis=0)
        place = np.array([rng.choice(np.flatnonzero(column)) for column in quiet.T])
        rows = place + np.arange(start + after)[:, np.newaxis]
        expected, noise, _ = (np.take_along_axis(part, rows, axis=0) for part in parts)
        sd = loudest[place, np.arange(signals)]
        return QuietSignals(noise, sd, positive=self.positive, expected=expected)


def _around_zero(rng: np.random.Generator, scale: Floats) -> Parts:
    return np.zeros_like(scale), scale * rng.standard_normal(scale.shape), scale


def _wave(rng: np.random.Generator, signals: int, length: int, period: int) -> Floats:
    return np.asarray(np.sin(2 * np.pi * (np.arange(length)[:, np.newaxis] / period + rng.random(signals))))


def _night(period: int, *, smooth: bool = False) -> Callable[[np.random.Generator, int, int], Parts]:
    """Half of each period is quiet; the change is sudden, or takes an eighth of the period."""

    def draw(rng: np.random.Generator, signals: int, length: int) -> Parts:
        wave = _wave(rng, signals, length, period)
        night = 1 / (1 + np.exp(8 * wave)) if smooth else wave < 0
        return _around_zero(rng, np.asarray(DAY * (NIGHT / DAY) ** night, dtype=np.float64))

    return draw


def _week(rng: np.random.Generator, signals: int, length: int) -> Parts:
    days = (np.arange(length)[:, np.newaxis] + rng.integers(168, size=signals)) / 24
    return _around_zero(rng, np.where((days % 1 >= 0.5) | (days % 7 >= 5), NIGHT, DAY))


def _multiplicative(rng: np.random.Generator, signals: int, length: int) -> Parts:
    level = 11 + 10 * _wave(rng, signals, length, 96)
    return level, 0.1 * level * rng.standard_normal((length, signals)), 0.1 * level


def _counts(rng: np.random.Generator, signals: int, length: int) -> Parts:
    mean = 12 * np.exp(1.6 * _wave(rng, signals, length, 96))
    # Whole numbers remain so, whatever multiple of four standard deviations is added.
    expected, scale = np.rint(mean), np.rint(4 * np.sqrt(mean)) / 4
    return expected, rng.poisson(mean).astype(np.float64) - expected, scale


def _garch(rng: np.random.Generator, signals: int, length: int) -> Parts:
    noise, scale = rng.standard_normal((length, signals)), np.ones((length, signals))
    for t in range(length):
        if t:
            scale[t] = np.sqrt(0.02 + 0.10 * noise[t - 1] ** 2 + 0.88 * scale[t - 1] ** 2)
        noise[t] *= scale[t]
    return np.zeros_like(noise), noise, scale


def _switching(rng: np.random.Generator, signals: int, length: int) -> Parts:
    switched = np.cumsum(rng.random((length, signals)) < 1 / 150, axis=0)
    return _around_zero(rng, np.where(switched % 2, NIGHT, DAY))


QUIET_BASES = {
    base.name: base
    for base in (
        QuietBase("night 48", "normal noise, a fifth as large in half of 48", _night(48), night=True),
        QuietBase("night 96", "the same in 96, with a gradual change", _night(96, smooth=True), night=True),
        QuietBase("night 288", "the same in 288, with a sudden change", _night(288), night=True),
        QuietBase("night 168", "days of 24, seven a week; nights and weekends are quiet", _week, night=True),
        QuietBase("multiplicative", "a wave of period 96 between 1 and 21, with noise of a tenth", _multiplicative),
        QuietBase("counts", "Poisson counts, on average 2 to 60 with period 96", _counts, positive=True),
        QuietBase("garch", "normal noise, variance .02 + .10 of the last square + .88 of the last variance", _garch),
        QuietBase("switching", "normal noise, a fifth as large at times, which change once in 150", _switching),
    )
}
"""Every kind of signal with quiet parts, by name."""

QUIET_FAULTS = (shift(8, 1), shift(4, LASTS), noise_times(5, LASTS))
"""What happens there; the unit is the standard deviation of the noise there."""
