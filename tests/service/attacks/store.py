"""What the store refuses."""

import time
from concurrent.futures import ThreadPoolExecutor

import psycopg

from tests.service.attacks.ground import Ground
from tests.service.attacks.registry import attack


@attack(postgresql=True)
def a_row_that_the_database_refuses_for_good(ground: Ground) -> None:
    with psycopg.connect(ground.url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("ALTER TABLE observations ADD CHECK (value <> 666)")
    start = 1_700_000_000
    outcomes = ground.send(
        *({"signal": "odd", "time": start + number, "value": 666.0 if number == 3 else 1.0} for number in range(8))
    )
    assert [outcome["status"] for outcome in outcomes] == ["scored"] * 3 + ["refused"] + ["scored"] * 4
    (listed,) = ground.ask("GET", "/api/v1/refused").json()["refused"]
    assert (listed["signal"], listed["value"]) == ("odd", "[666.0]")


@attack(postgresql=True, short=False)
def a_database_that_hangs(ground: Ground) -> None:
    assert ground.database is not None
    with ground.database.hanging():
        ground.until(lambda: ground.ask("GET", "/readyz", timeout=15).status_code == 503, seconds=120)
        assert "waiting for the store" in ground.ask("GET", "/readyz").text
        for path in ("/healthz", "/metrics", "/api/v1/status", "/api/v1/signals"):
            began = time.monotonic()
            assert ground.ask("GET", path, timeout=15).status_code in (200, 503), path
            assert time.monotonic() - began < 8, path
    ground.until(lambda: ground.ask("GET", "/readyz").status_code == 200)
    ground.check_alive()
    with ground.sender.rests(), ground.database.hanging():
        began = time.monotonic()
        ground.monitor.stop()
        assert time.monotonic() - began < 60
    ground.monitor.start()


@attack(postgresql=True, short=False)
def a_lock_that_nobody_lets_go_of(ground: Ground) -> None:
    with psycopg.connect(ground.url.replace("+psycopg", "")) as connection:
        connection.execute("LOCK TABLE observations IN ACCESS EXCLUSIVE MODE")
        ground.until(lambda: ground.ask("GET", "/readyz", timeout=15).status_code == 503, seconds=120)
        assert ground.ask("GET", "/api/v1/status", timeout=15).status_code == 200
    ground.until(lambda: ground.ask("GET", "/readyz").status_code == 200)


@attack(short=False)
def sixty_readers_of_history_at_once(ground: Ground) -> None:
    start = time.time() - 10_000
    rows = [{"signal": "long", "time": start + number, "value": float(number % 9)} for number in range(10_000)]
    for first in range(0, len(rows), 2000):
        ground.send(*rows[first : first + 2000])
    ground.sender.longest = 0.0
    address = "/api/v1/signals/long/-/history?limit=10000"
    with ThreadPoolExecutor(60) as readers:
        replies = list(readers.map(lambda _: ground.ask("GET", address).status_code, range(60)))
    assert set(replies) <= {200, 429}
    assert replies.count(200) > 10
    assert ground.sender.longest < 20, ground.sender.longest  # it was a minute
