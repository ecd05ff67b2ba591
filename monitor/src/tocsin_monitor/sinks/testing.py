"""Test messages: an incident that is not stored, of a signal that does not exist, told as any other is."""

import time

from tocsin_monitor.sinks.alerts import TEST
from tocsin_monitor.store import IncidentRow, Message, SignalRow

#: The name of the signal, because every title and text has it, whatever the settings of a sink make of them.
MARK = "This is a test message from Tocsin"
NAN = float("nan")


def made_up(status: Message, start: int) -> tuple[IncidentRow, SignalRow]:
    """What a sink is told in a test message."""
    over = status == "resolved"
    now = time.time_ns()
    incident = IncidentRow(
        id=TEST, signal=TEST, kind="alarm", start=start, end=now, peak=start, alarms=1, duration=1, p=1.0, severity=0.0,
        return_period=NAN, view=None, explanation="nothing is wrong", direction=None, deviation=0.0, contributions={},
        open=not over, opened=start, closed=now if over else None, ended="returned" if over else None,
        acknowledged=None, acknowledged_by=None, snoozed_until=None, label=None, note=None, excluded=False,
        withheld=False,
    )  # fmt: skip
    return incident, SignalRow(TEST, MARK, ("value",), {}, None, None, None, start)
