"""The webhook sink with a real server that fails at first."""

import logging
from collections.abc import Iterator
from typing import Any, get_args

import pytest

from tests.service.helpers import Running, run, until
from tests.service.receiver import Receiver
from tests.service.sinks.office import NOTHING_SEEN, Office
from tocsin_monitor import errors
from tocsin_monitor.config import Settings
from tocsin_monitor.config.sinks import WebhookSettings as SinkSettings
from tocsin_monitor.metrics import Metrics
from tocsin_monitor.sinks import outbox as module
from tocsin_monitor.sinks.alertmanager import WebhookSink
from tocsin_monitor.sinks.outbox import Outbox
from tocsin_monitor.store import Ended

MONITOR = Settings(server={"external_url": "https://tocsin.example"})


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (errors, module):
        monkeypatch.setattr(place, "delay_after", lambda *_: 0.05)


def box(receiver: Receiver, office: Office, metrics: Metrics, **given: Any) -> Outbox:
    settings = SinkSettings(**{"name": "sink", "url": f"http://{receiver.place}/hook", **given})
    return Outbox(WebhookSink(settings, MONITOR), office.store, office.write, metrics, poll=0.02)


def test_the_payload(receiver: Receiver, office: Office, metrics: Metrics) -> None:
    async def test() -> None:
        number = office.begin("pump/flow", start=1_700_000_000 * 10**9)
        async with Running(box(receiver, office, metrics)):
            await until(lambda: receiver.taken)
            office.change(number, severity=40.0)
            office.end(number)
            await until(lambda: len(receiver.taken) == 2)
        firing, resolved = receiver.taken
        assert set(firing) == {
            "version", "groupKey", "truncatedAlerts", "status", "receiver", "groupLabels", "commonLabels",
            "commonAnnotations", "externalURL", "alerts", "event",
        }  # fmt: skip
        assert (firing["version"], firing["status"], firing["receiver"]) == ("4", "firing", "sink")
        alert = firing["alerts"][0]
        assert set(alert) == {
            "status", "labels", "annotations", "startsAt", "endsAt", "generatorURL", "fingerprint",
        }  # fmt: skip
        assert alert["startsAt"] == "2023-11-14T22:13:20.000Z"
        assert alert["endsAt"] == "0001-01-01T00:00:00Z"
        assert alert["labels"]["signal"] == "pump/flow"
        assert alert["annotations"]["explanation"] == "2 above the forecast"
        assert alert["annotations"]["return_period"] == "150"
        over = resolved["alerts"][0]
        assert (resolved["status"], over["status"]) == ("resolved", "resolved")
        assert over["endsAt"] > "2026"
        # It became critical meanwhile, and is still the same.
        assert (alert["labels"]["severity"], over["labels"]["severity"]) == ("info", "critical")
        assert (over["annotations"]["ended"], over["annotations"]["summary"]) == (
            "returned", "pump/flow: resolved, back to normal",
        )  # fmt: skip
        assert over["annotations"]["description"].endswith("It is over: the signal is back to normal.")
        assert over["annotations"]["explanation"] == alert["annotations"]["explanation"]
        assert "ended" not in alert["annotations"]
        assert over["fingerprint"] == alert["fingerprint"]
        assert resolved["groupKey"] == firing["groupKey"]

    run(test)


@pytest.mark.slow
def test_why_it_is_over_is_told_with_the_end_and_not_with_the_beginning(
    receiver: Receiver, office: Office, metrics: Metrics
) -> None:
    reasons = [reason for reason in get_args(Ended) if reason != "imported"]  # those are never sent

    async def test() -> None:
        begun = [office.begin("pump", start=start) for start, _ in enumerate(reasons, 1)]
        silence = office.begin("pump", kind="silence", start=1, p=float("nan"), **NOTHING_SEEN)
        async with Running(box(receiver, office, metrics)):
            await until(lambda: office.waiting() == {})  # nobody hears of what was removed before they were told
            for number, ended in zip(begun, reasons, strict=True):
                office.end(number, ended)
            office.end(silence)
            await until(lambda: len(receiver.taken) == 2 * len(reasons) + 2)
        notes = [one["commonAnnotations"] for one in receiver.taken if one["status"] == "resolved"]
        assert [one["ended"] for one in notes] == [*reasons, "returned"]
        assert len({one["summary"] for one in notes}) == len({one["description"] for one in notes}) == len(notes)
        says_resolved = [one["ended"] for one in notes if "resolved" in one["summary"]]
        assert says_resolved == ["returned", "subsided", "returned"]
        assert "accepted as normal" in notes[reasons.index("accepted")]["description"]
        began = [one["commonAnnotations"] for one in receiver.taken if one["status"] == "firing"]
        assert {one["summary"] for one in began} == {"pump: 2 above the forecast", "pump is silent"}
        assert not any("ended" in one for one in began)

    run(test)


@pytest.mark.slow
def test_tried_until_it_is_taken(receiver: Receiver, office: Office, metrics: Metrics) -> None:
    async def test() -> None:
        receiver.answers = [500, 503, None, 429, 400, 302]
        office.begin("pump")
        made = box(receiver, office, metrics, timeout=1)
        async with Running(made):
            await until(lambda: office.waiting() == {})
        # The one that came too late had arrived: at least once, and known by its fingerprint.
        receiver.late.set()
        await until(lambda: len(receiver.taken) >= 2)
        assert len({one["alerts"][0]["fingerprint"] for one in receiver.taken}) == 1
        labels = {"sink": "sink", "outcome": "failed"}
        # On a busy machine another reply may be late too.
        assert metrics.registry.get_sample_value("tocsin_deliveries_total", labels) >= 6
        assert "HTTP 302" in (made.health.last_error or "")

    run(test)


@pytest.mark.slow
def test_secrets_are_sent_and_never_told(
    receiver: Receiver, office: Office, metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        receiver.answers = [500]
        office.begin("pump")
        given = {
            "url": f"http://user:pa55word@{receiver.place}/s3cret/path?key=k3y",
            "headers": {"X-Key": "h1dden"},
        }
        made = box(receiver, office, metrics, **given)
        async with Running(made):
            await until(lambda: receiver.taken)
        path, headers = receiver.asked[-1]
        assert path == "/s3cret/path?key=k3y"
        assert headers["X-Key"] == "h1dden"
        assert headers["Authorization"].startswith("Basic ")
        assert made.health.last_error == "HTTP 500: so be it"

    with caplog.at_level(logging.DEBUG):
        run(test)
    for secret in ("pa55word", "s3cret", "k3y", "h1dden"):
        assert secret not in caplog.text
