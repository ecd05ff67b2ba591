"""Simple detectors against slow versions, one observation at a time."""

import math

import numpy as np
import pytest

from tests.evaluation.bench.making import fault_labels, name_of, noise
from tocsin.forecasting import find_period
from tocsin_bench.files import LabelledFile
from tocsin_bench.rivals import RIVALS


def file_of(values, calibration=100):
    values = np.asarray(values, dtype=float).reshape(len(values), -1)
    return LabelledFile(name_of(), "TINY", calibration, values, fault_labels(len(values)) == 1)


@pytest.fixture(scope="module")
def wave():
    rng = np.random.default_rng(3)
    values = np.sin(2 * np.pi * np.arange(400) / 20) + 0.2 * rng.normal(size=400)
    values[300:310] += 2
    return values


class SlowRegression:
    """Standardised lags and target, one step of gradient descent each, from the numbers seen so far."""

    def __init__(self):
        self.rows, self.targets = [], []
        self.weights, self.intercept = np.zeros(16), 0.0

    def predict(self, lags):
        if not self.rows:
            return None
        return self.linear(lags) * self.target_spread() + np.mean(self.targets)

    def linear(self, lags):
        deviation = np.std(self.rows, axis=0)
        away = lags - np.mean(self.rows, axis=0)
        scaled = np.divide(away, deviation, out=np.zeros(16), where=deviation > 0)
        self.scaled = scaled
        return self.intercept + self.weights @ scaled

    def target_spread(self):
        return np.std(self.targets, ddof=1) if len(self.targets) > 1 else 0.0

    def learn(self, lags, target):
        self.rows.append(lags)
        self.targets.append(target)
        spread = self.target_spread()
        scaled = (target - np.mean(self.targets)) / spread if spread else 0.0
        slope = 2 * (self.linear(lags) - scaled)
        self.weights = self.weights - 0.005 * slope * self.scaled
        self.intercept -= 0.01 * slope


@pytest.mark.slow
def test_regression(wave):
    model, expected = SlowRegression(), np.zeros(400)
    for t in range(16, 400):
        lags = wave[t - 16 : t][::-1]
        predicted = model.predict(lags)
        if predicted is not None:
            expected[t] = abs(wave[t] - predicted)
        model.learn(lags, wave[t])
    np.testing.assert_allclose(RIVALS["regression-16"](file_of(wave)), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.slow
def test_matrix_profile(wave):
    expected = np.zeros(400)
    for start in range(400 - 63):
        newest = wave[start : start + 64]
        earlier = [np.linalg.norm(newest - wave[other : other + 64]) for other in range(start - 16)]
        if earlier:
            expected[start + 63] = min(earlier)
    np.testing.assert_allclose(RIVALS["matrix-profile-64"](file_of(wave)), expected, atol=1e-6)


@pytest.mark.slow
def test_damp(wave):
    """A period is a stretch, and where nothing moves, the distance is as STUMPY has it."""
    values = wave.copy()
    values[150:175], values[220:250] = 1.0, 2.0
    shapes = np.full((381, 20), np.nan)
    for start in range(381):
        stretch = values[start : start + 20]
        shapes[start] = (stretch - stretch.mean()) / stretch.std() if np.ptp(stretch) else np.nan
    expected = np.zeros(400)
    for start in range(20, 381):
        earlier, still = shapes[: start - 19], np.isnan(shapes[: start - 19, 0])
        if np.isnan(shapes[start, 0]):
            away = np.where(still, 0.0, math.sqrt(20))
        else:
            away = np.where(still, math.sqrt(20), np.linalg.norm(earlier - shapes[start], axis=1))
        expected[start + 19] = away.min()
    np.testing.assert_allclose(RIVALS["damp"](file_of(values)), expected, atol=1e-6)


@pytest.mark.slow
def test_z_score(wave):
    expected = np.zeros(400)
    for t in range(100, 400):
        before = wave[t - 100 : t]
        expected[t] = abs(wave[t] - before.mean()) / before.std()
    np.testing.assert_allclose(RIVALS["z-score-100"](file_of(wave)), expected)


def test_ewma(wave):
    weight, expected = 2 / 289, np.zeros(400)
    mean, variance = wave[0], 0.0
    for t in range(1, 400):
        expected[t] = abs(wave[t] - mean) / max(math.sqrt(variance), 0.01 * wave[:100].std())
        change = weight * (wave[t] - mean)
        variance = (1 - weight) * (variance + change * (wave[t] - mean))
        mean += change
    np.testing.assert_allclose(RIVALS["ewma-288"](file_of(wave)), expected)


def test_seasonal_naive_takes_the_period_of_the_calibration_part(wave):
    assert find_period(wave[:100]) == 20
    expected = np.zeros(400)
    expected[20:] = np.abs(wave[20:] - wave[:-20])
    np.testing.assert_allclose(RIVALS["seasonal-naive"](file_of(wave)), expected)
    without = noise()[:, 0]
    assert find_period(without[:100]) is None
    np.testing.assert_allclose(RIVALS["seasonal-naive"](file_of(without))[1:], np.abs(np.diff(without)))


@pytest.mark.parametrize("name", sorted(RIVALS.keys() - {"damp"}))  # the size of a spike is no shape
def test_sees_the_fault(name):
    values = np.random.default_rng(5).normal(size=1200)
    values[800:806] += 15
    strangest = 400 + np.argmax(RIVALS[name](file_of(values))[400:])
    assert 800 <= strangest < 806 + 64


@pytest.mark.parametrize("name", RIVALS)
class TestEveryRival:
    def test_sees_nothing_of_the_future(self, name, wave):
        whole, part = RIVALS[name](file_of(wave)), RIVALS[name](file_of(wave[:350]))
        np.testing.assert_allclose(whole[:350], part, rtol=1e-9, atol=1e-9)

    def test_of_several_features_the_strangest_counts(self, name, wave):
        both = np.column_stack([1000 * wave[::-1], wave])
        scores = [RIVALS[name](file_of(column)) for column in both.T]
        usual = [each[:100].mean() for each in scores]
        expected = np.max([each / (size or 1) for each, size in zip(scores, usual, strict=True)], axis=0)
        np.testing.assert_allclose(RIVALS[name](file_of(both)), expected)

    def test_missing_values_are_those_before(self, name, wave):
        values, filled = wave.copy(), wave.copy()
        values[[0, 1, 200, 201, 305]] = np.nan
        filled[[0, 1]], filled[[200, 201]], filled[305] = wave[2], wave[199], wave[304]
        scores = RIVALS[name](file_of(values))
        expected = RIVALS[name](file_of(filled))
        expected[[0, 1, 200, 201, 305]] = 0
        np.testing.assert_allclose(scores, expected)

    def test_signals_that_stand_still_are_short_or_empty(self, name):
        for values in (np.full(200, 5.0), np.full(200, np.nan), np.arange(12.0), np.array([1.0, 2.0])):
            scores = RIVALS[name](file_of(values, calibration=1))
            assert scores.shape == values.shape
            assert np.isfinite(scores).all()
        still = np.full(400, 5.0)
        assert not RIVALS[name](file_of(still)).any()
        still[350] = 6
        assert 350 <= np.argmax(RIVALS[name](file_of(still))) < 350 + 64
