"""The paper's decision: an alarm where p is below alpha."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.conformal.scorer import Floats, Mask
from tocsin.detection.evidence.ranking import RankedObservations, Ranking, Rows
from tocsin.detection.incidents.verdict import NORMAL, ONGOING, SILENT, SUBSIDED
from tocsin.detection.paper.scoring import CONTEXT, HorizonScoring
from tocsin.detection.settings.detector_settings import DetectorSettings
from tocsin.detection.views import View


class PaperRanking(Ranking):
    """Ranks the errors of every horizon, merges their p-values, and alarms where the merged one is below alpha.

    It always learns, also from incidents. An incident is a run of alarms: it ends with the first observation without
    one. Of the usual ranking it has how it is saved and restored.
    """

    def __init__(self, signals: int, views: Sequence[View], settings: DetectorSettings, past: Any = None) -> None:
        self.signals, self.settings = signals, settings
        self.features = len(settings.feature_names)
        self.scoring = HorizonScoring(signals, self.features, threads=settings.threads, **settings.paper_options)
        self.width = self.features * self.scoring.horizons
        self._judged = np.zeros(signals, dtype=np.int64)  # observations with a p-value
        self._alarming = np.zeros(signals, dtype=np.int64)  # whether the last observation alarmed

    def run(
        self, scores: Floats, rows: Rows, deviates: Mask, values: Floats, periods: NDArray[np.int64]
    ) -> RankedObservations:
        """Judge the errors `[T, N, width]` of the signals `rows` and learn from them."""
        steps, count = scores.shape[:2]
        errors = scores.reshape(steps, count, self.features, self.scoring.horizons)
        p, feature_p = self.scoring.run(errors, rows)
        known = ~np.isnan(p)
        with np.errstate(invalid="ignore"):
            alarm = p < self.settings.rate
        earlier = self._judged[rows] + np.cumsum(known, axis=0) - known
        alarmed = np.concatenate([self._alarming[rows][np.newaxis] != 0, alarm])[:-1]
        if steps:
            self._judged[rows] += np.count_nonzero(known, axis=0)
            self._alarming[rows] = alarm[-1]
        over = np.where(known, SUBSIDED, SILENT)
        cause, score = self._causes(alarm, errors, feature_p)
        nothing = np.zeros(p.shape, dtype=np.bool_)
        evidence = 0.0 - np.log(p)  # not -0.0 where p is 1
        return RankedObservations(
            p=p,
            rate=p,  # how often an observation is as unlikely as this one
            alarm=alarm,
            warm=earlier >= self.settings.sizes.min_calibration,
            feature_p=feature_p,
            feature_evidence=0.0 - np.log(feature_p),
            views=evidence[..., np.newaxis],
            cause=cause,
            score=score,
            sizes=np.full((*feature_p.shape, 2), np.nan),
            opened=alarm & ~alarmed,
            estimated=nothing,
            evidence=evidence,
            state=np.where(alarm, ONGOING, np.where(alarmed, over, NORMAL)).astype(np.int16),
            faulty=nothing,
            calm=np.full(p.shape, -1, dtype=np.int16),
        )

    @staticmethod
    def _causes(alarm: Mask, errors: Floats, feature_p: Floats) -> tuple[NDArray[np.int16], Floats]:
        """For each alarm its most anomalous feature, and how far that is from its forecasts, in the median."""
        cause = np.full((*alarm.shape, 3), -1, dtype=np.int16)
        score = np.full(alarm.shape, np.nan)
        for step, column in np.argwhere(alarm):
            feature = int(np.nanargmin(feature_p[step, column]))
            cause[step, column] = 0, 0, feature
            score[step, column] = np.nanmedian(errors[step, column, feature])
        return cause, score

    def first_ranked_after(self, warm_up: int) -> int:
        """How many observations precede the first p-value."""
        return CONTEXT

    def bounds(self, rows: Rows) -> Floats:
        """How large the one-step error of each feature may be before its own p is below alpha, `(N, F, 2)`.

        In expected sizes, the second number, nothing is.
        """
        streams = self.scoring.streams(rows).reshape(rows.size, self.features, -1)[..., 0]
        reach = self.scoring.scorer.quantile(self.settings.rate, streams.reshape(-1)).reshape(streams.shape)
        return np.stack([reach, np.full(reach.shape, np.inf)], axis=-1)

    def learned_weights(self, signal: int) -> NDArray[Any]:
        """The weights over the past, `(features, horizons, window)`, of one signal."""
        weights = self.scoring.scorer.weights[self.scoring.streams(np.array([signal]))]
        return weights.reshape(self.features, self.scoring.horizons, -1)

    def accept(self, signal: int) -> None:
        """Nothing changes: it has learned from the incident all along."""

    def give_back(self, signal: int, incidents: int) -> None:
        """Nothing changes: incidents do not make alpha any stricter."""

    @property
    def nbytes(self) -> int:
        """Bytes held for all signals together."""
        return self.scoring.scorer.nbytes + self._judged.nbytes + self._alarming.nbytes

    def _scorers(self, rows: Rows) -> list[tuple[str, Any, Rows]]:
        return [("scorer", self.scoring.scorer, self.scoring.streams(rows))]

    def _arrays(self, rows: Rows) -> list[tuple[str, NDArray[Any], Rows]]:
        return [("judged", self._judged, rows), ("alarming", self._alarming, rows)]
