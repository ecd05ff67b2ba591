"""Forecasts of the default forecaster, made once for signals that are judged more than once."""

import numpy as np

from tocsin.detection import Fleet
from tocsin.forecasting import Forecast, Forecaster
from tocsin.forecasting.forecaster import Session

AT_ONCE = 1000


class Replay(Forecaster):
    """Gives the forecasts that the default detector's forecaster made of these values `[T, S]`, in their order."""

    name = "replay"

    def __init__(self, values):
        fleet = Fleet(1)
        self.horizon = fleet.settings.steps
        self.warm_up, self.recovers = fleet.forecaster.warm_up, fleet.forecaster.recovers
        session = fleet.forecaster.open(values.shape[1], self.horizon)
        parts = [session.run(values[at : at + AT_ONCE]).median for at in range(0, len(values), AT_ONCE)]
        self.medians = np.concatenate([part.astype(np.float32) for part in parts])

    @property
    def longest_horizon(self):
        """As far as it was made for."""
        return self.horizon

    def forecast(self, context, horizon):
        raise NotImplementedError("a replay only follows the values that it was made of")

    def open(self, series, horizon):
        return _ReplaySession(self.medians, series, horizon)

    def parameters(self):
        return {}


class _ReplaySession(Session):
    def __init__(self, medians, series, horizon):
        super().__init__(series, horizon)
        self.medians, self.at = medians, 0

    def _run(self, values, rows, wanted):
        first, self.at = self.at, self.at + len(values)
        return Forecast(self.medians[first : self.at, :, : self.horizon].astype(np.float64), None)

    def _snapshot(self, rows):
        return {}

    def _restore(self, state, rows):
        pass
