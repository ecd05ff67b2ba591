"""Verdicts are the detector's own, and series that are too short for them are refused."""

import re

import numpy as np
import pytest

from tests.bands import margin
from tests.service.azure.series import body, weekly
from tocsin import Detector
from tocsin_monitor.azure import (
    AzureError,
    ChangePointRequest,
    DetectRequest,
    detect_change_points,
    detect_entire,
    detect_last,
    read_request,
)
from tocsin_monitor.azure.detection import rate_of


def entire(values, **options):
    return detect_entire(read_request(DetectRequest, body(values, **options)))


def last(values, **options):
    return detect_last(read_request(DetectRequest, body(values, **options)))


def changes(values, **options):
    reply = detect_change_points(read_request(ChangePointRequest, body(values, **options)))
    return np.flatnonzero(reply["isChangePoint"]).tolist()


def test_sensitivity_is_a_rate_of_false_alarms():
    assert [rate_of(one) for one in (95, 75, 55)] == pytest.approx([1e-2, 1e-3, 1e-4])


@pytest.mark.slow
def test_a_series_has_the_detectors_own_verdicts():
    values = np.random.default_rng(2).normal(size=900)
    values[[400, 700, 899]] += 12.0
    reply = entire(values)
    verdicts = Detector(alarm_rate=0.01, views=["error"], promise="observations").run(values)
    warm = np.asarray(verdicts.warm)
    assert reply["tocsin"] == {"alarmRate": 0.01, "calibrated": warm.sum(), "bounded": 266 - 16, "unjudged": 16}
    anomalies = np.array(reply["isAnomaly"])
    np.testing.assert_array_equal(anomalies, np.nan_to_num(np.asarray(verdicts.p), nan=1.0) < 0.01)
    np.testing.assert_array_equal(anomalies[warm], np.asarray(verdicts.alarm)[warm])
    assert anomalies[[400, 700, 899]].all()
    np.testing.assert_array_equal(reply["expectedValues"][1:], np.asarray(verdicts.forecast)[1:])
    banded = np.isfinite(verdicts.high)
    drawn = np.array(reply["expectedValues"]) + 5 * np.array(reply["upperMargins"])
    np.testing.assert_allclose(drawn[banded], np.maximum(verdicts.high, verdicts.forecast)[banded])
    newest = last(values)
    assert newest["isAnomaly"]
    assert newest["tocsin"] == {"alarmRate": 0.01, "calibrated": 1, "bounded": 0, "unjudged": 0}
    assert newest["suggestedWindow"] == 268


@pytest.mark.parametrize("count", [268, 450])
def test_spikes_are_found_in_short_series(count):
    values = weekly(count)
    values[-1] -= 2e7
    reply = entire(values)
    assert reply["isNegativeAnomaly"][-1]
    assert not any(reply["isPositiveAnomaly"][-1:])
    assert reply["period"] == 7
    assert reply["tocsin"]["calibrated"] == count - 266
    assert 0.0 < reply["severity"][-1] < 1.0
    assert np.isfinite(reply["upperMargins"]).all()
    newest = last(values)
    assert newest["isAnomaly"]
    assert newest["isNegativeAnomaly"]


def test_an_ordinary_last_point_is_no_anomaly():
    assert not last(weekly(300))["isAnomaly"]


@pytest.mark.parametrize(("sensitivity", "needed"), [(99, 195), (95, 268), (75, 1068)])
def test_a_series_that_is_too_short_is_refused_with_the_number_that_it_takes(sensitivity, needed):
    for detect in (entire, last):
        for count in (1, needed - 1):
            with pytest.raises(
                AzureError, match=rf"^series: {count} points are too few.*from {needed} points on"
            ) as refused:
                detect(weekly(count), sensitivity=sensitivity)
            assert refused.value.code == "InvalidSeries"
    values = weekly(needed)
    values[-1] += 1e9
    assert last(values, sensitivity=sensitivity)["isAnomaly"]  # so it can be told from then on


def test_missing_points_do_not_count_towards_the_length():
    points = body(weekly(268))
    with pytest.raises(AzureError, match="267 points are too few"):
        detect_entire(read_request(DetectRequest, re.sub(rb'\{"timestamp": "2018-03-05[^}]*\}, ', b"", points)))


def test_rates_that_no_series_is_long_enough_for_are_refused():
    for sensitivity in (0, 56):
        with pytest.raises(
            AzureError, match=f"sensitivity {sensitivity} stands for one .* 8640: use a higher one"
        ) as no:
            entire(weekly(300), sensitivity=sensitivity)
        assert no.value.code == "InvalidModelArgument"
    with pytest.raises(AzureError, match="threshold 0 stands for one") as refused:
        changes(weekly(700), threshold=0)
    assert refused.value.code == "InvalidModelArgument"


def test_at_most_so_many_anomalies_are_the_rarest():
    values = np.random.default_rng(5).normal(size=1200)
    values[[700, 900, 1100]] += [9, 50, 30]
    all_of_them = np.flatnonzero(entire(values)["isAnomaly"])
    assert {700, 900, 1100} <= set(all_of_them.tolist())
    few = entire(values, maxAnomalyRatio=0.002)
    assert sum(few["isAnomaly"]) == 2
    assert set(np.flatnonzero(few["isAnomaly"])) <= set(all_of_them)


@pytest.mark.slow
def test_noise_alone_alarms_no_more_often_than_the_rate():
    random = np.random.default_rng(3)
    shares = np.array([np.mean(entire(random.normal(size=500))["isAnomaly"]) for _ in range(30)])
    assert shares.mean() + margin(shares, 1e-4) < 0.01
    assert shares.mean() > 0  # it is not simply mute


def test_a_change_of_level_is_found_where_it_is_and_a_spike_is_none():
    values = weekly(700)
    values[640] += 2e7
    assert changes(values) == []
    values = weekly(700)
    values[640:] += 8e6
    (found,) = changes(values)
    assert abs(found - 640) <= 2
    assert changes(values, stableTrendWindow=60) == []
    with pytest.raises(AzureError, match=r"67 points are too few.*from 68 points on"):
        changes(weekly(67))


def test_a_series_that_never_moves_has_no_anomaly():
    still = np.full(600, 4.0)
    assert not any(entire(still)["isAnomaly"])
    assert not last(still)["isAnomaly"]
    assert changes(still) == []
