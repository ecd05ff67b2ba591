"""Forecasters: one small contract, simple forecasters, and adapters to pretrained models."""

from tocsin.forecasting.autoregression import Autoregression
from tocsin.forecasting.context import ContextForecaster
from tocsin.forecasting.embedded import EmbeddedForecaster
from tocsin.forecasting.exponential_smoothing import ExponentialSmoothing
from tocsin.forecasting.forecaster import Floats, Forecast, Forecaster, Session
from tocsin.forecasting.last_value import LastValue
from tocsin.forecasting.period import find_period
from tocsin.forecasting.registry import available_forecasters, make_forecaster
from tocsin.forecasting.seasonal_naive import SeasonalNaive
from tocsin.forecasting.stream import StreamForecaster

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
