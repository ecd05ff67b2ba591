"""Errors of forecasts against forecasts made by hand."""

import math

import numpy as np
import pytest

from tests.evaluation.bench.making import name_of, noise, write_file
from tocsin_bench import forecast_errors
from tocsin_bench.files import read_file
from tocsin_bench.forecast_errors import ForecasterChoice, make_material, without_forecasts

LAST_VALUE = ForecasterChoice("last-value")
HORIZONS = 3


def errors_by_hand(values, horizons):
    """The last value known, d observations before, stands for the one now."""
    errors = np.full((*values.shape, horizons), np.nan)
    for t in range(52, len(values)):
        for feature in range(values.shape[1]):
            for d in range(1, horizons + 1):
                known = [value for value in values[: t - d + 1, feature] if not math.isnan(value)]
                errors[t, feature, d - 1] = abs(values[t, feature] - known[-1])
    return errors


@pytest.fixture
def gaps():
    values = noise(features=2)
    values[60:64, 0] = values[90, 1] = values[51] = values[110] = np.nan
    return values


def test_errors_are_those_of_forecasts_by_hand(tmp_path, gaps):
    made = make_material(read_file(write_file(tmp_path, values=gaps)), LAST_VALUE, HORIZONS)
    expected = errors_by_hand(gaps, HORIZONS)
    assert np.isfinite(expected).sum() > 700
    assert np.allclose(made.errors, expected, rtol=1e-12, equal_nan=True)
    known = expected[np.isfinite(expected)]
    about = made.forecast_errors
    assert (about.mae, about.rmse) == pytest.approx((sum(known) / len(known), math.sqrt(sum(known**2) / len(known))))
    assert (about.file, about.dataset, about.forecaster) == (name_of(), "TINY", "last-value")
    assert (about.features, about.observations) == (2, 180)
    assert about.seconds > 0


def test_pieces_make_no_difference(tmp_path, gaps, monkeypatch):
    file = read_file(write_file(tmp_path, values=gaps))
    whole = make_material(file, LAST_VALUE, HORIZONS).errors
    monkeypatch.setattr(forecast_errors, "PIECE", 7)
    assert np.array_equal(make_material(file, LAST_VALUE, HORIZONS).errors, whole, equal_nan=True)


def test_nothing_is_judged_before_there_were_52(tmp_path):
    errors = make_material(read_file(write_file(tmp_path)), LAST_VALUE, 60).errors
    assert np.isnan(errors[:52]).all()
    assert np.isfinite(errors[52, 0, :52]).all()
    # Nobody had made these forecasts.
    assert np.isnan(errors[52, 0, 52:]).all()


def test_a_file_without_forecasts_has_no_errors(tmp_path):
    made = without_forecasts(read_file(write_file(tmp_path, values=noise(features=2))))
    assert made.errors.shape == (180, 2, 0)
    assert made.forecaster.label == ""


def test_files_too_short_to_be_judged(tmp_path):
    made = make_material(
        read_file(write_file(tmp_path, name_of(calibration=20), noise()[:52], [0] * 52)), LAST_VALUE, 2
    )
    assert np.isnan(made.errors).all()
    assert math.isnan(made.forecast_errors.mae)
    assert math.isnan(made.forecast_errors.rmse)


@pytest.mark.parametrize(("calibration", "errors"), [(100, 48), (55, 3), (53, 2), (10, 2)])
def test_errors_for_calibration(tmp_path, calibration, errors):
    file = read_file(write_file(tmp_path, name_of(calibration=calibration)))
    assert make_material(file, LAST_VALUE, 1).calibration == errors


@pytest.mark.parametrize("horizons", [0, 1025, 1.5])
def test_horizons_that_cannot_be(tmp_path, horizons):
    with pytest.raises((TypeError, ValueError), match="horizons"):
        make_material(read_file(write_file(tmp_path)), LAST_VALUE, horizons)


def test_labels_of_forecasters():
    assert LAST_VALUE.label == "last-value"
    assert ForecasterChoice("chronos", {"model": "a/b", "context_length": 52}).label == "chronos-model=a_b-52"
    assert ForecasterChoice("stats", {"season_length": 24}).label == "stats-season_length=24"


def test_options_reach_the_forecaster(tmp_path):
    values = np.tile(np.arange(6.0), 30)[:, np.newaxis]
    made = make_material(
        read_file(write_file(tmp_path, values=values)), ForecasterChoice("seasonal-naive", {"period": 6}), 2
    )
    assert np.array_equal(made.errors[52:], np.zeros((128, 1, 2)))
