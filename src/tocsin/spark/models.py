"""Forecasters, loaded once in each Python worker."""

import json
from functools import cache

from tocsin.forecasting import Forecaster, make_forecaster


@cache
def forecaster_of(name: str, options: str) -> Forecaster:
    """The forecaster with that name and these arguments (JSON), created once."""
    return make_forecaster(name, json.loads(options))
