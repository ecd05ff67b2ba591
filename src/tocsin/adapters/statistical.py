"""Classical models from statsforecast, refitted to every context."""

import warnings

import numpy as np

from tocsin import checks
from tocsin.adapters.base import import_library
from tocsin.forecasting.contexts import ContextForecaster
from tocsin.forecasting.forecaster import Floats, Forecast

MODELS = (
    "AutoARIMA",
    "AutoCES",
    "AutoETS",
    "AutoTheta",
    "DynamicOptimizedTheta",
    "OptimizedTheta",
    "Theta",
)
"""Models of statsforecast that need only a season length, and provide prediction intervals."""

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_INTERVALS = (80, 60, 40, 20)  # per cent; their lower ends are the levels .1 to .4, their upper ends .9 to .6
_DEVIATIONS = np.array(
    [
        -1.2815515655446004,
        -0.8416212335729143,
        -0.5244005127080409,
        -0.2533471031357997,
        0.0,
        0.2533471031357997,
        0.5244005127080409,
        0.8416212335729143,
        1.2815515655446004,
    ]
)  # of a normal law, at LEVELS
_SHORTEST = 3  # observations; fewer cannot be fitted


class StatsForecaster(ContextForecaster):
    """A classical model (ETS, Theta, ARIMA, CES) that is fitted to every context before it forecasts from it.

    Accurate on short, regular histories, and slow: a fit takes a hundredth of a second (AutoETS, AutoTheta without a
    season) to several seconds (AutoARIMA with one). The point forecast stands for the median. The quantiles are
    the ends of the model's own prediction intervals.

    For the fit alone, gaps inside a context are filled along a straight line. A gap at its end is forecast across: the
    model starts from the last observation and looks that much further ahead. Where the model cannot be fitted, because
    there are fewer than three observations, all are equal, or statsforecast gives up, a random walk takes its place:
    the last observation is the forecast, and the quantiles are those of a normal law whose variance grows with every
    step by the mean square of the steps so far.

    Needs the extra `stats`.

    Parameters
    ----------
    model : one of `MODELS`.
    season_length : the period of the signal, in steps; 1 for none.
    context_length, batch_size, time_batch : see `ContextForecaster`. The batches make no difference: contexts are
        fitted one by one.
    """

    name = "stats"
    modules = ("statsforecast",)
    extra = "tocsin[stats]"
    levels = LEVELS

    def __init__(
        self,
        model: str = "AutoETS",
        *,
        season_length: int = 1,
        context_length: int = 256,
        batch_size: int = 256,
        time_batch: int = 1,
    ) -> None:
        super().__init__(context_length=context_length, batch_size=batch_size, time_batch=time_batch)
        self.model = checks.choice("model", model, MODELS)
        self.season_length = checks.integer("season_length", season_length, least=1, most=self.context_length)
        library = import_library("statsforecast.models", type(self))
        self._fitter = getattr(library, self.model)(season_length=self.season_length)

    def _predict(self, contexts: Floats, horizon: int) -> Forecast:
        quantiles = np.stack([self._quantiles(context, horizon) for context in contexts])
        return Forecast(quantiles[..., LEVELS.index(0.5)], quantiles)

    def _quantiles(self, context: Floats, horizon: int) -> Floats:
        """The quantiles `(horizon, levels)` that follow one context."""
        known = np.flatnonzero(~np.isnan(context))
        steps = np.arange(known[0], known[-1] + 1)
        values = np.interp(steps, known, context[known])
        gap = context.size - 1 - known[-1]
        # Divided by the largest value, so that no square overflows. Not shifted: models that multiply their parts need
        # values that stay positive.
        largest = np.abs(values).max() or 1.0
        quantiles = self._fitted(values / largest, horizon + gap) if known.size >= _SHORTEST else None
        if quantiles is None:
            quantiles = _random_walk(values / largest, horizon + gap)
        finite = np.finfo(np.float64).max
        with np.errstate(over="ignore"):
            return np.clip(quantiles[gap:] * largest, -finite, finite)

    def _fitted(self, values: Floats, horizon: int) -> Floats | None:
        """The model's quantiles, ascending; None where it has none to give."""
        if values.min() == values.max():
            return None
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # poor fits are expected here
            try:
                outcome = self._fitter.forecast(y=values, h=horizon, level=sorted(_INTERVALS))
            except Exception:  # fits raise many kinds of exceptions on unsuitable values
                return None
        lower = [outcome[f"lo-{interval}"] for interval in _INTERVALS]
        upper = [outcome[f"hi-{interval}"] for interval in reversed(_INTERVALS)]
        outer = np.sort(np.stack([*lower, *upper], axis=-1).astype(np.float64), axis=-1)
        middle = np.asarray(outcome["mean"], dtype=np.float64)
        half = len(_INTERVALS)
        # Intervals that were simulated may miss the middle by a little.
        quantiles = np.column_stack(
            [
                np.minimum(outer[:, :half], middle[:, np.newaxis]),
                middle,
                np.maximum(outer[:, half:], middle[:, np.newaxis]),
            ]
        )
        return quantiles if np.isfinite(quantiles).all() else None


def _random_walk(values: Floats, horizon: int) -> Floats:
    step = np.sqrt(np.mean(np.diff(values) ** 2)) if values.size > 1 else 0.0
    growth = np.sqrt(np.arange(1, horizon + 1))[:, np.newaxis]
    return np.asarray(values[-1] + step * growth * _DEVIATIONS)
