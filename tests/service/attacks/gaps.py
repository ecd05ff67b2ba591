"""Few observations that stand for very many."""

import time

from tests.service.attacks.ground import Ground
from tests.service.attacks.registry import attack


@attack()
def gaps_that_would_be_filled_for_minutes(ground: Ground) -> None:
    made = ground.ask("PUT", "/api/v1/signals/gaps", json={"detector": {"interval": "1s"}})
    assert made.status_code == 201, made.text
    start = time.time() - 60 * 10_000
    before = ground.cpu_seconds
    outcomes = ground.send(
        *({"signal": "gaps", "time": start + number * 10_000, "value": float(number % 5)} for number in range(51))
    )
    assert [outcome["status"] for outcome in outcomes] == ["scored"] * 51
    # It was 26 s.
    assert ground.cpu_seconds - before < 12, ground.cpu_seconds - before
    assert ground.sender.longest < 20, ground.sender.longest


@attack()
def zeros_that_nobody_sent(ground: Ground) -> None:
    """Where no data means zero, neither short intervals nor old times make the monitor store zeros without end."""
    for interval in (1e-9, 0.5, "1ms", None):
        given = {"no_data_is_zero": True, "detector": {"interval": interval}}
        assert ground.ask("PUT", "/api/v1/signals/short", json=given).status_code == 422
    given = {"no_data_is_zero": True, "detector": {"interval": "1s"}}
    for number in range(20):
        assert ground.ask("PUT", f"/api/v1/signals/zero/{number}", json=given).status_code == 201
    began = time.time()
    years = [
        {"signal": f"zero/{number}", "time": began - 86400 * 365 * (number + 1), "value": 1} for number in range(20)
    ]
    assert {outcome["status"] for outcome in ground.send(*years)} == {"scored"}

    def stored() -> int:
        history = ground.ask("GET", "/api/v1/signals/zero/19/-/history", params={"limit": 1000}).json()
        return len(history["times"])

    ground.until(lambda: stored() > 3)
    assert stored() <= time.time() - began + 3, stored()
    assert ground.sender.longest < 20, ground.sender.longest
