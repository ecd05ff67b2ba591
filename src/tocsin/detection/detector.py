"""The detector of one signal."""

import math
import warnings
from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tocsin import checks
from tocsin.arrays import File, read_arrays, write_arrays
from tocsin.data import Origin, Signal, is_frame, parse_time, parse_times
from tocsin.detection.fleet import Fleet
from tocsin.detection.frames import (
    called,
    check_features,
    gap_before,
    missing_times,
    pass_gap,
    read_frame,
)
from tocsin.detection.incidents.audit import Audit
from tocsin.detection.incidents.incident import Incident
from tocsin.detection.incidents.verdict import Verdict, verdict_on
from tocsin.detection.results import Result, result_of
from tocsin.detection.settings.arguments import takes_settings
from tocsin.detection.settings.declaration import lists_settings
from tocsin.detection.settings.detector_settings import DetectorSettings
from tocsin.detection.settings.history_settings import ALONE, HistorySettings
from tocsin.detection.state.storage import Given, arrays_from_bytes, arrays_to_bytes, read_header
from tocsin.detection.views.view import length_text
from tocsin.forecasting.forecaster import find_forecaster

# Warn if at least this share of the values is missing, or if the signal moves less than once in this many observations.
MOSTLY_MISSING, SELDOM = 0.5, 200


def sampling_problems(signal: Signal) -> list[str]:
    """What the sampling of a signal hides, and what would show it; empty if nothing."""
    known = np.asarray(np.isfinite(signal.values).all(axis=1))
    values = signal.values[known]
    problems = []
    if len(known) and known.mean() <= 1 - MOSTLY_MISSING:
        each = math.ceil(2 * len(known) / max(len(values), 1))
        problems.append(f"has no value at {1 - known.mean():.0%} of its times{_aggregating(signal, each)}")
    moves = int(np.count_nonzero((np.diff(values, axis=0) != 0).any(axis=1)))
    if moves and len(values) > SELDOM * moves:
        each = len(values) // moves
        problems.append(f"moves only once in {each:,} observations{_aggregating(signal, each)}")
    return problems


def _aggregating(signal: Signal, each: int) -> str:
    between = signal.interval
    seconds = float(between / np.timedelta64(1, "s")) if isinstance(between, np.timedelta64) else None
    length = length_text(each, seconds)
    return f": most observations say nothing new. Aggregate over {length} (every=...) to see more"


class ResolutionWarning(UserWarning):
    """There are too few data for the alarm rate."""


@lists_settings(HistorySettings)
class Detector:
    """Detects anomalies in one signal: values in, verdicts out.

    Parameters
    ----------
    {settings}

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> detector = Detector(alarm_rate=0.01)
    >>> for value in 20 + rng.normal(size=1000):
    ...     verdict = detector.update(value)
    >>> verdict.alarm, verdict.warm
    (False, True)
    >>> detector.update(30.0).alarm
    True
    """

    @takes_settings(HistorySettings)
    def __init__(self, settings: HistorySettings) -> None:
        self._begin(Fleet.pending(1, settings), None)

    @classmethod
    def of(cls, settings: DetectorSettings) -> Self:
        """A detector with complete settings."""
        return cls._around(Fleet.of(1, settings), None)

    @classmethod
    def _around(cls, fleet: Fleet, last_time: Any) -> Self:
        detector = cls.__new__(cls)
        detector._begin(fleet, last_time)
        return detector

    def _begin(self, fleet: Fleet, last_time: Any) -> None:
        self.fleet = fleet
        self._last_time = last_time

    @property
    def features(self) -> list[str]:
        """The feature names."""
        return self.fleet.features

    @property
    def alarm_rate(self) -> float:
        """The tolerated rate of false alarms per observation."""
        return self.fleet.alarm_rate

    @property
    def warm_up(self) -> int:
        """How many observations the warm-up takes: after it, p-values are calibrated."""
        return self.fleet.warm_up

    @property
    def observations(self) -> int:
        """How many observations it has seen, missing ones included."""
        return self.fleet.observations(0) if self.fleet.is_complete else 0

    @property
    def guarantee(self) -> str:
        """What is guaranteed about p."""
        return self.fleet.guarantee

    @property
    def incidents(self) -> list[Incident]:
        """The newest incidents; an open one comes last."""
        return self.fleet.incidents() if self.fleet.is_complete else []

    @property
    def audit(self) -> Audit:
        """Whether the promised alarm rate is kept, so far."""
        return self.fleet.audit(0)

    @property
    def weights(self) -> NDArray[Any]:
        """The learned weights of past errors, `(features, streams of a feature, window)`, the newest lag first."""
        return self.fleet.weights(0)

    def clone(self) -> Self:
        """A new detector with the same settings."""
        return self._around(self.fleet.clone(), None)

    def update(self, value: ArrayLike | None, time: Any = None) -> Verdict:
        """Judge one observation: a number, or one for each feature; NaN or None if missing.

        With an `interval` and times, observations skipped since the last one count as missing. Times must increase.
        With a `zone`, a time without one is local; a datetime64 is in UTC.
        """
        self._refuse_every()
        row = self._row(value)
        moment = None
        if time is not None:
            moment = parse_time(time, zone=self.fleet.zone, last=self._last_time)
            pass_gap(self.fleet, 0, missing_times(self._last_time, moment, self.fleet.interval))
        times = None if moment is None else np.array([[moment]])
        verdicts = self.fleet.judge(row, self.fleet.pipeline.everything, times)
        self._last_time = moment if moment is not None else self._last_time
        return verdict_on(verdicts, 0, 0, moment, self.fleet.views, self.features, self.fleet.interval)

    def _refuse_every(self) -> None:
        if self.fleet.every is not None:
            raise ValueError(
                f"every={self.fleet.every:g} aggregates the rows of frames: pass them to `run` or `detect`, or "
                "aggregate single observations with `tocsin.data.Resampler`"
            )

    def _row(self, value: ArrayLike | None) -> NDArray[np.float64]:
        count = len(self.features)
        if count == 1 and type(value) is float:  # the usual case, and the fast one
            return np.array([[[value]]])
        row = checks.numbers("value", np.nan if value is None else value)
        if row.shape != (count,) and not (row.ndim == 0 and count == 1):
            raise ValueError(f"value must be {count} number{'s' if count > 1 else ''}, one per feature, got {value!r}")
        return row.reshape(1, 1, count)

    def run(
        self,
        data: Any,
        /,
        times: ArrayLike | None = None,
        *,
        time: str | None = None,
        values: str | Iterable[str] | None = None,
    ) -> Result:
        """Judge a history, as repeated calls of `update` would: arrays, a series or a frame (pandas, polars, Arrow).

        Arrays are `(T,)` or `(T, F)`. Their `times` are used as they are: gaps are not filled.

        For a frame, `time` and `values` are column names, detected if not given; in pandas, times may be in the index.
        Observations are judged in time order, and gaps in the times count as missing observations. The first frame
        provides the feature names, the interval and, by its length, the alarm rate, unless they are given: for frames
        that are pieces of a stream, give it. Bad values count as missing, with a `DataWarning` that names them.

        The detector continues from what it has seen before: times must be later, and a gap in between counts as missing
        observations. Use `clone` to start afresh.
        """
        if is_frame(data):
            if times is not None:
                raise ValueError(f"times must not be given with a frame, which has a `time` column, got {times!r}")
            return self._run_frame(data, time, values)
        for name, given in (("time", time), ("values", values)):
            if given is not None:
                raise ValueError(f"{name} names a column and needs a frame, got {given!r} with {type(data).__name__}")
        self._refuse_every()
        table = self._table(data)
        column = None if times is None else parse_times(times, table.shape[:1], self.fleet.zone)
        signal = Signal(
            name=ALONE,
            features=tuple(self.features),
            times=column,
            values=table,
            lines=np.arange(1, len(table) + 1),
            interval=None,
            problems=(),
        )
        return self._judge(signal, Origin())

    def _table(self, data: ArrayLike) -> NDArray[np.float64]:
        """An array as one row per observation, which provides the features if they were not given."""
        table = checks.numbers("values", data)
        table = table[:, np.newaxis] if table.ndim == 1 else table
        if table.ndim == 2:
            self.fleet.complete_from(features=checks.names("features", max(table.shape[1], 1), "feature"))
        if table.ndim != 2 or table.shape[1] != len(self.features):
            raise ValueError(
                f"values must have shape (T, {len(self.features)}), times and features, got shape {np.shape(data)}"
            )
        return table

    def _run_frame(self, data: Any, time: str | None, values: str | Iterable[str] | None) -> Result:
        (signal, *_), origin = read_frame(self.fleet, data, time=time, values=values, name=called(data))
        return self.run_signal(signal, origin, chosen=values is not None)

    def run_signal(self, signal: Signal, origin: Origin | None = None, *, chosen: bool = False) -> Result:
        """Judge a signal read from a file or frame; warns if it is too short for the alarm rate.

        `origin` determines the frames of results; `chosen` means that its features were chosen, whatever their names.
        """
        self.fleet.complete_from(features=signal.features, interval=signal.interval, observations=signal.observed)
        signal = check_features(signal, self.features, chosen=chosen)
        gap = gap_before(self.fleet, self._last_time, signal)
        self.warn_about(signal)
        pass_gap(self.fleet, 0, gap)
        return self._judge(signal, origin or Origin())

    def _judge(self, signal: Signal, origin: Origin) -> Result:
        before = self.observations
        times = None if signal.times is None else signal.times[:, np.newaxis]
        verdicts = self.fleet.judge(signal.values[:, np.newaxis], self.fleet.pipeline.everything, times)
        if signal.times is not None and len(signal):
            self._last_time = signal.times[-1]
        return result_of(self.fleet, 0, signal, verdicts, before, origin)

    def learn_reference(
        self, data: Any, /, *, time: str | None = None, values: str | Iterable[str] | None = None
    ) -> None:
        """Learn known-good data, an array or a frame as for `run`, and compare with them from then on.

        See `Fleet.learn_reference`. The reference provides the features and the interval if they were not given. Its
        times do not count: what is judged later may be earlier.
        """
        if is_frame(data):
            (signal, *_), _ = read_frame(self.fleet, data, time=time, values=values, name=called(data))
            self.fleet.complete_from(features=signal.features, interval=signal.interval)
            table = check_features(signal, self.features, chosen=values is not None).values
        else:
            table = self._table(data)
        self.fleet.learn_reference(table)

    def accept(self) -> bool:
        """Accept the open incident as normal: it ends as "labelled", and its values are learned from now on.

        Returns whether there was one.
        """
        return self.fleet.accept(0)

    def detect(
        self,
        frame: Any,
        *,
        time: str | None = None,
        values: str | Iterable[str] | None = None,
    ) -> Any:
        """Verdicts on a history in a frame or series, as a frame of the same kind with its index and time zone.

        It has one row per observation in time order, and the columns of `verdict_columns`. `detect` returns the `frame`
        of the result of `run`, which see.
        """
        return self._run_frame(frame, time, values).frame

    def warn_about(self, signal: Signal) -> None:
        """Warn if a signal is too short for the alarm rate, or if its sampling hides what happens."""
        if self.observations + signal.observed < self.warm_up:
            warnings.warn(
                f"signal {signal.name!r} has {self.observations + signal.observed} observations, but these settings "
                f"need {self.warm_up} before the first alarm: nothing can be found in it yet",
                ResolutionWarning,
                stacklevel=5,
            )
        for problem in sampling_problems(signal):
            warnings.warn(f"signal {signal.name!r} {problem}", ResolutionWarning, stacklevel=5)

    def __repr__(self) -> str:
        fleet = self.fleet
        rate = f"alarm rate {fleet.expected.alarm_rate or 'by its length'}"
        if not fleet.is_complete:
            return f"Detector that waits for its first frame; {rate}"
        seen, found = self.observations, len(self.incidents)
        return f"Detector of {', '.join(self.features)}; {rate}; observations: {seen:,}; incidents: {found:,}"

    def save(self, file: File) -> None:
        """Save the state to a file (npz, never pickle), atomically."""
        write_arrays(self.state(), file)

    @classmethod
    def load(cls, file: File, *, forecaster: Given = None, threads: int = 1) -> Self:
        """Resume from a saved file, with exactly the numbers of a detector that was never interrupted.

        `forecaster` is needed only if it is not registered by name (see `available_forecasters`).
        """
        return cls.from_state(read_arrays(file, "a detector"), forecaster=forecaster, threads=threads)

    def __getstate__(self) -> dict[str, Any]:
        fleet = self.fleet
        made = fleet.is_complete
        known = not made or all(find_forecaster(one.name) is not None for one in fleet.forecasters)
        unnamed = None if known else fleet.forecasters
        return {"given": fleet.given, "state": self.state() if made else None, "forecaster": unnamed}

    def __setstate__(self, kept: Mapping[str, Any]) -> None:
        if kept["state"] is None:
            self._begin(Fleet.pending(*kept["given"][:2]), None)
            return
        same = self.from_state(kept["state"], forecaster=kept["forecaster"])
        same.fleet.given = kept["given"]
        self._begin(same.fleet, same._last_time)

    def to_bytes(self) -> bytes:
        """The state as bytes, for a database or another process."""
        return arrays_to_bytes(self.state())

    @classmethod
    def from_bytes(cls, data: bytes, *, forecaster: Given = None, threads: int = 1) -> Self:
        """Resume from what `to_bytes` returned; see `load`."""
        return cls.from_state(arrays_from_bytes(data), forecaster=forecaster, threads=threads)

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything needed to resume later, as plain arrays."""
        return self.fleet.state(time=self._last_time)

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[Any]], *, forecaster: Given = None, threads: int = 1) -> Self:
        """The detector that `state()` described."""
        fleet = Fleet.from_state(state, forecaster=forecaster, threads=threads)
        extra = read_header(state)["extra"]
        if len(fleet.names) != 1 or "time" not in extra or fleet.parts.peers is not None:
            raise ValueError(f"this is the state of a fleet of {len(fleet.names)} signals: load it with Fleet.load")
        return cls._around(fleet, extra["time"])
