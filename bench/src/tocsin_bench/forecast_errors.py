"""The input of methods: errors of forecasts."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tocsin import checks
from tocsin.detection.evidence.forecasts import ForecastStage
from tocsin.detection.paper.scoring import CONTEXT, HorizonErrors
from tocsin.detection.views import Seen
from tocsin.forecasting import make_forecaster
from tocsin_bench.files import LabelledFile
from tocsin_bench.results import Floats, ForecastErrors

# A history is processed in pieces: the quantiles of all of it, which nobody needs, could fill the memory.
PIECE = 2000


@dataclass(frozen=True)
class ForecasterChoice:
    """A forecaster by name with its options, such as `embedded:context_length=52`."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Its name in results, with its options; the context length is a plain number.

        >>> ForecasterChoice("embedded", {"context_length": 52}).label
        'embedded-52'
        >>> ForecasterChoice("seasonal-naive", {"period": 24}).label
        'seasonal-naive-period=24'
        """
        named = {name: "" if name == "context_length" else f"{name}=" for name in self.options}
        label = "-".join([self.name, *(f"{named[name]}{value}" for name, value in self.options.items())])
        return label.replace("/", "_")  # it names a folder, too


@dataclass(frozen=True, eq=False)
class ForecastMaterial:
    """One file with the absolute errors of its forecasts, `errors[T, F, H]`: NaN where there are none.

    Entry `[t, f, d - 1]` is the error at t of the forecast that was made d observations before.
    """

    file: LabelledFile
    forecaster: ForecasterChoice
    errors: Floats
    forecast_errors: ForecastErrors

    @property
    def calibration(self) -> int:
        """How many observations of the calibration part have errors."""
        return max(2, self.file.calibration - CONTEXT)


def make_material(file: LabelledFile, choice: ForecasterChoice, horizons: int) -> ForecastMaterial:
    """Forecast a file from beginning to end, always from past values only, as the paper's detector does."""
    horizons = checks.integer("horizons", horizons, least=1, most=1024)
    started = time.perf_counter()
    length, features = file.values.shape
    forecaster = make_forecaster(choice.name, choice.options)
    stage = ForecastStage(forecaster, 1, features, horizons, refresh=1, scaled=False, longest_gap=horizons)
    session = HorizonErrors(horizons).open(1, features, 0)
    only = np.array([0])
    errors = np.empty((length, features, horizons))
    for first in range(0, length, PIECE):
        piece = file.values[first : first + PIECE, np.newaxis].copy()
        forecasts, _ = stage.run(piece, only, None, np.array([first]), None)
        session.run(Seen(piece, (forecasts,)), only, errors[first : first + PIECE, np.newaxis])
    errors = np.abs(errors)
    seconds = time.perf_counter() - started
    mae, rmse = _means(errors)
    return ForecastMaterial(
        file,
        choice,
        errors,
        ForecastErrors(
            file=file.name,
            dataset=file.dataset,
            forecaster=choice.label,
            features=features,
            observations=length,
            mae=mae,
            rmse=rmse,
            seconds=seconds,
        ),
    )


def without_forecasts(file: LabelledFile) -> ForecastMaterial:
    """A file for methods that forecast for themselves: there are no errors."""
    length, features = file.values.shape
    nothing = ForecastErrors(
        file=file.name,
        dataset=file.dataset,
        forecaster="",
        features=features,
        observations=length,
        mae=float("nan"),
        rmse=float("nan"),
        seconds=0.0,
    )
    return ForecastMaterial(file, ForecasterChoice(""), np.empty((length, features, 0)), nothing)


def _means(errors: Floats) -> tuple[float, float]:
    """Mean absolute and root mean squared error, NaN if nothing could be compared."""
    known = errors[~np.isnan(errors)]
    if not known.size:
        return float("nan"), float("nan")
    return float(known.mean()), float(np.sqrt(np.square(known).mean()))
