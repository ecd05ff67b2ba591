"""Tocsin: alarms on signals whose threshold is the false-alarm rate."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tocsin.data import DataWarning, read_signals
    from tocsin.detection import (
        NONCONFORMITIES,
        Audit,
        Detector,
        DetectorSettings,
        Fleet,
        Incident,
        ResolutionWarning,
        Result,
        Results,
        Verdict,
        Verdicts,
    )
    from tocsin.forecasting import (
        Autoregression,
        ContextForecaster,
        EmbeddedForecaster,
        ExponentialSmoothing,
        Forecast,
        Forecaster,
        LastValue,
        SeasonalNaive,
        Session,
        StreamForecaster,
        available_forecasters,
        find_period,
        make_forecaster,
    )

__all__ = [
    "NONCONFORMITIES",
    "Audit",
    "Autoregression",
    "ContextForecaster",
    "DataWarning",
    "Detector",
    "DetectorSettings",
    "EmbeddedForecaster",
    "ExponentialSmoothing",
    "Fleet",
    "Forecast",
    "Forecaster",
    "Incident",
    "LastValue",
    "ResolutionWarning",
    "Result",
    "Results",
    "SeasonalNaive",
    "Session",
    "StreamForecaster",
    "Verdict",
    "Verdicts",
    "available_forecasters",
    "find_period",
    "make_forecaster",
    "read_signals",
]

__version__ = "0.1.0"

_ROOMS = ("detection", "forecasting", "data")  # where the names above are


def __getattr__(name: str) -> Any:
    """Import a name on first use: the command's help, for example, needs none of them."""
    if name in __all__:
        for room in _ROOMS:
            module = importlib.import_module(f"tocsin.{room}")
            if hasattr(module, name):
                globals()[name] = getattr(module, name)
                return globals()[name]
    raise AttributeError(f"module 'tocsin' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
