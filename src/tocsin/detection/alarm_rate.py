"""Alarm rates as people say them, and the sizes that follow from them."""

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tocsin import checks
from tocsin.conformal import Merge
from tocsin.conformal.history import MOST_LAGS

SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 7 * 86400, "month": 30 * 86400}
_BUDGET = re.compile(r"\s*((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[-+]?[0-9]+)?)\s*(?:/|\s+per\s+)\s*([a-z]+?)s?\s*$")

# The scorer that makes p-values of merged ones compares with this many times 1/alarm_rate: enough to be exact on
# average although neighbouring observations resemble each other, few enough to follow a signal that changes.
RECALIBRATION = 6
# It is believed once it could have raised this many alarms.
BELIEVED = 2
# It starts once each horizon's own scorer has seen so many errors.
SETTLED = 300
LEAST_RATE = 1 / (MOST_LAGS - 1)


def parse_alarm_rate(alarm_rate: Any, interval_seconds: float | None) -> float:
    """The tolerated rate of false alarms per observation, from a number or from a budget such as "1/day".

    >>> parse_alarm_rate("1/day", interval_seconds=300)
    0.003472222222222222
    """
    if not isinstance(alarm_rate, str):
        return checks.number("alarm_rate", alarm_rate, above=0, below=0.5)
    try:
        return checks.number("alarm_rate", float(alarm_rate), above=0, below=0.5)
    except ValueError:
        budget = _BUDGET.match(alarm_rate.lower())
    if budget is None or budget[2] not in SECONDS or not float(budget[1]) > 0:
        raise ValueError(
            "alarm_rate must be a number between 0 and 0.5, the share of observations, or a budget such as '1/day' "
            f"(per {', '.join(SECONDS)}), got {alarm_rate!r}"
        )
    if interval_seconds is None:
        raise ValueError(
            f"alarm_rate={alarm_rate!r} is a budget over time: give the sampling interval too, such as interval='5min'"
        )
    rate = float(budget[1]) * interval_seconds / SECONDS[budget[2]]
    if not rate < 0.5:
        raise ValueError(
            f"alarm_rate={alarm_rate!r} allows {rate:g} alarms per observation of {interval_seconds:g} seconds, "
            "which must be less than 0.5"
        )
    return rate


def is_budget(alarm_rate: Any) -> bool:
    """Whether an alarm rate is said over time, so that it takes an interval to know how much it is.

    >>> is_budget("1/day"), is_budget("0.01"), is_budget(0.01)
    (True, False, False)
    """
    if not isinstance(alarm_rate, str):
        return False
    try:
        float(alarm_rate)
    except ValueError:
        return True
    return False


@dataclass(frozen=True)
class Sizes:
    """How much of the past is needed to tell an alarm rate.

    `window` and `alpha_c` are those of the scorer of errors, and `resolving` is how many errors it takes until merged
    p-values can be under the alarm rate; `recalibration` is the window of the scorer of merged
    values, `settled` how many errors come before it learns, `believed` how many merged values before it is believed.
    """

    window: int
    alpha_c: float
    resolving: int
    settled: int
    believed: int
    recalibration: int

    @property
    def warm_up(self) -> int:
        """How many observations come before p-values are what they are called."""
        return self.settled + self.believed


# To find it takes longer than all the rest of making a detector.
@lru_cache(maxsize=1024)
def observations_to_resolve(alarm_rate: float, merges: tuple[Merge, ...], shape: tuple[int, ...], sides: int) -> int:
    """How many errors it takes until merged p-values can be under the alarm rate, if all are as small as can be.

    The first of the `merges` is along the last axis of the `shape` of p-values of one observation, and so on.
    """
    least, most = 1, 2**40
    while least < most:
        middle = (least + most) // 2
        merged = np.full(shape, min(1.0, sides / (1 + middle)))
        for merge in merges:
            merged = merge(merged)
        if merged < alarm_rate:
            most = middle
        else:
            least = middle + 1
    return least


def sizes(alarm_rate: float, *, recalibrate: bool, window: int | None, resolving: int = 0) -> Sizes:
    """What a detector needs for its alarm rate; `window` if the caller insists on one.

    `resolving` is how many errors it takes until merged p-values can be under the alarm rate.
    """
    if alarm_rate < LEAST_RATE:
        raise ValueError(
            f"alarm_rate must be at least {LEAST_RATE:.3g} per observation, since no more than {MOST_LAGS} past "
            f"observations are kept to compare with, got {alarm_rate:.3g}: allow more alarms, or watch means over "
            "longer intervals"
        )
    needed = math.ceil(1 / alarm_rate)
    if recalibrate:
        wide = 2000 if window is None else window
        return Sizes(
            window=wide,
            alpha_c=max(0.01, 2 / wide),
            resolving=resolving,
            settled=min(max(SETTLED, needed), 1000, wide),
            believed=min(BELIEVED * needed, MOST_LAGS - 1),
            recalibration=min(RECALIBRATION * needed, MOST_LAGS),
        )
    wide = min(max(2000, 5 * needed, 2 * resolving), MOST_LAGS) if window is None else window
    if resolving >= wide:
        raise ValueError(
            f"window must be more than {resolving} past errors for alarm_rate={alarm_rate:.3g} with these merges and "
            f"without recalibration, or there could never be an alarm, got {wide}"
        )
    smallest = 1 / (1 + resolving) if resolving else alarm_rate / 2
    return Sizes(
        window=wide,
        alpha_c=max(min(0.01, smallest), 2 / wide),
        resolving=resolving,
        settled=0,
        believed=0,
        recalibration=0,
    )
