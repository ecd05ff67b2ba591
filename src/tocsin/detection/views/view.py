"""The contract of every view, and all views by name."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin import checks
from tocsin.arrays import checked_state, nbytes_of

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Rows = NDArray[np.intp]
State = dict[str, NDArray[Any]]

NO_SPREAD: Floats = np.empty((0, 0, 0, 0))

# A session gets at most this many observations of a signal at once.
MOST_AT_ONCE = 50
# All scores of stretches up to this long are kept, and of a stretch n times as long every n-th.
LONG = 64


@dataclass(frozen=True)
class Stream:
    """One score of a view for each observation.

    `length` is how many of the newest observations it looks at. `holds` keeps an incident open while the score is
    unusual, whether or not it alarms. A score that does not vote says nothing about anomalies, only whether the newest
    part of the next, longer stretch is as unusual.
    """

    name: str
    length: int = 1
    holds: bool = False
    votes: bool = True


class Forecasts(NamedTuple):
    """What one forecaster said before T observations of N signals with F features.

    `ahead[..., h - 1]` is the forecast for an observation made h observations earlier. The spreads belong to it, and
    are empty unless errors are divided by them. `ready` says where the forecaster can be judged: not during its
    warm-up, nor right after a long gap.
    """

    ahead: Floats  # (T, N, F, horizons)
    spread: Floats
    ready: Mask  # (T, N, F)


class Seen(NamedTuple):
    """The input of views: T observations of N signals with F features, and the forecasts of each forecaster.

    `calendar` is what `Calendar.places` says about their times; None without a zone and holidays.
    """

    values: Floats  # (T, N, F), NaN where missing
    forecasts: tuple[Forecasts, ...]
    calendar: NDArray[np.int64] | None = None  # (T, N, 2)


class Past(NamedTuple):
    """The values that a session keeps of signals, for use by others: see `tocsin.detection.views.archive`."""

    archive: Any
    counts: NDArray[np.int64]  # how many observations each signal has had
    block: int  # how many observations each value of the archive is the mean of


class ViewSession(ABC):
    """A view of running signals, fed with some observations of some signals at a time.

    Scores are the same, bit for bit, whether observations come one by one or together. Memory does not grow. A session
    restored from its state continues with exactly the scores of one that was never interrupted.
    """

    @abstractmethod
    def run(self, seen: Seen, rows: Rows, scores: Floats) -> None:
        """Write the scores of the signals `rows` to `scores[T, N, F, streams]`; NaN if there is none.

        A joint view writes to the first feature only.
        """

    def freeze(self, rows: Rows) -> tuple[Floats, Floats] | None:
        """Use the observations of these signals so far as the reference for all later ones.

        Returns where each score `[N, F, streams]` has the middle of its range in the reference, and how far from that
        a signal is unlike it, infinite for a score that is not compared; None for a session that compares none.
        """
        return None

    def forget(self, faulty: Mask, rows: Rows) -> None:  # noqa: B027
        """Remove the newest T observations from what later ones are compared with where they are `faulty[T, N]`.

        It is called after each piece of at most `MOST_AT_ONCE` observations. No piece contains observations on both
        sides of a multiple of that number, so what is used only from the next multiple on does not depend on pieces.
        """

    #: Features of signals, `(N, F)`, whose scores mean something else from now on, so that earlier ones are no
    #: comparison; None if there are never any. It changes only with observations whose number is a multiple of
    #: `MOST_AT_ONCE`.
    renewed: Mask | None = None

    @property
    def past(self) -> Past | None:
        """The values it keeps of each signal, if any."""
        return None

    @property
    def periods(self) -> NDArray[np.int64] | None:
        """The period of each signal's season in observations, 0 if it has none; None if it does not look for one."""
        return None

    @property
    def nbytes(self) -> int:
        """Bytes held for all signals together."""
        return nbytes_of(*vars(self).values())

    def state(self, rows: Rows) -> State:
        """Copies of all arrays that later scores of these signals depend on, each with the signals first."""
        return {}

    def restore(self, state: Mapping[str, NDArray[Any]], rows: Rows) -> None:
        """Restore these signals from what `state` returned for as many."""
        self._restore(checked_state(state, self.state(rows)), rows)

    def _restore(self, state: State, rows: Rows) -> None:  # noqa: B027
        """Restore arrays with the right names, shapes and types; reject impossible values.

        A session without state has nothing to do.
        """


class View(ABC):
    """One question about a signal's newest observations, answered by one or a few numbers: larger is more anomalous.

    A subclass has a name and streams, and opens sessions. A detector treats all streams alike: it ranks each score in
    the past of its own stream, and each rank is one vote.
    """

    #: Its name in settings, states and explanations.
    name: ClassVar[str]
    #: Whether all features of a signal share one score.
    joint: ClassVar[bool] = False
    #: Whether it compares the features of a signal with each other. A signal with one feature has no such view.
    relates: ClassVar[bool] = False
    #: Whether it judges forecasts.
    forecasts: ClassVar[bool] = False
    #: Whether the sign of its scores tells high values from low ones. The absolute score is ranked or, for one-sided
    #: alarms, the score itself.
    sided: ClassVar[bool] = False
    #: Whether it expects the usual order of days: then it has no score on a holiday, nor right after clocks change.
    expects_usual_days: ClassVar[bool] = False

    streams: tuple[Stream, ...]

    def configured(self, settings: Any) -> "View":
        """The view with what it needs of a detector's settings, a `DetectorSettings`."""
        return self

    @property
    def horizons(self) -> int:
        """How many horizons of earlier forecasts it uses."""
        return 0

    @property
    def begins(self) -> int:
        """How many observations precede the first score, counted from the end of the forecaster's warm-up."""
        return min(stream.length for stream in self.streams) - 1

    @abstractmethod
    def open(self, signals: int, features: int, side: int) -> ViewSession:
        """Open a session for signals. `side` is the code of a nonconformity: both, high or low."""

    @abstractmethod
    def words(self, stream: int, score: float, unit: str, interval: float | None) -> str:
        """An explanation of such a score of the stream with this number: a short clause.

        `interval` is the seconds between two observations; None if that is unknown.
        """


def side(score: float) -> str:
    """On which side of its forecast a value lies, by the sign of its error."""
    return "above" if score > 0 else "below" if score < 0 else "at"


def amount(number: float, unit: str = "") -> str:
    """A number with three digits and its unit.

    >>> amount(2.3456, "mm/s")
    '2.35 mm/s'
    """
    return f"{number:.3g} {unit}".rstrip()


_LENGTHS = (("years", 365.25 * 86400), ("days", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0))


def length_text(observations: float, seconds: float | None) -> str:
    """A number of observations as a duration, if the sampling interval is known.

    >>> length_text(3456, 300), length_text(3456, None), length_text(1, 5)
    ('12 days', '3,456 observations', '5 s')
    """
    if not np.isfinite(observations):
        return ""
    if seconds is None:
        return f"{observations:,.0f} observation{'s' if observations != 1 else ''}"
    whole = observations * seconds
    # The largest unit with at least two: 36 h says more than 1.5 days.
    unit, size = next(((unit, size) for unit, size in _LENGTHS if whole >= 2 * size), _LENGTHS[-1])
    count = whole / size
    return f"{count:.0f} {unit}" if count >= 9.95 else f"{count:.2g} {unit}"


ENTRY_POINTS = "tocsin.views"

_BUILT_IN = {
    name: EntryPoint(name, f"tocsin.detection.views.{name}:{view}", ENTRY_POINTS)
    for name, view in {
        "error": "ErrorView",
        "shape": "ShapeView",
        "movement": "MovementView",
        "level": "LevelView",
        "relation": "RelationView",
    }.items()
}


@cache
def _by_name() -> dict[str, EntryPoint]:
    """All views; those of this package take precedence over those of others with the same name."""
    return _BUILT_IN | {point.name: point for point in entry_points(group=ENTRY_POINTS) if point.name not in _BUILT_IN}


def available_views() -> list[str]:
    """The names of all views, those of other packages last.

    >>> available_views()[:5]
    ['error', 'shape', 'movement', 'level', 'relation']
    """
    return list(_by_name())


def make_view(name: str) -> View:
    """The view of this name.

    >>> [stream.name for stream in make_view("movement").streams]
    ['quiet-48', 'restless-48', 'step']
    """
    view = _by_name()[checks.choice("views", name, available_views())].load()()
    if not isinstance(view, View):
        raise TypeError(f"the entry point {name!r} of {ENTRY_POINTS} must be a View, got {view!r}")
    return view
