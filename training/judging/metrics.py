"""Measures of how good forecasts are."""

from collections.abc import Iterable, Sequence

import numpy as np

from tocsin.forecasting.forecaster import Floats


def pinball_losses(truth: Floats, quantiles: Floats, levels: Sequence[float]) -> Floats:
    """The loss of every quantile, one axis more than `truth`: least, on average, for the true quantiles.

    >>> pinball_losses(np.array([2.0]), np.array([[1.0, 4.0]]), [0.1, 0.9])
    array([[0.1, 0.2]])
    """
    shortfall = truth[..., np.newaxis] - quantiles
    shares = np.asarray(levels)
    return np.maximum(shares * shortfall, (shares - 1) * shortfall)


def weighted_quantile_loss(truth: Floats, quantiles: Floats, levels: Sequence[float]) -> float:
    """Twice the sum of the pinball losses, the mean over levels, relative to the sum of the absolute truths."""
    per_level = pinball_losses(truth, quantiles, levels).reshape(-1, len(levels)).sum(axis=0)
    return float(2 * per_level.mean() / np.abs(truth).sum())


def seasonal_error(context: Floats, period: int) -> float:
    """The mean absolute difference to the value one period before: the unit of MASE."""
    return float(np.abs(context[period:] - context[:-period]).mean())


def scaled_error(truth: Floats, median: Floats, scales: Floats) -> float:
    """MASE: absolute errors of the windows `(windows, horizon)`, each in units of its own scale."""
    return float((np.abs(truth - median).mean(axis=1) / scales).mean())


def coverage(truth: Floats, low: Floats, high: Floats) -> float:
    """The share of truths within the band, its ends included."""
    return float(((low <= truth) & (truth <= high)).mean())


def geometric_mean(ratios: Iterable[float]) -> float:
    """The mean of ratios, for which twice as good and twice as bad cancel."""
    return float(np.exp(np.log(np.fromiter(ratios, dtype=np.float64)).mean()))


def rank(ours: float, others: Iterable[float]) -> int:
    """1 where none of the others is lower. What is no number is worse than all."""
    return 1 + sum(not ours <= other for other in others)
