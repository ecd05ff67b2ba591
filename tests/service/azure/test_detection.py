"""Verdicts on series of any length, against slow versions and known truth."""

import tracemalloc

import numpy as np
import pytest
from scipy import stats

from tests.bands import margin
from tests.service.azure.series import body, weekly
from tocsin import Detector
from tocsin.service.azure import (
    ChangePointRequest,
    DetectRequest,
    detect_change_points,
    detect_entire,
    detect_last,
    read_request,
)
from tocsin.service.azure.band import centred_median, distance_at, past_median, scale_of, season_of, tail_of
from tocsin.service.azure.detection import rate_of
from tocsin.service.azure.requests import MOST


def entire(values, **options):
    return detect_entire(read_request(DetectRequest, body(values, **options)))


def last(values, **options):
    return detect_last(read_request(DetectRequest, body(values, **options)))


def changes(values, **options):
    reply = detect_change_points(read_request(ChangePointRequest, body(values, **options)))
    return np.flatnonzero(reply["isChangePoint"]).tolist()


def test_the_tail_is_students_with_four_degrees_of_freedom():
    distances = np.array([0.0, 0.3, 1.0, 4.6, 30.0, 1e120, np.inf])
    np.testing.assert_allclose(tail_of(distances), 2 * stats.t(4).sf(distances), atol=1e-12)
    for rate in (0.3, 0.01, 1e-6):
        assert distance_at(rate) == pytest.approx(stats.t(4).isf(rate / 2), rel=1e-6)
    assert scale_of(stats.t(4).ppf(np.linspace(0.0005, 0.9995, 1000))) == pytest.approx(1.0, rel=1e-3)


@pytest.mark.filterwarnings("ignore:All-NaN")
@pytest.mark.parametrize("width", [3, 7, 21])
def test_running_medians_are_those_of_each_window(width):
    values = np.random.default_rng(1).normal(size=40)
    values[[0, 7, 8, 30, 31, 32]] = np.nan
    half = width // 2
    centred = [np.nanmedian(values[max(0, at - half) : at + half + 1]) for at in range(40)]
    past = [np.nanmedian(values[max(0, at - width) : at]) if at else np.nan for at in range(40)]
    np.testing.assert_allclose(centred_median(values, width), centred)
    np.testing.assert_allclose(past_median(values, width), past)


def test_the_season_is_found_and_none_without_three_cycles():
    season = season_of(weekly(70), 7)
    np.testing.assert_allclose(season, 3e6 * np.sin(2 * np.pi * np.arange(70) / 7), atol=5e5)
    assert not season_of(weekly(20), 7).any()


def test_sensitivity_is_a_rate_of_false_alarms():
    assert [rate_of(one) for one in (95, 75, 55)] == pytest.approx([1e-2, 1e-3, 1e-4])


@pytest.mark.parametrize("count", [47, 200])
def test_spikes_in_a_short_series_are_found_and_told_as_estimated(count):
    values = weekly(count)
    values[20] += 9e6
    values[-1] -= 9e6
    reply = entire(values, sensitivity=75)
    assert np.flatnonzero(reply["isPositiveAnomaly"]).tolist() == [20]
    assert np.flatnonzero(reply["isNegativeAnomaly"]).tolist() == [count - 1]
    assert reply["period"] == 7
    assert reply["tocsin"] == {"alarmRate": pytest.approx(0.001), "calibrated": 0, "estimated": count}
    newest = last(values)
    assert newest["isAnomaly"]
    assert newest["isNegativeAnomaly"]
    assert not last(values[:-1])["isAnomaly"]


def test_the_band_and_the_verdict_agree():
    values = weekly(120)
    values[[30, 60]] += [8e6, -8e6]
    for sensitivity in (99, 95, 50):
        reply = entire(values, sensitivity=sensitivity)
        expected, scale = np.array(reply["expectedValues"]), 100 - sensitivity
        high = expected + scale * np.array(reply["upperMargins"])
        low = expected - scale * np.array(reply["lowerMargins"])
        np.testing.assert_array_equal((values > high) | (values < low), reply["isAnomaly"])
        severity = np.array(reply["severity"])
        np.testing.assert_array_equal(severity > 0, reply["isAnomaly"])
        assert severity.max() <= 1


def test_at_most_so_many_anomalies_are_the_rarest():
    values = weekly(100)
    values[[10, 40, 70]] += [9e6, 30e6, 20e6]
    assert np.flatnonzero(entire(values, maxAnomalyRatio=0.02)["isAnomaly"]).tolist() == [40, 70]


@pytest.mark.slow
def test_a_long_series_has_the_detectors_own_verdicts():
    values = np.random.default_rng(2).normal(size=900)
    values[[700, 899]] += 12.0
    reply = entire(values)
    verdicts = Detector(alarm_rate=0.01, views=["error"], promise="observations").run(values)
    # The band begins a few observations after the p-values.
    warm = np.asarray(verdicts.warm) & np.isfinite(verdicts.low)
    assert reply["tocsin"]["calibrated"] == warm.sum() > 200
    np.testing.assert_array_equal(np.array(reply["isAnomaly"])[warm], np.asarray(verdicts.alarm)[warm])
    np.testing.assert_array_equal(np.array(reply["expectedValues"])[warm], np.asarray(verdicts.forecast)[warm])
    newest = last(values)
    assert newest["isAnomaly"]
    assert newest["tocsin"]["calibrated"] == 1
    assert newest["suggestedWindow"] == 584


def test_noise_alone_alarms_no_more_often_than_the_rate():
    random = np.random.default_rng(3)
    shares = np.array([np.mean(entire(random.normal(size=300), sensitivity=95)["isAnomaly"]) for _ in range(60)])
    assert shares.mean() + margin(shares, 1e-4) < 0.01
    assert shares.mean() > 0  # it is not simply mute


def test_a_change_of_level_is_found_where_it_is_and_noise_has_none():
    values = weekly(100)
    values[60:] += 4e6
    found = changes(values, threshold=0.5)
    assert len(found) == 1
    assert abs(found[0] - 60) <= 1
    random = np.random.default_rng(4)
    many = np.array([len(changes(random.normal(size=200))) for _ in range(40)], float)
    assert many.mean() + margin(many, 1e-3) < 1


def test_series_that_never_move_have_no_anomaly_and_any_move_is_one():
    still = np.full(50, 4.0)
    assert not any(entire(still)["isAnomaly"])
    assert not last(still)["isAnomaly"]
    moved = still.copy()
    moved[-1] = 5.0
    assert last(moved)["isAnomaly"]
    assert changes(still) == []


@pytest.mark.slow
def test_a_long_period_takes_little_memory() -> None:
    values = np.random.default_rng(0).normal(size=2 * MOST)
    tracemalloc.start()
    try:
        centred_median(values, MOST + 1)
        assert tracemalloc.get_traced_memory()[1] < 20 * 2**20  # it was more than a gigabyte
    finally:
        tracemalloc.stop()
