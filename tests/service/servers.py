"""Fixtures: the real servers that the monitor works with, skipped where they are not installed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cases import full
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


def new_store(request: pytest.FixtureRequest, folder: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{folder / 'data' / 'tocsin.db'}"
    server: Postgres = request.getfixturevalue("postgres")
    return server.new_database()


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a store can be made, in one database and then in the other."""
    return new_store(request, tmp_path)


@pytest.fixture(params=["sqlite", full("postgresql")], name="store_url")
def store_url_of_a_monitor(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The same for tests that start monitors: those of the store try everything on both databases already."""
    return new_store(request, tmp_path)
