"""The outbox on the real store, with a sink that can be told to fail."""

import asyncio
import sqlite3
import time
from collections.abc import Callable
from itertools import pairwise

import pytest

from tests.service.helpers import Running, run, until
from tests.service.sinks.office import Office, facts
from tocsin_monitor import errors
from tocsin_monitor.metrics import Metrics
from tocsin_monitor.sinks import outbox as module
from tocsin_monitor.sinks.base import DeliveryError, Sink
from tocsin_monitor.sinks.outbox import Outbox, incidents_in
from tocsin_monitor.store import IncidentRow, Message, SignalRow, StoreReader


class Recorder(Sink):
    """Keeps what it is told. `down` fails everything, `poison` signals fail by themselves, and are refused or not."""

    def __init__(self) -> None:
        super().__init__("sink")
        self.told: list[tuple[str, str]] = []
        self.tries: list[tuple[float, str]] = []
        self.down = False
        self.poison: set[str] = set()
        self.refuses: set[str] = set()
        self.breaks: set[str] = set()

    async def deliver(self, incident: IncidentRow, signal: SignalRow, status: Message) -> None:
        self.tries.append((time.monotonic(), signal.name))
        if self.down or signal.name in self.poison | self.refuses:
            raise DeliveryError("no", refused=signal.name in self.refuses)
        if signal.name in self.breaks:
            raise KeyError("a mistake of ours")
        self.told.append((signal.name, status))


class Busy(Recorder):
    """Takes its first message, and replies to nothing until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = asyncio.Event()

    async def deliver(self, incident: IncidentRow, signal: SignalRow, status: Message) -> None:
        await super().deliver(incident, signal, status)
        await self.go_on.wait()


@pytest.fixture
def sink() -> Recorder:
    return Recorder()


@pytest.fixture
def box(office: Office, sink: Recorder, metrics: Metrics) -> Outbox:
    return Outbox(sink, office.store, office.write, metrics, poll=0.02)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second of waiting takes 50 ms."""
    slow = errors.delay_after
    for place in (errors, module):
        monkeypatch.setattr(place, "delay_after", lambda *given: slow(*given) / 20)


def test_in_order_and_once(office: Office, sink: Recorder, box: Outbox, metrics: Metrics) -> None:
    async def test() -> None:
        numbers = [office.begin(name) for name in "abc"]
        office.end(numbers[0])
        async with Running(box):
            await until(lambda: len(sink.told) == 4)
            office.end(numbers[1])
            await until(lambda: len(sink.told) == 5)
            await asyncio.sleep(0.1)
        firing = [("a", "firing"), ("b", "firing"), ("c", "firing")]
        assert sink.told == [*firing, ("a", "resolved"), ("b", "resolved")]
        assert office.waiting() == {}
        assert metrics.registry.get_sample_value("tocsin_outbox_waiting", {"sink": "sink"}) == 0
        assert box.health.last_success is not None
        assert box.health.last_error is None
        labels = {"sink": "sink", "outcome": "delivered"}
        assert metrics.registry.get_sample_value("tocsin_deliveries_total", labels) == 5

    run(test)


@pytest.mark.slow
@pytest.mark.usefixtures("hasty")
def test_a_sink_that_is_down_is_not_hammered(office: Office, sink: Recorder, box: Outbox) -> None:
    async def test() -> None:
        sink.down = True
        for name in "abcdefgh":
            office.begin(name)
        async with Running(box):
            await until(lambda: len(sink.tries) == 5)
            moments = [moment for moment, _ in sink.tries]
            gaps = [later - earlier for earlier, later in pairwise(moments)]
            assert all(gap > 0.5 * 0.05 * 2**i for i, gap in enumerate(gaps)), gaps
            assert [name for _, name in sink.tries] == list("abcde")  # each time another one
            assert office.waiting() == {"sink": 8}
            assert box.health.last_error == "no"
            sink.down = False
            await until(lambda: len(sink.told) == 8)
        assert office.waiting() == {}

    run(test)


def test_what_waits_for_a_sink_that_rests_is_only_counted(
    office: Office, sink: Recorder, box: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    for name in ("outbox_due", "outbox_waiting"):
        plain = getattr(StoreReader, name)
        monkeypatch.setattr(
            StoreReader, name, lambda *given, name=name, plain=plain: (asked.append(name), plain(*given))[1]
        )

    async def test() -> None:
        monkeypatch.setattr(module, "delay_after", lambda _: 0.0)
        monkeypatch.setattr(errors, "delay_after", lambda *_: 1000.0)
        sink.down = True
        office.begin("a")
        async with Running(box):
            await until(lambda: asked.count("outbox_waiting") >= 10)
        assert len(sink.tries) == 1
        assert asked.count("outbox_due") <= 2

    run(test)


@pytest.mark.slow
def test_a_sink_that_refuses_everything_gets_a_rest(
    office: Office, sink: Recorder, box: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with an address that was revoked: each message by itself would be sent again and again."""
    names = {f"signal {number}" for number in range(30)}
    rest = [1000.0]
    monkeypatch.setattr(module, "delay_after", lambda _: 0.0)
    monkeypatch.setattr(errors, "delay_after", lambda *_: rest[0])

    async def test() -> None:
        sink.refuses = names
        for name in sorted(names):
            office.begin(name)
        async with Running(box):
            await until(lambda: len(sink.tries) >= 20)
            await asyncio.sleep(0.2)  # for what must not come
            assert len(sink.tries) == 20
            # After the rest it is asked with one message; with the first that it accepts, all is well again.
            sink.refuses = set()
            box._rest_until = 0.0
            await until(lambda: len(sink.told) == 30)

    run(test)


def steps(office: Office, question: Callable[[StoreReader], object]) -> int:
    """How many thousands of steps the database takes for a question."""
    taken = 0

    def count() -> int:
        nonlocal taken
        taken += 1
        return 0

    with office.store.reading() as reader:
        connection = reader.connection.connection.driver_connection
        assert isinstance(connection, sqlite3.Connection)
        connection.set_progress_handler(count, 1000)
        try:
            question(reader)
        finally:
            connection.set_progress_handler(None, 1000)
    return taken


@pytest.mark.slow
def test_many_messages_among_many_open_incidents_are_found_quickly(office: Office) -> None:
    signal = office.signal("a").id
    with office.store.transaction() as writer:
        for number in range(400):
            event = writer.add_event("alarm", number, [], 1)
            made = writer.put_incident(facts(signal, start=number))
            writer.change_incident(made, event=event)
            writer.tell_event("sink", event, made, 1, 1, None)
    assert len(office.due("sink")) == 400
    assert steps(office, lambda reader: reader.outbox_due("sink", time.time_ns(), 50)) < 60


@pytest.mark.slow
def test_a_message_reads_only_its_own_signal(office: Office) -> None:
    with office.store.transaction() as writer:
        for number in range(2000):
            writer.add_signal(f"other {number}", ["value"], {}, created=1)
    numbers = [office.begin(f"signal {number}") for number in range(20)]
    with office.store.transaction() as writer:
        for number in numbers:
            writer.change_incident(number, event=writer.add_event("alarm", number, [], 1))
    assert steps(office, lambda reader: incidents_in(reader, numbers)) < 100


@pytest.mark.slow
@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("how", ["poison", "refuses", "breaks"])
def test_one_that_cannot_be_told_holds_up_no_other(office: Office, sink: Recorder, box: Outbox, how: str) -> None:
    async def test() -> None:
        getattr(sink, how).add("a")
        number = office.begin("a")
        office.begin("b")
        office.end(number)
        async with Running(box):
            await until(lambda: ("b", "firing") in sink.told)
            office.begin("c")
            await until(lambda: ("c", "firing") in sink.told)
            await until(lambda: sum(name == "a" for _, name in sink.tries) >= 2)
            row = next(one for one in office.due("sink") if one.incident == number)
            assert (row.attempts >= 1, row.status) == (True, "firing")
            assert row.error in ("no", "KeyError: 'a mistake of ours'")
            getattr(sink, how).clear()
            await until(lambda: ("a", "resolved") in sink.told)
        assert sink.told.index(("a", "firing")) < sink.told.index(("a", "resolved"))

    run(test)


def test_snoozed_incidents_wait(office: Office, sink: Recorder, box: Outbox) -> None:
    async def test() -> None:
        snoozed, over, told = (office.begin(name) for name in ("snoozed", "over", "told"))
        later = time.time_ns() + 10**12
        office.change(snoozed, snoozed_until=later)
        office.change(over, snoozed_until=later)
        async with Running(box):
            await until(lambda: sink.told == [("told", "firing")])
            office.end(over)  # neither began nor ended for the sink
            office.change(told, snoozed_until=later)
            office.end(told)  # but this one did begin
            await until(lambda: ("told", "resolved") in sink.told)
            await until(lambda: office.waiting() == {"sink": 1})
            office.change(snoozed, snoozed_until=time.time_ns())
            await until(lambda: ("snoozed", "firing") in sink.told)
        assert sink.told == [("told", "firing"), ("told", "resolved"), ("snoozed", "firing")]

    run(test)


def test_a_store_that_fails_makes_no_doubles(office: Office, sink: Recorder, box: Outbox) -> None:
    async def test() -> None:
        office.begin("a")
        office.broken = True
        async with Running(box):
            await until(lambda: box.health.last_error)
            await asyncio.sleep(0.1)
            office.broken = False
            await until(lambda: office.waiting() == {})
        assert sink.told == [("a", "firing")]
        assert "the disk is full" in (box.health.last_error or "")

    run(test)


def test_what_was_not_marked_comes_again(office: Office, sink: Recorder, metrics: Metrics) -> None:
    """A crash between delivery and mark: at least once, never less."""

    async def test() -> None:
        office.begin("a")
        office.broken = True
        async with Running(Outbox(sink, office.store, office.write, metrics, poll=0.02)):
            await until(lambda: sink.told)
        office.broken = False
        async with Running(Outbox(sink, office.store, office.write, metrics, poll=0.02)):
            await until(lambda: office.waiting() == {})
        assert sink.told == [("a", "firing")] * 2

    run(test)


def test_incidents_of_a_removed_signal(office: Office, sink: Recorder, box: Outbox) -> None:
    async def test() -> None:
        office.begin("a")
        sink.down = True
        async with Running(box):
            await until(lambda: sink.tries)
            signal = office.signal("a")
            with office.store.transaction() as writer:
                writer.remove_signal(signal.id)
            await until(lambda: office.waiting() == {})
            await asyncio.sleep(0.05)

    run(test)


def test_delays_double_up_to_five_minutes() -> None:
    longest = [max(errors.delay_after(failures) for _ in range(200)) for failures in range(1, 15)]
    least = [min(errors.delay_after(failures) for _ in range(200)) for failures in range(1, 15)]
    for i in range(14):
        whole = min(300.0, 2.0**i)
        assert 0.5 * whole <= least[i] < 0.6 * whole
        assert 0.9 * whole < longest[i] <= whole
    assert errors.delay_after(10**6) <= 300
