"""Incidents that belong together: one event, one message, one acknowledgement, before and after a crash."""

import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.service.engine.helpers import SECOND, START, Rig, one, rig, settings_of, until
from tests.service.helpers import Running, run
from tests.service.helpers import until as until_async
from tests.service.receiver import Receiver
from tests.service.sinks.test_outbox import Recorder
from tocsin_monitor.config.kinds import DeliveryRules
from tocsin_monitor.engine.events import Events
from tocsin_monitor.errors import UnknownError
from tocsin_monitor.metrics import Metrics
from tocsin_monitor.observations import Batch, Observation
from tocsin_monitor.sinks import make_sinks
from tocsin_monitor.sinks.outbox import Outbox
from tocsin_monitor.store import EventRow, OutboxRow

SINK = {"webhook": [{"name": "desk", "url": "http://127.0.0.1:1"}]}
SILENT = [{"match": "*", "silent_after": 0.2}]
#: Nothing stops by itself while a test works on something else.
PATIENT = [{"match": "*", "silent_after": 1e6}]


def settings(**given: Any) -> Any:
    return settings_of(**{"sinks": SINK, "templates": SILENT, **given})


def send(made: Rig, names: list[str], sender: str, at: int = START) -> None:
    made.engine.submit(Batch(tuple(Observation(name, at, (1.0,)) for name in names), sender=sender)).result(100)


def events(made: Rig, **which: Any) -> list[EventRow]:
    with made.store.reading() as reader:
        return reader.events(limit=1000, **which)[::-1]


def members(made: Rig, event: EventRow) -> list[int]:
    with made.store.reading() as reader:
        return [row.id for row in reader.members(event.id, limit=10**6)]


def messages(made: Rig, now: int = 2**62) -> list[OutboxRow]:
    with made.store.reading() as reader:
        return reader.outbox_due("desk", now, 10**6)


def deliver(made: Rig, rows: list[OutboxRow], at: int) -> None:
    news = {row.id: row.news for row in rows}
    with made.store.transaction() as writer:
        writer.mark_delivered(news, at, news=news, update_every=300 * SECOND)


@pytest.mark.slow
def test_a_source_that_stops_is_one_event_and_one_message(tmp_path: Path) -> None:
    names = [f"plant/line-{number % 5}/{number}" for number in range(60)]
    with rig(tmp_path, settings()) as made:
        send(made, names, "gateway")
        until(lambda: len(made.incidents(kind="silence", open=True)) == 60)
        (event,) = events(made)
        assert (event.shared, event.open, len(members(made, event))) == (("source:gateway",), True, 60)
        (row,) = messages(made)
        assert (row.event, row.status, row.told) == (event.id, "firing", None)
        # It waits for others, for as long as the hold time.
        assert row.next_attempt - event.opened == 10 * SECOND
        with made.store.reading() as reader:
            (whole,) = reader.summaries([event], {row.id: row.name for row in reader.signals()})
        assert (whole.count, whole.signals, whole.open_count, whole.source_signals) == (60, 60, 60, 60)

        shape = made.engine.events.acknowledge(event.id, "ada", "the gateway is being moved").result(100)
        assert (shape["title"], shape["acknowledged_by"]) == ("source gateway stopped: 60 signals silent", "ada")
        assert {row.acknowledged_by for row in made.incidents()} == {"ada"}
        assert {row.note for row in made.incidents()} == {"the gateway is being moved"}

        deliver(made, [row], time.time_ns())
        send(made, names, "gateway", START + SECOND)
        (over,) = messages(made)
        assert (over.event, over.incident, over.status) == (event.id, row.incident, "resolved")
        assert [one.open for one in events(made)][:1] == [False]


@pytest.mark.slow
def test_an_event_grows_and_its_message_is_updated_in_time(tmp_path: Path) -> None:
    with rig(tmp_path, settings(events={"hold": 1})) as made:
        send(made, ["hall/a"], "gateway")
        until(lambda: events(made))
        (row,) = messages(made)
        told = time.time_ns()
        deliver(made, [row], told)
        assert messages(made) == []
        send(made, ["hall/b"], "gateway", START + SECOND)
        until(lambda: len(made.incidents(open=True)) == 2)
        (event,) = events(made)
        assert len(members(made, event)) == 2
        assert messages(made, told + 300 * SECOND - 1) == []
        (again,) = messages(made, told + 300 * SECOND)
        assert (again.id, again.incident, again.status, again.news) == (row.id, row.incident, "firing", 1)
        # What joins while a message is on its way is told with the next one.
        send(made, ["hall/c"], "gateway", START + 2 * SECOND)
        until(lambda: len(made.incidents(open=True)) == 3)
        later = told + 300 * SECOND
        deliver(made, [again], later)
        assert messages(made, later + 300 * SECOND - 1) == []
        (third,) = messages(made, later + 300 * SECOND)
        assert (third.id, third.news) == (row.id, 2)
        # Once somebody has acknowledged it, nobody is told that it grows.
        deliver(made, [third], later)
        made.engine.events.acknowledge(event.id, "ada").result(100)
        send(made, ["hall/d"], "gateway", START + 3 * SECOND)
        until(lambda: len(made.incidents(open=True)) == 4)
        assert messages(made) == []
        assert {one.acknowledged_by for one in made.incidents()} == {"ada"}


@pytest.mark.slow
def test_what_was_to_be_told_of_growth_is_left_when_the_event_is_over(tmp_path: Path) -> None:
    with rig(tmp_path, settings(events={"hold": 0})) as made:
        send(made, ["hall/a"], "gateway")
        until(lambda: events(made))
        deliver(made, messages(made), time.time_ns())
        send(made, ["hall/b"], "gateway", START + SECOND)
        until(lambda: len(made.incidents(open=True)) == 2)
        assert [row.status for row in messages(made)] == ["firing"]
        made.engine.signals.remove("hall/b").result(100)
        assert len(events(made)) == 1
        send(made, ["hall/a"], "gateway", START + SECOND)
        assert [row.status for row in messages(made)] == ["resolved"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sender"), [("yard/gate", "another"), ("mast", "another")], ids=["elsewhere", "without a place"]
)
def test_an_unrelated_silence_is_not_swallowed(tmp_path: Path, name: str, sender: str) -> None:
    with rig(tmp_path, settings()) as made:
        send(made, [f"hall/{number}" for number in range(30)], "gateway")
        send(made, [name], sender)
        until(lambda: len(made.incidents(open=True)) == 31)
        large, alone = sorted(events(made), key=lambda event: -len(members(made, event)))
        assert (len(members(made, large)), len(members(made, alone))) == (30, 1)
        assert len(messages(made)) == 2


@pytest.mark.slow
def test_a_fault_is_not_swallowed_by_a_silence_in_the_same_place(tmp_path: Path) -> None:
    """Not even if it begins at the same moment."""
    with rig(tmp_path, settings(templates=[{"match": "hall/still*", "silent_after": 0.2}, *PATIENT])) as made:
        values = [0.0] * 300
        made.feed("hall/fault", values)
        send(made, [f"hall/still {number}" for number in range(30)], "http", START + 300 * SECOND)
        until(lambda: len(made.incidents(kind="silence", open=True)) == 30)
        made.feed("hall/fault", [90.0, 95.0], START + 300 * SECOND)
        (fault,) = made.incidents(kind="alarm", open=True)
        kinds = {event.id: event.kind for event in events(made)}
        assert fault.event is not None
        assert kinds[fault.event] == "alarm"
        assert fault.event in {row.event for row in messages(made)}


def test_faults_in_one_place_are_one_event_and_elsewhere_another(tmp_path: Path) -> None:
    with rig(tmp_path, settings(templates=PATIENT)) as made:
        names = ["plant/line-3/pump/a", "plant/line-3/motor/b", "plant/line-4/pump/a"]
        for name in names:
            made.feed(name, [0.0] * 300)
        made.take(*(one(name, START + 300 * SECOND, 90.0) for name in names))
        found = {row.event for row in made.incidents(kind="alarm", open=True)}
        shared = {event.id: event.shared for event in events(made)}
        assert sorted(shared[number] for number in found if number) == [
            ("place:plant/line-3",), ("place:plant/line-4",),
        ]  # fmt: skip


def test_turned_off_each_incident_is_told_at_once(tmp_path: Path) -> None:
    with rig(tmp_path, settings(events={"enabled": False})) as made:
        send(made, ["hall/a", "hall/b", "hall/c"], "gateway")
        until(lambda: len(made.incidents(open=True)) == 3)
        assert [len(members(made, event)) for event in events(made)] == [1, 1, 1]
        assert len(messages(made, time.time_ns())) == 3


@pytest.mark.slow
def test_an_event_goes_on_after_a_crash(tmp_path: Path) -> None:
    patient = settings(templates=[{"match": "*", "silent_after": 1.0}])
    made = Rig(tmp_path, patient)
    try:
        send(made, ["hall/a", "hall/b"], "gateway")
        until(lambda: len(made.incidents(open=True)) == 2)
        before, rows = events(made), messages(made)
        made = made.crash()
        assert (events(made), messages(made)) == (before, rows)
        send(made, ["shed/c"], "gateway", START + SECOND)
        until(lambda: len(made.incidents(open=True)) == 3)
        (event,) = events(made)
        assert len(members(made, event)) == 3
        send(made, ["hall/a", "hall/b", "shed/c"], "gateway", START + 2 * SECOND)
        made = made.crash()
        assert [one.open for one in events(made)][:1] == [False]
        deliver(made, [row for row in messages(made) if row.event == event.id], time.time_ns())
        assert [row.status for row in messages(made) if row.event == event.id] == ["resolved"]
    finally:
        made.close()


@pytest.mark.slow
def test_who_sends_is_known_after_a_start(tmp_path: Path) -> None:
    made = Rig(tmp_path, settings(templates=PATIENT))
    try:
        send(made, ["a", "b"], "first")
        made = made.crash()
        assert {signal.source for signal in made.state.signals.values()} == {"first"}
        for number in range(1, 250):
            send(made, ["a"], "second", START + number * SECOND)
        until(lambda: made.state.signals["a"].stored_source == "second")
        made = made.crash()
        assert {name: signal.source for name, signal in made.state.signals.items()} == {"a": "second", "b": "first"}
    finally:
        made.close()


def test_a_snooze_and_a_label_hold_for_all_members(tmp_path: Path) -> None:
    with rig(tmp_path, settings(events={"hold": 0})) as made:
        send(made, ["hall/a", "hall/b"], "gateway")
        until(lambda: len(made.incidents(open=True)) == 2)
        (event,) = events(made)
        until_then = time.time_ns() + 3600 * SECOND
        made.engine.events.snooze(event.id, until_then).result(100)
        assert messages(made, until_then - 1) == []
        # One of two that is awake is enough.
        made.engine.incidents.snooze(made.incidents()[1].id, None).result(100)
        assert len(messages(made, until_then - 1)) == 1
        made.engine.events.label(event.id, "expected", "a holiday").result(100)
        assert {(row.label, row.note) for row in made.incidents()} == {("expected", "a holiday")}
        with pytest.raises(UnknownError, match="there is no event 99"):
            made.engine.events.acknowledge(99, "ada").result(100)


def test_a_false_alarm_ends_all_incidents_of_an_event(tmp_path: Path) -> None:
    with rig(tmp_path, settings(templates=PATIENT)) as made:
        names = ["hall/a", "hall/b"]
        for name in names:
            made.feed(name, [0.0] * 300)
        made.take(*(one(name, START + 300 * SECOND, 90.0) for name in names))
        number = made.incidents(kind="alarm", open=True)[0].event
        assert number is not None
        shape = made.engine.events.label(number, "false alarm").result(100)
        assert (shape["open"], shape["label"]) == (False, "false alarm")
        assert made.incidents(kind="alarm", open=True) == []


def test_events_go_with_their_incidents(tmp_path: Path) -> None:
    with rig(tmp_path, settings(sinks={})) as made:
        send(made, ["hall/a", "hall/b"], "gateway")
        until(lambda: len(made.incidents(open=True)) == 2)
        for name in ("hall/a", "hall/b"):
            made.engine.signals.remove(name).result(100)
        assert events(made) == []
        assert isinstance(made.state.events, Events)
        assert made.state.events._groups == {}


@pytest.mark.slow
def test_an_escalation_is_told_of_the_end_if_and_only_if_it_was_told_of_the_start(tmp_path: Path) -> None:
    """The sink's rules and events together: acknowledged in time it hears nothing, and later it hears the end."""
    rules = DeliveryRules(after=0.5)
    sinks = {"webhook": [{"name": "desk", "url": "http://127.0.0.1:1", "after": 0.5}]}
    with rig(tmp_path, settings(sinks=sinks, events={"hold": 0}, templates=PATIENT)) as made:
        for name in ("hall/seen", "shed/late"):
            made.feed(name, [0.0] * 300)
        sink = Recorder()
        sink.name = "desk"

        def incident(name: str) -> int:
            with made.store.reading() as reader:
                signal = reader.signal(name)
            return next(row.id for row in made.incidents(kind="alarm") if signal and row.signal == signal.id)

        async def test() -> None:
            async with Running(Outbox(sink, made.store, made.engine.write, Metrics(), rules, poll=0.02)):
                made.take(*(one(name, START + 300 * SECOND, 90.0) for name in ("hall/seen", "shed/late")))
                made.engine.incidents.acknowledge(incident("hall/seen"), "ada").result(100)
                await until_async(lambda: sink.told)
                assert sink.told == [("shed/late", "firing")]
                made.engine.incidents.acknowledge(incident("shed/late"), "ada").result(100)
                for name in ("hall/seen", "shed/late"):
                    made.engine.incidents.label(incident(name), "false alarm").result(100)
                await until_async(lambda: len(sink.told) == 2 and messages(made) == [])
            assert sink.told == [("shed/late", "firing"), ("shed/late", "resolved")]

        run(test)


@pytest.mark.slow
def test_a_new_fault_in_a_place_with_constant_trouble_is_told_afresh(tmp_path: Path) -> None:
    """Even if somebody has acknowledged the trouble, and some of it goes on."""
    with rig(tmp_path, settings(events={"hold": 0, "window": 60, "span": 90})) as made:
        for number in range(3):
            send(made, [f"hall/{number}"], "gateway", START + number * 45 * SECOND)
        until(lambda: len(made.incidents(open=True)) == 3)
        (trouble,) = events(made)
        deliver(made, messages(made), time.time_ns())
        made.engine.events.acknowledge(trouble.id, "ada").result(100)
        assert messages(made) == []

        send(made, ["hall/fault"], "gateway", START + 91 * SECOND)
        until(lambda: len(made.incidents(open=True)) == 4)
        before, fresh = events(made)
        assert (before.open, len(members(made, before)), fresh.acknowledged) == (True, 3, None)
        (row,) = messages(made)
        assert (row.event, row.status) == (fresh.id, "firing")


def test_a_backlog_of_old_observations_pages_nobody(tmp_path: Path) -> None:
    def told(receiver: Receiver) -> Any:
        sinks = {"webhook": [{"name": "desk", "url": f"http://{receiver.place}"}]}
        return settings(sinks=sinks, events={"hold": 0}, templates=PATIENT)

    with closing(Receiver()) as receiver, rig(tmp_path, told(receiver)) as made:
        made.feed("hall/a", [0.0] * 300)  # years ago
        made.take(one("hall/a", START + 300 * SECOND, 90.0))
        (incident,) = made.incidents(kind="alarm", open=True)
        made.engine.incidents.label(incident.id, "false alarm").result(100)
        assert [row.status for row in messages(made)] == ["firing"]

        async def test() -> None:
            (outbox,) = make_sinks(made.settings, made.store, made.engine.write, Metrics())
            async with Running(outbox):
                await until_async(lambda: messages(made) == [])

        run(test)
        assert receiver.taken == []
        assert made.incidents(kind="alarm")[0].label == "false alarm"
