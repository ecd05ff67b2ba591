"""Times that are wrong."""

import time

from tests.service.attacks.ground import Ground
from tests.service.attacks.registry import attack


@attack(config='[engine]\nfuture_tolerance = "1h"\n')
def a_clock_that_was_once_ahead(ground: Ground) -> None:
    ground.send({"signal": "ahead", "time": time.time() + 3000, "value": 1.0})
    assert ground.ask("GET", "/api/v1/status").json()["ahead"] == ["ahead"]
    (late,) = ground.send({"signal": "ahead", "time": time.time(), "value": 2.0})
    assert late["status"] == "late"
    mended = ground.ask("POST", "/api/v1/signals/ahead/-/clock", json={})
    assert mended.status_code == 200, mended.text
    (scored,) = ground.send({"signal": "ahead", "time": time.time(), "value": 3.0})
    assert scored["status"] == "scored"
    (listed,) = ground.ask("GET", "/api/v1/refused").json()["refused"]
    assert (listed["signal"], listed["value"]) == ("ahead", "[1.0]")
    assert ground.ask("GET", "/api/v1/status").json()["ahead"] == []
