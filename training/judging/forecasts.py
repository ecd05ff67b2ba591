"""The forecasts of the judged forecaster for a list of windows."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby

import numpy as np

from tocsin.adapters.statistical import LEVELS
from tocsin.forecasting.forecaster import Floats, Forecast
from training.judging.processes import in_processes
from training.judging.recipe import Recipe
from training.judging.windows import Window

BATCH = 64


def forecasts_of(recipe: Recipe, windows: Sequence[Window], jobs: int) -> Forecast:
    """Medians `(windows, steps)`, and quantiles at `LEVELS` if the forecaster has them; NaN beyond a window's end."""
    rows = sorted(range(len(windows)), key=lambda row: windows[row].truth.size)
    batches: list[list[int]] = []
    tasks: list[Callable[[], Forecast]] = []
    for steps, equal in groupby(rows, key=lambda row: windows[row].truth.size):
        together = list(equal)
        for first in range(0, len(together), BATCH):
            batch = together[first : first + BATCH]
            batches.append(batch)
            tasks.append(partial(_forecast, recipe, [windows[row].context for row in batch], steps))
    longest = max(window.truth.size for window in windows)
    median = np.full((len(windows), longest), np.nan)
    quantiles = np.full((len(windows), longest, len(LEVELS)), np.nan)
    parts = in_processes(tasks, jobs, recipe.name)
    for batch, part in zip(batches, parts, strict=True):
        median[batch, : part.median.shape[1]] = part.median
        if part.quantiles is not None:
            quantiles[batch, : part.quantiles.shape[1]] = part.quantiles
    return Forecast(median, quantiles if parts[0].quantiles is not None else None)


def _forecast(recipe: Recipe, contexts: list[Floats], steps: int) -> Forecast:
    forecaster = recipe.forecaster()
    forecast = forecaster.forecast(contexts, steps)
    levels = [round(level, 6) for level in forecaster.levels]
    if forecast.quantiles is None or not set(LEVELS) <= set(levels):
        return Forecast(forecast.median)
    return Forecast(forecast.median, forecast.quantiles[..., [levels.index(level) for level in LEVELS]])
