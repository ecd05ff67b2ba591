"""When a change began: an interval, from the distances to the usual level."""

import numpy as np
import pytest
from scipy.stats import binom

from tocsin.detection.views.level import LevelView
from tocsin.detection.views.onset import estimate_onset
from tocsin.detection.views.view import Seen

CASES = 100


def noise(rng, length, correlation):
    values = rng.normal(size=length + 200)
    for i in range(1, values.size):
        values[i] = correlation * values[i - 1] + values[i] * np.sqrt(1 - correlation**2)
    return values[200:]


@pytest.mark.parametrize("correlation", [0.0, 0.8])
@pytest.mark.parametrize(
    ("length", "change"), [(10, np.full(10, 3.0)), (60, np.full(60, 2.0)), (130, np.linspace(0, 3, 130))]
)
def test_the_interval_holds_the_onset_nine_times_of_ten(correlation, length, change):
    hits = 0
    for seed in range(CASES):
        away = noise(np.random.default_rng(seed), 2048, correlation)
        away[-length:] += change
        earliest, latest = estimate_onset(away)
        assert 0 <= latest <= earliest < away.size
        hits += latest <= length - 1 <= earliest
    # Fewer hits would have a probability below 1e-4 if it held nine of ten.
    assert hits >= binom.ppf(1e-4, CASES, 0.9)


def test_a_single_value_began_with_itself():
    away = noise(np.random.default_rng(0), 400, 0.0)
    away[-1] = 30.0
    earliest, latest = estimate_onset(away)
    assert latest == 0
    assert earliest <= 4


def test_missing_and_short():
    assert estimate_onset(np.array([5.0])) == (0, 0)
    away = noise(np.random.default_rng(1), 500, 0.0)
    away[-40:] += 4
    away[-30:-20] = np.nan
    earliest, latest = estimate_onset(away)
    assert latest <= 39 <= earliest


def onset_after(values, reference=None):
    """What a session says of the last observation."""
    session = LevelView().open(1, 1, 0)
    rows = np.array([0])
    for first in range(0, len(values), 50):
        piece = values[first : first + 50, np.newaxis, np.newaxis]
        session.run(Seen(piece, ()), rows, np.empty((*piece.shape, 4)))
        if first + 50 == reference:
            session.freeze(rows)
    return session.onset(0, 0, ago=0, calm=1000, stretch=16)


def test_nothing_is_said_of_signals_without_a_level_or_with_a_reference():
    values = np.random.default_rng(2).normal(size=2000)
    values[-30:] += 5
    earliest, latest = onset_after(values)
    assert latest <= 29 <= earliest
    assert onset_after(values, reference=1000) is None
    assert onset_after(values + np.arange(2000) / 50) is None
    assert onset_after(values[-150:]) is None
