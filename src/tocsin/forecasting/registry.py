"""All forecasters by name, including those of other packages."""

import importlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Any

from tocsin.forecasting.forecaster import Forecaster

ENTRY_POINTS = "tocsin.forecasters"


@dataclass(frozen=True)
class RegisteredForecaster:
    """One registered forecaster. Everything but its name is read from its class, which is imported for that."""

    name: str
    target: str  # "module:Class"

    def load(self) -> type[Forecaster]:
        module, _, name = self.target.partition(":")
        loaded = getattr(importlib.import_module(module), name, None)
        if not (isinstance(loaded, type) and issubclass(loaded, Forecaster)):
            raise TypeError(f"forecaster {self.name!r} must be a subclass of tocsin.Forecaster, got {loaded!r}")
        return loaded

    @property
    def about(self) -> str:
        """What it does: the first line of its class's documentation."""
        return (inspect.getdoc(self.load()) or "").partition("\n")[0]

    @property
    def extra(self) -> str | None:
        """What to install for it, if anything."""
        return self.load().extra

    @property
    def paths(self) -> tuple[str, ...]:
        """Those of its arguments that name files, folders or downloads."""
        return self.load().paths

    @property
    def missing(self) -> tuple[str, ...]:
        """The modules that it needs and that are not installed."""
        return tuple(module for module in self.load().modules if find_spec(module) is None)

    @property
    def required(self) -> tuple[str, ...]:
        """Arguments that have no default."""
        arguments = inspect.signature(self.load()).parameters.values()
        named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        return tuple(one.name for one in arguments if one.default is one.empty and one.kind in named)


BUILT_IN = tuple(
    RegisteredForecaster(name, f"tocsin.forecasting.{target}")
    for name, target in {
        "embedded": "embedded:EmbeddedForecaster",
        "autoregression": "simple:Autoregression",
        "last-value": "simple:LastValue",
        "seasonal-naive": "simple:SeasonalNaive",
        "exponential-smoothing": "simple:ExponentialSmoothing",
    }.items()
)


def available_forecasters() -> dict[str, RegisteredForecaster]:
    """All forecasters by name: the built-in ones, and those that packages register by entry point.

    A package registers one with `[project.entry-points."tocsin.forecasters"]` and a line `name = "module:Class"`.
    Built-in names take precedence.
    """
    built_in = {entry.name: entry for entry in BUILT_IN}
    return {**built_in, **_installed(), **built_in}  # the first of them give the order, the last what a name means


@cache
def _installed() -> dict[str, RegisteredForecaster]:
    """Those of packages. A search takes 10 ms, and a monitor asks three times for each new signal."""
    return {
        # Extras follow in brackets.
        point.name: RegisteredForecaster(point.name, point.value.partition("[")[0].strip())
        for point in entry_points(group=ENTRY_POINTS)
    }


def find_forecaster(name: str) -> RegisteredForecaster | None:
    """The forecaster with that name, if any. Other packages are searched only if none is built in."""
    for entry in BUILT_IN:
        if entry.name == name:
            return entry
    return available_forecasters().get(name)


def make_forecaster(name: str, options: Mapping[str, Any] | None = None) -> Forecaster:
    """Create the forecaster with that name and these arguments.

    >>> make_forecaster("seasonal-naive", {"period": 24})
    SeasonalNaive(period=24, search=4608)
    """
    entry = find_forecaster(name)
    if entry is None:
        known = ", ".join(map(repr, available_forecasters()))
        raise ValueError(f"forecaster must be one of {known}, got {name!r}")
    if entry.missing:
        raise ImportError(f"forecaster {name!r} needs {', '.join(entry.missing)}: pip install '{entry.extra}'")
    given = dict(options or {})
    absent = [argument for argument in entry.required if argument not in given]
    if absent:
        raise ValueError(f"forecaster {name!r} needs the argument {', '.join(map(repr, absent))}, got {given!r}")
    try:
        return entry.load()(**given)
    except TypeError as error:
        raise TypeError(f"forecaster {name!r} does not take {given!r}: {error}") from error
