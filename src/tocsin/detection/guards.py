"""Guards: alarms that are too close to the forecast to matter."""

import numpy as np

from tocsin.detection.settings import DetectorSettings
from tocsin.detection.verdict import Verdicts


def cancel_small_deviations(verdicts: Verdicts, settings: DetectorSettings) -> None:
    """Cancel alarms whose most anomalous feature is too close to its forecast.

    If only joint views contributed, that is the feature furthest from its forecast.
    """
    least, share = settings.min_deviation, settings.min_relative_deviation
    if not (least or share):
        return
    for step, column in np.argwhere(verdicts.alarm):
        p, forecasts = verdicts.feature_p[step, column], verdicts.forecast[step, column]
        deviations = np.abs(verdicts.value[step, column] - forecasts)
        if np.isnan(p).all():
            p = -deviations
        if np.isnan(p).all():
            continue
        most_anomalous = np.nanargmin(p)
        forecast, deviation = forecasts[most_anomalous], deviations[most_anomalous]
        if deviation < max(least, share * abs(forecast)):
            verdicts.alarm[step, column] = False
