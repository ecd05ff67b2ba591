"""From values to verdicts, for many signals at once."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.conformal.scorer import Floats
from tocsin.detection.evidence.forecasts import ForecastStage
from tocsin.detection.evidence.ranking import RankedObservations, Ranking
from tocsin.detection.evidence.unusual_days import UnusualDays, incomparable
from tocsin.detection.incidents.verdict import Verdicts
from tocsin.detection.paper.ranking import PaperRanking
from tocsin.detection.settings.detector_settings import DetectorSettings, code_of
from tocsin.detection.views.level import LevelView
from tocsin.detection.views.view import MOST_AT_ONCE, Mask, Seen, ViewSession

NO_GUARDS: Mask = np.empty((0, 0, 0), dtype=np.bool_)


def deviating(seen: Seen, settings: DetectorSettings) -> Mask:
    """Where each feature is far enough from its forecast to alarm, `(T, N, F)`; empty if nothing is too close.

    A value without a forecast is far enough.
    """
    least, share = settings.min_deviation, settings.min_relative_deviation
    if not (least or share):
        return NO_GUARDS
    forecast = seen.forecasts[0].ahead[..., 0]
    too_close = np.abs(seen.values - forecast) < np.maximum(least, share * np.abs(forecast))
    return np.asarray(~too_close)


Rows = NDArray[np.intp]
OnForecast = Callable[[Floats], None]

# How often the band is recomputed, in observations. It moves slowly, and takes longer than a p-value.
BAND_EVERY = MOST_AT_ONCE


class Pipeline:
    """Forecasts, aligns and judges the observations of `signals` signals.

    Signals do not affect each other. The numbers are the same one observation at a time or for a whole history.
    """

    def __init__(self, signals: int, settings: DetectorSettings) -> None:
        self.signals, self.features, self.settings = signals, len(settings.feature_names), settings
        self.views = settings.chosen_views
        side = code_of(settings.nonconformity)
        self._views = [view.open(signals, self.features, side) for view in self.views]
        past = next((session.past for session in self._views if session.past is not None), None)
        ranking = PaperRanking if settings.is_paper else Ranking
        self.ranking = ranking(signals, self.views, settings, past)
        self._places = self._laid_out()
        self._days = UnusualDays(signals)
        self.forecasters = settings.chosen_forecasters
        self._stages = make_stages(settings, signals, self.features)
        self.seen = np.zeros(signals, dtype=np.int64)
        self._bounds = np.full((signals, self.features, 2), np.inf)
        names = [view.name for view in self.views]
        self._level = names.index(LevelView.name) if LevelView.name in names else None
        streams = 0 if self._level is None else len(self.views[self._level].streams)
        self._reach = np.full((signals, self.features, streams + 1), np.inf)
        #: The rows of all signals. Passing this very array skips the work of selecting rows.
        self.everything = np.arange(signals)
        self._all_series = np.arange(signals * self.features)

    def _laid_out(self) -> list[tuple[ViewSession, slice, tuple[int, int]]]:
        """For each view its session, and where its scores go: columns, and how many features and streams they are."""
        places, first = [], 0
        for view, session in zip(self.views, self._views, strict=True):
            shape = (1 if view.joint else self.features, len(view.streams))
            places.append((session, slice(first, first + shape[0] * shape[1]), shape))
            first += shape[0] * shape[1]
        return places

    def run(
        self,
        values: Floats,
        rows: Rows | None = None,
        kept_forecasts: Floats | None = None,
        on_forecast: OnForecast | None = None,
        calendar: NDArray[np.int64] | None = None,
    ) -> Verdicts:
        """Judge `values[T, N, F]`, T observations of the signals `rows` (all of them if None).

        `calendar` is what `Calendar.places` says about their times.
        `on_forecast` receives the forecasts made after them, `[t, N, F, forecast_width]`, piece by piece. A caller that
        has kept them passes them as `kept_forecasts`: the numbers are the same, and nothing is forecast.
        """
        rows = self.everything if rows is None else rows
        infinite = np.isinf(values)
        values = np.where(infinite, np.nan, values) if np.count_nonzero(infinite) else values
        parts: list[Verdicts] = []
        first = 0
        while first < values.shape[0] or not parts:
            part = values[first : first + self._steps_together(rows)]
            known = None if kept_forecasts is None else kept_forecasts[first : first + part.shape[0]]
            places = None if calendar is None else calendar[first : first + part.shape[0]]
            parts.append(self._judge(self._look(part, rows, known, on_forecast, places), rows))
            first += max(part.shape[0], 1)
        return Verdicts.joined(parts)

    def learn_reference(self, values: Floats, rows: Rows) -> None:
        """Learn `values[T, N, F]` of these signals, whatever they show, and compare with them from now on."""
        with self.ranking.learning_everything():
            self.run(values, rows)
        self.ranking.freeze(rows)
        for session, columns, _ in self._places:
            usual = session.freeze(rows)
            self._forget_renewed(session, columns)
            if usual is not None:
                middles, reach = (array.reshape(rows.size, -1) for array in usual)
                self.ranking.compare_with_reference(rows, columns, middles, reach)

    def _forget_renewed(self, session: ViewSession, columns: slice) -> None:
        """Forget what was learned of a view's scores where they mean something else from now on."""
        if session.renewed is not None and np.count_nonzero(session.renewed):
            for feature in np.flatnonzero(session.renewed.any(axis=0)):
                self.ranking.forget_scores(np.flatnonzero(session.renewed[:, feature]), columns, int(feature))
            session.renewed[:] = False

    def _steps_together(self, rows: Rows) -> int:
        """How many observations can be judged at once: up to the next recomputation of some signal's band."""
        until_drawn = BAND_EVERY - self.seen[rows] % BAND_EVERY
        return int(until_drawn.min(initial=BAND_EVERY))

    def _judge(self, seen: Seen, rows: Rows) -> Verdicts:
        is_due = self.seen[rows] % BAND_EVERY == 0
        steps, count = seen.values.shape[:2]
        if steps and np.count_nonzero(is_due):  # several times as fast as `any` on a single one
            self._bounds[rows[is_due]] = self.ranking.bounds(rows[is_due])
            if self._level is not None:
                self._reach[rows[is_due]] = self.ranking.usual_reach(rows[is_due], self._places[self._level][1])
        scores = np.empty((steps, count, self.ranking.width))
        scores.fill(np.nan)
        since = None if seen.calendar is None else self._days.pass_by(seen.calendar, rows)
        for view, (session, columns, shape) in zip(self.views, self._places, strict=True):
            part = scores[:, :, columns].reshape(steps, count, *shape)
            session.run(seen, rows, part)
            if since is not None and view.expects_usual_days:
                part[np.broadcast_to(incomparable(view, *since, self._periods[rows]), part.shape)] = np.nan
            self._forget_renewed(session, columns)
            if steps * count > 1:  # else the part is no copy
                scores[:, :, columns] = part.reshape(steps, count, columns.stop - columns.start)
        judged = self.ranking.run(
            scores, rows, deviating(seen, self.settings), seen.values, self._seasons_of_noise(rows)
        )
        if np.count_nonzero(judged.faulty):
            for session in self._views:
                session.forget(judged.faulty, rows)
        self.seen[rows] += steps
        forecast, low, high = self._band(seen, rows, judged.sizes[..., 0])
        return Verdicts(
            value=seen.values,
            p=judged.p,
            alarm=judged.alarm,
            forecast=forecast,
            low=low,
            high=high,
            rate=judged.rate,
            feature_p=judged.feature_p,
            feature_evidence=judged.feature_evidence,
            views=judged.views,
            cause=judged.cause,
            # The sign was flipped to rank low values as large; users read which side it is.
            score=-judged.score if self.settings.nonconformity == "low" else judged.score,
            opened=judged.opened,
            estimated=judged.estimated,
            evidence=judged.evidence,
            warm=judged.warm,
            state=judged.state,
            usual=self._usual(seen.values, scores, rows, judged.sizes[..., 1]),
            seasonal=np.broadcast_to(self._seasonal(rows), seen.values.shape),
            began=self._onsets(judged, rows),
        )

    def _onsets(self, judged: RankedObservations, rows: Rows) -> NDArray[np.int16]:
        """How many observations ago incidents began, at most and at least, where they become certain."""
        steps = judged.calm.shape[0]
        began = np.full((*judged.calm.shape, 2), -1, dtype=np.int16)
        for step, column in np.argwhere(judged.calm >= 0):
            number, stream, feature = (int(one) for one in judged.cause[step, column])
            calm = int(judged.calm[step, column])
            view = self.views[max(number, 0)]
            stretch = view.streams[max(stream, 0)].length
            earliest, latest = min(stretch - 1, calm), 0
            if view.sided and not view.relates and self._level is not None:
                session: Any = self._views[self._level]
                ago = steps - 1 - int(step)
                found = session.onset(int(rows[column]), max(feature, 0), ago, calm, stretch)
                earliest, latest = found or (earliest, latest)
            began[step, column] = earliest, latest
        return began

    def _usual(self, values: Floats, scores: Floats, rows: Rows, sizes: Floats) -> Floats:
        """The usual value, from the distance of the value to it, and how far from it things usually are."""
        if self._level is None:
            return np.full((*values.shape, 2), np.nan)
        _, columns, (features, streams) = self._places[self._level]
        away = scores[:, :, columns].reshape(*scores.shape[:2], features, streams)[..., :1]
        usual = values[..., np.newaxis] - (-away if self.settings.nonconformity == "low" else away)
        reach = np.broadcast_to(self._reach[rows], (*values.shape, streams + 1))
        relative = reach[..., -1] * sizes
        nearest = np.where(np.isfinite(relative), relative, reach[..., 0])
        return np.concatenate([usual, nearest[..., np.newaxis], reach[..., 1:-1]], axis=-1)

    def _seasonal(self, rows: Rows) -> Mask:
        if self._level is None:
            return np.zeros((rows.size, self.features), dtype=np.bool_)
        session: Any = self._views[self._level]
        return np.asarray(session.seasonal[rows])

    def _look(
        self, values: Floats, rows: Rows, kept_forecasts: Floats | None, on_forecast: OnForecast | None,
        calendar: NDArray[np.int64] | None,
    ) -> Seen:  # fmt: skip
        """Forecast from the values, and align earlier forecasts with them."""
        series = None if rows is self.everything else self._series(rows)  # no need to check all rows again
        said, forecasts, first = [], [], 0
        # To a forecaster a holiday is missing: it is no example for any other day.
        shown = values if calendar is None else np.where(calendar[..., 1:] > 0, np.nan, values)
        for stage in self._stages:
            known = None if kept_forecasts is None else kept_forecasts[..., first : first + stage.width]
            first += stage.width
            ahead, issued = stage.run(shown, rows, series, self.seen, known)
            forecasts.append(ahead)
            said.append(issued)
        if on_forecast is not None and said:
            on_forecast(np.concatenate(said, axis=-1))
        return Seen(values, tuple(forecasts), calendar)

    @property
    def warm_up(self) -> int:
        """How many observations precede the first forecast that is judged."""
        return min((forecaster.warm_up for forecaster in self.forecasters), default=0)

    @property
    def forecast_width(self) -> int:
        """How many numbers are forecast after each observation of a feature."""
        return sum(stage.width for stage in self._stages)

    def _band(self, seen: Seen, rows: Rows, sizes: Floats) -> tuple[Floats, Floats, Floats]:
        """The one-step forecast, and the values beyond which the errors alone are enough evidence for an alarm.

        The forecast is that of the first forecaster. The band lies around that of the last one, by whose one-step
        errors it is known. `sizes` are the expected ones of these.
        """
        bounds = self._bounds[rows]
        reach = np.fmin(bounds[..., 0], bounds[..., 1] * sizes)
        if not seen.forecasts:
            forecast = np.full(seen.values.shape, np.nan)
            return forecast, forecast.copy(), np.broadcast_to(reach, forecast.shape).copy()
        last = seen.forecasts[-1]
        centre = last.ahead[..., 0]
        if self.settings.scaled:
            # The smallest spread by which errors are divided.
            reach = reach * np.maximum(last.spread[..., 0], 1e-9 * (np.abs(centre) + 1e-300))
        side = self.settings.nonconformity
        low = centre - reach if side != "high" else np.full(centre.shape, -np.inf)
        high = centre + reach if side != "low" else np.full(centre.shape, np.inf)
        return seen.forecasts[0].ahead[..., 0].copy(), low, high

    def _series(self, rows: Rows) -> Rows:
        if rows is self.everything:
            return self._all_series
        return (rows[:, np.newaxis] * self.features + np.arange(self.features)).reshape(-1)

    def _seasons_of_noise(self, rows: Rows) -> NDArray[np.int64]:
        """The period of the noise of each feature, `(N, F)`, in observations; 0 if it has none."""
        if self._level is None:
            return np.zeros((rows.size, self.features), dtype=np.int64)
        session: Any = self._views[self._level]
        return np.asarray(session.seasons_of_noise[rows])

    @property
    def _periods(self) -> NDArray[np.int64]:
        """The period of each signal's season in observations; 0 if it has none, or no view looks for one."""
        found = [session.periods for session in self._views]
        return next((one for one in found if one is not None), np.zeros(self.signals, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """Bytes held for the views of all signals together and for ranking them."""
        return self.ranking.nbytes + sum(session.nbytes for session in self._views)

    def state(self, rows: Rows | None = None) -> dict[str, Any]:
        """Everything that later verdicts on the signals `rows` (all of them if None) depend on, as a tree of arrays.

        It is the state of a pipeline with only these signals.
        """
        rows = self.everything if rows is None else rows
        tree: dict[str, Any] = {name: array[rows] for name, array in self._arrays().items()}
        tree["ranking"] = self.ranking.state(rows)
        tree["days"] = self._days.state(rows)
        tree["views"] = {view.name: session.state(rows) for view, session in zip(self.views, self._views, strict=True)}
        for number, stage in enumerate(self._stages):
            tree[f"forecaster {number}"] = stage.state(rows, self._series(rows))
        return tree

    def copy_from(self, rows: Rows, other: "Pipeline") -> None:
        """Replace the state of these signals with that of another pipeline of the same kind and size."""
        theirs = other._arrays()
        for name, own in self._arrays().items():
            own[rows] = theirs[name]
        self.ranking.copy_from(rows, other.ranking)
        self._days.restore(other._days.state(other.everything), rows)
        for session, others in zip(self._views, other._views, strict=True):
            session.restore(others.state(other.everything), rows)
        for stage, theirs_of in zip(self._stages, other._stages, strict=True):
            stage.restore(theirs_of.state(other.everything, other._all_series), rows, self._series(rows))

    def restore(self, tree: dict[str, Any]) -> None:
        """Restore what `state()` returned for a pipeline of the same kind."""
        for name, own in self._arrays().items():
            if tree[name].shape != own.shape or tree[name].dtype != own.dtype:
                raise ValueError(f"{name} must be {own.dtype} of shape {own.shape}, got shape {tree[name].shape}")
            if np.isnan(tree[name]).any() or (own.dtype == np.int64 and np.any(tree[name] < 0)):
                raise ValueError(f"{name} must hold {'counts' if own.dtype == np.int64 else 'numbers'}")
            own[...] = tree[name]
        self.ranking.restore(tree["ranking"])
        self._days.restore(tree["days"], self.everything)
        for view, session in zip(self.views, self._views, strict=True):
            # Parts without state have no entry in the tree.
            session.restore(tree.get("views", {}).get(view.name, {}), self.everything)
        for number, stage in enumerate(self._stages):
            stage.restore(tree[f"forecaster {number}"], self.everything, self._all_series)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {"seen": self.seen, "bounds": self._bounds, "reach": self._reach}


def make_stages(settings: DetectorSettings, signals: int, features: int) -> list[ForecastStage]:
    """The forecasters at work: the first one forecasts all horizons of the views, the second one a single step."""
    return [
        ForecastStage(
            forecaster, signals, features, settings.steps_ahead if number == 0 else 1,
            refresh=settings.refresh if number == 0 else 1, scaled=settings.scaled, longest_gap=settings.steps_ahead,
        )
        for number, forecaster in enumerate(settings.chosen_forecasters)
    ]  # fmt: skip
