"""Templates with a zone and holidays: the numbers of a detector by itself, also after a crash."""

from pathlib import Path

import numpy as np
import pytest

from tests.service.engine.helpers import QUICK, expected_all, noise, oracle, rig, same, verdicts
from tocsin_monitor.config.signals import SignalTemplate, check_detector

HOUR = 3_600 * 10**9
BERLIN = {"zone": "Europe/Berlin", "holidays": ["2026-03-31", "2026-12-24"]}


def test_a_calendar_is_kept_over_a_crash(tmp_path: Path) -> None:
    """Clocks change before the crash, and a holiday is after it."""
    given = {"interval": "1h", "season": "1d", "views": ["error", "level"], **BERLIN}
    start = int(np.datetime64("2026-03-17", "ns").astype(np.int64))
    values = noise(7, 400)
    with rig(tmp_path, templates=[{"match": "plant/*", "detector": {**QUICK, **given}}]) as made:
        found = verdicts(made.feed("plant/1", values[:320], start, HOUR))
        made = made.crash()
        try:
            found += verdicts(made.feed("plant/1", values[320:], start + 320 * HOUR, HOUR))
            assert same(found, expected_all(oracle(**given), values, start, HOUR))
        finally:
            made.close()


def test_a_calendar_needs_the_interval() -> None:
    template = SignalTemplate(match="plant/*", every=300.0, detector=dict(BERLIN))
    check_detector(template.settings, None)
    with pytest.raises(ValueError, match="zone='Europe/Berlin' needs the sampling interval too"):
        check_detector(template.detector, None)
    with pytest.raises(ValueError, match="zone must be a time zone such as"):
        check_detector({"interval": "1h", "zone": "Berlin"}, None)
