"""Frames and series through detectors: read, judged, and returned in the same form."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tocsin.data import (
    LONGEST_GAP,
    DataWarning,
    Origin,
    Signal,
    merge_problems,
    missing_steps,
    signals_from_frame,
)
from tocsin.data.reading import eager_frame
from tocsin.detection.incidents.verdict import Verdicts
from tocsin.detection.results import Results, result_of
from tocsin.detection.settings.history_settings import ALONE, are_named

if TYPE_CHECKING:
    from tocsin.detection.fleet import Fleet


def missing_times(last_time: Any, time: Any, interval: float | None) -> NDArray[Any]:
    """The times of the observations missing between the last one and the next, at most `LONGEST_GAP`.

    Times are datetime64 or numbers, and must increase; the interval is in seconds, or in the unit of the numbers.
    Without a last time or an interval none are missing.

    >>> missing_times(10.0, 13.1, 1.0).tolist()
    [11.0, 12.0]
    """
    if last_time is None:
        return np.empty(0)
    try:
        if not time > last_time:
            raise ValueError(f"time must be later than the last one, {last_time}, got {time}")
    except TypeError:
        raise TypeError(f"time must be of the same kind as the last one, {last_time!r}, got {time!r}") from None
    if interval is None:
        return np.empty(0)
    step: Any = interval
    if isinstance(time, np.datetime64):
        step = np.timedelta64(round(interval * 1e9), "ns")
    missing = missing_steps(last_time, time, step, LONGEST_GAP)
    return np.asarray(last_time + np.arange(1, missing + 1) * step)


def run_frame(
    fleet: "Fleet",
    data: Any,
    *,
    time: str | None,
    values: str | Iterable[str] | None,
    id: str | None,  # noqa: A002
) -> Results:
    """A fleet's results for the signals in a frame."""
    features = fleet.given_features
    if id is None and len(features) > 1:
        raise ValueError(
            f"id must be the column with the signal's name, because each signal has {len(features)} features"
        )
    signals, origin = read_frame(fleet, data, time=time, values=values, id=id, separate=id is None)
    fleet.complete_from(
        features=features if id is None else signals[0].features,
        interval=_usual([signal.interval for signal in signals]),
        signals=[signal.name for signal in signals],
        observations=max(signal.observed for signal in signals),
    )
    if id is not None:
        signals = [check_features(signal, fleet.given_features, chosen=values is not None) for signal in signals]
    rows = [_row_of(fleet, signal.name, number, len(signals)) for number, signal in enumerate(signals)]
    # Everything that can fail is done before anything is changed.
    gaps = [gap_before(fleet, fleet.last_times.get(row), signal) for row, signal in zip(rows, signals, strict=True)]
    for row, gap in zip(rows, gaps, strict=True):
        pass_gap(fleet, row, gap)
    before = [fleet.observations(row) for row in rows]
    verdicts = run_signals(fleet, rows, signals)
    for row, signal in zip(rows, signals, strict=True):
        if signal.times is not None and len(signal):
            fleet.last_times[row] = signal.times[-1]
    if fleet.parts.peers is not None:
        signals = [
            replace(one, features=tuple(fleet.features), values=judged.value[:, 0])
            for one, judged in zip(signals, verdicts, strict=True)
        ]
    results = {
        signal.name: result_of(fleet, row, signal, judged, first, origin)
        for row, signal, judged, first in zip(rows, signals, verdicts, before, strict=True)
    }
    return Results(results, origin, id or ALONE)


def _usual(intervals: Sequence[Any]) -> Any:
    """The interval that most signals have."""
    known = [one for one in intervals if one is not None]
    return max(known, key=known.count) if known else None


def _row_of(fleet: "Fleet", name: str, number: int, count: int) -> int:
    """The row of a signal: by its name or, if the fleet has only numbers, by position."""
    if name in fleet.names:
        return fleet.names.index(name)
    if not are_named(fleet.names, ALONE) and count == len(fleet.names):
        return number
    known = ", ".join(map(repr, fleet.names[:5])) + (", ..." if len(fleet.names) > 5 else "")
    raise ValueError(f"signals must be among the {len(fleet.names)} of the fleet, {known}, got {name!r}")


def gap_before(fleet: "Fleet", last_time: Any, signal: Signal) -> NDArray[Any]:
    """The times of observations missing between what was seen before and a signal; ValueError if it is not later."""
    if signal.times is None or not len(signal):
        return np.empty(0)
    try:
        return missing_times(last_time, signal.times[0], fleet.interval)
    except ValueError as error:
        raise ValueError(
            f"{error}; a detector continues from what it has seen, use `clone()` to start afresh"
        ) from None


def pass_gap(fleet: "Fleet", row: int, times: NDArray[Any]) -> None:
    """Insert missing observations for a signal."""
    if times.size:
        nothing = np.full((times.size, 1, len(fleet.given_features)), np.nan)
        fleet.run_arrays(nothing, rows=[row], times=times[:, np.newaxis])


def read_frame(
    fleet: "Fleet",
    data: Any,
    *,
    time: str | None,
    values: str | Iterable[str] | None,
    id: str | None = None,  # noqa: A002
    separate: bool = False,
    name: str = ALONE,
) -> tuple[list[Signal], Origin]:
    """The signals of a frame or series, and the form of the results; damage is reported with a `DataWarning`.

    If a frame has all features that the fleet knows by name, these are read unless `values` are given.
    """
    features = fleet.given_features
    if values is None and not separate and are_named(features, "feature"):
        values = features if set(features) <= set(map(str, eager_frame(data).columns)) else None
    with signals_from_frame(
        data, time=time, values=values, id=id, separate=separate, name=name, every=fleet.every,
        aggregate=fleet.aggregate, interval=None if fleet.every is not None else fleet.expected.interval_seconds,
        zone=fleet.expected.zone,
    ) as read:  # fmt: skip
        signals = list(read)
        column, zone = read.columns.time, read.summary.zone
        problems = merge_problems([*read.problems, *(problem for signal in signals for problem in signal.problems)])
    for problem in problems:
        if problem.severity == "damage":
            warnings.warn(f"the frame is damaged: {problem}", DataWarning, stacklevel=4)
    local = None if zone is None else zone.name
    return signals, Origin.of(data, column, regrouped=fleet.every is not None, local=local)


def called(data: Any) -> str:
    """The name of a frame's signal: a series has a name."""
    name = getattr(data, "name", None)
    return str(name) if isinstance(name, str) and name else ALONE


def check_features(signal: Signal, features: Sequence[str], *, chosen: bool) -> Signal:
    """The signal with its features in the detector's order; ValueError if they differ."""
    if len(signal.features) != len(features):
        raise ValueError(
            f"signal {signal.name!r} must have {len(features)} feature{'s' if len(features) != 1 else ''} like the "
            f"detector, got {len(signal.features)}: {', '.join(signal.features)}"
        )
    if len(features) > 1 and not chosen and are_named(features, "feature") and signal.features != tuple(features):
        raise ValueError(
            f"signal {signal.name!r} must have the features {', '.join(features)} as before, "
            f"got {', '.join(signal.features)}; choose columns with `values`"
        )
    return replace(signal, features=tuple(features)) if are_named(features, "feature") else signal


def run_signals(fleet: "Fleet", rows: Sequence[int], signals: Sequence[Signal]) -> list[Verdicts]:
    """Verdicts on histories of several signals of a fleet, in time order if they share a budget or are compared."""
    times = [np.arange(len(signal)) if signal.times is None else signal.times for signal in signals]
    parts: list[list[Verdicts]] = [[] for _ in signals]
    stretches = _together(times)
    if fleet.budget is None and fleet.parts.peers is None and len(stretches) > len(signals):
        # One by one: the numbers are the same, and long stretches are faster than wide ones.
        stretches = [([number], [slice(len(signal))]) for number, signal in enumerate(signals)]
    for there, slices in stretches:
        values = np.stack([signals[one].values[part] for one, part in zip(there, slices, strict=True)], axis=1)
        moments = np.stack([times[one][part] for one, part in zip(there, slices, strict=True)], axis=1)
        dated = signals[there[0]].times is not None
        verdicts = fleet.run_arrays(values, rows=[rows[one] for one in there], times=moments if dated else None)
        for column, one in enumerate(there):
            parts[one].append(verdicts.column(column))
    return [Verdicts.joined(part) for part in parts]


def _together(times: Sequence[NDArray[Any]]) -> list[tuple[list[int], list[slice]]]:
    """The stretches of time in which the same signals have observations, with each signal's part."""
    if all(np.array_equal(times[0], other) for other in times[1:]):
        return [(list(range(len(times))), [slice(len(times[0]))] * len(times))]
    moments = np.unique(np.concatenate(times))
    there = np.stack([np.isin(moments, one) for one in times], axis=1)
    begins = np.flatnonzero(np.append(True, (there[1:] != there[:-1]).any(axis=1)))
    return list(_stretches(there, begins))


def _stretches(there: NDArray[np.bool_], begins: NDArray[np.intp]) -> Iterator[tuple[list[int], list[slice]]]:
    seen = np.zeros(there.shape[1], dtype=np.int64)
    for first, last in zip(begins, np.append(begins[1:], len(there)), strict=True):
        present = np.flatnonzero(there[first])
        length = int(last - first)
        yield present.tolist(), [slice(int(seen[one]), int(seen[one]) + length) for one in present]
        seen[present] += length
