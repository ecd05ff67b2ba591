"""Alarm rates as people say them, and the sizes that follow from them."""

import math
import re
from dataclasses import dataclass
from typing import Any

from tocsin import checks
from tocsin.conformal.history import MOST_LAGS

SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 7 * 86400, "month": 30 * 86400}
_BUDGET = re.compile(r"\s*((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[-+]?[0-9]+)?)\s*(?:/|\s+per\s+)\s*([a-z]+?)s?\s*$")

# How much of the past a threshold rests on, in the time in which one alarm is tolerated: enough to be exact on average
# although neighbouring observations resemble each other, little enough to follow a signal that changes.
RECALIBRATION = 6
# p is believed once as many could have been raised, or, where incidents are counted, after so many observations.
BELIEVED = 2
LEAST_BELIEVED = 200
# Nothing is made of what the views say before they have seen so many observations.
SETTLED = 300
# A stream is heard once it has so many past scores, and more where they overlap.
LEAST_LEARNED = 50
# How strongly an incident that opened tightens what is tolerated from then on; it loosens again at the promised rate.
TIGHTENING = 0.1
# Blocks are a tenth of the time in which one incident is tolerated, but not too short for one incident to end, and not
# so long that it takes for ever until there are some; unless there would be too many to keep.
BLOCK_SHARE = 0.1
SHORTEST_BLOCK, LONGEST_BLOCK = 20, 200
MOST_BLOCKS = 600
# What is rarer than all blocks is estimated once there are so many.
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
            f"alarm_rate={alarm_rate!r} is a budget over time: give the sampling interval too, such as interval='5min'"
        )
    rate = incidents * interval_seconds / seconds
    if not rate < 0.5:
        raise ValueError(
            f"alarm_rate={alarm_rate!r} allows {rate:g} alarms per observation of {interval_seconds:g} seconds, "
            "which must be less than 0.5"
        )
    return rate


def parse_budget(name: str, budget: str, else_accepted: str = "") -> tuple[float, float]:
    """How many incidents a budget allows, and in how many seconds.

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

    `window` and `alpha_c` are those of the scorers of the views, and `settled` is how many observations they see before
    anything is made of what they say. `final` is the window in which evidence is ranked for p, believed once it holds
    `believed`. Incidents are told by the highest evidence of past blocks of `block` observations, at most `blocks` of
    them.
    """

    window: int
    alpha_c: float
    settled: int
    final: int
    believed: int
    block: int
    blocks: int


def sizes(alarm_rate: float, *, window: int, promise: str) -> Sizes:
    """What a detector needs for its alarm rate, which counts incidents or observations."""
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
        settled=SETTLED,
        final=min(max(window, RECALIBRATION * needed), MOST_LAGS) if by_observations else window,
        believed=min(BELIEVED * needed, MOST_LAGS - 1) if by_observations else LEAST_BELIEVED,
        block=block,
        blocks=max(RECALIBRATION, math.ceil(RECALIBRATION * needed / block)),
    )


def rarest_rate(sizes: Sizes, extrapolation: float) -> float:
    """The rarest that anything is ever called: so many times rarer than all blocks together tell."""
    return -math.log1p(-1 / (1 + sizes.blocks)) / sizes.block / extrapolation


def most_beyond(sizes: Sizes, alarm_rate: float, extrapolation: float) -> int:
    """How many incidents there can be beyond the promised number, at most, over any length of any signal.

    Each incident lowers the logarithm of what is tolerated by `TIGHTENING`, and each observation raises it by that much
    of the alarm rate. Once less is tolerated than the rarest rate that blocks can tell, or that is estimated from them,
    nothing alarms.
    """
    return math.ceil(math.log(alarm_rate / rarest_rate(sizes, extrapolation)) / TIGHTENING) + 1
