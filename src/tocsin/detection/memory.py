"""How much memory a detector takes, known before one is made."""

from collections.abc import Callable
from typing import Any

from tocsin.detection.nonconformity import code_of
from tocsin.detection.pipeline import Issued
from tocsin.detection.ranking import count_streams, make_scorers
from tocsin.detection.settings import DetectorSettings
from tocsin.detection.views.view import MOST_AT_ONCE


def memory_bytes(settings: DetectorSettings) -> int:
    """How many bytes the detector of one signal with these settings takes, at most over its life.

    Only single streams and series are looked at, never all of a signal: so settings that ask for more than the machine
    has can be refused without being tried. Incidents and what fleets share, such as the weights of a network, do not
    count.

    >>> memory_bytes(DetectorSettings(preset="light")) // 1000
    90
    """
    features = len(settings.feature_names)
    views, sizes = settings.chosen_views, settings.sizes
    learned, alike = count_streams(views, features)
    one, two = (make_scorers(settings, count, count, count) for count in (1, 2))
    # Single numbers beside the arrays are left out, but for those that there are many of.
    scorers = zip(one, two, (learned, alike, 1, 1), strict=True)
    total = sum(count * (larger.nbytes - smaller.nbytes) for smaller, larger, count in scorers)
    longest = max(stream.length for view in views for stream in view.streams)
    total += 4 * (alike + 1) * longest + 8 * sizes.blocks
    side = code_of(settings.nonconformity)
    total += sum(_each(lambda count, view=view: view.open(count, features, side)) for view in views)  # type: ignore[misc]
    return total + features * _of_series(settings)


def working_bytes(settings: DetectorSettings) -> int:
    """How many bytes the forecasts take while observations of one signal are judged, as many as go through at once."""
    forecaster = settings.chosen_forecaster
    if forecaster is None:
        return 0
    steps = settings.steps + settings.refresh - 1
    # Those issued, those lined up with their observations, and a number for each level.
    return 8 * MOST_AT_ONCE * len(settings.feature_names) * steps * (2 + len(forecaster.levels))


def _of_series(settings: DetectorSettings) -> int:
    """The bytes of one series that is forecast."""
    forecaster, steps = settings.chosen_forecaster, settings.steps
    if forecaster is None:
        return 0
    issued = _each(lambda count: Issued(count, steps, settings))
    return _each(lambda count: forecaster.open(count, steps + settings.refresh - 1)) + issued * (1 + settings.scaled)


def _each(make: Callable[[int], Any]) -> int:
    """What one more of something takes: not what all of them share."""
    return int(make(2).nbytes - make(1).nbytes)
