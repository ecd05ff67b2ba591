"""Test messages over HTTP."""

from tests.service.sinks.test_outbox import Recorder
from tocsin_monitor.sinks.outbox import Outbox
from tocsin_monitor.sinks.testing import MARK

from .conftest import Client, error_of
from .fake import FakeMonitor

URL = "/api/v1/sinks/test"


def add_sink(monitor: FakeMonitor, name: str, *, down: bool = False) -> Recorder:
    sink = Recorder()
    sink.name, sink.down = name, down
    monitor.sinks.append(Outbox(sink, monitor.store, monitor.engine.write, monitor.metrics))
    return sink


def test_each_sink_gets_a_test_message_or_one_of_them(client: Client, monitor: FakeMonitor) -> None:
    monitor.sinks.clear()
    assert client.post(URL).json() == {"sinks": []}
    pager, mail = add_sink(monitor, "pager"), add_sink(monitor, "plant mail", down=True)
    found = client.post(URL).json()["sinks"]
    assert found == [
        {"name": "pager", "delivered": True, "error": None},
        {"name": "plant mail", "delivered": False, "error": "no"},
    ]
    assert pager.told == [(MARK, "firing"), (MARK, "resolved")]
    mail.down = False
    assert [one["delivered"] for one in client.post(URL, json={"name": "plant mail"}).json()["sinks"]] == [True]
    assert len(pager.told) == len(mail.told) == 2
    health = {one["name"]: one for one in client.get("/api/v1/status").json()["sinks"]}
    assert health["plant mail"]["last_success"] > health["plant mail"]["last_error_time"]
    assert client.get("/api/v1/access-log").json()["access_log"][0]["details"] == '{"name":"plant mail"}'


def test_a_sink_that_is_not_there_is_named_with_those_that_are(client: Client, monitor: FakeMonitor) -> None:
    monitor.sinks.clear()
    add_sink(monitor, "pager")
    refused = client.post(URL, json={"name": "paper"})
    assert refused.status_code == 404
    assert error_of(refused)["message"] == "there is no sink 'paper'; the sinks are: pager"
    assert client.post(URL, json={"sink": "pager"}).status_code == 422
    monitor.engine.ready = False
    assert client.post(URL).status_code == 503
