"""From the scores of views to p-values, return periods and alarms, for many signals at once."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.arrays import nbytes_of
from tocsin.conformal import W1ACAS, SlidingWindow
from tocsin.conformal.scorer import Floats, Mask, thread_pool
from tocsin.constants import constants
from tocsin.detection.settings.detector_settings import DetectorSettings
from tocsin.detection.views import View
from tocsin.detection.views.level import LevelView
from tocsin.detection.views.view import LONG, Past

Rows = NDArray[np.intp]


class RankedObservations(NamedTuple):
    """The ranking of T observations of N signals; `Verdicts` explains each field."""

    p: Floats  # (T, N)
    rate: Floats  # (T, N), incidents an observation
    alarm: NDArray[np.bool_]
    warm: NDArray[np.bool_]
    feature_p: Floats  # (T, N, F)
    feature_evidence: Floats  # (T, N, F), in nats
    views: Floats  # (T, N, V), in nats
    cause: NDArray[np.int16]  # (T, N, 3): view, stream, feature
    score: Floats  # (T, N)
    sizes: Floats  # (T, N, F, 2), the expected ones of errors and of levels, NaN where they do not matter
    opened: NDArray[np.bool_]
    estimated: NDArray[np.bool_]
    evidence: Floats  # (T, N), in nats
    state: NDArray[np.int16]  # (T, N), the codes of `verdict.py`
    faulty: NDArray[np.bool_]  # what is not learned
    calm: NDArray[np.int16]  # (T, N), see `kernels.CALM_FOR`


class Ranking:
    """Ranks every score in the past of its own stream, merges the ranks, and decides.

    Scores of single observations are ranked by W1-ACAS, with learned weights over the past. Scores of longer stretches
    are ranked among earlier stretches that share no observation with the newest one: in a gradual fault, each would
    otherwise be compared with the one before it. Those have equal weights: a batch of ten overlapping stretches is not
    ten independent draws to learn from.

    The rank of each stream, -log p, is a vote, and the mean of the largest votes is the evidence. It orders
    observations, is ranked in its own past for p, and among the highest evidence of past blocks for the rate of
    incidents.
    """

    def __init__(
        self, signals: int, views: Sequence[View], settings: DetectorSettings, past: Past | None = None
    ) -> None:
        self.signals, self.views, self.settings = signals, tuple(views), settings
        self.features = len(settings.feature_names)
        self._kernels, self._incident_rules = kernels, incident_rules = _load_kernels()
        sizes = settings.sizes
        self._columns = self._score_columns()
        self.width = self._columns.of_view.size
        learned, alike = count_streams(self.views, self.features)
        self.scorer, self.window, self.final = make_scorers(settings, signals * learned, signals * alike, signals)
        longest = int(self._columns.length.max())
        blocks = np.zeros((signals, sizes.blocks))
        stand_in = incident_rules.usual_maxima(sizes.block, sizes.blocks, constants())
        blocks[:, : stand_in.size] = stand_in
        self._memory = incident_rules.SignalMemory(
            counters=np.zeros((signals, incident_rules.COUNTERS), dtype=np.int64),
            # The threshold starts a little too strict: certain incidents do not raise it.
            levels=np.tile([-np.inf, -2.0 * constants().tightening, -1.0, np.inf, 0.0], (signals, 1)),
            blocks=blocks,
            thresholds=np.tile(np.log(kernels.LEVELS), (signals, 1)),
            middles=np.zeros((signals, self.width)),
            reach=np.full((signals, self.width), np.inf),
        )
        # If incidents may be as frequent as it takes to see whether one has ended, none is held open.
        given = constants()
        returned = 2 * given.short
        holds = past is not None and settings.rate * returned <= 1
        self._recall = kernels.Recall(
            *(past if past is not None and holds else _no_past()),
            length=returned, samples=max(given.least, 3 * given.short), apart=4 * given.long,
        )  # fmt: skip
        self._rules = incident_rules.Rules(
            min_calibration=sizes.min_calibration,
            window=sizes.window,
            by_p=settings.promise == "observations",
            rate=settings.rate,
            block=sizes.block,
            gap=settings.gap,
            accept_after=settings.accepted_after,
            early=settings.early,
            longest=longest,
            returned=returned,
            constants=given,
        )
        # Collected once: looking them up again for every observation would take as long as scoring it.
        equal = self.window.kernel_streams
        window = kernels.StretchStreams(
            history=equal.history,
            counters=equal.counters,
            weights=equal.weights,
            cumulative=equal.cumulative,
            waiting=np.zeros((self.window.streams, most_waiting(self.views)), dtype=np.float32),
            waited=np.zeros(self.window.streams, dtype=np.int64),
            back=np.zeros(self.window.streams),
        )
        self._sizes = make_sizes(settings, signals, self.scorer.streams)
        self._streams = kernels.RankedStreams(
            learned=self.scorer.kernel_streams, sizes=self._sizes, window=window, final=self.final.kernel_streams
        )
        self._votes = int(self._columns.vote.max()) + 1
        self._layout = kernels.RankingLayout(self._columns, self._rules, self.features, learned, alike)
        self._work = [self._new_work() for _ in range(settings.threads)]

    def _new_work(self) -> Any:
        by_score = (np.empty(self.width) for _ in range(4))
        return self._kernels.Work(*by_score, np.empty(self._votes), *self.scorer.new_scratch())

    def _score_columns(self) -> Any:
        """Where each score of an observation belongs: features of the views in turn, then what they share."""
        cells = []
        both = self.settings.nonconformity == "absolute"
        vote = 0
        for number, view in enumerate(self.views):
            for feature in (-1,) if view.joint else range(self.features):
                for index, stream in enumerate(view.streams):
                    own = vote + [one.votes for one in view.streams[:index]].count(True) if stream.votes else -1
                    unit = not (view.forecasts and self.settings.scaled)
                    cells.append((own, number, feature, index, stream.length, view.sided, stream.holds, unit))
            vote += [stream.votes for stream in view.streams].count(True)
        votes, views, features, streams, stretches, sided, holds, of_values = zip(*cells, strict=True)
        lengths = np.array(stretches, dtype=np.int64)
        single = lengths == 1
        place = np.where(single, np.cumsum(single), np.cumsum(~single)) - 1
        return self._kernels.ScoreColumns(
            vote=np.array(votes, dtype=np.int64),
            of_view=np.array(views, dtype=np.int64),
            feature=np.array(features, dtype=np.int64),
            stream=np.array(streams, dtype=np.int64),
            length=lengths,
            sided=np.array(sided),
            folded=np.array(sided) & both,
            holds=np.array(holds),
            place=place,
            of_values=np.array(of_values),
            relative_of=self._relative_levels(np.array(views), np.array(features), lengths),
            shown=self._errors_and_levels(np.array(views), np.array(features), single),
        )

    def _errors_and_levels(self, views: Rows, features: Rows, single: NDArray[np.bool_]) -> Rows:
        """Of each feature, the columns of its last one-step error and of its level, or -1."""
        # Given scores are their own errors.
        of_errors = np.array([view.forecasts or self.settings.judges_scores for view in self.views])[views]
        of_levels = np.array([view.name == LevelView.name for view in self.views])[views]
        shown = np.full((self.features, 2), -1)
        for f in range(self.features):
            for i, chosen in enumerate((of_errors, of_levels)):
                shown[f, i] = np.flatnonzero(chosen & single & (features == f)).max(initial=-1)
        return shown

    def _relative_levels(self, views: Rows, features: Rows, lengths: Rows) -> Rows:
        """For the level of each feature over a long stretch, the column of its single distances; else -1."""
        of_level = np.array([view.name == LevelView.name for view in self.views])[views]
        found = np.full(lengths.size, -1)
        for c in np.flatnonzero(of_level & (lengths == constants().long)):
            found[c] = np.flatnonzero(of_level & (features == features[c]) & (lengths == 1))[0]
        return found

    def run(
        self, scores: Floats, rows: Rows, deviates: Mask, values: Floats, periods: NDArray[np.int64]
    ) -> RankedObservations:
        """Judge the scores `[T, N, width]` of the signals `rows` and learn from them.

        They are of the values `[T, N, F]`, whose noise has a season of `periods[N, F]` observations; 0 for none.
        `deviates[T, N, F]` says where a feature is far enough from its forecast to alarm; empty if that is everywhere.
        """
        kernels, features = self._kernels, self.features
        shape = scores.shape[:2]
        numbers = np.empty((*shape, kernels.NUMBERS + 4 * features + len(self.views)))
        marks = np.empty((*shape, kernels.MARKS), dtype=np.int16)
        threads = max(min(self.settings.threads, rows.size), 1)
        edges = [rows.size * thread // threads for thread in range(threads + 1)]

        def work(thread: int) -> None:
            kernels.judge(
                scores, values, periods, deviates, rows, edges[thread], edges[thread + 1], self._layout, self._streams,
                self._memory, self._recall, self._work[thread], numbers, marks,
            )  # fmt: skip

        others = [] if threads == 1 else [thread_pool(threads - 1).submit(work, one) for one in range(1, threads)]
        work(0)
        for other in others:
            other.result()
        flags = marks[..., : kernels.STATE] != 0
        return RankedObservations(
            p=numbers[..., kernels.P],
            rate=numbers[..., kernels.RATE],
            alarm=flags[..., kernels.ALARM],
            warm=flags[..., kernels.WARM],
            feature_p=numbers[..., kernels.NUMBERS : kernels.NUMBERS + features],
            feature_evidence=numbers[..., kernels.NUMBERS + features : kernels.NUMBERS + 2 * features],
            sizes=numbers[..., kernels.NUMBERS + 2 * features : kernels.NUMBERS + 4 * features].reshape(
                *shape, features, 2
            ),
            views=numbers[..., kernels.NUMBERS + 4 * features :],
            cause=marks[..., kernels.CAUSE : kernels.CAUSE + 3],
            calm=marks[..., kernels.CALM_FOR],
            score=numbers[..., kernels.SCORE],
            opened=flags[..., kernels.OPENED],
            estimated=flags[..., kernels.ESTIMATED],
            evidence=numbers[..., kernels.EVIDENCE],
            state=marks[..., kernels.STATE],
            faulty=flags[..., kernels.FAULTY],
        )

    def first_ranked_after(self, warm_up: int) -> int:
        """How many observations precede the first evidence, given the forecaster's `warm_up`."""
        least: int = self._rules.constants.least
        return least + min(
            (warm_up if view.forecasts else 0) + view.begins
            # A longer stretch is learned only once it no longer overlaps the newest one.
            + (stream.length if stream.length > 1 else 0)
            for view in self.views for stream in view.streams
        )  # fmt: skip

    def forget_scores(self, rows: Rows, columns: slice, feature: int) -> None:
        """Forget what was learned of a feature's scores among these: from now on they mean something else."""
        of_scores = self._columns
        of_feature = np.arange(columns.start, columns.stop)[of_scores.feature[columns] == feature]
        for name, scorer, _ in self._scorers(rows):
            chosen = of_feature[(of_scores.length[of_feature] == 1) == (name == "scorer")]
            if name == "final" or not chosen.size:
                continue
            width = scorer.streams // self.signals
            streams = (rows[:, np.newaxis] * width + of_scores.place[chosen]).reshape(-1)
            new = make_scorers(self.settings, streams.size, streams.size, 1)
            scorer.copy_from(streams, new[name == "window"])
            if name == "window":
                self._streams.window.waited[streams] = 0
                self._kernels.forget_relative_levels(rows * self.features + feature, self._sizes)
            else:
                self._kernels.forget_sizes(streams, self._sizes)

    def learned_weights(self, signal: int) -> NDArray[Any]:
        """The weights over the past `(features, streams of a feature, window)` of one signal, where they are learned.

        A joint stream of all features counts for each of them. If there is none, zeros stand for it.
        """
        width = self.scorer.streams // self.signals
        own = self.scorer.kernel_streams.weights[signal * width : (signal + 1) * width]
        columns = self._columns
        single = columns.length == 1
        if not single.any():
            return np.zeros((self.features, 1, own.shape[1]), dtype=own.dtype)
        return np.stack([own[columns.place[single & np.isin(columns.feature, (-1, f))]] for f in range(self.features)])

    def bounds(self, rows: Rows) -> Floats:
        """How large the one-step error of each feature may be before it alone is enough evidence, `(N, F, 2)`.

        The second number is in expected sizes. Infinite if nothing alarms yet, or no view has such a score.
        """
        kernels, columns, given = self._kernels, self._columns, self._rules.constants
        bounds = np.full((rows.size, self.features, 2), np.inf)
        of_errors = np.array([view.forecasts or self.settings.judges_scores for view in self.views])
        single = (columns.length == 1) & of_errors[columns.of_view]
        # The errors of single observations agree, and the other views see nothing.
        agreeing = min(np.unique(columns.vote[single]).size, given.witnesses)
        needed = min(self._votes, given.witnesses) / max(agreeing, 1)
        width = self.scorer.streams // self.signals
        for n, signal in enumerate(rows):
            evidence = self._least_evidence(signal)
            for c in np.flatnonzero(single & (columns.vote == columns.vote[single].max(initial=-1))):
                if np.isfinite(evidence):
                    k, f = signal * width + columns.place[c], max(columns.feature[c], 0)
                    past, weights, total = self.scorer.calibration_set(k)
                    trust = kernels.trusted(total, given)
                    bounds[n, f, 0] = kernels.score_at(past, weights, total, needed * evidence, trust, given)
                    past = self._relative_scores(k)
                    trust = min(trust, kernels.TRUST)
                    alike = np.ones(past.size)
                    bounds[n, f, 1] = kernels.score_at(past, alike, past.size, needed * evidence, trust, given)
        return bounds

    def _relative_scores(self, k: int) -> Floats:
        """The newest scores of a stream relative to their expected sizes; none while they do not matter."""
        sizes = self._sizes
        kept = min(int(sizes.learned[k]), sizes.relative.shape[1]) if sizes.speaks[k] else 0
        return np.asarray(sizes.relative[k, :kept], dtype=np.float64)

    def usual_reach(self, rows: Rows, columns: slice) -> Floats:
        """How far nine of ten of these scores lie from 0 at most, `(N, F, streams + 1)`; infinite while few are known.

        The last one is that of the first stream, in expected sizes.
        """
        of_scores, least = self._columns, self._rules.constants.least
        reach = np.full((rows.size, columns.stop - columns.start), np.inf)
        for c in range(columns.start, columns.stop):
            scorer = self.scorer if of_scores.length[c] == 1 else self.window
            streams = rows * (scorer.streams // self.signals) + of_scores.place[c]
            learned = scorer.learned[streams] >= least
            if learned.any():
                reach[learned, c - columns.start] = scorer.quantile(0.1, streams[learned])
        relative = np.full((rows.size, self.features, 1), np.inf)
        width = self.scorer.streams // self.signals
        for n, signal in enumerate(rows):
            for f, c in enumerate(of_scores.shown[:, 1]):
                past = self._relative_scores(signal * width + of_scores.place[c])
                if past.size >= least:
                    relative[n, f, 0] = np.quantile(past, 0.9)
        return np.concatenate([reach.reshape(rows.size, self.features, -1), relative], axis=-1)

    def _least_evidence(self, signal: int) -> float:
        """The evidence threshold for alarms; infinite if nothing alarms."""
        rules, counters = self._rules, self._memory.counters[signal]
        if rules.by_p:
            if self.final.learned[signal] < rules.min_calibration:
                return np.inf
            return float(self.final.quantile(self._rank_at(signal, rules.rate), [signal])[0])
        blocks = min(int(counters[self._incident_rules.BLOCKS]), self._memory.blocks.shape[1])
        judged = counters[self._incident_rules.SCORED] >= rules.constants.least
        if not judged or (not rules.early and blocks * rules.block * rules.rate < 1):
            return np.inf
        maxima = self._incident_rules.known_blocks(signal, self._memory)
        tightened = self._memory.levels[signal, self._incident_rules.TIGHTENED]
        tolerated = self._incident_rules.tolerated(rules.rate, tightened, rules.block)
        return float(self._incident_rules.least_evidence(maxima, tolerated, rules))

    def _rank_at(self, signal: int, p: float) -> float:
        """The rank that the closed loop turns into this p-value; see `calibrated_p`."""
        levels = np.log(self._kernels.LEVELS)
        thresholds = np.maximum.accumulate(self._memory.thresholds[signal])
        beyond = min(np.log(p) - levels[0], 0.0)  # below the lowest level
        return float(np.exp(np.interp(np.log(p), np.append(levels, 0.0), np.append(thresholds, 0.0)) + beyond))

    @contextmanager
    def learning_everything(self) -> Iterator[None]:
        """Learn from incidents like from normal data for a while."""
        usual = self._layout
        self._layout = usual._replace(rules=usual.rules._replace(accept_after=-1))
        try:
            yield
        finally:
            self._layout = usual

    def freeze(self, rows: Rows) -> None:
        """From now on, compare these signals with what they have learned so far."""
        columns, counters = self._incident_rules, self._memory.counters
        counters[rows, columns.FROZEN] = 1
        # Whatever a reference shows is normal: no incident goes on.
        for column in (columns.OPEN, columns.CERTAIN, columns.UNLIKE):
            counters[rows, column] = 0

    def compare_with_reference(self, rows: Rows, columns: slice, middles: Floats, reach: Floats) -> None:
        """Treat these signals as anomalous where a score is further than its reach from its middle in the reference."""
        self._memory.middles[rows, columns] = middles
        self._memory.reach[rows, columns] = reach

    def accept(self, signal: int) -> None:
        """Learn from the signal's incident like from normal data."""
        counters, columns = self._memory.counters[signal], self._incident_rules
        if counters[columns.OPEN]:
            counters[columns.SETTLED] = max(counters[columns.SETTLED], self.settings.accepted_after + 1)

    def give_back(self, signal: int, incidents: int) -> None:
        """Give back what this many incidents took from the tolerated rate, because they were true; less than 0 takes it
        again."""
        step = self._rules.constants.tightening
        levels, column = self._memory.levels[signal], self._incident_rules.TIGHTENED
        levels[column] = min(levels[column] + step * incidents, 4.0 * step)

    @property
    def nbytes(self) -> int:
        """Bytes held for all signals together."""
        window = self._streams.window
        scorers = (self.scorer, self.window, self.final)
        arrays = (window.waiting, window.waited, window.back)
        return sum(scorer.nbytes for scorer in scorers) + nbytes_of(*arrays, self._memory, self._sizes)

    def open(self, signal: int) -> bool:
        """Whether an incident of the signal is open."""
        return bool(self._memory.counters[signal, self._incident_rules.OPEN])

    def state(self, rows: Rows) -> dict[str, Any]:
        """Everything that later verdicts on these signals depend on."""
        return {
            **{name: scorer.state(streams) for name, scorer, streams in self._scorers(rows)},
            **{name: array[rows_of] for name, array, rows_of in self._arrays(rows)},
        }

    def copy_from(self, rows: Rows, other: "Ranking") -> None:
        """Replace the state of these signals with that of another ranking of the same kind and size."""
        theirs = {name: scorer for name, scorer, _ in other._scorers(np.arange(other.signals))}
        for name, scorer, streams in self._scorers(rows):
            scorer.copy_from(streams, theirs[name])
        given = {name: array for name, array, _ in other._arrays(np.arange(other.signals))}
        for name, array, rows_of in self._arrays(rows):
            array[rows_of] = given[name]

    def restore(self, tree: dict[str, Any]) -> None:
        """Restore what `state` returned for all signals of a ranking of the same kind."""
        everything = np.arange(self.signals)
        for name, scorer, streams in self._scorers(everything):
            saved = type(scorer).from_state(tree[name])
            if repr(saved) != repr(scorer):
                raise ValueError(f"the saved scorer {name} is {saved!r}, not {scorer!r}")
            scorer.copy_from(streams, saved)
        for name, own, _ in self._arrays(everything):
            got = tree[name]
            if got.shape != own.shape or got.dtype != own.dtype:
                raise ValueError(f"{name} must be {own.dtype} of shape {own.shape}, got shape {got.shape}")
            if np.isnan(got).any() or (own.dtype == np.int64 and np.any(got < 0)):
                raise ValueError(f"{name} must hold {'counts' if own.dtype == np.int64 else 'numbers'}")
            own[...] = got

    def _scorers(self, rows: Rows) -> list[tuple[str, Any, Rows]]:
        """The scorers by name, each with the streams of these signals."""

        def streams(scorer: Any) -> Rows:
            width = scorer.streams // self.signals
            return np.asarray(rows[:, np.newaxis] * width + np.arange(width)).reshape(-1)

        scorers = (("scorer", self.scorer), ("window", self.window), ("final", self.final))
        return [(name, scorer, streams(scorer)) for name, scorer in scorers]

    def _by_feature(self, rows: Rows, features: Rows) -> Rows:
        return np.asarray(rows[:, np.newaxis] * self.features + features).reshape(-1)

    def _arrays(self, rows: Rows) -> list[tuple[str, NDArray[Any], Rows]]:
        chosen = {name: streams for name, _, streams in self._scorers(rows)}
        streams, single, sizes = chosen["window"], chosen["scorer"], self._sizes
        every = self._by_feature(rows, np.arange(self.features))
        return [
            ("pending", self._streams.window.waiting, streams),
            ("pending count", self._streams.window.waited, streams),
            ("levels back", self._streams.window.back, streams),
            ("counters", self._memory.counters, rows),
            ("levels", self._memory.levels, rows),
            ("blocks", self._memory.blocks, rows),
            ("thresholds", self._memory.thresholds, rows),
            ("reference middles", self._memory.middles, rows),
            ("reference reach", self._memory.reach, rows),
            ("seasons of sizes", sizes.seasons, rows),
            ("steps of values", sizes.steps, rows),
            ("sizes", sizes.means, single),
            ("size counts", sizes.counts, single),
            ("sizes differ", sizes.speaks, single),
            ("relative scores", sizes.relative, single),
            ("relative count", sizes.learned, single),
            ("newest relative", sizes.newest, every),
            ("relative levels", sizes.levels, every),
            ("relative levels waiting", sizes.waiting, every),
            ("relative levels count", sizes.entered, every),
        ]


def count_streams(views: Sequence[View], features: int) -> tuple[int, int]:
    """How many streams of a signal are ranked by learned weights, and how many by equal weights."""
    lengths = [stream.length for view in views for stream in view.streams for _ in range(1 if view.joint else features)]
    single = lengths.count(1)
    return max(single, 1), max(len(lengths) - single, 1)


def most_waiting(views: Sequence[View]) -> int:
    """How many scores of a stream wait at once, at most."""
    return max(stream.length // max(stream.length // LONG, 1) for view in views for stream in view.streams)


def make_scorers(
    settings: DetectorSettings, learned: int, alike: int, signals: int
) -> tuple[W1ACAS, SlidingWindow, SlidingWindow]:
    """The scorers of streams of single observations, of longer stretches, and of evidence."""
    sizes = settings.sizes
    scorer = W1ACAS(
        learned,
        alpha_c=sizes.alpha_c,
        window=sizes.window,
        # Plain steps learn as well as Adam's here and need no moments, which would double a signal's memory. Gradients
        # are of the order of 1/window.
        optimizer="sgd",
        learning_rate=settings.learning_rate * sizes.window,
        prior="extend",
    )
    return scorer, SlidingWindow(alike, window=sizes.window), SlidingWindow(signals, window=sizes.final)


def make_sizes(settings: DetectorSettings, signals: int, streams: int) -> Any:
    """The expected sizes of scores of single observations, which are so many streams of all signals together."""
    from tocsin.detection.evidence.sizes import nothing_known

    return nothing_known(signals, len(settings.feature_names), streams, settings.sizes.window, constants().short)


def _no_past() -> Past:
    from tocsin.detection.views.archive import Archive

    nothing = np.empty(0, dtype=np.int64)
    values, units = np.empty((0, 0, 0), dtype=np.float32), np.empty((0, 0))
    return Past(Archive(values, nothing, nothing, nothing, units, units, 0), nothing, 1)


def _load_kernels() -> tuple[ModuleType, ModuleType]:
    # numba is slow to import: only detection waits for it.
    from tocsin.detection.evidence import kernels
    from tocsin.detection.incidents import rules

    return kernels, rules
