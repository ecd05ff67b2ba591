"""Pictures of incidents: drawn from the store, in time or not at all."""

import asyncio
import importlib.util
import io
import logging
import math
import time
from collections.abc import Iterator

import pytest

from tests.service.helpers import Running, run, until
from tests.service.sinks import channel as servers
from tests.service.sinks.channel import PNG, Channel
from tests.service.sinks.office import Office
from tests.service.sinks.test_channels import box as channel_box
from tests.service.sinks.test_mail import Post
from tests.service.sinks.test_mail import box as mail_box
from tocsin_monitor.metrics import Metrics
from tocsin_monitor.observations import Status, StoredVerdict
from tocsin_monitor.sinks import pictures as module
from tocsin_monitor.sinks.pictures import Pictures
from tocsin_monitor.store import ObservationRow

MINUTE = 60 * 10**9

pytestmark = pytest.mark.slow


def observed(office: Office, name: str = "plant/$pump$_1", count: int = 200) -> int:
    """A signal with a wave and a jump at its end, of which there is an incident."""
    signal = office.signal(name)
    first = time.time_ns() - count * MINUTE
    rows = []
    for number in range(count):
        wave, alarm = math.sin(number / 12), number >= count - 20
        value = math.nan if number == 50 else wave + 0.1 * math.sin(number * 7.7) + 3 * alarm
        judged = StoredVerdict(
            (value,), (wave,), (wave - 0.5,), (math.inf if number < 30 else wave + 0.5,), 0.5, 0.5, (0.5,),
            alarm=alarm, warm=True,
        )  # fmt: skip
        rows.append(ObservationRow(signal.id, first + number * MINUTE, Status.SCORED, judged))
    with office.store.transaction() as writer:
        writer.add_observations(rows)
    return office.begin(name, start=rows[-20].time, end=rows[-1].time, peak=rows[-20].time, severity=40.0)


@pytest.fixture
def post() -> Iterator[Post]:
    made = Post()
    yield made
    made.close()


def test_an_incident_is_drawn(office: Office) -> None:
    number = observed(office)
    pictures = Pictures(office.store)
    drawn = asyncio.run(pictures.draw(office.incident(number), office.signal("plant/$pump$_1")))
    assert drawn is not None
    assert drawn.startswith(PNG)
    from matplotlib.image import imread

    height, width, _ = imread(io.BytesIO(drawn)).shape
    assert (width, height) == (880, 352)


def test_when_there_are_many_messages_most_go_without(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_A_MINUTE", 1)
    number, signal = observed(office), office.signal("plant/$pump$_1")
    pictures = Pictures(office.store)

    def drawn() -> bool:
        return asyncio.run(pictures.draw(office.incident(number), signal)) is not None

    assert [drawn(), drawn()] == [True, False]
    pictures._drawn_at[0] -= 60
    assert drawn()


def test_what_takes_too_long_is_given_up(office: Office, caplog: pytest.LogCaptureFixture) -> None:
    number = observed(office)
    pictures = Pictures(office.store, patience=0.05)
    assert asyncio.run(pictures.draw(office.incident(number), office.signal("plant/$pump$_1"))) is None
    assert "not ready within 0.05 s" in caplog.text


def test_without_matplotlib_one_line_says_so(
    office: Office, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    number = observed(office)
    pictures = Pictures(office.store)
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            assert asyncio.run(pictures.draw(office.incident(number), office.signal("plant/$pump$_1"))) is None
    assert caplog.text.count("pip install 'tocsin[plot]'") == 1
    assert len(caplog.records) == 1


def test_a_failure_costs_the_picture_and_not_the_message(
    office: Office, post: Post, metrics: Metrics, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module.drawing, "__file__", "/nonexistent.py")

    async def test() -> None:
        observed(office)
        async with Running(mail_box(post, office, metrics, picture=True)):
            await until(lambda: post.mails)

    run(test)
    assert "no picture of incident 1: drawing failed" in caplog.text
    assert [part.get_content_type() for part in post.mails[0][1].walk()][-1] == "text/html"


def test_a_mail_has_the_picture_in_its_text(office: Office, post: Post, metrics: Metrics) -> None:
    async def test() -> None:
        observed(office)
        async with Running(mail_box(post, office, metrics, picture=True)):
            await until(lambda: post.mails)

    run(test)
    mail = post.mails[0][1]
    assert [part.get_content_type() for part in mail.walk()] == [
        "multipart/alternative", "text/plain", "multipart/related", "text/html", "image/png",
    ]  # fmt: skip
    *_, page, picture = mail.walk()
    assert picture["Content-ID"] == "<incident-1.png>"
    assert 'src="cid:incident-1.png"' in page.get_content()
    assert picture.get_content().startswith(PNG)


def test_ntfy_attaches_the_picture_or_sends_none(office: Office, metrics: Metrics) -> None:
    async def test() -> None:
        channel = Channel(servers.ntfy)
        number = observed(office)
        async with Running(channel_box("ntfy", channel, office, metrics, picture=True)):
            await until(lambda: channel.taken)
            channel.answers = [413]  # it takes no more attachments
            office.end(number)
            await until(lambda: len(channel.taken) == 2)
        first, second = channel.taken
        assert (first.method, first.path, first.query["priority"]) == ("PUT", "/plant-1", "5")
        assert first.query["title"] == "plant/$pump$_1: 2 above the forecast"
        assert second.method == "POST"
        assert second.json["title"] == "plant/$pump$_1: resolved, back to normal"
        channel.close()

    run(test)
