"""Rows for the tests of the store."""

import random
import struct
from typing import Any

from tocsin_monitor.observations import Status, StoredVerdict
from tocsin_monitor.store import IncidentFacts, ObservationRow, SignalRow, StoreWriter

NAN = float("nan")


def add_signal(writer: StoreWriter, name: str, features: int = 1) -> SignalRow:
    names = [f"f{number}" for number in range(features)]
    return writer.add_signal(name, names, {"gap": 3}, silent_after=60.0, unit="C", template=None, created=7)


def observation(signal: int, time: int, *values: float, status: Status = Status.SCORED, **more: Any) -> ObservationRow:
    """An observation whose verdict has a number of its own everywhere."""
    values = values or (0.5,)
    fields = {
        "value": values,
        "forecast": tuple(value + 1 for value in values),
        "low": tuple(value - 2 for value in values),
        "high": tuple(value + 3 for value in values),
        "p": 0.25,
        "merged": 0.125,
        "feature_p": tuple(0.0625 for _ in values),
        "alarm": False,
        "warm": True,
    }
    return ObservationRow(signal, time, status, StoredVerdict(**{**fields, **more}))


def random_observations(count: int, time: int, seed: int = 3) -> list[ObservationRow]:
    """One observation of each of so many signals."""
    source = random.Random(seed)
    return [
        observation(signal, time, source.gauss(0, 1), p=source.random(), merged=source.random())
        for signal in range(1, count + 1)
    ]


def incident(signal: int, start: int, **more: Any) -> IncidentFacts:
    fields = {
        "kind": "alarm",
        "end": start,
        "peak": start,
        "alarms": 1,
        "duration": 1,
        "p": 0.001,
        "severity": 2.5,
        "return_period": 300.0,
        "rarity": 6.5,
        "view": "error",
        "explanation": "1.5 above the forecast",
        "direction": "above",
        "deviation": 1.5,
        "contributions": {"f0": 3.0},
        "open": True,
        "opened": start + 5,
        "closed": None,
        "ended": None,
    }
    return IncidentFacts(signal=signal, start=start, **{**fields, **more})


def tell(writer: StoreWriter, sink: str, number: int, now: int) -> int:
    """Have a sink told of an incident, which is an event by itself; returns the number of the event."""
    row = writer.incident(number)
    assert row is not None
    event = row.event
    if event is None:
        event = writer.add_event(row.kind, row.start, [], now)
        writer.change_event(event, open=row.open, closed=row.closed)
        writer.change_incident(number, event=event)
    writer.tell_event(sink, event, number, now, now, None)
    return event


def bits(row: ObservationRow) -> tuple[Any, ...]:
    """All of an observation, with its numbers bit by bit; every NaN is the same."""
    judged = row.judged
    numbers = [judged.value, judged.forecast, judged.low, judged.high, judged.feature_p, (judged.p, judged.merged)]
    packed = [[struct.pack("<d", NAN if number != number else number) for number in some] for some in numbers]
    return row.signal, row.time, row.status, judged.alarm, judged.warm, packed
