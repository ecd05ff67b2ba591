"""The limits of detection in white noise: against published run lengths and against simulation."""

import numpy as np
import pytest

from tocsin_bench.charts import cusum
from tocsin_bench.limits import least_delay, most_spikes, run_length, two_sided


@pytest.mark.parametrize(
    ("threshold", "slack", "shift", "expected"),
    [(5, 0.5, 0, 930.9), (5, 0.5, 1, 10.38), (4, 0.5, 0, 335.4), (4, 0.5, 1, 8.38), (4, 0.5, 2, 3.34)],
)
def test_published_run_lengths(threshold, slack, shift, expected):
    assert run_length(threshold, slack, shift) == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize(
    ("shift", "delays"), [(1.0, (9.5, 11.9, 16.5)), (2.0, (3.2, 3.8, 4.9)), (3.0, (1.7, 2.0, 2.5))]
)
def test_least_delays(shift, delays):
    assert tuple(round(least_delay(shift, 1 / between), 1) for between in (300, 1000, 10_000)) == delays


def test_run_lengths_are_those_of_the_chart():
    above = cusum(np.random.default_rng(0).normal(size=(400, 2000)) + 1, 0.5) > 4
    lengths = above.argmax(axis=0) + 1.0
    assert above.any(axis=0).all()
    assert abs(lengths.mean() - two_sided(4, 0.5, 1)) < 4 * lengths.std() / np.sqrt(2000)


def test_spikes():
    assert most_spikes(4, 1 / 1000) == pytest.approx(0.761, abs=5e-4)
    assert most_spikes(0, 0.05) == pytest.approx(0.05)
