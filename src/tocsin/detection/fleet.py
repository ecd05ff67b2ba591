"""Detectors for many signals that share their settings, run as one."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tocsin import checks
from tocsin.arrays import File, read_arrays, write_arrays
from tocsin.conformal.scorer import MOST_THREADS, differences
from tocsin.data import is_frame, parse_times
from tocsin.detection.evidence.pipeline import OnForecast, Pipeline
from tocsin.detection.frames import run_frame
from tocsin.detection.incidents.audit import OF_ERRORS, OF_SCORES, OF_STRETCHES, Audit, AuditTrail, audit_together
from tocsin.detection.incidents.budget import Sharing, make_selection
from tocsin.detection.incidents.incident import Incident, IncidentLog
from tocsin.detection.incidents.verdict import Verdicts
from tocsin.detection.lazy_fleet import Budget, FleetParts, LazyFleet
from tocsin.detection.peers import PeerLevels
from tocsin.detection.results import Results
from tocsin.detection.settings.alarm_rate import EXTRAPOLATION
from tocsin.detection.settings.arguments import Signals, takes_signals_and_settings
from tocsin.detection.settings.declaration import lists_settings
from tocsin.detection.settings.detector_settings import DetectorSettings, guarantee_of
from tocsin.detection.settings.history_settings import ALONE, FleetSettings
from tocsin.detection.state.storage import (
    Given,
    joined,
    pack_state,
    read_header,
    reports_damage,
    settings_header,
    settings_of,
    split,
    subtree,
)
from tocsin.detection.views import View
from tocsin.forecasting import Forecaster


@lists_settings(FleetSettings)
class Fleet(LazyFleet):
    """Watches many signals at once, with the same numbers as one `Detector` per signal, but faster.

    With a budget, all signals together report the rarest of the incidents that they propose.

    Parameters
    ----------
    signals : the number of signals, or their names; by default those of the first frame.
    {settings}

    Examples
    --------
    >>> import numpy as np
    >>> fleet = Fleet(["pump", "fan"], alarm_rate=0.001)
    >>> verdicts = fleet.run_arrays(np.random.default_rng(0).normal(size=(700, 2)))
    >>> verdicts.p.shape
    (700, 2)
    >>> fleet
    Fleet of 2 signals: pump, fan; alarm rate 0.001; observations: 1,400; incidents: 0
    """

    @takes_signals_and_settings(FleetSettings)
    def __init__(self, signals: Signals | None, settings: FleetSettings) -> None:
        self._wait(signals, settings, settings.budget)

    def _make(self, signals: Signals, settings: DetectorSettings, budget: Budget, *, peers: bool) -> FleetParts:
        names = checks.names("signals", signals, ALONE)
        sharing, shared_rate = None, None
        if budget is not None:
            selection, proposed, shared_rate = make_selection(budget, len(names), settings.interval_seconds)
            settings = replace(settings, alarm_rate=proposed)
            sharing = Sharing(selection, len(names))
        return FleetParts(
            names=names,
            settings=settings,
            budget=budget,
            pipeline=Pipeline(len(names), settings),
            log=_new_log(names, settings),
            trail=_new_trail(len(names), settings, shared_rate),
            sharing=sharing,
            shared_rate=shared_rate,
            peers=PeerLevels(len(names), len(settings.feature_names) // 2) if peers else None,
        )

    @property
    def forecaster(self) -> Forecaster | None:
        """The forecaster; None if the values are already nonconformity scores."""
        return next(iter(self.pipeline.forecasters), None)

    @property
    def forecasters(self) -> tuple[Forecaster, ...]:
        """All forecasters, the one whose forecasts are shown first."""
        return self.pipeline.forecasters

    @property
    def forecast_width(self) -> int:
        """How many numbers are forecast after each observation of a feature; see `run`."""
        return self.pipeline.forecast_width

    @property
    def views(self) -> tuple[View, ...]:
        """The views that judge a signal."""
        return self.pipeline.views

    @property
    def units(self) -> list[str]:
        """The unit of each signal's values, for explanations, to be set by callers: a state has none.

        A feature may have its own, in brackets.
        """
        return self.log.units

    @property
    def alarm_rate(self) -> float:
        """The tolerated rate of false incidents per observation; of alarms with promise="observations".

        With a budget of incidents it is each signal's share, and with a share of false ones the rate of proposals.
        """
        return self.settings.rate if self.parts.shared_rate is None else self.parts.shared_rate

    @property
    def warm_up(self) -> int:
        """How many observations the warm-up takes: after it, there may be alarms."""
        if self.settings.promise == "observations" or not self.settings.early:
            return self.own_past_after
        return self.least_reference

    @property
    def own_past_after(self) -> int:
        """After how many observations a signal's own past determines the alarm rate; before, it is estimated."""
        sizes = self.settings.sizes
        waits = sizes.min_calibration
        if self.settings.promise == "incidents":
            waits = max(waits, sizes.block * max(math.ceil(1 / (self.settings.rate * sizes.block)), sizes.stand_in))
        return self.least_reference + waits

    @property
    def least_reference(self) -> int:
        """The minimum number of observations in a reference."""
        return self.pipeline.ranking.first_ranked_after(self.pipeline.warm_up)

    @property
    def guarantee(self) -> str:
        """What is guaranteed, and under which assumption."""
        return guarantee_of(self.settings, self.alarm_rate, self.budget, self.own_past_after)

    def update(self, values: ArrayLike, *, rows: ArrayLike | None = None, times: Any = None) -> Verdicts:
        """Judge one observation of each signal, `(S,)` or `(S, F)`; NaN if missing.

        `rows` are the indices of the signals that the values belong to, each at most once; all of them if None. For all
        other signals no time passes. The verdicts have one step.
        """
        table = checks.numbers("values", values)
        moments = None if times is None else np.asarray(times)[np.newaxis]
        return self.run_arrays(table[np.newaxis], rows=rows, times=moments)

    def run(
        self,
        data: Any,
        /,
        *,
        time: str | None = None,
        values: str | Iterable[str] | None = None,
        id: str | None = None,  # noqa: A002
    ) -> Results:
        """Judge the histories in a frame (pandas, polars, Arrow), as repeated calls of `update` would.

        A frame has one signal per column or, with `id`, a column with the signal's name; then its other columns are
        features. `time`, `values` and `id` are column names. Signals are matched by name and continue from what was
        seen of them before. For arrays there is `run_arrays`.
        """
        if not is_frame(data):
            raise TypeError(f"data must be a frame, got {type(data).__name__}: use run_arrays for arrays")
        return run_frame(self, data, time=time, values=values, id=id)

    def detect(
        self,
        frame: Any,
        *,
        time: str | None = None,
        values: str | Iterable[str] | None = None,
        id: str | None = None,  # noqa: A002
    ) -> Any:
        """Verdicts on the histories in a frame, as one long frame of the same kind; see `run`."""
        return run_frame(self, frame, time=time, values=values, id=id).frame

    def run_arrays(
        self, values: ArrayLike, *, rows: ArrayLike | None = None, times: Any = None,
        kept_forecasts: NDArray[np.float64] | None = None, on_forecast: OnForecast | None = None,
    ) -> Verdicts:  # fmt: skip
        """Judge a history in arrays, as repeated calls of `update` would.

        `values` are `(T, S)` or `(T, S, F)`; `times`, dates or numbers, have the shape (T, S), and `rows` are the
        signals' indices, all of them if None. With a `zone`, texts and datetimes without one are local times, and
        datetime64 is in UTC.

        `on_forecast` receives the forecasts made after the observations, `(t, S, F, forecast_width)`, piece by piece. A
        caller that has kept them, and judges the same observations again in the same state, passes them as
        `kept_forecasts`: the verdicts are the same, and nothing has to be forecast.
        """
        everything = self.pipeline.everything
        chosen = everything if rows is None else checks.indices("rows", rows, len(self.names), of="signals")
        table = checks.numbers("values", values)
        count = len(self.given_features)
        if table.ndim == 2 and count == 1:
            table = table[..., np.newaxis]
        if table.ndim != 3 or table.shape[1:] != (chosen.size, count):
            raise ValueError(
                f"values must have shape (T, {chosen.size}, {count}), times, signals and features, got "
                f"shape {np.shape(values)}"
            )
        wanted = (*table.shape[:2], len(self.features), self.forecast_width)
        if kept_forecasts is not None and kept_forecasts.shape != wanted:
            raise ValueError(f"kept_forecasts must have shape {wanted}, got shape {kept_forecasts.shape}")
        moments = None if times is None else parse_times(times, table.shape[:2], self.zone)
        return self.judge(table, chosen, moments, kept_forecasts, on_forecast)

    def judge(
        self, table: NDArray[np.float64], chosen: NDArray[np.intp], times: NDArray[Any] | None = None,
        kept_forecasts: NDArray[np.float64] | None = None, on_forecast: OnForecast | None = None,
    ) -> Verdicts:  # fmt: skip
        """`run_arrays`, with everything checked: numbers `(T, S, F)` of the rows `chosen`."""
        if self.parts.peers is not None:
            table = np.concatenate([table, self.parts.peers.compare(table, chosen)], axis=2)
        numbers = self.pipeline.seen[chosen] + np.arange(table.shape[0])[:, np.newaxis]
        local = self.settings.local_calendar
        calendar = None if local is None else local.places(times)
        verdicts = self.pipeline.run(table, chosen, kept_forecasts, on_forecast, calendar)
        exceeds = verdicts.opened if self.settings.promise == "incidents" else verdicts.alarm.copy()
        if self.parts.sharing is not None:
            verdicts = self.parts.sharing.select(verdicts, chosen)
            exceeds = exceeds if self.parts.shared_rate is None else verdicts.opened
        judged = verdicts.rate if self.settings.promise == "incidents" else verdicts.p
        self.trail.add(exceeds, verdicts.warm & ~np.isnan(judged), numbers, chosen)
        if table.shape[0]:
            self.log.add(verdicts, numbers, chosen, times)
        if not self.settings.is_paper:  # which tells 1/p
            # Nobody can tell how often something comes that is much rarer than all there was.
            np.maximum(verdicts.rate, 1.0 / (EXTRAPOLATION * (numbers + 1)), out=verdicts.rate)
        return verdicts

    def learn_reference(self, values: ArrayLike, *, row: int = 0) -> None:
        """Let a signal learn these known-good values, `(T,)` or `(T, F)`, and compare with them from then on.

        The signal forgets what it has learned before, and learns nothing later, until another reference is learned or
        the row is replaced. A reference should cover everything that the signal usually does, and have at least
        `warm_up` observations for alarms right after it.
        """
        if self.settings.is_paper:
            raise ValueError(
                f"preset={self.settings.preset!r} has no reference, since it always learns: use another preset"
            )
        if self.parts.peers is not None:
            raise ValueError("peers=True has no references, since values of one signal cannot be compared with others")
        table = checks.numbers("values", values)
        table = table[:, np.newaxis] if table.ndim == 1 else table
        least = self.least_reference
        if table.ndim != 2 or table.shape[1] != len(self.features) or table.shape[0] < least:
            raise ValueError(
                f"values must have shape (T, {len(self.features)}), T at least {least}, got shape {np.shape(values)}"
            )
        self.put(row, None)
        chosen = np.array([self._row(row)])
        self.pipeline.learn_reference(table[:, np.newaxis], chosen)

    def incidents(self, signal: int | None = None) -> list[Incident]:
        """The newest incidents, of one signal or of all; open ones come last."""
        return self.log.incidents(signal)

    def open_incident(self, row: int) -> Incident | None:
        """The open incident of a signal, if long enough to be reported."""
        return self.log.open_incident(self._row(row))

    def accept(self, row: int = 0) -> bool:
        """Accept a signal's open incident as normal: it ends as "labelled", and the signal learns from it.

        Returns whether there was one.
        """
        row = self._row(row)
        there = self.log.open_incident(row) is not None
        self.log.label(row)
        self.pipeline.ranking.accept(row)
        return there

    def take_closed_incidents(self) -> list[Incident]:
        """Remove and return the closed incidents, the oldest first. States no longer include them."""
        return self.log.take_closed()

    def forget_incidents(self, row: int) -> None:
        """Forget a signal's incidents, so that its next alarm opens a new one."""
        self.log.copy_from(self._row(row), _new_log([ALONE], self.settings), 0)

    def observations(self, row: int) -> int:
        """How many observations of a signal it has seen, including missing ones."""
        return int(self.pipeline.seen[self._row(row)])

    @property
    def memory_bytes(self) -> int:
        """How much memory the scoring of one signal takes."""
        return self.pipeline.nbytes // len(self.names)

    def audit(self, signal: int | None = None, level: float = 0.99, *, faults: int | None = None) -> Audit:
        """Whether the promised alarm rate is kept so far: on one signal, or on all together.

        `faults` is how many incidents of the signal were true, for callers that count them instead of using
        `label_fault`.
        """
        level = checks.number("level", level, above=0, below=1)
        if signal is not None:
            known = None if faults is None else checks.integer("faults", faults, least=0)
            return self.trail.audit(self._row(signal), level, known)
        if faults is not None:
            raise ValueError(f"faults={faults!r} needs the signal they belong to")
        return audit_together([self.trail.audit(row, level) for row in range(len(self.names))])

    def label_fault(self, row: int, alarms: int = 1, *, taken_back: bool = False) -> None:
        """Label an incident as a true fault: it does not count against the promise, nor tighten the threshold.

        `alarms` is how many alarms it had, which matters only with promise="observations". A false alarm needs no
        label, since it counts anyway; if it was labelled as a fault before, `taken_back` undoes that.
        """
        alarms = checks.integer("alarms", alarms, least=1)
        counted = alarms if self.settings.promise == "observations" else 1
        self.trail.label_fault(self._row(row), -counted if taken_back else counted)
        self.pipeline.ranking.give_back(self._row(row), -1 if taken_back else 1)

    def weights(self, signal: int) -> NDArray[Any]:
        """The learned weights of past errors, `(features, streams of a feature, window)`, the newest lag first."""
        return self.pipeline.ranking.learned_weights(self._row(signal))

    def signal_state(self, row: int, last_time: Any = None) -> dict[str, NDArray[Any]]:
        """The state of one signal, for `put` or `Detector.from_state`: that of a detector that has seen the same.

        `last_time` is the time of the signal's last observation, which a detector keeps and a fleet does not.
        """
        row = self._row(row)
        log = _new_log([ALONE], self.settings)
        log.copy_from(0, self.log, row)
        return self._state(np.array([row]), log, {"time": last_time})

    def signal_states(self, rows: Sequence[int], last_times: Sequence[Any]) -> list[dict[str, NDArray[Any]]]:
        """The `signal_state` of each of these rows, much faster."""
        chosen = np.array([self._row(row) for row in rows])
        audit = {name: array[chosen] for name, array in self.trail.state().items()}
        arrays = pack_state({}, {"audit": audit, "pipeline": self.pipeline.state(chosen), "peers": self._peers(chosen)})
        made, states = self._header(), split(arrays, len(chosen))
        for row, last_time, state in zip(chosen, last_times, states, strict=True):
            log = _new_log([ALONE], self.settings)
            log.copy_from(0, self.log, int(row))
            header = {"signals": log.names, **made, "incidents": log.state(), "extra": {"time": last_time}}
            state["header"] = pack_state(header, {})["header"]
        return states

    def put_all(self, rows: Sequence[int], states: Sequence[Mapping[str, NDArray[Any]]]) -> list[Any]:
        """Put signals with these states into rows, as `put` does one by one, but much faster; returns the last times.

        ValueError if one of the states cannot be used: then nothing has changed.
        """
        chosen = np.array([self._row(row) for row in rows])
        if len(states) != chosen.size or np.unique(chosen).size != chosen.size:
            raise ValueError(f"rows must be distinct, one for each of {len(states)} states, got {list(rows)!r}")
        headers = [read_header(state) for state in states]
        for header in headers:
            self._check_alike(header)
        others = Fleet.from_state(joined(states), forecaster=self.forecasters)
        self.pipeline.copy_from(chosen, others.pipeline)
        times = [header["extra"].get("time") for header in headers]
        for number, row in enumerate(map(int, chosen)):
            self._take_over(row, others, number, times[number])
        return times

    def put(self, row: int, state: Mapping[str, NDArray[Any]] | None, name: str | None = None) -> Any:
        """Replace the signal in a row with one from `signal_state` or `Detector.state`, or with a new one for None.

        It continues with exactly the numbers of a signal that was never interrupted, and all other rows are unaffected.
        The previous signal is gone, with its incidents. The row keeps its name unless another is given.
        Returns the `last_time` that was saved.
        """
        row = self._row(row)
        if name is not None and (not isinstance(name, str) or name in self.names[:row] + self.names[row + 1 :]):
            raise ValueError(f"name must not be that of another signal in the fleet, got {name!r}")
        # Everything that can fail is done before anything is changed.
        if state is None:
            single, last_time = Fleet.of(1, self.settings, peers=self.parts.peers is not None), None
        else:
            single, last_time = self._alike(state)
        self.pipeline.copy_from(np.array([row]), single.pipeline)
        self._take_over(row, single, 0, last_time, name)
        return last_time

    def _take_over(self, row: int, other: "Fleet", theirs: int, last_time: Any, name: str | None = None) -> None:
        """Continue the audit, incidents and times of a signal of another fleet in this row."""
        self.trail.copy_from(row, other.trail, theirs)
        self.log.copy_from(row, other.log, theirs, name)
        if self.parts.peers is not None and other.parts.peers is not None:
            self.parts.peers.copy_from(row, other.parts.peers, theirs)
        if self.parts.sharing is not None:
            self.parts.sharing.forget(row)
        self.names[row] = self.log.names[row]
        self.last_times.pop(row, None)
        if last_time is not None:
            self.last_times[row] = last_time

    def __repr__(self) -> str:
        if not self.is_complete:
            return f"Fleet that waits for its first frame; alarm rate {self.expected.alarm_rate or 'by its length'}"
        shown = ", ".join(self.names[:4]) + (", ..." if len(self.names) > 4 else "")
        rate = f"alarm rate {self.settings.alarm_rate}" if self.budget is None else f"budget {self.budget}"
        seen, found = int(self.pipeline.seen.sum()), len(self.incidents())
        return f"Fleet of {len(self.names)} signals: {shown}; {rate}; observations: {seen:,}; incidents: {found:,}"

    def _alike(self, state: Mapping[str, NDArray[Any]]) -> tuple["Fleet", Any]:
        """A fleet with the one signal of a state, and the signal's last time; rejects a state with other settings."""
        header = read_header(state)
        self._check_alike(header)
        return Fleet.from_state(state, forecaster=self.forecasters), header["extra"].get("time")

    def _check_alike(self, header: Mapping[str, Any]) -> None:
        with reports_damage():
            if len(header["signals"]) != 1:
                raise ValueError(f"expected the state of one signal, got {len(header['signals'])}")
            theirs, own = (
                {name: made.get(name, False) for name in ("features", "forecasters", "peers")} | made["settings"]
                for made in (header, self._header())
            )
        if theirs != own:
            raise ValueError(
                f"state must come from a signal with the settings of the fleet, got {differences(theirs, own)}"
            )

    def _row(self, row: int) -> int:
        return checks.integer("row", row, least=0, most=len(self.names) - 1)

    def state(self, **extra: Any) -> dict[str, NDArray[Any]]:
        """Everything needed to resume later, as plain arrays."""
        frames: dict[str, Any] = {}  # needed only to continue with frames
        if self.every is not None:
            frames.update(every=self.every, aggregate=self.aggregate)
        if self.last_times:
            frames["last_times"] = [self.last_times.get(row) for row in range(len(self.names))]
        return self._state(self.pipeline.everything, self.log, {**frames, **extra}, self.parts.sharing)

    def _state(
        self, rows: NDArray[np.intp], log: IncidentLog, extra: dict[str, Any], sharing: Sharing | None = None
    ) -> dict[str, NDArray[Any]]:
        """The state of a fleet with only these rows; `log` has their incidents and names."""
        header = {"signals": log.names, **self._header(), "incidents": log.state(), "extra": extra}
        audit = {name: array[rows] for name, array in self.trail.state().items()}
        trees = {"audit": audit, "pipeline": self.pipeline.state(rows), "peers": self._peers(rows)}
        if sharing is not None:
            header["budget"], trees["sharing"] = self.budget, sharing.state()
        return pack_state(header, trees)

    def _header(self) -> dict[str, Any]:
        """The settings in a state."""
        return settings_header(self.settings) | ({} if self.parts.peers is None else {"peers": True})

    def _peers(self, rows: NDArray[np.intp]) -> dict[str, NDArray[Any]]:
        return {} if self.parts.peers is None else self.parts.peers.state(rows)

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[Any]], *, forecaster: Given = None, threads: int = 1) -> Self:
        """The fleet that `state()` described."""
        threads = checks.integer("threads", threads, least=1, most=MOST_THREADS)
        header = read_header(state)
        settings = settings_of(header, forecaster=forecaster, threads=threads)
        with reports_damage():
            fleet = cls.of(header["signals"], settings, header.get("budget"), peers=header.get("peers", False))
            fleet._restore(state, header["incidents"])
            frames = header["extra"]
            fleet.every, fleet.aggregate = frames.get("every"), frames.get("aggregate", "mean")
            times = enumerate(frames.get("last_times", ()))
            fleet.last_times.update({row: time for row, time in times if time is not None})
            return fleet

    def _restore(self, state: Mapping[str, NDArray[Any]], incidents: dict[str, Any]) -> None:
        self.pipeline.restore(subtree("pipeline", state))
        if self.parts.sharing is not None:
            self.parts.sharing.restore(subtree("sharing", state))
        if self.parts.peers is not None:
            self.parts.peers.restore(subtree("peers", state))
        self.trail.restore(subtree("audit", state))
        self.log.restore(incidents)

    def save(self, file: File) -> None:
        """Save the state to a file (npz, never pickle), atomically."""
        write_arrays(self.state(), file)

    @classmethod
    def load(cls, file: File, *, forecaster: Given = None, threads: int = 1) -> Self:
        """Resume from a saved file, with exactly the numbers of a fleet that was never interrupted.

        `forecaster` is needed only if it is not registered by name (see `available_forecasters`).
        """
        return cls.from_state(read_arrays(file, "a fleet"), forecaster=forecaster, threads=threads)


def _new_log(names: Sequence[str], settings: DetectorSettings) -> IncidentLog:
    return IncidentLog(
        names, settings.feature_names, settings.chosen_views, settings.min_duration, settings.interval_seconds
    )


def _new_trail(signals: int, settings: DetectorSettings, shared_rate: float | None) -> AuditTrail:
    promised = settings.rate if shared_rate is None else shared_rate
    if settings.promise == "incidents":  # one ends before another begins: no clusters
        return AuditTrail(signals, promised)
    stretches = any(stream.length > 1 for view in settings.chosen_views for stream in view.streams)
    clustering = OF_STRETCHES if stretches else OF_SCORES if settings.judges_scores else OF_ERRORS
    return AuditTrail(signals, promised, unit="alarms", clustering=clustering)
