"""The detector of one signal."""

import warnings
from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tocsin import checks
from tocsin.arrays import File, read_arrays, write_arrays
from tocsin.data import (
    DataWarning,
    Signal,
    frame_like,
    merge_problems,
    parse_time,
    signals_from_frame,
)
from tocsin.detection.audit import Audit
from tocsin.detection.declaration import lists_settings
from tocsin.detection.explaining import verdict_on
from tocsin.detection.fleet import Fleet, as_times
from tocsin.detection.gaps import missing_times
from tocsin.detection.incidents import Incident
from tocsin.detection.settings import DetectorSettings
from tocsin.detection.signature import takes_settings
from tocsin.detection.storage import arrays_from_bytes, arrays_to_bytes, read_header
from tocsin.detection.verdict import Verdict, Verdicts
from tocsin.forecasting import Forecaster


class ResolutionWarning(UserWarning):
    """The data are too few for the alarm rate that was asked for."""


@lists_settings(DetectorSettings)
class Detector:
    """Values in, verdicts out, for one signal.

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

    @takes_settings(DetectorSettings)
    def __init__(self, settings: DetectorSettings) -> None:
        self._begin(Fleet.of(1, settings), None)

    @classmethod
    def of(cls, settings: DetectorSettings) -> Self:
        """A detector with settings that are there already."""
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
        """The names of the features."""
        return self.fleet.features

    @property
    def alarm_rate(self) -> float:
        """The tolerated rate of false alarms per observation."""
        return self.fleet.alarm_rate

    @property
    def warm_up(self) -> int:
        """How many observations it takes until p-values are as calibrated as they are going to be."""
        return self.fleet.warm_up

    @property
    def observations(self) -> int:
        """How many observations it has seen, missing ones included."""
        return self.fleet.observations(0)

    @property
    def guarantee(self) -> str:
        """What is promised of p."""
        return self.fleet.guarantee

    @property
    def incidents(self) -> list[Incident]:
        """The newest incidents; one that is not over comes last."""
        return self.fleet.incidents()

    @property
    def audit(self) -> Audit:
        """Whether the promised alarm rate is kept, so far."""
        return self.fleet.audit(0)

    @property
    def weights(self) -> NDArray[Any]:
        """The learned weights of past errors, `(features, streams of a feature, window)`, the newest lag first."""
        return self.fleet.weights(0)

    def update(self, value: ArrayLike | None, time: Any = None) -> Verdict:
        """Take one observation: a number, or one for each feature; NaN or None for what is missing.

        With an `interval` and times, observations left out since the last one count as missing. Times must increase.
        """
        row = self._row(value)
        moment = None
        if time is not None:
            moment = parse_time(time)
            self._pass_gap(moment)
        times = None if moment is None else np.array([[moment]])
        verdicts = self.fleet.run(row, times=times)
        self._last_time = moment if moment is not None else self._last_time
        return verdict_on(verdicts, 0, 0, moment, self.fleet.views, self.features)

    def _row(self, value: ArrayLike | None) -> NDArray[np.float64]:
        count = len(self.features)
        if count == 1 and type(value) is float:  # the usual case, and the fast one
            return np.array([[[value]]])
        row = checks.numbers("value", np.nan if value is None else value)
        if row.shape != (count,) and not (row.ndim == 0 and count == 1):
            raise ValueError(f"value must be {count} number{'s' if count > 1 else ''}, one a feature, got {value!r}")
        return row.reshape(1, 1, count)

    def _pass_gap(self, moment: Any) -> None:
        missing = missing_times(self._last_time, moment, self.fleet.interval)
        if missing.size:
            self.fleet.run(np.full((missing.size, 1, len(self.features)), np.nan), times=missing[:, np.newaxis])

    def run(self, values: ArrayLike, times: ArrayLike | None = None) -> Verdicts:
        """Take a history, `(T,)` or `(T, F)`, as if by T calls of `update`; returns the verdicts as arrays.

        `times` are taken as they are: gaps in them are not filled. `detect` and `tocsin.data` do that.
        """
        table = checks.numbers("values", values)
        table = table[:, np.newaxis] if table.ndim == 1 else table
        if table.ndim != 2 or table.shape[1] != len(self.features):
            raise ValueError(
                f"values must have shape (T, {len(self.features)}), times and features, got shape {np.shape(values)}"
            )
        column = None if times is None else as_times(times, table.shape[:1])
        verdicts = self.fleet.run(table[:, np.newaxis], times=None if column is None else column[:, np.newaxis])
        if column is not None and column.size:
            self._last_time = column[-1]
        return verdicts

    def learn_reference(self, values: ArrayLike) -> None:
        """Learn from these values, `(T,)` or `(T, F)`, what is good, and compare with them from then on.

        See `Fleet.learn_reference`. Times go on after the reference as if it had not been there.
        """
        self.fleet.learn_reference(values)

    def accept(self) -> bool:
        """Take what the open incident brought for normal: it ends as "labelled", and is learned from now on.

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
        """Verdicts on a history in a frame (pandas, polars, Arrow and all others that narwhals takes), in such a frame.

        `time` and `values` are names of columns, found out where they are not given. The verdicts have a row for each
        observation in the order of time, with those that a gap in the times stands for; columns are those of
        `verdict_columns`. The detector goes on from what it has seen before: times must be later, and what was left out
        in between counts as missing. Bad values count as missing too, with a `DataWarning` that names them.
        """
        with signals_from_frame(frame, time=time, values=values, interval=self.fleet.interval) as signals:
            signal = next(iter(signals))
            for problem in merge_problems([*signals.problems, *signal.problems]):
                if problem.severity == "damage":
                    warnings.warn(f"the frame is damaged: {problem}", DataWarning, stacklevel=2)
        return frame_like(frame, verdict_columns(signal, self.run_signal(signal)))

    def run_signal(self, signal: Signal) -> Verdicts:
        """Verdicts on a signal that was read from a file or frame; warns if it is too short for the alarm rate."""
        if len(signal.features) != len(self.features):
            raise ValueError(
                f"signal {signal.name!r} must have {len(self.features)} features like the detector, "
                f"got {len(signal.features)}: {', '.join(signal.features)}"
            )
        self.warn_if_short(signal)
        if signal.times is not None and len(signal):
            self._pass_gap(signal.times[0])
        return self.run(signal.values, signal.times)

    def warn_if_short(self, signal: Signal) -> None:
        """Warn if the signal has too few observations for the alarm rate."""
        if self.observations + signal.observed < self.warm_up:
            warnings.warn(
                f"signal {signal.name!r} has {self.observations + signal.observed} observations, but an alarm rate of "
                f"{self.alarm_rate:.3g} needs {self.warm_up} before p-values are calibrated: until then they are "
                "bounds, and there may be no alarm at all",
                ResolutionWarning,
                stacklevel=3,
            )

    def save(self, file: File) -> None:
        """Write everything needed to go on later to a file (npz, never pickle), in one step or not at all."""
        write_arrays(self.state(), file)

    @classmethod
    def load(cls, file: File, *, forecaster: Forecaster | None = None, threads: int = 1) -> Self:
        """Go on from a saved file, with exactly the numbers of a detector that was never interrupted.

        `forecaster` is needed only if it is none that goes by a name (see `available_forecasters`).
        """
        return cls.from_state(read_arrays(file, "a detector"), forecaster=forecaster, threads=threads)

    def to_bytes(self) -> bytes:
        """What `save` writes, for a database or another process."""
        return arrays_to_bytes(self.state())

    @classmethod
    def from_bytes(cls, data: bytes, *, forecaster: Forecaster | None = None, threads: int = 1) -> Self:
        """Go on from what `to_bytes` gave; see `load`."""
        return cls.from_state(arrays_from_bytes(data), forecaster=forecaster, threads=threads)

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything needed to go on later, as plain arrays: for `from_state`, or to save."""
        return self.fleet.state(time=self._last_time)

    @classmethod
    def from_state(
        cls, state: Mapping[str, NDArray[Any]], *, forecaster: Forecaster | None = None, threads: int = 1
    ) -> Self:
        """The detector that `state()` described."""
        fleet = Fleet.from_state(state, forecaster=forecaster, threads=threads)
        extra = read_header(state)["extra"]
        if len(fleet.names) != 1 or "time" not in extra:
            raise ValueError(f"this is the state of a fleet of {len(fleet.names)} signals: load it with Fleet.load")
        return cls._around(fleet, extra["time"])


def verdict_columns(signal: Signal, verdicts: Verdicts, first: int = 0) -> dict[str, NDArray[Any]]:
    """The verdicts on one signal as columns of a table, those that belong to a feature with its name.

    Where the signal has no times, observations are numbered, from `first` on.
    """
    columns: dict[str, Any] = {}
    columns["time"] = first + np.arange(len(signal)) if signal.times is None else signal.times
    single = len(signal.features) == 1
    for name in ("value", "forecast", "low", "high"):
        for index, feature in enumerate(signal.features):
            columns[name if single else f"{name} {feature}"] = getattr(verdicts, name)[:, 0, index]
    for name in ("p", "severity", "alarm", "merged", "return_period", "warm", "estimated"):
        columns[name] = getattr(verdicts, name)[:, 0]
    if not single:
        for index, feature in enumerate(signal.features):
            columns[f"p {feature}"] = verdicts.feature_p[:, 0, index]
    return columns
