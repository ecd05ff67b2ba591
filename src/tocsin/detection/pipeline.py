"""From values to p-values, for many signals at once."""

import math
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.conformal import MERGES, W1ACAS, SlidingWindow
from tocsin.conformal.scorer import Floats, Mask
from tocsin.detection.alignment import Alignment
from tocsin.detection.nonconformity import code_of, sides_of
from tocsin.detection.settings import DetectorSettings
from tocsin.detection.verdict import Verdicts

Rows = NDArray[np.intp]

# How often the band is drawn anew, in observations. It moves slowly, and takes longer than a p-value.
BAND_EVERY = 100
# How many observations go through at once, at most, so that memory stays small.
MOST_TOGETHER = 100
# Of so few signals observations are taken together to see whether any is held back: it takes a copy of what is kept.
MOST_TRIED = 8
NO_SPREAD: Floats = np.empty((0, 0, 0, 0))


@dataclass
class _Found:
    """What one pass over the scorers found, before anything is decided: of T observations of N signals."""

    scores: Floats  # (T, all streams)
    horizon_p: Floats  # (T, N, F, H)
    feature_p: Floats  # (T, N, F)
    merged: Floats  # (T, N)
    second_scores: Floats  # (T, all signals)
    p: Floats  # (T, N)
    warm: Mask  # (T, N)


class Pipeline:
    """Forecasts, aligns, scores and merges the observations of `signals` signals.

    Signals never look at each other. Whether they are given one observation at a time or a whole history makes no
    difference to the numbers.
    """

    def __init__(self, signals: int, settings: DetectorSettings) -> None:
        self.signals, self.features, self.settings = signals, len(settings.feature_names), settings
        self.forecaster = settings.chosen_forecaster
        self._kernels = _load_kernels()
        self.horizons = 1 if self.forecaster is None else settings.horizons
        self.scored_horizons = settings.scored_horizons
        self.settles = self._recovers = 0
        if self.forecaster is not None:
            self.settles = self.forecaster.settles
            # Forecasts made within the gap are no better than those made from what was filled in for it.
            self._recovers = max(self.forecaster.recovers, settings.horizons)
        self._kind = code_of(settings.nonconformity)
        if self.forecaster is None:
            self._kind = self._kernels.HIGH  # scores given from outside are taken as they are
        self._merge = self._kernels.MEDIAN
        if self.scored_horizons > 1:
            self._merge = self._kernels.COMPILED_MERGES.get(settings.merge, self._kernels.MEDIAN)
        self._shape = (signals, self.features, sides_of(settings.nonconformity), self.scored_horizons)
        sizes = settings.sizes
        self.scorer = W1ACAS(
            math.prod(self._shape),
            alpha_c=sizes.alpha_c,
            window=sizes.window,
            # Plain steps learn as well as Adam's here and need no moments, half of what a signal would take. Gradients
            # are of the order of 1/window.
            optimizer="sgd",
            learning_rate=settings.learning_rate * sizes.window,
            prior="extend",
            threads=settings.threads,
        )
        self.recalibration = (
            SlidingWindow(signals, window=sizes.recalibration, dtype="float64") if settings.recalibrate else None
        )
        if self.forecaster is not None:
            series = signals * self.features
            self._session = self.forecaster.open(series, self.horizons + settings.refresh - 1)
            self._medians = Alignment(series, self.horizons, settings.refresh)
            self._spreads = Alignment(series, self.horizons, settings.refresh) if settings.scaled else None
        self.seen = np.zeros(signals, dtype=np.int64)
        self.scored = np.zeros(signals, dtype=np.int64)
        self._strange = np.zeros(signals, dtype=np.int64)
        self._gaps = np.zeros((signals, self.features), dtype=np.int64)
        self._rests = np.zeros((signals, self.features), dtype=np.int64)
        self._quantiles = np.full(self._shape, np.inf)
        self._fades = np.zeros(self._shape)
        #: The rows of all signals. Who passes these very ones is spared what is to be done for a choice of rows.
        self.everything = np.arange(signals)
        self._all_series = np.arange(signals * self.features)

    def run(self, values: Floats, rows: Rows | None = None) -> Verdicts:
        """Take `values[T, N, F]`, T observations of the signals `rows` (all of them if None)."""
        rows = self.everything if rows is None else rows
        if values.size == 0:
            return self._nothing(*values.shape[:2])
        values = np.where(np.isinf(values), np.nan, values)
        parts: list[Verdicts] = []
        first = 0
        while first < values.shape[0]:
            part = values[first : first + self._steps_together(rows)]
            parts.append(self._run_holding(part, rows) if self.settings.learn == "hold" else self._absorb(part, rows))
            first += parts[-1].p.shape[0]
        return Verdicts.joined(parts)

    def _nothing(self, steps: int, count: int) -> Verdicts:
        """The verdicts on no observations at all."""
        shape = (steps, count, self.features, self.scored_horizons)
        one, no = np.empty(shape[:2]), np.empty(shape[:2], dtype=np.bool_)
        each = np.empty(shape[:3])
        return Verdicts(each, one, no, each, each, each, one, each, np.empty(shape), no)

    def _steps_together(self, rows: Rows) -> int:
        """How many observations can go through at once: up to where the band is drawn anew for some signal."""
        until_drawn = BAND_EVERY - self.seen[rows] % BAND_EVERY
        return int(until_drawn.min(initial=MOST_TOGETHER))

    def _run_holding(self, values: Floats, rows: Rows) -> Verdicts:
        """Take the observations, or the first so many of them, holding back those that are strange.

        Whether an observation is learned depends on its p, so they would have to be taken one by one. But mostly none
        is held back: then they are what they would be if all were learned, and can be taken together.
        """
        steps = values.shape[0]
        watchful = bool(self._strange[rows].any())
        if steps == 1 or watchful or self.signals > MOST_TRIED:
            return self._hold_one(values[:1], rows)
        before, strange = self.state(), self._strange[rows]
        verdicts = self._absorb(values, rows)
        for step, p in enumerate(verdicts.p):
            strange, held = self._next_strange(p, strange)
            if held.any():
                self.restore(before)
                return self._run_holding(values[:step], rows) if step else self._hold_one(values[:1], rows)
        self._strange[rows] = strange
        return verdicts

    def _absorb(self, values: Floats, rows: Rows) -> Verdicts:
        """Take observations and learn from all of them."""
        self._draw_due_bands(rows)
        predicted, spread = self._issue(values, rows)
        return self._verdicts(values, rows, *self._judge(values, predicted, spread, rows, learn=True))

    def _hold_one(self, values: Floats, rows: Rows) -> Verdicts:
        """Take one observation of each signal, and learn from it only where it is not held back."""
        self._draw_due_bands(rows)
        hides = self.settings.hold_context
        predicted, spread = self._expect(rows) if hides else self._issue(values, rows)
        found, *band = self._judge(values, predicted, spread, rows, learn=False)
        learned = self._learn_or_hold(found, rows)
        if hides:
            self._issue(np.where(learned[np.newaxis, :, np.newaxis], values, np.nan), rows)
        return self._verdicts(values, rows, found, *band)

    def _draw_due_bands(self, rows: Rows) -> None:
        due = rows[self.seen[rows] % BAND_EVERY == 0]
        if due.size:
            self._draw_band(due)

    def _verdicts(
        self, values: Floats, rows: Rows, found: _Found, forecast: Floats, low: Floats, high: Floats
    ) -> Verdicts:
        self.seen[rows] += values.shape[0]
        self.scored[rows] += np.count_nonzero(found.merged == found.merged, axis=0)
        return Verdicts(
            value=values,
            p=found.p,
            alarm=found.p < self.settings.rate,
            forecast=forecast,
            low=low,
            high=high,
            merged=found.merged,
            feature_p=found.feature_p,
            horizon_p=found.horizon_p,
            warm=found.warm,
        )

    def _issue(self, values: Floats, rows: Rows) -> tuple[Floats, Floats]:
        """Forecast from the values; returns what had been forecast for them, `(T, N, F, H)`, and its spread."""
        steps, count, features = values.shape
        shape = (steps, count, features, self.horizons)
        if self.forecaster is None:
            return np.zeros(shape), NO_SPREAD
        age = np.zeros((steps, count * features), dtype=np.int64)
        if self.settings.refresh > 1:
            ages = (self.seen[rows] + np.arange(steps)[:, np.newaxis]) % self.settings.refresh
            age = np.repeat(ages, features, axis=1)
        series = self._series(rows)
        chosen = None if rows is self.everything else series  # all need not be checked again
        forecast = self._session.run(values.reshape(steps, -1), chosen, age == 0)
        predicted = self._medians.push(forecast.median, age, series).reshape(shape)
        if self._spreads is None:
            return predicted, NO_SPREAD
        quantiles = forecast.quantiles
        if quantiles is None:
            raise RuntimeError(f"forecaster {self.forecaster!r} gave no quantiles although it names levels")
        return predicted, self._spreads.push(quantiles[..., -1] - quantiles[..., 0], age, series).reshape(shape)

    def _expect(self, rows: Rows) -> tuple[Floats, Floats]:
        """What has been forecast for the next observation, `(1, N, F, H)`, and its spread, before it comes."""
        series = self._series(rows)
        shape = (1, rows.size, self.features, self.horizons)
        spread = NO_SPREAD if self._spreads is None else self._spreads.next(series).reshape(shape)
        return self._medians.next(series).reshape(shape), spread

    def _series(self, rows: Rows) -> Rows:
        if rows is self.everything:
            return self._all_series
        return (rows[:, np.newaxis] * self.features + np.arange(self.features)).reshape(-1)

    def _streams(self, rows: Rows) -> Rows:
        """The scorer's streams of these signals."""
        width = self.scorer.streams // self.signals
        return (rows[:, np.newaxis] * width + np.arange(width)).reshape(-1)

    def _judge(
        self, values: Floats, predicted: Floats, spread: Floats, rows: Rows, learn: bool
    ) -> tuple[_Found, Floats, Floats, Floats]:
        """Score and merge; also the forecast and its band."""
        settings = self.settings
        steps = values.shape[0]
        forecast, low, high = np.empty(values.shape), np.empty(values.shape), np.empty(values.shape)
        scores = np.full((steps, *self._shape), np.nan)
        self._kernels.judge(
            values, predicted, spread, self._kind, settings.light, rows, self.seen, self.settles, self._recovers,
            self._gaps, self._rests, self._merge, self._quantiles, self._fades, scores, forecast, low, high,
        )  # fmt: skip
        if self.forecaster is None:
            forecast[...] = low[...] = np.nan
        flat = scores.reshape(steps, -1)
        p, rank = self.scorer.run_ranked(flat) if learn else self.scorer.peek_ranked(flat)
        shape = (steps, rows.size, self.features, self.scored_horizons)
        horizon_p, horizon_rank = np.empty(shape), np.empty(shape)
        feature_p, feature_rank = np.empty(shape[:3]), np.empty(shape[:3])
        bound = np.empty(shape[:2])
        self._kernels.gather(
            p.reshape(scores.shape), rank.reshape(scores.shape), rows, self._merge, horizon_p, horizon_rank, feature_p,
            feature_rank, bound,
        )  # fmt: skip
        if settings.merge not in self._kernels.COMPILED_MERGES and self.scored_horizons > 1:
            feature_p = MERGES[settings.merge](horizon_p)
            feature_rank = MERGES[settings.merge](horizon_rank)
        second_scores = np.full((steps, self.signals), np.nan)
        if self.recalibration is None:
            merged = self._merge_features(feature_p)
            warm = self.scored[rows] + np.cumsum(merged == merged, axis=0) > settings.sizes.resolving
            found = _Found(flat, horizon_p, feature_p, merged, second_scores, merged, warm)
            return found, forecast, low, high
        merged = self._merge_features(feature_rank)
        warm = np.empty(merged.shape, dtype=np.bool_)
        sizes = settings.sizes
        self._kernels.settle(
            merged, rows, self.scored, self.recalibration.learned, sizes.settled, sizes.believed, second_scores, warm
        )
        second = self.recalibration.run(second_scores) if learn else self.recalibration.peek_ranked(second_scores)[0]
        # Until the second scorer knows enough, the bound: a p-value whatever the dependence.
        calibrated = np.where(warm, second if rows is self.everything else second[:, rows], bound)
        return _Found(flat, horizon_p, feature_p, merged, second_scores, calibrated, warm), forecast, low, high

    def _merge_features(self, values: Floats) -> Floats:
        return MERGES[self.settings.merge_features](values) if self.features > 1 else values[..., 0]

    def _learn_or_hold(self, found: _Found, rows: Rows) -> Mask:
        """Learn from the one observation just scored, but where it is held back; returns where it was learned."""
        self._strange[rows], held = self._next_strange(found.p[0], self._strange[rows])
        learn = np.zeros(self.signals, dtype=np.bool_)
        learn[rows] = ~held
        self.scorer.run(found.scores, np.repeat(learn, self.scorer.streams // self.signals))
        if self.recalibration is not None:
            self.recalibration.run(found.second_scores, learn)
        return np.asarray(~held)

    def _next_strange(self, p: Floats, strange: NDArray[np.int64]) -> tuple[NDArray[np.int64], Mask]:
        """How many strange observations in a row there are with these p-values, and which of them are held back."""
        settings = self.settings
        below = p < settings.strange_below
        run = np.where(below, strange + 1, np.where(np.isnan(p), strange, 0))
        return run, below & (run > settings.hold_after) & (run <= settings.hold_after + settings.hold_most)

    def _draw_band(self, rows: Rows) -> None:
        """For each stream of these signals, find the largest score that does not alarm."""
        level = np.full(rows.size, self.settings.rate)
        # Of a merge that keeps equals the threshold is one for each horizon too, where the horizons agree. Else, and
        # with several features, which alarm together, each is judged by itself, at the alarm rate.
        invertible = self.features == 1 and (self.scored_horizons == 1 or MERGES[self.settings.merge].keeps_equals)
        if self.recalibration is not None and invertible:
            known = self.recalibration.learned[rows] >= self.settings.sizes.believed
            threshold = -self.recalibration.quantile(self.settings.rate, rows[known])
            level[known] = np.clip(threshold, 1e-12, 1.0)
        streams = self._streams(rows)
        # Under the smallest possible p-value there is only "larger than all before".
        smallest = np.minimum((1.0 + 1e-9) / (1.0 + self.scorer.effective_size[streams]), 1.0)
        levels = np.maximum(np.repeat(level / self._shape[2], streams.size // rows.size), smallest)
        quantiles = self.scorer.quantile(levels, streams)
        self._quantiles[rows] = quantiles.reshape(-1, *self._shape[1:])
        if self._merge == self._kernels.HARMONIC:
            # Between the level at which all horizons alarm together and that at which one does alone, p-values fall
            # about exponentially.
            alone = np.maximum(levels / self.scored_horizons, smallest)
            further = self.scorer.quantile(alone, streams) - np.where(np.isfinite(quantiles), quantiles, 0.0)
            fades = np.divide(further, np.log(levels / alone), out=np.zeros(further.shape), where=alone < levels)
            self._fades[rows] = fades.reshape(-1, *self._shape[1:])

    def state(self, rows: Rows | None = None) -> dict[str, Any]:
        """Everything that later verdicts on the signals `rows` (all of them if None) depend on, as a tree of arrays.

        It is the state of a pipeline of only these signals.
        """
        rows = self.everything if rows is None else rows
        tree: dict[str, Any] = {name: array[rows] for name, array in self._arrays().items()}
        tree["scorer"] = self.scorer.state(self._streams(rows))
        if self.recalibration is not None:
            tree["recalibration"] = self.recalibration.state(rows)
        for name, part in self._parts().items():
            tree[name] = part.state(self._series(rows))
        return tree

    def adopt(self, rows: Rows, other: "Pipeline") -> None:
        """Let these signals go on as those of another pipeline, made in the same way of as many signals."""
        theirs = other._arrays()
        for name, own in self._arrays().items():
            own[rows] = theirs[name]
        self.scorer.adopt(self._streams(rows), other.scorer)
        if self.recalibration is not None and other.recalibration is not None:
            self.recalibration.adopt(rows, other.recalibration)
        given = other._parts()
        for name, part in self._parts().items():
            part.restore(given[name].state(), self._series(rows))

    def restore(self, tree: dict[str, Any]) -> None:
        """Take over what `state()` gave, of a pipeline made in the same way."""
        for name, own in self._arrays().items():
            if tree[name].shape != own.shape or tree[name].dtype != own.dtype:
                raise ValueError(f"{name} must be {own.dtype} of shape {own.shape}, got shape {tree[name].shape}")
            if np.isnan(tree[name]).any() or (own.dtype == np.int64 and np.any(tree[name] < 0)):
                raise ValueError(f"{name} must hold {'counts' if own.dtype == np.int64 else 'numbers'}")
            own[...] = tree[name]
        scorer = W1ACAS.from_state(tree["scorer"], threads=self.scorer.threads)
        if repr(scorer) != repr(self.scorer):
            raise ValueError(f"the saved scorer is {scorer!r}, not {self.scorer!r}")
        self.scorer = scorer
        if self.recalibration is not None:
            recalibration = SlidingWindow.from_state(tree["recalibration"])
            if repr(recalibration) != repr(self.recalibration):
                raise ValueError(f"the saved second scorer is {recalibration!r}, not {self.recalibration!r}")
            self.recalibration = recalibration
        for name, part in self._parts().items():
            part.restore(tree[name])

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "seen": self.seen,
            "scored": self.scored,
            "strange": self._strange,
            "gaps": self._gaps,
            "rests": self._rests,
            "quantiles": self._quantiles,
            "fades": self._fades,
        }

    def _parts(self) -> dict[str, Any]:
        if self.forecaster is None:
            return {}
        parts = {"session": self._session, "medians": self._medians}
        return parts if self._spreads is None else {**parts, "spreads": self._spreads}


def _load_kernels() -> ModuleType:
    # numba takes a good part of a second to import: only who detects waits for it.
    from tocsin.detection import kernels

    return kernels
