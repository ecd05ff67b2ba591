"""The observations of one signal in one trigger: sorted, judged, and the detector's state updated."""

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.data import DataError, Problem, Signal
from tocsin.data.problems import ProblemLog
from tocsin.data.timeline import Timeline, as_interval, regularize
from tocsin.detection import Fleet
from tocsin.detection.results import verdict_columns
from tocsin.detection.state.storage import arrays_from_bytes, arrays_to_bytes
from tocsin.spark.partition import in_order, read_times
from tocsin.spark.plan import SparkPlan
from tocsin.spark.rows import Layout

SCORED, LATE, DUPLICATE = "scored", "late", "duplicate"


class Stepped(NamedTuple):
    """Batches of rows to emit, and the state to keep (None: unchanged)."""

    rows: list[Any]
    state: bytes | None


@dataclass(frozen=True)
class _Arrived:
    """Observations in time order, and the outcome of each."""

    times: NDArray[Any]
    values: NDArray[np.float64]
    status: NDArray[Any]
    bad_times: int


class Step:
    """Judges the observations of triggers. One for each Python worker: it holds a detector that signals use in turn."""

    def __init__(self, plan: SparkPlan) -> None:
        self._plan = plan
        self._layout = Layout(plan.features, plan.clock, streamed=True)
        self._fleet = Fleet(1, plan.features, **plan.detector_settings())

    def nameless(self, count: int) -> Stepped:
        """Observations that name no signal."""
        return Stepped([self._layout.problems(None, [Problem("no id", count, ())])], None)

    def take(self, name: str, carried: NDArray[Any], values: NDArray[np.float64], state: bytes | None) -> Stepped:
        """All observations of a signal in a trigger, in any order, with the signal's state if it has one.

        A state with other settings raises a ValueError, which ends the query: silently starting afresh would be worse.
        """
        last_time = self._fleet.put(0, None if state is None else arrays_from_bytes(state), name)
        arrived = self._sorted_out(carried, values, last_time)
        rows = []
        if arrived.bad_times:
            rows.append(self._layout.problems(name, [Problem("bad time", arrived.bad_times, ())]))
        unjudged = arrived.status != SCORED
        if unjudged.any():
            rows.append(self._layout.verdicts(name, self._passed_through(arrived, unjudged)))
        if unjudged.all():
            return Stepped(rows, None)
        try:
            signal = self._laid_out(name, arrived, last_time)
        except DataError as error:
            return Stepped([*rows, self._layout.message(name, "not judged", "error", str(error))], None)
        return self._judged(signal, rows)

    def _sorted_out(self, carried: NDArray[Any], values: NDArray[np.float64], last_time: Any) -> _Arrived:
        times, bad = read_times(carried, self._plan)
        times, values = in_order(times[~bad], values[~bad])
        if self._plan.dated:
            times = times.view("datetime64[ns]")
        status = np.full(len(times), SCORED, dtype=object)
        status[1:][times[1:] == times[:-1]] = DUPLICATE
        if last_time is not None:
            status[times == last_time] = DUPLICATE
            status[times < last_time] = LATE
        return _Arrived(times, values, status, int(bad.sum()))

    def _passed_through(self, arrived: _Arrived, chosen: NDArray[np.bool_]) -> dict[str, Any]:
        features = self._plan.features
        names = ["value"] if len(features) == 1 else [f"value {feature}" for feature in features]
        columns = dict(zip(names, arrived.values[chosen].T, strict=True))
        return {"time": arrived.times[chosen], "status": arrived.status[chosen], **columns}

    def _laid_out(self, name: str, arrived: _Arrived, last_time: Any) -> Signal:
        """The new observations, with those missing since the last one."""
        fresh = arrived.status == SCORED
        times, values = arrived.times[fresh], arrived.values[fresh]
        interval = self._fleet.interval
        if interval is None:
            return Signal(
                name=name,
                features=self._plan.features,
                times=times,
                values=values,
                lines=np.arange(1, len(times) + 1),
                interval=None,
                problems=(),
            )
        known = 0 if last_time is None else 1
        if known:  # repeated, to see what is missing after it
            times = np.concatenate([np.array([last_time], dtype=times.dtype), times])
            values = np.concatenate([np.full((1, values.shape[1]), np.nan), values])
        read = Timeline(times, values, np.arange(1, len(times) + 1))
        every = as_interval(interval, dated=self._plan.dated)
        timeline = regularize(read, ProblemLog(), every, self._plan.longest_gap)
        new = (timeline.times[known:], timeline.values[known:], timeline.lines[known:])
        return Signal(name, self._plan.features, *new, None, ())

    def _judged(self, signal: Signal, rows: list[Any]) -> Stepped:
        fleet, times = self._fleet, signal.times
        if times is None:
            raise TypeError("a signal of a stream must have times")
        verdicts = fleet.run_arrays(signal.values[:, np.newaxis], times=times[:, np.newaxis])
        came = signal.lines > 0  # a missing observation has no row
        columns = {name: column[came] for name, column in verdict_columns(signal, verdicts).items()}
        columns["status"] = np.full(int(came.sum()), SCORED, dtype=object)
        rows.append(self._layout.verdicts(signal.name, columns))
        # Closed incidents are in the table from now on, and no longer in the state.
        incidents = fleet.take_closed_incidents()
        going_on = fleet.open_incident(0)
        if going_on is not None and going_on.end >= times[0]:  # it has grown
            incidents.append(going_on)
        if incidents:
            rows.append(self._layout.incidents(signal.name, incidents))
        last_time = times[-1] if self._plan.dated else float(times[-1])
        return Stepped(rows, arrays_to_bytes(fleet.signal_state(0, last_time)))


@cache
def step_of(plan_text: str) -> Step:
    """The step for a plan, the same one every time in a worker."""
    return Step(SparkPlan.read(plan_text))
