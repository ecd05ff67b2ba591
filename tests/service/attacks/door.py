"""Coming in without a token."""

import httpx

from tests.service.attacks.ground import Ground
from tests.service.attacks.registry import attack
from tests.service.process import MonitorProcess

HOST = {"Host": "monitor.example.com"}


def bearer(token: str) -> dict[str, str]:
    """The header that sends a token."""
    return {"Authorization": f"Bearer {token}"}


@attack()
def a_stranger_comes_through_the_proxy(ground: Ground) -> None:
    folder = ground.monitor.folder / "behind-a-proxy"
    folder.mkdir()
    with MonitorProcess(folder, '[server]\nexternal_url = "https://monitor.example.com"\n') as monitor:
        monitor.start()
        for headers in ({}, HOST, {**HOST, "X-Forwarded-For": "203.0.113.9"}):
            with httpx.Client(base_url=f"{monitor.address}/api/v1", headers=headers) as stranger:
                assert stranger.get("/signals").status_code == 401
                assert stranger.put("/signals/x", json={}).status_code == 401
                assert stranger.post("/tokens", json={"name": "x", "role": "admin"}).status_code == 401
        assert "tocsin token create admin --role admin" in monitor.log.read_text()


@attack()
def a_proxy_hands_on_what_others_ask(ground: Ground) -> None:
    address = f"{ground.monitor.address}/api/v1/signals"
    assert httpx.get(address).status_code == 200  # a browser on this machine
    for header in ("X-Forwarded-For", "Forwarded", "X-Real-IP", "Via"):
        assert httpx.get(address, headers={header: "203.0.113.9"}).status_code == 401


@attack(tokens=True)
def the_last_token_is_revoked(ground: Ground) -> None:
    with ground.sender.rests():
        ground.monitor.revoke_token("admin")
        address = f"{ground.monitor.address}/api/v1/signals"
        ground.until(lambda: httpx.get(address, headers=ground.headers).status_code == 401)
        assert httpx.get(address).status_code == 401
        ground.monitor.stop()
        ground.monitor.start()
        assert httpx.get(address).status_code == 401
        assert "tocsin token create admin --role admin" in ground.monitor.log.read_text()
        ground.headers.update(bearer(ground.monitor.make_token()))
        ground.until(lambda: httpx.get(address, headers=ground.headers).status_code == 200)


@attack()
def a_page_of_another_origin_has_the_browser_write(ground: Ground) -> None:
    line = "page value=1"
    for path in ("/api/v2/write", "/write", "/api/v1/write", "/v1/metrics", "/api/v1/observations"):
        for kind in ("", "text/plain", "text/plain;charset=UTF-8", "application/x-www-form-urlencoded"):
            simple = ground.ask("POST", path, content=line, headers={"Content-Type": kind} if kind else {})
            assert simple.status_code in (403, 415), (path, kind, simple.text)
    targets = [
        (method.upper(), path)
        for path, methods in ground.ask("GET", "/api/v1/openapi.json").json()["paths"].items()
        for method in methods
        if method not in ("get", "head")
    ]
    assert len(targets) > 30
    for method, path in targets:
        for site in ("cross-site", "same-site"):
            for kind in ("text/plain", "application/json", "application/octet-stream"):
                headers = {"Sec-Fetch-Site": site, "Content-Type": kind}
                reply = ground.ask(method, path.replace("{name}", "page"), content=line, headers=headers)
                assert reply.status_code == 403, (method, path, reply.text)
    assert ground.ask("GET", "/api/v1/signals/page").status_code == 404
    own = {"Sec-Fetch-Site": "same-origin", "Origin": ground.monitor.address, "Content-Type": "application/json"}
    assert (
        ground.ask("POST", "/api/v1/observations", json={"signal": "own", "value": 1}, headers=own).status_code == 200
    )
