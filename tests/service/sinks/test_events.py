"""What sinks tell of an event: one message that grows, with one identity, until all of it is over."""

import json
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.service.engine.helpers import SECOND
from tests.service.helpers import Alertmanager, Running, run, until
from tests.service.receiver import Receiver
from tests.service.sinks.office import NOTHING_SEEN, Office, facts
from tests.service.sinks.test_outbox import Busy, Recorder
from tocsin_monitor.as_json import time_text
from tocsin_monitor.config import EventSettings, Settings
from tocsin_monitor.config.sinks import AlertmanagerSettings, SlackSettings, WebhookSettings
from tocsin_monitor.engine.events import Events
from tocsin_monitor.metrics import Metrics
from tocsin_monitor.sinks import outbox as rules_module
from tocsin_monitor.sinks.alertmanager import AlertmanagerSink, WebhookSink
from tocsin_monitor.sinks.alerts import alert_of, told_as
from tocsin_monitor.sinks.notices import Notices
from tocsin_monitor.sinks.outbox import Outbox, incidents_in
from tocsin_monitor.store import OutboxRow

MONITOR = Settings(server={"external_url": "https://tocsin.example"})
START = 1_700_000_000 * SECOND


@pytest.fixture
def plant(office: Office) -> Office:
    """Incidents that begin together are one event."""
    office.make_events(hold=0, update_every=0.2)
    return office


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


def test_what_grew_and_was_over_while_a_message_was_on_its_way(plant: Office, metrics: Metrics) -> None:
    """That it grew is not told after its end."""
    sink = Busy()

    async def test() -> None:
        first = plant.begin("plant/line-3/a", start=START)
        async with Running(Outbox(sink, plant.store, plant.write, metrics, poll=0.02, update_every=0.2)):
            await until(lambda: sink.tries)
            second = plant.begin("plant/line-3/b", start=START + 5 * SECOND)
            plant.end(first)
            plant.end(second)
            sink.go_on.set()
            await until(lambda: plant.waiting() == {})
        assert sink.told == [("plant/line-3/a", "firing"), ("plant/line-3/a", "resolved")]

    run(test)


def test_an_event_that_goes_on_after_its_end_was_told_begins_and_ends_again(office: Office) -> None:
    """The engine was slow: by its time others could still join, when the sink had been told of both already."""
    events = Events(EventSettings(hold=10), [WebhookSettings(name="sink", url="http://127.0.0.1:1")])

    def note(name: str, now: int, *, open: bool = True) -> None:  # noqa: A002
        signal = office.signal(name)
        made = facts(signal.id, start=START, opened=now, open=open, closed=None if open else now)
        with office.store.transaction() as writer:
            events.note(writer, signal, writer.put_incident(made), made, now)

    def told(now: int) -> list[str]:
        found = []
        while rows := office_due(office, now):
            found += [row.status for row in rows]
            with office.store.transaction() as writer:
                writer.mark_delivered([row.id for row in rows], now)
        return found

    note("plant/line-3/a", START)
    note("plant/line-3/a", START + SECOND, open=False)
    assert told(START + 11 * SECOND) == ["firing", "resolved"]
    note("plant/line-3/b", START + 9 * SECOND)
    assert told(START + 12 * SECOND) == ["firing"]
    note("plant/line-3/b", START + 20 * SECOND, open=False)
    assert told(START + 20 * SECOND) == ["resolved"]


def test_a_text_for_people_names_the_members_and_the_strongest(plant: Office) -> None:
    numbers = [plant.begin(f"plant/line-3/{at}", start=START + at * SECOND, severity=3.0 + at / 8) for at in range(12)]
    with plant.store.reading() as reader:
        incident, signal = incidents_in(reader, [numbers[0]])[numbers[0]]
    sink = SlackSettings(name="sink", url="https://chat.example")
    notice = Notices(sink, MONITOR).write(incident, signal, "firing")
    names = ", ".join(f"plant/line-3/{at}" for at in range(10))
    assert notice.facts["Members"] == f"{names} and 2 more"
    assert notice.facts["Severity"] == "4.4 (warning)"  # alone it would be info
    silent = plant.begin("elsewhere", kind="silence", severity=float("nan"), start=START)
    with plant.store.reading() as reader:
        incident, signal = incidents_in(reader, [silent])[silent]
    assert Notices(sink, MONITOR).write(incident, signal, "firing").facts["Severity"] == "warning"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reasons", "told", "summary"),
    [
        (("returned", "returned"), "ended", "plant/line-3: resolved, all 2 incidents ended"),
        (("returned", "subsided"), "ended", "plant/line-3: resolved, all 2 incidents ended"),
        (("accepted", "accepted"), "accepted", "plant/line-3: all 2 incidents ended (accepted)"),
        (("accepted", "returned"), "ended", "plant/line-3: all 2 incidents ended, for different reasons"),
    ],
)
def test_why_an_event_ended(plant: Office, reasons: tuple[str, str], told: str, summary: str) -> None:
    """What only its first incident says is not said of all."""
    numbers = [plant.begin(f"plant/line-3/{name}", start=START) for name in "ab"]
    for number, reason in zip(numbers, reasons, strict=True):
        plant.end(number, reason)
    with plant.store.reading() as reader:
        incident, signal = incidents_in(reader, numbers)[numbers[0]]
    assert told_as(incident, "resolved") == told
    assert alert_of(incident, signal, "", "resolved").annotations["summary"] == summary


def test_messages_say_what_recurs_and_what_to_do(plant: Office) -> None:
    told = []
    for at in range(4):
        number = plant.begin(
            "pump", start=START + 86_400 * at * SECOND, alike="error · value · above", advice="Mark a reference."
        )
        with plant.store.reading() as reader:
            incident, signal = incidents_in(reader, [number])[number]
        told.append(alert_of(incident, signal, "", "firing").annotations["description"])
    since = time_text(START)
    assert f"It is the 3rd like this since {since}." in told[2]
    assert f"It is the 4th like this since {since}, one in 24 h." in told[3]
    assert "Mark a reference." in told[3]


def office_due(office: Office, now: int) -> list[OutboxRow]:
    with office.store.reading() as reader:
        return reader.outbox_due("sink", now, 10)


def test_one_message_grows_and_ends(receiver: Receiver, plant: Office, metrics: Metrics) -> None:
    sink = WebhookSink(WebhookSettings(name="sink", url=f"http://{receiver.place}"), MONITOR)

    async def test() -> None:
        first = plant.begin("plant/line-3/a", start=START)
        async with Running(Outbox(sink, plant.store, plant.write, metrics, poll=0.02, update_every=0.2)):
            await until(lambda: len(receiver.taken) == 1)
            second = plant.begin("plant/line-3/b", start=START + 5 * SECOND, severity=40.0)
            await until(lambda: len(receiver.taken) == 2)
            plant.end(first)
            third = plant.begin("plant/line-3/c", start=START + 9 * SECOND)
            await until(lambda: len(receiver.taken) == 3)
            plant.end(third)
            plant.end(second)
            await until(lambda: len(receiver.taken) == 4)
        alone, grown, *_, over = receiver.taken
        assert [one["status"] for one in receiver.taken] == ["firing", "firing", "firing", "resolved"]
        assert len({one["groupKey"] for one in receiver.taken}) == 1
        assert len({one["alerts"][0]["fingerprint"] for one in receiver.taken}) == 1
        assert {one["commonLabels"]["signal"] for one in receiver.taken} == {"plant/line-3/a"}

        # By itself it is what it was without events, and says so beside it.
        assert alone["commonAnnotations"]["summary"] == "plant/line-3/a: 2 above the forecast"
        assert alone["alerts"][0]["generatorURL"] == f"https://tocsin.example/#/incidents/{first}"
        number = alone["event"]["id"]
        member = {
            "incident": first, "signal": "plant/line-3/a", "start": "2023-11-14T22:13:20.000Z", "severity": 2.3,
            "open": True, "link": f"https://tocsin.example/#/incidents/{first}",
        }  # fmt: skip
        assert alone["event"] == {
            "id": number, "title": "plant/line-3/a: 2 above the forecast", "level": "info", "count": 1,
            "signals": 1, "open_count": 1, "first": member, "strongest": member, "members": [member],
            "link": f"https://tocsin.example/#/events/{number}",
        }  # fmt: skip

        assert grown["commonAnnotations"]["summary"] == "plant/line-3: 2 incidents on 2 signals"
        assert grown["commonLabels"]["severity"] == "critical"  # the strongest is
        assert grown["alerts"][0]["generatorURL"] == f"https://tocsin.example/#/events/{number}"
        event = grown["event"]
        assert (event["first"]["incident"], event["strongest"]["incident"]) == (first, second)
        assert [one["signal"] for one in event["members"]] == ["plant/line-3/a", "plant/line-3/b"]

        assert over["commonAnnotations"]["summary"] == "plant/line-3: resolved, all 3 incidents ended"
        assert (over["event"]["count"], over["event"]["open_count"]) == (3, 0)

    run(test)


@pytest.mark.slow
def test_a_large_event_is_told_in_a_few_words(receiver: Receiver, plant: Office, metrics: Metrics) -> None:
    sink = WebhookSink(WebhookSettings(name="sink", url=f"http://{receiver.place}"), MONITOR)

    async def test() -> None:
        for number in range(200):
            plant.begin(f"plant/line-3/{number:03}", start=START + number, kind="silence", severity=float("nan"))
        async with Running(Outbox(sink, plant.store, plant.write, metrics, poll=0.02, update_every=0.2)):
            await until(lambda: receiver.taken)
        message = receiver.taken[0]
        assert message["event"]["count"] == 200
        assert len(message["event"]["members"]) == 10
        assert message["commonAnnotations"]["summary"] == "plant/line-3: 200 signals silent"
        assert len(json.dumps(message)) < 6000

    run(test)


@pytest.mark.slow
def test_alertmanager_keeps_the_alert_until_all_of_the_event_is_over(
    alertmanager: Alertmanager, plant: Office, metrics: Metrics
) -> None:
    """Also after the incident is over with which the event began."""
    settings = AlertmanagerSettings(name="sink", url=alertmanager.url, refresh=0.4)

    def alerts() -> list[dict[str, Any]]:
        with urllib.request.urlopen(f"{alertmanager.url}/api/v2/alerts") as answer:
            return [alert for alert in json.load(answer) if alert["status"]["state"] == "active"]

    async def test() -> None:
        first, second = plant.begin("plant/line-3/a", start=START), plant.begin("plant/line-3/b", start=START + SECOND)
        sink = AlertmanagerSink(settings, MONITOR)
        async with Running(Outbox(sink, plant.store, plant.write, metrics, poll=0.05, update_every=0.2)):
            (alert,) = await until(alerts)
            assert alert["labels"]["incident"] == str(first)
            notes = alert["annotations"]
            assert (notes["incidents"], notes["signals"]) == ("2", "2")
            plant.end(first)
            began = alert["updatedAt"]
            # It is repeated all the same, beyond the end that the first message gave.
            await until(lambda: alerts()[0]["updatedAt"] > began)
            third = plant.begin("plant/line-3/c", start=START + 2 * SECOND)
            await until(lambda: alerts()[0]["annotations"]["incidents"] == "3")
            (alert,) = alerts()
            assert alert["labels"]["incident"] == str(first)
            plant.end(second)
            plant.end(third)
            await until(lambda: not alerts())

    run(test)


def test_what_was_over_long_before_it_became_known_is_not_sent(
    office: Office, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backlog of last week: it is stored, and sent only as far as it goes on now."""
    monkeypatch.setattr(rules_module, "_LOOK_AGAIN", 10**7)
    sink, day, now = Recorder(), 86400 * SECOND, time.time_ns()
    box = Outbox(sink, office.store, office.write, metrics, poll=0.02, max_age=86400)

    async def test() -> None:
        over = office.begin("over", start=now - 7 * day, end=now - 7 * day)
        lasting = office.begin("lasting", start=now - 7 * day, end=now - 7 * day)
        office.end(over)
        office.begin("late", start=now - 3 * day, end=now - day + 60 * SECOND)
        office.begin("silent", kind="silence", start=now - 7 * day, **NOTHING_SEEN)
        async with Running(box):
            await until(lambda: len(sink.told) == 2 and len(office.due("sink")) == 1)
            assert sorted(sink.told) == [("late", "firing"), ("silent", "firing")]
            # Its observations come up to now.
            office.change(lasting, end=now)
            await until(lambda: len(sink.told) == 3)
            office.end(lasting)
            await until(lambda: len(sink.told) == 4)
        assert sink.told[2:] == [("lasting", "firing"), ("lasting", "resolved")]
        assert office.due("sink") == []
        assert office.incident(over).ended == "returned"

    run(test)
