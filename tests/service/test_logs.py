import json
import logging
import sys
from pathlib import Path

import pytest

from tests.service.process import MonitorProcess
from tocsin_monitor.config import Settings, read_settings
from tocsin_monitor.config.fields import secrets_in
from tocsin_monitor.logs import JsonFormatter, PlainFormatter, RepeatLimit
from tocsin_monitor.tokens import make_token

SECRETS = """
[storage]
url = "postgresql://tocsin:hunter22@db.example.com/tocsin"
[[sources.mqtt]]
name = "plant"
topics = ["a"]
username = "tocsin"
password = 'a "quoted" word'
[[sinks.webhook]]
name = "chat"
url = "https://chat.example.com/hooks/T0123456789ABCDEF"
bearer_token = "bearer-of-news"
headers = { X-Key = "key-of-the-chat" }
"""
HIDDEN = ["hunter22", 'a "quoted" word', "T0123456789ABCDEF", "bearer-of-news", "key-of-the-chat"]


def test_one_place_of_the_program_cannot_flood_the_log() -> None:
    now = [0.0]
    spared = RepeatLimit(most=3, clock=lambda: now[0])

    def said(line: int, text: str) -> str | None:
        record = logging.LogRecord("tocsin", logging.WARNING, "here.py", line, "sink %s", (text,), None)
        return record.getMessage() if spared.filter(record) else None

    assert [said(1, str(number)) for number in range(5)] == ["sink 0", "sink 1", "sink 2", None, None]
    assert said(2, "other") == "sink other"
    now[0] = 61.0
    assert said(1, "5") == "sink 5 (and 2 more like it left out)"
    assert said(1, "6") == "sink 6"


def record(message: str, *arguments: object, **more: object) -> logging.LogRecord:
    made = logging.LogRecord("tocsin.sinks", logging.WARNING, "here.py", 1, message, arguments, None)
    vars(made).update(more)
    return made


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    file = tmp_path / "tocsin.toml"
    file.write_text(SECRETS)
    return read_settings(file, environment={}).settings


def test_a_line_of_json_has_what_was_said_and_what_was_given_with_it() -> None:
    line = JsonFormatter().format(record("sink %s\nfails", "chat", signal="pump/1", attempts=3))
    assert "\n" not in line
    said = json.loads(line)
    assert said.pop("time").endswith("Z")
    assert said == {
        "level": "warning", "logger": "tocsin.sinks", "message": "sink chat\nfails", "signal": "pump/1", "attempts": 3,
    }  # fmt: skip


def test_a_traceback_is_one_field() -> None:
    try:
        raise RuntimeError("no more hunter22")
    except RuntimeError:
        made = record("failed")
        made.exc_info = sys.exc_info()
    said = json.loads(JsonFormatter(["hunter22"]).format(made))
    assert said["exception"].startswith("Traceback")
    assert "hunter22" not in said["exception"]


@pytest.mark.parametrize("kind", [PlainFormatter, JsonFormatter])
def test_secrets_of_the_settings_and_tokens_never_get_into_the_log(
    settings: Settings, kind: type[PlainFormatter]
) -> None:
    formatter, token = kind(secrets_in(settings)), make_token()
    for secret in (*HIDDEN, token):
        line = formatter.format(record("it says %s", secret, given=f"with {secret}"))
        assert secret not in line
        assert json.dumps(secret)[1:-1] not in line
    line = formatter.format(record("the tocsin at https://me:word@db.example.com/hooks failed"))
    assert "tocsin at https://**********@db.example.com/hooks failed" in line


@pytest.mark.slow
def test_the_monitor_and_its_server_log_lines_of_json(tmp_path: Path) -> None:
    with MonitorProcess(tmp_path, 'log_format = "json"\nlog_level = "debug"\n') as monitor:
        monitor.start()
        monitor.stop()
        lines = [line for line in monitor.log.read_text().splitlines() if line.startswith("{")]
    said = [json.loads(line) for line in lines]
    assert {"tocsin.monitor", "uvicorn.error"} <= {one["logger"] for one in said}
    assert all({"time", "level", "logger", "message"} <= one.keys() for one in said)
