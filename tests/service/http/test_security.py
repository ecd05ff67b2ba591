import asyncio
import time
from typing import Any

import httpx
import pytest

from tocsin_monitor.config import ServerSettings
from tocsin_monitor.errors import StoreError
from tocsin_monitor.http import auth, limits
from tocsin_monitor.http.gate import OriginCheck
from tocsin_monitor.http.limits import Buckets
from tocsin_monitor.tokens import ROLES, Role, hash_token, looks_like_token, make_token

from .conftest import HERE, Client, Make, error_of
from .fake import FakeMonitor

URL = "/api/v1"


def give_token(
    monitor: FakeMonitor, role: str = "admin", expires: int | None = None, patterns: tuple[str, ...] = ()
) -> str:
    token = make_token()
    with monitor.store.transaction() as writer:
        writer.add_token(f"{role}-{token[-4:]}", role, hash_token(token), time.time_ns(), expires, patterns)  # type: ignore[arg-type]
    return token


def test_tokens_are_long_random_and_kept_as_hashes() -> None:
    tokens = {make_token() for _ in range(100)}
    assert len(tokens) == 100
    assert all(looks_like_token(token) and len(token) == 50 for token in tokens)
    assert not any(
        looks_like_token(text) for text in ("", "tocsin_", "tocsin_" + "ä" * 43, "x" * 50, make_token() + "\n")
    )
    assert hash_token("tocsin_a") != "tocsin_a"


def test_a_browser_on_this_machine_may_do_everything_until_there_is_a_token(client: Client) -> None:
    assert client.get(f"{URL}/me").json() == {
        "name": "local",
        "role": "admin",
        "may": ["admin", "ingest", "operate", "read", "write"],
        "match": [],
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "header",
    ["Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Server", "X-Real-IP"],
)
def test_who_comes_through_a_proxy_needs_a_token(client: Client, monitor: FakeMonitor, header: str) -> None:
    assert client.get(f"{URL}/me", headers={header: "127.0.0.1"}).status_code == 401
    assert client.put(f"{URL}/signals/a", json={}, headers={header: ""}).status_code == 401
    client.headers = {"Authorization": f"Bearer {give_token(monitor)}"}
    client.app.state.keys.forget()
    assert client.get(f"{URL}/me", headers={header: "127.0.0.1"}).status_code == 200


@pytest.mark.parametrize(
    "server", [{"external_url": "https://monitor.example"}, {"allowed_hosts": ("monitor.example",)}]
)
def test_where_a_proxy_is_meant_to_be_a_token_is_needed(make: Make, server: dict[str, Any]) -> None:
    monitor = make(**server)
    assert Client(monitor).get(f"{URL}/signals").status_code == 401
    assert Client(monitor).get("/healthz").status_code == 200
    assert Client(monitor, give_token(monitor, "read")).get(f"{URL}/signals").status_code == 200


def test_to_revoke_the_last_token_opens_nothing(monitor: FakeMonitor) -> None:
    give_token(monitor)
    with monitor.store.transaction() as writer:
        (token,) = writer.tokens()
        writer.remove_token(token.name)
    response = Client(monitor).get(f"{URL}/signals")
    assert response.status_code == 401
    assert "tocsin token create" in error_of(response)["message"]


def test_beyond_loopback_nobody_comes_in_without_a_token(make: Make) -> None:
    client = Client(make(host="0.0.0.0"))
    for path in (f"{URL}/me", f"{URL}/openapi.json", "/metrics", f"{URL}/stream", "/nowhere", "/static"):
        response = client.get(path)
        assert response.status_code == 401
        assert response.headers["www-authenticate"].startswith("Bearer")
        error_of(response)
    for path in ("/", "/healthz", "/readyz", "/static/icon.svg"):
        assert client.get(path).status_code == 200


@pytest.mark.slow
def test_roles_allow_what_is_theirs(monitor: FakeMonitor) -> None:
    clients = {role: Client(monitor, give_token(monitor, role)) for role in ROLES}
    admin = clients["admin"]
    admin.put(f"{URL}/signals/a", json={})
    monitor.engine.open_incident("a")
    asked: list[tuple[str, str, dict[str, Any], str]] = [
        ("GET", "/signals", {}, "read"),
        ("GET", "/signals/a/-/history", {}, "read"),
        ("POST", "/observations", {"json": {"signal": "a", "value": 1}}, "ingest"),
        ("POST", "/incidents/1/acknowledge", {}, "operate"),
        ("DELETE", "/incidents/1/acknowledge", {}, "operate"),
        ("POST", "/incidents/1/snooze", {"json": {"seconds": 60}}, "operate"),
        ("DELETE", "/incidents/1/snooze", {}, "operate"),
        ("POST", "/incidents/1/label", {"json": {"label": "fault"}}, "operate"),
        ("GET", "/access-log", {}, "admin"),
        ("GET", "/incidents", {}, "read"),
        ("GET", "/status", {}, "read"),
        ("PUT", "/signals/a", {"json": {}}, "write"),
        ("POST", "/signals/a/-/reset", {}, "write"),
        ("PUT", "/signals/a/-/reference", {"json": {"start": 1767225600, "end": 1767225601}}, "write"),
        ("GET", "/signals/a/-/reference", {}, "read"),
        ("POST", "/maintenance", {"json": {"pattern": "*", "start": 1767225600, "end": 1767225601}}, "operate"),
        ("GET", "/signals/a/-/state", {}, "admin"),
        ("POST", "/sinks/test", {}, "admin"),
        ("GET", "/tokens", {}, "admin"),
        ("POST", "/tokens", {"json": {"name": "x", "role": "read"}}, "admin"),
        ("DELETE", "/tokens/x", {}, "admin"),
        ("DELETE", "/signals/a", {}, "admin"),
    ]
    for method, path, given, least in asked:
        for role, client in clients.items():
            response = client.ask(method, f"{URL}{path}", **given)
            if least in Role(role).includes:
                assert response.status_code < 300, (method, path, role, response.text)
            else:
                assert response.status_code == 403
                assert least in error_of(response)["message"]
    assert {role: client.get(f"{URL}/me").json()["role"] for role, client in clients.items()} == {
        role: role for role in ROLES
    }
    assert clients["operate"].get(f"{URL}/me").json()["may"] == ["operate", "read"]
    assert clients["ingest"].get(f"{URL}/signals").status_code == 403


@pytest.mark.slow
@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer ", "Basic dXNlcjpw", "Bearer tocsin_" + "a" * 43, "tocsin_" + "a" * 43, "Bearer ä"],
)
def test_what_is_no_token_of_ours_is_refused(monitor: FakeMonitor, header: str | None) -> None:
    give_token(monitor)
    headers = {} if header is None else {"Authorization": header.encode("latin-1")}
    assert Client(monitor).get(f"{URL}/me", headers=headers).status_code == 401


def test_tokens_end(monitor: FakeMonitor) -> None:
    give_token(monitor)
    assert Client(monitor, give_token(monitor, expires=time.time_ns() - 1)).get(f"{URL}/me").status_code == 401
    assert Client(monitor, give_token(monitor, expires=time.time_ns() + 10**12)).get(f"{URL}/me").status_code == 200


def test_tokens_are_made_and_removed(client: Client) -> None:
    refused = client.post(f"{URL}/tokens", json={"name": "gateway", "role": "write"})
    assert "the first token must have the role admin" in error_of(refused)["message"]
    made = client.post(f"{URL}/tokens", json={"name": "boss", "role": "admin"})
    assert made.status_code == 201
    assert client.get(f"{URL}/tokens").status_code == 401  # at once
    client.headers = {"Authorization": f"Bearer {made.json()['token']}"}
    token = client.post(f"{URL}/tokens", json={"name": "gateway", "role": "write", "expires": "2100-01-01"}).json()[
        "token"
    ]
    listed = client.get(f"{URL}/tokens")
    assert [one["name"] for one in listed.json()["tokens"]] == ["boss", "gateway"]
    assert token not in listed.text
    assert hash_token(token) not in listed.text
    assert client.post(f"{URL}/tokens", json={"name": "gateway", "role": "write"}).status_code == 422
    assert "revoked last" in error_of(client.delete(f"{URL}/tokens/boss"))["message"]
    assert client.delete(f"{URL}/tokens/gateway").status_code == 204
    assert client.get(f"{URL}/me", headers={"Authorization": f"Bearer {token}"}).status_code == 401
    assert client.delete(f"{URL}/tokens/nobody").status_code == 404
    assert client.delete(f"{URL}/tokens/boss").status_code == 204
    assert client.delete(f"{URL}/tokens/boss").status_code == 401


def test_tokens_of_another_process_count_soon(monitor: FakeMonitor, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(monitor)
    assert client.get(f"{URL}/me").status_code == 200
    give_token(monitor)
    assert client.get(f"{URL}/me").status_code == 200
    monkeypatch.setattr(auth, "REFRESH", -1.0)
    assert client.get(f"{URL}/me").status_code == 401


def test_while_the_store_is_away_known_tokens_count(monitor: FakeMonitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "REFRESH", -1.0)
    client, stranger = Client(monitor, give_token(monitor)), Client(monitor)
    assert client.get(f"{URL}/me").status_code == 200

    def away() -> None:
        raise StoreError("postgresql://user:password@host is away")

    monkeypatch.setattr(monitor.store, "reading", away)
    assert client.get(f"{URL}/me").status_code == 200
    refused = stranger.get(f"{URL}/me")
    assert refused.status_code == 503
    assert "password" not in refused.text
    assert stranger.get("/healthz").status_code == 200


@pytest.mark.parametrize(
    ("server", "host", "allowed"),
    [
        ({}, "localhost", True),
        ({}, "LOCALHOST:8710", True),
        ({}, "localhost.", True),
        ({}, "127.0.0.1:8710", True),
        ({}, "[::1]:8710", True),
        ({}, "evil.example", False),
        ({}, "localhost.evil.example", False),
        ({}, "localhost:8710@evil.example", False),
        ({}, "evil.example/localhost", False),
        ({}, "localhost:x", False),
        ({}, "192.168.0.5", False),
        ({}, "", False),
        ({}, "[::1", False),
        ({"allowed_hosts": ("monitor.example",)}, "monitor.example", True),
        ({"external_url": "https://monitor.example/"}, "monitor.example:443", True),
        ({"host": "0.0.0.0"}, "192.168.0.5:8710", True),
        ({"host": "0.0.0.0"}, "[fe80::1]:8710", True),
        ({"host": "0.0.0.0"}, "evil.example", False),
        ({"host": "plant7"}, "plant7:8710", True),
    ],
)
def test_only_our_own_names_are_answered_to(server: dict[str, Any], host: str, allowed: bool) -> None:
    assert OriginCheck(ServerSettings(**server)).host_allowed(host) is allowed


@pytest.mark.parametrize(
    ("origin", "scheme", "allowed"),
    [
        ("http://localhost:8710", "http", True),
        ("https://localhost:8710", "http", True),  # TLS ends at a proxy
        ("https://localhost:8710", "https", True),
        ("http://localhost:8710", "https", False),
        ("http://localhost", "http", False),
        ("http://localhost:3000", "http", False),
        ("http://evil.example", "http", False),
        ("null", "http", False),
        ("", "http", False),
        ("file://localhost:8710", "http", False),
        ("https://monitor.example", "http", True),
        ("http://monitor.example", "http", False),
    ],
)
def test_only_our_own_page_may_change_things(origin: str, scheme: str, allowed: bool) -> None:
    door = OriginCheck(ServerSettings(external_url="https://monitor.example"))
    assert door.origin_allowed(origin, "localhost:8710", scheme) is allowed


def test_host_and_origin_are_checked_for_every_request(client: Client) -> None:
    for path in ("/", "/healthz", f"{URL}/me"):
        response = client.get(path, headers={"Host": "evil.example"})
        assert (response.status_code, error_of(response)["field"]) == (403, "Host")
    response = client.put(f"{URL}/signals/a", json={}, headers={"Origin": "http://evil.example"})
    assert (response.status_code, error_of(response)["field"]) == (403, "Origin")
    assert client.put(f"{URL}/signals/a", json={}, headers={"Origin": "http://localhost:8710"}).status_code == 201
    assert client.get(f"{URL}/signals", headers={"Origin": "http://evil.example"}).status_code == 200


def test_every_reply_has_the_headers(client: Client, monitor: FakeMonitor) -> None:
    monitor.engine.refusal = RuntimeError()
    replies = [client.get(path) for path in ("/", "/healthz", f"{URL}/me", "/nowhere", "/static/icon.svg")]
    replies.append(client.post(f"{URL}/observations", json={"signal": "a", "value": 1}))
    assert [reply.status_code for reply in replies] == [200, 200, 200, 404, 200, 500]
    for reply in replies:
        policy = reply.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self';")
        assert "frame-ancestors 'none'" in policy
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in reply.headers
        assert len(reply.headers.get_list("cache-control")) == 1
    assert replies[2].headers["cache-control"] == "no-store"
    assert replies[0].headers["cache-control"] == "no-cache"


def test_requests_are_limited(make: Make) -> None:
    monitor = make(requests_per_second=0.5, burst=3)
    client = Client(monitor)
    assert [client.get("/").status_code for _ in range(4)] == [200, 200, 200, 429]
    response = client.get("/")
    assert 1 <= int(response.headers["retry-after"]) <= 2
    assert "too many requests" in error_of(response)["message"]
    assert b'tocsin_rejected_total{reason="rate"} 2.0' in monitor.metrics.text()


def test_probes_are_answered_whatever_else_comes_from_the_same_address(make: Make) -> None:
    monitor = make(requests_per_second=0.001, burst=5)
    give_token(monitor)
    client = Client(monitor, make_token())
    assert {client.get(f"{URL}/me").status_code for _ in range(20)} == {401, 429}
    assert client.get("/").status_code == 200  # others behind the same proxy
    client.headers = {}
    assert {client.get(f"{URL}/me").status_code for _ in range(20)} == {401, 429}
    assert {client.get(path).status_code for path in ("/healthz", "/readyz") for _ in range(20)} == {200}


def test_guessing_tokens_is_limited_and_does_not_harm_others(make: Make) -> None:
    monitor = make(requests_per_second=0.001, burst=40)
    known = give_token(monitor)
    client = Client(monitor, make_token())
    assert [client.get(f"{URL}/me").status_code for _ in range(4)] == [401, 401, 429, 429]
    client.headers = {"Authorization": f"Bearer {known}"}
    assert client.get(f"{URL}/me").status_code == 200


def test_a_bucket_fills_again_and_few_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    buckets = Buckets(rate=2.0, burst=4, clock=lambda: now[0])
    assert [buckets.take("a") for _ in range(5)] == [0, 0, 0, 0, 0.5]
    assert buckets.take("b") == 0
    now[0] = 0.5
    assert [buckets.take("a") for _ in range(2)] == [0, 0.5]
    now[0] = 1000
    assert [buckets.take("a") for _ in range(5)] == [0, 0, 0, 0, 0.5]
    monkeypatch.setattr(limits, "MOST_CLIENTS", 2)
    buckets.take("b")
    buckets.take("c")
    assert buckets.take("a") == 0  # forgotten, so that it begins anew


def test_bodies_are_limited_while_they_are_read(make: Make) -> None:
    monitor = make(max_body_bytes=1024)
    client = Client(monitor)
    kind = {"Content-Type": "application/json"}
    assert client.post(f"{URL}/observations", content=b" " * 1022 + b"[]", headers=kind).status_code == 200
    read = 0

    async def pieces() -> Any:
        nonlocal read
        for _ in range(1000):
            read += 1
            yield b" " * 100

    for content in (b" " * 1023 + b"[]", pieces()):
        response = client.post(f"{URL}/observations", content=content, headers=kind)
        assert response.status_code == 413
        assert "at most 1024 bytes" in error_of(response)["message"]
    assert client.put(f"{URL}/signals/a", content=b" " * 2000, headers=kind).status_code == 413
    assert monitor.engine.submitted == []


def test_a_body_that_does_not_come_on_is_given_up(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BODY_SECONDS", 0.05)

    async def never() -> Any:
        yield b"["
        await asyncio.sleep(5)
        yield b"]"

    async def drop_by_drop() -> Any:
        for _ in range(1000):
            yield b" "
            await asyncio.sleep(0.01)

    for content in (never(), drop_by_drop()):
        response = client.post(f"{URL}/observations", content=content, headers={"Content-Type": "application/json"})
        assert response.status_code == 408
        error_of(response)


def test_all_bodies_together_are_limited(make: Make) -> None:
    client = Client(make(max_body_bytes=1024, max_bodies_bytes=2000))
    kind = {"Content-Type": "application/json"}
    seen: list[int] = []

    async def asking() -> None:
        transport = httpx.ASGITransport(client.app)
        async with httpx.AsyncClient(transport=transport, base_url=HERE, headers=kind) as many:
            ready, go = asyncio.Event(), asyncio.Event()

            async def slow() -> Any:
                yield b" " * 1000
                ready.set()
                await go.wait()
                yield b"[]"

            first = asyncio.create_task(many.post(f"{URL}/observations", content=slow()))
            await ready.wait()
            second = await many.post(f"{URL}/observations", content=b" " * 1020 + b"[]")
            seen.append(second.status_code)
            assert second.headers["retry-after"] == "1"
            go.set()
            seen.append((await first).status_code)
            seen.append((await many.post(f"{URL}/observations", content=b" " * 1020 + b"[]")).status_code)

    asyncio.run(asking())
    assert seen == [503, 200, 200]


def test_only_observations_and_states_are_large(client: Client) -> None:
    large = b'{"unit": "bar"}' + b" " * 70_000
    kind = {"Content-Type": "application/json"}
    response = client.put(f"{URL}/signals/a", content=large, headers=kind)
    assert (response.status_code, error_of(response)["field"]) == (413, "body")
    assert client.post(f"{URL}/observations", content=b" " * 70_000 + b"[]", headers=kind).status_code == 200


def test_a_change_of_tokens_is_read_once_the_store_is_back(
    monitor: FakeMonitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auth, "PATIENCE", 0.05)
    known, later = give_token(monitor), make_token()
    client = Client(monitor, known)
    assert client.get(f"{URL}/me").status_code == 200
    keys = client.app.state.keys
    original = keys._read

    def failing() -> Any:
        raise StoreError("the store is away")

    with monitor.store.transaction() as writer:
        writer.add_token("later", "read", hash_token(later), time.time_ns())
    monkeypatch.setattr(keys, "_read", failing)
    keys.forget()
    client.headers = {"Authorization": f"Bearer {later}"}
    assert client.get(f"{URL}/me").status_code == 401
    monkeypatch.setattr(keys, "_read", original)
    end = time.monotonic() + 3  # less than after which tokens are read anyway
    while client.get(f"{URL}/me").status_code != 200:
        assert time.monotonic() < end


def test_a_new_token_counts_at_once_while_another_request_reads_them(monitor: FakeMonitor) -> None:
    known, later = give_token(monitor), make_token()
    app = Client(monitor).app
    keys = app.state.keys
    original = keys._read

    def slow() -> Any:
        time.sleep(0.2)
        return original()

    async def asking() -> list[int]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=HERE) as client:

            async def ask(token: str) -> int:
                return (await client.get(f"{URL}/me", headers={"Authorization": f"Bearer {token}"})).status_code

            await ask(known)
            with monitor.store.transaction() as writer:
                writer.add_token("later", "read", hash_token(later), time.time_ns())
            keys._read = slow
            keys.forget()
            first = asyncio.create_task(ask(known))
            await asyncio.sleep(0.05)  # it reads now
            return [await ask(later), await first]

    assert asyncio.run(asking()) == [200, 200]
