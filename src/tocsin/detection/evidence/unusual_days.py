"""Days that are unlike others: holidays, and those on which clocks are changed."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.detection.views.view import Mask, Rows, View

Counts = NDArray[np.int64]
# Longer than anything that looks back.
LONG_AGO = 10**9


class UnusualDays:
    """Knows which scores cannot be compared with those of other days.

    What expects the usual order of days has no score on a holiday, nor as long as it looks back to one. After clocks
    have been changed it has none for a cycle of the season: only then has it seen all times of the day, or week, anew.
    """

    def __init__(self, signals: int) -> None:
        self._since_holiday = np.full(signals, LONG_AGO)
        self._since_change = np.full(signals, LONG_AGO)
        self._ahead = np.full(signals, LONG_AGO)  # of UTC, in observations; as long as it is not known, LONG_AGO

    def pass_by(self, calendar: Counts, rows: Rows) -> tuple[Counts, Counts]:
        """How many observations each is after the last one on a holiday, and the first after clocks were changed.

        Both are `(T, N)`; 0 for these themselves. `calendar` is what `Calendar.places` says about T observations of the
        signals `rows`.
        """
        ahead = np.concatenate([self._ahead[np.newaxis, rows], calendar[..., 0]])
        changed = (ahead[1:] != ahead[:-1]) & (ahead[:-1] != LONG_AGO)
        self._ahead[rows] = ahead[-1]
        return _since(calendar[..., 1] > 0, self._since_holiday, rows), _since(changed, self._since_change, rows)

    def state(self, rows: Rows) -> dict[str, Counts]:
        """The arrays that later answers depend on, of these signals."""
        return {name.removeprefix("_"): array[rows] for name, array in vars(self).items()}

    def restore(self, state: dict[str, Any], rows: Rows) -> None:
        """Continue from what `state` returned for as many signals."""
        for name, own in vars(self).items():
            given = np.asarray(state[name.removeprefix("_")])
            if given.shape != own[rows].shape or given.dtype != own.dtype:
                raise ValueError(f"{name.removeprefix('_')} must be {own.dtype} of shape {own[rows].shape}")
            own[rows] = given


def _since(event: Mask, before: Counts, rows: Rows) -> Counts:
    number = np.arange(event.shape[0])[:, np.newaxis]
    last = np.maximum.accumulate(np.where(event, number, -1 - before[rows]))
    since = np.minimum(number - last, LONG_AGO)
    if since.size:
        before[rows] = since[-1]
    return since


def incomparable(view: View, since_holiday: Counts, since_change: Counts, periods: Counts) -> Mask:
    """Which scores of a view cannot be compared, `(T, N, 1, streams)`; `periods` are those of the signals' seasons."""
    reach = np.array([max(stream.length, view.horizons) for stream in view.streams])
    mask = since_holiday[..., np.newaxis] < reach
    mask |= since_change[..., np.newaxis] < np.maximum(reach, periods[:, np.newaxis])
    return np.asarray(mask[:, :, np.newaxis])
