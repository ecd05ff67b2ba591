"""Parsing of alarm rates, and the sizes that follow from them."""

import math
import re
from dataclasses import dataclass
from typing import Any

from tocsin import checks
from tocsin.conformal.scorer import MOST_LAGS
from tocsin.constants import constants

SECONDS = {
    "second": 1,
    "minute": 60,
    "hour": 3600,
    "day": 86400,
    "week": 7 * 86400,
    "month": 30 * 86400,
    "year": 365 * 86400,
}
_BUDGET = re.compile(r"\s*((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[-+]?[0-9]+)?)\s*(?:/|\s+per\s+)\s*([a-z]+?)s?\s*$")

LEAST_RATE = 1 / (MOST_LAGS - 1)
#: Rarer than any signal is long: beyond it, blocks would have more observations than can be counted.
RAREST = 1e-18


def check_rate(name: str, value: Any) -> float:
    """An alarm rate per observation."""
    return checks.number(name, value, least=RAREST, below=0.5)


def parse_alarm_rate(alarm_rate: Any, interval_seconds: float | None) -> float:
    """The tolerated rate of false incidents (or alarms) per observation, from a number or a budget such as "1/day".

    >>> parse_alarm_rate("1/day", interval_seconds=300)
    0.003472222222222222
    """
    if not isinstance(alarm_rate, str):
        return check_rate("alarm_rate", alarm_rate)
    try:
        return check_rate("alarm_rate", float(alarm_rate))
    except ValueError:
        incidents, seconds = parse_budget("alarm_rate", alarm_rate, "a number between 0 and 0.5, or ")
    if interval_seconds is None:
        raise ValueError(
            f"alarm_rate={alarm_rate!r} is a budget over time: set the sampling interval too, such as interval='5min'"
        )
    rate = incidents * interval_seconds / seconds
    if not RAREST <= rate < 0.5:
        raise ValueError(
            f"alarm_rate={alarm_rate!r} allows {rate:g} alarms per observation of {interval_seconds:g} seconds, "
            f"which must be at least {RAREST:g} and less than 0.5"
        )
    return rate


def parse_budget(name: str, budget: str, else_accepted: str = "") -> tuple[float, float]:
    """The number of incidents that a budget allows, and the number of seconds.

    >>> parse_budget("budget", "5/day"), parse_budget("budget", "2.5 per hour")
    ((5.0, 86400), (2.5, 3600))
    """
    found = _BUDGET.match(budget.lower())
    if found is None or found[2] not in SECONDS or not 0 < float(found[1]) < math.inf:
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

    `window` and `alpha_c` are those of the views' scorers. `final` is the calibration set of evidence for p, which
    needs at least `min_calibration` entries. Incidents are decided by the highest evidence of past blocks of `block`
    observations, at most `blocks` of them; beyond all of them by an estimate. At first, `stand_in` usual blocks stand
    in for a signal's own.
    """

    window: int
    alpha_c: float
    final: int
    min_calibration: int
    block: int
    blocks: int
    stand_in: int


def sizes(alarm_rate: float, *, window: int, promise: str) -> Sizes:
    """The sizes for an alarm rate, which counts incidents or observations."""
    needed = math.ceil(1 / alarm_rate)
    by_observations = promise == "observations"
    if by_observations and alarm_rate < LEAST_RATE:
        raise ValueError(
            f"alarm_rate must be at least {LEAST_RATE:.3g} with promise='observations', since no more than {MOST_LAGS} "
            f"past observations are kept to compare with, got {alarm_rate:.3g}: count incidents, or allow more alarms"
        )
    least, recalibration = constants().least, constants().recalibration
    # A tenth of the tolerated time per incident, so that there are soon some. At most 40 observations, or a hundredth
    # of that time if that is longer, so that there are not too many. At least 20, so that an incident can end.
    block = math.ceil(max(min(needed / 10, max(0.8 * least, needed / 100)), 0.4 * least))
    blocks = max(recalibration, math.ceil(recalibration * needed / block))
    return Sizes(
        window=window,
        alpha_c=max(0.01, 2 / window),
        final=min(max(window, recalibration * needed), MOST_LAGS) if by_observations else max(window // 2, 4 * least),
        min_calibration=min(max(4 * least, needed), MOST_LAGS - 1) if by_observations else 4 * least,
        block=block,
        blocks=blocks,
        stand_in=min(STAND_IN, blocks),
    )


#: How many blocks stand in for those that a signal has not had yet.
STAND_IN = 20
#: How many times rarer than a signal's past can show an estimate may be to alarm; beyond, it only orders incidents.
EXTRAPOLATION = 100.0


def rarest_rate(sizes: Sizes, *, early: bool) -> float:
    """The smallest rate that counts: what all blocks together can show, or what may be estimated from them."""
    return -math.log1p(-1 / (1 + sizes.blocks)) / sizes.block / (EXTRAPOLATION if early else 1.0)


def most_beyond(sizes: Sizes, alarm_rate: float, *, early: bool) -> int:
    """The largest possible excess of incidents over the promised number, over any length of any signal.

    Each incident lowers the log threshold by `tightening`, and each observation raises it by that much times the alarm
    rate. Once the threshold is below the smallest rate that blocks can show, or that is estimated from them, nothing
    alarms.
    """
    return math.ceil(math.log(alarm_rate / rarest_rate(sizes, early=early)) / constants().tightening) + 1
