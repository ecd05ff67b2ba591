"""Faults injected into fully known signals, so that their place and size are known."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tocsin import checks
from tocsin.evaluation.ar_noise import ar_noise
from tocsin.evaluation.calibration import Floats

AMPLITUDE = 3.0
"""Of the waves, in standard deviations of the noise around them."""

_CORRELATION = 0.9


@dataclass(frozen=True, eq=False)
class FaultySignals:
    """Decomposed clean signals: `values[T, S]` are the season plus the noise, whose standard deviation is `sd`.

    A season has a period and, for each signal, a phase in turns at the first observation; without a period there is
    none.
    """

    noise: Floats
    sd: float
    period: int | None = None
    phase: Floats | None = None

    @property
    def values(self) -> Floats:
        """What is observed."""
        return self.season() + self.noise

    def season(self, ahead: Floats | float = 0.0) -> Floats:
        """The season of each observation, or that of as many periods ahead."""
        if self.period is None or self.phase is None:
            return np.zeros_like(self.noise)
        turns = np.arange(self.noise.shape[0])[:, np.newaxis] / self.period + self.phase
        return np.asarray(AMPLITUDE * np.sin(2 * np.pi * (turns + ahead)))


@dataclass(frozen=True)
class Base:
    """One kind of signal for injecting faults. Call it with a generator, a number of signals and a length."""

    name: str
    about: str
    period: int | None
    _noise: Callable[[np.random.Generator, tuple[int, int]], Floats]
    #: The standard deviation of the noise, in which faults are measured.
    sd: float = 1.0

    def __call__(self, rng: np.random.Generator, signals: int, length: int) -> FaultySignals:
        """Draw `signals` independent signals of this kind."""
        phase = None if self.period is None else rng.random(signals)
        return FaultySignals(self._noise(rng, (length, signals)), self.sd, self.period, phase)


def _white(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    return rng.standard_normal(shape)


def _autoregressive(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    return ar_noise(rng.standard_normal(shape), _CORRELATION)


BASES = {
    base.name: base
    for base in (
        Base("white noise", "independent draws of one normal law", None, _white),
        Base(
            name="AR .9",
            about="each value 0.9 of the one before, plus normal noise",
            period=None,
            _noise=_autoregressive,
            sd=float(1 / np.sqrt(1 - _CORRELATION**2)),
        ),
        Base("season 48", "a wave of period 48 and amplitude 3, plus normal noise", 48, _white),
        Base("season 288", "a wave of period 288 and amplitude 3, plus normal noise", 288, _white),
    )
}
"""Every kind of signal for injecting faults, by name."""


@dataclass(frozen=True)
class FaultKind:
    """One kind of fault. Call it with signals and where it starts for values `[T, S]` with it in every signal.

    Where a fault has a direction it goes up in every other signal and down in the others. `length` is how many
    observations it lasts, one period if None; `seasonal` faults can only happen to a season.
    """

    name: str
    about: str
    length: int | None
    _inject: Callable[[FaultySignals, slice, Floats], Floats]
    seasonal: bool = False

    def __call__(self, signals: FaultySignals, start: int) -> Floats:
        """The values of the signals with the fault in them, from observation `start` on."""
        steps, count = signals.noise.shape
        stop = checks.integer("start", start, least=1) + self.lasts(signals.period)
        if stop > steps:
            raise ValueError(f"{self.name} must end within the signals, which have {steps} observations, got {stop}")
        values, place = signals.values, slice(start, stop)
        values[place] = self._inject(signals, place, np.where(np.arange(count) % 2, -1.0, 1.0))
        return values

    def lasts(self, period: int | None) -> int:
        """How many observations it lasts in signals of this period."""
        if self.seasonal and period is None:
            raise ValueError(f"{self.name} needs a season: the signals must have a period, got none")
        return self.length or period or 0


def _shifted(size: float) -> Callable[[FaultySignals, slice, Floats], Floats]:
    def inject(signals: FaultySignals, place: slice, sign: Floats) -> Floats:
        return signals.values[place] + size * signals.sd * sign

    return inject


def _drifting(signals: FaultySignals, place: slice, sign: Floats) -> Floats:
    ramp = np.linspace(0, 3, place.stop - place.start)[:, np.newaxis]
    return signals.values[place] + ramp * signals.sd * sign


def _stuck(signals: FaultySignals, place: slice, sign: Floats) -> Floats:
    return np.broadcast_to(signals.values[place.start - 1], (place.stop - place.start, sign.size))


def _noise_times(factor: float) -> Callable[[FaultySignals, slice, Floats], Floats]:
    def inject(signals: FaultySignals, place: slice, sign: Floats) -> Floats:
        return signals.season()[place] + factor * signals.noise[place]

    return inject


def _faster(signals: FaultySignals, place: slice, sign: Floats) -> Floats:
    ahead = np.zeros((signals.noise.shape[0], 1))
    ahead[place, 0] = 0.1 * np.arange(place.stop - place.start) / (signals.period or 1)
    return signals.season(ahead)[place] + signals.noise[place]


def _out_of_phase(signals: FaultySignals, place: slice, sign: Floats) -> Floats:
    return signals.season(1 / 8)[place] + signals.noise[place]


def _peak_cut_off(signals: FaultySignals, place: slice, sign: Floats) -> Floats:
    return np.minimum(signals.season()[place], 2 / 3 * AMPLITUDE) + signals.noise[place]


def shift(size: float, length: int) -> FaultKind:
    """All values higher or lower by this many standard deviations for a while; one observation is a spike."""
    name = f"spike {size:g} sd" if length == 1 else f"shift {size:g} sd"
    return FaultKind(name, f"{size:g} sd higher or lower", length, _shifted(size))


def noise_times(factor: float, length: int) -> FaultKind:
    """The noise this many times as large for a while."""
    return FaultKind(f"noise x {factor:g}", f"the noise {factor:g} times as large", length, _noise_times(factor))


STUCK = FaultKind("stuck", "the value before it is repeated", 200, _stuck)
DRIFT = FaultKind("drift to 3 sd", "values move away steadily, up to 3 sd", 200, _drifting)

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
        FaultKind("phase by 1/8", "the wave is an eighth of a period ahead", 200, _out_of_phase, seasonal=True),
        FaultKind(
            "peak cut off",
            "one period's wave stops at two thirds of its height",
            None,
            _peak_cut_off,
            seasonal=True,
        ),
    )
}
"""Every kind of fault by its name."""


def repeated(fault: FaultKind, times: int, apart: int) -> FaultKind:
    """The same fault several times, with a fixed distance between starts."""

    def inject(signals: FaultySignals, place: slice, sign: Floats) -> Floats:
        values = signals.values[place]
        for start in range(place.start, place.start + times * apart, apart):
            single = slice(start - place.start, start - place.start + fault.lasts(signals.period))
            values[single] = fault(signals, start)[start : start + fault.lasts(signals.period)]
        return values

    last = fault.lasts(None) + (times - 1) * apart
    return replace(fault, name=f"{times} times {fault.name}", length=last, _inject=inject)
