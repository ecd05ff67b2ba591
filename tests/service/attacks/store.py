"""What the store refuses."""

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
