"""A simulated machine with sensors and faults, to demonstrate a detector, and the noise of its sensors."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tocsin.evaluation.simulation import Floats


def ar_filter(draws: Floats, coefficient: float) -> Floats:
    """Each value is the previous one times the coefficient, plus its draw, along the first axis.

    >>> ar_filter(np.array([1.0, 0.0, 2.0]), 0.5).tolist()
    [1.0, 0.5, 2.25]
    """
    values = np.array(draws, dtype=np.float64)
    for t in range(1, len(values)):
        values[t] += coefficient * values[t - 1]
    return values


def ar_noise(draws: Floats, coefficient: float) -> Floats:
    """The same, with the stationary spread from the first value on."""
    first = draws[:1] / np.sqrt(1 - coefficient**2)
    return ar_filter(np.concatenate([first, draws[1:]]), coefficient)


INTERVAL = np.timedelta64(5, "m")
DAY = 288
DAYS = 28
FEATURES = ("vibration [mm/s]", "temperature [°C]", "pressure [bar]")
VIBRATION, TEMPERATURE, PRESSURE = FEATURES


@dataclass(frozen=True)
class InjectedFault:
    """A fault that the machine had: from observation `first` to `last`."""

    name: str
    feature: str
    first: int
    last: int


@dataclass(frozen=True)
class Machine:
    """The sensor readings of a pump over four weeks, every five minutes; NaN if missing."""

    times: NDArray[np.datetime64]
    values: Floats
    faults: tuple[InjectedFault, ...]


def simulate_machine(seed: int = 0) -> Machine:
    """A pump that works by day, more on weekdays, with six faults in its last two weeks.

    Vibration follows the load and is noisier under load; temperature follows it slowly, and the weather; pressure is
    kept up by a controller that overshoots. One sensor loses a few values, and for two hours nothing was recorded.
    """
    rng = np.random.default_rng(seed)
    length = DAYS * DAY
    clock = np.arange(length)
    load = _load(rng, clock)
    weather = 4 * np.sin(2 * np.pi * (clock / DAY - 0.35)) + np.cumsum(0.02 * rng.standard_normal(length))
    vibration = 1.2 + 1.6 * load + (0.05 + 0.12 * load) * rng.standard_t(6, length)
    temperature = 24 + 22 * _lagged(load, 18) + 0.6 * weather + 0.25 * rng.standard_normal(length)
    pressure = 6 + 0.8 * load + 0.06 * _correlated(rng, length, 0.9) + 0.04 * rng.standard_normal(length)
    values = np.column_stack([vibration, temperature, pressure])
    faults = _inject_faults(values, rng)
    values[rng.choice(length, 25, replace=False), 1] = np.nan
    values[9 * DAY + 100 : 9 * DAY + 124] = np.nan
    return Machine(np.datetime64("2026-03-02T00:00", "ns") + clock * INTERVAL, values, faults)


def _load(rng: np.random.Generator, clock: NDArray[np.int64]) -> Floats:
    """How hard the pump works, from 0 to about 1: a working day, a quiet weekend, and some wandering."""
    hour = clock % DAY / 12
    day = 1 / (1 + np.exp(-2.5 * (hour - 6.5))) / (1 + np.exp(2 * (hour - 18)))
    weekday = np.where(clock // DAY % 7 < 5, 1.0, 0.35)
    return np.asarray(0.1 + 0.8 * day * weekday + 0.03 * _correlated(rng, clock.size, 0.98))


def _correlated(rng: np.random.Generator, length: int, coefficient: float) -> Floats:
    return ar_filter(rng.standard_normal(length) * np.sqrt(1 - coefficient**2), coefficient)


def _lagged(values: Floats, delay: int) -> Floats:
    smooth = values.copy()
    for t in range(1, values.size):
        smooth[t] = smooth[t - 1] + (values[t] - smooth[t - 1]) / delay
    return smooth


def _inject_faults(values: Floats, rng: np.random.Generator) -> tuple[InjectedFault, ...]:
    vibration, temperature, pressure = values.T

    glitch = 15 * DAY + 40
    vibration[glitch] += 6
    leak = slice(17 * DAY + 130, 17 * DAY + 190)
    pressure[leak] -= 0.9
    stuck = slice(19 * DAY + 100, 19 * DAY + 160)
    temperature[stuck] = temperature[stuck.start]
    cavitation = slice(22 * DAY + 120, 22 * DAY + 168)
    pressure[cavitation] += 0.5 * rng.standard_normal(48)
    vibration[cavitation] += 0.8 * np.abs(rng.standard_normal(48))
    night = slice(24 * DAY + 12, 24 * DAY + 42)
    temperature[night] += 9
    wear = slice(26 * DAY + 90, 26 * DAY + 240)
    vibration[wear] += np.linspace(0, 3.5, 150)
    return (
        InjectedFault("sensor glitch", VIBRATION, glitch, glitch),
        InjectedFault("leak", PRESSURE, leak.start, leak.stop - 1),
        InjectedFault("stuck sensor", TEMPERATURE, stuck.start, stuck.stop - 1),
        InjectedFault("cavitation", PRESSURE, cavitation.start, cavitation.stop - 1),
        InjectedFault("heating at night", TEMPERATURE, night.start, night.stop - 1),
        InjectedFault("bearing wear", VIBRATION, wear.start, wear.stop - 1),
    )
