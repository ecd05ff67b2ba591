"""Slack, Mattermost, Teams, PagerDuty and ntfy, with servers that check what they get."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from tests.service.helpers import Running, run, until
from tests.service.sinks import channel as servers
from tests.service.sinks.channel import Channel
from tests.service.sinks.office import NOTHING_SEEN, Office
from tocsin_monitor import errors
from tocsin_monitor.config import Settings
from tocsin_monitor.metrics import Metrics
from tocsin_monitor.sinks import make_sinks, notices
from tocsin_monitor.sinks import outbox as module
from tocsin_monitor.sinks.alerts import alert_of
from tocsin_monitor.sinks.outbox import Outbox

# Whatever a name holds must neither break a message nor mark it up.
NASTY = "plant/<!channel> *a* _b_ [c](d) & @all | `e` \\ {signal} ü"
KEY = "0123456789abcdef0123456789abcdef"
KINDS: dict[str, tuple[Callable[..., None], int, dict[str, Any]]] = {
    "slack": (servers.slack, 200, {}),
    "mattermost": (servers.mattermost, 200, {"channel": "plant", "username": "Tocsin"}),
    "teams": (servers.teams, 202, {}),
    "pagerduty": (servers.pagerduty, 202, {"routing_key": KEY, "refresh": 0.05}),
    "ntfy": (servers.ntfy, 200, {"topic": "plant-1", "token": "tk_s3cret", "tags": ["plant"], "picture": False}),
}


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (errors, module):
        monkeypatch.setattr(place, "delay_after", lambda *_: 0.05)


@contextmanager
def server_of(kind: str) -> Iterator[Channel]:
    check, status, _ = KINDS[kind]
    made = Channel(check, status)
    yield made
    made.close()


def box(kind: str, channel: Channel, office: Office, metrics: Metrics, **given: Any) -> Outbox:
    settings = {"name": "sink", "url": channel.url, **KINDS[kind][2], **given}
    monitor = Settings(server={"external_url": "https://tocsin.example"}, sinks={kind: [settings]})
    (made,) = make_sinks(monitor, office.store, office.write, metrics)
    made._poll = 0.02
    return made


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_message_has_the_documented_shape(kind: str, office: Office, metrics: Metrics) -> None:
    async def test() -> None:
        with server_of(kind) as channel:
            for number in range(3):
                office.end(office.begin(NASTY, start=number + 1, severity=2.0 + number), "accepted")
            office.begin("pump", kind="silence", start=1, p=float("nan"), **NOTHING_SEEN)
            office.begin("long", explanation="word " * 5000)
            async with Running(box(kind, channel, office, metrics)):
                await until(lambda: office.waiting() == {} or channel.refused)
            assert channel.refused == []
            assert len(channel.taken) == 8

    run(test)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_refused_message_does_not_hold_up_others(kind: str, office: Office, metrics: Metrics) -> None:
    async def test() -> None:
        with server_of(kind) as channel:
            channel.answers = [503, 429, 400]
            for name in "abc":
                office.begin(name)
            made = box(kind, channel, office, metrics)
            async with Running(made):
                await until(lambda: office.waiting() == {})
            assert len(channel.taken) == 3
            assert "HTTP 400" in (made.health.last_error or "")

    run(test)


def told(kind: str, office: Office, metrics: Metrics, **given: Any) -> list[Any]:
    """What a sink sends about a critical incident and its end."""
    taken: list[Any] = []

    async def test() -> None:
        with server_of(kind) as channel:
            office.end(office.begin("pump <1>", severity=40.0))
            async with Running(box(kind, channel, office, metrics, **given)):
                await until(lambda: len(channel.taken) == 2)
            taken.extend(channel.taken)

    run(test)
    return taken


def test_slack(office: Office, metrics: Metrics) -> None:
    firing, resolved = (asked.json for asked in told("slack", office, metrics))
    header, text, facts, link = firing["blocks"]
    assert header["text"]["text"] == "pump <1>: 2 above the forecast"
    assert firing["text"] == "pump &lt;1&gt;: 2 above the forecast"
    assert text["text"]["text"].startswith("1 alarm since ")
    assert facts["fields"][0]["text"] == "*Signal*\npump &lt;1&gt;"
    # Names are no channels and mention nobody.
    assert all(one["verbatim"] for one in (text["text"], *facts["fields"]))
    assert link["text"]["text"] == "<https://tocsin.example/#/incidents/1|Open the incident>"
    assert resolved["text"] == "pump &lt;1&gt;: resolved, back to normal"


def test_mattermost(office: Office, metrics: Metrics) -> None:
    firing, resolved = (asked.json for asked in told("mattermost", office, metrics))
    assert (firing["channel"], firing["username"]) == ("plant", "Tocsin")
    assert firing["attachments"][0]["title_link"] == "https://tocsin.example/#/incidents/1"
    assert firing["attachments"][0]["color"] != resolved["attachments"][0]["color"]
    assert {"short": True, "title": "Severity", "value": "40.0 (critical)"} in firing["attachments"][0]["fields"]


def test_teams(office: Office, metrics: Metrics) -> None:
    firing, resolved = (asked.json["attachments"][0]["content"] for asked in told("teams", office, metrics))
    assert firing["body"][0]["text"] == "pump <1>: 2 above the forecast"
    assert (firing["body"][0]["color"], resolved["body"][0]["color"]) == ("attention", "good")
    assert firing["actions"][0]["url"] == "https://tocsin.example/#/incidents/1"


def test_ntfy(office: Office, metrics: Metrics) -> None:
    first, second = told("ntfy", office, metrics)
    assert first.headers["Authorization"] == "Bearer tk_s3cret"
    assert (first.json["priority"], second.json["priority"]) == (5, 2)
    assert first.json["tags"] == ["rotating_light", "plant"]
    assert first.json["click"] == "https://tocsin.example/#/incidents/1"
    assert first.json["title"] == "pump <1>: 2 above the forecast"


def test_pagerduty_acknowledges_what_is_acknowledged_here(office: Office, metrics: Metrics) -> None:
    async def test() -> None:
        with server_of("pagerduty") as channel:

            def actions(number: int) -> list[str]:
                return [one.json["event_action"] for one in channel.taken if number in numbers[one.json["dedup_key"]]]

            seen, unseen = office.begin("pump", severity=40.0), office.begin("valve")
            made = box("pagerduty", channel, office, metrics)
            numbers: dict[str, list[int]] = {}
            async with Running(made):
                await until(lambda: len(channel.taken) == 2)
                for asked, number in zip(channel.taken, (seen, unseen), strict=True):
                    numbers[asked.json["dedup_key"]] = [number]
                office.change(seen, acknowledged=1, acknowledged_by="me")
                await until(lambda: "acknowledge" in actions(seen))
                office.end(seen)
                await until(lambda: "resolve" in actions(seen))
            assert actions(seen) == ["trigger", "acknowledge", "resolve"]
            assert actions(unseen) == ["trigger"]
            assert len(numbers) == 2
            trigger = channel.taken[0].json
            assert trigger["payload"]["severity"] == "critical"
            assert trigger["payload"]["custom_details"]["explanation"] == "2 above the forecast"
            assert trigger["links"][0]["href"] == f"https://tocsin.example/#/incidents/{seen}"

    run(test)


def test_the_key_of_pagerduty_is_never_shown(office: Office, metrics: Metrics) -> None:
    async def test() -> None:
        with server_of("pagerduty") as channel:
            office.begin("pump")
            made = box("pagerduty", channel, office, metrics, routing_key="too-short-s3cret")
            async with Running(made):
                await until(lambda: made.health.last_error)
            assert "routing_key" in (made.health.last_error or "")
            assert "s3cret" not in (made.health.last_error or "")

    run(test)


def test_texts_of_ones_own(office: Office, metrics: Metrics) -> None:
    given = {"title": "[{level}] {signal}", "text": "{message}: p = {p:.1e} {{see}} {note}"}
    firing, resolved = (asked.json for asked in told("ntfy", office, metrics, **given))
    assert (firing["title"], firing["message"]) == ("[critical] pump <1>", "opened: p = 5.0e-03 {see}")
    assert resolved["message"] == "ended: p = 5.0e-03 {see}"


@pytest.mark.parametrize(
    ("template", "says"),
    [
        ("{sevrity}", "title: {sevrity} is not a field of a message; did you mean {severity}? The fields are "),
        ("{nonsense}", "acknowledged_by, advice, alarms, "),
        ("{signal.name}", "{signal.name} is not a field"),
        ("{signal[0]}", "{signal[0]} is not a field"),
        ("{}", "{} is not a field"),
        ("{signal", "title: expected '}'"),
        ("{p:{signal}}", "a format must be plain"),
        ("{signal:.1f}", "Unknown format code 'f'"),
    ],
)
def test_a_template_with_a_mistake_is_refused_at_the_start(template: str, says: str, metrics: Metrics) -> None:
    sinks = {"slack": [{"name": "chat", "url": "https://example.com", "title": template}]}
    unused: Any = None
    with pytest.raises(ValueError, match=re.escape(says)) as refused:
        make_sinks(Settings(sinks=sinks), unused, unused, metrics)
    assert str(refused.value).startswith("sinks.slack[0]")


def test_features_that_cannot_be_told_apart_are_named() -> None:
    row = replace(notices._INCIDENT, contributions=dict.fromkeys("abcd", 2.0), suspects=tuple("abcd"))
    told = alert_of(row, notices._SIGNAL, "", "firing").annotations["description"]
    assert told.endswith("Main contributors: a, b, c. Cannot be told apart: a, b, c and 1 more.")
    clear = alert_of(replace(row, suspects=("a",)), notices._SIGNAL, "", "firing").annotations["description"]
    assert clear.endswith("Main contributors: a, b, c.")
