"""A few of the kills that `python -m tests.service.crashes` does by the dozen."""

import pytest

from tests.service.crashes import Findings, trial
from tests.service.postgres import Postgres, find_programs

SIGNALS = 6
# A signal is warm after some six hundred observations, and something happens every four hundred.
LEAST = 1300
pytestmark = pytest.mark.slow


def check(found: Findings) -> None:
    assert found.observations >= LEAST * SIGNALS
    assert found.incidents > 0
    assert (found.lost, found.doubled, found.different) == (0, 0, 0)


@pytest.mark.full
def test_killed_monitors_lose_double_and_change_nothing() -> None:
    check(trial(kills=4, signals=SIGNALS, seed=11, database=None, least=LEAST))


@pytest.mark.full
def test_a_monitor_on_standby_takes_over_and_loses_doubles_and_changes_nothing() -> None:
    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed")
    database = Postgres(programs, durable=True)
    try:
        database.start()
        found = trial(kills=4, signals=SIGNALS, seed=13, database=database, least=LEAST, standby=True)
    finally:
        database.remove()
    check(found)
    assert len(found.takeovers) == 4


@pytest.mark.full
def test_killed_databases_lose_double_and_change_nothing() -> None:
    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed")
    database = Postgres(programs, durable=True)
    try:
        database.start()
        check(trial(kills=4, signals=SIGNALS, seed=12, database=database, least=LEAST))
    finally:
        database.remove()
