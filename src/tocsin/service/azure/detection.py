"""What the routes answer: the detector judges the points that it has enough past for, and a robust band the others."""

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.detection import Detector
from tocsin.forecasting import find_period
from tocsin.forecasting.forecaster import Floats
from tocsin.service.azure.band import (
    SHORTEST,
    centred_median,
    distance_at,
    past_median,
    scale_of,
    season_of,
    tail_of,
)
from tocsin.service.azure.requests import MOST, ChangePointRequest, DetectRequest

# Azure's default sensitivity stands for one false alarm in a hundred points, and each 20 less for ten times fewer.
_USUAL_SENSITIVITY, _USUAL_RATE, _TENFOLD = 95.0, 0.01, 20.0
# What its default threshold of .9 lacks to that sensitivity.
_THRESHOLD_LACKS = 5.0
# The spread of the difference between two medians of n values is about so many times theirs, over the root of n.
_SPREAD_OF_MEDIANS = 1.8
_OF_LAST = {
    "expectedValues": "expectedValue",
    "upperMargins": "upperMargin",
    "lowerMargins": "lowerMargin",
    "isAnomaly": "isAnomaly",
    "isNegativeAnomaly": "isNegativeAnomaly",
    "isPositiveAnomaly": "isPositiveAnomaly",
    "severity": "severity",
}


@dataclass(frozen=True)
class _JudgedSteps:
    """For each step: what was expected, the band, how rare its error is, and whether that is calibrated."""

    expected: Floats
    low: Floats
    high: Floats
    rarity: Floats
    calibrated: NDArray[np.bool_]

    def at(self, steps: NDArray[np.int64]) -> "_JudgedSteps":
        return _JudgedSteps(
            self.expected[steps], self.low[steps], self.high[steps], self.rarity[steps], self.calibrated[steps]
        )


def rate_of(sensitivity: float) -> float:
    """The share of false alarms that a sensitivity stands for."""
    return float(_USUAL_RATE * 10.0 ** ((sensitivity - _USUAL_SENSITIVITY) / _TENFOLD))


def detect_entire(request: DetectRequest) -> dict[str, Any]:
    """The verdicts on all points."""
    values, steps = request.on_grid()
    period = _period_of(values, request.period)
    season = season_of(values, period)
    expected = centred_median(values - season, _width(period)) + season
    judged = _judge(values, expected, values.size, rate_of(request.sensitivity)).at(steps)
    return {"period": period, **_reply(values[steps], judged, request)}


def detect_last(request: DetectRequest) -> dict[str, Any]:
    """The verdict on the last point, from those before it."""
    values, steps = request.on_grid()
    past, rate = values[:-1], rate_of(request.sensitivity)
    period = _period_of(past, request.period)
    season = season_of(past, period)
    season = np.append(season, season[-period] if 0 < period <= past.size else 0.0)
    expected = past_median(values - season, _width(period)) + season
    judged = _judge(values, expected, past.size, rate).at(steps[-1:])
    # A share of one point is none: the bound on it is for whole series.
    reply = _reply(values[-1:], judged, request.model_copy(update={"max_anomaly_ratio": None}))
    return {
        "period": period,
        "suggestedWindow": min(MOST, _detector(rate).warm_up + 1),  # with so many, the verdict is calibrated
        **{name: reply[key][0] for key, name in _OF_LAST.items()},
        "tocsin": reply["tocsin"],
    }


def detect_change_points(request: ChangePointRequest) -> dict[str, Any]:
    """Where the level changes: the median from a point on is farther from the one before it than at points nearby."""
    values, steps = request.on_grid()
    period = _period_of(values, request.period)
    level = values - season_of(values, period)
    width = request.stable_trend_window or _width(period)
    before = past_median(level, width)
    after = np.append(np.nan, past_median(level[::-1], width)[::-1][:-1])
    change = np.nan_to_num(np.abs(after - before))
    change[:width] = change[level.size - width + 1 :] = 0.0  # one of the two has too few values
    scale = scale_of(level - centred_median(level, width | 1)) * _SPREAD_OF_MEDIANS / math.sqrt(width)
    rarity = tail_of(_distances(change, scale))
    highest = np.array([change[max(0, at - width) : at + width + 1].max() for at in range(change.size)])
    found = (change > 0.0) & (change == highest) & (rarity <= rate_of(100.0 * request.threshold + _THRESHOLD_LACKS))
    return {
        "period": period,
        "isChangePoint": found[steps].tolist(),
        "confidenceScores": (1.0 - rarity)[steps].tolist(),
    }


def _period_of(values: Floats, given: int | None) -> int:
    """The period; 0 stands for none."""
    return (find_period(values) or 0) if given is None else given


def _width(period: int) -> int:
    return max(SHORTEST, period | 1)


def _judge(values: Floats, expected: Floats, fitted: int, rate: float) -> _JudgedSteps:
    """Judge all steps: by the detector, and before it is warm by the spread of the first `fitted` errors."""
    expected = np.where(np.isnan(expected), values, expected)
    errors = np.abs(values - expected)
    scale = scale_of(errors[:fitted])
    margin = distance_at(rate) * scale
    estimated = _JudgedSteps(
        expected, expected - margin, expected + margin, tail_of(_distances(errors, scale)), np.zeros(values.size, bool)
    )
    detector = _detector(rate)
    if values.size <= detector.warm_up:
        return estimated
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is short is what the reply says
        verdicts = detector.run(values).verdicts
    low, high, forecast = verdicts.low[:, 0, 0], verdicts.high[:, 0, 0], verdicts.forecast[:, 0, 0]
    p, own = verdicts.p[:, 0], verdicts.warm[:, 0] & np.isfinite(verdicts.p[:, 0])
    own &= np.isfinite(low) & np.isfinite(high)
    return _JudgedSteps(
        np.where(own, forecast, estimated.expected),
        np.where(own, low, estimated.low),
        np.where(own, high, estimated.high),
        np.where(own, p, estimated.rarity),
        own,
    )


def _distances(errors: Floats, scale: float) -> Floats:
    """Errors in scales. Where there never was one, any is beyond all bounds."""
    return errors / scale if scale > 0.0 else np.where(errors > 0.0, np.inf, 0.0)


def _detector(rate: float) -> Detector:
    # By the error alone: then the band and the verdict say the same of a point.
    return Detector(alarm_rate=rate, views=["error"], promise="observations")


def _reply(values: Floats, judged: _JudgedSteps, request: DetectRequest) -> dict[str, Any]:
    """The lists of Azure's reply, and what it has no field for; its clients ignore that."""
    rate = rate_of(request.sensitivity)
    found = judged.rarity <= rate
    if request.max_anomaly_ratio is not None:
        ranks = np.argsort(np.argsort(judged.rarity, kind="stable"), kind="stable")
        found &= ranks < int(request.max_anomaly_ratio * values.size)
    # Clients draw the band as expectedValue + (100 - sensitivity) * upperMargin.
    scale = 100.0 - request.sensitivity
    calibrated = int(judged.calibrated.sum())
    return {
        "expectedValues": judged.expected.tolist(),
        "upperMargins": (np.maximum(judged.high - judged.expected, 0.0) / scale).tolist(),
        "lowerMargins": (np.maximum(judged.expected - judged.low, 0.0) / scale).tolist(),
        "isAnomaly": found.tolist(),
        "isNegativeAnomaly": (found & (values < judged.expected)).tolist(),
        "isPositiveAnomaly": (found & (values > judged.expected)).tolist(),
        "severity": np.where(found, 1.0 - judged.rarity / rate, 0.0).tolist(),
        "tocsin": {"alarmRate": rate, "calibrated": calibrated, "estimated": values.size - calibrated},
    }
