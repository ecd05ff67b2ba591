"""Faults injected into fully known signals, so that their place and size are known."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tocsin import checks
from tocsin.evaluation import faults
from tocsin.evaluation.machine import ar_noise
from tocsin.evaluation.simulation import Floats

AMPLITUDE = 3.0
"""Of the waves, in standard deviations of the noise around them."""

QUIET = 0.3
"""How high the wave of a day of the weekend is, in that of a weekday; both start at the same lowest point."""

Length = int | Literal["cycle", "period"]


@dataclass(frozen=True, eq=False)
class FaultySignals:
    """Decomposed clean signals: `values[T, S]` are the season plus the noise, whose standard deviation is `sd`.

    A season has a period and, for each signal, a phase in periods at the first observation; without a period there is
    none. In a `week`, the period has seven days of one wave each, and the last two are a weekend. The values of
    `positive` signals are never below 0, so faults only make them higher.
    """

    noise: Floats
    sd: float | Floats
    period: int | None = None
    phase: Floats | None = None
    week: bool = False
    positive: bool = False

    @property
    def values(self) -> Floats:
        """What is observed."""
        return self.season() + self.noise

    @property
    def cycle(self) -> int | None:
        """The observations of one wave: a day of a week, otherwise the whole period."""
        return cycle_of(self.period, self.week)

    def cycles(self, ahead: Floats | float = 0.0) -> Floats:
        """How many cycles each observation `[T, S]` is after the start of a period, or that of as many cycles ahead."""
        if self.period is None or self.phase is None:
            raise ValueError("signals must have a period, got none")
        turns = np.arange(self.noise.shape[0])[:, np.newaxis] / self.period + self.phase
        return turns * (7 if self.week else 1) + ahead

    def season(self, ahead: Floats | float = 0.0) -> Floats:
        """The season of each observation, or that of as many cycles ahead."""
        if self.period is None:
            return np.zeros_like(self.noise)
        cycles = self.cycles(ahead)
        return _day(cycles, _is_weekend(cycles)) if self.week else AMPLITUDE * np.sin(2 * np.pi * cycles)


def cycle_of(period: int | None, week: bool) -> int | None:
    """The observations of one wave in signals of this period."""
    return period // 7 if period is not None and week else period


def _is_weekend(days: Floats) -> NDArray[np.bool_]:
    return days % 7 >= 5


def _day(days: Floats, weekend: NDArray[np.bool_]) -> Floats:
    """A weekday goes from its lowest point at midnight to its highest at noon; a day of the weekend hardly rises."""
    risen = 1 - np.cos(2 * np.pi * days)
    return AMPLITUDE * (np.where(weekend, QUIET, 1.0) * risen - 1)


@dataclass(frozen=True)
class Base:
    """One kind of signal for injecting faults. Call it with a generator, a number of signals and a length."""

    name: str
    about: str
    period: int | None
    _noise: Callable[[np.random.Generator, tuple[int, int]], Floats]
    #: The standard deviation of the noise, in which faults are measured; that of the steps of a walk.
    sd: float = 1.0
    #: Whether the period is a week: seven days, the last two of which are quiet.
    week: bool = False
    #: Whether no value is below 0.
    positive: bool = False

    @property
    def cycle(self) -> int | None:
        """The observations of one wave."""
        return cycle_of(self.period, self.week)

    def __call__(self, rng: np.random.Generator, signals: int, length: int) -> FaultySignals:
        """Draw `signals` independent signals of this kind."""
        phase = None if self.period is None else rng.random(signals)
        noise = self._noise(rng, (length, signals))
        return FaultySignals(noise, self.sd, self.period, phase, self.week, self.positive)


def _white(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    return rng.standard_normal(shape)


def _walk(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    return np.cumsum(rng.standard_normal(shape), axis=0)


def _counts(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    turns = np.arange(shape[0])[:, np.newaxis] / 24 + rng.random(shape[1])
    return rng.poisson(7.4 * np.exp(0.9 * np.sin(2 * np.pi * turns))).astype(np.float64)


def _lognormal(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    return np.exp(0.5 * rng.standard_normal(shape))


def _autoregressive(correlation: float, name: str) -> Base:
    def noise(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
        return ar_noise(rng.standard_normal(shape), correlation)

    about = f"each value {correlation:g} of the one before, plus normal noise"
    return Base(name, about, None, noise, sd=float(1 / np.sqrt(1 - correlation**2)))


BASES = {
    base.name: base
    for base in (
        Base("white noise", "independent draws of one normal law", None, _white),
        _autoregressive(0.9, "AR .9"),
        Base("season 48", "a wave of period 48 and amplitude 3, plus normal noise", 48, _white),
        Base("season 288", "a wave of period 288 and amplitude 3, plus normal noise", 288, _white),
        Base("day 1440", "a wave of period 1440 and amplitude 3, plus normal noise", 1440, _white),
        Base("week 2016", "seven days of 288, two of them quiet, plus normal noise", 2016, _white, week=True),
        _autoregressive(0.99, "AR .99"),
        Base("walk", "normal steps", None, _walk),
    )
}
"""Every kind of signal for injecting faults, by name."""

EARLY = {
    base.name: base
    for base in (
        BASES["white noise"],
        BASES["AR .9"],
        Base("season 24", "a wave of period 24 and amplitude 3, plus normal noise", 24, _white),
        BASES["season 288"],
        # The standard deviation around the profile, over a whole period.
        Base("counts", "Poisson counts, on average 3 to 18 with period 24", None, _counts, sd=3.0, positive=True),
        Base("lognormal", "the exponential of normal draws with a standard deviation of a half", None, _lognormal,
             sd=math.sqrt(math.exp(0.5) - math.exp(0.25)), positive=True),
    )
}  # fmt: skip
"""Kinds of signals for faults among the first observations, by name."""


@dataclass(frozen=True)
class FaultKind:
    """One kind of fault. Call it with signals and where it starts for values `[T, S]` with it in every signal.

    Where a fault has a direction it goes up in every other signal and down in the others; up in all that are positive.
    `length` is how many
    observations it lasts, or one cycle or period; `seasonal` faults can only happen to a season, `weekly` ones only to
    a week.
    """

    name: str
    about: str
    length: Length
    _inject: Callable[[FaultySignals, slice, Floats], Floats]
    seasonal: bool = False
    weekly: bool = False

    def __call__(self, signals: FaultySignals, start: int) -> Floats:
        """The values of the signals with the fault in them, from observation `start` on."""
        steps, count = signals.noise.shape
        stop = checks.integer("start", start, least=1) + self.lasts(signals)
        if stop > steps:
            raise ValueError(f"{self.name} must end within the signals, which have {steps} observations, got {stop}")
        values, place = signals.values, slice(start, stop)
        down = (np.arange(count) % 2 == 1) & (not signals.positive)
        injected = self._inject(signals, place, np.where(down, -1.0, 1.0))
        values[place] = np.maximum(injected, 0.0) if signals.positive else injected
        return values

    def fits(self, signals: FaultySignals | Base) -> bool:
        """Whether it can happen to these signals."""
        return signals.week if self.weekly else signals.period is not None or not self.seasonal

    def lasts(self, signals: FaultySignals | Base) -> int:
        """How many observations it lasts in these signals."""
        if not self.fits(signals):
            need = "a week" if self.weekly else "a season: the signals must have a period"
            raise ValueError(f"{self.name} needs {need}, got none")
        if isinstance(self.length, int):
            return self.length
        return (signals.cycle if self.length == "cycle" else signals.period) or 0


def _shifted(size: float) -> Callable[[FaultySignals, slice, Floats], Floats]:
    def inject(signals: FaultySignals, place: slice, sign: Floats) -> Floats:
        return faults.shifted(signals.values[place], size * signals.sd * sign)

    return inject


def _drifting(size: float) -> Callable[[FaultySignals, slice, Floats], Floats]:
    def inject(signals: FaultySignals, place: slice, sign: Floats) -> Floats:
        return faults.drifting(signals.values[place], size * signals.sd * sign)

    return inject


def _stuck(signals: FaultySignals, place: slice, sign: Floats) -> Floats:
    return faults.stuck(signals.values[place], signals.values[place.start - 1])


def _noise_times(factor: float) -> Callable[[FaultySignals, slice, Floats], Floats]:
    def inject(signals: FaultySignals, place: slice, sign: Floats) -> Floats:
        return faults.noisier(signals.season()[place], signals.noise[place], factor)

    return inject


def _faster(signals: FaultySignals, place: slice, sign: Floats) -> Floats:
    ahead = np.zeros((signals.noise.shape[0], 1))
    ahead[place, 0] = 0.1 * np.arange(place.stop - place.start) / (signals.cycle or 1)
    return signals.season(ahead)[place] + signals.noise[place]


def _out_of_phase(signals: FaultySignals, place: slice, sign: Floats) -> Floats:
    return signals.season(1 / 8)[place] + signals.noise[place]


def _peak_cut_off(signals: FaultySignals, place: slice, sign: Floats) -> Floats:
    return np.minimum(signals.season()[place], 2 / 3 * AMPLITUDE) + signals.noise[place]


def _missing(signals: FaultySignals, place: slice, sign: Floats) -> Floats:
    return signals.noise[place]


def _other_day(weekend: bool) -> Callable[[FaultySignals, slice, Floats], Floats]:
    """The first whole day of the weekend, or weekday, is like one of the other kind."""

    def inject(signals: FaultySignals, place: slice, sign: Floats) -> Floats:
        days = signals.cycles()[place]
        is_weekend, day = _is_weekend(days), np.floor(days)
        # Half an observation of slack: a day may start between two.
        whole = day >= days[0] - 0.5 / (signals.cycle or 1)
        first = np.where(whole & (is_weekend == weekend), day, np.inf).min(axis=0)
        return _day(days, np.where(day == first, not weekend, is_weekend)) + signals.noise[place]

    return inject


def shift(size: float, length: int) -> FaultKind:
    """All values higher or lower by this many standard deviations for a while; one observation is a spike."""
    name = f"spike {size:g} sd" if length == 1 else f"shift {size:g} sd"
    return FaultKind(name, f"{size:g} sd higher or lower", length, _shifted(size))


def drift(size: float, length: int) -> FaultKind:
    """Values move away steadily, up to this many standard deviations, and are back at once after it."""
    return FaultKind(f"drift to {size:g} sd", f"values move away steadily, up to {size:g} sd", length, _drifting(size))


def noise_times(factor: float, length: int) -> FaultKind:
    """The noise this many times as large for a while."""
    return FaultKind(f"noise x {factor:g}", f"the noise {factor:g} times as large", length, _noise_times(factor))


def lasting(fault: FaultKind, name: str) -> FaultKind:
    """A long fault, under a name of its own."""
    return replace(fault, name=name, about=f"{fault.about}, for {fault.length} observations")


STUCK = FaultKind("stuck", "the value before it is repeated", 200, _stuck)
DRIFT = drift(3, 200)

FAULTS = {
    fault.name: fault
    for fault in (
        shift(4, 1),
        shift(1, 100),
        shift(2, 100),
        shift(3, 100),
        DRIFT,
        STUCK,
        noise_times(0.3, 200),
        noise_times(2, 100),
        FaultKind("frequency +10%", "the wave is a tenth faster", 200, _faster, seasonal=True),
        FaultKind("phase by 1/8", "the wave is an eighth of a cycle ahead", 200, _out_of_phase, seasonal=True),
        FaultKind(
            "peak cut off",
            "one period's wave stops at two thirds of its height",
            "period",
            _peak_cut_off,
            seasonal=True,
        ),
        FaultKind("missing cycle", "one wave does not happen", "cycle", _missing, seasonal=True),
        FaultKind(
            "weekend as weekday", "a day of the weekend is like a weekday", "period", _other_day(True), weekly=True
        ),
        FaultKind(
            "weekday as holiday", "a weekday is like a day of the weekend", "period", _other_day(False), weekly=True
        ),
    )
}
"""Every kind of fault that is soon over, by its name."""

LEAK, SLOW_DRIFT = lasting(drift(4, 2000), "leak"), lasting(drift(3, 4000), "slow drift")

LASTING = {
    fault.name: fault
    for fault in (
        lasting(shift(0.5, 2000), "lasting shift .5 sd"),
        lasting(shift(2, 2000), "lasting shift 2 sd"),
        lasting(noise_times(1.5, 2000), "lasting noise x 1.5"),
        LEAK,
        SLOW_DRIFT,
    )
}
"""Every kind of fault that lasts, by its name."""


def repeated(fault: FaultKind, times: int, apart: int) -> FaultKind:
    """The same fault several times, with a fixed distance between starts."""
    if not isinstance(fault.length, int):
        raise ValueError(f"fault must last a number of observations, got {fault.name}, which lasts a {fault.length}")
    length = fault.length

    def inject(signals: FaultySignals, place: slice, sign: Floats) -> Floats:
        values = signals.values[place]
        for start in range(place.start, place.start + times * apart, apart):
            single = slice(start - place.start, start - place.start + length)
            values[single] = fault(signals, start)[start : start + length]
        return values

    return replace(fault, name=f"{times} times {fault.name}", length=length + (times - 1) * apart, _inject=inject)
