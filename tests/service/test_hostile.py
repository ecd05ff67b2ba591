"""A real monitor, and what those send it who mean harm: it refuses, goes on, and its log stays readable."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.service.process import MonitorProcess

pytestmark = pytest.mark.slow

CONFIG = """
[[templates]]
match = "page/*"
silent_after = "1s"
"""
NAMES = [
    "page/<img src=x onerror=alert(1)>",
    "page/\"><script>alert('x')</script>",
    "page/' onmouseover='alert(1)",
    "page/{{constructor.constructor('alert(1)')()}}",
    "page/javascript:alert(1)",
    "page/100%25 #hash?query&amp;=1",
    "page/\u05d0\u05d1\u05d2 \u0645\u0631\u062d\u0628\u0627",
    "page/\U0001f6a8 \U0001f468\U0001f3fd e\u0301",
    "page/" + "W" * 195,
    "page/__proto__",
]


@pytest.fixture(scope="module")
def monitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MonitorProcess]:
    with MonitorProcess(tmp_path_factory.mktemp("hostile"), CONFIG) as process:
        process.start()
        yield process
        assert httpx.get(f"{process.address}/readyz").status_code == 200
        process.stop()
        said = process.log.read_text()
        assert "Traceback" not in said, said[said.index("Traceback") - 300 :][:6000]
        assert said.rstrip().endswith("stopped")


def send(monitor: MonitorProcess, *observations: dict[str, Any]) -> list[dict[str, Any]]:
    reply = httpx.post(f"{monitor.address}/api/v1/observations", json=observations, timeout=30)
    assert reply.status_code == 200, reply.text
    outcomes: list[dict[str, Any]] = reply.json()["outcomes"]
    return outcomes


def talk(monitor: MonitorProcess, request: bytes, *, complete: bool = True) -> bytes:
    """Send bytes as they are, and read until the monitor has said all; nothing if it just hung up."""
    with socket.create_connection(("127.0.0.1", monitor.port), timeout=10) as connection:
        try:
            connection.sendall(request)
            if not complete:
                with suppress(OSError):  # it may have hung up already
                    connection.shutdown(socket.SHUT_WR)  # the monitor need not wait for the rest
            return b"".join(iter(lambda: connection.recv(65536), b""))
        except (ConnectionResetError, BrokenPipeError):
            return b""


def ask(monitor: MonitorProcess, target: str, headers: str = "") -> tuple[int, bytes]:
    """The status and the body of the reply to a target that no client would send like this."""
    host = f"Host: 127.0.0.1:{monitor.port}\r\n" if "Host:" not in headers else ""
    answer = talk(monitor, f"GET {target} HTTP/1.1\r\n{host}{headers}Connection: close\r\n\r\n".encode())
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


@pytest.mark.parametrize(
    "target",
    [
        "/../../../../../../etc/passwd",
        "/static/../../../../../../../etc/passwd",
        "/static/%2e%2e/%2e%2e/monitor.py",
        "/static/..%2f..%2fmonitor.py",
        "/static/..%5c..%5cmonitor.py",
        "/static/%252e%252e/monitor.py",
        "/static//etc/passwd",
        "/static/%00",
        "/static/style.css%00.html",
        "//etc/passwd",
        "/api/v1//signals",
        "/api/v1/signals/%2e%2e%2ftokens",
        "/api/v1/signals/%00",
        "/api/v1/signals/%ff",
        "/api/v1/signals/%0d%0aSet-Cookie:%20a=b",
        "/api/v1/signals/" + "a" * 20_000,
        "/api/v1/incidents/" + "9" * 400,
        "/api/v1/incidents?since=" + "9" * 400,
        "/api/v1/incidents?limit=NaN",
        "http://evil.example/api/v1/tokens/x",
    ],
)
def test_addresses_lead_nowhere_else(monitor: MonitorProcess, target: str) -> None:
    status, body = ask(monitor, target)
    assert status in (403, 404, 405, 422)
    assert json.loads(body)["error"]["message"]
    assert b"root:" not in body
    assert b"import " not in body


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS to a port without
        b"\x00" * 200,
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\r\n",
        b"POST /api/v1/observations HTTP/1.1\r\nHost: HOST\r\nContent-Length: -5\r\n\r\n",
        b"POST /api/v1/observations HTTP/1.1\r\nHost: HOST\r\nContent-Length: 5\r\nContent-Length: 50\r\n\r\n12345",
        b"POST /api/v1/observations HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
        b"POST /api/v1/observations HTTP/1.1\r\nHost: HOST\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: HOST\r\nX: " + b"a" * 200_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: HOST\r\nHost: evil.example\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_what_is_no_proper_request_is_turned_away(monitor: MonitorProcess, request_bytes: bytes) -> None:
    answer = talk(monitor, request_bytes.replace(b"HOST", f"127.0.0.1:{monitor.port}".encode()), complete=False)
    assert not answer or 400 <= int(answer.split()[1]) < 500
    assert httpx.get(f"{monitor.address}/healthz").status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "127.0.0.1@evil.example", "2130706433"])
def test_other_names_get_nothing(monitor: MonitorProcess, host: str) -> None:
    assert ask(monitor, "/api/v1/signals", f"Host: {host}\r\n")[0] == 403
    assert ask(monitor, "/", f"Host: {host}\r\n")[0] == 403


@pytest.mark.parametrize("body", ["[" * 200_000, '{"signal":' * 200_000, '{"signal": "deep", "value": ' + "[" * 5000])
def test_deep_bodies_are_refused(monitor: MonitorProcess, body: str) -> None:
    headers = {"Content-Type": "application/json"}
    for path in ("observations", "maintenance", "tokens"):
        reply = httpx.post(f"{monitor.address}/api/v1/{path}", content=body, headers=headers)
        assert reply.status_code in (413, 422)


def test_the_largest_numbers_do_not_spoil_a_signal(monitor: MonitorProcess) -> None:
    start = time.time_ns() - 3600 * 10**9
    values = [1.0, 2.0] * 20 + [1.7e308, -1.7e308, 5e-324, None] + [1.0, 2.0] * 40
    outcomes = send(
        monitor,
        *({"signal": "large", "time": start + i * 10**9, "value": value} for i, value in enumerate(values)),
    )
    assert {outcome["status"] for outcome in outcomes} == {"scored"}
    assert outcomes[-1]["forecast"] is not None
    assert 0.0 <= outcomes[-1]["forecast"] <= 3.0
    details = httpx.get(f"{monitor.address}/api/v1/signals/large/-/details")
    assert details.status_code == 200
    history = httpx.get(f"{monitor.address}/api/v1/signals/large/-/history").json()
    assert history["value"] == [values]


def test_a_gap_of_centuries_is_not_filled_step_by_step(monitor: MonitorProcess) -> None:
    made = httpx.put(f"{monitor.address}/api/v1/signals/old", json={"detector": {"interval": "1s"}})
    assert made.status_code == 201
    send(monitor, {"signal": "old", "time": "1700-01-01", "value": 1.0})
    (outcome,) = send(monitor, {"signal": "old", "time": time.time(), "value": 1.0})
    assert outcome["status"] == "scored"
    # The first and the last, and no more between them than a gap counts as.
    assert httpx.get(f"{monitor.address}/api/v1/signals/old").json()["observations"] <= 1002


def test_states_that_are_none_are_refused(monitor: MonitorProcess) -> None:
    send(monitor, {"signal": "stateful", "value": 1.0})
    address = f"{monitor.address}/api/v1/signals/stateful/-/state"
    headers = {"Content-Type": "application/octet-stream"}
    good = httpx.get(address).content
    pickled = b"\x80\x04\x95\x1a\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x8c\x06system\x93\x8c\x04true\x85R."
    middle = len(good) // 2
    flipped = good[:middle] + bytes([good[middle] ^ 1]) + good[middle + 1 :]
    for state in (b"", b"junk", pickled, good[:middle], flipped):
        reply = httpx.put(address, content=state, headers=headers)
        assert reply.status_code == 422, state[:20]
    assert httpx.put(address, content=good, headers=headers).is_success
    (outcome,) = send(monitor, {"signal": "stateful", "value": 1.0})
    assert outcome["status"] == "scored"


@pytest.mark.full
def test_tokens_that_do_not_count(tmp_path: Path) -> None:
    with MonitorProcess(tmp_path) as monitor:
        monitor.start()
        tokens = f"{monitor.address}/api/v1/tokens"
        secrets: dict[str, str] = {}
        for name, role in (("boss", "admin"), ("eye", "read"), ("brief", "read")):
            body = {"name": name, "role": role, **({"expires": time.time() + 3} if name == "brief" else {})}
            reply = httpx.post(tokens, json=body, headers=bearer(secrets.get("boss", "")))
            assert reply.status_code == 201, reply.text
            secrets[name] = reply.json()["token"]

        def me(token: str) -> int:
            return httpx.get(f"{monitor.address}/api/v1/me", headers=bearer(token)).status_code

        assert me(secrets["eye"]) == 200
        assert httpx.post(tokens, json={"name": "x", "role": "read"}, headers=bearer(secrets["eye"])).status_code == 403
        assert httpx.delete(f"{tokens}/eye", headers=bearer(secrets["boss"])).status_code == 204
        while me(secrets["brief"]) == 200:
            time.sleep(0.1)
        spoilt = secrets["boss"][:-1] + ("A" if secrets["boss"][-1] != "A" else "B")
        wrong = [secrets["eye"], secrets["brief"], spoilt, secrets["boss"].upper(), "tocsin_", "null"]
        assert [me(token) for token in wrong] == [401] * len(wrong)
        refusal = httpx.get(f"{monitor.address}/api/v1/me", headers=bearer(secrets["eye"])).json()["error"]["message"]
        assert "revoked or expired" in refusal
        assert httpx.get(f"{monitor.address}/metrics").status_code == 401
        assert httpx.get(f"{monitor.address}/api/v1/me?token={secrets['boss']}").status_code == 401
        assert me(secrets["boss"]) == 200
        monitor.stop()
        said = monitor.log.read_text()
        assert not any(secret in said for secret in secrets.values())
        assert "Traceback" not in said, said[said.index("Traceback") - 300 :][:6000]


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


@pytest.mark.full
def test_hostile_names_are_shown_as_they_are(monitor: MonitorProcess, browser: Browser) -> None:
    outcomes = send(monitor, *({"signal": name, "value": number} for number, name in enumerate(NAMES)))
    assert [outcome["status"] for outcome in outcomes] == ["scored"] * len(NAMES)
    complaints: list[str] = []
    page = browser.new_page()
    page.set_default_timeout(60_000)
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: (complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.goto(monitor.address)
    page.fill("input[type=search]", "page/")
    names = page.locator(".windowed .name")
    expect(names).to_have_count(len(NAMES))
    assert sorted(names.all_text_contents()) == sorted(NAMES)
    for name in NAMES:
        page.goto(f"{monitor.address}/#/")
        page.locator(".windowed .name", has_text=name).click()
        expect(page.locator("h1")).to_have_text(name)
        page.wait_for_selector(".charts canvas")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
    page.goto(f"{monitor.address}/#/incidents")  # all of them are silent by now, in one event
    event = page.locator(".card[data-event]", has_text="page/").first
    event.wait_for()
    page.goto(f"{monitor.address}/#/events/{event.get_attribute('data-event')}")
    for name in NAMES:
        expect(page.locator("main li, main td, main a").filter(has_text=name).first).to_be_visible()
    assert page.locator("img, main script, iframe").count() == 0
    page.close()
    assert complaints == []
