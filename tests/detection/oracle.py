"""A detector of one signal, slow and obvious: plain lists, one observation at a time, written from the documents."""

import itertools
import math

import numpy as np

from tocsin import MERGES, W1ACAS, SlidingWindow
from tocsin.detection.alarm_rate import sizes

BAND_EVERY = 100


def known(values):
    return [value for value in values if not math.isnan(value)]


def middle(values):
    """The median of what is not NaN; by the majority rule also the edge of a band."""
    there = sorted(known(values))
    if not there:
        return math.nan
    low, high = there[(len(there) - 1) // 2], there[len(there) // 2]
    return low if low == high else low / 2 + high / 2


def harmonic_edge(ends, fades):
    """Where the mean of exp((value - end) / fade) is 1, by bisection; fades are never shorter than a billionth."""
    pairs = [(end, fade) for end, fade in zip(ends, fades, strict=True) if math.isfinite(end)]
    if not pairs:
        return middle(ends)
    shortest = 1e-9 * max(abs(end) for end, _ in pairs) + 1e-300
    low, high = min(end for end, _ in pairs), max(end for end, _ in pairs)
    for _ in range(100):
        at = low / 2 + high / 2
        parts = [math.exp(min((at - end) / max(fade, shortest), 700.0)) for end, fade in pairs]
        low, high = (low, at) if sum(parts) >= len(parts) else (at, high)
    return high


def merged_by(name, values):
    """The merge of several p-values; one is its own."""
    return float(MERGES[name](values)) if len(values) > 1 else values[0]


class LastSeen:
    """`LastValue` again: the last value of a list that is not missing."""

    settles = recovers = 0

    def forecast(self, history, steps):
        there = known(history)
        return [there[-1] if there else math.nan] * steps, None


class FromContext:
    """A forecaster that reads a context, given the newest values as they are."""

    def __init__(self, forecaster):
        self.forecaster, self.settles, self.recovers = forecaster, forecaster.settles, forecaster.recovers

    def forecast(self, history, steps):
        context = history[-self.forecaster.context_length :]
        if not known(context):
            return [math.nan] * steps, [math.nan] * steps
        given = self.forecaster.forecast([context], steps)
        spread = given.quantiles[0, :, -1] - given.quantiles[0, :, 0]
        return given.median[0].tolist(), spread.tolist()


class OracleDetector:
    """All settings under the names of `Fleet`; `forecaster` is one of the two above, or None."""

    def __init__(
        self,
        features,
        *,
        forecaster,
        alarm_rate,
        window,
        horizons,
        nonconformity="absolute",
        scaled=False,
        light=False,
        merge="harmonic",
        merge_features="fisher",
        recalibrate=True,
        learn="absorb",
        hold_below=None,
        hold_after=2,
        hold_most=200,
        hold_context=False,
        refresh=1,
        learning_rate=0.01,
    ):
        self.features, self.forecaster, self.alarm_rate = features, forecaster, alarm_rate
        self.horizons = 1 if forecaster is None else horizons
        self.nonconformity, self.scaled, self.light = nonconformity, scaled, light
        self.merge, self.merge_features, self.recalibrate = merge, merge_features, recalibrate
        self.learn, self.hold_after, self.hold_most, self.hold_context = learn, hold_after, hold_most, hold_context
        self.hold_below = alarm_rate if hold_below is None else hold_below
        self.refresh = refresh
        self.sides = 2 if nonconformity == "signed" else 1
        self.scored = 1 if light else self.horizons
        resolving = self._observations_to_resolve()
        self.sizes = sizes(alarm_rate, recalibrate=recalibrate, window=window, resolving=resolving)

        def scorer():
            size = self.sizes
            step = learning_rate * size.window
            return W1ACAS(
                alpha_c=size.alpha_c, window=size.window, learning_rate=step, optimizer="sgd", prior="extend"
            )  # fmt: skip

        self.scorers = [
            [[scorer() for _ in range(self.scored)] for _ in range(self.sides)] for _ in range(features)
        ]  # fmt: skip
        self.second = SlidingWindow(window=self.sizes.recalibration, dtype="float64") if recalibrate else None
        self.history = [[] for _ in range(features)]  # what the forecaster is shown
        self.issued = []  # after each observation: for each feature its age, medians and spreads
        self.quantiles = self.fades = None
        self.seen = self.counted = self.strange = 0
        self.gaps, self.rests = [0] * features, [0] * features
        self.resolved = None if recalibrate else self._observations_to_resolve()

    def update(self, values):
        values = [math.nan if math.isinf(value) else float(value) for value in values]
        if self.seen % BAND_EVERY == 0:
            self._draw_band()
        predicted = [[self._predicted(f, d) for d in range(1, self.horizons + 1)] for f in range(self.features)]
        scores = [self._scores(f, values[f], predicted[f]) for f in range(self.features)]
        held_back = self.learn == "hold"
        found = [
            [
                [self._ranked(f, side, h, scores[f][side][h], not held_back) for h in range(self.scored)]
                for side in range(self.sides)
            ]
            for f in range(self.features)
        ]
        horizon_p = [self._joined(found[f], 0) for f in range(self.features)]
        horizon_rank = [self._joined(found[f], 1) for f in range(self.features)]
        feature_p = [merged_by(self.merge, one) for one in horizon_p]
        feature_rank = [merged_by(self.merge, one) for one in horizon_rank]
        if self.recalibrate:
            merged = merged_by(self.merge_features, feature_rank)
            p, warm, second_score = self._recalibrated(merged, horizon_p, not held_back)
        else:
            p = merged = merged_by(self.merge_features, feature_p)
            warm = self.counted + (not math.isnan(merged)) > self.resolved
            second_score = math.nan
        learned = True
        if held_back:
            learned = self._learns(p)
            for f in range(self.features):
                for side in range(self.sides):
                    for h in range(self.scored):
                        self.scorers[f][side][h].update(scores[f][side][h], learn=learned)
            if self.second is not None:
                self.second.update(second_score, learn=learned)
        for f in range(self.features):
            self.history[f].append(math.nan if self.hold_context and not learned else values[f])
        self.issued.append([self._issue(f) for f in range(self.features)])
        self.seen += 1
        self.counted += not math.isnan(merged)
        bands = [self._band(f, predicted[f]) for f in range(self.features)]
        return {
            "value": values,
            "p": p,
            "alarm": p < self.alarm_rate,
            "forecast": [
                math.nan if self.forecaster is None else middle(predicted[f]) for f in range(self.features)
            ],
            "low": [low for low, _ in bands],
            "high": [high for _, high in bands],
            "merged": merged,
            "feature_p": feature_p,
            "horizon_p": horizon_p,
            "warm": warm,
        }  # fmt: skip

    def run(self, table):
        rows = [self.update(row) for row in table]
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}

    def _issue(self, feature):
        """What goes on from this observation: a new forecast every `refresh` observations, the last one in between."""
        age = self.seen % self.refresh
        if self.forecaster is None:
            return 0, [0.0], None
        if age == 0:
            return 0, *self.forecaster.forecast(self.history[feature], self.horizons + self.refresh - 1)
        _, medians, spreads = self.issued[-1][feature]
        return age, medians, spreads

    def _predicted(self, feature, distance):
        """The forecast for the next observation that was issued `distance` observations before it."""
        if self.forecaster is None:
            return 0.0
        if self.seen < distance:
            return math.nan
        age, medians, _ = self.issued[self.seen - distance][feature]
        return medians[age + distance - 1]

    def _spread(self, feature, distance):
        if self.seen < distance:
            return math.nan
        age, _, spreads = self.issued[self.seen - distance][feature]
        return spreads[age + distance - 1]

    def _rests(self, feature, value):
        """Whether a long gap was so short a time ago that the forecaster has not recovered."""
        resting = self.rests[feature] > 0
        if math.isnan(value):
            self.gaps[feature] += 1
            if self.gaps[feature] > self.horizons:
                self.rests[feature] = max(self.forecaster.recovers, self.horizons)
        else:
            self.gaps[feature] = 0
            self.rests[feature] -= resting
        return resting

    def _scores(self, feature, value, predicted):
        resting = self.forecaster is not None and self._rests(feature, value)
        if self.forecaster is not None and (self.seen < self.forecaster.settles or resting):
            value = math.nan  # what an unlearned forecaster gets wrong is no score
        errors = []
        for distance, forecast in enumerate(predicted, start=1):
            error = value - forecast
            if self.scaled and not math.isnan(error):
                error /= max(self._spread(feature, distance), 1e-9 * (abs(forecast) + 1e-300))
            errors.append(error)
        if self.light:
            there = [abs(error) if self.nonconformity == "absolute" else error for error in known(errors)]
            errors = [sum(there) / len(there) if there else math.nan]
        kind = "high" if self.forecaster is None else self.nonconformity
        return {
            "absolute": [[abs(error) for error in errors]],
            "signed": [errors, [-error for error in errors]],
            "high": [errors],
            "low": [[-error for error in errors]],
        }[kind]

    def _ranked(self, feature, side, horizon, score, learn):
        p, rank = self.scorers[feature][side][horizon].run_ranked([[score]], learn)
        return float(p[0, 0]), float(rank[0, 0])

    def _joined(self, found, which):
        """For each horizon the p-values (or ranks) of its sides as one."""
        together = []
        for h in range(self.scored):
            sides = [found[side][h][which] for side in range(self.sides)]
            one = sides[0] if self.sides == 1 else 2 * min(sides)
            together.append(math.nan if math.isnan(sides[0]) else min(1.0, one))
        return together

    def _recalibrated(self, merged, horizon_p, learn):
        warm = int(self.second.learned[0]) >= self.sizes.believed
        score = -merged if self.counted >= self.sizes.settled else math.nan
        p = float(self.second.update(score, learn=learn)[0])
        if warm:
            return p, warm, score
        doubled = [min(1.0, (2 if len(known(one)) > 1 else 1) * middle(one)) for one in horizon_p if known(one)]
        return (min(1.0, len(doubled) * min(doubled)) if doubled else math.nan), warm, score

    def _learns(self, p):
        if p < self.hold_below:
            self.strange += 1
        elif not math.isnan(p):
            self.strange = 0
        held = p < self.hold_below and self.hold_after < self.strange <= self.hold_after + self.hold_most
        return not held

    def _observations_to_resolve(self):
        def smallest(count):
            feature = merged_by(self.merge, [min(1.0, self.sides / (1 + count))] * self.scored)
            return merged_by(self.merge_features, [feature] * self.features)

        return next(count for count in itertools.count(1) if smallest(count) < self.alarm_rate)

    def _draw_band(self):
        level = self.alarm_rate
        single = self.features == 1 and (self.scored == 1 or self.merge in ("median", "harmonic", "cauchy"))
        if single and self.second is not None and self.second.learned[0] >= self.sizes.believed:
            level = min(max(-float(self.second.quantile(self.alarm_rate)[0]), 1e-12), 1.0)

        def quantile(scorer, level):
            """The level that can be had, and the largest score that does not alarm at it."""
            smallest = 1 / (1 + float(scorer.effective_size[0]))
            had = min(1.0, max(level, smallest * (1 + 1e-9)))
            return had, float(scorer.quantile(had)[0])

        def fade(scorer):
            """By how much a score grows while its p-value falls by e, where horizons together or one alone alarm."""
            together, score = quantile(scorer, level / self.sides)
            alone, further = quantile(scorer, together / self.scored)
            return (further - score) / math.log(together / alone) if alone < together else 0.0

        self.quantiles = [
            [[quantile(scorer, level / self.sides)[1] for scorer in side] for side in feature]
            for feature in self.scorers
        ]  # fmt: skip
        self.fades = [[[fade(scorer) for scorer in side] for side in feature] for feature in self.scorers]

    def _band(self, feature, predicted):
        quantiles = self.quantiles[feature]
        if self.scaled:
            return math.nan, math.nan
        if self.forecaster is None:
            return math.nan, quantiles[0][0]
        lows, highs = [], []
        for h, forecast in enumerate(predicted):
            base = middle(predicted) if self.light else forecast
            at = 0 if self.light else h
            lows.append(base - (math.inf if self.nonconformity == "high" else quantiles[-1][at]))
            highs.append(base + (math.inf if self.nonconformity == "low" else quantiles[0][at]))
        if self.merge != "harmonic" or self.scored == 1:
            return middle(lows), middle(highs)
        fades = self.fades[feature]
        low, high = -harmonic_edge([-low for low in lows], fades[-1]), harmonic_edge(highs, fades[0])
        return (low, high) if not low > high else (low / 2 + high / 2,) * 2
