from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.helpers import Alertmanager, Mosquitto
from tests.service.sinks.office import Office
from tocsin_monitor.metrics import Metrics


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    made = Office(tmp_path, "sink")
    yield made
    made.close()


@pytest.fixture
def alertmanager(tmp_path: Path) -> Iterator[Alertmanager]:
    with Alertmanager(tmp_path / "alertmanager") as server:
        yield server


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    with Mosquitto(tmp_path / "broker") as server:
        yield server
