"""From values to verdicts, for many signals at once."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.conformal.scorer import Floats
from tocsin.detection.alignment import Alignment, Continuation
from tocsin.detection.nonconformity import code_of
from tocsin.detection.ranking import Ranking
from tocsin.detection.settings import DetectorSettings
from tocsin.detection.verdict import Verdicts
from tocsin.detection.views.view import MOST_AT_ONCE, NO_SPREAD, Seen, ViewSession
from tocsin.forecasting.forecaster import Forecast

Rows = NDArray[np.intp]
Noting = Callable[[Floats], None]

# How often the band is recomputed, in observations. It moves slowly, and takes longer than a p-value.
BAND_EVERY = MOST_AT_ONCE
# Within a gap, forecasting stops after this many missing observations: no view uses such forecasts, and a gap of a
# thousand would take as long as a thousand observations.
FORECAST_GAP = 64


class Pipeline:
    """Forecasts, aligns and judges the observations of `signals` signals.

    Signals do not affect each other. The numbers are the same one observation at a time or for a whole history.
    """

    def __init__(self, signals: int, settings: DetectorSettings) -> None:
        self.signals, self.features, self.settings = signals, len(settings.feature_names), settings
        self.forecaster = settings.chosen_forecaster
        self._kernels = _load_kernels()
        self.views = settings.chosen_views
        side = code_of(settings.nonconformity)
        self._views = [view.open(signals, self.features, side) for view in self.views]
        past = next((session.past for session in self._views if session.past is not None), None)
        self.ranking = Ranking(signals, self.views, settings, past)
        self._places = self._laid_out()
        self._horizons, self._steps = settings.horizons, settings.steps
        self.warm_up = self._recovers = 0
        if self.forecaster is not None:
            self.warm_up = self.forecaster.warm_up
            # Forecasts made within the gap are no better than those made from its filled-in values.
            self._recovers = max(self.forecaster.recovers, settings.horizons)
            series = signals * self.features
            steps = self._steps
            self._session = self.forecaster.open(series, steps + settings.refresh - 1)
            self._forecasts = Issued(series, steps, settings)
            self._spreads = Issued(series, steps, settings) if settings.scaled else None
        self.seen = np.zeros(signals, dtype=np.int64)
        self._gaps = self._kernels.Gaps(
            warm_up=self.warm_up,
            recovers=self._recovers,
            longest=self._horizons,
            forecast=FORECAST_GAP,
            missing=np.zeros((signals, self.features), dtype=np.int64),
            recovering=np.zeros((signals, self.features), dtype=np.int64),
        )
        self._bounds = np.full((signals, self.features), np.inf)
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
        self, values: Floats, rows: Rows | None = None, foretold: Floats | None = None, noting: Noting | None = None
    ) -> Verdicts:
        """Judge `values[T, N, F]`, T observations of the signals `rows` (all of them if None).

        The forecasts made after them go to `noting`, `[t, N, F, foretold_width]`, piece by piece. A caller that has
        them from an earlier run passes them as `foretold`: the numbers are the same, and nothing is forecast.
        """
        rows = self.everything if rows is None else rows
        values = np.where(np.isinf(values), np.nan, values)
        parts: list[Verdicts] = []
        first = 0
        while first < values.shape[0] or not parts:
            part = values[first : first + self._steps_together(rows)]
            known = None if foretold is None else foretold[first : first + part.shape[0]]
            parts.append(self._judge(part, rows, known, noting))
            first += max(part.shape[0], 1)
        return Verdicts.joined(parts)

    def freeze(self, rows: Rows) -> None:
        """Use the observations of these signals so far as a known-good reference from now on."""
        self.ranking.freeze(rows)
        for session, columns, _ in self._places:
            furthest = session.freeze(rows)
            if furthest is not None:
                self.ranking.compare_with_reference(rows, columns.start, furthest)

    def _steps_together(self, rows: Rows) -> int:
        """How many observations can be judged at once: up to the next recomputation of some signal's band."""
        until_drawn = BAND_EVERY - self.seen[rows] % BAND_EVERY
        return int(until_drawn.min(initial=BAND_EVERY))

    def _judge(self, values: Floats, rows: Rows, foretold: Floats | None, noting: Noting | None) -> Verdicts:
        due = rows[self.seen[rows] % BAND_EVERY == 0] if values.shape[0] else rows[:0]
        if due.size:
            self._bounds[due] = self.ranking.bounds(due)
        seen = self._look(values, rows, foretold, noting)
        steps, count = values.shape[:2]
        scores = np.empty((steps, count, self.ranking.width))
        scores.fill(np.nan)
        for session, columns, shape in self._places:
            part = scores[:, :, columns].reshape(steps, count, *shape)  # a copy where there are several observations
            session.run(seen, rows, part)
            scores[:, :, columns] = part.reshape(steps, count, -1) if part.size else 0.0
        judged = self.ranking.run(scores, rows)
        self.seen[rows] += steps
        forecast, low, high = self._band(seen, rows)
        return Verdicts(
            value=values,
            p=judged.p,
            alarm=judged.alarm,
            forecast=forecast,
            low=low,
            high=high,
            surprise=judged.surprise,
            rate=judged.rate,
            feature_p=judged.feature_p,
            views=judged.views,
            cause=judged.cause,
            # The sign was flipped to rank low values as large; users read which side it is.
            score=-judged.score if self.settings.nonconformity == "low" else judged.score,
            opened=judged.opened,
            estimated=judged.estimated,
            evidence=judged.evidence,
            warm=judged.warm,
            state=judged.state,
        )

    def _look(self, values: Floats, rows: Rows, foretold: Floats | None, noting: Noting | None) -> Seen:
        """Forecast from the values, and align earlier forecasts with them."""
        steps, count, features = values.shape
        ready = np.ones(values.shape, dtype=np.bool_)
        if self.forecaster is None:
            nothing = np.full((*values.shape, 1), np.nan)
            return Seen(
                values=values, predicted=nothing, spread=NO_SPREAD, issued=nothing, issued_spread=NO_SPREAD, ready=ready
            )
        asked = np.ones(values.shape, dtype=np.bool_)
        self._kernels.mark_ready(values, rows, self.seen, self._gaps, ready, asked)
        age = np.zeros((steps, count * features), dtype=np.int64)
        if self.settings.refresh > 1:
            ages = (self.seen[rows] + np.arange(steps)[:, np.newaxis]) % self.settings.refresh
            age = np.repeat(ages, features, axis=1)
        series = self._series(rows)
        chosen = None if rows is self.everything else series  # no need to check all rows again
        wanted = (age == 0) & asked.reshape(steps, count * features)
        flat = values.reshape(steps, count * features)
        if foretold is None:
            said = self._said(self._session.run(flat, chosen, wanted))
        else:
            self._session.run(flat, chosen, np.zeros_like(wanted))  # it only follows the values
            said = foretold.reshape(steps, count * features, self.foretold_width)

        def by_feature(array: Floats) -> Floats:
            return array.reshape(steps, count, features, array.shape[-1])

        if noting is not None:
            noting(by_feature(said))
        ahead = self._steps + self.settings.refresh - 1
        medians, spreads = (np.ascontiguousarray(part) for part in np.split(said, [ahead], -1))
        predicted, issued = map(by_feature, self._forecasts.push(medians, age, series))
        seen = (predicted, NO_SPREAD, issued, NO_SPREAD)
        if self._spreads is not None:
            spread, wide = map(by_feature, self._spreads.push(spreads, age, series))
            seen = (predicted, spread, issued, wide)
        return Seen(values, *seen, ready)

    @property
    def foretold_width(self) -> int:
        """How many numbers are forecast after each observation of a feature: medians and spreads."""
        if self.forecaster is None:
            return 0
        ahead = self._steps + self.settings.refresh - 1
        return ahead * (1 if self._spreads is None else 2)

    def _said(self, forecast: Forecast) -> Floats:
        """The used parts of a forecast, concatenated."""
        parts = [forecast.median]
        if self._spreads is not None:
            if forecast.quantiles is None:
                raise RuntimeError(f"forecaster {self.forecaster!r} gave no quantiles although it names levels")
            parts.append(forecast.quantiles[..., -1] - forecast.quantiles[..., 0])
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)

    def _band(self, seen: Seen, rows: Rows) -> tuple[Floats, Floats, Floats]:
        """The one-step forecast, and the values beyond which its error alone is enough evidence for an alarm."""
        forecast = seen.predicted[..., 0].copy()
        reach = self._bounds[rows]
        if self.forecaster is None:
            return forecast, np.full(forecast.shape, np.nan), np.broadcast_to(reach, forecast.shape).copy()
        if self._spreads is not None:
            # The smallest spread by which errors are divided.
            reach = reach * np.maximum(seen.spread[..., 0], 1e-9 * (np.abs(forecast) + 1e-300))
        side = self.settings.nonconformity
        low = forecast - reach if side != "high" else np.full(forecast.shape, -np.inf)
        high = forecast + reach if side != "low" else np.full(forecast.shape, np.inf)
        return forecast, low, high

    def _series(self, rows: Rows) -> Rows:
        if rows is self.everything:
            return self._all_series
        return (rows[:, np.newaxis] * self.features + np.arange(self.features)).reshape(-1)

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
        tree["views"] = {view.name: session.state(rows) for view, session in zip(self.views, self._views, strict=True)}
        for name, part in self._parts().items():
            tree[name] = part.state(self._series(rows))
        return tree

    def copy_from(self, rows: Rows, other: "Pipeline") -> None:
        """Replace the state of these signals with that of another pipeline of the same kind and size."""
        theirs = other._arrays()
        for name, own in self._arrays().items():
            own[rows] = theirs[name]
        self.ranking.copy_from(rows, other.ranking)
        for session, others in zip(self._views, other._views, strict=True):
            session.restore(others.state(other.everything), rows)
        given = other._parts()
        for name, part in self._parts().items():
            part.restore(given[name].state(), self._series(rows))

    def restore(self, tree: dict[str, Any]) -> None:
        """Restore what `state()` returned for a pipeline of the same kind."""
        for name, own in self._arrays().items():
            if tree[name].shape != own.shape or tree[name].dtype != own.dtype:
                raise ValueError(f"{name} must be {own.dtype} of shape {own.shape}, got shape {tree[name].shape}")
            if np.isnan(tree[name]).any() or (own.dtype == np.int64 and np.any(tree[name] < 0)):
                raise ValueError(f"{name} must hold {'counts' if own.dtype == np.int64 else 'numbers'}")
            own[...] = tree[name]
        self.ranking.restore(tree["ranking"])
        for view, session in zip(self.views, self._views, strict=True):
            # Parts without state have no entry in the tree.
            session.restore(tree.get("views", {}).get(view.name, {}), self.everything)
        for name, part in self._parts().items():
            part.restore(tree[name])

    def _arrays(self) -> dict[str, NDArray[Any]]:
        gaps = {"gaps": self._gaps.missing, "rests": self._gaps.recovering}
        return {"seen": self.seen, **gaps, "bounds": self._bounds}

    def _parts(self) -> dict[str, Any]:
        if self.forecaster is None:
            return {}
        parts = {"session": self._session, **self._forecasts.parts("forecasts")}
        return parts if self._spreads is None else {**parts, **self._spreads.parts("spreads")}


class Issued:
    """Forecasts, or their spreads, continued until the next is issued and aligned with their observations."""

    def __init__(self, series: int, steps: int, settings: DetectorSettings) -> None:
        self._continued = Continuation(series, steps, settings.refresh)
        self._aligned = Alignment(series, settings.horizons)

    def push(self, issued: Floats, age: NDArray[np.int64], series: Rows) -> tuple[Floats, Floats]:
        """The earlier forecasts for each observation, and those made after it."""
        continued = self._continued.push(issued, age, series)
        return self._aligned.push(continued, series), continued

    @property
    def nbytes(self) -> int:
        """Bytes held for all series together."""
        return self._continued.nbytes + self._aligned.nbytes

    def parts(self, name: str) -> dict[str, Any]:
        """What keeps a state, by name."""
        return {f"{name} continued": self._continued, f"{name} aligned": self._aligned}


def _load_kernels() -> ModuleType:
    # numba is slow to import: only detection waits for it.
    from tocsin.detection import kernels

    return kernels
