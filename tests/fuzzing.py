"""Settings that somebody could give who means harm: hostile values of everything that is declared."""

import inspect
import math
from collections.abc import Iterator
from typing import Any

from tocsin.detection import DetectorSettings, declared
from tocsin.forecasting.forecaster import BUILT_IN

#: What any setting may be given, whatever it is for; as JSON has it.
ANYTHING: tuple[Any, ...] = (
    None, True, "", "x", "\0", "~nobody/x", "9" * 400, [], [[]], {}, {"a": 1}, ["1d", -1], -1, 0, 1, 2, 0.5, 5e-324,
    1e-300, 1e-18, 1e-15, 1e300, -1e300, 2**31, 2**63, 2**64, 10**400, "5e-324", "1e-300/year", "1/year",
    "1e300/second", "1e400/day", "1e-400/day", "1ns", "1e-300s", "1000000d", "1e300d",
)  # fmt: skip


def hostile_settings() -> Iterator[dict[str, Any]]:
    """Settings of a detector, one or two of them hostile: at and beyond their bounds, and of every wrong kind."""
    for name, one in declared(DetectorSettings).items():
        rule = one.rule
        if not rule.configured:
            continue
        bounds = [bound for bound in (rule.least, rule.most, rule.above, rule.below) if bound is not None]
        near = [number for bound in bounds for number in _around(bound, whole=one.type is int)]
        for value in (*near, *ANYTHING):
            yield {name: value}
            if name in ("alarm_rate", "interval", "accept_after", "season"):  # what a duration means depends on both
                yield {"interval": 1e-9, name: value}
                yield {"interval": 1e12, "alarm_rate": "1/week", name: value}
    for forecaster in BUILT_IN:
        for option in inspect.signature(forecaster.load()).parameters:
            for value in ANYTHING:
                yield {"forecaster": forecaster.name, "forecaster_options": {option: value}}


def _around(bound: float, *, whole: bool) -> tuple[float, ...]:
    if whole:
        return int(bound) - 1, int(bound), int(bound) + 1
    return math.nextafter(bound, -math.inf), bound, math.nextafter(bound, math.inf)
