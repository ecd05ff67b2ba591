"""Settings that would take more memory than there is."""

from tests.service.attacks.ground import Ground
from tests.service.attacks.registry import attack

HUGE = {
    "features": [f"f{number}" for number in range(16)],
    "detector": {"forecaster": "seasonal-naive", "forecaster_options": {"search": 1048576}},
}


@attack()
def one_request_asks_for_more_memory_than_there_is(ground: Ground) -> None:
    reply = ground.ask("PUT", "/api/v1/signals/huge", json=HUGE)
    assert reply.status_code == 422, reply.text
    assert "memory" in reply.json()["error"]["message"]
    ground.restart()
    assert ground.ask("GET", "/api/v1/signals/huge").status_code == 404
    ground.measure()
    assert ground.memory < 2**30, ground.memory
