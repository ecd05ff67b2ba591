"""A detector of one signal, slow and obvious: plain lists, one observation at a time, written from the documents.

Only the weights that W1-ACAS learns and the search for a season are taken from the library, where they have tests of
their own.
"""

import itertools
import math
import operator
import statistics
from collections import deque

import numpy as np

from tests.oracles import surprise
from tocsin.conformal import W1ACAS
from tocsin.detection.views.level import _season_of_noise, find_season

# The streams of each view: how many of the newest observations each looks at.
VIEWS = {
    "error": [1, 1], "movement": [48, 48, 1], "shape": [16, 64], "level": [1, 16, 64, 512],
    "relation": [1, 16, 64, 16, 64], "score": [1],
}  # fmt: skip
JOINT, SIDED = ("shape",), ("error", "level", "relation")
HORIZONS = {"error": 15}
WITNESSES = 2.25
LEAST_LEARNED, STAND_IN = 50, 20
# Whether a signal is as before is asked of so many observations, and so many are judged together at most.
STRETCH, TOGETHER = 32, 50
# All scores of stretches up to this long are kept; whether a level is usual is asked of stretches from this long on.
LONG = 64
# What is kept of a signal to tell what is usual: values, and means of blocks.
FINE, COARSE, BLOCK = 10_240, 6_144, 8
LEVELS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
UNKNOWN = np.float32(1e18)
NORMAL, MAY_END, ONGOING, RETURNED, ACCEPTED, SILENT, SUBSIDED = range(7)


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
        spread = float(np.median(away)) or (float(np.mean(away[away > 0])) if away.any() else 0.0)
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


class OracleLevel:
    """How far one feature is from what is usual: from the same time of earlier cycles or, without a season, at all."""

    def __init__(self, sided, seasons, calendar):
        self.sided, self.seasons, self.calendar = sided, seasons, calendar
        self.values, self.blocks = [], []  # everything since the beginning, and the means of blocks of it
        self.away, self.away_blocks = [], []  # the distances since the season was found, and the means of blocks
        self.faulty, self.faulty_blocks, self.noted = set(), set(), set()
        self.period, self.centre, self.spread, self.held = 0, math.nan, 0.0, math.nan
        self.noise = 0  # the period of the noise
        self.current = []

    def look_back(self):
        """Now and then; returns whether distances mean something else from now on."""
        count = len(self.values)
        renewed = False
        if count and count % (TOGETHER if count < 500 else 500) == 0:
            fine, coarse = np.array(self.values[-FINE:]), np.array(self.blocks[-COARSE:])
            with_season = count < 2000 or count % 2000 == 0
            if with_season:
                period = self._season(fine, coarse)
                renewed = abs(period - self.period) > 0.02 * max(period, 1)
                found = self.seasons is None
                self.noise = _season_of_noise(fine, self.calendar, self.noise, period) if found else period
                self.period = period
                if renewed:
                    self.faulty, self.faulty_blocks = set(), set()
            first = len(self.blocks) - coarse.size
            sound = [block for n, block in enumerate(coarse, start=first) if n not in self.faulty_blocks]
            level = self._level(known(fine if count < 500 else sound)), self._spread(fine, coarse)
            if not self.period and count >= 500:
                faulty = any(number >= count - 2 * TOGETHER for number in self.noted)
                otherwise = level if with_season else (self.centre, self.spread)
                level = self._present_level(known(fine), *level, faulty) or otherwise
                moved = abs(level[0] - self.centre)
                renewed = renewed or not (math.isnan(self.centre) or moved <= 6 * min(level[1], self.spread))
            if with_season or not self.period:
                self.centre, self.spread = level
            if renewed:
                self.away, self.away_blocks, self.held = [], [], math.nan
        if count % TOGETHER == 0:
            # What belongs to a fault is known by then, and no comparison.
            late = {number for number in self.noted if number < count - TOGETHER}
            self.faulty |= late
            self.faulty_blocks |= {number // BLOCK for number in late}
            self.noted -= late
        return renewed

    def _season(self, fine, coarse):
        if self.seasons is None:
            return find_season(fine, coarse, BLOCK, self.calendar, self.period)
        return max((one for one in self.seasons if 2 * one <= len(self.values)), default=0)

    def _level(self, there):
        """The median, unless the newer half has moved away by more than what is usual."""
        if len(there) < 2:
            return math.nan
        half, middle = len(there) // 2, statistics.median(there)
        moved = abs(statistics.median(there[half:]) - statistics.median(there[:half]))
        usual = statistics.median(abs(one - middle) for one in there)
        return middle if moved <= usual or max(there) == min(there) else math.nan

    def _present_level(self, there, of_all, spread_of_all, faulty):
        """That of all the past, or of the newest steady part of it if that has another one."""
        parts = []
        while len(there) >= 128 * (len(parts) + 1):
            end = len(there) - 128 * len(parts)
            parts.insert(0, there[end - 128 : end])
        if len(parts) < 4:
            return None
        middles = [statistics.median(part) for part in parts]
        newest = [one for part in parts[-4:] for one in part]
        away = [[abs(one - middle) for one in part] for part, middle in zip(parts, middles, strict=True)]
        usual = statistics.median(itertools.chain(*away[-4:]))
        together = [sum(one <= 6 * usual for one in part) >= 0.9 * 128 for part in away]
        if sum(together) < 0.9 * len(together):
            return None
        if faulty:
            return self.centre, self.spread
        if usual > 0 and max(middles[-4:]) - min(middles[-4:]) <= usual and all(together[-4:]):
            level = statistics.median(newest)
            if abs(level - of_all) <= 6 * usual:
                return of_all, spread_of_all
            alike = 0
            while alike < len(parts) and abs(middles[-1 - alike] - level) <= usual:
                alike += 1
            return statistics.median(one for part in parts[-alike:] for one in part), usual
        if math.isnan(of_all) and abs(middles[-1] - self.centre) <= 6 * self.spread:
            return self.centre, self.spread
        return of_all, spread_of_all

    def _spread(self, fine, coarse):
        """The median distance from what is usual, or the mean where most are zero."""
        values, lag = (fine, self.period) if 2 * self.period <= fine.size else (coarse, self.period // BLOCK)
        if self.period:
            apart = [abs(new - old) / math.sqrt(2) for old, new in zip(values, values[lag:], strict=False)]
        else:
            middle = statistics.median(known(fine) or [0.0])
            apart = [abs(one - middle) for one in fine]
        apart = known(apart)
        return (statistics.median(apart) or statistics.fmean(apart)) if apart else 0.0

    def update(self, value):
        """The distance of the value, and of the newest 16, 64 and 512 on average."""
        value = value if abs(value) <= 1e38 else math.nan
        away = self.sided(value - self._usual())
        reached = known([2 * abs(self._mean(self.away, LONG))])
        limit = max(6 * self.spread, *reached) if self.spread and reached else 6 * self.spread or math.inf
        self.away.append(away if math.isnan(away) else min(max(away, -limit), limit))
        self.values.append(single(value))
        self.current.append(value)
        if len(self.values) % BLOCK == 0:
            self.blocks.append(single(self._mean(self.current, BLOCK)))
            self.away_blocks.append(self._mean(self.away, BLOCK))
            self.held = self._mean(self.away_blocks, LONG)
            self.current = []
        if math.isnan(away):
            return [math.nan] * 4
        return [away, self._mean(self.away, 16), self._mean(self.away, LONG), self.held]

    def _usual(self):
        if self.period == 0:
            return self.centre
        now = len(self.values)
        if 5 * self.period <= FINE:
            entries, faulty, kept, size = self.values, self.faulty, FINE, 1
        else:
            entries, faulty, kept, size = self.blocks, self.faulty_blocks, COARSE, BLOCK
        # The newest hundred may yet turn out to belong to a fault.
        first = next(cycle for cycle in itertools.count(1) if cycle * self.period > 2 * TOGETHER + size)
        cycles = []
        for cycle in itertools.count(first):
            at = (now - cycle * self.period) // size
            if at + 1 < max(len(entries) - kept, 0) or len(cycles) == 5:
                break
            around = [i for i in (at - 1, at, at + 1) if max(len(entries) - kept, 0) <= i < len(entries)]
            there = known([entries[i] for i in around if i not in faulty])
            if there:
                cycles.append(there)
        there = [*itertools.chain(*cycles)]
        return statistics.median(there) if len(there) >= 3 else math.nan

    def _mean(self, entries, length):
        """The mean of the newest; NaN if fewer than half are known."""
        there = known(entries[-length:])
        return sum(there) / len(there) if 2 * len(there) >= length else math.nan

    def forget(self):
        """The newest observation belongs to a fault."""
        self.noted.add(len(self.values) - 1)


class OracleSeason:
    """How far one feature is into the season of its noise, and its smallest step."""

    def __init__(self):
        self.period = self.at = self.phases = 0
        self.step = self.last = math.inf

    def enter(self, value, period):
        """Returns whether the season is another one, and whether it begins again."""
        if not math.isnan(value):
            self.step = min([self.step, *[step for step in (abs(value - self.last),) if step > 0]])
            self.last = value
        anew = abs(period - self.period) > 0.02 * period
        if anew:
            self.at, self.phases = 0, min(period, 96)
        self.period = period
        self.at = (self.at + 1) % period if period else self.at
        return anew, period > 0 and self.at == 0

    @property
    def phase(self):
        return self.at * self.phases // self.period


class OracleSizes:
    """How large one score of single observations is expected to be, and how large it was relative to that."""

    def __init__(self, window):
        self.window = min(500, window)
        self.forget()

    def forget(self):
        self.means, self.counts, self.speaks = {}, {}, False
        self.relative = deque(maxlen=self.window)

    def expected(self, season, least):
        if not season.period:
            return math.nan
        around, before, after = (
            [(season.phase + i) % season.phases for i in range(first, first + 3)] for first in (-1, -2, 0)
        )
        mean, differ = self._mean(around)
        for phases in (before, after):
            other, differs = self._mean(phases)
            if differs < differ / 2:
                mean, differ = other, 2 * differs
        size = mean if math.isnan(mean) else max(mean, least)
        return size if size > 0 else math.nan

    def _mean(self, phases):
        """The mean of the sizes at these phases, and their variance over its square."""
        there = [self.means[one] for one in phases if one in self.means]
        if sum(min(self.counts.get(one, 0), 4) for one in phases) < 6 or not any(there):
            return math.nan, math.inf
        mean = sum(there) / len(there)
        return mean, sum(one * one for one in there) / len(there) / mean**2 - 1

    def learn(self, score, expected, season):
        """What a score is worth counts up to three times what is expected."""
        if not season.period:
            return
        size = abs(score) if math.isnan(expected) else min(abs(score), 3 * expected)
        kept = max(8 * season.period, 2000) // season.phases
        count = self.counts[season.phase] = min(self.counts.get(season.phase, 0) + 1, kept)
        mean = self.means.get(season.phase, 0.0)
        self.means[season.phase] = single(mean + (size - mean) / count)
        if self.speaks and not math.isnan(expected):
            self.relative.append(single(score / expected))

    def ask(self, season):
        """Whether the loudest eighth of 24 groups of phases is louder than the quietest one."""
        groups = min(24, season.phases)
        edges = [g * season.phases // groups for g in range(groups + 1)]
        parts = [range(*edge) for edge in itertools.pairwise(edges)]
        known = [sum(self.counts.get(one, 0) for one in part) for part in parts]
        self.speaks = groups >= 4 and min(known) >= max(32, 5 * season.period // groups)
        if self.speaks:
            means = sorted(
                sum(self.counts.get(one, 0) * self.means.get(one, 0.0) for one in part) / count
                for part, count in zip(parts, known, strict=True)
            )
            eighth = max(groups // 8, 1)
            self.speaks = sum(means[-eighth:]) > 1.6 * sum(means[:eighth])


class OracleRelativeLevel:
    """The mean of the newest 16 distances from what is usual, each in its expected size and at most 6."""

    def __init__(self, window):
        self.window = min(500, window)
        self.forget()

    def forget(self):
        self.newest, self.pending, self.number = deque(maxlen=16), deque(), 0
        self.forget_levels()

    def forget_levels(self):
        self.learned = deque(maxlen=self.window)

    def update(self, away):
        self.newest.append(away if math.isnan(away) else single(min(max(away, -6), 6)))
        there = known(self.newest)
        return sum(there) / len(there) if len(there) >= 8 and not math.isnan(away) else math.nan

    def learn(self, level):
        """Every fourth one, once it shares no observation with the newest."""
        if self.number % 4 == 0:
            self.pending.append(level)
            if len(self.pending) > 4:
                self.learned.append(single(self.pending.popleft()))
        self.number += 1

    def drop_pending(self):
        self.pending.clear()
        self.number = 0


class OracleRelation:
    """How far each feature is from what the others say: a ridge regression on all others that are known.

    Every 50 observations it learns those from 100 to 50 observations ago, one by one, unless one of these or of the 32
    after it belongs to a fault.
    """

    def __init__(self, sided, both, features, kept=2000):
        self.sided, self.both, self.kept = sided, both, kept
        self.least = math.ceil((100 + 4 * features) / TOGETHER) * TOGETHER
        self.values, self.faulty, self.learned = [], set(), 0
        self.centre, self.covariance = np.full(features, np.nan), np.zeros((features, features))
        self.away = [[] for _ in range(features)]
        self._relate()

    def _relate(self):
        spread = np.sqrt(np.diag(self.covariance))
        self.spread = np.where(spread > 1e-8 * np.abs(self.centre), spread, 0.0)
        self.moves = self.spread > 0
        scale = np.where(self.moves, self.spread, np.inf)
        self.correlation = self.covariance / np.outer(scale, scale)
        np.fill_diagonal(self.correlation, 1.001)

    def _units(self, values):
        """In units of the spread; missing where nothing is known, 0 where nothing moves."""
        with np.errstate(all="ignore"):
            units = np.clip((values - self.centre) / self.spread, -6, 6)
        return np.where(self.moves, units, 0.0)

    def _said(self, of, by, units):
        """What some features say about others: mean and covariance."""
        r = self.correlation
        weights = np.linalg.solve(r[np.ix_(by, by)], r[np.ix_(by, of)]).T
        return weights @ units[by], r[np.ix_(of, of)] - weights @ r[np.ix_(by, of)]

    def learn(self, first, last):
        table = np.array(self.values[first:last])
        for f in np.flatnonzero(~self.moves):
            there = known(table[:, f])
            if there:
                middle = statistics.median(there)
                apart = [abs(one - middle) for one in there]
                spread = statistics.median(apart) or statistics.fmean(apart) or max(1e-9 * abs(middle), 1e-300)
                self.centre[f] = middle
                self.covariance[f, :] = self.covariance[:, f] = 0.0
                self.covariance[f, f] = (1.4826 * spread) ** 2
        self._relate()
        for number in range(first, last):
            if not self.faulty & set(range(number, number + 33)):
                self._learn_one(self._units(np.array(self.values[number])))
        self._relate()

    def _learn_one(self, units):
        gaps, there = np.flatnonzero(np.isnan(units)), np.flatnonzero(~np.isnan(units))
        number = int((self.moves & ~np.isnan(units)).sum())
        if number == 0:
            return
        within = np.zeros_like(self.covariance)
        units[gaps], within[np.ix_(gaps, gaps)] = self._said(gaps, there, units)
        distance = units @ np.linalg.solve(self.correlation, units)
        self.learned += 1
        weight = 1 / min(10 + self.learned, self.kept)
        counts = weight * min(1.0, 3 * number / distance) if distance > 0 else weight
        seen = (np.outer(units, units) + within) * np.outer(self.spread, self.spread)
        self.covariance = (1 - weight) * self.covariance + counts * seen
        self.centre = self.centre + weight * units * self.spread

    def update(self, values):
        """For each feature: its distance, its means over 16 and 64, and those of its size."""
        count = len(self.values)
        if count % TOGETHER == 0 and count >= 2 * TOGETHER:
            self.learn(count - 2 * TOGETHER, count - TOGETHER)
        values = np.array([value if abs(value) <= 1e38 else math.nan for value in values])
        self.values.append(values)
        units = self._units(values)
        there = np.flatnonzero(~np.isnan(units))
        related = count >= self.least and (self.moves & ~np.isnan(units)).sum() > 1
        rows = []
        for f, away in enumerate(self.away):
            distance, limit = math.nan, 0.0
            if related and self.moves[f] and not math.isnan(values[f]):
                said, _ = self._said(np.array([f]), there[there != f], units)
                distance = self.sided(values[f] - (self.centre[f] + self.spread[f] * float(said[0])))
                others = np.delete(np.arange(len(values)), f)
                _, varies = self._said(np.array([f]), others, np.zeros(len(values)))
                usual = self.spread[f] * math.sqrt(varies[0, 0])
                if count and values[f] == self.values[-2][f] and abs(distance) < 0.25 * usual:
                    distance = 0.0
                limit = 6 * usual
            away.append(distance if math.isnan(distance) else min(max(distance, -limit), limit))
            means = [self._mean(away[-length:], length) for length in (16, 64)]
            sizes = [self._mean([abs(one) for one in away[-length:]], length) for length in (16, 64)]
            missing = math.isnan(distance)
            rows.append([math.nan] * 5 if missing else [distance, *means, *(sizes if self.both else [math.nan] * 2)])
        return rows

    def _mean(self, entries, length):
        there = known(entries)
        return sum(there) / len(there) if 2 * len(there) >= length else math.nan

    def forget(self):
        """The newest observation belongs to a fault."""
        self.faulty.add(len(self.values) - 1)


def trusted(total):
    """Of few scores, the tail is trusted less far."""
    return min(30.0, 2 * math.sqrt(total))


class Past:
    """The newest scores of a stream with equal weights, and scores that wait to be among them.

    A score about n observations waits for n, and of those about very many only every few are kept.
    """

    def __init__(self, window, waits=0):
        self.scores, self.learned = deque(maxlen=window), 0
        self.pending, self.waits, self.every, self.number = deque(), waits, max(waits // LONG, 1), 0

    def compare(self, score, length=1):
        """p-value and surprise of a score about so many observations."""
        past = np.array(self.scores)
        p = (1 + np.sum(past >= score)) / (1 + past.size)
        return float(p), surprise(past, np.ones(past.size), score, length=length, trust=trusted(past.size))

    def learn(self, score):
        """One that shares no observation with a newest score to come."""
        if self.number % self.every == 0:
            self.pending.append(score)
            if len(self.pending) > self.waits // self.every:
                self.scores.appendleft(self.pending.popleft())
                self.learned += 1
        self.number += 1

    def drop_pending(self):
        self.pending.clear()
        self.number = 0


class Learned:
    """A stream whose weights over the past are learned."""

    def __init__(self, sizes, learning_rate):
        self.scorer = W1ACAS(
            alpha_c=sizes.alpha_c, window=sizes.window, learning_rate=learning_rate * sizes.window, optimizer="sgd",
            prior="extend",
        )  # fmt: skip
        self.every = 1

    @property
    def learned(self):
        return int(self.scorer.learned[0])

    def compare(self, score, length=1):
        past, weights, total = self.scorer.calibration_set(0)
        p = min(1.0, (1 + float(weights[past >= score].sum(dtype=np.float64))) / (1 + total))
        return p, surprise(past, weights, score, total=total, trust=trusted(total))

    def learn(self, score):
        self.scorer.update(score)

    def drop_pending(self):
        """Nothing waits."""


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
        season="auto",
        **_,
    ):
        self.features, self.sizes, self.forecaster, self.rate = features, sizes, forecaster, alarm_rate
        self.views = ["score"] if forecaster is None else [one for one in views if features > 1 or one != "relation"]
        self.by_p, self.early = promise == "observations", early
        self.side = nonconformity
        self.scaled, self.refresh, self.accept_after, self.gap = scaled, refresh, accept_after, gap
        self.horizons = max(1, *(HORIZONS.get(view, 0) for view in self.views))
        # The second forecaster is one like the first that looks a single step ahead.
        self.second = (
            None
            if second is None
            else OracleDetector(features, sizes, forecaster=second, alarm_rate=alarm_rate, views=("movement",))
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
        self.learning_rate = learning_rate
        self.past = [self._new_past(length) for *_, length in self.cells]
        seasons = None if season == "auto" else () if season == "none" else (season,)
        self.levels = [OracleLevel(self._sided, seasons, ()) for _ in range(features if "level" in self.views else 0)]
        self.noise_seasons = [OracleSeason() for _ in range(features)]
        alone = [c for c, (*_, f, _, length) in enumerate(self.cells) if length == 1 and f is not None]
        self.sizes_of = {c: OracleSizes(sizes.window) for c in alone}
        self.relative_levels = [OracleRelativeLevel(sizes.window) for _ in range(features)]
        relates = "relation" in self.views
        self.relations = [OracleRelation(self._sided, nonconformity == "absolute", features)] if relates else []
        scales = ((16, 1, 2000, 16), (32, 2, 10_000, 16)) if "shape" in self.views else ()
        self.shapes = [OracleShape(features, *scale) for scale in scales]
        self.final = Past(sizes.final)
        self.history = [[] for _ in range(features)]
        self.issued = []  # after each observation: for each feature the age of its forecasts, medians and spreads
        self.seen = self.scored = 0
        self.gaps, self.rests = [0] * features, [0] * features
        self.open, self.since, self.lasted, self.settled = False, 0, 0, 0
        # At first, a signal's blocks are as usual, by Gumbel's law; its own replace them, the lowest first.
        usual = min(STAND_IN, sizes.blocks)
        often = [-math.log((n + 1) / (usual + 1)) for n in range(usual)]
        self.usual = [-1.7 + 1.3 * (math.log(sizes.block) - math.log(one)) for one in often]
        self.own, self.completed, self.highest, self.in_block = deque(maxlen=sizes.blocks), 0, -math.inf, 0
        self.tightened, self.certain = -0.2, False
        self.thresholds = [math.log(level) for level in LEVELS]
        self.recall = OracleRecall(self.shapes[-1]) if self.shapes and alarm_rate <= 1 / STRETCH else None
        self.furthest, self.was_unlike, self.farthest, self.where = None, False, 0.0, 0
        self.now, self.adapting = {}, 0  # the newest levels; and how long the past still holds two normals
        self.ended = math.inf  # how many observations ago the signal was as before again after an incident
        self.highest_learned = math.inf
        self.away_while_certain = self.away_while_uncertain = 0  # for tests to see that this was tried

    def _new_past(self, length):
        return Learned(self.sizes, self.learning_rate) if length == 1 else Past(self.sizes.window, waits=length)

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
        renewed = [level.look_back() for level in self.levels]
        if any(renewed):
            self.past = [
                self._new_past(length) if view == "level" and renewed[f] else past
                for past, (view, f, _, length) in zip(self.past, self.cells, strict=True)
            ]
            for c, sizes in self.sizes_of.items():
                if self.cells[c][0] == "level" and renewed[self.cells[c][1]]:
                    sizes.forget()
            for f, level in enumerate(self.relative_levels):
                if renewed[f]:
                    level.forget()
        for f, value in enumerate(values):
            self._enter_phase(f, value)
        levels = [level.update(value) for level, value in zip(self.levels, values, strict=False)]
        relations = [relation.update(values) for relation in self.relations]
        scores = []
        for view, f, stream, _ in self.cells:
            if view in JOINT:
                score = shapes[stream]
            elif view == "score":
                score = values[f]
            elif view == "movement":
                score = self._movement(f)[stream]
            elif view == "level":
                score = levels[f][stream]
            elif view == "relation":
                score = relations[0][f][stream]
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

    def _movement(self, f):
        newest = self.history[f][-49:]
        steps = [abs(after - before) for before, after in itertools.pairwise(newest)]
        there = known(steps)
        if len(newest) < 49 or math.isnan(newest[-1]) or len(there) < 24:
            return math.nan, math.nan, math.nan
        most = 3.0 * statistics.median(there)
        logs = [
            min(-math.log(mean), 745.0) if mean > 0 else 745.0
            for mean in (sum(there) / len(there), sum(min(step, most) for step in there) / len(there))
        ]
        return logs[0], -logs[1], steps[-1]

    def _enter_phase(self, f, value):
        """The noise of a feature goes on in its season."""
        season = self.noise_seasons[f]
        anew, begins = season.enter(value, self.levels[f].noise if self.levels else 0)
        if anew:
            self.relative_levels[f].forget()
        for c, sizes in self.sizes_of.items():
            if self.cells[c][1] == f and anew:
                sizes.forget()
            elif self.cells[c][1] == f and begins:
                sizes.ask(season)

    def _relate(self, scores, sizes, surprises):
        """What each score is expected to be, the relative levels, and the surprises with those of relative scores."""
        expected, levels, found = {}, {}, list(surprises)
        for c, (view, f, _, length) in enumerate(self.cells):
            if f is None or math.isnan(sizes[c]):
                continue
            of_sizes = self.sizes_of.get(c)
            if of_sizes is not None:
                of_values = not (self.scaled and view == "error") and self.noise_seasons[f].step < math.inf
                least = self.noise_seasons[f].step / 2 if of_values else 0.0
                expected[c] = of_sizes.expected(self.noise_seasons[f], least)
                past, relative, stretch, every = of_sizes.relative, sizes[c] / expected[c], 1, 1
            elif view == "level" and length == LONG:
                alone = next(one for one, cell in enumerate(self.cells) if cell[:3] == ("level", f, 0))
                of_sizes, level = self.sizes_of[alone], self.relative_levels[f]
                if of_sizes.speaks and not math.isnan(surprises[c]):
                    relative = level.update(scores[alone] / expected[alone])
                    levels[f] = relative = abs(relative) if self.side == "absolute" else relative
                past, stretch, every = level.learned, 16, 4
            else:
                continue
            if of_sizes.speaks and past and not math.isnan(surprises[c]) and not math.isnan(relative):
                said = min(every * len(past) / (LEAST_LEARNED * math.sqrt(stretch)), 1.0)
                trust = min(3.0 if stretch == 1 else 30.0, trusted(len(past)))
                strange = surprise(np.array(past), np.ones(len(past)), single(relative), length=stretch, trust=trust)
                found[c] = max(found[c], said * strange)
        return expected, levels, found

    def _size(self, score, view):
        kept = single(score)
        return abs(kept) if self.side == "absolute" and view in SIDED else kept

    def _judge(self, scores, forecast):
        sizes = [self._size(score, view) for score, (view, *_) in zip(scores, self.cells, strict=True)]
        heard = self._heard()
        self.ended += 1
        p, surprises, parts = [], [], []
        for size, past, (view, _, stream, length) in zip(sizes, self.past, self.cells, strict=True):
            one, strange = (math.nan, math.nan) if math.isnan(size) else past.compare(size, length)
            part = min(past.learned * past.every / (LEAST_LEARNED * math.sqrt(length)), 1.0)
            p.append(one)
            # The mean over 16 only shows whether longer ones are over.
            surprises.append(part * strange if part and (view, stream) != ("level", 1) else math.nan)
            parts.append(part)
        expected, levels, surprises = self._relate(scores, sizes, surprises)
        feature_p = [self._bonferroni(p, lambda feature, f=f: feature == f) for f in range(self.features)]
        votes, by_view = self._votes(surprises, heard)
        self.scored += bool(votes)
        evidence = single(self._mean_of_largest(votes)) if votes and self.scored >= LEAST_LEARNED else math.nan
        of_features = [
            self._mean_of_largest(
                known(
                    [one for one, cell in zip(surprises, self.cells, strict=True) if cell[1] == f and cell[3] in heard]
                )
            )
            for f in range(self.features)
        ]
        cause, score, stretch = (-1, -1, -1), math.nan, 0
        there = [c for c, one in enumerate(surprises) if not math.isnan(one) and self.cells[c][3] in heard]
        if there:
            close = [c for c in there if surprises[c] >= 0.5 * max(surprises[c] for c in there)]
            most = min(close, key=lambda c: (self.cells[c][3], -surprises[c], c))
            view, feature, stream, stretch = self.cells[most]
            cause = (self.views.index(view), stream, -1 if feature is None else feature)
            score = self._sided(scores[most])
        found = self._decide(
            evidence,
            p,
            stretch,
            *self._unusual(scores, p, surprises, parts),
            [length for one, (*_, length) in zip(surprises, self.cells, strict=True) if not math.isnan(one)],
        )
        self._learn(sizes, heard, expected, levels)
        return {
            **found, "forecast": forecast, "evidence": evidence, "feature_p": feature_p,
            "feature_evidence": of_features, "views": by_view,
            "cause": cause, "score": score,
        }  # fmt: skip

    def _mean_of_largest(self, votes):
        """The two largest, and a quarter of the third."""
        largest = sorted(votes, reverse=True)
        shares = [min(1.0, WITNESSES - n) for n in range(min(len(largest), math.ceil(WITNESSES)))]
        return sum(map(operator.mul, shares, largest)) / sum(shares) if shares else math.nan

    def _bonferroni(self, p, chosen=lambda feature: True):
        there = known([one for one, (_, feature, *_) in zip(p, self.cells, strict=True) if chosen(feature)])
        return min(1.0, len(there) * min(there)) if there else math.nan

    def _heard(self):
        """The lengths of stretches that do not reach back into an incident, nor do the forecasts for them."""
        return {length for *_, length in self.cells if length <= STRETCH or 2 * length <= self.ended}

    def _unusual(self, scores, p, surprises, parts):
        """Whether the level or too much movement is unusual, and the largest level that is.

        The newest part of a stretch has to show at least half of an unusual level. If that part has been back at the
        usual level, the largest must have grown by an eighth since. Movement that has been usual holds no longer.
        """
        unusual, most, where = False, 0.0, 0
        self.now = {f: score for score, (view, f, _, length) in zip(scores, self.cells, strict=True)
                    if (view, length) == ("level", LONG)}  # fmt: skip
        if not self.open:
            self.back = [0.0] * len(self.cells)
            return unusual, most, where
        for c, (view, f, stream, length) in enumerate(self.cells):
            holds = (view == "level" and length >= LONG) or (view == "movement" and stream == 1)
            if not holds or math.isnan(surprises[c]) or parts[c] < 1:
                continue
            if view == "level":
                newest = scores[c - 1] if scores[c] > 0 else -scores[c - 1]
                if not p[c - 1] < 0.5:
                    self.back[c] = max(self.back[c], abs(scores[c]))
                shown = 2 * newest >= abs(scores[c]) > 1.125 * self.back[c]
            else:
                self.back[c] = self.back[c] or not p[c] < 0.5
                shown = not self.back[c]
            if shown and p[c] < 0.05:
                unusual = True
                if view == "level" and abs(scores[c]) > abs(most):
                    most, where = scores[c], f
        return unusual, most, where

    def _votes(self, surprises, heard):
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
                    if length in heard:
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

    def _decide(self, evidence, p, stretch, unusual, away, where, ranked):
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
            # To decide, it is at most a hundred times rarer than the blocks can show.
            least = self._poisson(0) / 100
            half = self.completed >= STAND_IN / 2
            self.certain = self.certain or (half and max(self._rate(evidence - 3), least) < self.rate)
            own = self.completed >= len(self.usual) and self.completed * block * self.rate >= 1
            if self.by_p:
                alarm, warm = calibrated and bound < self.rate, calibrated
                rate = rate if calibrated else math.nan
            elif own or self.early:
                self.tightened = min(self.tightened + 0.1 * self.rate, 0.4)
                alarm = max(rate, least) < min(self.rate * math.exp(self.tightened), 0.5 / block)
                warm, estimated = True, not own
            else:
                rate = math.nan
        if not self.open:
            self.reach = max(ranked, default=0)
        lasts = self._lasts(alarm, stretch, unusual, away, where)
        alarm = alarm and lasts
        opened = alarm and not self.open
        state = self._follow(alarm, lasts, evidence)
        # What is told of it is at most a hundred times as rare as the signal is long.
        rate = rate if math.isnan(rate) else max(rate, 1 / (100 * self.seen))
        return {"p": bound, "rate": rate, "alarm": alarm, "warm": warm, "opened": opened, "state": state,
                "estimated": estimated}  # fmt: skip

    def _lasts(self, alarm, stretch, unusual, away, where):
        """An incident lasts while the level is unusual and, if it is certain, while the signal is unlike its past.

        It is accepted in the end, but not while it grows.
        """
        if self.recall is None or not self.open:
            return alarm
        if not self.certain:
            self.away_while_uncertain += unusual
            return alarm or unusual
        before = self.lasted + self.reach
        if self.furthest is None:
            self.furthest = self.recall.furthest(before)
        self.away_while_certain += unusual
        if self.settled > self.accept_after:
            return alarm
        if abs(away) > 1.125 * abs(self.farthest):
            self.farthest, self.where, self.settled = away, where, 0
        if unusual or self.recall.unlike(before, self.furthest):
            self.was_unlike = True
            return True
        return alarm and (self.by_p or stretch <= STRETCH or not self.was_unlike)

    def _rate(self, evidence):
        """How often an incident with as much evidence comes: a Poisson process that leaves as many blocks without.

        Beyond all blocks, by a tail fitted to the highest and, as if ten more decayed by 1.3, a prior. It begins as an
        exponential one, and is heavier further out, the fewer blocks it is fitted to.
        """
        reached = sum(one >= evidence for one in self.blocks)
        rate = self._poisson(reached)
        if reached or not self.early:
            return rate
        begins, beyond, decay = self._tail()
        estimated = self._poisson(beyond) * (1 + (evidence - begins) / (decay * (beyond + 10))) ** -(beyond + 10)
        return min(max(estimated, 1e-300), rate)

    @property
    def blocks(self):
        return [*self.own, *self.usual[self.completed :]]

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
        if not self.early:
            return math.inf
        begins, beyond, decay = self._tail()
        rarer = (self._poisson(beyond) / self.rate) ** (1 / (beyond + 10))
        return max(begins + decay * (beyond + 10) * (rarer - 1), highest[0])

    def _poisson(self, reached):
        share = (1 + reached) / (1 + len(self.blocks))
        return -math.log1p(-min(share, 1 - 1e-9)) / self.sizes.block

    def _follow(self, alarm, lasts, evidence):
        state = ONGOING if lasts else MAY_END if self.open else NORMAL
        if alarm and not self.open:
            self.tightened -= 0.1
            self.open, self.lasted, self.settled = True, 0, 0
        if lasts:
            self.since = 0
        elif self.open:
            self.since += 1
            patience = self.gap
            if self.furthest is not None and self.settled <= self.accept_after:
                patience = max(self.gap, 2 * STRETCH)
            if self.since > patience:
                self.open = False
                state = RETURNED if self.certain and not self.adapting and self._is_back() else SUBSIDED
                if self.settled - self.since >= self.accept_after:
                    state, self.adapting = ACCEPTED, self.sizes.window
                if math.isnan(evidence):
                    state = SILENT
                if self.certain and not self.by_p:
                    self.highest_learned = self._least_evidence()
                if self.was_unlike and state in (RETURNED, SUBSIDED):
                    self.ended = self.since
        if not self.open:
            self.certain, self.furthest, self.was_unlike, self.farthest = False, None, False, 0.0
        self.adapting = max(self.adapting - 1, 0)
        self.lasted += self.open
        self.settled += self.open
        if math.isnan(evidence):
            return state
        self.highest = max(self.highest, evidence)
        self.in_block += 1
        if self.in_block >= self.sizes.block and not self.open:
            self.own.append(min(self.highest, self.highest_learned))
            self.completed += 1
            self.highest, self.in_block, self.highest_learned = -math.inf, 0, math.inf
        return state

    def _is_back(self):
        """Whether the newest level is less than a third of the way to where it was furthest from the usual one."""
        now = self.now.get(self.where, math.nan) * math.copysign(1.0, self.farthest)
        return not (self.farthest and now > abs(self.farthest) / 3)

    def _learn(self, sizes, heard, expected, levels):
        """What belongs to an incident that is no chance is not learned until it is accepted, nor what waited then."""
        if self.certain and self.settled <= self.accept_after:
            for past in (*self.past, *self.relative_levels):
                past.drop_pending()
            for part in (*self.shapes, *self.levels, *self.relations) if self.lasted > STRETCH else ():
                part.forget()
            return
        if self.was_unlike and self.settled > self.accept_after:
            # Another level is normal now, and has to be learned.
            self.past = [
                self._new_past(length) if view in SIDED and length > 1 else past
                for past, (view, *_, length) in zip(self.past, self.cells, strict=True)
            ]
            for level in self.relative_levels:
                level.forget_levels()
            self.was_unlike = False
        for c, (size, past, (view, f, _, length)) in enumerate(zip(sizes, self.past, self.cells, strict=True)):
            if not math.isnan(size) and length in heard & self._heard():
                past.learn(size)
                if c in self.sizes_of:
                    self.sizes_of[c].learn(size, expected[c], self.noise_seasons[f])
                elif view == "level" and length == LONG and not math.isnan(levels.get(f, math.nan)):
                    self.relative_levels[f].learn(levels[f])
