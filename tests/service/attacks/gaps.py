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
