"""The scores that `benchmarks/real.py` prints for SKAB, by the definitions of SKAB's own script (`core/metrics.py`)."""

import numpy as np
import pytest
from benchmarks.real import skab_scores

LABELS = np.repeat([False, True, False], [50, 30, 20])


def test_the_perfect_and_the_null_detector_have_the_scores_of_skabs_leaderboard():
    assert skab_scores(LABELS, LABELS) == (1, 0, 0)
    assert skab_scores(np.zeros(100, dtype=bool), LABELS) == (0, 0, 1)


def test_rows_are_counted_as_skabs_script_counts_them():
    rng = np.random.default_rng(0)
    found = rng.random(100) < 0.4
    rows = list(zip(found, LABELS, strict=True))
    hit, quiet, false, missed = (
        rows.count(pair) for pair in [(True, True), (False, False), (True, False), (False, True)]
    )
    wanted = hit / (hit + (missed + false) / 2), false / (false + quiet), missed / (missed + hit)
    assert skab_scores(found, LABELS) == pytest.approx(wanted)
