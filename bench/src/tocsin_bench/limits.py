"""How fast, and how surely, anything can be found in white noise at a given rate of false alarms."""

import math

import numpy as np

from tocsin.conformal.merge import normal_cdf, normal_quantile

# Nodes of the quadrature: run lengths no longer change in the tenth digit.
_NODES = 80


def run_length(threshold: float, slack: float, shift: float = 0.0) -> float:
    """The mean number of observations until a one-sided CUSUM, which starts at 0, exceeds its threshold.

    The observations are standard normal around `shift`. The integral equation L(u) = 1 + L(0) F(slack - u) +
    integral of L(s) f(s + slack - u) over [0, threshold], F and f around the shift, by Gauss-Legendre quadrature.

    >>> round(run_length(5, 0.5)), round(run_length(5, 0.5, 1.0), 1)
    (931, 10.4)
    """
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    at = np.append(0.5 * threshold * (nodes + 1), 0.0)  # the last one is the start
    steps = at[np.newaxis, :-1] + slack - shift - at[:, np.newaxis]
    matrix = np.zeros((at.size, at.size))
    matrix[:, :-1] = 0.5 * threshold * weights * np.exp(-0.5 * steps**2) / math.sqrt(2 * math.pi)
    matrix[:, -1] = normal_cdf(slack - shift - at)
    return float(np.linalg.solve(np.eye(at.size) - matrix, np.ones(at.size))[-1])


def two_sided(threshold: float, slack: float, shift: float = 0.0) -> float:
    """The same for a CUSUM of either side: their rates add up."""
    return 1 / (1 / run_length(threshold, slack, shift) + 1 / run_length(threshold, slack, -shift))


def least_delay(shift: float, rate: float) -> float:
    """The mean delay of the two-sided CUSUM that knows the size of the shift and raises false alarms at this rate.

    No chart with this rate has a shorter worst mean delay for that shift (Moustakides 1986).

    >>> [round(least_delay(shift, 1 / 1000), 1) for shift in (1.0, 2.0, 3.0)]
    [11.9, 3.8, 2.0]
    """
    slack, needed = shift / 2, 2 / rate  # of one side
    low, high = 0.0, 1.0
    while run_length(high, slack) < needed:
        low, high = high, 1.5 * high
    while high - low > 1e-7:
        middle = (low + high) / 2
        low, high = (middle, high) if run_length(middle, slack) < needed else (low, middle)
    return two_sided(high, slack, shift)


def most_spikes(size: float, rate: float) -> float:
    """The largest share of single spikes of this size that can be found at this rate of false alarms.

    >>> round(most_spikes(4.0, 1 / 1000), 3)
    0.761
    """
    bound = float(normal_quantile(np.array(1 - rate / 2)))
    return float(normal_cdf(np.array(size - bound)) + normal_cdf(np.array(-size - bound)))
