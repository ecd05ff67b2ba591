"""Forecasters: one small contract, simple forecasters, and adapters to pretrained models."""

from tocsin.forecasting.contexts import ContextForecaster
from tocsin.forecasting.embedded import EmbeddedForecaster
from tocsin.forecasting.forecaster import (
    Floats,
    Forecast,
    Forecaster,
    Session,
    StreamForecaster,
    available_forecasters,
    make_forecaster,
)
from tocsin.forecasting.simple import Autoregression, ExponentialSmoothing, LastValue, SeasonalNaive, find_period

__all__ = [
    "Autoregression",
    "ContextForecaster",
    "EmbeddedForecaster",
    "ExponentialSmoothing",
    "Floats",
    "Forecast",
    "Forecaster",
    "LastValue",
    "SeasonalNaive",
    "Session",
    "StreamForecaster",
    "available_forecasters",
    "find_period",
    "make_forecaster",
]
