"""How much memory a detector takes, computed before creating it."""

from collections.abc import Callable
from typing import Any

from tocsin.arrays import nbytes_of
from tocsin.detection.evidence.pipeline import make_stages
from tocsin.detection.evidence.ranking import count_streams, make_scorers, make_sizes, most_waiting
from tocsin.detection.paper.scoring import HorizonScoring
from tocsin.detection.settings.detector_settings import DetectorSettings, code_of
from tocsin.detection.views.view import MOST_AT_ONCE


def memory_bytes(settings: DetectorSettings) -> int:
    """The largest number of bytes that the detector of one signal with these settings ever takes.

    It allocates only single streams and series, never a whole signal, so settings that need more memory than the
    machine has can be rejected without trying. Incidents and data shared by a fleet, such as the weights of a network,
    do not count.

    >>> memory_bytes(DetectorSettings(preset="light")) // 1000
    291
    """
    features = len(settings.feature_names)
    if settings.is_paper:
        stream = _each(lambda count: HorizonScoring(count, 1, **{**settings.paper_options, "horizons": 1}).scorer)
        return stream * features * settings.steps_ahead + _of_forecasts(settings)
    views, sizes = settings.chosen_views, settings.sizes
    learned, alike = count_streams(views, features)
    one, two = (make_scorers(settings, count, count, count) for count in (1, 2))
    # Single numbers besides the arrays are ignored, unless there are many.
    scorers = zip(one, two, (learned, alike, 1), strict=True)
    total = sum(count * int(more.nbytes - less.nbytes) for less, more, count in scorers)
    total += 4 * alike * most_waiting(views) + 8 * sizes.blocks
    smaller, larger = (nbytes_of(make_sizes(settings, count, count * learned)) for count in (1, 2))
    total += larger - smaller
    side = code_of(settings.nonconformity)
    total += sum(_each(lambda count, view=view: view.open(count, features, side)) for view in views)  # type: ignore[misc]
    return total + _of_forecasts(settings)


def working_bytes(settings: DetectorSettings) -> int:
    """How many bytes the forecasts take while a full batch of one signal's observations is judged."""
    forecaster = settings.chosen_forecaster
    if forecaster is None:
        return 0
    steps = settings.steps_ahead + settings.refresh - 1
    # The issued ones, those aligned with their observations, and a number for each level.
    return 8 * MOST_AT_ONCE * len(settings.feature_names) * steps * (2 + len(forecaster.levels))


def _of_forecasts(settings: DetectorSettings) -> int:
    """The bytes that the forecasters take for one signal."""
    one, two = (sum(stage.nbytes for stage in make_stages(settings, signals, 1)) for signals in (1, 2))
    return len(settings.feature_names) * (two - one)


def _each(make: Callable[[int], Any]) -> int:
    """The bytes for one more item, without what all of them share."""
    return int(make(2).nbytes - make(1).nbytes)
