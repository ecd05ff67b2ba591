"""What was found, as pictures."""

import numpy as np
import pytest

from tests.cases import full
from tocsin.data import Signal
from tocsin.detection import detect_signal
from tocsin.reports.picture import LAGS, MOST_POINTS, draw_detection, nearest_lag, thinned

QUICK = {"forecaster": "last-value", "window": 500}


def test_thinning_loses_no_spike():
    values = np.random.default_rng(0).normal(size=100_000)
    values[77_777], values[-2], values[5:5000] = 50, -60, np.nan
    at, drawn = thinned(np.arange(values.size), values)
    assert at.size == drawn.size <= MOST_POINTS
    assert np.nanmax(drawn) == 50
    assert np.nanmin(drawn) == -60
    assert abs(at[np.nanargmax(drawn)] - 77_777) <= 100_000 / MOST_POINTS * 2
    assert np.isnan(drawn).any()


def a_signal(length, features=("value",), fault=True):
    values = np.random.default_rng(0).normal(size=(length, len(features)))
    if fault:
        values[-50, 0] += 15
    return Signal("s", tuple(features), None, values, np.arange(1, length + 1), None, ())


@pytest.mark.slow
@pytest.mark.parametrize("length", [900, full(MOST_POINTS + 500)])
@pytest.mark.parametrize("features", [("value",), full(("a", "b", "c", "d", "e"))])
def test_pictures_of_one_signal(length, features, tmp_path):
    from matplotlib.image import imread

    result = detect_signal(a_signal(length, features), QUICK, keep=True)
    assert result.error is None
    assert result.incident_list
    draw_detection([result], tmp_path / "p.png", faults=[(10, 10, features[0], "a fault")])
    pixels = imread(tmp_path / "p.png")
    red = (pixels[..., 0] > 0.7) & (pixels[..., 1] < 0.1) & (pixels[..., 2] < 0.1)
    assert red.sum() > 20
    assert np.unique(pixels.reshape(-1, pixels.shape[2]), axis=0).shape[0] > 30


@pytest.mark.slow
def test_a_picture_of_what_every_view_sees_over_time(tmp_path):
    values = np.sin(np.arange(2400) / 9)[:, np.newaxis] + 0.1 * np.random.default_rng(0).normal(size=(2400, 1))
    values[1500:1560] = values[1500]
    values[1900:2000] += 2
    values[2200:2280] *= -1
    times = np.datetime64("2026-01-01", "ns") + np.arange(2400) * np.timedelta64(300, "s")
    signal = Signal("s", ("value",), times, values, np.arange(1, 2401), np.timedelta64(300, "s"), ())
    result = detect_signal(signal, {**QUICK, "forecaster": "autoregression"}, keep=True)
    assert len(result.incident_list) >= 2
    assert {incident.view for incident in result.incident_list} & {"shape", "movement"}
    draw_detection([result], tmp_path / "p.png")
    assert (tmp_path / "p.png").stat().st_size > 20_000


def nearest_by_hand(values, length):
    spread = np.nanstd(values[-(length + LAGS) :], axis=0)
    end = len(values) - length
    best = (np.inf, 0)
    for lag in range(length, min(LAGS, end) + 1):
        difference = (values[end:] - values[end - lag : len(values) - lag]) / np.where(spread > 0, spread, 1)
        if np.isfinite(difference).any():
            best = min(best, (np.nanmean(difference**2), lag))
    return best[1]


@pytest.mark.parametrize("length", [16, 64])
@pytest.mark.parametrize("features", [1, 3])
def test_the_nearest_earlier_stretch(length, features):
    values = np.random.default_rng(0).normal(size=(500, features)) * [1.0, 50.0, 0.0][:features]
    values[100 : 100 + length] = values[-length:] * 1.001
    values[[120, 490, 300], 0] = np.nan
    assert nearest_lag(values, length) == nearest_by_hand(values, length) == 400 - length
    assert nearest_lag(values[-2 * length + 1 :], length) == 0
    assert nearest_lag(np.full((500, 1), np.nan), length) == 0


@pytest.mark.slow
def test_a_picture_of_many_signals_and_of_one_without_any_alarm(tmp_path):
    settings = QUICK
    results = [detect_signal(a_signal(600, fault=k > 5), settings, keep=True) for k in range(9)]
    draw_detection(results, tmp_path / "many.png")
    still = Signal("still", ("value",), None, np.full((400, 1), 5.0), np.arange(1, 401), None, ())
    draw_detection([detect_signal(still, settings, keep=True)], tmp_path / "still.png")
    gone = Signal("gone", ("value",), None, np.full((400, 1), np.nan), np.arange(1, 401), None, ())
    draw_detection([detect_signal(gone, settings, keep=True)], tmp_path / "gone.png")
    assert all((tmp_path / name).stat().st_size > 5000 for name in ("many.png", "still.png", "gone.png"))


def test_a_signal_in_which_something_goes_wrong_says_so():
    result = detect_signal(a_signal(100), {"alarm_rate": "1/day"}, keep=False)
    assert "interval" in result.error
    empty = detect_signal(a_signal(0, fault=False), {}, keep=True)
    assert empty.observations == 0
    assert empty.incident_list == []
    assert repr(result) == f"s: 100 observations\nnot judged: {result.error}"
    with pytest.raises(ValueError, match="the verdicts on 's' were not kept"):
        _ = result.columns
