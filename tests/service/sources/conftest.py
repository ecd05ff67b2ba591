from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.helpers import Mosquitto
from tocsin_monitor.metrics import Metrics


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    with Mosquitto(tmp_path / "broker") as server:
        yield server
