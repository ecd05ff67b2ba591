"""The alarm rate where none is given."""

from tocsin.conformal.scorer import MOST_LAGS
from tocsin.detection.paper.scoring import PAPER

#: Of a stream, whose end nobody knows; and what the paper calls alpha.
STREAM, ALPHA = 0.001, 0.01
#: A history has about so many false incidents, whatever its length, so that a first look shows little else than faults;
#: short ones have fewer, since more than one in a hundred observations is no rare event.
IN_A_HISTORY, MOST = 3, 0.01


def usual_rate(observations: int | None, *, preset: str, promise: str) -> float:
    """The alarm rate of a signal whose history has so many observations; None for a stream.

    A history of any length can show it: a third of it is a past that has one such incident on average. What other
    signals are judged with it does not matter. An alarm by p can be as rare as the past that p is compared with allows.

    >>> [usual_rate(length, preset="full", promise="incidents") for length in (100, 3000, 70_000, None)]
    [0.01, 0.001, 4.3e-05, 0.001]
    """
    if preset == PAPER:
        return ALPHA
    if observations is None:
        return STREAM
    least = 0.0 if promise == "incidents" else 1 / (MOST_LAGS - 1)
    # Two digits are enough for a number that is shown.
    return max(min(float(f"{IN_A_HISTORY / max(observations, 1):.1e}"), MOST), least)
