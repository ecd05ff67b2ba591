"""The score of the Numenta Anomaly Benchmark: labelled windows, and one threshold for all files."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

PROBATION = 0.15
"""The share of a file that is not scored, of at most `LONGEST` observations."""
LONGEST = 5000

# Beyond this, in widths of the last window, a false alarm costs its full weight.
_FAR = 3.0


class Profile(NamedTuple):
    """What a window that is found is worth, and what a false alarm and a missed window cost."""

    found: float
    false: float
    missed: float


PROFILES = {
    "standard": Profile(1.0, 0.11, 1.0),
    "low FP": Profile(1.0, 0.22, 1.0),
    "low FN": Profile(1.0, 0.11, 2.0),
}
"""NAB's three profiles."""


@dataclass(frozen=True, eq=False)
class ScoredFile:
    """`scores[T]` of a file, larger when more anomalous, and `windows[n, 2]`: the first and last row of each."""

    scores: Floats
    windows: Integers


class NabScore(NamedTuple):
    """0 for a detector that never alarms, 100 for a perfect one; alarms are scores of at least `threshold`."""

    score: float
    threshold: float


def probation(length: int) -> int:
    """How many observations at the beginning of a file are not scored."""
    return int(min(np.floor(PROBATION * length), PROBATION * LONGEST))


def nab_score(files: Sequence[ScoredFile], profile: Profile, threshold: float | None = None) -> NabScore:
    """NAB's score of a detector on all files together, at a threshold, or by default at the best one in hindsight.

    A window counts once, by the first alarm in it: the earlier the better. Each alarm outside costs, the more the
    farther it is from the window before. A window that lies in the probation does not count.
    """
    scores, gains, counted = zip(*(_gains(file, profile) for file in files), strict=True)
    if not sum(counted):
        return NabScore(np.nan, np.inf)
    null, perfect = -profile.missed * sum(counted), profile.found * sum(counted)
    # Thresholds from above: each lower one adds what the observations at it gain.
    order = np.argsort(-np.concatenate(scores), kind="stable")
    ordered = np.concatenate(scores)[order]
    lasts = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))
    thresholds = np.append(np.inf, ordered[lasts])
    totals = null + np.append(0.0, np.cumsum(np.concatenate(gains)[order])[lasts])
    best = int(np.argmax(totals)) if threshold is None else int(np.flatnonzero(thresholds >= threshold)[-1])
    return NabScore(100 * float((totals[best] - null) / (perfect - null)), float(thresholds[best]))


def _gains(file: ScoredFile, profile: Profile) -> tuple[Floats, Floats, int]:
    """The scores after the probation, what each adds once the threshold has come down to it, and how many windows."""
    start = probation(file.scores.size)
    worth = _worth(file, profile)
    counted = [(first, last) for first, last in file.windows if last >= start]
    for first, last in counted:
        inside = np.arange(max(first, start), last + 1)
        by_score = inside[np.argsort(-file.scores[inside], kind="stable")]
        best_so_far = np.maximum.accumulate(worth[by_score])
        worth[by_score] = np.diff(best_so_far, prepend=-profile.missed)
    return file.scores[start:], worth[start:], len(counted)


def _worth(file: ScoredFile, profile: Profile) -> Floats:
    """What an alarm is worth at each observation, were it the only one."""
    rows = np.arange(file.scores.size)
    worth = np.full(rows.size, -profile.false)
    for first, last in file.windows:
        width = last - first + 1
        after = rows[last + 1 :]
        position = (after - last) / (width - 1) if width > 1 else np.full(after.size, np.inf)
        worth[after] = profile.false * _sigmoid(position)
    for first, last in file.windows:
        inside = rows[first : last + 1]
        worth[inside] = profile.found * _sigmoid((inside - last - 1) / (last - first + 1)) / _sigmoid(np.array(-1.0))
    return worth


def _sigmoid(position: Floats) -> Floats:
    """From about 1 a window's width before its end, by 0 at its end, to -1 far behind it."""
    return np.where(position > _FAR, -1.0, np.tanh(-2.5 * position))
