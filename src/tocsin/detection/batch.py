"""Detection in the histories of many signals, on all cores."""

import multiprocessing
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.checks import ArgumentError, message_of
from tocsin.data import Signal, parse_time
from tocsin.detection.detector import Detector, ResolutionWarning
from tocsin.detection.incidents.audit import Audit
from tocsin.detection.incidents.budget import HistoryBudget
from tocsin.detection.incidents.incident import Incident
from tocsin.detection.results import verdict_columns
from tocsin.detection.settings.detector_settings import DetectorSettings

Sink = Callable[[str, dict[str, NDArray[Any]]], None]
Progress = Callable[[int], None]

# A history is processed in pieces of this many observations, to bound the memory for intermediate results.
PIECE = 20_000
# How many signals wait for each process, at most: enough to keep it busy, few enough to save memory.
WAITING = 4


@dataclass(frozen=True)
class SignalResult:
    """What was found in the history of one signal.

    `columns` are those of `verdict_columns`, None if not requested; `weights` the learned weights by lag, averaged over
    features and horizons; `interval` the seconds between two observations, if known; `longest_period` the longest
    return period ever reported. `judged_since` and `own_past_since` are the times, or the numbers of the observations,
    from which there may be alarms, and from which the signal's own past determines how rare they are; None if that
    never happened. `error` says why there is no result, `warning` what to keep in mind.
    """

    signal: str
    observations: int
    incidents: list[Incident]
    alarm_rate: float | None = None
    audit: Audit | None = None
    columns: dict[str, NDArray[Any]] | None = None
    weights: NDArray[Any] | None = None
    error: str | None = None
    warning: str | None = None
    interval: float | None = None
    longest_period: float = np.inf
    judged_since: Any = None
    own_past_since: Any = None


def detect_signal(
    signal: Signal,
    settings: Mapping[str, Any],
    *,
    keep: bool,
    reference: str | None = None,
    sink: Sink | None = None,
    progress: Progress | None = None,
    shared: HistoryBudget | None = None,
) -> SignalResult:
    """Run a new detector with these settings over the history of one signal.

    `reference` names a known-good stretch, in the format of `stretch_of`: the detector learns it first and judges all
    observations by it. The verdicts are passed to `sink` with the signal's name, piece by piece, and kept if `keep`.
    `progress` receives the number of observations done since the last call. With a `shared` budget the incidents are
    the signal's proposals, for `select_incidents`.
    """
    try:
        interval = settings.get("interval")
        given = {**settings, "interval": signal.interval if interval is None else interval}
        if isinstance(given["interval"], np.floating):
            given["interval"] = float(given["interval"])
        chosen = DetectorSettings(signal.features, **given)
        detector = Detector.of(chosen if shared is None else shared.proposing(chosen))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ResolutionWarning)
            detector.warn_if_short(signal)
        if reference is not None:
            detector.learn_reference(signal.values[stretch_of(signal, reference)])
        pieces = []
        judged_since = own_past_since = None
        for first in range(0, max(len(signal), 1), PIECE):
            piece = signal.piece(first, first + PIECE)
            verdicts = detector.run(piece.values, piece.times).verdicts
            warm, own = verdicts.warm[:, 0], (verdicts.warm & ~verdicts.estimated)[:, 0]
            judged_since = _first_time(piece, warm, first) if judged_since is None else judged_since
            own_past_since = _first_time(piece, own, first) if own_past_since is None else own_past_since
            columns = verdict_columns(piece, verdicts, first) if keep or sink else {}
            if sink is not None:
                sink(signal.name, columns)
            if keep:
                pieces.append(columns)
            if progress is not None:
                progress(len(piece))
        kept = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]} if keep else None
        return SignalResult(
            signal=signal.name,
            observations=signal.observed,
            incidents=[_of(incident, signal.name) for incident in detector.incidents],
            alarm_rate=detector.alarm_rate,
            audit=detector.audit,
            columns=kept,
            weights=detector.weights.mean(axis=(0, 1)) if keep else None,
            warning=str(caught[0].message) if caught else None,
            interval=detector.fleet.interval,
            longest_period=1 / detector.fleet.settings.rarest_rate,
            judged_since=judged_since,
            own_past_since=own_past_since,
        )
    except (ValueError, TypeError, MemoryError) as error:
        return SignalResult(signal.name, signal.observed, [], error=message_of(error))


def _first_time(piece: Signal, there: NDArray[np.bool_], first: int) -> Any:
    """The time or number of the first marked observation, or None."""
    if not there.any():
        return None
    at = int(np.argmax(there))
    return first + at if piece.times is None else piece.times[at]


def stretch_of(signal: Signal, text: str) -> slice:
    """The rows named by a text: a number of first rows ("400"), or a time range ("START/END")."""
    start, between, end = text.partition("/")
    if not between:
        if not start.isdecimal() or not 0 < int(start) <= len(signal):
            accepted = f"a number of rows from 1 to {len(signal)}, or START/END"
            raise ArgumentError("reference", f"must be {accepted}, got {text!r}")
        return slice(int(start))
    if signal.times is None:
        reason = f"must be a number of rows, because signal {signal.name!r} has no times, got {text!r}"
        raise ArgumentError("reference", reason)
    try:
        first, last = (parse_time(part.strip()) for part in (start, end))
    except ValueError as error:
        raise ArgumentError("reference", f"must be a number of rows, or START/END: {error}") from None
    rows = np.flatnonzero((signal.times >= first) & (signal.times < last))
    if not rows.size:
        raise ArgumentError("reference", f"must contain a row of signal {signal.name!r}, got {text!r}")
    return slice(int(rows[0]), int(rows[-1]) + 1)


def _of(incident: Incident, signal: str) -> Incident:
    incident.signal = signal
    return incident


def detect_signals(
    signals: Iterable[Signal],
    settings: Mapping[str, Any],
    *,
    keep: bool = False,
    reference: str | None = None,
    sink: Sink | None = None,
    progress: Progress | None = None,
    jobs: int = 1,
    shared: HistoryBudget | None = None,
) -> Iterator[SignalResult]:
    """`detect_signal` for each of the signals, in their order, on `jobs` processes.

    If a signal fails, its result says so; the others continue.
    """
    if jobs == 1:
        for signal in signals:
            yield detect_signal(
                signal, settings, keep=keep, reference=reference, sink=sink, progress=progress, shared=shared
            )
        return

    def taken(future: Future[SignalResult]) -> SignalResult:
        result = future.result()
        if sink is not None and result.columns is not None:
            sink(result.signal, result.columns)
        if progress is not None:
            progress(result.observations)
        return result if keep else replace(result, columns=None, weights=None)

    # Not forked: forking a process with threads (such as a progress bar's) may deadlock.
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting: deque[Future[SignalResult]] = deque()
        for signal in signals:
            work = pool.submit(
                detect_signal, signal, settings, keep=keep or sink is not None, reference=reference, shared=shared
            )
            waiting.append(work)
            if len(waiting) >= WAITING * jobs:
                yield taken(waiting.popleft())
        while waiting:
            yield taken(waiting.popleft())


def select_incidents(results: Sequence[SignalResult], shared: HistoryBudget) -> list[SignalResult]:
    """The results with only the proposed incidents that the budget allows."""
    proposed = [(result, incident) for result in results for incident in result.incidents]
    watched = [result.audit.observations if result.audit else 0 for result in results]
    chosen = shared.select(
        np.array([incident.return_period for _, incident in proposed], dtype=np.float64),
        np.array([result.interval or np.nan for result, _ in proposed]),
        np.array(watched, dtype=np.float64),
        np.array([result.interval or np.nan for result in results]),
    )
    told = {id(incident) for (_, incident), one in zip(proposed, chosen, strict=True) if one}
    for result, incident in proposed:
        incident.return_period = min(incident.return_period, result.longest_period)
    return [replace(result, incidents=[one for one in result.incidents if id(one) in told]) for result in results]
