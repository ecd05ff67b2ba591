"""Signals, settings and comparisons that several tests of the detection room share."""

from dataclasses import fields

import numpy as np

from tocsin.detection import Verdicts
from tocsin.forecasting import ContextForecaster, Forecast

# Small enough that windows fill, blocks are thrown away and bands are drawn anew many times within a test.
SMALL = {"window": 250, "alarm_rate": 0.03}
LAST = {**SMALL, "forecaster": "last-value"}
ARRAYS = tuple(field.name for field in fields(Verdicts))
# What single verdicts have too.
SHOWN = (
    "value", "p", "alarm", "forecast", "low", "high", "severity", "merged", "return_period", "feature_p", "open",
    "warm", "estimated",
)  # fmt: skip


class MovingMean(ContextForecaster):
    """The mean of the newest five values at least, with quantiles one and a half deviations around it.

    Each step ahead is a little further off, so that horizons differ. It goes by no name.
    """

    name = "moving-mean of the tests"
    levels = (0.1, 0.5, 0.9)
    warm_up = 12

    def __init__(self, context_length=5):
        super().__init__(context_length=context_length)

    def parameters(self):
        return {"context_length": self.context_length}

    def _predict(self, contexts, horizon):
        there = ~np.isnan(contexts)
        count = there.sum(axis=1)
        mean = np.where(there, contexts, 0.0).sum(axis=1) / count
        spread = np.sqrt(np.where(there, (contexts - mean[:, np.newaxis]) ** 2, 0.0).sum(axis=1) / count)
        steps = 1 + 0.01 * np.arange(horizon)
        median = mean[:, np.newaxis] * steps
        width = 0.5 + spread[:, np.newaxis] * np.sqrt(1.0 + np.arange(horizon))
        return Forecast(median, np.stack([median - 1.5 * width, median, median + 1.5 * width], axis=-1))


def hard_values(seed, steps, features=1):
    """Noise with a lasting shift of level, spikes, single missing cells, missing stretches, infinities and ties."""
    rng = np.random.default_rng(seed)
    values = 5 + rng.normal(size=(steps, features))
    values += np.sin(np.arange(steps) / 4)[:, np.newaxis]
    shifted = steps * 3 // 4
    values[shifted : shifted + 30] += 6
    values[rng.random(values.shape) < 0.01] += 15
    values[rng.random(values.shape) < 0.01] -= 15
    values[rng.random(values.shape) < 0.02] = np.nan
    values[rng.random(values.shape) < 0.01] = np.inf
    values[rng.random(values.shape) < 0.01] = -np.inf
    values[steps // 2 : steps // 2 + 22] = np.nan
    values[steps // 3 : steps // 3 + 40] = 5.0
    return values


def same_verdicts(one, other, names=ARRAYS):
    """Bit for bit, NaN where NaN is."""
    for name in names:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def stacked(verdicts):
    """Single verdicts of one signal as arrays, in the shapes of `Verdicts` without the axis of signals."""
    arrays = {name: np.array([getattr(verdict, name) for verdict in verdicts]) for name in SHOWN}
    for name in ("value", "forecast", "low", "high", "feature_p"):
        arrays[name] = arrays[name].reshape(len(verdicts), -1)
    arrays["views"] = np.array([list(verdict.views.values()) for verdict in verdicts])
    return arrays


def same_as_stacked(verdicts, single):
    """Whether the verdicts on the one signal of a run are those got one by one."""
    for name in SHOWN:
        np.testing.assert_array_equal(getattr(verdicts, name)[:, 0], single[name], err_msg=name)
    np.testing.assert_array_equal(verdicts.views[:, 0] / np.log(10.0), single["views"])
