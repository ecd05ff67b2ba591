"""Verdicts as lines of JSON."""

import json
import math
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import numpy as np

from tocsin.data import ParsedObservation
from tocsin.detection.watching import WatchedObservation

_TOLD = ("value", "p", "alarm", "severity", "return_period", "forecast", "low", "high", "warm", "direction")
#: The fields of an open incident besides its start.
_OF_INCIDENTS = ("alarms", "p", "severity", "return_period", "view", "explanation")
_FIRST = datetime(1970, 1, 1)
_encode = json.JSONEncoder().encode


def line_of(observation: ParsedObservation, judged: WatchedObservation) -> str:
    """The line for one observation."""
    record: dict[str, Any] = {}
    if observation.id is not None:
        record["id"] = observation.id
    if judged.time is not None:
        record["time"] = _time(judged.time, observation.zone)
    columns, step = judged.batch.columns, judged.step
    for name in _TOLD:
        record[name] = columns[name][step]
    if record["alarm"]:
        why = judged.batch.explanation(step)
        record["view"], record["explanation"] = (why.view, why.text) if why else (None, None)
        incident = judged.batch.incidents[step]
        if incident is not None:
            told = {name: _plain(getattr(incident, name)) for name in _OF_INCIDENTS}
            record["incident"] = {"start": _time(incident.start, observation.zone), **told}
    return _encode(record)


def _time(time: Any, zone: str | None) -> Any:
    """A time as it was written: in its zone, if it had one, and with no more digits than needed."""
    if not isinstance(time, np.datetime64):
        return time
    stamp = int(time.astype("datetime64[ns]").astype(np.int64)) + (0 if zone is None else _offset(zone))
    second, rest = divmod(stamp, 10**9)
    text = (_FIRST + timedelta(seconds=second)).isoformat()
    digits = next(digits for digits in (0, 3, 6, 9) if not rest % 10 ** (9 - digits))
    fraction = f".{rest:09d}"[: digits + 1] if digits else ""
    return f"{text}{fraction}{zone or ''}"


@cache
def _offset(zone: str) -> int:
    """How many nanoseconds a zone such as +02:00 is ahead of UTC."""
    if zone in ("Z", "z"):
        return 0
    digits = zone[1:].replace(":", "")
    minutes = int(digits[:2]) * 60 + int(digits[2:] or 0)
    return (minutes if zone[0] == "+" else -minutes) * 60 * 10**9


def _plain(value: Any) -> Any:
    """A value that JSON can express: null if it is missing or infinite."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
