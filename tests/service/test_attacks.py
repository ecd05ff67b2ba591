"""The attacks that are quick: a short form of `python -m tests.service.hostile`."""

from collections.abc import Iterator

import pytest

from tests.cases import full
from tests.service.attacks import ATTACKS
from tests.service.attacks.ground import Ground
from tests.service.hostile import carry_out
from tests.service.postgres import Postgres, find_programs

pytestmark = pytest.mark.slow

QUICK = [one for one in ATTACKS.values() if one.short]
#: Tried one after the other on the same monitor, which must hold after each: to start one is most of what most take.
TOGETHER = [one.name for one in QUICK if not (one.config or one.tokens or one.postgresql or one.files)]
#: Those of `make test` among them.
KEPT = ("garbage instead of http", "a stranger comes through the proxy", "gaps that would be filled for minutes")


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


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    with Ground(tmp_path_factory.mktemp("attacks")) as made:
        yield made


@pytest.mark.parametrize("name", [name if name in KEPT else full(name) for name in TOGETHER])
def test_the_monitor_holds(name: str, ground: Ground) -> None:
    before = ground.log_bytes
    ground.sender.longest = 0.0
    ATTACKS[name].run(ground)
    ground.check_alive()
    assert ground.log_bytes - before < 10**6


@pytest.mark.full
@pytest.mark.parametrize("name", [one.name for one in QUICK if one.name not in TOGETHER])
def test_a_monitor_of_its_own_holds(name: str, database: Postgres | None) -> None:
    attack = ATTACKS[name]
    if attack.postgresql and database is None:
        pytest.skip("PostgreSQL is not installed")
    outcome = carry_out(attack, database)
    if outcome.error is not None:
        raise outcome.error
    assert outcome.log_bytes < 10**6
