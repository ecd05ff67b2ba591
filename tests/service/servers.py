"""Fixtures: the real servers that the monitor works with, skipped where they are not installed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.postgres import Postgres, find_programs


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server that runs; what is in it is not meant to survive a crash."""
    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed")
    server = Postgres(programs)
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a store can be made, in one database and then in the other."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'data' / 'tocsin.db'}"
    server: Postgres = request.getfixturevalue("postgres")
    return server.new_database()
