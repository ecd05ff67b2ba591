"""Detectors that are soon warm: how long one waits is no matter of the engine."""

from collections.abc import Iterator

import pytest

from tests.service.servers import postgres, store_url
from tocsin.detection import alarm_rate

__all__ = ["postgres", "store_url"]


@pytest.fixture(autouse=True, scope="package")
def _soon_warm() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alarm_rate, "VIEW_WARM_UP", 10)
        patch.setattr(alarm_rate, "MIN_CALIBRATION", 20)
        yield
