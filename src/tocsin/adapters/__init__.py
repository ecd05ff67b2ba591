"""Adapters to forecasters of other libraries, registered by entry points as those of any other package are.

A library is imported only when a forecaster that needs it is created.
"""

from tocsin.adapters.base import MissingExtraError, PretrainedForecaster
from tocsin.adapters.chronos import ChronosForecaster
from tocsin.adapters.granite import FlowStateForecaster, TTMForecaster
from tocsin.adapters.statistical import StatsForecaster
from tocsin.adapters.tirex import LicenceWarning, TiRexForecaster

__all__ = [
    "ChronosForecaster",
    "FlowStateForecaster",
    "LicenceWarning",
    "MissingExtraError",
    "PretrainedForecaster",
    "StatsForecaster",
    "TTMForecaster",
    "TiRexForecaster",
]
