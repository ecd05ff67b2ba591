"""What is too old is removed, of all signals."""

import time
from pathlib import Path

from tests.service.engine.helpers import SECOND, expected_all, noise, oracle, rig, same, settings_of, verdicts

DAY = 86400 * SECOND


def test_signals_that_never_reached_a_snapshot_or_are_gone_for_good_are_pruned_too(tmp_path: Path) -> None:
    settings = settings_of(storage={"keep_observations": 86400.0})
    values = noise(3, 60)
    start = time.time_ns() - 10 * DAY
    with rig(tmp_path) as made:  # which keeps everything
        made.feed("rare", values[:50], start)
        made.feed("gone", values[:20], start)
        made = made.crash(settings)
        try:
            while made.upkeep.prune():
                pass
            assert made.stored("rare") == made.stored("gone") == []
            made = made.crash(settings)
            recent = time.time_ns() - 1000 * SECOND
            taken = made.feed("rare", values[50:], recent)
            detector = oracle()
            expected_all(detector, values[:50], start)
            assert same(verdicts(taken), expected_all(detector, values[50:], recent))
        finally:
            made.close()
