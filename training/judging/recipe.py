"""The forecaster that is judged, as it goes to other processes: by name and arguments."""

import functools
from dataclasses import dataclass
from typing import Any

from tocsin.forecasting import Forecaster, make_forecaster


@dataclass(frozen=True)
class Recipe:
    """How to make a forecaster; `options` are pairs of names and values."""

    name: str
    options: tuple[tuple[str, Any], ...] = ()

    def forecaster(self) -> Forecaster:
        """The forecaster itself, made once in each process."""
        return _make(self)


@functools.cache
def _make(recipe: Recipe) -> Forecaster:
    return make_forecaster(recipe.name, dict(recipe.options))
