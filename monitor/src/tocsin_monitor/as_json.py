"""The JSON form of outcomes, verdicts and incidents in replies, events and messages."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from tocsin_monitor.event_text import title_of
from tocsin_monitor.fields import DeclaredField, declared
from tocsin_monitor.levels import level_of, level_of_event
from tocsin_monitor.observations import Outcome, Status
from tocsin_monitor.store import EventRow, EventSummary, IncidentRow, Member

_STATUS = {status: status.name.lower() for status in Status}
#: The fields of a verdict if there is none.
NO_VERDICT: dict[str, Any] = dict.fromkeys(("p", "severity", "alarm", "forecast", "low", "high", "warm"))


def time_text(nanoseconds: int) -> str:
    """A time as ISO 8601 in UTC, with as many digits (3, 6 or 9) as it needs.

    >>> time_text(1_700_000_000_000_000_000), time_text(1_700_000_000_000_001_000)
    ('2023-11-14T22:13:20.000Z', '2023-11-14T22:13:20.000001Z')
    """
    minute, rest = divmod(nanoseconds, 60 * 10**9)
    second, rest = divmod(rest, 10**9)
    digits = f"{rest:09d}"
    for unneeded in ("000000", "000"):
        if digits.endswith(unneeded):
            digits = digits.removesuffix(unneeded)
            break
    return f"{_minute_text(minute)}:{second:02d}.{digits}Z"


# Most times are in the same few minutes.
@lru_cache(maxsize=4096)
def _minute_text(minute: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(minutes=minute)).strftime("%Y-%m-%dT%H:%M")


def time_or_none(nanoseconds: int | None) -> str | None:
    """A time as text, or None."""
    return None if nanoseconds is None else time_text(nanoseconds)


def number(value: float | None) -> float | None:
    """A number, or None if JSON cannot write it: NaN for a missing number, infinity for no bound."""
    return value if value is not None and value - value == 0.0 else None


def outcome_json(outcome: Outcome) -> dict[str, Any]:
    """The outcome of an observation. For speed, numbers stay as they are: the JSON writer turns NaN into null."""
    judged = outcome.judged
    shape: dict[str, Any] = {
        "signal": outcome.signal,
        "time": time_text(outcome.time),
        "status": _STATUS[outcome.status],
    }
    if judged is None:
        shape |= NO_VERDICT
    else:
        one = len(judged.value) == 1
        shape["p"] = judged.p
        shape["severity"] = judged.severity
        shape["alarm"] = judged.alarm
        shape["forecast"] = judged.forecast[0] if one else judged.forecast
        shape["low"] = judged.low[0] if one else judged.low
        shape["high"] = judged.high[0] if one else judged.high
        shape["warm"] = judged.warm
    shape["incident"] = outcome.incident
    shape["message"] = outcome.message
    return shape


def verdict_json(outcome: Outcome) -> dict[str, Any]:
    """The outcome with the values, for readers who did not send them."""
    values = () if outcome.judged is None else outcome.judged.value
    return {**outcome_json(outcome), "value": values[0] if len(values) == 1 else values}


def json_of(source: type, one: Any, leave_out: tuple[str, ...] = ()) -> dict[str, Any]:
    """What the fields of a dataclass say, under the names by which they are shown."""
    return {shown: write(getattr(one, name)) for name, shown, write in _writers(source, leave_out)}


@lru_cache
def _writers(source: type, leave_out: tuple[str, ...]) -> tuple[tuple[str, str, Callable[[Any], Any]], ...]:
    return tuple((one.name, one.shown, _writer(one)) for one in declared(source) if one.name not in leave_out)


def _writer(field: DeclaredField) -> Callable[[Any], Any]:
    if field.is_time:
        return time_or_none
    if field.is_number:
        return number
    if field.origin is Mapping:
        return lambda numbers: {name: number(value) for name, value in numbers.items()}
    return lambda value: value


def incident_json(incident: IncidentRow, signal: str) -> dict[str, Any]:
    """An incident of the signal with this name."""
    return {**json_of(IncidentRow, incident), "signal": signal, "level": level_of(incident)}


def event_json(whole: EventSummary) -> dict[str, Any]:
    """An event with its most telling members."""
    event = whole.event
    return {
        **json_of(EventRow, event, ("shared",)),
        "title": title_of(whole),
        "level": level_of_event(whole),
        "source": event.source,
        "place": event.place,
        "places": list(whole.places),
        "count": whole.count,
        "signals": whole.signals,
        "open_count": whole.open_count,
        "first": member_json(whole.first),
        "strongest": member_json(whole.strongest),
    }


def member_json(member: Member) -> dict[str, Any]:
    """An incident of an event, in short."""
    incident = member.incident
    return {
        "incident": incident.id,
        "signal": member.signal,
        "start": time_text(incident.start),
        "severity": number(incident.severity),
        "open": incident.open,
    }
