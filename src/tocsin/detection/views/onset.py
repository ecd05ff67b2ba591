"""When a change began, estimated backwards from where it was noticed."""

import numpy as np
from numpy.typing import NDArray

from tocsin.detection.views.view import Floats

# Changes are looked for among this many points: older observations in means.
POINTS = 256
# The interval holds all times at which a change is at most this many nats less likely than at the best one.
NATS = 6.0
# Noise is measured in means of this many, since neighbouring observations are correlated.
BLOCK = 16


def estimate_onset(away: Floats) -> tuple[int, int]:
    """How many observations before the last one a change began, at most and at least.

    `away` are distances from the usual level, the newest last; NaN where missing. Before the change they are noise
    around 0, and after it they have another level, or one that moves away steadily: whichever fits better.
    """
    known = np.nan_to_num(away[::-1])
    each = -(-known.size // POINTS)
    points = known[: known.size // each * each].reshape(-1, each).mean(axis=1)
    blocks = block_means(known) if known.size >= 4 * BLOCK else known
    noise = spread_of(blocks[blocks.size // 2 :]) ** 2 * (BLOCK if known.size >= 4 * BLOCK else 1) / each
    likely = likely_onsets(points, noise)
    # A point is a mean: the change may lie anywhere in it.
    return min(int(likely[-1] + 2) * each - 1, known.size - 1), max(int(likely[0]) - 1, 0) * each


def likely_onsets(points: Floats, noise: float, since: int = 0) -> NDArray[np.intp]:
    """Before how many points a change may have begun, counted from `since`, which is the least.

    `points` are distances from the usual level, the newest first, and `noise` is their variance.
    """
    count = np.arange(1, points.size + 1)
    level = np.cumsum(points) ** 2 / count
    weighted = np.cumsum(np.cumsum(points))  # the sum of (k - i) times point i
    trend = weighted**2 / (count * (count + 1) * (2 * count + 1) / 6.0)
    fit = max((level[since:], trend[since:]), key=np.max)
    return np.flatnonzero(fit >= fit.max() - 2.0 * NATS * noise)


def block_means(values: Floats) -> Floats:
    """The means of neighbouring values, which are nearly independent."""
    return np.asarray(values[: values.size // BLOCK * BLOCK].reshape(-1, BLOCK).mean(axis=1))


def spread_of(values: Floats) -> float:
    """The standard deviation, robust to outliers."""
    return 1.4826 * float(np.median(np.abs(values - np.median(values))))
