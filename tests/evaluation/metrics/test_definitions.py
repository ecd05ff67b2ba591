"""Each metric against a slow version of its definition, and where it is undefined."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.evaluation.metrics import oracles
from tocsin.forecasting import find_period
from tocsin_bench.metrics import (
    ALARM_METRICS,
    affiliation,
    average_precision,
    find_window,
    point_adjusted,
    roc_auc,
    volume_under_surface,
)

flags = st.integers(1, 40).flatmap(lambda length: hnp.arrays(np.int64, (2, length), elements=st.integers(0, 1)))
few_scores = st.integers(2, 40).flatmap(
    lambda length: st.tuples(
        hnp.arrays(np.int64, length, elements=st.integers(0, 1)).filter(lambda labels: 0 < labels.sum() < labels.size),
        hnp.arrays(np.float64, length, elements=st.integers(-5, 5)),
    )
)


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["pointwise", "point-adjusted", "event-based", "range-based"])
@given(both=flags)
def test_metrics_that_count(metric, both):
    oracle = getattr(oracles, metric.replace("-", "_"))
    np.testing.assert_allclose(ALARM_METRICS[metric](*both), oracle(*both.tolist()), rtol=1e-12)


@pytest.mark.slow
@given(both=flags.filter(lambda both: both[0].any() and both.shape[1] <= 16))
def test_affiliation(both):
    np.testing.assert_allclose(affiliation(*both), oracles.affiliation(*both), atol=2 / oracles.PIECES)


@given(both=few_scores)
def test_rankings(both):
    assert average_precision(*both) == pytest.approx(oracles.average_precision(*both), abs=1e-12)
    assert roc_auc(*both) == pytest.approx(oracles.roc_auc(*both), abs=1e-12)


@given(both=few_scores, calibration=hnp.arrays(np.float64, st.integers(1, 30), elements=st.integers(-5, 5)))
def test_the_precision_at_quantiles_of_the_calibration_part(both, calibration):
    """As the paper describes AUC-PR: an observation below all thresholds never alarms."""
    wanted = oracles.average_precision_at_quantiles(*both, calibration)
    with_a_gap = np.append(calibration, np.nan)
    assert average_precision(*both, with_a_gap) == pytest.approx(wanted, abs=1e-12)
    assert average_precision(*both, np.unique(both[1])) == pytest.approx(average_precision(*both), abs=1e-12)
    assert np.isnan(average_precision(*both, [np.nan]))


@pytest.mark.slow
@given(both=few_scores.filter(lambda both: both[0].size <= 25), window=st.integers(0, 6))
def test_volume(both, window):
    np.testing.assert_allclose(
        volume_under_surface(*both, window), oracles.volume_under_surface(*both, window), atol=1e-12
    )


@pytest.mark.parametrize("metric", ALARM_METRICS)
class TestEveryMetricOfAlarms:
    def test_finds_everything(self, metric):
        labels = np.array([0, 1, 1, 0, 0, 1, 0])
        found = ALARM_METRICS[metric](labels, labels)
        assert (*found, found.f1) == (1.0, 1.0, 1.0)

    def test_without_alarms_finds_nothing(self, metric):
        found = ALARM_METRICS[metric]([0, 1, 1, 0], [0, 0, 0, 0])
        assert math.isnan(found.precision)
        assert (found.recall, found.f1) == (0.0, 0.0)

    def test_without_anomalies_there_is_nothing_to_find(self, metric):
        for alarms in ([0, 0, 0], [0, 1, 0]):
            found = ALARM_METRICS[metric]([0, 0, 0], alarms)
            assert math.isnan(found.recall)
            assert math.isnan(found.f1)

    def test_where_all_is_anomalous_no_alarm_is_false(self, metric):
        assert ALARM_METRICS[metric]([1, 1, 1], [0, 1, 0]).precision == 1.0


def test_rankings_need_both_kinds_of_observations():
    scores = np.arange(10.0)
    assert np.isnan([average_precision(0 * scores, scores), roc_auc(0 * scores, scores)]).all()
    assert np.isnan(volume_under_surface(0 * scores, scores, 3)).all()
    ones = np.ones(10)
    assert average_precision(ones, scores) == 1.0
    assert math.isnan(roc_auc(ones, scores))
    volume = volume_under_surface(ones, scores, 3)
    assert volume.pr == pytest.approx(1.0)
    assert math.isnan(volume.roc)


def test_infinite_scores_are_only_larger_than_all_others():
    labels = np.array([0, 1, 0, 0, 1, 0])
    scores = np.array([0.0, np.inf, 2.0, -np.inf, 3.0, 1.0])
    ranks = np.argsort(np.argsort(scores))
    for metric in (average_precision, roc_auc, volume_under_surface):
        assert metric(labels, scores) == metric(labels, ranks)


def test_one_chance_alarm_in_a_long_event_is_enough_for_point_adjustment():
    """What docs/metrics.md warns of."""
    rng = np.random.default_rng(0)
    labels = np.zeros(10_000)
    labels[4000:5000] = 1
    assert point_adjusted(labels, rng.random(10_000) < 0.01).f1 > 0.9


def test_window_where_there_is_no_period():
    noise = np.random.default_rng(0).normal(size=500)
    with_a_gap = np.where(np.arange(500) == 7, np.nan, noise)
    for values in (np.zeros(500), np.full(3, 0.1), with_a_gap, [1e300, np.inf, 1.0], np.arange(500.0), [1.0]):
        assert find_window(values) == 125
    assert find_period(noise) is None  # whereas TSB-AD takes the highest of noise's peaks
    assert find_window(noise) != 125
