"""The numbers of the detector that somebody had to choose and that its verdicts depend on.

Other sizes follow from these and from the settings. `python benchmarks/constants.py` shows what halving and doubling
each does to detection and to the promise.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple


class Constants(NamedTuple):
    """The constants, each with what it is for. They are read when a detector is created."""

    #: Evidence is the mean of this many of the largest votes: two witnesses must agree, and a third adds a little.
    witnesses: float = 2.25
    #: The first forecaster is judged by its mean error over this many horizons.
    horizons: int = 15
    #: The length of a short stretch, in observations. Stillness is measured over three times as many. Twice as many are
    #: compared with the past to see whether an incident is over; it ends after four times as many like the past.
    short: int = 16
    #: The length of a long stretch. A forecaster is asked for forecasts through a gap as long.
    long: int = 64
    #: The calibration set: this many past scores are compared with, half as much evidence for p, and this much of the
    #: past with short stretches.
    calibration: int = 2000
    #: Long stretches are compared with this much of the past.
    memory: int = 20_000
    #: The fewest past scores that one is ranked among. Other parts of the warm-up are multiples of it.
    least: int = 50
    #: A tail is fitted to the largest of n values: this many times the square root of n, and of the length of a
    #: stretch, because scores of overlapping stretches repeat each other.
    tail: float = 2.0
    #: How far a score lies beyond all others counts in full up to about this many nats, and by its logarithm further
    #: out: an exponential tail is no good model that far out, but the larger of two must stay the more anomalous.
    trust: float = 30.0
    #: Where the tail of evidence is fitted to few values, `prior` more are assumed, which decay by `prior_decay` nats.
    prior: float = 10.0
    prior_decay: float = 1.3
    #: Until a signal has blocks of its own, the highest evidence in one of n observations is taken to be about this,
    #: plus `prior_decay` times log n.
    prior_level: float = -1.7
    #: With this many nats more evidence than an alarm needs, an incident is certain, not chance. Only certain incidents
    #: are not learned: leaving out what a signal does by chance would make everything else look anomalous.
    certainty: float = 3.0
    #: A stretch is unlike a reference if it is this many times as far from it as any part of the reference is from the
    #: rest.
    reference: float = 1.2
    #: How much a new incident tightens the threshold, in nats. It relaxes again at the promised rate, until it is four
    #: such steps looser than promised. The steps of the loop that holds p are half as large.
    tightening: float = 0.1
    #: The length of the past behind a threshold, in units of the tolerated time per incident: long enough to be exact
    #: on average although neighbouring observations are correlated, short enough to follow a signal that changes.
    recalibration: int = 6


CONSTANTS = Constants()


def constants() -> Constants:
    """The constants in use."""
    return CONSTANTS


@contextmanager
def changed(**values: Any) -> Iterator[None]:
    """Use other values for detectors that are created within, to see what a constant does.

    >>> with changed(certainty=6.0):
    ...     constants().certainty
    6.0
    """
    global CONSTANTS
    before = CONSTANTS
    CONSTANTS = before._replace(**values)
    try:
        yield
    finally:
        CONSTANTS = before
