"""All forecasters by name, including those of other packages."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Any

from tocsin.forecasting.forecaster import Forecaster

ENTRY_POINTS = "tocsin.forecasters"


@dataclass(frozen=True)
class RegisteredForecaster:
    """One registered forecaster: its class, what it does and what it needs."""

    name: str
    target: str
    about: str
    extra: str | None = None
    #: The modules that the extra installs.
    modules: tuple[str, ...] = ()
    #: Arguments that have no default.
    required: tuple[str, ...] = ()

    @property
    def missing(self) -> tuple[str, ...]:
        """The modules that are not installed."""
        return tuple(module for module in self.modules if find_spec(module) is None)

    def load(self) -> type[Forecaster]:
        """The class itself."""
        module, _, name = self.target.partition(":")
        loaded = getattr(importlib.import_module(module), name, None)
        if not (isinstance(loaded, type) and issubclass(loaded, Forecaster)):
            raise TypeError(f"forecaster {self.name!r} must be a subclass of tocsin.Forecaster, got {loaded!r}")
        return loaded


_HERE = "tocsin.forecasting"
_MODEL = ("model",)
BUILT_IN = (
    RegisteredForecaster(
        "embedded", f"{_HERE}.embedded:EmbeddedForecaster", about="a small pretrained network, shipped in the package"
    ),
    RegisteredForecaster(
        "autoregression",
        f"{_HERE}.autoregression:Autoregression",
        about="ridge regressions on the newest values and the last period, learned online",
    ),
    RegisteredForecaster("last-value", f"{_HERE}.simple:LastValue", about="the last value stays"),
    RegisteredForecaster("seasonal-naive", f"{_HERE}.simple:SeasonalNaive", about="the last period repeats"),
    RegisteredForecaster(
        "exponential-smoothing",
        f"{_HERE}.simple:ExponentialSmoothing",
        about="a smoothed level continues",
    ),
    RegisteredForecaster(
        "stats",
        f"{_HERE}.statistical:StatsForecaster",
        about="AutoETS, AutoTheta, AutoARIMA and others of statsforecast, refitted for every forecast",
        extra="stats",
        modules=("statsforecast",),
    ),
    RegisteredForecaster(
        "chronos",
        f"{_HERE}.chronos:ChronosForecaster",
        about="Chronos-Bolt, Chronos-2 and Chronos, pretrained",
        extra="chronos",
        modules=("torch", "chronos"),
        required=_MODEL,
    ),
    RegisteredForecaster(
        "ttm",
        f"{_HERE}.ttm:TTMForecaster",
        about="Tiny Time Mixers, pretrained",
        extra="ttm",
        modules=("torch", "tsfm_public"),
        required=_MODEL,
    ),
    RegisteredForecaster(
        "flowstate",
        f"{_HERE}.ttm:FlowStateForecaster",
        about="FlowState, pretrained",
        extra="ttm",
        modules=("torch", "tsfm_public"),
        required=_MODEL,
    ),
    RegisteredForecaster(
        "tirex",
        f"{_HERE}.tirex:TiRexForecaster",
        about="TiRex, pretrained (NXAI community licence)",
        extra="tirex",
        modules=("torch", "tirex"),
        required=_MODEL,
    ),
)


def available_forecasters() -> dict[str, RegisteredForecaster]:
    """All forecasters by name: the built-in ones, and those that other packages register by entry point.

    A package registers one with `[project.entry-points."tocsin.forecasters"]` and a line `name = "module:Class"`.
    Built-in names take precedence.
    """
    entries = {entry.name: entry for entry in BUILT_IN}
    for point in entry_points(group=ENTRY_POINTS):
        about = f"provided by {point.dist.name if point.dist else point.value}"
        target = point.value.partition("[")[0].strip()  # extras follow in brackets
        entries.setdefault(point.name, RegisteredForecaster(point.name, target, about))
    return entries


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
        raise ImportError(f"forecaster {name!r} needs {', '.join(entry.missing)}: pip install 'tocsin[{entry.extra}]'")
    given = dict(options or {})
    absent = [argument for argument in entry.required if argument not in given]
    if absent:
        raise ValueError(f"forecaster {name!r} needs the argument {', '.join(map(repr, absent))}, got {given!r}")
    kind = entry.load()
    try:
        return kind(**given)
    except TypeError as error:
        raise TypeError(f"forecaster {name!r} does not take {given!r}: {error}") from error
