"""Parsing of alarm rates, and the sizes that follow from them."""

import math
import re
from dataclasses import dataclass
from typing import Any

from tocsin import checks
from tocsin.conformal.history import MOST_LAGS

SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 7 * 86400, "month": 30 * 86400}
_BUDGET = re.compile(r"\s*((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[-+]?[0-9]+)?)\s*(?:/|\s+per\s+)\s*([a-z]+?)s?\s*$")

# The length of the past behind a threshold, in units of the tolerated time per alarm: long enough to be exact on
# average although neighbouring observations are correlated, short enough to follow a signal that changes.
RECALIBRATION = 6
# p counts as calibrated once this many alarms could have occurred or, if incidents are counted, after this many
# observations.
CALIBRATION_ALARMS = 2
MIN_CALIBRATION = 200
# The views' warm-up: their scores are not used before they have seen this many observations.
VIEW_WARM_UP = 300
# A stream is used once it has this many past scores, or more if they overlap.
LEAST_LEARNED = 50
# How much a new incident tightens the threshold; it relaxes again at the promised rate.
TIGHTENING = 0.1
# Blocks are a tenth of the tolerated time per incident, but long enough for one incident to end, and short enough that
# there are soon some; unless there would be too many to keep.
BLOCK_SHARE = 0.1
SHORTEST_BLOCK, LONGEST_BLOCK = 20, 200
MOST_BLOCKS = 600
# Evidence beyond all blocks is estimated once there are this many.
LEAST_BLOCKS = 5
LEAST_RATE = 1 / (MOST_LAGS - 1)


def parse_alarm_rate(alarm_rate: Any, interval_seconds: float | None) -> float:
    """The tolerated rate of false incidents (or alarms) per observation, from a number or a budget such as "1/day".

    >>> parse_alarm_rate("1/day", interval_seconds=300)
    0.003472222222222222
    """
    if not isinstance(alarm_rate, str):
        return checks.number("alarm_rate", alarm_rate, above=0, below=0.5)
    try:
        return checks.number("alarm_rate", float(alarm_rate), above=0, below=0.5)
    except ValueError:
        incidents, seconds = parse_budget("alarm_rate", alarm_rate, "a number between 0 and 0.5, or ")
    if interval_seconds is None:
        raise ValueError(
            f"alarm_rate={alarm_rate!r} is a budget over time: set the sampling interval too, such as interval='5min'"
        )
    rate = incidents * interval_seconds / seconds
    if not rate < 0.5:
        raise ValueError(
            f"alarm_rate={alarm_rate!r} allows {rate:g} alarms per observation of {interval_seconds:g} seconds, "
            "which must be less than 0.5"
        )
    return rate


def parse_budget(name: str, budget: str, else_accepted: str = "") -> tuple[float, float]:
    """The number of incidents that a budget allows, and the number of seconds.

    >>> parse_budget("budget", "5/day"), parse_budget("budget", "2.5 per hour")
    ((5.0, 86400), (2.5, 3600))
    """
    found = _BUDGET.match(budget.lower())
    if found is None or found[2] not in SECONDS or not float(found[1]) > 0:
        raise ValueError(
            f"{name} must be {else_accepted}a budget such as '1/day' (per {', '.join(SECONDS)}), got {budget!r}"
        )
    return float(found[1]), SECONDS[found[2]]


def is_budget(alarm_rate: Any) -> bool:
    """Whether an alarm rate is given over time, so that its value depends on the interval.

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
    """How much of the past an alarm rate needs.

    `window` and `alpha_c` are those of the views' scorers, and `view_warm_up` is how many observations they see before
    their scores are used. `final` is the calibration set of evidence for p, which needs at least `min_calibration`
    entries. Incidents are decided by the highest evidence of past blocks of `block` observations, at most `blocks` of
    them.
    """

    window: int
    alpha_c: float
    view_warm_up: int
    final: int
    min_calibration: int
    block: int
    blocks: int


def sizes(alarm_rate: float, *, window: int, promise: str) -> Sizes:
    """The sizes for an alarm rate, which counts incidents or observations."""
    needed = math.ceil(1 / alarm_rate)
    by_observations = promise == "observations"
    if by_observations and alarm_rate < LEAST_RATE:
        raise ValueError(
            f"alarm_rate must be at least {LEAST_RATE:.3g} with promise='observations', since no more than {MOST_LAGS} "
            f"past observations are kept to compare with, got {alarm_rate:.3g}: count incidents, or allow more alarms"
        )
    block = min(max(SHORTEST_BLOCK, math.ceil(BLOCK_SHARE * needed)), LONGEST_BLOCK)
    block = max(block, math.ceil(RECALIBRATION * needed / MOST_BLOCKS))
    return Sizes(
        window=window,
        alpha_c=max(0.01, 2 / window),
        view_warm_up=VIEW_WARM_UP,
        final=min(max(window, RECALIBRATION * needed), MOST_LAGS)
        if by_observations
        else max(window // 2, MIN_CALIBRATION),
        min_calibration=min(CALIBRATION_ALARMS * needed, MOST_LAGS - 1) if by_observations else MIN_CALIBRATION,
        block=block,
        blocks=max(RECALIBRATION, math.ceil(RECALIBRATION * needed / block)),
    )


def rarest_rate(sizes: Sizes, extrapolation: float) -> float:
    """The smallest rate ever reported: this many times smaller than all blocks together can show."""
    return -math.log1p(-1 / (1 + sizes.blocks)) / sizes.block / extrapolation


def most_beyond(sizes: Sizes, alarm_rate: float, extrapolation: float) -> int:
    """The largest possible excess of incidents over the promised number, over any length of any signal.

    Each incident lowers the log threshold by `TIGHTENING`, and each observation raises it by that much times the alarm
    rate. Once the threshold is below the smallest rate that blocks can show, or that is estimated from them, nothing
    alarms.
    """
    return math.ceil(math.log(alarm_rate / rarest_rate(sizes, extrapolation)) / TIGHTENING) + 1
