"""Test messages: by the real delivery of every kind of sink, and without a trace in the store."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.service.helpers import Running, free_port, run, until
from tests.service.receiver import Receiver
from tests.service.sinks.office import Office
from tests.service.sinks.post import Post
from tests.service.sinks.test_outbox import Busy, Recorder
from tocsin_monitor.config import Settings
from tocsin_monitor.config.sinks import BUILT_IN
from tocsin_monitor.metrics import Metrics
from tocsin_monitor.sinks import make_sinks
from tocsin_monitor.sinks import outbox as module
from tocsin_monitor.sinks.outbox import Outbox
from tocsin_monitor.sinks.testing import MARK

MAIL = {"host": "127.0.0.1", "security": "none", "sender": "t@plant.example", "recipients": ["a@plant.example"]}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


@pytest.fixture
def post() -> Iterator[Post]:
    made = Post()
    yield made
    made.close()


def boxes(office: Office, metrics: Metrics, **sinks: list[dict[str, Any]]) -> list[Outbox]:
    server = {"external_url": "https://tocsin.example"}
    return make_sinks(Settings(server=server, sinks=sinks), office.store, office.write, metrics)


def test_every_kind_that_posts_says_that_it_is_a_test(receiver: Receiver, office: Office, metrics: Metrics) -> None:
    """Whatever a title and a text say: PagerDuty, webhooks and a plugin's sinks are told of the end, too."""
    url = f"http://{receiver.place}/hook"
    more: dict[str, dict[str, Any]] = {
        "pagerduty": {"routing_key": "key"},
        "ntfy": {"topic": "plant", "picture": False},
    }
    ended = {"webhook", "pagerduty"}
    kinds = set(BUILT_IN) - {"mail", "mqtt"}
    title = {kind: {"title": "{signal}: p = {p}", "text": "{level}"} for kind in kinds - {"webhook", "alertmanager"}}

    async def test() -> None:
        given = {kind: [{"name": kind, "url": url, **more.get(kind, {}), **title.get(kind, {})}] for kind in kinds}
        for box in boxes(office, metrics, **given):
            await box.sink.open()
            receiver.taken.clear()
            assert await box.test() is None
            assert len(receiver.taken) == (2 if box.name in ended else 1), box.name
            assert MARK in json.dumps(receiver.taken[0]), box.name
            assert "https://tocsin.example/#/status" in json.dumps(receiver.taken[0]), box.name
            await box.sink.close()
            assert box.health.last_success is not None

    run(test)
    assert len(kinds) == 7


def test_each_sink_says_whether_it_was_told(receiver: Receiver, post: Post, office: Office, metrics: Metrics) -> None:
    """Its rules, which would hold any other message back, do not count."""
    never = {"match": "nothing", "min_severity": 9, "messages": ["ended"], "hours": "00:00-00:01"}
    nowhere = f"http://127.0.0.1:{free_port()}"

    async def test() -> None:
        made = boxes(
            office, metrics,
            mail=[{"name": "mail", "port": post.port, **MAIL, **never}],
            webhook=[{"name": "hook", "url": f"http://{receiver.place}", **never}, {"name": "gone", "url": nowhere}],
        )  # fmt: skip
        async with Running(*made):
            await asyncio.sleep(0)  # they open
            told = {box.name: await box.test() for box in made}
        assert told.pop("gone").startswith(f"the request to {nowhere.removeprefix('http://')} failed: ConnectError")
        assert told == {"mail": None, "hook": None}
        ((envelope, mail),) = post.mails
        assert envelope.rcpt_tos == ["a@plant.example"]
        assert mail["Subject"] == f"{MARK}: nothing is wrong"
        text = mail.get_body(("plain",))
        assert text is not None
        assert text.get_content().splitlines()[0] == f"{MARK}: nothing is wrong."
        statuses = [one["status"] for one in receiver.taken]
        assert statuses == ["firing", "resolved"]
        assert len({one["groupKey"] for one in receiver.taken}) == 1
        receiver.answers = [500]
        hook = next(box for box in made if box.name == "hook")
        await hook.sink.open()
        assert await hook.test() == "HTTP 500: so be it"
        await hook.sink.close()
        labels = {"sink": "hook", "outcome": "failed"}
        assert metrics.registry.get_sample_value("tocsin_deliveries_total", labels) == 1
        assert hook.health.last_error == "HTTP 500: so be it"

    run(test)
    with office.store.reading() as reader:
        assert reader.incidents(limit=9) == []
        assert reader.outbox_waiting() == {}


def test_a_sink_that_works_again_is_told_at_once_what_waited(office: Office, metrics: Metrics) -> None:
    async def test() -> None:
        sink = Recorder()
        box = Outbox(sink, office.store, office.write, metrics, poll=0.02)
        sink.down = True
        office.begin("pump")
        async with Running(box):
            await until(lambda: sink.tries)
            assert await box.test() == "no"
            sink.down = False
            box._rest_until += 300
            assert await box.test() is None
            office.begin("fan")
            await until(lambda: ("fan", "firing") in sink.told)
        assert sink.told[:2] == [(MARK, "firing"), (MARK, "resolved")]

    run(test)


def test_a_sink_that_hangs_or_is_broken_is_said_to_be(
    office: Office, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        monkeypatch.setattr(module, "TEST_PATIENCE", 0.05)
        assert await Outbox(Busy(), office.store, office.write, metrics).test() == "no reply within 0.05 s"
        broken = Recorder()
        broken.breaks = {MARK}
        assert await Outbox(broken, office.store, office.write, metrics).test() == "KeyError: 'a mistake of ours'"

    run(test)
