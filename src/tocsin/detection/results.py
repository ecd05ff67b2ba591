"""A detector's results for the history of one signal, and of many."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tocsin.data import Origin, Signal
from tocsin.detection.incidents.audit import Audit
from tocsin.detection.incidents.incident import Incident, incident_columns
from tocsin.detection.incidents.verdict import Verdicts

if TYPE_CHECKING:
    from tocsin.detection.fleet import Fleet

# The verdict fields with an entry for each feature.
_BY_FEATURE = frozenset({"value", "forecast", "low", "high", "usual_low", "usual_high", "feature_p"})
_MOMENTS = ("start", "end", "peak", "began_earliest", "began_latest")


def _array(name: str, doc: str) -> Any:
    def get(self: "Result") -> NDArray[Any]:
        array: NDArray[Any] = getattr(self.kept_verdicts, name)[:, 0]
        return array[:, 0] if name in _BY_FEATURE and len(self.features) == 1 else array

    return property(get, doc=doc)


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """A detector's results for the history of one signal: arrays, frames, incidents, a picture.

    Arrays have an entry for each observation, `(T,)`; with several features, `value`, `forecast`, `low`, `high` and
    `feature_p` are `(T, F)`. `Verdict` explains each. `frame` and `incidents` are frames of the same kind as the data,
    with its index and time zone; for arrays, of pandas, polars or pyarrow, whichever is installed.

    Examples
    --------
    >>> import numpy as np
    >>> from tocsin import Detector
    >>> values = np.random.default_rng(0).normal(size=1000)
    >>> values[800] = 9.0
    >>> result = Detector(alarm_rate=0.002).run(values)
    >>> result.alarm.shape, np.flatnonzero(result.alarm)[0]
    ((1000,), np.int64(800))
    >>> result.incident_list[0].explanation
    '9.0, usually -1.6 to 1.6'
    """

    #: The observations that were judged, including those inserted for gaps; none if the verdicts were not kept.
    judged: Signal
    #: How many observations were judged, without those inserted for gaps.
    observations: int
    #: The incidents that include these observations.
    incident_list: Sequence[Incident] = ()
    #: The verdicts in the form of a fleet, with an axis for signals and one for features; None if they were not kept.
    verdicts: Verdicts | None = None
    #: How many observations the detector had seen before.
    before: int = 0
    #: Whether the promised alarm rate was kept up to the end of these observations; None if nothing was judged.
    audit: Audit | None = None
    #: The tolerated rate of false incidents, as it was given.
    alarm_rate: float | str | None = None
    #: The fleet's shared budget instead, if there is one.
    budget: float | str | None = None
    #: The seconds between two observations, if known.
    interval: float | None = None
    #: How many observations precede the first possible alarm.
    warm_up: int = 0
    #: The longest return period that the detector reports, in observations.
    longest_period: float = np.inf
    #: The times, or the numbers of the observations, from which there may be alarms, and from which the signal's own
    #: past determines how rare they are; None if that never happened.
    judged_since: Any = None
    own_past_since: Any = None
    #: Why there is no result, and what to keep in mind.
    error: str | None = None
    warning: str | None = None
    origin: Origin = field(default_factory=Origin)

    value = _array("value", "The observations.")
    p = _array("p", "The p-value: how often to expect this much evidence; low when anomalous.")
    alarm = _array("alarm", "Whether each observation alarms.")
    forecast = _array("forecast", "What was forecast one step before.")
    low = _array("low", "The values below which the one-step error alone is enough evidence.")
    high = _array("high", "The values above which it is.")
    usual_low = _array("usual_low", "The lower end of the usual range at this time: nine of ten values lie in it.")
    usual_high = _array("usual_high", "Its upper end.")
    severity = _array("severity", "How anomalous each observation is, -log10 of a mean of ranks.")
    merged = _array("merged", "The mean rank over all views. It is not a p-value.")
    return_period = _array("return_period", "The expected number of observations until as much evidence recurs.")
    rate = _array("rate", "The same as a rate per observation.")
    evidence = _array("evidence", "The severity in nats: the mean of the largest votes.")
    feature_p = _array("feature_p", "One p-value for each feature.")
    views = _array("views", "The severity in each view, in nats, `(T, views)`.")
    opened = _array("opened", "Where an incident began.")
    open = _array("open", "Whether the signal is in an incident.")
    warm = _array("warm", "Whether there may be alarms.")
    estimated = _array("estimated", "Whether alarms are decided by an estimated tail.")

    def __len__(self) -> int:
        return len(self.judged)

    @property
    def signal(self) -> str:
        """The signal's name."""
        return self.judged.name

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features."""
        return self.judged.features

    @property
    def times(self) -> NDArray[Any] | None:
        """The times of the observations, in UTC if they had a time zone; None if there are none."""
        return self.judged.times

    @property
    def kept_verdicts(self) -> Verdicts:
        """The verdicts; ValueError if they were not kept."""
        if self.verdicts is None:
            raise ValueError(f"the verdicts on {self.signal!r} were not kept")
        return self.verdicts

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """All verdicts as columns of a table."""
        return verdict_columns(self.judged, self.kept_verdicts)

    @property
    def frame(self) -> Any:
        """All verdicts as a frame, one row per observation."""
        return self.origin.frame(self.columns, self.judged.lines)

    @property
    def incidents(self) -> Any:
        """The incidents as a frame, one row each; `incident_list` has them as objects."""
        return incident_frame(self.incident_list, self.origin, dated=_is_dated(self.judged))

    def __getitem__(self, name: str) -> Any:
        """A column of `frame`, of the caller's kind."""
        return self.frame[name]

    def plot(self) -> Any:
        """A picture of values, forecast, band, incidents and severity, with close-ups of the worst incidents.

        It is a matplotlib figure, which notebooks display; `figure.savefig(path)` writes it.
        """
        return drawn([self])

    def __repr__(self) -> str:
        from tocsin.reports.notebook import result_text

        return result_text(self)

    def _repr_html_(self) -> str:
        from tocsin.reports.notebook import results_html

        return results_html([self])

    def without_verdicts(self) -> "Result":
        """The same without values and verdicts, which take the most memory."""
        return replace(self, judged=self.judged.piece(0, 0), verdicts=None)

    def incidents_within(self) -> list[Incident]:
        """The incidents, with observations counted from the first of these and clipped to them."""
        times, last = self.columns["time"], len(self) - 1
        cut = []
        for one in self.incident_list:
            first, end = max(one.first - self.before, 0), min(one.last - self.before, last)
            peak = one.peak - self.before if self.times is None else one.peak
            peak = peak if times[first] <= peak <= times[end] else times[first]
            cut.append(replace(one, first=first, last=end, start=times[first], end=times[end], peak=peak))
        return cut


def result_of(fleet: "Fleet", row: int, signal: Signal, verdicts: Verdicts, before: int, origin: Origin) -> Result:
    """A fleet's result for one of its signals, after it has judged these observations."""
    warm = verdicts.warm[:, 0]
    return Result(
        judged=signal,
        observations=signal.observed,
        incident_list=[replace(one, signal=signal.name) for one in fleet.incidents(row) if one.last >= before],
        verdicts=verdicts,
        before=before,
        audit=fleet.audit(row),
        alarm_rate=fleet.settings.alarm_rate if fleet.budget is None else fleet.alarm_rate,
        budget=fleet.budget,
        interval=fleet.interval,
        warm_up=fleet.warm_up,
        longest_period=1 / fleet.settings.rarest_rate,
        judged_since=first_time(signal, warm),
        own_past_since=first_time(signal, warm & ~verdicts.estimated[:, 0]),
        origin=origin,
    )


def first_time(signal: Signal, there: NDArray[np.bool_], first: int = 0) -> Any:
    """The time of the first marked observation or, without times, its number counted from `first`; None for none."""
    if not there.any():
        return None
    at = int(np.argmax(there))
    return first + at if signal.times is None else signal.times[at]


def drawn(results: Sequence[Result]) -> Any:
    """The results as a matplotlib figure."""
    # The package with the pictures is a layer above: import it only on demand.
    from tocsin.reports.notebook import figure_of

    return figure_of(results)


def incident_frame(incidents: Sequence[Incident], origin: Origin, *, dated: bool) -> Any:
    """Incidents as a frame of the caller's kind."""
    columns = incident_columns(incidents)
    if dated and not incidents:
        columns.update({name: np.empty(0, dtype="datetime64[ns]") for name in _MOMENTS})
    return origin.table(columns, _MOMENTS)


def _is_dated(signal: Signal) -> bool:
    return signal.times is not None and signal.times.dtype.kind == "M"


def verdict_columns(signal: Signal, verdicts: Verdicts, first: int = 0) -> dict[str, NDArray[Any]]:
    """The verdicts on one signal as columns of a table; per-feature columns carry the feature's name.

    If the signal has no times, observations are numbered from `first`.
    """
    columns: dict[str, Any] = {}
    columns["time"] = first + np.arange(len(signal)) if signal.times is None else signal.times
    single = len(signal.features) == 1
    for name in ("value", "forecast", "low", "high", "usual_low", "usual_high"):
        for index, feature in enumerate(signal.features):
            columns[name if single else f"{name} {feature}"] = getattr(verdicts, name)[:, 0, index]
    for name in ("p", "severity", "alarm", "merged", "return_period", "warm", "estimated"):
        columns[name] = getattr(verdicts, name)[:, 0]
    if not single:
        for index, feature in enumerate(signal.features):
            columns[f"p {feature}"] = verdicts.feature_p[:, 0, index]
    return columns


class Results(Mapping[str, Result]):
    """The results of many signals by name, and all of them as frames, a picture or a page.

    `id` is the name of the column with the signal's name.
    """

    def __init__(self, results: Mapping[str, Result], origin: Origin, id: str = "signal") -> None:  # noqa: A002
        self._results, self.origin, self.id = dict(results), origin, id

    def __getitem__(self, signal: str) -> Result:
        return self._results[signal]

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    @property
    def frame(self) -> Any:
        """All verdicts as one long frame, signal by signal."""
        names = [np.full(len(result), name, dtype=object) for name, result in self.items()]
        columns: dict[str, Any] = {self.id: np.concatenate(names)}
        parts = [result.columns for result in self.values()]
        for name in parts[0]:
            columns.setdefault(name, np.concatenate([part[name] for part in parts]))
        return self.origin.frame(columns)

    @property
    def incident_list(self) -> list[Incident]:
        """The incidents of all signals, signal by signal."""
        return [incident for result in self.values() for incident in result.incident_list]

    @property
    def incidents(self) -> Any:
        """The incidents as a frame, one row each."""
        dated = any(_is_dated(result.judged) for result in self.values())
        return incident_frame(self.incident_list, self.origin, dated=dated)

    def plot(self) -> Any:
        """A picture of the signals with the worst incidents; see `Result.plot`."""
        return drawn(list(self.values()))

    def __repr__(self) -> str:
        from tocsin.reports.notebook import results_text

        return results_text(list(self.values()))

    def _repr_html_(self) -> str:
        from tocsin.reports.notebook import results_html

        return results_html(list(self.values()))
