"""Thresholds on p: the grids, the curves, the oracle."""

import numpy as np
import pytest

from tocsin_bench.metrics import (
    ALARM_METRICS,
    MIN_MAX_THRESHOLDS,
    THRESHOLDS,
    false_positive_rate,
    oracle,
    threshold_curve,
)


@pytest.fixture
def labels():
    labels = np.zeros(3000, dtype=int)
    labels[200:210] = labels[1500:1600] = labels[2990:] = 1
    return labels


@pytest.fixture
def p(labels):
    p = np.ceil(np.random.default_rng(1).random(labels.size) * 500) / 500
    p[labels == 1] **= 2
    p[:20] = np.nan
    return p


def test_the_grid_is_the_one_of_the_paper():
    assert THRESHOLDS.size == 63
    assert (np.diff(THRESHOLDS) > 0).all()
    assert [THRESHOLDS[k] for k in (0, 20, 21, 41, 42, 62)] == [0.001, 0.01, 0.02, 0.1, 0.2, 1.0]
    assert MIN_MAX_THRESHOLDS.size == 126
    assert {*MIN_MAX_THRESHOLDS} == {*THRESHOLDS, *(1 - THRESHOLDS)}
    with pytest.raises(ValueError, match="read-only"):
        THRESHOLDS[0] = 0.5


@pytest.mark.parametrize("metric", ALARM_METRICS)
def test_curves_are_the_metric_at_each_threshold(metric, labels, p):
    curve = threshold_curve(labels, p, metric)
    missing_as_one = np.nan_to_num(p, nan=1.0)
    for k, threshold in enumerate(THRESHOLDS):
        alarms = missing_as_one <= threshold
        found = ALARM_METRICS[metric](labels, alarms)
        np.testing.assert_array_equal([curve.precision[k], curve.recall[k], curve.f1[k]], [*found, found.f1])
        assert curve.false_positive_rate[k] == alarms[labels == 0].mean()
    np.testing.assert_allclose(curve.calibration_error, np.abs(curve.false_positive_rate - THRESHOLDS))


@pytest.mark.parametrize("metric", ALARM_METRICS)
def test_the_oracle_is_the_best_of_the_curve(metric, labels, p):
    curve = threshold_curve(labels, p, metric)
    best = oracle(labels, p, metric)
    assert best.f1 == curve.f1.max()
    assert best.threshold == THRESHOLDS[curve.f1 == curve.f1.max()][0]
    assert best.calibration_error == abs(best.false_positive_rate - best.threshold)


def test_equality_is_an_alarm():
    assert oracle([0, 1, 0], [0.5, 0.2, 0.5], thresholds=[0.2]).f1 == 1.0
    assert false_positive_rate([0, 0], [0.2, 0.3], [0.2]).tolist() == [0.5]


def test_of_several_best_thresholds_the_smallest_counts():
    best = oracle([0, 1, 0], [0.9, 0.1, 0.8], thresholds=[0.5, 0.3, 0.7, 0.05])
    assert (best.threshold, best.f1) == (0.3, 1.0)


def test_missing_p_values_do_not_alarm_below_one():
    assert false_positive_rate([0, 0], [np.nan, 0.1], [0.5, 1.0]).tolist() == [0.5, 1.0]


def test_without_anomalies_there_is_no_best_threshold_but_a_false_positive_rate():
    assert np.isnan(oracle(np.zeros(5), np.full(5, 0.3))).all()
    curve = threshold_curve(np.zeros(5), [0.1, 0.2, 0.3, 0.4, 0.5], thresholds=[0.3])
    assert curve.false_positive_rate.tolist() == [0.6]


def test_without_normal_observations_there_is_no_false_positive_rate():
    best = oracle(np.ones(5), np.full(5, 0.3))
    assert best.f1 == 1.0
    assert np.isnan([best.false_positive_rate, best.calibration_error]).all()
