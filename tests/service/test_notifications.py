"""Rules and channels in a real monitor that is killed: nobody is told twice, and nobody is forgotten."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.service.engine.helpers import until
from tests.service.process import MonitorProcess
from tests.service.sinks import channel as servers
from tests.service.sinks.channel import Channel
from tests.service.sinks.test_channels import KEY
from tests.service.sinks.test_mail import Post

pytestmark = pytest.mark.slow


@pytest.fixture
def chat() -> Iterator[Channel]:
    made = Channel(servers.slack)
    yield made
    made.close()


@pytest.fixture
def pager() -> Iterator[Channel]:
    made = Channel(servers.pagerduty, 202)
    yield made
    made.close()


@pytest.fixture
def post() -> Iterator[Post]:
    made = Post()
    yield made
    made.close()


@pytest.mark.full
def test_escalation_in_a_monitor_that_is_killed(chat: Channel, pager: Channel, post: Post, tmp_path: Path) -> None:
    config = f"""
        [events]
        enabled = false
        [detector]
        forecaster = "last-value"
        views = ["error"]
        [[sinks.slack]]
        name = "chat"
        url = "{chat.url}/hook"
        title = "{{message}}: {{signal}}"
        [[sinks.mail]]
        name = "mail"
        host = "127.0.0.1"
        port = {post.port}
        security = "none"
        sender = "tocsin@plant.example"
        recipients = ["a@plant.example"]
        match = "seen"
        [[sinks.pagerduty]]
        name = "pager"
        url = "{pager.url}"
        routing_key = "{KEY}"
        after = "40s"
        """
    with MonitorProcess(tmp_path, config) as monitor:
        monitor.start()
        with httpx.Client(base_url=f"{monitor.address}/api/v1", timeout=60) as client:
            for name in ("unseen", "seen"):
                client.put(f"/signals/{name}", json={"silent_after": 0.2}).raise_for_status()
                client.post("/observations", json={"signal": name, "value": 1.0}).raise_for_status()
            until(lambda: len(chat.taken) == 2 and post.mails)
            (seen,) = client.get("/incidents", params={"signal": "seen"}).json()["incidents"]
            client.post(f"/incidents/{seen['id']}/acknowledge", json={}).raise_for_status()
            assert client.get("/status").json()["outbox"]["pager"] == 0
        assert pager.taken == []
        monitor.kill()
        monitor.start()
        until(lambda: pager.taken)
        with httpx.Client(base_url=f"{monitor.address}/api/v1", timeout=60) as client:
            client.post("/observations", json={"signal": "unseen", "value": 1.0}).raise_for_status()
            until(lambda: len(pager.taken) >= 2)
        monitor.stop()
    events = [(asked.json["event_action"], asked.json.get("payload", {}).get("source")) for asked in pager.taken]
    # A signal that sent once more falls silent again: that is another incident, and due later.
    assert events == [("trigger", "unseen"), ("resolve", None)]
    assert pager.refused == chat.refused == []
    assert "opened: unseen" in [asked.json["text"] for asked in chat.taken]
    assert post.mails[0][1]["Subject"] == "seen is silent"
