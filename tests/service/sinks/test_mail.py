"""Mail with a real SMTP server: plain, with STARTTLS and with TLS."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from tests.service.helpers import Running, run, until
from tests.service.sinks.certificates import make_certificate
from tests.service.sinks.office import Office
from tests.service.sinks.post import PASSWORD, Post
from tocsin_monitor import errors
from tocsin_monitor.config import Settings
from tocsin_monitor.metrics import Metrics
from tocsin_monitor.sinks import make_sinks
from tocsin_monitor.sinks import outbox as module
from tocsin_monitor.sinks.outbox import Outbox
from tocsin_monitor.store import schema


@pytest.fixture
def post() -> Iterator[Post]:
    made = Post()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (errors, module):
        monkeypatch.setattr(place, "delay_after", lambda *_: 0.05)


def box(post: Post, office: Office, metrics: Metrics, **given: Any) -> Outbox:
    settings = {
        "name": "sink", "host": "127.0.0.1", "port": post.port, "security": "none", "picture": False,
        "sender": "Tocsin <tocsin@plant.example>", "recipients": ["a@plant.example", "Bé <b@plant.example>"], **given,
    }  # fmt: skip
    monitor = Settings(server={"external_url": "https://tocsin.example"}, sinks={"mail": [settings]})
    (made,) = make_sinks(monitor, office.store, office.write, metrics)
    made._poll = 0.02
    return made


def test_the_mails_of_an_incident_are_one_thread(post: Post, office: Office, metrics: Metrics) -> None:
    async def test() -> None:
        number = office.begin("pump <ü>\u2028", severity=40.0)
        async with Running(box(post, office, metrics)):
            await until(lambda: post.mails)
            office.end(number)
            await until(lambda: len(post.mails) == 2)
        (envelope, first), (_, second) = post.mails
        assert envelope.rcpt_tos == ["a@plant.example", "b@plant.example"]
        assert (first["From"], first["To"]) == (
            "Tocsin <tocsin@plant.example>", "a@plant.example, Bé <b@plant.example>",
        )  # fmt: skip
        assert first["Subject"] == "pump <ü> : 2 above the forecast"
        assert first["Importance"] == "high"
        assert first["Message-ID"].endswith("@plant.example>")
        assert len({one[name] for one in (first, second) for name in ("References", "In-Reply-To")}) == 1
        assert len({first["Message-ID"], second["Message-ID"], first["References"]}) == 3
        text, page = (first.get_body((kind,)) for kind in ("plain", "html"))
        assert text is not None
        assert page is not None
        assert text.get_content().startswith("1 alarm since ")
        assert "https://tocsin.example/#/incidents/1" in text.get_content()
        assert "pump &lt;ü&gt;" in page.get_content()
        assert "cid:" not in page.get_content()

    run(test)


def test_a_mail_that_says_something_new_under_the_same_title_is_no_copy(
    post: Post, office: Office, metrics: Metrics
) -> None:
    async def test() -> None:
        number = office.begin("pump")
        (row,) = office.due("sink")
        async with Running(box(post, office, metrics, title="{signal}: incident {id}")):
            await until(lambda: office.waiting() == {})
            office.change(number, alarms=7)
            with office.store.transaction() as writer:  # as if it had grown
                writer.connection.execute(
                    update(schema.outbox).where(schema.outbox.c.id == row.id).values(delivered=None)
                )
            await until(lambda: len(post.mails) == 2)
        (_, first), (_, second) = post.mails
        assert first["Subject"] == second["Subject"]
        assert first["Message-ID"] != second["Message-ID"]

    run(test)


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [False, True], ids=["starttls", "tls"])
def test_encrypted_and_with_a_password(at_once: bool, office: Office, metrics: Metrics, tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    post = Post((certificate, key), at_once=at_once)
    given = {"security": "tls" if at_once else "starttls", "ca_file": certificate, "username": "tocsin"}

    async def test() -> None:
        office.begin("pump")
        # The wrong password is about us: the sink gets a rest, and the message stays.
        wrong = box(post, office, metrics, **given, password="wr0ng-pa55word")
        async with Running(wrong):
            await until(lambda: wrong.health.last_error)
        assert "SMTPAuthenticationError: 535" in (wrong.health.last_error or "")
        assert "wr0ng" not in (wrong.health.last_error or "")
        # So does a certificate that nobody trusts.
        untrusting = box(post, office, metrics, **given | {"ca_file": None}, password=PASSWORD)
        async with Running(untrusting):
            await until(lambda: untrusting.health.last_error)
        assert "CERTIFICATE_VERIFY_FAILED" in (untrusting.health.last_error or "")
        assert post.mails == []
        async with Running(box(post, office, metrics, **given, password=PASSWORD)):
            await until(lambda: post.mails)

    try:
        run(test)
    finally:
        post.close()


def test_a_mail_that_is_sent_again_is_the_same_mail(post: Post, office: Office, metrics: Metrics) -> None:
    async def test() -> None:
        number = office.begin("pump")
        made = box(post, office, metrics)
        for _ in range(2):
            await made.sink.deliver(office.incident(number), office.signal("pump"), "firing")
        other = office.begin("pump", start=1)
        await made.sink.deliver(office.incident(other), office.signal("pump"), "firing")
        first, again, third = (mail for _, mail in post.mails)
        assert first["Message-ID"] == again["Message-ID"] != third["Message-ID"]
        assert first["References"] != third["References"]

    run(test)


@pytest.mark.slow
def test_what_the_server_refuses_does_not_hold_up_others(post: Post, office: Office, metrics: Metrics) -> None:
    async def test() -> None:
        post.hated = "pump"
        office.begin("pump")
        for name in ("valve", "tank"):
            office.begin(name)
        made = box(post, office, metrics)
        async with Running(made):
            await until(lambda: len(post.mails) == 2)
            await until(lambda: "554 we do not want that" in (made.health.last_error or ""))
            await until(lambda: office.waiting() == {"sink": 1})
            post.hated = ""
            await until(lambda: len(post.mails) == 3)

    run(test)


@pytest.mark.slow
def test_one_recipient_who_is_refused_keeps_the_mail_from_nobody_else(
    post: Post, office: Office, metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        post.unknown = {"a@plant.example": "550 no such user"}
        office.begin("pump")
        made = box(post, office, metrics)
        async with Running(made):
            await until(lambda: office.waiting() == {})
        assert post.mails[0][0].rcpt_tos == ["b@plant.example"]
        assert "a@plant.example is refused: 550 no such user" in caplog.text
        # If all are refused, and one of them only for now, it is tried again.
        post.unknown |= {"b@plant.example": "450 later"}
        office.begin("valve")
        async with Running(made):
            await until(lambda: "450 later" in (made.health.last_error or ""))
            post.unknown.clear()
            await until(lambda: len(post.mails) == 2)

    run(test)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"sender": "nobody"}, 'an address such as "plant@example.com"'),
        ({"sender": "a@b\r\nBcc: x@y"}, "an address such as"),
        ({"recipients": []}, "at least 1"),
        ({"username": "u"}, "username and password go together"),
        ({"username": "u", "password": "p", "security": "none"}, "would be sent in the clear"),
    ],
)
def test_settings_that_make_no_sense(given: dict[str, Any], says: str) -> None:
    settings = {"name": "m", "host": "h", "sender": "a@b.c", "recipients": ["d@e.f"], **given}
    with pytest.raises(ValueError, match=says.replace("(", r"\(")):
        Settings(sinks={"mail": [settings]})
