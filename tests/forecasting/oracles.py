"""Slow, obvious versions of the forecasters: whole histories in lists, formulas as they are written down."""

import math

import numpy as np

from tocsin.forecasting import find_period


def last_value(history, horizon):
    """The last value that is there."""
    there = [value for value in history if not math.isnan(value)]
    return np.full(horizon, there[-1] if there else math.nan)


def seasonal_naive(history, horizon, period):
    """The same phase one, two or three periods before; the last value where all three are missing."""
    forecast = last_value(history, horizon)
    begun = list(history)
    while begun and math.isnan(begun[0]):
        begun.pop(0)
    if period == 0 or not begun:
        return forecast
    for step in range(horizon):
        phase = step % period  # step 0 comes right behind the history
        for periods in (3, 2, 1):  # the nearest has the last word
            at = len(begun) + phase - periods * period
            if at >= 0 and not math.isnan(begun[at]):
                forecast[step] = begun[at]
    return forecast


def smoothed_levels(history, rate):
    """The level before each value that is there, and behind the last."""
    level, levels = math.nan, []
    for value in history:
        if not math.isnan(value):
            levels.append(level)
            level = value if math.isnan(level) else (1 - rate) * level + rate * value
    return np.array([*levels, level])


def exponential_smoothing(history, horizon, rates, forget):
    """The level of the rate with the least sum of absolute errors, the error of k values ago counted forget**k."""
    there = np.array([value for value in history if not math.isnan(value)])
    sums, levels = [], []
    for rate in rates:
        level = smoothed_levels(history, rate)
        errors = np.abs(there - level[:-1])[1:]
        sums.append(np.sum(errors * forget ** np.arange(errors.size)[::-1]))
        levels.append(level[-1])
    return np.full(horizon, levels[int(np.argmin(sums))])


class Autoregression:
    """One series; every solution is computed anew from all the rows that were ever learned."""

    def __init__(self, horizon, *, lags, period, memory, ridge, search=None):
        self.horizon, self.lags, self.ridge = horizon, lags, ridge
        self.forget = 1 - 1 / memory
        self.stops = {search // 2**k for k in range(6)} if period is None else set()
        self.period = period or 0
        self.filled, self.missing = [], []
        self.gap = 0
        self.issued = None
        self.forget_everything()

    def forget_everything(self):
        self.rows, self.size, self.weights = [], 0.0, None

    def push(self, value):
        """Take a value; returns the forecast."""
        if not self.filled and math.isnan(value):
            return np.full(self.horizon, math.nan)
        absent = math.isnan(value)
        self.gap = self.gap + 1 if absent else 0
        if absent:
            value = self.issued[min(self.gap, self.horizon) - 1]
            if self.gap > self.horizon and 0 < self.period <= len(self.filled):
                value = self.filled[-self.period]
        self.filled.append(value)
        self.missing.append(absent)
        if self.learn(len(self.filled) - 1 - self.horizon) and len(self.rows) % (4 if len(self.rows) < 64 else 16) == 0:
            self.solve()
        forecast = self.forecast()
        if not absent:
            self.issued = forecast
        if len(self.filled) in self.stops:
            self.look_for_period()
        return forecast

    def look_for_period(self):
        found = find_period(np.where(self.missing, np.nan, self.filled)) or 0
        if found != self.period:
            self.period = found
            self.forget_everything()
            for now in range(len(self.filled) - self.horizon):
                self.learn(now)
            self.solve()

    def row(self, now):
        """What is known at time `now`, relative to the value then; one period ago, relative to the value then."""
        x = [self.filled[now - lag] - self.filled[now] for lag in range(1, self.lags)]
        if self.period > self.lags:
            for step in range(1, self.horizon + 1):
                back = self.period * math.ceil(step / self.period)
                x.append(self.filled[now + step - back] - self.filled[now - self.period])
            x.append(self.filled[now - self.period] - self.filled[now])
        return np.array(x)

    def learn(self, now):
        """Whether there was something to learn from the row at `now`."""
        if now < max(self.lags, self.period):
            return False
        targets = slice(now + 1, now + 1 + self.horizon)
        if np.mean(self.missing[targets]) > 0.5:
            return False
        row = np.concatenate([self.row(now), np.array(self.filled[targets]) - self.filled[now]])
        largest = np.abs(row).max()
        if not 1e-140 < largest < 1e140:
            return False
        if self.size == 0:
            self.size = largest
        else:
            row *= min(1, 8 * self.size / largest)
            self.size = 0.99 * self.size + 0.01 * min(largest, 2 * self.size)
        self.rows.append(row)
        return True

    def solve(self):
        if not self.rows:
            return
        rows = np.array(self.rows)
        x, y = rows[:, : -self.horizon], rows[:, -self.horizon :]
        decay = self.forget ** np.arange(len(rows))[::-1]
        gram = x.T @ (decay[:, None] * x)
        if np.trace(gram) > 1e-280:
            # The prior weighs as much as `ridge` rows of the usual size in which nothing changed.
            typical = np.trace(gram) / (len(gram) * decay.sum())
            prior = self.ridge * typical + 1e-9 * np.trace(gram)
            self.weights = np.linalg.solve(gram + prior * np.eye(len(gram)), x.T @ (decay[:, None] * y))

    def forecast(self):
        now = len(self.filled) - 1
        forecast = np.full(self.horizon, self.filled[now])
        if self.weights is not None and now >= max(self.lags, self.period):
            forecast += self.row(now) @ self.weights
        return forecast


def autocorrelation(values, most):
    """Products over squares of the pairs that are there, after a straight line was taken off; lags 0 to `most`."""
    times = np.flatnonzero(~np.isnan(values))
    line = np.stack([np.ones(times.size), times], axis=1)
    coefficients = np.linalg.lstsq(line, values[times], rcond=None)[0]
    rest = dict(zip(times.tolist(), values[times] - line @ coefficients, strict=True))
    correlations = []
    for lag in range(most + 1):
        pairs = np.array([(rest[time], rest[time + lag]) for time in rest if time + lag in rest]).reshape(-1, 2)
        correlations.append(2 * np.sum(pairs[:, 0] * pairs[:, 1]) / np.sum(pairs**2) if pairs.size else 0.0)
    return np.array(correlations)


def period(values, high=0.3, rise=0.3, comes_back=0.5, almost=0.9):
    """The lag of the first broad peak of the autocorrelation that is among the highest, at most a third; or None."""
    most = len(values) // 3
    if most < 3 or np.isnan(values).mean() > 0.5:
        return None
    distance = np.abs(values - np.nanmedian(values))
    third = np.sort(distance[~np.isnan(distance)])[-3]
    if third == 0:
        return None
    r = autocorrelation(np.clip(values, np.nanmedian(values) - third, np.nanmedian(values) + third), 2 * most)
    peaks = [
        lag
        for lag in range(2, most + 1)
        if r[lag] >= r[lag - 1]
        and r[lag] > r[lag + 1]
        and r[lag] >= high
        and r[lag] - min(r[:lag]) >= rise
        and r[2 * lag] >= comes_back * r[lag]
    ]
    if not peaks:
        return None
    first = next(lag for lag in peaks if r[lag] >= almost * max(r[peak] for peak in peaks))
    return max((lag for lag in peaks if first <= lag < 1.5 * first), key=lambda lag: r[lag])
