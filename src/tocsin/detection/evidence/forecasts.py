"""One forecaster at work in a detector: asked after each observation, and its forecasts aligned with what followed."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.conformal.scorer import Floats
from tocsin.constants import constants
from tocsin.detection.views.view import NO_SPREAD, Forecasts
from tocsin.forecasting import Forecaster
from tocsin.forecasting.forecaster import Forecast

Rows = NDArray[np.intp]


class Continuation:
    """Continues the last forecast until the next is issued.

    With a `refresh` interval above 1, forecasts are issued only that often. In between, the last one continues, so that
    after every observation there is a forecast for each of the next `steps` observations.
    """

    def __init__(self, series: int, steps: int, refresh: int) -> None:
        self.steps, self.refresh = steps, refresh
        self._newest = np.full((series, steps + refresh - 1 if refresh > 1 else 0), np.nan)
        self._everything = np.arange(series)

    def push(self, issued: Floats, age: NDArray[np.int64], rows: Rows) -> Floats:
        """The forecasts `(T, N, steps)` after each of T observations, from those issued, `(T, N, steps + refresh - 1)`.

        `age[t, n]` is how many observations ago a forecast was last issued; what `issued` holds where that is not 0
        does not matter.
        """
        full = np.empty((*issued.shape[:2], self.steps))
        for t in range(issued.shape[0]):
            fresh = age[t] == 0
            self._newest[rows[fresh]] = issued[t, fresh]
            ahead = age[t][:, np.newaxis] + np.arange(self.steps)
            full[t] = np.take_along_axis(self._newest[rows], ahead, axis=1)
        return full

    @property
    def nbytes(self) -> int:
        """Bytes held for all series together."""
        return self._newest.nbytes

    def state(self, rows: Rows | None = None) -> dict[str, Floats]:
        """Copies of all arrays that later forecasts of these series (all of them if None) depend on."""
        return {"newest": self._newest[self._everything if rows is None else rows]}

    def restore(self, state: dict[str, Floats], rows: Rows | None = None) -> None:
        """Restore these series from what `state()` returned for as many."""
        _check(state, self.state(rows))
        self._newest[self._everything if rows is None else rows] = state["newest"]


class Alignment:
    """Keeps the forecasts of each of `series` series after each of the last `horizons` observations."""

    def __init__(self, series: int, horizons: int) -> None:
        self.horizons = horizons
        from tocsin.detection.evidence import kernels

        self._kernels = kernels
        self._carried = np.full((series, horizons, horizons), np.nan)
        self._everything = np.arange(series)

    def push(self, issued: Floats, rows: Rows) -> Floats:
        """Add the forecasts made after each of T observations, `(T, N, horizons or more)`.

        Returns the earlier forecasts for each of those observations, `(T, N, horizons)`; entry d - 1 was issued d
        observations before.
        """
        predicted = np.empty((*issued.shape[:2], self.horizons))
        self._kernels.align(self._carried, rows, issued, predicted)
        return predicted

    @property
    def nbytes(self) -> int:
        """Bytes held for all series together."""
        return self._carried.nbytes

    def state(self, rows: Rows | None = None) -> dict[str, Floats]:
        """Copies of all arrays that later alignments of these series (all of them if None) depend on."""
        return {"carried": self._carried[self._everything if rows is None else rows]}

    def restore(self, state: dict[str, Floats], rows: Rows | None = None) -> None:
        """Restore these series from what `state()` returned for as many."""
        _check(state, self.state(rows))
        self._carried[self._everything if rows is None else rows] = state["carried"]


def _check(state: dict[str, Floats], own: dict[str, Floats]) -> None:
    for name, wanted in own.items():
        if state[name].shape != wanted.shape or state[name].dtype != wanted.dtype:
            raise ValueError(
                f"state[{name!r}] must be {wanted.dtype} of shape {wanted.shape}, got shape {state[name].shape}"
            )


class ForecastStage:
    """Forecasts `signals` signals with `features` features, `horizons` steps ahead.

    After a gap of more than `longest_gap` observations it recovers before it is judged again. With `refresh` above 1 it
    asks the forecaster only that often, and continues its last forecast in between. With `scaled`, the spread of the
    quantiles comes along.
    """

    def __init__(
        self, forecaster: Forecaster, signals: int, features: int, horizons: int, *, refresh: int, scaled: bool,
        longest_gap: int,
    ) -> None:  # fmt: skip
        from tocsin.detection.evidence import kernels

        self._kernels, self.forecaster, self._scaled = kernels, forecaster, scaled
        series = signals * features
        self._ahead, self._refresh = horizons + refresh - 1, refresh
        self._session = forecaster.open(series, self._ahead)
        self._everything = np.arange(series)
        kinds = 2 if scaled else 1
        self._continued = [Continuation(series, horizons, refresh) for _ in range(kinds)]
        self._aligned = [Alignment(series, horizons) for _ in range(kinds)]
        self._gaps = kernels.Gaps(
            warm_up=forecaster.warm_up,
            # Forecasts made within the gap are no better than those made from its filled-in values.
            recovers=max(forecaster.recovers, longest_gap),
            longest=longest_gap,
            # No view uses later forecasts, and a gap of a thousand would take as long as a thousand observations.
            forecast=constants().long,
            missing=np.zeros((signals, features), dtype=np.int64),
            recovering=np.zeros((signals, features), dtype=np.int64),
        )

    @property
    def width(self) -> int:
        """How many numbers are forecast after each observation of a feature: medians and spreads."""
        return self._ahead * len(self._aligned)

    def run(
        self, values: Floats, rows: Rows, series: Rows | None, seen: NDArray[np.int64], kept_forecasts: Floats | None
    ) -> tuple[Forecasts, Floats]:
        """The forecasts for `values[T, N, F]` of the signals `rows`, and those made after them, `[T, N, F, width]`.

        `series` are the rows' series, None for all. `seen` counts the earlier observations of all signals. Forecasts
        that were made before, in the same state, are `kept_forecasts`: then nothing is forecast.
        """
        steps, count, features = values.shape
        ready, asked = np.empty(values.shape, dtype=np.bool_), np.empty(values.shape, dtype=np.bool_)
        self._kernels.mark_ready(values, rows, seen, self._gaps, ready, asked)
        flat, wanted = values.reshape(steps, count * features), asked.reshape(steps, count * features)
        age = self._ages(seen[rows], steps, features) if self._refresh > 1 else None
        wanted = wanted if age is None else wanted & (age == 0)
        if kept_forecasts is None:
            said = self._said(self._session.run(flat, series, wanted))
        else:
            self._session.run(flat, series, np.zeros_like(wanted))  # it only follows the values
            said = kept_forecasts.reshape(*flat.shape, self.width)
        chosen = self._everything if series is None else series
        parts = []
        for kind, continued, aligned in zip(range(2), self._continued, self._aligned, strict=False):
            issued = np.ascontiguousarray(said[..., kind * self._ahead : (kind + 1) * self._ahead])
            if age is not None:
                issued = continued.push(issued, age, chosen)
            parts.append(aligned.push(issued, chosen).reshape(steps, count, features, aligned.horizons))
        spread = parts[1] if self._scaled else NO_SPREAD
        return Forecasts(parts[0], spread, ready), said.reshape(steps, count, features, self.width)

    def _ages(self, seen: NDArray[np.int64], steps: int, features: int) -> NDArray[np.int64]:
        """How many observations ago each series was last forecast, `[T, N * F]`."""
        return np.repeat((seen + np.arange(steps)[:, np.newaxis]) % self._refresh, features, axis=1)

    def _said(self, forecast: Forecast) -> Floats:
        """The used parts of a forecast, concatenated."""
        if not self._scaled:
            return forecast.median
        if forecast.quantiles is None:
            raise RuntimeError(f"forecaster {self.forecaster!r} gave no quantiles although it names levels")
        return np.concatenate([forecast.median, forecast.quantiles[..., -1] - forecast.quantiles[..., 0]], axis=-1)

    @property
    def nbytes(self) -> int:
        """Bytes held for all signals together, the forecaster's included."""
        return sum(part.nbytes for part in self._parts().values())

    def state(self, rows: Rows, series: Rows) -> dict[str, Any]:
        """Everything that later forecasts of these signals depend on."""
        gaps = {name: array[rows] for name, array in self._arrays().items()}
        return {**gaps, **{name: part.state(series) for name, part in self._parts().items()}}

    def restore(self, state: dict[str, Any], rows: Rows, series: Rows) -> None:
        """Restore these signals from what `state` returned for as many."""
        for name, own in self._arrays().items():
            given = state[name]
            if given.shape != (rows.size, own.shape[1]) or given.dtype != own.dtype or np.any(given < 0):
                raise ValueError(f"{name} must hold counts for each feature")
            own[rows] = given
        for name, part in self._parts().items():
            part.restore(state[name], series)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {"gaps": self._gaps.missing, "rests": self._gaps.recovering}

    def _parts(self) -> dict[str, Any]:
        parts: dict[str, Any] = {"session": self._session}
        for kind, continued, aligned in zip(("median", "spread"), self._continued, self._aligned, strict=False):
            parts |= {f"{kind} continued": continued, f"{kind} aligned": aligned}
        return parts
