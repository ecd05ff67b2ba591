"""How far values lie from what is usual: at the same time of earlier days or weeks, or at all."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.constants import constants
from tocsin.detection.views.onset import estimate_onset
from tocsin.detection.views.season import CLOSE, find_season
from tocsin.detection.views.view import (
    MOST_AT_ONCE,
    Floats,
    Mask,
    Rows,
    Seen,
    State,
    Stream,
    View,
    ViewSession,
    length_text,
)

# What is kept of a signal: its newest values, and means of blocks of eight that reach back further; 64 kB in all. Five
# weeks at 5 minutes fit into the former, and almost five at one minute into the latter.
FINE, COARSE, BLOCK = 10_240, 6_144, 8
# How often the season and the level are looked for, in observations: at first often, then now and then. Later the
# season, which takes longer to find, is looked for more seldom than the level.
AT_FIRST, LATER = 10 * MOST_AT_ONCE, 40 * MOST_AT_ONCE
# The farthest that an onset is looked for, in observations and in stretches like the one that shows the change, and the
# shortest past that shows one.
LONGEST_ONSET, STRETCHES_BEFORE, SHORTEST_PAST = 2_048, 8, 4 * MOST_AT_ONCE
# In a season, what was usual before the onset is the median of this many cycles.
CYCLES_BEFORE = 3
# A level is unlike a reference if it is further outside the range that it has there than this many times that range.
OUTSIDE = 2.0
# The newest stretch is steady if the medians of its parts, so many of so many values each, are no further apart than
# values usually are from these. A level is elsewhere if it is this many times as far away as that. Most values of most
# parts must not be elsewhere: a signal that is switched on and off has no regimes.
PARTS, PART, ELSEWHERE, MOST = 4, 128, 6.0, 0.9
# How much a signal moves is the mean over so many steps.
STEPS = 4
# How many changes of the calendar are kept: a holiday is two, and clocks change twice a year.
CHANGES = 32
# How many observations each value of a ring is the mean of.
_RINGS = {"fine": 1, "coarse": BLOCK}
# A usual level, NaN if there is none, and the usual distance from what is usual.
Level = tuple[float, float]
NO_CALENDAR: NDArray[np.int64] = np.empty((0, 0, 2), dtype=np.int64)


class LevelView(View):
    """The distance of the newest value, and of the means of the newest 16, 64 and 512, from what is usual.

    If the signal has a season, the usual value is the median of those at the same phase, and next to it, in the last
    five cycles that are known and belong to no fault. Otherwise it is the median of everything kept or, where the level
    steps, of the present regime: the newest steady stretch. A single value counts in a mean up to six times the usual
    distance, so that a spike does not become a level, and up to twice the mean over 64, so that a leak can be seen to
    grow. With a zone, the same phase is the same time on its clocks; with holidays and a season of a week, a holiday is
    compared with Sundays, and no other day with a holiday. The mean over 16 does not vote: on real files, more events
    are found without it.

    Parameters
    ----------
    seasons : the periods, in observations, of known seasons; empty if there is none, None to find one in the values
    calendar_periods : the lengths of a day and a week, in observations, if the sampling interval is known. A period
        found close to one of them is taken to be that.
    """

    name = "level"
    sided = True

    def __init__(self, seasons: Sequence[int] | None = None, calendar_periods: Sequence[int] = ()) -> None:
        given = constants()
        self._lengths = (1, given.short, given.long, BLOCK * given.long)
        self._seasons, self._calendar_periods = seasons, tuple(calendar_periods)
        self.streams = tuple(
            Stream(f"level-{length}", length, holds=length >= given.long, votes=length != given.short)
            for length in self._lengths
        )

    def configured(self, settings: Any) -> View:
        return LevelView(settings.seasons, settings.calendar_periods)

    @property
    def begins(self) -> int:
        return 2 * MOST_AT_ONCE

    def open(self, signals: int, features: int, side: int) -> ViewSession:
        return LevelSession(signals, features, side, self._lengths, self._seasons, self._calendar_periods)

    def words(self, stream: int, score: float, unit: str, interval: float | None) -> str:
        # The values themselves say it.
        return "" if stream == 0 else f"over {length_text(self._lengths[stream], interval)}"


class LevelSession(ViewSession):
    """Keeps the past of each signal and compares with it."""

    def __init__(
        self, signals: int, features: int, side: int, lengths: tuple[int, ...], seasons: Sequence[int] | None,
        calendar_periods: tuple[int, ...],
    ) -> None:  # fmt: skip
        from tocsin.detection.views import kernels

        self._kernels, self._side, self._lengths = kernels, side, np.array(lengths)
        self._seasons, self._calendar_periods = seasons, calendar_periods
        self._week = calendar_periods[-1] if calendar_periods else 0
        self.renewed: Mask = np.zeros((signals, features), dtype=np.bool_)
        shape = (signals, features)
        self._memory = kernels.LevelMemory(
            counts=np.zeros(signals, dtype=np.int64),
            # Zeros that nobody has written take no memory, and what is not yet written is never read.
            fine=np.zeros((*shape, FINE), dtype=np.float32),
            coarse=np.zeros((*shape, COARSE), dtype=np.float32),
            fine_faults=np.zeros((*shape, FINE // 8), dtype=np.uint8),
            coarse_faults=np.zeros((*shape, COARSE // 8), dtype=np.uint8),
            sums=np.zeros(shape),
            known=np.zeros(shape, dtype=np.int64),
            periods=np.zeros(shape, dtype=np.int64),
            noise_periods=np.zeros(shape, dtype=np.int64),
            centres=np.full(shape, np.nan),
            spreads=np.zeros(shape),
            newest=np.full((*shape, lengths[-2]), np.nan),
            blocks=np.full((*shape, lengths[-2]), np.nan),
            held=np.full(shape, np.nan),
            faulty=np.zeros((signals, 2 * MOST_AT_ONCE), dtype=np.bool_),
            frozen=np.zeros(signals, dtype=np.int64),
            changes=np.tile(np.array([-1, 0, 0]), (signals, CHANGES, 1)),
        )

    def run(self, seen: Seen, rows: Rows, scores: Floats) -> None:
        calendar = NO_CALENDAR if seen.calendar is None else seen.calendar
        first = 0
        while first < seen.values.shape[0]:
            counts = self._memory.counts[rows]
            every = np.where(counts < AT_FIRST, MOST_AT_ONCE, AT_FIRST)
            for signal in rows[(counts % every == 0) & (counts > 0) & (self._memory.frozen[rows] == 0)]:
                self._look_back(int(signal))
            piece = slice(first, first + MOST_AT_ONCE - int((counts % MOST_AT_ONCE).max(initial=0)))
            self._kernels.levels(
                seen.values[piece], calendar[piece], rows, self._lengths, self._week, self._side, self._memory,
                scores[piece],
            )  # fmt: skip
            first = piece.stop

    def _look_back(self, signal: int) -> None:
        """Find the season and the level of what is kept."""
        memory, count = self._memory, int(self._memory.counts[signal])
        for f in range(memory.periods.shape[1]):
            fine, coarse = self._kept(signal, f)
            is_due = count < LATER or count % LATER == 0
            if is_due:
                self._look_for_season(signal, f, fine, coarse)
            elif memory.periods[signal, f]:
                continue
            of_all = self._level_of_all(signal, f, fine, coarse)
            if count < AT_FIRST or memory.periods[signal, f]:
                memory.centres[signal, f], memory.spreads[signal, f] = of_all
            else:
                before = float(memory.centres[signal, f]), float(memory.spreads[signal, f])
                level = _present_level(fine, of_all, before, bool(memory.faulty[signal].any()))
                self._settle(signal, f, level or (of_all if is_due else before))

    def _kept(self, signal: int, f: int) -> tuple[Floats, Floats]:
        """The newest values of a feature, and the means of blocks."""
        memory, count = self._memory, int(self._memory.counts[signal])
        return _in_order(memory.fine[signal, f], count), _in_order(memory.coarse[signal, f], count // BLOCK)

    def _level_of_all(self, signal: int, f: int, fine: Floats, coarse: Floats) -> Level:
        """The level of everything kept that belongs to no fault, and the usual distance from what is usual."""
        memory, count = self._memory, int(self._memory.counts[signal])
        faults = np.unpackbits(memory.coarse_faults[signal, f], bitorder="little")
        long_run = np.where(_in_order(faults, count // BLOCK) > 0, np.nan, coarse) if count >= AT_FIRST else fine
        return _level(long_run), _spread(fine, coarse, int(memory.periods[signal, f]))

    def _settle(self, signal: int, f: int, level: Level) -> None:
        """Compare with this level from now on. If the one before is no longer known or elsewhere, what was compared
        with it is forgotten: the newest distances were measured after the signal had left it."""
        memory, before = self._memory, float(self._memory.centres[signal, f])
        spread = min(level[1], float(memory.spreads[signal, f]))  # that of a past with steps contains them
        if not np.isnan(before) and not _alike(before, (level[0], spread)):
            self._forget(signal, f)
        memory.centres[signal, f], memory.spreads[signal, f] = level

    def _look_for_season(self, signal: int, f: int, fine: Floats, coarse: Floats) -> None:
        """Find the season of what is kept."""
        memory, count, period = self._memory, int(self._memory.counts[signal]), 0
        if self._seasons is None:
            period = find_season(fine, coarse, BLOCK, self._calendar_periods, int(memory.periods[signal, f]))
        elif self._seasons:
            period = max((one for one in self._seasons if 2 * one <= count), default=0)
        if abs(period - memory.periods[signal, f]) > CLOSE * max(period, 1):
            # What looked like a fault may have been the season.
            memory.fine_faults[signal, f], memory.coarse_faults[signal, f] = 0, 0
            self._forget(signal, f)
        noise = period
        if self._seasons is None:
            noise = _season_of_noise(fine, self._calendar_periods, int(memory.noise_periods[signal, f]), period)
        memory.periods[signal, f], memory.noise_periods[signal, f] = period, noise

    def _forget(self, signal: int, f: int) -> None:
        """Forget distances: they mean something else from now on."""
        memory = self._memory
        self.renewed[signal, f] = True
        memory.newest[signal, f], memory.blocks[signal, f], memory.held[signal, f] = np.nan, np.nan, np.nan

    def onset(self, signal: int, feature: int, ago: int, calm: int, stretch: int) -> tuple[int, int] | None:
        """How many observations ago the level began to change, at most and at least, seen `ago` observations ago.

        It was seen in the newest `stretch` observations, and would have been seen in as many long before. There was no
        incident in the `calm` observations before. None if nobody can tell: there is too little past, the signal has no
        usual level, or the past is a reference and ends before.
        """
        memory, count = self._memory, int(self._memory.counts[signal])
        past = _in_order(memory.fine[signal, feature], count)[: count - ago if count <= FINE else FINE - ago]
        length = min(calm + 1, LONGEST_ONSET, past.size // 2, STRETCHES_BEFORE * max(stretch, 2 * BLOCK))
        period = int(memory.periods[signal, feature])
        usual: Any = memory.centres[signal, feature]
        if past.size < SHORTEST_PAST or memory.frozen[signal] or (not period and np.isnan(usual)):
            return None
        if period:
            # Cycles from before the change, if it is not older than what is looked at.
            lags = [lag for lag in range(period, past.size - length + 1, period) if lag >= length][:CYCLES_BEFORE]
            if not lags:
                return None
            cycles = np.array([past[past.size - length - lag : past.size - lag] for lag in lags])
            known = np.isfinite(cycles).any(axis=0)
            usual = np.full(length, np.nan)
            usual[known] = np.nanmedian(cycles[:, known], axis=0)
            away = past[-length:] - usual
            # One day is not quite like another: what counts is how far it is from where it was.
            before = away[: max(length // 4, 1)]
            return estimate_onset(away - (np.nanmedian(before) if np.isfinite(before).any() else 0.0))
        away = past[-length:] - usual
        return estimate_onset(away[-_since_elsewhere(away, memory.spreads[signal, feature]) :])

    @property
    def seasonal(self) -> Mask:
        """Which features of which signals have a season."""
        return np.asarray(self._memory.periods > 0)

    @property
    def seasons_of_noise(self) -> NDArray[np.int64]:
        """The period of each feature's noise in observations, 0 if it has none."""
        return np.asarray(self._memory.noise_periods)

    @property
    def periods(self) -> NDArray[np.int64]:
        """The longest period of each signal's features; 0 if it has no season."""
        return np.asarray(self._memory.periods.max(axis=1))

    def freeze(self, rows: Rows) -> tuple[Floats, Floats]:
        """Compare the means over 16 with the range that they have in the reference."""
        memory = self._memory
        memory.frozen[rows] = memory.counts[rows]
        middles = np.zeros((rows.size, memory.periods.shape[1], self._lengths.size))
        reach = np.full_like(middles, np.inf)
        for place, signal in enumerate(rows):
            lowest, highest = self._range_of_means(int(signal))
            middles[place, :, 1] = (lowest + highest) / 2.0
            reach[place, :, 1] = (0.5 + OUTSIDE) * (highest - lowest)
        unknown = np.isnan(reach)
        middles[unknown], reach[unknown] = 0.0, np.inf
        return middles, reach

    def _range_of_means(self, signal: int) -> tuple[Floats, Floats]:
        """The lowest and the highest mean over 16 of each feature in the reference that was just learned.

        What is kept of the reference is judged once more, from the same phase on, as later observations will be.
        """
        memory, row, count = self._memory, np.array([signal]), int(self._memory.counts[signal])
        pasts = [_in_order(ring, count) for ring in memory.fine[signal]]
        again = np.full((pasts[0].size, 1, len(pasts)), np.nan)
        for f, past in enumerate(pasts):
            known = past[np.isfinite(past)]
            level, spread = self._level_of_all(signal, f, *self._kept(signal, f))
            present = float(memory.centres[signal, f]), float(memory.spreads[signal, f])
            if not memory.periods[signal, f] and known.size and not _alike(level, present):
                # It may drift and step as far as it does in the reference.
                self._settle(signal, f, (float(np.median(known)) if np.isnan(level) else level, spread))
            same_phase = past[past.size % max(memory.periods[signal, f], 1) :]
            again[: same_phase.size, 0, f] = same_phase
        scores = np.full((*again.shape, self._lengths.size), np.nan)
        kept = self.state(row)
        self.run(Seen(again, ()), row, scores)
        self._restore(kept, row)
        means = scores[self._lengths[2] :, 0, :, 1]  # the first ones reach back to the end of the reference
        known = np.isfinite(means)
        lowest = np.where(known, means, np.inf).min(axis=0, initial=np.inf)
        highest = np.where(known, means, -np.inf).max(axis=0, initial=-np.inf)
        there = known.any(axis=0)
        return np.where(there, lowest, np.nan), np.where(there, highest, np.nan)

    def forget(self, faulty: Mask, rows: Rows) -> None:
        self._kernels.note_faults(faulty, rows, self._memory.counts, self._memory.faulty)

    def state(self, rows: Rows) -> State:
        state = {name: array[rows] for name, array in self._memory._asdict().items() if name not in _RINGS}
        for name, block in _RINGS.items():
            ring = getattr(self._memory, name)
            state[name] = np.zeros((rows.size, *ring.shape[1:]), dtype=np.float32)
            for kept, row, written in zip(state[name], rows, self._written(state, block), strict=True):
                kept[:, :written] = ring[row, :, :written]
        return state

    def _restore(self, state: State, rows: Rows) -> None:
        for name, array in self._memory._asdict().items():
            if array.dtype == np.int64 and name != "changes" and np.any(state[name] < 0):
                raise ValueError(f"state[{name!r}] must hold counts")
            if name not in _RINGS:
                array[rows] = state[name]
        for name, block in _RINGS.items():
            ring = getattr(self._memory, name)
            for kept, row, written in zip(state[name], rows, self._written(state, block), strict=True):
                ring[row, :, :written] = kept[:, :written]
        if np.any(state["periods"] > FINE * BLOCK):
            raise ValueError(f"state['periods'] must be at most {FINE * BLOCK}")

    @staticmethod
    def _written(state: State, block: int) -> list[int]:
        """How far each signal's ring is written: to its end, once it is full."""
        counts = np.where(state["frozen"] > 0, state["frozen"], state["counts"])
        return [int(one) for one in counts // block]


def _in_order(ring: NDArray[Any], count: int) -> Floats:
    """What a ring holds after this many values, the oldest first."""
    size = ring.shape[0]
    return np.asarray(ring[:count] if count <= size else np.roll(ring, -(count % size)), dtype=np.float64)


def _season_of_noise(fine: Floats, calendar: Sequence[int], present: int, period: int) -> int:
    """The period of how much values move; that of the values themselves, if it is a multiple or there is no other.

    Large steps would hide it, and so would how much one step differs from the next.
    """
    steps = np.abs(np.diff(fine))
    there = steps[np.isfinite(steps)]
    if not there.any():
        return period
    logs = np.log(np.maximum(steps, 1e-3 * there.mean()))
    moves = np.convolve(logs, np.full(STEPS, 1.0 / STEPS), "valid")
    coarse = moves[moves.size % BLOCK :].reshape(-1, BLOCK).mean(axis=1)
    # Neighbouring means are alike, which is no season.
    found = find_season(moves, coarse, BLOCK, calendar, present if present > 2 * STEPS else 0)
    multiple = found * max(round(period / found), 1) if found else period
    return period if abs(period - multiple) <= CLOSE * period else found


def _level(values: Floats) -> float:
    """The usual level of values; NaN if they have none, because they drift away from it."""
    known = values[np.isfinite(values)]
    if known.size < 2:
        return np.nan
    half = known.size // 2
    middle = float(np.median(known))
    moved = abs(np.median(known[half:]) - np.median(known[:half]))
    return middle if moved <= np.median(np.abs(known - middle)) or np.ptp(known) == 0.0 else np.nan


def _alike(one: float, level: Level) -> bool:
    """Whether this level is not elsewhere; no if either is unknown."""
    return bool(abs(one - level[0]) <= ELSEWHERE * level[1])


def _present_level(fine: Floats, of_all: Level, before: Level, faulty: bool) -> Level | None:
    """The usual level and distance of a signal without a season: those of all its past, or of its present regime.

    The newest steady stretch has the say if the past has no level or another one. Where the newest values are not
    steady, the level before stays as long as they are near it, and while a fault lasts. None if it has no regimes.
    """
    known = fine[np.isfinite(fine)]
    parts = known[known.size % PART :].reshape(-1, PART)
    if parts.shape[0] < PARTS:
        return None
    middles = np.median(parts, axis=1)
    newest, away = middles[-PARTS:], np.abs(parts - middles[:, np.newaxis])
    spread = float(np.median(away[-PARTS:]))
    together = (away <= ELSEWHERE * spread).mean(axis=1) >= MOST
    if together.mean() < MOST:
        return None
    if faulty:
        return before
    # What does not move at all has no usual distance.
    if 0.0 < spread >= np.ptp(newest) and together[-PARTS:].all():
        level = float(np.median(parts[-PARTS:]))
        if _alike(of_all[0], (level, spread)):
            return of_all
        begins = np.flatnonzero(np.abs(middles - level) > spread).max(initial=-1) + 1
        return float(np.median(parts[begins:])), spread
    if np.isnan(of_all[0]) and _alike(float(newest[-1]), before):
        return before
    return of_all


def _since_elsewhere(away: Floats, spread: float) -> int:
    """How many of the newest distances there are since the signal came to the usual level from elsewhere."""
    newest_first = np.nan_to_num(away[::-1])
    parts = newest_first[: newest_first.size // PART * PART].reshape(-1, PART)
    near = np.abs(np.median(parts, axis=1)) <= ELSEWHERE * spread
    far = np.flatnonzero(~near & np.logical_or.accumulate(near))
    return int(far[0]) * PART if far.size else away.size


def _spread(fine: Floats, coarse: Floats, period: int) -> float:
    """The usual distance from what is usual."""
    values, lag = (fine, period) if 2 * period <= fine.size else (coarse, period // BLOCK)
    there = fine[np.isfinite(fine)]
    if there.size == 0:
        return 0.0
    apart = np.abs(values[lag:] - values[:-lag]) / np.sqrt(2.0) if period else np.abs(there - np.median(there))
    known = apart[np.isfinite(apart)]
    return float(np.median(known) or known.mean()) if known.size else 0.0
