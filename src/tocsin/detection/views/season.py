"""The season of a signal: found in its past, at two resolutions, with the calendar's day and week preferred."""

from collections.abc import Sequence

import numpy as np

from tocsin.detection.views.view import Floats
from tocsin.forecasting.simple import autocorrelation, period_in, transform_length

# The newest values at full resolution are enough for periods up to a third of their number; longer ones show in means.
NEWEST = 3_072
# Another period is better if the correlation with what was a period ago is this much higher.
BETTER = 0.05
# A period is looked for this close to a first guess, and taken to be a day or a week if it is this close to one.
CLOSE = 0.02
# The correlation at this many multiples of a period tells the period to the observation.
CYCLES = 6
# A week is a season of its own.
DAYS = 7


def find_season(fine: Floats, coarse: Floats, block: int, calendar: Sequence[int], present: int) -> int:
    """The period of a signal in observations, or 0.

    `fine` are its newest values and `coarse` means of blocks of them, which reach back further; NaN where missing.
    `calendar` are a day and a week in observations, and `present` is the period so far: it is told more precisely, and
    stays unless another is clearly better.
    """
    recent = fine[-NEWEST:]
    newest, means = (curve_of(values, 2 * (values.size // 3)) for values in (recent, coarse))
    guesses = (_period(newest), _period(means) * block)
    if not any(guesses) and not present:
        return 0
    known = newest if recent.size == fine.size else None
    curves = Correlations(half_of(fine, known), half_of(coarse, means), block)
    found = {_calendar_period(curves.refined(one), calendar) for one in guesses if one}
    found |= {_calendar_period(curves.refined(DAYS * one), calendar) for one in found if DAYS * one <= curves.longest}
    present = _calendar_period(curves.refined(present), calendar) if present else 0
    found |= {one for one in (present, *calendar) if 0 < one <= curves.longest}
    best, highest = 0, 0.0
    for period in sorted(found, key=lambda one: (one != present, one)):
        height = curves.at(period)
        if height > highest + (BETTER if best else 0.0):
            best, highest = period, height
    return best


class Correlations:
    """The correlation of a signal with itself some observations ago: from single values or, further back, means."""

    def __init__(self, fine: Floats, coarse: Floats, block: int) -> None:
        self._fine, self._coarse, self._block = fine, coarse, block
        #: The longest period, of which there are two.
        self.longest = max(self._fine.size, block * self._coarse.size) - block

    def at(self, lag: int) -> float:
        """The correlation at a lag of this many observations; 0 if that is too many."""
        curve, at = (self._fine, lag) if lag < self._fine.size else (self._coarse, round(lag / self._block))
        return float(curve[at]) if at < curve.size else 0.0

    def refined(self, period: int) -> int:
        """The best period close to this one, by the correlation at its multiples: they tell it more precisely."""
        reach = int(CLOSE * period) + self._block // 2
        cycles = range(1, max(min(CYCLES, self.longest // (period + reach)), 1) + 1)
        around = range(max(period - reach, 2), period + reach + 1)
        return max(around, key=lambda one: sum(self.at(cycle * one) for cycle in cycles))


def _period(curve: Floats) -> int:
    return (period_in(curve) or 0) if curve.size else 0


def curve_of(values: Floats, most: int) -> Floats:
    """The autocorrelation at lags up to `most`; empty if there is none."""
    if values.size < 96 or 2 * np.count_nonzero(np.isfinite(values)) < values.size:
        return np.zeros(0)
    curve = autocorrelation(values, most)
    return np.zeros(0) if curve is None else curve


def half_of(values: Floats, further: Floats | None) -> Floats:
    """The autocorrelation at lags up to half the number of values.

    It is the beginning of one that goes further, if that is known and has the same bits.
    """
    most = values.size // 2
    if further is None:
        return curve_of(values, most)
    reach = max(further.size - 1, 0)
    alike = not reach or transform_length(values.size, reach) == transform_length(values.size, most)
    return further[: most + 1] if alike else curve_of(values, most)


def _calendar_period(period: int, calendar: Sequence[int]) -> int:
    return next((one for one in calendar if abs(period - one) <= CLOSE * one), period)
