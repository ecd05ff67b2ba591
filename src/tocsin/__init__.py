"""Tocsin: alarms on signals whose threshold is the false-alarm rate."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tocsin.conformal import (
        MERGES,
        SCORERS,
        W1ACAS,
        ExponentialDecay,
        GaussianTail,
        Guarantee,
        Merge,
        Scorer,
        SlidingWindow,
        SplitConformal,
        load_scorer,
        merge_p_values,
        save_scorer,
    )
    from tocsin.detection import (
        NONCONFORMITIES,
        Audit,
        Detector,
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
    "MERGES",
    "NONCONFORMITIES",
    "SCORERS",
    "W1ACAS",
    "Audit",
    "Autoregression",
    "ContextForecaster",
    "Detector",
    "EmbeddedForecaster",
    "ExponentialDecay",
    "ExponentialSmoothing",
    "Fleet",
    "Forecast",
    "Forecaster",
    "GaussianTail",
    "Guarantee",
    "Incident",
    "LastValue",
    "Merge",
    "ResolutionWarning",
    "Result",
    "Results",
    "Scorer",
    "SeasonalNaive",
    "Session",
    "SlidingWindow",
    "SplitConformal",
    "StreamForecaster",
    "Verdict",
    "Verdicts",
    "available_forecasters",
    "find_period",
    "load_scorer",
    "make_forecaster",
    "merge_p_values",
    "save_scorer",
]

__version__ = "0.1.0"

_ROOMS = ("conformal", "detection", "forecasting")  # where the names above are


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
