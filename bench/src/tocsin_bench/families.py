"""Signals without anomalies, of several kinds, on which every alarm is a false alarm."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tocsin.evaluation.machine import ar_filter, ar_noise
from tocsin.evaluation.simulation import Floats


@dataclass(frozen=True)
class Family:
    """One kind of signal. Call it with a generator, a number of signals and a length for `values[T, signals]`."""

    name: str
    about: str
    _draw: Callable[[np.random.Generator, int, int], Floats]

    def __call__(self, rng: np.random.Generator, signals: int, length: int) -> Floats:
        """Draw `signals` independent signals of this kind."""
        return self._draw(rng, signals, length)


PERIOD = 24
WEEK = 7 * PERIOD
REGIME = 2000
STEP = 0.5
LIMIT = 3.0


def _independent(rng: np.random.Generator, signals: int, length: int) -> Floats:
    return rng.standard_normal((length, signals))


def _autoregressive(rng: np.random.Generator, signals: int, length: int) -> Floats:
    return ar_noise(rng.standard_normal((length, signals)), 0.8)


def _nearly_a_walk(rng: np.random.Generator, signals: int, length: int) -> Floats:
    return ar_noise(rng.standard_normal((length, signals)), 0.99)


def _heavy_tailed(rng: np.random.Generator, signals: int, length: int) -> Floats:
    return ar_noise(rng.standard_t(3, (length, signals)), 0.95)


def _wave(rng: np.random.Generator, signals: int, length: int, period: int = PERIOD) -> Floats:
    phase = 2 * np.pi * (np.arange(length)[:, np.newaxis] / period + rng.random(signals))
    return np.asarray(np.sin(phase))


def _seasonal(rng: np.random.Generator, signals: int, length: int) -> Floats:
    return 3 * _wave(rng, signals, length) + rng.standard_normal((length, signals))


def _seasonal_scale(rng: np.random.Generator, signals: int, length: int) -> Floats:
    return np.exp(_wave(rng, signals, length)) * rng.standard_normal((length, signals))


def _level_noise(rng: np.random.Generator, signals: int, length: int) -> Floats:
    level = 11 + 10 * _wave(rng, signals, length)
    return level * (1 + 0.1 * rng.standard_normal((length, signals)))


def _lognormal_daily(rng: np.random.Generator, signals: int, length: int) -> Floats:
    return np.exp(_wave(rng, signals, length) + 0.2 * _autoregressive(rng, signals, length))


def _weekly(rng: np.random.Generator, signals: int, length: int, day: int) -> Floats:
    """Two days of each week are quiet; this many observations a day."""
    days = (np.arange(length)[:, np.newaxis] + rng.integers(7 * day, size=signals)) / day
    return np.where(days % 7 >= 5, 1.0, 4.0) * (1 - np.cos(2 * np.pi * days)) + rng.standard_normal((length, signals))


def _weekly_hourly(rng: np.random.Generator, signals: int, length: int) -> Floats:
    return _weekly(rng, signals, length, PERIOD)


def _weekly_5min(rng: np.random.Generator, signals: int, length: int) -> Floats:
    return _weekly(rng, signals, length, 12 * PERIOD)


def _weekly_with_holidays(rng: np.random.Generator, signals: int, length: int) -> Floats:
    """Two days of each week are quiet, and so is one in thirty of the others."""
    hour = np.arange(length)[:, np.newaxis] + rng.integers(WEEK, size=signals)
    day = hour // PERIOD
    holidays = rng.random((length // PERIOD + 10, signals)) < 1 / 30
    quiet = (day % 7 >= 5) | np.take_along_axis(holidays, day, axis=0)
    activity = 1 - np.cos(2 * np.pi * hour / PERIOD)
    return np.where(quiet, 1.0, 4.0) * activity + rng.standard_normal((length, signals))


def _drifting(rng: np.random.Generator, signals: int, length: int) -> Floats:
    level = np.cumsum(0.05 * rng.standard_normal((length, signals)), axis=0)
    scale = np.exp(np.cumsum(0.005 * rng.standard_normal((length, signals)), axis=0))
    return level + scale * rng.standard_normal((length, signals))


def _walk(rng: np.random.Generator, signals: int, length: int) -> Floats:
    return np.cumsum(rng.standard_normal((length, signals)), axis=0)


def _walk_with_steps(rng: np.random.Generator, signals: int, length: int) -> Floats:
    steps = (rng.random((length, signals)) < 1 / 500) * rng.normal(0, 10, (length, signals))
    return np.cumsum(0.1 * rng.standard_normal((length, signals)) + steps, axis=0) + _independent(rng, signals, length)


def _stochastic_volatility(rng: np.random.Generator, signals: int, length: int) -> Floats:
    log_scale = ar_noise(0.1 * rng.standard_normal((length, signals)), 0.98)
    return np.exp(log_scale) * rng.standard_normal((length, signals))


def _garch(rng: np.random.Generator, signals: int, length: int) -> Floats:
    draws = rng.standard_normal((length, signals))
    variance = np.ones(signals)
    for t in range(length):
        draws[t] *= np.sqrt(variance)
        variance = 0.02 + 0.10 * draws[t] ** 2 + 0.88 * variance
    return draws


def _regimes(rng: np.random.Generator, signals: int, length: int) -> Floats:
    regime = np.arange(length) // REGIME
    count = length // REGIME + 1
    level, scale = rng.normal(0, 5, (count, signals)), np.exp(rng.normal(0, 0.5, (count, signals)))
    return level[regime] + scale[regime] * rng.standard_normal((length, signals))


def _switched(rng: np.random.Generator, signals: int, length: int, every: float) -> NDArray[np.int64]:
    """How often each signal has switched so far: at random times, once in `every` observations on average."""
    return np.cumsum(rng.random((length, signals)) < 1 / every, axis=0)


def _on_off(rng: np.random.Generator, signals: int, length: int) -> Floats:
    on = _switched(rng, signals, length, 100) % 2 == 1
    return np.where(on, 10.0, 0.0) + np.where(on, 1.0, 0.2) * rng.standard_normal((length, signals))


def _bursts(rng: np.random.Generator, signals: int, length: int) -> Floats:
    starts = (rng.random((length, signals)) < 1 / 100) * rng.exponential(10, (length, signals))
    return ar_filter(starts, 0.9) + rng.standard_normal((length, signals))


def _rarely_moving(rng: np.random.Generator, signals: int, length: int) -> Floats:
    moves = (rng.random((length, signals)) < 1 / 100) * rng.integers(-3, 4, (length, signals))
    return np.cumsum(moves, axis=0).astype(np.float64)


def _quantised(rng: np.random.Generator, signals: int, length: int) -> Floats:
    return STEP * np.round(_autoregressive(rng, signals, length) / STEP)


def _saturated(rng: np.random.Generator, signals: int, length: int) -> Floats:
    return np.minimum(_seasonal(rng, signals, length), LIMIT)


def _counts(rng: np.random.Generator, signals: int, length: int) -> Floats:
    return rng.poisson(np.exp(1 + _wave(rng, signals, length))).astype(np.float64)


def _missing(rng: np.random.Generator, signals: int, length: int) -> Floats:
    values = _seasonal(rng, signals, length)
    values[rng.random((length, signals)) < 0.2] = np.nan
    return values


def _missing_blocks(rng: np.random.Generator, signals: int, length: int) -> Floats:
    values = _seasonal(rng, signals, length)
    for signal in range(signals):
        for start in np.flatnonzero(rng.random(length) < 1 / 500):
            values[start : start + rng.integers(1, 101), signal] = np.nan
    return values


FAMILIES = {
    family.name: family
    for family in (
        Family("independent", "independent draws of one normal law", _independent),
        Family("autoregressive", "each value 0.8 of the one before, plus normal noise", _autoregressive),
        Family("seasonal", f"a wave of period {PERIOD} and amplitude 3, plus normal noise", _seasonal),
        Family(
            "seasonal-scale",
            f"normal noise whose scale goes between 1/e and e with period {PERIOD}",
            _seasonal_scale,
        ),
        Family("drifting", "level and log scale wander: steps of 0.05 and 0.005 in each observation", _drifting),
        Family("nearly-a-walk", "each value 0.99 of the one before, plus normal noise", _nearly_a_walk),
        Family("heavy-tailed", "each value 0.95 of the one before, plus noise of Student's law (3)", _heavy_tailed),
        Family("walk", "normal steps", _walk),
        Family(
            "walk-with-steps",
            "a level of small normal steps that jumps once in 500, by 10 or so; plus normal noise",
            _walk_with_steps,
        ),
        Family("regimes", f"every {REGIME} observations another level and another scale", _regimes),
        Family(
            "stochastic-volatility",
            "normal noise whose log scale is autoregressive (0.98), with a standard deviation of a half",
            _stochastic_volatility,
        ),
        Family("garch", "normal noise, variance .02 + .10 of the last square + .88 of the last variance", _garch),
        Family("level-noise", f"a wave of period {PERIOD} between 1 and 21, with noise of a tenth of it", _level_noise),
        Family("lognormal-daily", f"the exponential of a wave of period {PERIOD} and noise", _lognormal_daily),
        Family(
            "weekly-with-holidays",
            f"days of {PERIOD}; two of seven are quiet, and one in thirty of the others",
            _weekly_with_holidays,
        ),
        Family("on-off", "switched between 0 and 10 about once in 100, with more noise while on", _on_off),
        Family("bursts", "noise, and once in 100 a burst of 10 or so that decays by a tenth each time", _bursts),
        Family("rarely-moving", "constant but for a step of up to 3 about once in 100", _rarely_moving),
        Family("quantised", f"autoregressive, rounded to multiples of {STEP:g}", _quantised),
        Family("saturated", f"seasonal, but never above {LIMIT:g}", _saturated),
        Family("counts", f"Poisson counts, on average between 1 and e squared with period {PERIOD}", _counts),
        Family("missing", "seasonal, a fifth missing", _missing),
        Family("weekly-hourly", f"days of {PERIOD}; two of seven are quiet", _weekly_hourly),
        Family("weekly-5min", f"days of {12 * PERIOD}; two of seven are quiet", _weekly_5min),
        Family("missing-blocks", "seasonal, once in 500 a block of up to 100 missing", _missing_blocks),
    )
}
"""Every family by its name."""
