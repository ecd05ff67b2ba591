"""The few probability distributions that are needed, to full double precision: a library for them would take 150 MB."""

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_erfc = np.frompyfunc(math.erfc, 1, 1)  # accurate in both tails


def normal_cdf(values: Floats) -> Floats:
    """The standard normal distribution function; NaN stays NaN.

    >>> normal_cdf(np.array([0.0, -1.959963984540054])).round(6).tolist()
    [0.5, 0.025]
    """
    return 0.5 * np.asarray(_erfc(-math.sqrt(0.5) * np.asarray(values)), dtype=np.float64)


def normal_quantile(probabilities: Floats) -> Floats:
    """The standard normal quantile function; infinite at 0 and 1.

    >>> normal_quantile(np.array([0.5, 0.975, 1.0])).round(6).tolist()
    [0.0, 1.959964, inf]
    """
    given = np.asarray(probabilities, dtype=np.float64)
    inverse = NormalDist().inv_cdf
    ends = {0.0: -math.inf, 1.0: math.inf}
    found = [inverse(p) if 0 < p < 1 else ends.get(p, math.nan) for p in given.ravel().tolist()]
    return np.array(found, dtype=np.float64).reshape(given.shape)


def chi2_tail(pairs: Floats, statistic: Floats) -> Floats:
    """The probability that chi-squared with 2 `pairs` degrees of freedom exceeds this: a sum of `pairs` terms.

    >>> chi2_tail(np.array([2.0]), np.array([9.487729])).round(6).tolist()
    [0.05]
    """
    half = np.asarray(statistic, dtype=np.float64)[..., np.newaxis] / 2.0
    power = np.arange(np.max(pairs, initial=1.0))
    factorials = np.array([math.lgamma(j + 1.0) for j in power])
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(power == 0, 0.0, power * np.log(half)) - factorials - half
    logs = np.where((power < np.asarray(pairs)[..., np.newaxis]) & np.isfinite(half), logs, -np.inf)
    return np.asarray(np.exp(logs).sum(axis=-1))
