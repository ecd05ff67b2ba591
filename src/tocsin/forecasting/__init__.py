"""Forecasters: one small contract, simple forecasters, and adapters to pretrained models."""

from tocsin.forecasting.autoregression import Autoregression
from tocsin.forecasting.context import ContextForecaster, StreamForecaster
from tocsin.forecasting.embedded import EmbeddedForecaster
from tocsin.forecasting.forecaster import Floats, Forecast, Forecaster, Session
from tocsin.forecasting.period import find_period
from tocsin.forecasting.registry import available_forecasters, make_forecaster
from tocsin.forecasting.simple import ExponentialSmoothing, LastValue, SeasonalNaive

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
