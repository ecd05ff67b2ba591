"""Simple detectors to compare with, each in a few lines: they need no forecaster and no other library.

All of them use only the past, and judge every observation in turn. Their output is larger when more anomalous, on a
scale of their own: it is not a p-value, and no threshold on it guarantees a false-alarm rate.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tocsin.compilation import compiled
from tocsin.forecasting import find_period
from tocsin_bench.charts import rolling_z
from tocsin_bench.files import LabelledFile
from tocsin_bench.results import Floats

LAGS = 16
LEARNING_RATE = 0.005
INTERCEPT_RATE = 0.01
SPAN = 288
STRETCH = 64
# If a signal does not move, this share of its spread in the calibration part counts as its noise.
LEAST_SPREAD = 0.01


@dataclass(frozen=True)
class Rival:
    """A simple detector: call it with a file for scores `[T]`, larger when more anomalous.

    A missing value is taken to be the one before it, and its own score is 0, as is that of observations that come too
    early. Of several features the most anomalous counts, each compared with its mean score in the calibration part.
    """

    description: str
    _score: Callable[[Floats, int], Floats]

    def __call__(self, file: LabelledFile) -> Floats:
        """Score every observation of a file."""
        scores = np.column_stack([self._feature(column, file.calibration) for column in file.values.T])
        if scores.shape[1] == 1:
            return scores[:, 0]
        usual = scores[: file.calibration].mean(axis=0)
        return np.asarray((scores / np.where(usual > 0, usual, 1.0)).max(axis=1))

    def _feature(self, values: Floats, calibration: int) -> Floats:
        known = np.isfinite(values)
        if not known.any():
            return np.zeros(values.size)
        # What comes before the first known value is taken to be that one.
        newest = np.maximum.accumulate(np.where(known, np.arange(values.size), np.argmax(known)))
        scores = self._score(values[newest], calibration)
        return np.where(known & np.isfinite(scores), scores, 0.0)


def _z_score(window: int) -> Callable[[Floats, int], Floats]:
    def score(values: Floats, calibration: int) -> Floats:
        return rolling_z(values[:, np.newaxis], window, _least_spread(values, calibration))[:, 0]

    return score


def _ewma(values: Floats, calibration: int) -> Floats:
    return _ewma_scores(values, 2 / (SPAN + 1), _least_spread(values, calibration))


def _seasonal_naive(values: Floats, calibration: int) -> Floats:
    period = find_period(values[:calibration]) or 1
    scores = np.zeros(values.size)
    scores[period:] = np.abs(values[period:] - values[:-period])
    return scores


def _regression(values: Floats, calibration: int) -> Floats:
    return _regression_errors(values, LAGS, LEARNING_RATE, INTERCEPT_RATE)


def _matrix_profile(values: Floats, calibration: int) -> Floats:
    return _left_profile(values, STRETCH, -(-STRETCH // 4))


def _damp(values: Floats, calibration: int) -> Floats:
    known = values[:calibration]
    length = find_period(known) or STRETCH
    return _left_shape_profile(values - known.mean(), length, 1e-6 * (float(known.std()) or 1.0))


def _least_spread(values: Floats, calibration: int) -> float:
    return LEAST_SPREAD * float(values[:calibration].std()) or 1e-6 * max(float(np.abs(values[0])), 1.0)


@compiled()
def _ewma_scores(values: Floats, weight: float, floor: float) -> Floats:
    """How far a value is from the exponentially weighted mean before it, in standard deviations weighted likewise."""
    scores = np.zeros(values.size)
    mean, variance = values[0], 0.0
    for t in range(1, values.size):
        away = values[t] - mean
        scores[t] = np.abs(away) / max(np.sqrt(variance), floor)
        mean += weight * away
        variance = (1 - weight) * (variance + weight * away**2)
    return scores


@compiled()
def _regression_errors(values: Floats, lags: int, rate: float, intercept_rate: float) -> Floats:
    """Absolute errors of a linear regression on the values before, learned online from standardised numbers.

    As in River: the lags and the target are standardised by their means and variances so far, then one step of
    gradient descent on the squared error.
    """
    scores = np.zeros(values.size)
    weights, intercept = np.zeros(lags), 0.0
    x, scaled = np.empty(lags), np.empty(lags)
    means, squares = np.zeros(lags), np.zeros(lags)
    target_mean, target_squares = 0.0, 0.0
    for t in range(lags, values.size):
        n = t - lags  # how many were learned from
        for k in range(lags):
            x[k] = values[t - 1 - k]
        spread = np.sqrt(target_squares / (n - 1)) if n > 1 else 0.0
        if n > 0:
            _standardise(x, means, squares, n, scaled)
            predicted = intercept + np.sum(weights * scaled)
            scores[t] = np.abs(values[t] - (predicted * spread + target_mean))
        n += 1
        for k in range(lags):
            before = x[k] - means[k]
            means[k] += before / n
            squares[k] += before * (x[k] - means[k])
        before = values[t] - target_mean
        target_mean += before / n
        target_squares += before * (values[t] - target_mean)
        spread = np.sqrt(target_squares / (n - 1)) if n > 1 else 0.0
        target = (values[t] - target_mean) / spread if spread > 0 else 0.0
        _standardise(x, means, squares, n, scaled)
        slope = 2 * (intercept + np.sum(weights * scaled) - target)
        slope = min(max(slope, -1e12), 1e12)
        for k in range(lags):
            weights[k] -= rate * slope * scaled[k]
        intercept -= intercept_rate * slope
    return scores


@compiled()
def _standardise(x: Floats, means: Floats, squares: Floats, count: int, scaled: Floats) -> None:
    for k in range(x.size):
        deviation = np.sqrt(squares[k] / count)
        scaled[k] = (x[k] - means[k]) / deviation if deviation > 0 else 0.0


@compiled()
def _left_profile(values: Floats, length: int, excluded: int) -> Floats:
    """The distance of the newest stretch from the nearest one before it that begins more than `excluded` earlier.

    As `left_P_` of STUMPY's `stumpi(normalize=False)`, at the last observation of each stretch. Distances of
    stretches that both moved on by one observation differ in two terms only.
    """
    scores = np.zeros(values.size)
    stretches = values.size - length + 1
    squares = np.empty(max(stretches, 0))  # from the newest stretch, by where the other begins
    for newest in range(stretches):
        end = newest + length - 1
        for other in range(newest - 1, 0, -1):
            gone, come = values[newest - 1] - values[other - 1], values[end] - values[other + length - 1]
            squares[other] = max(squares[other - 1] - gone**2 + come**2, 0.0)
        squares[0] = 0.0
        for k in range(length):
            squares[0] += (values[newest + k] - values[k]) ** 2
        if newest > excluded:
            scores[end] = np.sqrt(squares[: newest - excluded].min())
    return scores


@compiled()
def _left_shape_profile(values: Floats, length: int, least_spread: float) -> Floats:
    """The distance of the shape of the newest stretch from the nearest one before it that shares no observation.

    As `left_P_` of STUMPY's `stumpi(normalize=True)`, at the last observation of each stretch. Products of stretches
    that both moved on by one observation differ in two terms only.
    """
    scores = np.zeros(values.size)
    stretches = max(values.size - length + 1, 0)
    means, spreads, products = np.empty(stretches), np.empty(stretches), np.empty(stretches)
    for newest in range(stretches):
        stretch, end = values[newest : newest + length], newest + length - 1
        means[newest], spreads[newest] = stretch.mean(), stretch.std()
        nearest = np.inf
        for other in range(newest - length, -1, -1):
            if other > 0:
                gone, come = values[newest - 1] * values[other - 1], values[end] * values[other + length - 1]
                products[other] = products[other - 1] - gone + come
            else:
                products[0] = np.sum(stretch * values[:length])
            still = (spreads[newest] <= least_spread) + (spreads[other] <= least_spread)
            away = 0.0 if still == 2 else 0.5  # as STUMPY has it where nothing moves
            if still == 0:
                covariance = products[other] / length - means[newest] * means[other]
                away = 1.0 - covariance / (spreads[newest] * spreads[other])
            nearest = min(nearest, away)
        if newest >= length:
            scores[end] = np.sqrt(2.0 * length * max(nearest, 0.0))
    return scores


RIVALS: dict[str, Rival] = {
    "z-score-100": Rival("distance from the mean of the last 100 values, in their standard deviations", _z_score(100)),
    "z-score-288": Rival("the same of the last 288 values", _z_score(288)),
    "ewma-288": Rival("the same with exponential weights, as many in effect as 288 values", _ewma),
    "seasonal-naive": Rival("distance from the value one period before, as found in the calibration part",
                            _seasonal_naive),
    "regression-16": Rival("absolute error of a linear regression on the last 16 values, learned online", _regression),
    "matrix-profile-64": Rival("distance of the last 64 values from the most similar stretch before", _matrix_profile),
    "damp": Rival("the same of shapes, whatever their level and size, over a period as found in the calibration part",
                  _damp),
}  # fmt: skip
"""The simple detectors by name."""
