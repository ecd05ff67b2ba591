"""The attacks that are quick, each on a fresh monitor: a short form of `python -m tests.service.hostile`."""

from collections.abc import Iterator

import pytest

from tests.service.attacks import ATTACKS
from tests.service.hostile import carry_out
from tests.service.postgres import Postgres, find_programs

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def database() -> Iterator[Postgres | None]:
    """A real PostgreSQL where one is installed."""
    programs = find_programs()
    if programs is None:
        yield None
        return
    made = Postgres(programs)
    try:
        made.start()
        yield made
    finally:
        made.remove()


@pytest.mark.parametrize("name", [one.name for one in ATTACKS.values() if one.short])
def test_the_monitor_holds(name: str, database: Postgres | None) -> None:
    attack = ATTACKS[name]
    if attack.postgresql and database is None:
        pytest.skip("PostgreSQL is not installed")
    outcome = carry_out(attack, database)
    if outcome.error is not None:
        raise outcome.error
    assert outcome.log_bytes < 10**6
