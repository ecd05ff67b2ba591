"""A detector of one signal, slow and obvious: plain lists, one observation at a time, written from the documents.

Only the weights that W1-ACAS learns are taken from the library, where they have an oracle of their own.
"""

import itertools
import math
from collections import deque

import numpy as np

from tests.oracles import surprise
from tocsin import W1ACAS

# How the scores of a view are merged, what it counts with all others and by itself, and its streams: the newest
# observations that each looks at, and what it counts among the others of a geometric mean.
VIEWS = {
    "error": ("harmonic", 1.0, 0.85, [(1, 1.0), (1, 1.0)]),
    "horizons": ("median", 1.0, 1.0, [(1, 1.0)] * 15),
    "level": ("harmonic", 1.0, 0.05, [(60, 1.0)]),
    "quiet": ("harmonic", 0.3, 0.05, [(32, 1.0)]),
    "shape": ("geometric", 2.5, 0.0, [(16, 0.5), (64, 2.0)]),
    "shape-light": ("geometric", 2.5, 0.0, [(32, 1.0)]),
    "score": ("harmonic", 1.0, 1.0, [(1, 1.0)]),
}
JOINT = ("shape", "shape-light")
SIDED = ("error", "horizons", "level")
LAGS = {"shape": 2000, "shape-light": 1000}
HORIZONS = {"error": 15, "horizons": 15}
TOGETHER_ALONE = 0.05
VIEW_WARM_UP, LEAST_LEARNED, MORE_FOR_LONGER = 300, 50, 4
# Whether a signal is as before is asked of so many values; what else counts there is in `OracleRecall` and `_follow`.
STRETCH = 32
NORMAL, MAY_END, ONGOING, RETURNED, ACCEPTED, SILENT = range(6)


def known(values):
    return [value for value in values if not math.isnan(value)]


def single(value):
    """As it is kept."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def harmonic(surprises, weights):
    """-log of the weighted harmonic mean of p-values, from -log of each."""
    most = max(surprises)
    total = sum(weight * math.exp(one - most) for one, weight in zip(surprises, weights, strict=True))
    return most + math.log(total / sum(weights))


def merged(how, surprises, weights):
    if len(surprises) < 2:
        return surprises[0] if surprises else math.nan
    if how == "median":
        return float(np.median(surprises))
    if how == "geometric":
        return sum(one * weight for one, weight in zip(surprises, weights, strict=True)) / sum(weights)
    return harmonic(surprises, weights)


class LastSeen:
    """`LastValue` again: the last value of a list that is not missing."""

    warm_up = recovers = 0

    def forecast(self, history, steps):
        there = known(history)
        return [there[-1] if there else math.nan] * steps, None


class FromContext:
    """A forecaster that reads a context, given the newest values as they are."""

    def __init__(self, forecaster):
        self.forecaster, self.warm_up, self.recovers = forecaster, forecaster.warm_up, forecaster.recovers

    def forecast(self, history, steps):
        context = history[-self.forecaster.context_length :]
        if not known(context):
            return [math.nan] * steps, [math.nan] * steps
        given = self.forecaster.forecast([context], steps)
        spread = given.quantiles[0, :, -1] - given.quantiles[0, :, 0]
        return given.median[0].tolist(), spread.tolist()


class OracleShape:
    """Distances of the newest stretch to all before it, by brute force.

    Values are rounded to 4,096ths of a spread, which is taken anew after 32, 64, ... observations and then every 1,024,
    and kept while it still fits. A stretch shares no observation with the newest one.
    """

    def __init__(self, features, lengths, lags):
        self.lengths, self.lags, self.kept = lengths, lags, lags + max(lengths) + 1
        self.values, self.count = [], 0  # the newest last
        self.units = [None] * features
        self.furthest = 2.0**22
        while features > 1:
            self.furthest, features = self.furthest / 2, (features + 3) // 4

    def update(self, values):
        self.values = [*self.values, values][-self.kept :]
        self.count += 1
        doubled = 32 <= self.count < 1024 and math.log2(self.count).is_integer()
        if doubled or self.count % 1024 == 0:
            for f in range(len(values)):
                self._take_unit(f)
        if not known(values) or self.count < 32:
            return [math.nan] * len(self.lengths)
        steps = np.stack([self._steps(f) for f in range(len(values))], axis=1)
        return [self._distance(steps, length) for length in self.lengths]

    def _take_unit(self, f):
        there = np.array(known([row[f] for row in self.values]))
        if not there.size:
            return
        middle = float(np.median(there))
        away = np.abs(there - middle)
        spread = float(np.median(away)) or float(np.mean(away)) or max(1e-9 * abs(middle), 1e-300)
        if self.units[f] is not None:
            offset, unit = self.units[f]
            held = unit * 4096
            if held / 2 < spread < 2 * held and abs(middle - offset) <= 64 * held:
                return
        self.units[f] = (middle, max(spread / 4096, 1e-300))

    def _steps(self, f):
        values = np.array([row[f] for row in self.values])
        if self.units[f] is None:
            return np.full(values.size, np.nan)
        offset, unit = self.units[f]
        return np.clip(np.round((values - offset) / unit), -self.furthest, self.furthest)

    def _distance(self, steps, length):
        """The stretches that end `length` observations before the newest one, or longer ago, up to `lags`."""
        last = min(len(steps) - length, self.lags)
        if last - length < 50:
            return math.nan
        stretches = np.lib.stride_tricks.sliding_window_view(steps, length, axis=0)  # the oldest first
        squares = (stretches[len(steps) - length - last : len(steps) - 2 * length + 1] - stretches[-1]) ** 2
        there = np.sum(~np.isnan(squares), axis=(1, 2))
        enough = there >= stretches[0].size / 2
        if not enough.any():
            return math.nan
        return math.sqrt(np.min(np.nansum(squares, axis=(1, 2))[enough] / there[enough])) / 4096


class Past:
    """The newest scores of a stream with equal weights, and scores that wait to be among them."""

    def __init__(self, window, waits=0):
        self.scores, self.learned = deque(maxlen=window), 0
        self.pending, self.waits = deque(), waits

    def compare(self, score, length=1):
        """p-value and surprise; the tail of longer stretches is fitted to more scores."""
        past = np.array(self.scores)
        p = (1 + np.sum(past >= score)) / (1 + past.size)
        return float(p), surprise(past, np.ones(past.size), score, heaviest=60 + 7.5 * length)

    def learn(self, score):
        """One that shares no observation with a newest score to come."""
        if len(self.pending) == self.waits:
            self.pending.append(score)
            self.scores.appendleft(self.pending.popleft())
            self.learned += 1
        else:
            self.pending.append(score)


class Learned:
    """A stream whose weights over the past are learned."""

    def __init__(self, sizes, learning_rate):
        self.scorer = W1ACAS(
            alpha_c=sizes.alpha_c, window=sizes.window, learning_rate=learning_rate * sizes.window, optimizer="sgd",
            prior="extend",
        )  # fmt: skip
        self.pending = deque()

    @property
    def learned(self):
        return int(self.scorer.learned[0])

    def compare(self, score, length=1):
        past, weights, total = self.scorer._calibration(0)
        p = min(1.0, (1 + float(weights[past >= score].sum(dtype=np.float64))) / (1 + total))
        return p, surprise(past, weights, score, total=total)

    def learn(self, score):
        self.scorer.update(score)


class OracleRecall:
    """What a signal was like before an incident: every stretch is compared with every other."""

    def __init__(self, history, reach):
        self.history, self.reach = history, reach

    def _newest(self, before):
        """The values of each feature from `before` observations ago on, the newest first."""
        return np.array([list(reversed(feature))[: self.reach][before:] for feature in self.history])

    def _nearest(self, values, at, first, last):
        stretch = values[:, at : at + STRETCH]
        distances = [math.inf]
        for lag in range(first, last + 1):
            steps = (stretch - values[:, at + lag : at + lag + STRETCH]) / self.units[:, np.newaxis]
            there = ~np.isnan(steps)
            if there.sum() >= 0.5 * steps.size:
                distances.append(np.square(steps[there]).sum() / there.sum())
        return min(distances)

    def furthest(self, before):
        values = self._newest(before)
        there = values.shape[1]
        apart = min(256, there // 4)
        if apart < 2 * STRETCH:
            return math.inf
        self.units = np.ones(len(values))
        for f, feature in enumerate(values):
            given = np.array(known(feature))
            if given.size:
                away = np.abs(given - np.median(given))
                self.units[f] = np.median(away) or np.mean(away) or max(1e-9 * abs(np.median(given)), 1e-300)
        room = max((there - apart - STRETCH) // 2, 1)
        samples = [sample * room // 48 for sample in range(48)]
        return max(self._nearest(values, at, apart, there - at - STRETCH) for at in samples) * (1 + 1e-9)

    def unlike(self, before, furthest):
        values = self._newest(0)
        last = values.shape[1] - STRETCH
        there = np.mean(~np.isnan(values[:, :STRETCH])) >= 0.5
        return there and furthest < math.inf and last >= before and self._nearest(values, 0, before, last) > furthest


class OracleDetector:
    """All settings under the names of `Fleet`; `forecaster` is one of the two above, or None."""

    def __init__(
        self,
        features,
        sizes,
        *,
        forecaster,
        alarm_rate,
        views,
        promise="incidents",
        nonconformity="absolute",
        scaled=False,
        merge_features="harmonic",
        accept_after=600,
        early=True,
        gap=10,
        refresh=1,
        learning_rate=0.01,
        **_,
    ):
        self.features, self.sizes, self.forecaster, self.rate = features, sizes, forecaster, alarm_rate
        self.views = ["score"] if forecaster is None else list(views)
        self.by_p, self.early = promise == "observations", early
        self.side = nonconformity
        self.scaled, self.refresh, self.accept_after, self.gap = scaled, refresh, accept_after, gap
        self.merge_features = "harmonic" if merge_features == "harmonic" else "geometric"
        self.horizons = max(1, *(HORIZONS.get(view, 0) for view in self.views))
        self.steps = max(self.horizons, 60 if "level" in self.views else 0)
        self.cells = [
            (view, feature, stream, length)
            for view in self.views
            for feature in ((None,) if view in JOINT else range(features))
            for stream, (length, _) in enumerate(VIEWS[view][3])
        ]
        self.past = [
            Learned(sizes, learning_rate) if length == 1 else Past(sizes.window, waits=length)
            for *_, length in self.cells
        ]
        self.longest = max(length for *_, length in self.cells)
        self.shapes = {
            view: OracleShape(features, [length for length, _ in VIEWS[view][3]], LAGS[view])
            for view in self.views
            if view in JOINT
        }
        self.together = Past(sizes.window, waits=self.longest)
        self.final = Past(sizes.final)
        self.history = [[] for _ in range(features)]
        self.issued = []  # after each observation: for each feature the age of its forecasts, medians and spreads
        self.seen = self.scored = 0
        self.gaps, self.rests = [0] * features, [0] * features
        self.path = [[] for _ in range(features)]  # of each observation: value or forecast, known, ready
        self.open, self.since, self.lasted = False, 0, 0
        self.blocks, self.highest, self.in_block = deque(maxlen=sizes.blocks), -math.inf, 0
        self.tightened, self.certain = 0.0, False
        reach = [LAGS[view] + max(length for length, _ in VIEWS[view][3]) + 1 - 100 for view in self.shapes]
        self.recall = OracleRecall(self.history, reach[0]) if reach and alarm_rate <= 1 / STRETCH else None
        self.furthest, self.was_unlike, self.still, self.rest = None, False, 0, 0
        self.highest_learned = math.inf

    def run(self, table):
        rows = [self.update(row) for row in table]
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}

    def update(self, values):
        values = [math.nan if math.isinf(value) else float(value) for value in values]
        predicted = [[self._predicted(f, d) for d in range(1, self.horizons + 1)] for f in range(self.features)]
        ready = [self._ready(f, values[f]) for f in range(self.features)]
        for f in range(self.features):
            self.history[f].append(values[f])
            filled = predicted[f][0] if math.isnan(values[f]) else values[f]
            self.path[f].append((filled, not math.isnan(values[f]), ready[f]))
        self.issued.append([self._issue(f) for f in range(self.features)])
        scores = self._scores(values, predicted, ready)
        self.seen += 1
        return self._judge(scores, [row[0] for row in predicted])

    def _predicted(self, feature, distance):
        """The forecast for this observation that was issued `distance` observations before it."""
        if self.forecaster is None or self.seen < distance:
            return math.nan
        age, medians, _ = self.issued[self.seen - distance][feature]
        return medians[age + distance - 1]

    def _spread(self, feature, distance):
        age, _, spreads = self.issued[self.seen - distance][feature]
        return spreads[age + distance - 1]

    def _issue(self, feature):
        """What goes on from this observation: a new forecast every `refresh` observations, the last one in between."""
        if self.forecaster is None:
            return 0, [], None
        age = self.seen % self.refresh
        if age == 0:
            return 0, *self.forecaster.forecast(self.history[feature], self.steps + self.refresh - 1)
        _, medians, spreads = self.issued[-1][feature]
        return age, medians, spreads

    def _ready(self, feature, value):
        """Whether the forecaster has settled, and no long gap was so short a time ago that it has not recovered."""
        if self.forecaster is None:
            return True
        resting = self.rests[feature] > 0
        if math.isnan(value):
            self.gaps[feature] += 1
            if self.gaps[feature] > self.horizons:
                self.rests[feature] = max(self.forecaster.recovers, self.horizons)
        else:
            self.gaps[feature] = 0
            self.rests[feature] -= resting
        return self.seen >= self.forecaster.warm_up and not resting

    def _scores(self, values, predicted, ready):
        """One number for each cell."""
        shapes = {view: shape.update(values) for view, shape in self.shapes.items()}
        scores = []
        for view, f, stream, _ in self.cells:
            if view in JOINT:
                score = shapes[view][stream]
            elif view == "score":
                score = values[f]
            elif view == "quiet":
                score = self._quiet(f)
            elif view == "level":
                score = self._level(f)
            else:
                first, last = (0, 1) if stream == 0 else (0, 15)
                first, last = (stream, stream + 1) if view == "horizons" else (first, last)
                score = self._error(f, values[f], predicted[f], first, last) if ready[f] else math.nan
            scores.append(score)
        return scores

    def _sided(self, error):
        return -error if self.side == "low" else error

    def _error(self, f, value, predicted, first, last):
        errors = []
        for h in range(first, last):
            error = value - predicted[h]
            if not math.isnan(error):
                wide = self._spread(f, h + 1) if self.scaled else None
                errors.append(error / max(wide, 1e-9 * (abs(predicted[h]) + 1e-300)) if self.scaled else error)
        if not errors:
            return math.nan
        if self.side == "absolute":
            return math.copysign(sum(map(abs, errors)), sum(errors)) / len(errors)
        return self._sided(sum(errors)) / len(errors)

    def _level(self, f):
        """The mean of the newest 60 values less that of the forecasts issued right before the first of them."""
        newest = self.path[f][-60:]
        if len(self.path[f]) <= 60 or not newest[-1][1] or not newest[-1][2] or not self.path[f][-61][2]:
            return math.nan
        if sum(there for _, there, _ in newest) < 30:
            return math.nan
        age, medians, spreads = self.issued[-61][f]
        path = sum(medians[age : age + 60]) / 60
        error = sum(value for value, _, _ in newest) / 60 - path
        if self.scaled:
            error /= max(sum(spreads[age : age + 60]) / 60, 1e-9 * (abs(path) + 1e-300))
        return self._sided(error)

    def _quiet(self, f):
        newest = self.history[f][-33:]
        steps = known([abs(after - before) for before, after in itertools.pairwise(newest)])
        if len(newest) < 33 or math.isnan(newest[-1]) or len(steps) < 16:
            return math.nan
        mean = sum(steps) / len(steps)
        return min(-math.log(mean), 745.0) if mean > 0 else 745.0

    def _size(self, score, view):
        kept = single(score)
        return abs(kept) if self.side == "absolute" and view in SIDED else kept

    def _judge(self, scores, forecast):
        sizes = [self._size(score, view) for score, (view, *_) in zip(scores, self.cells, strict=True)]
        rests, self.rest = self.rest > 0, max(self.rest - 1, 0)
        p, surprises, sudden = [], [], False
        for size, past, (*_, length) in zip(sizes, self.past, self.cells, strict=True):
            one, strange = (math.nan, math.nan) if math.isnan(size) else past.compare(size, length)
            sudden = sudden or (length == 1 and strange > 7)
            heard = past.learned >= LEAST_LEARNED + MORE_FOR_LONGER * (length - 1)
            p.append(one)
            surprises.append(strange if heard else math.nan)
        self.still = 0 if sudden else self.still + 1
        feature_p = [self._bonferroni(p, lambda feature, f=f: feature == f) for f in range(self.features)]
        by_view = [self._view(view, surprises) for view in self.views]
        heard = [(one, VIEWS[view][1]) for one, view in zip(by_view, self.views, strict=True) if not math.isnan(one)]
        mean = single(merged("geometric", *zip(*heard, strict=True))) if heard else math.nan
        self.scored += bool(heard)
        warmed_up = bool(heard) and self.scored > VIEW_WARM_UP
        evidence = self._evidence(by_view, mean, rests) if warmed_up else math.nan
        view = max(
            (number for number, one in enumerate(by_view) if not math.isnan(one)),
            key=lambda number: (by_view[number], -number),
            default=None,
        )
        cause, score, stretch = (-1, -1, -1), math.nan, 0
        if view is not None:
            cells = [c for c, cell in enumerate(self.cells) if cell[0] == self.views[view]]
            most = max(
                (c for c in cells if not math.isnan(surprises[c])), key=lambda c: (surprises[c], -c)
            )  # fmt: skip
            _, feature, stream, stretch = self.cells[most]
            cause, score = (view, stream, -1 if feature is None else feature), self._sided(scores[most])
        found = self._decide(evidence, p, stretch)
        self._learn(sizes, mean if warmed_up else math.nan, rests or self.rest > 0)
        return {
            **found, "forecast": forecast, "surprise": mean, "feature_p": feature_p, "views": by_view, "cause": cause,
            "score": score,
        }  # fmt: skip

    def _bonferroni(self, p, chosen=lambda feature: True):
        there = known([one for one, (_, feature, *_) in zip(p, self.cells, strict=True) if chosen(feature)])
        return min(1.0, len(there) * min(there)) if there else math.nan

    def _view(self, view, surprises):
        """Streams of a feature first, then features."""
        merge, _, _, streams = VIEWS[view]
        by_feature = []
        for f in (None,) if view in JOINT else range(self.features):
            there = [
                (one, streams[cell[2]][1])
                for one, cell in zip(surprises, self.cells, strict=True)
                if cell[:2] == (view, f) and not math.isnan(one)
            ]
            if there:
                by_feature.append(merged(merge, *zip(*there, strict=True)))
        return merged(self.merge_features, by_feature, [1.0] * len(by_feature))

    def _evidence(self, by_view, mean, rests):
        alone = {view: VIEWS[view][2] for view in self.views} if len(self.views) > 1 else {self.views[0]: 1.0}
        channels = [
            (one, alone[view])
            for one, view in zip(by_view, self.views, strict=True)
            if not math.isnan(one)
            and alone[view] > 0
            and not (rests and min(length for length, _ in VIEWS[view][3]) > STRETCH)
        ]
        if len(self.views) > 1 and not rests and (self.together.learned >= LEAST_LEARNED or not channels):
            channels.append((self.together.compare(mean, self.longest)[1], TOGETHER_ALONE))
        return single(harmonic(*zip(*channels, strict=True))) if channels else math.nan

    def _decide(self, evidence, p, stretch):
        bound = self._bonferroni(p)
        alarm, warm, estimated, rate = False, False, False, math.nan
        if not math.isnan(evidence):
            calibrated = len(self.final.scores) >= self.sizes.min_calibration
            rank = self.final.compare(evidence)[0]
            self.final.learn(evidence)
            if calibrated:
                bound = rank
            block = self.sizes.block
            rate = self._rate(evidence)
            self.certain = self.certain or self._rate(evidence - 3) < self.rate
            own = len(self.blocks) * block * self.rate >= 1
            if self.by_p:
                alarm, warm = calibrated and rank < self.rate, calibrated
            elif own or (self.early and len(self.blocks) >= 5):
                self.tightened = min(self.tightened + 0.1 * self.rate, math.log(1.5))
                alarm = rate < min(self.rate * math.exp(self.tightened), 0.5 / block)
                warm, estimated = calibrated, not own
            else:
                rate = math.nan
        lasts = self._lasts(alarm, stretch)
        alarm = alarm and lasts
        opened = alarm and not self.open
        state = self._follow(alarm, lasts, evidence)
        return {"p": bound, "rate": rate, "alarm": alarm, "warm": warm, "opened": opened, "state": state,
                "estimated": estimated}  # fmt: skip

    def _lasts(self, alarm, stretch):
        """An incident that is certain lasts while the signal is unlike what it was before."""
        if self.recall is None or not self.open or not self.certain:
            return alarm
        before = self.lasted + self.longest
        if self.furthest is None:
            self.furthest = self.recall.furthest(before)
        if self.lasted > self.accept_after:
            return alarm
        if self.recall.unlike(before, self.furthest):
            self.was_unlike = True
            return True
        return alarm and (self.by_p or stretch <= STRETCH or not self.was_unlike)

    def _rate(self, evidence):
        """How often an incident with as much evidence comes: a Poisson process that leaves as many blocks without.

        Beyond all blocks, by an exponential tail fitted to the highest and, as if ten more decayed by 1.3, a prior.
        """
        count, reached = len(self.blocks), sum(one >= evidence for one in self.blocks)
        rate = self._poisson(reached)
        if reached or not self.early or count < 5:
            return rate
        highest = sorted(self.blocks, reverse=True)
        most = min(math.ceil(1.5 * math.sqrt(count)), count - 1)
        decay = (sum(one - highest[most] for one in highest[:most]) + 13) / (most + 10)
        estimated = self._poisson(most) * math.exp(-(evidence - highest[most]) / decay)
        return min(max(estimated, rate / 100), rate)

    def _least_evidence(self):
        """The least evidence that comes as rarely as tolerated."""
        count, highest = len(self.blocks), sorted(self.blocks, reverse=True)
        allowed = math.ceil(-math.expm1(-self.rate * self.sizes.block) * (1 + count)) - 1
        if allowed >= 1:
            return highest[min(allowed, count) - 1]
        if not self.early or count < 5:
            return math.inf
        most = min(math.ceil(1.5 * math.sqrt(count)), count - 1)
        decay = (sum(one - highest[most] for one in highest[:most]) + 13) / (most + 10)
        return max(highest[most] + decay * math.log(self._poisson(most) / self.rate), highest[0])

    def _poisson(self, reached):
        share = (1 + reached) / (1 + len(self.blocks))
        return -math.log1p(-min(share, 1 - 1e-9)) / self.sizes.block

    def _follow(self, alarm, lasts, evidence):
        state = ONGOING if lasts else MAY_END if self.open else NORMAL
        if alarm and not self.open:
            self.tightened -= 0.1
            self.open, self.lasted = True, 0
        if lasts:
            self.since = 0
        elif self.open:
            self.since += 1
            patience = self.gap
            if self.furthest is not None and self.lasted <= self.accept_after:
                seen_to_change = self.still <= self.since + 2 * STRETCH or not self.was_unlike
                patience = max(self.gap, STRETCH if seen_to_change else 4 * STRETCH)
            if self.since > patience:
                self.open = False
                state = SILENT if math.isnan(evidence) else RETURNED if self.lasted <= self.accept_after else ACCEPTED
                if self.certain and not self.by_p:
                    self.highest_learned = self._least_evidence() + 1.5
                if self.was_unlike and state == RETURNED:
                    self.rest = max(2 * self.longest - self.since, 0)
        if not self.open:
            self.certain, self.furthest, self.was_unlike = False, None, False
        self.lasted += self.open
        if math.isnan(evidence):
            return state
        self.highest = max(self.highest, evidence)
        self.in_block += 1
        if self.in_block >= self.sizes.block and not self.open:
            self.blocks.append(min(self.highest, self.highest_learned))
            self.highest, self.in_block, self.highest_learned = -math.inf, 0, math.inf
        return state

    def _learn(self, sizes, mean, rests):
        """What belongs to an incident that is no chance is not learned until it is accepted, nor what waited then."""
        if self.certain and self.lasted <= self.accept_after:
            for past in (*self.past, self.together):
                past.pending.clear()
            return
        for size, past, (*_, length) in zip(sizes, self.past, self.cells, strict=True):
            if not math.isnan(size) and not (rests and length > STRETCH):
                past.learn(size)
        if not math.isnan(mean) and len(self.views) > 1 and not rests:
            self.together.learn(mean)
