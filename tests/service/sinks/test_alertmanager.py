"""The Alertmanager sink with a real Alertmanager."""

import asyncio
import json
import time
import urllib.request
from collections import Counter
from typing import Any

import pytest

from tests.service.helpers import Alertmanager, Running, run, until
from tests.service.receiver import Receiver
from tests.service.sinks.office import NOTHING_SEEN, Office
from tocsin_monitor.config import Settings
from tocsin_monitor.config.sinks import AlertmanagerSettings as SinkSettings
from tocsin_monitor.metrics import Metrics
from tocsin_monitor.sinks.alertmanager import AlertmanagerSink
from tocsin_monitor.sinks.alerts import fingerprint
from tocsin_monitor.sinks.outbox import Outbox
from tocsin_monitor.sinks.testing import MARK

MONITOR = Settings(server={"external_url": "https://tocsin.example"})


def alerts(server: Alertmanager) -> list[dict[str, Any]]:
    with urllib.request.urlopen(f"{server.url}/api/v2/alerts") as answer:
        return sorted(json.load(answer), key=lambda alert: int(alert["labels"]["incident"]))


def box(server: Alertmanager, office: Office, metrics: Metrics, **given: Any) -> Outbox:
    settings = SinkSettings(**{"name": "sink", "url": server.url, "refresh": 0.4, **given})
    return Outbox(AlertmanagerSink(settings, MONITOR), office.store, office.write, metrics, poll=0.05)


def test_a_test_message_fires_and_expires(alertmanager: Alertmanager, office: Office, metrics: Metrics) -> None:
    """What ends at once, Alertmanager would tell nobody."""

    async def test() -> None:
        made = box(alertmanager, office, metrics)
        async with Running(made):
            await asyncio.sleep(0)  # it opens
            assert await made.test() is None
            await until(lambda: [one["labels"]["signal"] for one in alerts(alertmanager)] == [MARK])
            await until(lambda: not alerts(alertmanager))

    run(test)


@pytest.mark.slow
def test_fires_stays_and_resolves(alertmanager: Alertmanager, office: Office, metrics: Metrics) -> None:
    async def test() -> None:
        one, two = office.begin("pump/flow"), office.begin("valve", kind="silence", p=float("nan"), **NOTHING_SEEN)
        third = office.begin("pump/flow", start=5, severity=40.0)
        async with Running(box(alertmanager, office, metrics, labels={"team": "plant"})):
            await until(lambda: len(alerts(alertmanager)) == 3)
            await asyncio.sleep(2)  # beyond the end that the first message gave
            found = alerts(alertmanager)
            assert [alert["labels"]["alertname"] for alert in found] == [
                "TocsinIncident",
                "TocsinSilence",
                "TocsinIncident",
            ]
            labels = {
                "alertname": "TocsinIncident",
                "incident": str(one),
                "signal": "pump/flow",
                "severity": "info",
                "team": "plant",
            }
            assert found[0]["labels"] == labels
            assert found[0]["fingerprint"] == fingerprint(labels)
            assert found[0]["generatorURL"] == f"https://tocsin.example/#/incidents/{one}"
            assert found[2]["labels"]["severity"] == "critical"
            assert found[1]["annotations"]["summary"] == "valve is silent"
            assert not {"explanation", "view", "return_period"} & set(found[1]["annotations"])
            notes = found[0]["annotations"]
            assert notes["summary"] == "pump/flow: 2 above the forecast"
            assert (notes["explanation"], notes["view"]) == ("2 above the forecast", "error")
            assert notes["return_period"] == "150"
            assert "+3.5 bar from the forecast" in notes["description"]
            assert "How rare this is: about once in 150 observations." in notes["description"]
            for number in (one, two, third):
                office.end(number)
            await until(lambda: not alerts(alertmanager))
            await until(lambda: office.waiting() == {})

    run(test)


@pytest.mark.slow
def test_an_incident_that_becomes_critical_is_one_alert(
    alertmanager: Alertmanager, office: Office, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin_monitor.sinks.alertmanager.MISSED", 10_000)  # no alert expires during the test

    async def test() -> None:
        number = office.begin("pump")
        async with Running(box(alertmanager, office, metrics)):
            await until(lambda: alerts(alertmanager))
            office.change(number, severity=40.0)
            await until(lambda: [one["labels"]["severity"] for one in alerts(alertmanager)] == ["critical"])
            office.end(number)
            await until(lambda: not alerts(alertmanager))

    run(test)


@pytest.mark.slow
def test_alerts_end_by_themselves_when_the_monitor_is_gone(
    alertmanager: Alertmanager, office: Office, metrics: Metrics
) -> None:
    async def test() -> None:
        office.begin("pump")
        async with Running(box(alertmanager, office, metrics)):
            await until(lambda: alerts(alertmanager) and not office.waiting())
        await until(lambda: not alerts(alertmanager))
        async with Running(box(alertmanager, office, metrics)):
            await until(lambda: alerts(alertmanager))  # back, without any new message in the outbox

    run(test)


@pytest.mark.slow
def test_an_alertmanager_that_is_down(alertmanager: Alertmanager, office: Office, metrics: Metrics) -> None:
    async def test() -> None:
        await asyncio.to_thread(alertmanager.stop)
        office.begin("pump")
        made = box(alertmanager, office, metrics)
        async with Running(made):
            await until(lambda: made.health.last_error)
            said = f"the request to 127.0.0.1:{alertmanager.port} failed: ConnectError"
            assert said in (made.health.last_error or "")
            await asyncio.to_thread(alertmanager.start)
            began = time.monotonic()
            await until(lambda: alerts(alertmanager))
            assert time.monotonic() - began < 30

    run(test)


def told_of(receiver: Receiver) -> Counter[str]:
    """How often the receiver took an alert of each signal."""
    return Counter(alert["labels"]["signal"] for body in list(receiver.taken) for alert in body)


@pytest.mark.slow
@pytest.mark.parametrize("largest", [20_000, 2_000])
@pytest.mark.full
def test_one_refusal_holds_back_nothing_else_in_a_mass_outage(office: Office, metrics: Metrics, largest: int) -> None:
    async def test() -> None:
        receiver = Receiver(largest, hated=("hated",))
        names = [f"pump/{number}" for number in range(120)]
        for name in (*names[:60], "hated", *names[60:]):
            office.begin(name)
        with office.store.transaction() as writer:  # all of these were told before a restart
            writer.mark_delivered([row.id for row in writer.outbox_due("sink", time.time_ns(), 1000)], time.time_ns())
        settings = SinkSettings(name="sink", url=f"http://{receiver.place}", refresh=1.0)
        made = Outbox(AlertmanagerSink(settings, MONITOR), office.store, office.write, metrics, poll=0.05)
        async with Running(made):
            await until(lambda: min(told_of(receiver)[name] for name in names) >= 2)
            began = time.monotonic()
            office.begin("new")
            await until(lambda: told_of(receiver)["new"])
            assert time.monotonic() - began < 30
        assert max(len(body) for body in receiver.taken) <= 50
        assert told_of(receiver)["hated"] == 0
        receiver.close()

    run(test)


@pytest.mark.parametrize("labels", [{"incident": "1"}, {"a-b": "1"}, {"": "1"}, {"alertname": "x"}])
def test_labels_that_would_do_harm(labels: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="a label's name must be"):
        AlertmanagerSink(SinkSettings(name="sink", labels=labels), MONITOR)
