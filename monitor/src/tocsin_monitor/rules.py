"""What is told and learned of a signal, in its unit: the values it can have, and how far an incident has to go."""

import math
import sys
from typing import Annotated, Any, Self, TypeVar

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from tocsin.data import parse_duration

T = TypeVar("T")

#: The least and the greatest value; None for no bound.
Bounds = tuple[float | None, float | None]


def _bounds(given: Any) -> Bounds:
    wrong = ValueError(f"must be [least, greatest], the first less than the second, got {given!r:.100}")
    if not isinstance(given, (list, tuple)) or len(given) != 2:
        raise wrong
    found = []
    for one, open_end in zip(given, (-math.inf, math.inf), strict=True):
        if one is not None and (isinstance(one, bool) or not isinstance(one, (int, float)) or one != one):
            raise wrong
        found.append(None if one is None or one == open_end else float(one))
    low, high = found
    if (low is None and high is None) or (low is not None and high is not None and not low < high):
        raise wrong
    if math.inf in (low, -(high or 0.0)):
        raise wrong
    return low, high


def _ranges(given: Any) -> Bounds | dict[str, Bounds] | None:
    if isinstance(given, dict):
        return {str(name): _bounds(one) for name, one in given.items()} or None
    return None if given is None else _bounds(given)


def _limits(given: Any) -> float | dict[str, float] | None:
    if isinstance(given, dict):
        return {str(name): _limit(one) for name, one in given.items()} or None
    return None if given is None else _limit(given)


def _limit(given: Any) -> float:
    number = isinstance(given, (int, float)) and not isinstance(given, bool)
    # An integer may be larger than any float.
    if not number or not -sys.float_info.max <= given <= sys.float_info.max:
        raise ValueError(f"must be a number, or one for each feature, got {given!r:.100}")
    return float(given)


_TWO = {"type": "array", "items": {"type": ["number", "null"]}, "minItems": 2, "maxItems": 2}

ValidRange = Annotated[
    Bounds | dict[str, Bounds] | None,
    BeforeValidator(_ranges),
    WithJsonSchema({"anyOf": [_TWO, {"type": "object", "additionalProperties": _TWO}, {"type": "null"}]}),
    Field(
        description="The least and the greatest value it can have, or both for each feature. Anything else opens an "
        "incident at once, and is not learned.",
        examples=[[0, 120]],
    ),
]
_NUMBERS = {"type": "object", "additionalProperties": {"type": "number"}}
_LIMIT = (
    BeforeValidator(_limits),
    WithJsonSchema({"anyOf": [{"type": "number"}, _NUMBERS, {"type": "null"}]}),
)
LimitHigh = Annotated[
    float | dict[str, float] | None,
    *_LIMIT,
    Field(
        description="The value that it must not exceed, or one for each feature. A higher one opens an incident at "
        "once, and a steady rise to it opens one ahead; it is judged and learned as any other.",
        examples=[95.0],
    ),
]
LimitLow = Annotated[
    float | dict[str, float] | None,
    *_LIMIT,
    Field(
        description="The value that it must not fall below, or one for each feature, as with `limit_high`.",
        examples=[5.0],
    ),
]
MinDeviation = Annotated[
    float | None,
    Field(
        gt=0, allow_inf_nan=False,
        description="Tell nobody of alarms that are less than this far, in its unit, from the forecast and from "
        "what is usual.",
        examples=[2.0],
    ),
]  # fmt: skip
MinLevel = Annotated[
    float | None,
    Field(allow_inf_nan=False, description="Tell nobody of alarms whose values are all below this.", examples=[50.0]),
]
NoDataIsZero = Annotated[
    bool | None,
    Field(
        description="For counts: an interval without an observation counts as 0 as soon as it is over. "
        "The signal is never silent then.",
        examples=[False],
    ),
]


def _of(given: T | dict[str, T] | None, feature: str) -> T | None:
    return given.get(feature) if isinstance(given, dict) else given


def check_limits(
    valid_range: Bounds | dict[str, Bounds] | None,
    limit_low: float | dict[str, float] | None,
    limit_high: float | dict[str, float] | None,
) -> None:
    """ValueError if limits contradict each other, or no valid value is beyond one."""
    given = (valid_range, limit_low, limit_high)
    # What has no names is for all features.
    for feature in sorted({name for one in given if isinstance(one, dict) for name in one}) or [""]:
        low, high, of = _of(limit_low, feature), _of(limit_high, feature), f" of {feature}" if feature else ""
        if low is not None and high is not None and not low < high:
            raise ValueError(f"limit_low{of} must be less than limit_high, got {low:g} and {high:g}")
        least, greatest = _of(valid_range, feature) or (None, None)
        for name, limit in (("limit_low", low), ("limit_high", high)):
            if limit is None or ((least is None or least <= limit) and (greatest is None or limit <= greatest)):
                continue
            valid = bounds_text(least, greatest)
            raise ValueError(
                f"{name}{of} must be in valid_range, {valid}, or no valid value is beyond it, got {limit:g}"
            )


class SignalRules(BaseModel):
    """The rules of one signal."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    valid_range: ValidRange = None
    limit_high: LimitHigh = None
    limit_low: LimitLow = None
    min_deviation: MinDeviation = None
    min_level: MinLevel = None
    no_data_is_zero: NoDataIsZero = None

    @model_validator(mode="after")
    def _limits_fit(self) -> Self:
        check_limits(self.valid_range, self.limit_low, self.limit_high)
        return self

    def outside(self, features: tuple[str, ...], values: tuple[float, ...]) -> tuple[str, float, float] | None:
        """The feature that is furthest outside the valid range, its value and its distance (negative: below)."""
        if self.valid_range is None:
            return None
        found = []
        for name, value in zip(features, values, strict=True):
            low, high = self.bounds(name)
            if low is not None and value < low:
                found.append((name, value, value - low))
            elif high is not None and value > high:
                found.append((name, value, value - high))
        return max(found, key=lambda one: abs(one[2]), default=None)

    def bounds(self, feature: str) -> Bounds:
        return _of(self.valid_range, feature) or (None, None)

    def limits(self, feature: str) -> Bounds:
        """The low and the high limit of a feature; None for none."""
        return _of(self.limit_low, feature), _of(self.limit_high, feature)

    def check_zero(self, silent_after: float | None, interval: Any) -> None:
        """ValueError if no data cannot mean zero, with these other settings."""
        if not self.no_data_is_zero:
            return
        if silent_after is not None:
            raise ValueError(
                f"a signal with no_data_is_zero is never silent: give it or silent_after, got both ({silent_after:g} s)"
            )
        if isinstance(interval, str):
            interval = parse_duration(interval) / np.timedelta64(1, "s")
        if interval is None or interval < 1:
            raise ValueError(
                f"no_data_is_zero needs an interval of at least 1 s: set detector.interval, or every, got {interval!r}"
            )

    def below_minimum(self, away: float, highest: float) -> bool:
        """Whether nobody is told of alarms that went this far, with values up to `highest`. NaN is unknown."""
        near = self.min_deviation is not None and away < self.min_deviation
        return near or (self.min_level is not None and highest < self.min_level)


def bounds_text(low: float | None, high: float | None) -> str:
    """A range in words."""
    return f"at least {low:g}" if high is None else f"at most {high:g}" if low is None else f"{low:g} to {high:g}"


NO_RULES = SignalRules()
RULES = tuple(SignalRules.model_fields)
