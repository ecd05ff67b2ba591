"""All metrics at once are the metrics one by one; what is wrong with an argument is said."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from tocsin_bench import metrics
from tocsin_bench.metrics import (
    ALARM_METRICS,
    MIN_MAX_THRESHOLDS,
    SEVERITY_THRESHOLDS,
    FoundWithinBudget,
    Marks,
    Operation,
    affiliation,
    average_precision,
    evaluate,
    events_found,
    false_positive_rate,
    find_window,
    in_operation,
    oracle,
    point_adjusted,
    roc_auc,
    threshold_curve,
    volume_under_surface,
    within_budget,
)

LABELS = np.zeros(800)
LABELS[300:340] = LABELS[600:604] = 1
P = np.random.default_rng(2).random(800)
P[310:330] /= 100
P[:10] = np.nan


def test_all_metrics_at_once_are_the_metrics_one_by_one():
    result = evaluate(LABELS, P, window=30, alarm_rate=0.02, interval="1h", gap=3, thresholds=MIN_MAX_THRESHOLDS)
    missing_as_one = np.nan_to_num(P, nan=1.0)
    scores = 1 - missing_as_one
    assert (result.auc_pr, result.auc_roc) == (average_precision(LABELS, scores), roc_auc(LABELS, scores))
    assert (result.vus_pr, result.vus_roc) == volume_under_surface(LABELS, scores, 30)
    for metric in ALARM_METRICS:
        found = getattr(result, metric.replace("-", "_"))
        assert found == oracle(LABELS, P, metric, MIN_MAX_THRESHOLDS)
    assert result.operation == in_operation(LABELS, missing_as_one <= 0.02, interval="1h", gap=3)
    assert result.budget == within_budget(LABELS, P, gap=3)
    assert result.false_positive_rate == false_positive_rate(LABELS, P, [0.02])[0]
    assert result.calibration_error == abs(result.false_positive_rate - 0.02)


def test_severity_orders_and_alarms_and_p_calibrates():
    severity = np.random.default_rng(5).exponential(size=800)
    severity[305:335] += 20.0
    severity[[312, 602]] += 40.0  # beyond where 1 - exp(-severity) is 1
    severity[:5] = np.nan
    result, by_p = evaluate(LABELS, P, severity=severity), evaluate(LABELS, P)
    assert result.auc_pr == average_precision(LABELS, np.nan_to_num(severity))
    assert result.vus_pr == volume_under_surface(LABELS, np.nan_to_num(severity), 125).pr
    before = evaluate(LABELS, P, severity=severity, calibration=severity[:300]).auc_pr_at_quantiles
    assert before == average_precision(LABELS, np.nan_to_num(severity), severity[:300])
    assert evaluate(LABELS, P, calibration=P[:300]).auc_pr_at_quantiles == average_precision(
        LABELS, 1 - np.nan_to_num(P, nan=1.0), 1 - P[:300]
    )
    assert result.budget == within_budget(LABELS, np.exp(-severity))
    for metric in ALARM_METRICS:
        name = metric.replace("-", "_")
        found, expected = getattr(result, name), oracle(LABELS, np.exp(-severity), metric, SEVERITY_THRESHOLDS)
        assert found[:5] == expected[:5]
        assert found.calibration_error == getattr(by_p, name).calibration_error
    assert result.point_adjusted.f1 == 1.0 > by_p.point_adjusted.f1
    assert result.false_positive_rate == by_p.false_positive_rate
    assert result.operation.alarms == by_p.operation.alarms
    with pytest.raises(ValueError, match="must be as many as the labels, 800, got 799"):
        evaluate(LABELS, P, severity=severity[1:])


def test_row_has_everything_as_numbers():
    result = evaluate(LABELS, P)
    row = result.row()
    assert len(row) == 5 + 5 * 6 + 2 + 10 + 7
    assert {type(value) for value in row.values()} == {float}
    assert row["vus_pr"] == result.vus_pr
    assert row["point_adjusted_calibration_error"] == result.point_adjusted.calibration_error
    assert row["operation_events"] == 2


def test_normal_signals_have_what_needs_no_anomaly():
    row = evaluate(0 * LABELS, P, interval="1min").row()
    assert {name for name, value in row.items() if not np.isnan(value)} == {
        "false_positive_rate",
        "calibration_error",
        "operation_events",
        "operation_detected_events",
        "operation_alarms",
        "operation_false_alarms",
        "operation_false_alarms_per_1000",
        "operation_incidents",
        "operation_false_incidents",
        "operation_incidents_per_week",
        "operation_false_incidents_per_week",
        "budget_normal_time",
        "budget_false_over_budget",
    }


def test_inputs_are_left_alone_and_may_be_of_any_kind():
    labels, p = LABELS.copy(), P.copy()
    first = evaluate(labels, p).row()
    np.testing.assert_array_equal(labels, LABELS)
    np.testing.assert_array_equal(p, P)
    for others in (LABELS.astype(bool), LABELS.astype(np.uint8), LABELS.tolist(), Marks(LABELS == 1)):
        np.testing.assert_equal(evaluate(others, P).row(), first)
    np.testing.assert_equal(evaluate(LABELS, np.ma.masked_invalid(P)).row(), first)


WITH_ALARMS = (*ALARM_METRICS.values(), in_operation)
WITH_SCORES = (average_precision, roc_auc, volume_under_surface)
WITH_P = (evaluate, oracle, threshold_curve, false_positive_rate, events_found, within_budget)


@pytest.mark.parametrize("metric", [*WITH_ALARMS, *WITH_SCORES, *WITH_P])
@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        ([0, 2, 1], ValueError, "labels must be 0 or 1, got 2 at position 1"),
        ([0, 1, np.nan], ValueError, "labels must be 0 or 1, got nan at position 2"),
        ([], ValueError, r"labels must have one dimension and at least one value, got shape \(0,\)"),
        ([[0, 1, 1]], ValueError, r"labels must have one dimension and at least one value, got shape \(1, 3\)"),
        (["a", "b", "c"], TypeError, "labels must be numbers"),
    ],
)
def test_wrong_labels(metric, labels, error, message):
    with pytest.raises(error, match=message):
        metric(labels, [0, 1, 0])


@pytest.mark.parametrize(
    ("metric", "name"),
    [(metric, name) for metrics, name in ((WITH_ALARMS, "alarms"), (WITH_SCORES, "scores"), (WITH_P, "p"))
     for metric in metrics],
)  # fmt: skip
def test_what_is_judged_must_be_as_long_as_the_labels(metric, name):
    with pytest.raises(ValueError, match=f"{name} must be as many as the labels, 3, got 2"):
        metric([0, 1, 0], [0, 1])
    with pytest.raises(ValueError, match=f"{name} must have one dimension"):
        metric([0, 1, 0], [[0, 1, 0]])


@pytest.mark.parametrize("metric", WITH_SCORES)
def test_scores_must_be_there(metric):
    with pytest.raises(ValueError, match="scores must be numbers and not NaN, got nan at position 1"):
        metric([0, 1, 0], [0.5, np.nan, 0.5])


@pytest.mark.parametrize("metric", WITH_P)
@pytest.mark.parametrize("value", [-0.1, 1.5, np.inf])
def test_p_must_be_within_its_bounds(metric, value):
    with pytest.raises(ValueError, match=f"p must be from 0 to 1, or NaN where missing, got {value:g} at position 2"):
        metric([0, 1, 0], [0.5, np.nan, value])


def test_other_arguments():
    with pytest.raises(ValueError, match="alarms must be 0 or 1, got 3 at position 0"):
        point_adjusted([0, 1], [3, 0])
    with pytest.raises(ValueError, match="window must be an integer >= 0, got -1"):
        volume_under_surface([0, 1], [0, 1], -1)
    with pytest.raises(TypeError, match=r"window must be an integer >= 0, got 2\.5"):
        evaluate([0, 1], [0, 1], window=2.5)
    with pytest.raises(ValueError, match=r"metric must be one of 'pointwise', .*, got 'best'"):
        oracle([0, 1], [0, 1], "best")
    with pytest.raises(ValueError, match=r"thresholds must be from 0 to 1, got 1\.1 at position 1"):
        oracle([0, 1], [0, 1], thresholds=[0.1, 1.1])
    with pytest.raises(ValueError, match="thresholds must have one dimension and at least one value"):
        oracle([0, 1], [0, 1], thresholds=[])
    with pytest.raises(ValueError, match="alarm_rate must be a number > 0 and <= 1, got 0"):
        evaluate([0, 1], [0, 1], alarm_rate=0)
    with pytest.raises(ValueError, match="values must have one dimension"):
        find_window(np.zeros((5, 2)))


def test_one_observation_is_a_signal():
    assert affiliation([1], [1]) == (1.0, 1.0)
    assert evaluate([1], [0.001]).point_adjusted.f1 == 1.0
    assert evaluate([0], [0.5]).false_positive_rate == 0.0


def test_every_name_is_documented():
    page = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text()
    for name in {*metrics.__all__} - {"Evaluation", "Volume"} | {*ALARM_METRICS}:
        assert name in page, name
    for field in fields(Operation):
        assert field.name.removesuffix("_per_week") in page, field.name
    for field in fields(FoundWithinBudget):
        assert field.name in page, field.name
