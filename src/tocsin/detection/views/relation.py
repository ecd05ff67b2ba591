"""Whether each feature of a signal is where the others say it should be."""

from typing import Any

import numpy as np

from tocsin.constants import constants
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
    amount,
    length_text,
    side,
)


class RelationView(View):
    """The distance of each feature from what the others say: now, on average over the newest 16 and 64, and its size.

    What they say is a linear regression on all others, from a covariance that forgets what is older than about 2,000
    observations. It learns nothing from a certain incident, and little from outliers. What is missing counts as what
    the known features say about it. A sensor that leaves the others shows in the means; a change of gain or delay,
    which leaves no mean, shows in the mean size.
    """

    name = "relation"
    sided = True
    relates = True

    def __init__(self, features: int = 2) -> None:
        given = constants()
        self._features, self._kept = features, given.calibration
        lengths = (1, given.short, given.long)
        means = [Stream(f"relation-{length}", length) for length in lengths]
        self.streams = (*means, *(Stream(f"relation-size-{length}", length) for length in lengths[1:]))

    def configured(self, settings: Any) -> View:
        return RelationView(len(settings.feature_names))

    @property
    def begins(self) -> int:
        return _begins(self._features)

    def open(self, signals: int, features: int, side: int) -> ViewSession:
        lengths = tuple(stream.length for stream in self.streams[: len(self.streams) // 2 + 1])
        return RelationSession(signals, features, side, lengths, self._kept)

    def words(self, stream: int, score: float, unit: str, interval: float | None) -> str:
        others = f"the other {self._features - 1} features say" if self._features > 2 else "the other feature says"
        means = len(self.streams) // 2 + 1
        where = side(score) if stream < means else "away from"
        over = f", on average over {length_text(self.streams[stream].length, interval)}" if stream else ""
        return f"{amount(abs(score), unit)} {where} what {others}{over}"


def _begins(features: int) -> int:
    """How many observations a regression needs: a few for each feature."""
    return -(-(2 * MOST_AT_ONCE + 4 * features) // MOST_AT_ONCE) * MOST_AT_ONCE


class RelationSession(ViewSession):
    """Keeps the covariance of each signal's features, and its inverse as of the last multiple of 50 observations."""

    def __init__(self, signals: int, features: int, side: int, lengths: tuple[int, ...], kept: int) -> None:
        from tocsin.detection.views import kernels, relation_kernels

        self._kernels, self._relations = kernels, relation_kernels
        self._side, self._lengths, self._kept = side, np.array(lengths), kept
        shape = (signals, features)
        self._memory = relation_kernels.RelationMemory(
            counts=np.zeros(signals, dtype=np.int64),
            learned=np.zeros(signals, dtype=np.int64),
            values=np.full((*shape, 2 * MOST_AT_ONCE), np.nan),
            faulty=np.zeros((signals, 2 * MOST_AT_ONCE), dtype=np.bool_),
            frozen=np.zeros(signals, dtype=np.bool_),
            centres=np.full(shape, np.nan),
            spreads=np.zeros(shape),
            covariances=np.zeros((*shape, features)),
            inverses=np.zeros((*shape, features)),
            newest=np.full((*shape, lengths[-1]), np.nan),
        )

    def run(self, seen: Seen, rows: Rows, scores: Floats) -> None:
        least = _begins(scores.shape[2])
        self._relations.relations(seen.values, rows, self._lengths, self._side, self._kept, least, self._memory, scores)

    def forget(self, faulty: Mask, rows: Rows) -> None:
        self._kernels.note_faults(faulty, rows, self._memory.counts, self._memory.faulty)

    def freeze(self, rows: Rows) -> None:
        self._relations.learn_the_rest(rows, self._kept, self._memory)
        self._memory.frozen[rows] = True

    def state(self, rows: Rows) -> State:
        return {name: array[rows] for name, array in self._memory._asdict().items()}

    def _restore(self, state: State, rows: Rows) -> None:
        for name, array in self._memory._asdict().items():
            if array.dtype == np.int64 and np.any(state[name] < 0):
                raise ValueError(f"state[{name!r}] must hold counts")
            array[rows] = state[name]
