"""Coming in without a token."""

import httpx

from tests.service.attacks.ground import Ground
from tests.service.attacks.registry import attack

HOST = {"Host": "monitor.example.com"}


def bearer(token: str) -> dict[str, str]:
    """The header that sends a token."""
    return {"Authorization": f"Bearer {token}"}


@attack(config='[server]\nexternal_url = "https://monitor.example.com"\n', tokens=True)
def a_stranger_comes_through_the_proxy(ground: Ground) -> None:
    address = f"{ground.monitor.address}/api/v1"
    for headers in ({}, HOST, {**HOST, "X-Forwarded-For": "203.0.113.9"}):
        assert httpx.get(f"{address}/signals", headers=headers).status_code == 401
        assert httpx.put(f"{address}/signals/x", json={}, headers=headers).status_code == 401
        assert httpx.post(f"{address}/tokens", json={"name": "x", "role": "admin"}, headers=headers).status_code == 401


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
