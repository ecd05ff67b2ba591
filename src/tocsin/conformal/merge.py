"""Merges of several p-values into one, with what each guarantees."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib.metadata import entry_points
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from tocsin import checks
from tocsin.conformal.scorer import SMALLEST_P, Floats

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
    # One by one: the terms beyond a row's own pairs are 0, and do not change its bits.
    return np.asarray(np.cumsum(np.exp(logs), axis=-1)[..., -1])


class Guarantee(Enum):
    """Under which assumption a merged value is again a p-value: P(merged <= alpha) <= alpha."""

    ANY_DEPENDENCE = "a p-value however the merged p-values depend on each other"
    ASYMPTOTIC = "close to a p-value under most dependence as alpha goes to 0"
    INDEPENDENCE = "a p-value only if the merged p-values are independent"
    NONE = "not a p-value; recalibrate it before calling it one"


@dataclass(frozen=True)
class Merge:
    """One way to merge p-values. Call it with an array; NaN is ignored, and all-NaN gives NaN.

    >>> MERGES["bonferroni"]([0.01, 0.5, float("nan")])
    array(0.02)
    >>> MERGES["fisher"].guarantee
    <Guarantee.INDEPENDENCE: 'a p-value only if the merged p-values are independent'>
    """

    name: str
    formula: str
    guarantee: Guarantee
    _merge: Callable[[Floats, Floats], Floats]
    #: Whether equal p-values merge to that same value.
    keeps_equals: bool = False

    def __call__(self, p: ArrayLike, axis: int = -1) -> Floats:
        """Merge `p` along `axis`."""
        values = checks.numbers("p", p)
        if values.ndim == 0:
            raise ValueError(f"p must have at least one axis to merge along, got the single number {values}")
        axis = checks.integer("axis", axis, least=-values.ndim, most=values.ndim - 1)
        outside = values[(values < 0) | (values > 1)]
        if outside.size:
            raise ValueError(f"p must lie in [0, 1] or be NaN, got {outside[0]!r}")
        ordered = np.sort(np.moveaxis(values, axis, -1), axis=-1)  # NaN goes last
        count = np.sum(~np.isnan(ordered), axis=-1).astype(np.float64)
        if ordered.shape[-1] == 0:
            return np.full(count.shape, np.nan)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            merged = self._merge(ordered, count)
        smallest = ordered[..., 0]
        merged = np.where(smallest > 0, np.clip(merged, SMALLEST_P, 1.0), np.minimum(merged, 1.0))
        # A single p-value is its own merge, whatever factor the formula has.
        merged = np.where(count == 1, smallest, merged)
        return np.asarray(np.where(count == 0, np.nan, merged))


# Each takes the p-values in ascending order along the last axis, NaN last, and how many are not NaN.


def _median(p: Floats, count: Floats) -> Floats:
    middle = np.stack([(count - 1) // 2, count // 2], axis=-1).astype(np.int64)
    return np.asarray(np.take_along_axis(p, middle, axis=-1).mean(axis=-1))


def _mean(p: Floats, count: Floats) -> Floats:
    return np.asarray(np.nansum(p, axis=-1) / count)


def _bonferroni(p: Floats, count: Floats) -> Floats:
    return count * p[..., 0]


def _tippett(p: Floats, count: Floats) -> Floats:
    return -np.expm1(count * np.log1p(-p[..., 0]))


def _fisher(p: Floats, count: Floats) -> Floats:
    # The paper drops the logarithm and prints the inverse of the distribution function; this is Fisher's own.
    statistic = -2.0 * np.nansum(np.log(p), axis=-1)
    return chi2_tail(count, statistic)


def _harmonic(p: Floats, count: Floats) -> Floats:
    # Summed one by one, so that a compiled loop gives the same bits; times a ratio that is exactly 1 for equal values.
    smallest = p[..., 0]
    total = np.nancumsum(smallest[..., np.newaxis] / p, axis=-1)[..., -1]
    return np.where(smallest == 0, 0.0, smallest * (count / total))


def _harmonic_bound(p: Floats, count: Floats) -> Floats:
    factor = np.where(count <= 2, count, np.e * np.log(count))
    return factor * _harmonic(p, count)


def _cauchy(p: Floats, count: Floats) -> Floats:
    # cot(pi p), in a form that is also accurate near 1, where 1 - p is exact.
    cotangents = np.where(p < 0.5, 1.0 / np.tan(np.pi * p), -1.0 / np.tan(np.pi * (1.0 - p)))
    # Large but finite for the smallest p-values, so that the minus infinity of a 1 still decides.
    cotangents = np.minimum(cotangents, 1e300)
    merged = np.arctan2(1.0, np.nansum(cotangents, axis=-1) / count) / np.pi
    # A p-value of exactly 0 decides, even together with a 1, whose cotangent is minus infinity.
    return np.where(p[..., 0] == 0, 0.0, merged)


def _hommel(p: Floats, count: Floats) -> Floats:
    ranks = np.arange(1.0, p.shape[-1] + 1.0)
    harmonic_number = np.cumsum(1.0 / ranks)[count.astype(np.int64) - 1]
    return np.asarray(harmonic_number * count * np.fmin.reduce(p / ranks, axis=-1))


MERGES = {
    merge.name: merge
    for merge in (
        Merge("median", "median(p)", Guarantee.NONE, _median, keeps_equals=True),
        Merge("twice-median", "2 median(p)", Guarantee.ANY_DEPENDENCE, lambda p, k: 2.0 * _median(p, k)),
        Merge("twice-mean", "2 mean(p)", Guarantee.ANY_DEPENDENCE, lambda p, k: 2.0 * _mean(p, k)),
        Merge("bonferroni", "k min(p)", Guarantee.ANY_DEPENDENCE, _bonferroni),
        Merge("tippett", "1 - (1 - min(p))^k", Guarantee.INDEPENDENCE, _tippett),
        Merge("fisher", "P(chi2 with 2k degrees of freedom > -2 sum(log p))", Guarantee.INDEPENDENCE, _fisher),
        Merge("harmonic", "k / sum(1/p)", Guarantee.NONE, _harmonic, keeps_equals=True),
        Merge("harmonic-bound", "e log(k) k / sum(1/p)", Guarantee.ANY_DEPENDENCE, _harmonic_bound),
        Merge("cauchy", "P(Cauchy > mean(cot(pi p)))", Guarantee.ASYMPTOTIC, _cauchy, keeps_equals=True),
        Merge("hommel", "(1 + 1/2 + ... + 1/k) min over i of k p_(i) / i", Guarantee.ANY_DEPENDENCE, _hommel),
    )
}
"""The built-in merges, by name."""

ENTRY_POINTS = "tocsin.merges"


@cache
def available_merges() -> dict[str, Merge]:
    """All merges by name, those of other packages last; built-in names take precedence."""
    merges = dict(MERGES)
    for point in entry_points(group=ENTRY_POINTS):
        merge = point.load()
        if not isinstance(merge, Merge):
            raise TypeError(f"the entry point {point.name!r} of {ENTRY_POINTS} must be a Merge, got {merge!r}")
        merges.setdefault(point.name, merge)
    return merges


def merge_p_values(p: ArrayLike, how: str, axis: int = -1) -> Floats:
    """Merge the p-values in `p` along `axis`; `how` is the name of a merge.

    `available_merges()` lists them with their guarantees.


    >>> merge_p_values([[0.01, 0.2, 0.3], [0.5, 0.5, 0.5]], "cauchy").round(4)
    array([0.0281, 0.5   ])
    """
    merges = MERGES if how in MERGES else available_merges()
    return merges[checks.choice("how", how, merges)](p, axis)
