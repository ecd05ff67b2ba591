"""Signals without anomalies, of several kinds, on which every alarm is a false alarm."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tocsin.evaluation.calibration import Floats


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


def _independent(rng: np.random.Generator, signals: int, length: int) -> Floats:
    return rng.standard_normal((length, signals))


def _autoregressive(rng: np.random.Generator, signals: int, length: int) -> Floats:
    values = rng.standard_normal((length, signals))
    values[0] /= np.sqrt(1 - 0.8**2)
    for t in range(1, length):
        values[t] += 0.8 * values[t - 1]
    return values


def _wave(rng: np.random.Generator, signals: int, length: int) -> Floats:
    phase = 2 * np.pi * (np.arange(length)[:, np.newaxis] / PERIOD + rng.random(signals))
    return np.asarray(np.sin(phase))


def _seasonal(rng: np.random.Generator, signals: int, length: int) -> Floats:
    return 3 * _wave(rng, signals, length) + rng.standard_normal((length, signals))


def _seasonal_scale(rng: np.random.Generator, signals: int, length: int) -> Floats:
    return np.exp(_wave(rng, signals, length)) * rng.standard_normal((length, signals))


def _drifting(rng: np.random.Generator, signals: int, length: int) -> Floats:
    level = np.cumsum(0.05 * rng.standard_normal((length, signals)), axis=0)
    scale = np.exp(np.cumsum(0.005 * rng.standard_normal((length, signals)), axis=0))
    return level + scale * rng.standard_normal((length, signals))


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
    )
}
"""Every family by its name."""
