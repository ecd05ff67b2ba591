"""Which messages are due."""

import pytest

from tests.service.store.helpers import add_signal, incident, tell
from tocsin_monitor.errors import UnknownError
from tocsin_monitor.store import Message, OutboxRow, Store, StoreWriter


@pytest.fixture
def numbers(store: Store) -> list[int]:
    """Two incidents that go on and one that is over."""
    with store.transaction() as writer:
        add_signal(writer, "a")
        return [
            writer.put_incident(incident(1, start, open=start < 3, closed=4 if start == 3 else None))
            for start in (1, 2, 3)
        ]


def due(writer: StoreWriter, sink: str, now: int, limit: int = 9) -> list[tuple[int, Message]]:
    return [(row.incident, row.status) for row in writer.outbox_due(sink, now, limit)]


def test_messages_wait_until_their_time_and_for_their_turn(store: Store, numbers: list[int]) -> None:
    one, two, three = numbers
    with store.transaction() as writer:
        event, *_ = [tell(writer, "mail", number, 10) for number in (one, two)]
        writer.tell_end(event, 20)
        writer.tell_end(tell(writer, "mail", three, 20), 20)
        tell(writer, "other", one, 20)
        assert due(writer, "mail", 9) == []
        assert due(writer, "mail", 10) == [(one, "firing"), (two, "firing")]
        assert due(writer, "mail", 20) == [(one, "firing"), (two, "firing"), (three, "firing")]
        assert due(writer, "mail", 20, limit=2) == [(one, "firing"), (two, "firing")]
        assert due(writer, "none", 20) == []

        first, *_ = writer.outbox_due("mail", 20, 9)
        assert first == OutboxRow(first.id, "mail", one, "firing", 10, 0, 10, None, None, event)
        writer.mark_failed(first.id, "refused", next_attempt=30)
        assert due(writer, "mail", 29) == [(two, "firing"), (three, "firing")]
        (*_, again) = writer.outbox_due("mail", 30, 9)  # after what was never tried
        assert again == OutboxRow(first.id, "mail", one, "firing", 10, 1, 30, None, "refused", event)
        assert writer.outbox_waiting() == {"mail": 5, "other": 1}
        assert writer.delivered_firing("mail") == []

        writer.mark_delivered([first.id], now=31)
        assert due(writer, "mail", 31) == [(two, "firing"), (one, "resolved"), (three, "firing")]
        assert writer.outbox_waiting() == {"mail": 4, "other": 1}
        assert writer.delivered_firing("mail") == [one]
        assert writer.delivered_firing("other") == []


def test_each_message_is_there_once(store: Store, numbers: list[int]) -> None:
    with store.transaction() as writer:
        tell(writer, "mail", numbers[0], 10)
        (row,) = writer.outbox_due("mail", 10, 9)
        writer.mark_delivered([row.id], now=11)
        tell(writer, "mail", numbers[0], 12)
        assert due(writer, "mail", 99) == []
        assert writer.outbox_waiting() == {}


def test_an_incident_that_is_over_is_not_told_again(store: Store, numbers: list[int]) -> None:
    with store.transaction() as writer:
        for number in numbers:
            tell(writer, "mail", number, 10)
        writer.mark_delivered([row.id for row in writer.outbox_due("mail", 10, 9)], now=11)
        assert writer.delivered_firing("mail") == numbers[:2]
        writer.mark_delivered([], now=12)
        with pytest.raises(UnknownError, match="outbox"):
            writer.mark_failed(99, "refused", 3)


def test_what_rules_hold_back_or_leave_out(store: Store, numbers: list[int]) -> None:
    one, two, three = numbers
    with store.transaction() as writer:
        for number in numbers:
            tell(writer, "mail", number, 10)
        first, second, third = (row.id for row in writer.outbox_due("mail", 10, 9))
        writer.hold_messages({first: 50})
        assert due(writer, "mail", 49) == [(two, "firing"), (three, "firing")]
        assert writer.outbox_waiting() == {"mail": 3}
        assert writer.outbox_waiting(49) == {"mail": 2}  # what is held back is not stuck
        assert writer.outbox_waiting(50) == {"mail": 3}
        # One that failed waits, whenever it is tried again.
        writer.mark_failed(third, "no", next_attempt=90)
        assert writer.outbox_waiting(49) == {"mail": 2}
        writer.mark_delivered([first], 60)
        writer.skip_messages([second], 60)
        writer.drop_messages("mail", three)
        assert writer.outbox_waiting() == {}
        # Only what was sent is repeated.
        assert writer.delivered_firing("mail") == [one]
