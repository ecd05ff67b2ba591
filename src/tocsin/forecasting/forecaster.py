"""The contract of every forecaster, the base of those that follow series, and all of them by name."""

import importlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tocsin import checks
from tocsin.arrays import checked_state, nbytes_of

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
State = dict[str, NDArray[Any]]

ENTRY_POINTS = "tocsin.forecasters"

MOST_SERIES = 2**31 - 1
MOST_STEPS = 4096
# Beyond this a value counts as infinite, because differences and sums of such values would be.
LARGEST = 1e300
# A history is processed in pieces of this many observations: all its forecasts at once could exhaust memory.
_TOGETHER = 4096


class Forecast(NamedTuple):
    """The forecast for the following steps, nearest first.

    `median` has the shape (..., horizon). `quantiles` has one axis more, ascending along it, one entry for each of the
    forecaster's `levels`; None from a forecaster that gives only medians. NaN if there is no forecast yet.
    """

    median: Floats
    quantiles: Floats | None = None


class Session(ABC):
    """A forecaster that follows `series` series, one observation of each at a time.

    NaN is a missing observation: time passes, but nothing is learned from it. An infinite one counts as missing. Memory
    does not grow, and a session restored from its state continues with exactly the numbers of one that was never
    interrupted.
    """

    def __init__(self, series: int, horizon: int) -> None:
        self.series = checks.integer("series", series, least=1, most=MOST_SERIES)
        self.horizon = checks.integer("horizon", horizon, least=1, most=MOST_STEPS)
        self._all_rows = np.arange(self.series)

    def push(self, values: ArrayLike, rows: Rows | None = None) -> Forecast:
        """Add one observation of each series; returns their forecasts, `(series, horizon)`."""
        row = checks.numbers("values", values)
        count = self.series if rows is None else np.size(rows)
        if row.shape != (count,):
            raise ValueError(f"values must have shape ({count},), one for each series, got shape {row.shape}")
        forecast = self.run(row[np.newaxis], rows)
        return Forecast(*(None if part is None else part[0] for part in forecast))  # type: ignore[arg-type]

    def run(self, values: ArrayLike, rows: Rows | None = None, wanted: NDArray[np.bool_] | None = None) -> Forecast:
        """Add a history `values[T, N]`, as T calls of `push` would; returns the forecasts, `(T, N, horizon)`.

        Entry `[t, n]` is the forecast made after `values[t, n]`. `rows` are the series that the columns belong to, each
        at most once; all others do not change. Where `wanted[t, n]` is false, the forecast is not used and may be NaN.
        """
        table = checks.numbers("values", values)
        rows = self._rows(rows)
        if table.ndim != 2 or table.shape[1] != rows.size:
            raise ValueError(
                f"values must have shape (T, {rows.size}), a column for each series, got shape {table.shape}"
            )
        wanted = np.ones(table.shape, dtype=np.bool_) if wanted is None else np.asarray(wanted)
        if wanted.dtype != np.bool_ or wanted.shape != table.shape:
            raise ValueError(
                f"wanted must be true or false for each of values, shape {table.shape}, "
                f"got {wanted.dtype} of shape {wanted.shape}"
            )
        return self._run(without_infinities(table), rows, np.ascontiguousarray(wanted))

    def _rows(self, rows: ArrayLike | None) -> Rows:
        """The argument `rows`; all series for None."""
        return self._all_rows if rows is None else checks.indices("rows", rows, self.series, of="series")

    @abstractmethod
    def _run(self, values: Floats, rows: Rows, wanted: NDArray[np.bool_]) -> Forecast:
        """`run`, with everything checked."""

    @property
    def nbytes(self) -> int:
        """The largest number of bytes ever held for all series together."""
        return nbytes_of(*vars(self).values())

    def state(self, rows: Rows | None = None) -> State:
        """Copies of all arrays that later forecasts of these series (all of them if None) depend on.

        The first axis of each array is the series.
        """
        return self._snapshot(self._rows(rows))

    def restore(self, state: Mapping[str, NDArray[Any]], rows: Rows | None = None) -> None:
        """Restore these series from what `state()` returned for as many in a session of the same kind.

        All other series do not change.
        """
        rows = self._rows(rows)
        self._restore(checked_state(state, self._snapshot(rows)), rows)

    def _arrays(self) -> State:
        """The arrays that later forecasts depend on, each with the series first."""
        return {}

    def _check(self, state: State) -> None:  # noqa: B027
        """Reject impossible values in arrays with the right names, shapes and types."""

    def _snapshot(self, rows: Rows) -> State:
        """`state`, with everything checked."""
        return {name: array[rows] for name, array in self._arrays().items()}

    def _restore(self, state: State, rows: Rows) -> None:
        """Restore arrays with the right names, shapes and types, unless their values are impossible."""
        self._check(state)
        for name, array in self._arrays().items():
            array[rows] = state[name]


class Forecaster(ABC):
    """Forecasts the next values of a series.

    There are two kinds. A `ContextForecaster` (pretrained models) rereads the newest observations for every forecast
    and keeps no state. A `StreamForecaster` learns online. Both can be used in two ways: `forecast` for whole contexts,
    `open` to follow series observation by observation.
    """

    #: Its name in commands and files.
    name: ClassVar[str]
    #: The modules of other libraries that it needs, and what to install for them, such as "tocsin[chronos]".
    modules: ClassVar[tuple[str, ...]] = ()
    extra: ClassVar[str | None] = None
    #: Those of its arguments that name files, folders or downloads: the monitor does not take these from just anyone.
    paths: ClassVar[tuple[str, ...]] = ()
    #: The levels of its quantiles, ascending; empty if it gives only medians.
    levels: tuple[float, ...] = ()
    #: How many observations its warm-up takes, roughly. Errors made before are not used: they would spoil the
    #: calibration set of later ones.
    warm_up: int = 0
    #: How many observations it needs after a gap longer than its horizon, roughly, until the filled-in values no longer
    #: affect its forecasts.
    recovers: int = 0
    #: Whether a forecast takes so long that a caller that needs it twice should keep it.
    slow: ClassVar[bool] = True

    @property
    def longest_horizon(self) -> int:
        """How many steps ahead it can forecast."""
        return MOST_STEPS

    @abstractmethod
    def forecast(self, contexts: Sequence[ArrayLike] | ArrayLike, horizon: int) -> Forecast:
        """Forecast the next `horizon` steps of each context, `(contexts, horizon)`.

        Contexts may differ in length and contain NaN for missing values, but each needs at least one number.
        """

    @abstractmethod
    def open(self, series: int, horizon: int) -> Session:
        """Open a session that follows `series` series."""

    def forecast_origins(self, history: ArrayLike, origins: ArrayLike, horizon: int) -> Forecast:
        """Forecast the next `horizon` steps from many origins of one history, `(origins, horizon)`, in one pass.

        `origins` are rising numbers: how many observations of the history have been seen. The forecasts are those of a
        session that follows the history, which takes a fraction of the time of reading a whole context for each.
        """
        values = checks.numbers("history", history)
        if values.ndim != 1:
            raise ValueError(f"history must have one dimension, got shape {values.shape}")
        ends = np.asarray(origins)
        whole = ends.ndim == 1 and ends.size > 0 and ends.dtype.kind in "iu"
        if not whole or ends[0] < 1 or ends[-1] > values.size or (np.diff(ends) <= 0).any():
            raise ValueError(f"origins must be increasing whole numbers from 1 to {values.size}, got {origins!r}")
        session = self.open(1, horizon)
        wanted = np.zeros((values.size, 1), dtype=np.bool_)
        wanted[ends - 1] = True
        parts = []
        for first in range(0, int(ends[-1]), _TOGETHER):
            piece = slice(first, min(first + _TOGETHER, int(ends[-1])))
            forecast, asked = session.run(values[piece, np.newaxis], wanted=wanted[piece]), wanted[piece, 0]
            parts.append(Forecast(*(None if part is None else part[asked, 0] for part in forecast)))  # type: ignore[arg-type]
        return joined(parts)

    def parameters(self) -> dict[str, Any]:
        """The arguments that recreate this forecaster, in JSON types; each is kept in the attribute of its name."""
        return checks.arguments_of(self)

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.parameters().items())
        return f"{type(self).__name__}({given})"


def joined(forecasts: Sequence[Forecast], axis: int = 0) -> Forecast:
    """Concatenates forecasts of one forecaster."""
    first = forecasts[0]
    parts = [
        None if first[part] is None else np.concatenate([forecast[part] for forecast in forecasts], axis=axis)
        for part in range(len(first))
    ]
    return Forecast(*parts)  # type: ignore[arg-type]


def without_infinities(values: Floats) -> Floats:
    """The same array, with NaN in place of infinite or nearly infinite values, which cannot be used."""
    too_large = np.abs(values) > LARGEST
    if np.count_nonzero(too_large):
        values[too_large] = np.nan
    return values


def as_contexts(contexts: Sequence[ArrayLike] | ArrayLike) -> list[Floats]:
    """The contexts, each a new one-dimensional array of numbers and NaN; a single one becomes a list of one."""
    if isinstance(contexts, np.ndarray) and contexts.ndim == 1 and contexts.dtype.kind in "biuf":
        contexts = [contexts]
    if not isinstance(contexts, Sequence | np.ndarray) or (isinstance(contexts, np.ndarray) and contexts.ndim == 0):
        raise TypeError(f"contexts must be a sequence of sequences of numbers, got {contexts!r}")
    arrays = []
    for index, context in enumerate(contexts):
        array = checks.numbers(f"contexts[{index}]", context)
        if array.ndim != 1:
            raise ValueError(f"contexts[{index}] must have one dimension, got shape {array.shape}")
        too_large = np.flatnonzero(np.abs(array) > LARGEST)
        if too_large.size:
            raise ValueError(
                f"contexts[{index}] must hold numbers up to {LARGEST:g} in size, or NaN where one is missing, "
                f"got {array[too_large[0]]} at {too_large[0]}"
            )
        if np.isnan(array).all():
            raise ValueError(f"contexts[{index}] must hold at least one number, got {array.size or 'no'} missing ones")
        arrays.append(array)
    if not arrays:
        raise ValueError("contexts must hold at least one context, got none")
    return arrays


class StreamForecaster(Forecaster):
    """A forecaster that follows a series. It forecasts from a context by following it from beginning to end."""

    slow = False

    def forecast(self, contexts: Sequence[ArrayLike] | ArrayLike, horizon: int) -> Forecast:
        medians = []
        for context in as_contexts(contexts):
            session = self.open(1, horizon)
            history = context if context.size else np.array([np.nan])
            wanted = np.zeros((history.size, 1), dtype=np.bool_)
            wanted[-1] = True
            medians.append(session.run(history[:, np.newaxis], wanted=wanted).median[-1, 0])
        return Forecast(np.array(medians))


def load_kernels() -> ModuleType:
    """The compiled loops; numba is slow to import, so only forecasting waits for it."""
    from tocsin.forecasting import kernels

    return kernels


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


@cache
def _installed() -> dict[str, RegisteredForecaster]:
    """The forecasters of packages; looking for them takes milliseconds."""
    return {
        point.name: RegisteredForecaster(point.name, point.value.partition("[")[0].strip())  # extras are in brackets
        for point in entry_points(group=ENTRY_POINTS)
    }


def available_forecasters() -> dict[str, RegisteredForecaster]:
    """All forecasters by name: the built-in ones, and those that packages register by entry point.

    A package registers one with `[project.entry-points."tocsin.forecasters"]` and a line `name = "module:Class"`.
    Built-in names take precedence.
    """
    built_in = {entry.name: entry for entry in BUILT_IN}
    return built_in | {name: entry for name, entry in _installed().items() if name not in built_in}


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
