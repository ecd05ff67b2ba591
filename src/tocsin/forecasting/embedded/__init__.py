"""The pretrained network that comes with the package, and what runs it without any library for networks."""

from tocsin.forecasting.embedded.forecaster import EmbeddedForecaster

__all__ = ["EmbeddedForecaster"]
