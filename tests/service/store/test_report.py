"""The numbers of a report, in each of the databases."""

from tests.service.store.helpers import add_signal, incident, tell
from tocsin_monitor.observations import Status, StoredVerdict
from tocsin_monitor.report import Period, gather
from tocsin_monitor.store import ObservationRow, Store


def test_what_was_judged_and_sent(store: Store) -> None:
    with store.transaction() as writer:
        add_signal(writer, "a")
        rows = []
        for time in range(1, 101):
            judged = StoredVerdict(
                (1.0,), (1.0,), (0.0,), (2.0,), 0.5, 0.5, (0.5,), alarm=time % 10 == 0, warm=time > 20
            )
            rows.append(ObservationRow(1, time, Status.LATE if time == 99 else Status.SCORED, judged))
        writer.add_observations(rows)
        writer.change_signal(1, settings={"alarm_rate": 0.01, "promise": "observations"})
        number = writer.put_incident(incident(1, 30, open=True))
        writer.tell_end(tell(writer, "mail", number, 31), 31)
        (sent,) = writer.outbox_due("mail", 40, 1)
        writer.mark_delivered([sent.id], 35)
        writer.skip_messages([sent.id], 36)  # that it has grown is not told, but that it began was
        (signal,) = gather(writer, writer.signals(), Period(11, 90)).signals
    assert (signal.judged, signal.messages, len(signal.incidents)) == (70, 1, 1)
    assert signal.audit is not None
    assert (signal.audit.alarms, signal.audit.unit) == (7, "alarms")
