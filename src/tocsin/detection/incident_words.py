"""Incidents as columns of a table, and in words."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.data import format_times
from tocsin.detection.incidents import Incident


class Ending(NamedTuple):
    """How an incident ended: in one or two words, in a few, and in a sentence."""

    short: str
    summary: str
    sentence: str


_OPEN = Ending("still open", "resolved", "It is over.")  # the longer forms are of messages, which are sent at the end
_ENDINGS = {
    "returned": Ending("returned", "resolved, back to normal", "It is over: the signal is back to normal."),
    "sending": Ending("returned", "resolved, sending again", "It is over: the signal is sending again."),
    "accepted": Ending(
        "accepted",
        "changed for good, and accepted as the new normal",
        "It ended, but the signal did not return: its new behaviour is accepted as normal.",
    ),
    "silent": Ending(
        "no more values",
        "sends no more values",
        "It ended, but the signal did not return: it sends no more values.",
    ),
    "labelled": Ending(
        "labelled",
        "labelled a false alarm, and accepted as normal",
        "It ended because a user labelled it a false alarm: the signal's behaviour is accepted as normal.",
    ),
    "reset": Ending(
        "detector reset",
        "incident ended because its detector was reset",
        "It ended because the detector was reset. Whether the signal is back to normal is unknown.",
    ),
    "relearned": Ending(
        "detector retrained",
        "incident ended because its detector was retrained",
        "It ended because the detector was retrained. Whether the signal is back to normal is unknown.",
    ),
    "removed": Ending(
        "signal removed",
        "incident ended because the signal was removed",
        "It ended because a user removed the signal. It is no longer monitored.",
    ),
    "imported": Ending("imported", "resolved", "It is over."),
}
_UNITS = (("years", 365.25 * 86400), ("days", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0))


def ending_of(ended: str | None) -> Ending:
    """How an incident ended, in words, from its `ended`; "sending" is a silence after which the signal returned."""
    return _OPEN if ended is None else _ENDINGS[ended]


def rarity(return_period: float, seconds: float | None) -> str:
    """How rare evidence is, from its return period in observations; empty if that is unknown.

    >>> rarity(3456, 300), rarity(3456, None), rarity(float("nan"), None)
    ('about once in 12 days', 'about once in 3,456 observations', '')
    """
    length = length_text(return_period, seconds)
    return f"about once in {length}" if length else ""


def length_text(observations: float, seconds: float | None) -> str:
    """A number of observations as a duration, if the sampling interval is known.

    >>> length_text(3456, 300), length_text(3456, None), length_text(1, 5)
    ('12 days', '3,456 observations', '5 s')
    """
    if not np.isfinite(observations):
        return ""
    if seconds is None:
        return f"{observations:,.0f} observation{'s' if observations != 1 else ''}"
    whole = observations * seconds
    # The largest unit with at least two: 36 h says more than 1.5 days.
    unit, size = next(((unit, size) for unit, size in _UNITS if whole >= 2 * size), _UNITS[-1])
    count = whole / size
    return f"{count:.0f} {unit}" if count >= 9.95 else f"{count:.2g} {unit}"


def incident_columns(incidents: Sequence[Incident]) -> dict[str, NDArray[Any]]:
    """The incidents as columns of a table, in their order."""
    return {
        "signal": np.array([incident.signal for incident in incidents], dtype=object),
        "start": _times([incident.start for incident in incidents]),
        "end": _times([incident.end for incident in incidents]),
        "peak": _times([incident.peak for incident in incidents]),
        "duration": np.array([incident.duration for incident in incidents], dtype=np.int64),
        "alarms": np.array([incident.alarms for incident in incidents], dtype=np.int64),
        "p": np.array([incident.p for incident in incidents], dtype=np.float64),
        "severity": np.array([incident.severity for incident in incidents], dtype=np.float64),
        "return_period": np.array([incident.return_period for incident in incidents], dtype=np.float64),
        "view": np.array([incident.view or "" for incident in incidents], dtype=object),
        "explanation": np.array([incident.explanation or "" for incident in incidents], dtype=object),
        "direction": np.array([incident.direction or "" for incident in incidents], dtype=object),
        "deviation": np.array([incident.deviation for incident in incidents], dtype=np.float64),
        "features": np.array([", ".join(incident.features) for incident in incidents], dtype=object),
        "open": np.array([incident.open for incident in incidents], dtype=np.bool_),
        "ended": np.array([incident.ended or "" for incident in incidents], dtype=object),
    }


def _times(times: list[Any]) -> NDArray[Any]:
    if times and isinstance(times[0], np.datetime64):
        return np.array(times, dtype="datetime64[ns]")
    return np.array(times, dtype=np.float64 if any(isinstance(time, float) for time in times) else np.int64)


def time_text(time: Any) -> str:
    """A readable time."""
    if isinstance(time, np.datetime64):
        return str(format_times(np.array([time]))[0]).replace("T", " ")
    return f"{time:g}" if isinstance(time, float) else str(time)
