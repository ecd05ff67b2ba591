"""Requests that come more than once."""

from tests.service.attacks.ground import Ground
from tests.service.attacks.registry import attack


@attack()
def a_request_without_times_that_is_sent_again(ground: Ground) -> None:
    batch = [{"signal": "again", "value": float(number)} for number in range(5)]

    def send() -> list[str]:
        reply = ground.ask("POST", "/api/v1/observations", json=batch, headers={"Idempotency-Key": "one"})
        assert reply.status_code == 200, reply.text
        return [outcome["status"] for outcome in reply.json()["outcomes"]]

    assert send() == ["scored"] * 5
    ground.restart(kill=True)
    assert send() == ["duplicate"] * 5
    assert ground.ask("GET", "/api/v1/signals/again").json()["observations"] == 5
