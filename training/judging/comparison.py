"""Forecasts of several models for the same windows, compared by data set."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from tocsin.adapters.statistical import LEVELS
from tocsin.forecasting.forecaster import Forecast
from training.judging.metrics import coverage, geometric_mean, scaled_error, weighted_quantile_loss
from training.judging.windows import Window

HORIZONS = (15, 32)
ERRORS = ("MASE", "WQL")
COVERAGE = "coverage"

Scores = dict[str, dict[str, float]]
"""By data set, then by model; models without quantiles are absent where these are needed."""


def rows_by_data_set(windows: Sequence[Window], horizon: int) -> dict[str, list[int]]:
    """The places of the windows that are long enough for the horizon."""
    rows = defaultdict(list)
    for row, window in enumerate(windows):
        if window.truth.size >= horizon:
            rows[window.data_set].append(row)
    return dict(rows)


def compare(windows: Sequence[Window], forecasts: Mapping[str, Forecast], horizon: int) -> dict[str, Scores]:
    """MASE, WQL and the coverage of the band from 10% to 90%, of the first `horizon` steps."""
    found: dict[str, Scores] = {metric: defaultdict(dict) for metric in (*ERRORS, COVERAGE)}
    for data_set, rows in rows_by_data_set(windows, horizon).items():
        truth = np.stack([windows[row].truth[:horizon] for row in rows])
        scales = np.array([windows[row].scale for row in rows])
        for model, forecast in forecasts.items():
            found["MASE"][data_set][model] = scaled_error(truth, forecast.median[rows, :horizon], scales)
            if forecast.quantiles is not None:
                quantiles = forecast.quantiles[rows, :horizon]
                found["WQL"][data_set][model] = weighted_quantile_loss(truth, quantiles, LEVELS)
                found[COVERAGE][data_set][model] = coverage(truth, quantiles[..., 0], quantiles[..., -1])
    return found


def means(scores: Scores) -> dict[str, float]:
    """For each model the mean over the data sets."""
    return {model: float(np.mean([row[model] for row in scores.values()])) for model in _models(scores)}


def mean_ratios(scores: Scores, reference: str) -> dict[str, float]:
    """For each model the geometric mean over the data sets, relative to one of the models."""
    return {model: geometric_mean(row[model] / row[reference] for row in scores.values()) for model in _models(scores)}


def _models(scores: Scores) -> list[str]:
    return list(next(iter(scores.values()), {}))


def error_growth(
    windows: Sequence[Window], clean: Mapping[str, Forecast], spoiled: Mapping[str, Forecast], horizon: int
) -> Scores:
    """How many times larger the errors are after spoiled contexts.

    The absolute errors of a window are in units of its clean scale before they are averaged, so that a data set's
    largest series do not speak for all of it.
    """
    before = compare(windows, clean, horizon)["MASE"]
    after = compare(windows, spoiled, horizon)["MASE"]
    return {
        data_set: {model: after[data_set][model] / error for model, error in row.items()}
        for data_set, row in before.items()
    }
