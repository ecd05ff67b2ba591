"""A detector of one signal, slow and obvious: plain lists, one observation at a time, written from the documents.

Only the weights that W1-ACAS learns are taken from the library, where they have an oracle of their own.
"""

import itertools
import math
import operator
import statistics
from collections import deque

import numpy as np

from tests.oracles import surprise
from tocsin.conformal import W1ACAS

# The streams of each view: how many of the newest observations each looks at.
VIEWS = {"error": [1, 1], "quiet": [48], "shape": [16, 64], "score": [1]}
JOINT, SIDED = ("shape",), ("error",)
HORIZONS = {"error": 15}
WITNESSES = 2.25
VIEW_WARM_UP, LEAST_LEARNED = 300, 50
# Whether a signal is as before is asked of so many observations, and so many are judged together at most.
STRETCH, TOGETHER = 32, 50
LEVELS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
UNKNOWN = np.float32(1e18)
NORMAL, MAY_END, ONGOING, RETURNED, ACCEPTED, SILENT = range(6)


def known(values):
    return [value for value in values if not math.isnan(value)]


def single(value):
    """As it is kept."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def harmonic(surprises):
    """-log of the harmonic mean of p-values, from -log of each."""
    most = max(surprises)
    return most + math.log(sum(math.exp(one - most) for one in surprises) / len(surprises))


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
    """The distance of the newest stretch to all before it, by brute force, in single precision.

    Values are means over blocks, in units of their spread: unit and offset are taken after 50, 100, 200 and 400
    observations where they no longer fit, or later if the signal has not moved by then. A stretch shares no observation
    with the newest one, and ends before the last but one multiple of 50 observations: what belongs to a fault is known
    by then, and forgotten.
    """

    def __init__(self, features, blocks, block, kept, newest):
        self.blocks, self.block, self.kept, self.newest = blocks, block, kept, newest
        self.entries = []  # the mean of each block, a number for each feature
        self.stretch = []  # the newest, as they were before anything was forgotten
        self.offsets, self.units = [None] * features, [None] * features
        self.current, self.count, self.usable, self.held = [], 0, 0, math.nan
        self.gaps, self.faulty = [0] * features, set()

    def update(self, values):
        if self.count % TOGETHER == 0:
            if self.count and math.log2(self.count / TOGETHER).is_integer():
                for f in range(len(self.units)):
                    self._take_unit(f)
            self.usable = max(len(self.entries) - TOGETHER // self.block, 0)
            for number in self.faulty & set(range(self.usable)):
                self.entries[number] = [UNKNOWN] * len(self.units)
        self.count += 1
        self.current.append(values)
        if self.count % self.block == 0:
            self._complete()
            self.held = self._distance()
            self.current = []
        return self.held if known(values) else math.nan

    def _complete(self):
        row = []
        for f in range(len(self.units)):
            there = known([values[f] for values in self.current])
            self.gaps[f] = 0 if there else self.gaps[f] + 1
            if there:
                mean = sum(there) / len(there)
                if self.offsets[f] is None:
                    self.offsets[f] = mean
                row.append(np.float32(np.clip((mean - self.offsets[f]) / (self.units[f] or 1.0), -1e6, 1e6)))
            else:
                row.append(UNKNOWN if 2 * self.gaps[f] > self.blocks or not self.stretch else self.stretch[-1][f])
        self.entries.append(list(row))
        self.stretch = [*self.stretch, list(row)][-self.blocks :]

    def _take_unit(self, f):
        there = np.array([row[f] for row in self.entries[-self.kept :] if row[f] < UNKNOWN], dtype=np.float64)
        if not there.size or (self.count > 400 and self.units[f] is not None):
            return
        middle = float(np.median(there))
        away = np.abs(there - middle)
        spread = float(np.median(away)) or float(np.mean(away))
        unit = self.units[f] or 1.0
        if spread == 0 or (self.units[f] is not None and 0.5 < spread < 2 and abs(middle) < 64):
            return
        for row in (*self.entries, *self.stretch):
            if row[f] < UNKNOWN:
                row[f] = np.float32(np.clip((float(row[f]) - middle) / spread, -1e6, 1e6))
        self.offsets[f] += middle * unit
        self.units[f] = unit * spread

    def _distance(self):
        end = len(self.entries)
        first, last = end - min(end, self.kept), min(self.usable - self.blocks, end - 2 * self.blocks)
        if last - first < 50 or len(self.stretch) < self.blocks:
            return math.nan
        near, at = self.nearest(self.stretch, first, last)
        if near == math.inf:
            return math.nan
        newest = [
            (float(self.stretch[i][f]) - float(self.entries[at + i][f])) ** 2
            for f in range(len(self.units))
            for i in range(self.blocks - self.newest, self.blocks)
            if all(row[f] < UNKNOWN for row in self.stretch)
        ]
        return math.sqrt(min(near, sum(newest) / len(newest)))

    def nearest(self, stretch, first, last):
        """The mean squared distance to the nearest stretch that begins from `first` to `last`, and where it begins."""
        stretch, length = np.array(stretch, dtype=np.float32), len(stretch)
        features = [f for f in range(stretch.shape[1]) if (stretch[:, f] < UNKNOWN).all()]
        if not features or last < first:
            return math.inf, first
        entries = np.array(self.entries[first : last + length], dtype=np.float32)
        sums = np.zeros(last + 1 - first, dtype=np.float32)
        for part in range(0, length, 8):
            for f in features:
                for i in range(part, part + 8):
                    sums += (stretch[i, f] - entries[i : i + sums.size, f]) ** 2
        least = float(sums.min())
        at = first + int(np.flatnonzero(sums == sums.min())[-1])
        return (least / (length * len(features)) if least < UNKNOWN else math.inf), at

    def forget(self):
        """The newest observation belongs to a fault."""
        if self.count % self.block == 0:
            self.faulty.add(len(self.entries) - 1)


class Past:
    """The newest scores of a stream with equal weights, and scores that wait to be among them."""

    def __init__(self, window, waits=0):
        self.scores, self.learned = deque(maxlen=window), 0
        self.pending, self.waits = deque(), waits

    def compare(self, score, length=1):
        """p-value and surprise of a score about so many observations."""
        past = np.array(self.scores)
        p = (1 + np.sum(past >= score)) / (1 + past.size)
        return float(p), surprise(past, np.ones(past.size), score, length=length)

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
        past, weights, total = self.scorer.calibration_set(0)
        p = min(1.0, (1 + float(weights[past >= score].sum(dtype=np.float64))) / (1 + total))
        return p, surprise(past, weights, score, total=total)

    def learn(self, score):
        self.scorer.update(score)


class OracleRecall:
    """What a signal was like before an incident: every stretch is compared with every other."""

    def __init__(self, shape):
        self.shape, self.length = shape, STRETCH // shape.block

    def _span(self, before):
        end = len(self.shape.entries)
        there = min(end, self.shape.kept - TOGETHER // self.shape.block - 1)
        last = min(end - math.ceil(before / self.shape.block), self.shape.usable) - self.length
        return end - there, last, end - self.length

    def _stretch(self, start):
        return self.shape.entries[start : start + self.length]

    def furthest(self, before):
        first, last, _ = self._span(before)
        apart = min(256 // self.shape.block, (last - first) // 4)
        if apart < 2 * self.length:
            return math.inf
        furthest = 0.0
        for start in range(first, last + 1, max((last + 1 - first) // 50, 1)):
            near = min(
                self.shape.nearest(self._stretch(start), first, start - apart)[0],
                self.shape.nearest(self._stretch(start), start + apart, last)[0],
            )
            furthest = max(furthest, near if near < math.inf else 0.0)
        return furthest * (1 + 1e-6)

    def unlike(self, before, furthest):
        first, last, newest = self._span(before)
        if not furthest < math.inf or last < first:
            return False
        return furthest < self.shape.nearest(self._stretch(newest), first, last)[0] < math.inf


class OracleDetector:
    """All settings under the names of `Fleet`; `forecaster` is one of the two above, or None, and so is the second."""

    def __init__(
        self,
        features,
        sizes,
        *,
        forecaster,
        alarm_rate,
        views,
        second=None,
        promise="incidents",
        nonconformity="absolute",
        scaled=False,
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
        self.horizons = max(1, *(HORIZONS.get(view, 0) for view in self.views))
        # The second forecaster is one like the first that looks a single step ahead.
        self.second = (
            None
            if second is None
            else OracleDetector(features, sizes, forecaster=second, alarm_rate=alarm_rate, views=("quiet",))
        )
        self.longest_gap = self.horizons
        if self.second is not None:
            self.second.longest_gap = self.horizons
        self.cells = [
            (view, feature, stream, length)
            for view in self.views
            for feature in ((None,) if view in JOINT else range(features))
            for stream, length in enumerate(VIEWS[view])
        ]
        self.past = [
            Learned(sizes, learning_rate) if length == 1 else Past(sizes.window, waits=length)
            for *_, length in self.cells
        ]
        self.longest = max(length for *_, length in self.cells)
        scales = ((16, 1, 2000, 16), (32, 2, 10_000, 16)) if "shape" in self.views else ()
        self.shapes = [OracleShape(features, *scale) for scale in scales]
        self.final = Past(sizes.final)
        self.history = [[] for _ in range(features)]
        self.issued = []  # after each observation: for each feature the age of its forecasts, medians and spreads
        self.seen = self.scored = 0
        self.gaps, self.rests = [0] * features, [0] * features
        self.open, self.since, self.lasted = False, 0, 0
        self.blocks, self.highest, self.in_block = deque(maxlen=sizes.blocks), -math.inf, 0
        self.tightened, self.certain = 0.0, False
        self.thresholds = [math.log(level) for level in LEVELS]
        self.recall = OracleRecall(self.shapes[-1]) if self.shapes and alarm_rate <= 1 / STRETCH else None
        self.furthest, self.was_unlike, self.rest = None, False, 0
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
        self.issued.append([self._issue(f) for f in range(self.features)])
        scores = self._scores(values, predicted, ready, self._one_step(values) if self.second else None)
        self.seen += 1
        return self._judge(scores, [row[0] for row in predicted])

    def _one_step(self, values):
        """What the second forecaster said of each value, and whether it is ready."""
        other = self.second
        said = [(other._predicted(f, 1), other._ready(f, values[f])) for f in range(self.features)]
        for f in range(self.features):
            other.history[f].append(values[f])
        other.issued.append([other._issue(f) for f in range(self.features)])
        other.seen += 1
        return said

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
            return 0, *self.forecaster.forecast(self.history[feature], self.horizons + self.refresh - 1)
        _, medians, spreads = self.issued[-1][feature]
        return age, medians, spreads

    def _ready(self, feature, value):
        """Whether the forecaster has settled, and no long gap was so short a time ago that it has not recovered."""
        if self.forecaster is None:
            return True
        resting = self.rests[feature] > 0
        if math.isnan(value):
            self.gaps[feature] += 1
            if self.gaps[feature] > self.longest_gap:
                self.rests[feature] = max(self.forecaster.recovers, self.longest_gap)
        else:
            self.gaps[feature] = 0
            self.rests[feature] -= resting
        return self.seen >= self.forecaster.warm_up and not resting

    def _scores(self, values, predicted, ready, second):
        """One number for each cell."""
        shapes = [shape.update(values) for shape in self.shapes]
        scores = []
        for view, f, stream, _ in self.cells:
            if view in JOINT:
                score = shapes[stream]
            elif view == "score":
                score = values[f]
            elif view == "quiet":
                score = self._quiet(f)
            elif stream == 1 and second is not None:
                score = self._error(f, values[f], [second[f][0]]) if second[f][1] else math.nan
            else:
                score = self._error(f, values[f], predicted[f][: 15 if stream == 0 else 1]) if ready[f] else math.nan
            scores.append(score)
        return scores

    def _sided(self, error):
        return -error if self.side == "low" else error

    def _error(self, f, value, predicted):
        errors = []
        for h in range(len(predicted)):
            error = value - predicted[h]
            if not math.isnan(error):
                wide = self._spread(f, h + 1) if self.scaled else None
                errors.append(error / max(wide, 1e-9 * (abs(predicted[h]) + 1e-300)) if self.scaled else error)
        if not errors:
            return math.nan
        if self.side == "absolute":
            return math.copysign(sum(map(abs, errors)), sum(errors)) / len(errors)
        return self._sided(sum(errors)) / len(errors)

    def _quiet(self, f):
        newest = self.history[f][-49:]
        steps = known([abs(after - before) for before, after in itertools.pairwise(newest)])
        if len(newest) < 49 or math.isnan(newest[-1]) or len(steps) < 24:
            return math.nan
        mean = sum(steps) / len(steps)
        return min(-math.log(mean), 745.0) if mean > 0 else 745.0

    def _size(self, score, view):
        kept = single(score)
        return abs(kept) if self.side == "absolute" and view in SIDED else kept

    def _judge(self, scores, forecast):
        sizes = [self._size(score, view) for score, (view, *_) in zip(scores, self.cells, strict=True)]
        rests, self.rest = self.rest > 0, max(self.rest - 1, 0)
        p, surprises = [], []
        for size, past, (*_, length) in zip(sizes, self.past, self.cells, strict=True):
            one, strange = (math.nan, math.nan) if math.isnan(size) else past.compare(size, length)
            heard = past.learned >= LEAST_LEARNED * math.sqrt(length)
            p.append(one)
            surprises.append(strange if heard else math.nan)
        feature_p = [self._bonferroni(p, lambda feature, f=f: feature == f) for f in range(self.features)]
        votes, by_view = self._votes(surprises, rests)
        self.scored += bool(votes)
        evidence = math.nan
        if votes and self.scored > VIEW_WARM_UP:
            shares = [min(1.0, WITNESSES - n) for n in range(min(len(votes), math.ceil(WITNESSES)))]
            evidence = single(sum(map(operator.mul, shares, votes)) / sum(shares))
        cause, score, stretch = (-1, -1, -1), math.nan, 0
        there = [c for c, one in enumerate(surprises) if not math.isnan(one)]
        if there:
            close = [c for c in there if surprises[c] >= 0.5 * max(surprises[c] for c in there)]
            most = min(close, key=lambda c: (self.cells[c][3], -surprises[c], c))
            view, feature, stream, stretch = self.cells[most]
            cause = (self.views.index(view), stream, -1 if feature is None else feature)
            score = self._sided(scores[most])
        found = self._decide(evidence, p, stretch)
        self._learn(sizes, rests or self.rest > 0)
        return {
            **found, "forecast": forecast, "evidence": evidence, "feature_p": feature_p, "views": by_view,
            "cause": cause, "score": score,
        }  # fmt: skip

    def _bonferroni(self, p, chosen=lambda feature: True):
        there = known([one for one, (_, feature, *_) in zip(p, self.cells, strict=True) if chosen(feature)])
        return min(1.0, len(there) * min(there)) if there else math.nan

    def _votes(self, surprises, rests):
        """One vote for each stream, over its features, the largest first; and the largest of each view."""
        votes, by_view = [], []
        for view in self.views:
            largest = math.nan
            for stream, length in enumerate(VIEWS[view]):
                there = known(
                    [
                        one
                        for one, cell in zip(surprises, self.cells, strict=True)
                        if (cell[0], cell[2]) == (view, stream)
                    ]
                )
                if there:
                    vote = harmonic(there) if len(there) > 1 else there[0]
                    largest = vote if math.isnan(largest) else max(largest, vote)
                    if not (rests and length > STRETCH):
                        votes.append(vote)
            by_view.append(largest)
        return sorted(votes, reverse=True), by_view

    def _calibrated(self, rank):
        """p from a rank: each level has a threshold that ranks are below as often as the level says."""
        rank = math.log(rank)
        points = list(zip(itertools.accumulate(self.thresholds, max), map(math.log, LEVELS), strict=True))
        points.append((0.0, 0.0))
        above = next((n for n, (threshold, _) in enumerate(points) if rank < threshold), None)
        if above == 0:
            p = points[0][1] + rank - points[0][0]
        elif above is None:
            p = 0.0
        else:
            (lower, below), (upper, level) = points[above - 1], points[above]
            p = below + (level - below) * (rank - lower) / (upper - lower)
        for n, level in enumerate(LEVELS):
            hit = rank < self.thresholds[n]
            self.thresholds[n] = min(self.thresholds[n] + 0.05 * (level - hit) / math.sqrt(level), 0.0)
        return min(math.exp(p), 1.0)

    def _decide(self, evidence, p, stretch):
        singles = [one if cell[3] == 1 else math.nan for one, cell in zip(p, self.cells, strict=True)]
        bound = self._bonferroni(singles if known(singles) else p)
        alarm, warm, estimated, rate = False, False, False, math.nan
        if not math.isnan(evidence):
            calibrated = len(self.final.scores) >= self.sizes.min_calibration
            if calibrated:
                bound = self._calibrated(self.final.compare(evidence)[0])
            self.final.learn(evidence)
            block = self.sizes.block
            rate = self._rate(evidence)
            self.certain = self.certain or self._rate(evidence - 3) < self.rate
            own = len(self.blocks) * block * self.rate >= 1
            if self.by_p:
                alarm, warm = calibrated and bound < self.rate, calibrated
                rate = rate if calibrated else math.nan
            elif calibrated and (own or (self.early and len(self.blocks) >= 5)):
                self.tightened = min(self.tightened + 0.1 * self.rate, 0.4)
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
        begins, beyond, decay = self._tail()
        estimated = self._poisson(beyond) * math.exp(-(evidence - begins) / decay)
        return min(max(estimated, rate / 100), rate)

    def _tail(self):
        """Where the tail of the highest evidence begins, how many blocks are beyond, and its decay.

        It begins at the mean of all, then of those above it, and so on, until few enough are left.
        """
        begins = statistics.fmean(self.blocks)
        beyond = [one for one in self.blocks if one >= begins]
        while len(beyond) > 2 * math.sqrt(len(self.blocks)) and statistics.fmean(beyond) > begins:
            begins = statistics.fmean(beyond)
            beyond = [one for one in beyond if one >= begins]
        return begins, len(beyond), (sum(one - begins for one in beyond) + 10 * 1.3) / (len(beyond) + 10)

    def _least_evidence(self):
        """The least evidence that comes as rarely as tolerated."""
        count, highest = len(self.blocks), sorted(self.blocks, reverse=True)
        allowed = math.ceil(-math.expm1(-self.rate * self.sizes.block) * (1 + count)) - 1
        if allowed >= 1:
            return highest[min(allowed, count) - 1]
        if not self.early or count < 5:
            return math.inf
        begins, beyond, decay = self._tail()
        return max(begins + decay * math.log(self._poisson(beyond) / self.rate), highest[0])

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
                patience = max(self.gap, 2 * STRETCH)
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

    def _learn(self, sizes, rests):
        """What belongs to an incident that is no chance is not learned until it is accepted, nor what waited then."""
        if self.certain and self.lasted <= self.accept_after:
            for past in self.past:
                past.pending.clear()
            for shape in self.shapes if self.lasted > STRETCH else ():
                shape.forget()
            return
        for size, past, (*_, length) in zip(sizes, self.past, self.cells, strict=True):
            if not math.isnan(size) and not (rests and length > STRETCH):
                past.learn(size)
