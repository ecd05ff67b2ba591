"""What the routes answer: the verdicts of the detector on a series."""

import math
import warnings
from typing import Any

import numpy as np

from tocsin.detection import Detector, Result
from tocsin.forecasting import Floats, find_period
from tocsin_monitor.azure.requests import MOST, AzureError, ChangePointRequest, DetectRequest

# Azure's default sensitivity stands for one false alarm in a hundred points, and each 20 less for ten times fewer.
_USUAL_SENSITIVITY, _USUAL_RATE, _TENFOLD = 95.0, 0.01, 20.0
# What its default threshold of .9 lacks to that sensitivity.
_THRESHOLD_LACKS = 5.0
# What lasts for this many points is a change, unless the request has its own number.
_LASTING = 12
# An incident goes on while recent stretches reach back into it, so even a single point lasts about this long.
_STRETCH = 40


def rate_of(sensitivity: float) -> float:
    """The share of false alarms that a sensitivity stands for."""
    return float(_USUAL_RATE * 10.0 ** ((sensitivity - _USUAL_SENSITIVITY) / _TENFOLD))


def detect_entire(request: DetectRequest) -> dict[str, Any]:
    """The verdicts on all points."""
    values, steps = request.on_grid()
    rate = rate_of(request.sensitivity)
    reply = _reply(values, steps, _by_points(values, rate, request), rate, request)
    return {"period": _period_of(values, request.period), **reply}


def detect_last(request: DetectRequest) -> dict[str, Any]:
    """The verdict on the last point, from those before it."""
    values, steps = request.on_grid()
    rate = rate_of(request.sensitivity)
    detector = _by_points(values, rate, request)
    # A share of one point is none: the bound on it is for whole series.
    reply = _reply(values, steps[-1:], detector, rate, request.model_copy(update={"max_anomaly_ratio": None}))
    return {
        "period": _period_of(values[:-1], request.period),
        "suggestedWindow": min(MOST, detector.warm_up + 1),  # with this many, the verdict is calibrated
        **{name.removesuffix("s"): one[0] if isinstance(one, list) else one for name, one in reply.items()},
    }


def detect_change_points(request: ChangePointRequest) -> dict[str, Any]:
    """Where the behaviour changes: the starts of incidents that last."""
    values, steps = request.on_grid()
    rate = rate_of(100.0 * request.threshold + _THRESHOLD_LACKS)
    detector = Detector(alarm_rate=rate)
    # However early alarms are possible, a rate means nothing on series that all are shorter than one false alarm takes.
    needed = math.ceil(1 / rate) if 1 / rate > MOST else detector.warm_up + 1
    _check_length(values, needed, rate, f"threshold {request.threshold:g}")
    result = _run(detector, values)
    lasting = _STRETCH + (request.stable_trend_window or _LASTING)
    changes = np.isin(steps, [one.first for one in result.incident_list if one.last - one.first >= lasting])
    confidence = 1.0 - np.nan_to_num(result.p, nan=1.0)
    return {
        "period": _period_of(values, request.period),
        "isChangePoint": changes.tolist(),
        "confidenceScores": confidence[steps].tolist(),
    }


def _period_of(values: Floats, given: int | None) -> int:
    """The period; 0 stands for none."""
    return (find_period(values) or 0) if given is None else given


def _by_points(values: Floats, rate: float, request: DetectRequest) -> Detector:
    """A detector of single points; AzureError if the series is too short for it to find any."""
    wanted = f"sensitivity {request.sensitivity}"
    if 1 / rate > MOST:  # the detector may not take such a rate
        _check_length(values, math.ceil(1 / rate), rate, wanted)
    # By the error alone: then the band and the verdict say the same of a point.
    detector = Detector(alarm_rate=rate, views=["error"], promise="observations")
    # During warm-up, p is the smallest of all ranks times their number, so it takes that many times longer to be small.
    ranks = sum(len(view.streams) for view in detector.fleet.views)
    first = min(detector.fleet.least_reference + math.ceil(ranks / rate), detector.warm_up)
    _check_length(values, first + 1, rate, wanted)
    return detector


def _check_length(values: Floats, needed: int, rate: float, wanted: str) -> None:
    """AzureError if the series is too short for the detector to find anything."""
    means = f"{wanted} stands for one false alarm in {1 / rate:.0f} points"
    if needed > MOST:
        raise AzureError(
            "InvalidModelArgument",
            f"{means}, which takes a series of at least {needed} points, and it may have {MOST}: use a higher one",
        )
    count = int(np.isfinite(values).sum())
    if count < needed:
        raise AzureError(
            "InvalidSeries",
            f"series: {count} points are too few: {means}, and whether something is as rare as that can be told from "
            f"{needed} points on",
        )


def _run(detector: Detector, values: Floats) -> Result:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is short is what the reply says
        return detector.run(values)


def _reply(values: Floats, steps: Any, detector: Detector, rate: float, request: DetectRequest) -> dict[str, Any]:
    """The lists of Azure's reply on these steps of a series, and what it has no field for; its clients ignore that."""
    result = _run(detector, values)
    expected = np.where(np.isfinite(result.forecast), result.forecast, values)
    # Clients draw a band at every point. Where the detector has none yet, it is as wide as the errors so far that are
    # no anomalies.
    usual = np.abs(values - expected)[(result.p > rate) & ~np.isfinite(result.high)]
    margin = float(np.nanmax(usual, initial=0.0))
    banded = np.isfinite(result.low) & np.isfinite(result.high)
    low = np.where(banded, result.low, expected - margin)[steps]
    high = np.where(banded, result.high, expected + margin)[steps]
    values, expected = values[steps], expected[steps]
    count = values.size
    known = np.isfinite(result.p)[steps]
    p = np.where(known, result.p[steps], 1.0)
    found = p < rate
    if request.max_anomaly_ratio is not None:
        ranks = np.argsort(np.argsort(p, kind="stable"), kind="stable")
        found &= ranks < int(request.max_anomaly_ratio * count)
    # Clients draw the band as expectedValue + (100 - sensitivity) * upperMargin.
    scale = 100.0 - request.sensitivity
    calibrated = int((known & result.warm[steps]).sum())
    return {
        "expectedValues": expected.tolist(),
        "upperMargins": (np.maximum(high - expected, 0.0) / scale).tolist(),
        "lowerMargins": (np.maximum(expected - low, 0.0) / scale).tolist(),
        "isAnomaly": found.tolist(),
        "isNegativeAnomaly": (found & (values < expected)).tolist(),
        "isPositiveAnomaly": (found & (values > expected)).tolist(),
        "severity": np.where(found, 1.0 - p / rate, 0.0).tolist(),
        "tocsin": {
            "alarmRate": rate,
            "calibrated": calibrated,
            "bounded": int(known.sum()) - calibrated,
            "unjudged": int(count - known.sum()),
        },
    }
