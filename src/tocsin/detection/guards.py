"""Guards: observations too close to their forecast to matter."""

import numpy as np

from tocsin.detection.settings import DetectorSettings
from tocsin.detection.views.view import Mask, Seen

NO_GUARDS: Mask = np.empty((0, 0, 0), dtype=np.bool_)


def deviating(seen: Seen, settings: DetectorSettings) -> Mask:
    """Where each feature is far enough from its forecast to alarm, `(T, N, F)`; empty if nothing is too close.

    A value without a forecast is far enough.
    """
    least, share = settings.min_deviation, settings.min_relative_deviation
    if not (least or share):
        return NO_GUARDS
    forecast = seen.forecasts[0].ahead[..., 0]
    too_close = np.abs(seen.values - forecast) < np.maximum(least, share * np.abs(forecast))
    return np.asarray(~too_close)
