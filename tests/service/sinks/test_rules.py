"""The rules of sinks on the real store: who is told of what, and when."""

import asyncio
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tests.service.helpers import Running, run, until
from tests.service.sinks.office import Office
from tests.service.sinks.test_outbox import Busy, Recorder
from tocsin_monitor.config.kinds import DAYS, DeliveryRules
from tocsin_monitor.metrics import Metrics
from tocsin_monitor.sinks import outbox as outbox_module
from tocsin_monitor.sinks.outbox import Decision, Outbox, decide
from tocsin_monitor.store import Store


def moment(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1e9)


OFFICE = {"hours": "08:00-18:00", "days": ["mon", "tue", "wed", "thu", "fri"], "time_zone": "Europe/Vienna"}
NIGHT = {"hours": "22:00-06:00", "days": ["fri"], "time_zone": "UTC"}


@pytest.mark.parametrize(
    ("rules", "now", "allowed"),
    [
        ({}, "2026-11-15T03:00+00:00", "2026-11-15T03:00+00:00"),
        (OFFICE, "2026-11-16T08:00+01:00", "2026-11-16T08:00+01:00"),
        (OFFICE, "2026-11-16T17:59+01:00", "2026-11-16T17:59+01:00"),
        (OFFICE, "2026-11-16T18:00+01:00", "2026-11-17T08:00+01:00"),
        (OFFICE, "2026-11-13T20:00+01:00", "2026-11-16T08:00+01:00"),
        # The clocks change in the night to Sunday.
        (OFFICE, "2026-03-27T20:00+01:00", "2026-03-30T08:00+02:00"),
        (NIGHT, "2026-11-13T23:00+00:00", "2026-11-13T23:00+00:00"),
        (NIGHT, "2026-11-14T05:59+00:00", "2026-11-14T05:59+00:00"),
        (NIGHT, "2026-11-14T06:00+00:00", "2026-11-20T22:00+00:00"),
        ({"days": ["sun"]}, "2026-11-16T00:00+00:00", "2026-11-22T00:00+00:00"),
        ({"hours": "12:00-24:00"}, "2026-11-16T23:59+00:00", "2026-11-16T23:59+00:00"),
    ],
)
def test_when_messages_are_allowed(rules: dict[str, Any], now: str, allowed: str) -> None:
    assert DeliveryRules(**rules).next_time(moment(now)) == moment(allowed)


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        ({"hours": "8-18"}, 'two different times such as "07:00-19:00"'),
        ({"hours": "08:00-08:00"}, "two different times"),
        ({"time_zone": "Vienna"}, "Europe/Vienna"),
        ({"time_zone": "../etc/passwd"}, "Europe/Vienna"),
        ({"days": []}, "at least 1"),
        ({"days": ["monday"]}, "'mon'"),
        ({"messages": ["ended"], "after": "5min"}, 'after needs "opened" in messages'),
    ],
)
def test_what_makes_no_sense_is_refused(rules: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError) as refused:
        DeliveryRules(**rules)
    assert says in str(refused.value)


def box(office: Office, sink: Recorder, metrics: Metrics, **rules: Any) -> Outbox:
    return Outbox(sink, office.store, office.write, metrics, DeliveryRules(**rules), poll=0.02)


def test_only_the_wanted_messages(office: Office, metrics: Metrics) -> None:
    sink = Recorder()
    sink.refresh = 0.02
    repeated: list[int] = []

    async def repeat(incidents: Any) -> None:
        repeated.extend(incident.id for incident, _ in incidents)

    sink.repeat = repeat  # type: ignore[method-assign]

    async def test() -> None:
        for name, ended in (("pump", "returned"), ("valve", "accepted")):
            office.end(office.begin(name), ended)
        office.begin("goes on")
        async with Running(box(office, sink, metrics, messages=["accepted"])):
            await until(lambda: office.waiting() == {})
        assert sink.told == [("valve", "resolved")]
        assert repeated == []  # who was not told that it began is not told that it goes on

    run(test)


@pytest.mark.slow
def test_escalation_is_for_what_nobody_has_taken_care_of(office: Office, metrics: Metrics) -> None:
    sink = Recorder()

    async def test() -> None:
        opened = time.time_ns()
        seen, over, open_ = (office.begin(name, opened=opened) for name in ("seen", "over", "open"))
        async with Running(box(office, sink, metrics, after=1.5)):
            # Held back until they are due, and not counted as stuck.
            await until(lambda: len(office.due("sink", ahead=0)) == 0)
            assert office.waiting() == {"sink": 3}
            with office.store.reading() as reader:
                assert reader.outbox_waiting(opened) == {}
            office.change(seen, acknowledged=time.time_ns(), acknowledged_by="me")
            office.end(over)
            await until(lambda: office.waiting() == {})
            assert sink.told == [("open", "firing")]
            assert time.time_ns() >= opened + 1.5e9
            office.end(open_)
            await until(lambda: len(sink.told) == 2)
        assert sink.told[-1] == ("open", "resolved")

    run(test)


def test_who_acknowledges_while_a_slow_sink_is_busy_is_heard(
    office: Office, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox_module, "FRESH", 0.05)
    sink = Busy()

    async def test() -> None:
        office.begin("first", opened=1)
        seen = office.begin("seen", opened=1)
        async with Running(box(office, sink, metrics, after=0.001)):
            await until(lambda: sink.tries)
            office.change(seen, acknowledged=time.time_ns(), acknowledged_by="me")
            await asyncio.sleep(0.06)  # until what was read is no longer fresh
            sink.go_on.set()
            await until(lambda: office.waiting() == {})
        assert sink.told == [("first", "firing")]

    run(test)


@pytest.mark.slow
def test_escalation_survives_a_restart_and_tells_once(office: Office, metrics: Metrics, tmp_path: Path) -> None:
    async def test() -> None:
        first, second, third = Recorder(), Recorder(), Recorder()
        office.begin("pump", opened=time.time_ns())
        async with Running(box(office, first, metrics, after=2.0)):
            await until(lambda: len(office.due("sink", ahead=0)) == 0)
        office.store.close()
        office.store = Store.open(f"sqlite:///{tmp_path / 'tocsin.db'}")
        async with Running(box(office, second, metrics, after=2.0)):
            await until(lambda: second.told)
        assert office.waiting() == {}
        again = box(office, third, metrics, after=2.0)
        office.begin("later", opened=time.time_ns() - 10**10)
        async with Running(again):
            await until(lambda: third.told)
        assert first.told == []
        assert second.told == [("pump", "firing")]
        assert third.told == [("later", "firing")]

    run(test)


def test_an_end_is_told_to_whoever_may_know_of_the_start(office: Office, metrics: Metrics) -> None:
    """An attempt without a reply may have arrived: the incident is not left out then, although it is over."""
    sink = Recorder()

    async def test() -> None:
        sink.down = True
        number = office.begin("pump", opened=time.time_ns() - 10**10)
        async with Running(box(office, sink, metrics, after=1.0)):
            await until(lambda: sink.tries)
            office.end(number)
            sink.down = False
            await until(lambda: len(sink.told) == 2)
        assert sink.told == [("pump", "firing"), ("pump", "resolved")]

    run(test)


def days_from_today(*ahead: int) -> list[str]:
    return [DAYS[(datetime.now(UTC).weekday() + number) % 7] for number in ahead]


def test_outside_its_hours_a_sink_waits(office: Office, metrics: Metrics) -> None:
    async def test() -> None:
        sink = Recorder()
        office.begin("pump")
        # Two days ahead is not now, even if midnight passes.
        async with Running(box(office, sink, metrics, days=days_from_today(2))):
            await until(lambda: len(office.due("sink", ahead=0)) == 0)
        assert sink.told == []
        (held,) = office.due("sink", ahead=3 * 86400)
        assert datetime.fromtimestamp(held.next_attempt / 1e9, UTC).strftime("%H:%M") == "00:00"
        # As if that time had come.
        with office.store.transaction() as writer:
            writer.hold_messages({held.id: 0})
        async with Running(box(office, sink, metrics, days=days_from_today(0, 1))):
            await until(lambda: sink.told == [("pump", "firing")])

    run(test)


def test_what_was_over_before_the_hours_began_is_left_out(office: Office, metrics: Metrics) -> None:
    async def test() -> None:
        sink = Recorder()
        at_night = time.time_ns() - 4 * 86400 * 10**9
        number = office.begin("pump", opened=at_night, start=at_night)
        office.end(number, closed=at_night + 60 * 10**9)
        office.begin("valve")
        async with Running(box(office, sink, metrics, days=days_from_today(0, 1))):
            await until(lambda: office.waiting() == {})
        assert sink.told == [("valve", "firing")]

    run(test)


def test_news_of_what_a_sink_knows_is_skipped_and_never_left_out(office: Office) -> None:
    """Its end must still reach the sink, so its message stays: acknowledged, or over, even before a snooze was."""
    number = office.begin("pump", opened=1)
    (row,) = office.due("sink")
    grown = replace(row, told=10, attempts=0, news=1)
    office.change(number, acknowledged=20, acknowledged_by="me")
    rules = DeliveryRules(after=1.0)
    assert decide(rules, grown, office.incident(number), now=10**18) is Decision.SKIP
    assert decide(rules, row, office.incident(number), now=10**18) is Decision.LEAVE_OUT
    office.change(number, open=False, closed=30, snoozed_until=40)
    assert decide(DeliveryRules(), grown, office.incident(number), now=10**18) is Decision.SKIP
    assert decide(DeliveryRules(), row, office.incident(number), now=10**18) is Decision.LEAVE_OUT
    # An attempt without a reply may have arrived.
    tried = replace(row, attempts=1)
    assert decide(DeliveryRules(), tried, office.incident(number), now=10**18) is Decision.SEND
