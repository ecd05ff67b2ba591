"""Detection in the histories of many signals, on all cores."""

import math
import multiprocessing
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.checks import ArgumentError, message_of
from tocsin.constants import constants
from tocsin.data import Origin, Signal, parse_time
from tocsin.data.zones import Zone
from tocsin.detection.detector import Detector, ResolutionWarning
from tocsin.detection.incidents.audit import audit_of_share
from tocsin.detection.incidents.budget import HistoryBudget
from tocsin.detection.incidents.incident import Incident
from tocsin.detection.incidents.verdict import Verdicts
from tocsin.detection.results import Result, first_time, result_of, verdict_columns
from tocsin.detection.settings.history_settings import HistorySettings

Sink = Callable[[str, dict[str, NDArray[Any]]], None]
Progress = Callable[[int], None]

# A history is processed in pieces of this many observations, to bound the memory for intermediate results.
PIECE = 20_000
# How many signals wait for each process, at most: enough to keep it busy, few enough to save memory.
WAITING = 4


def detect_signal(
    signal: Signal,
    settings: Mapping[str, Any],
    *,
    keep: bool,
    reference: str | None = None,
    sink: Sink | None = None,
    progress: Progress | None = None,
    shared: HistoryBudget | None = None,
) -> Result:
    """Run a new detector with these settings over the history of one signal.

    `reference` names a known-good stretch, in the format of `stretch_of`: the detector learns it first and judges all
    observations by it. The verdicts are passed to `sink` with the signal's name, piece by piece, and kept if `keep`.
    `progress` receives the number of observations done since the last call. With a `shared` budget the incidents are
    the signal's proposals, for `select_incidents`. With a `zone` among the settings, all times of the result are local.
    """
    try:
        interval = settings.get("interval")
        given = {**settings, "interval": signal.interval if interval is None else interval}
        if isinstance(given["interval"], np.floating):
            given["interval"] = float(given["interval"])
        # It is the whole history: how long it is determines the alarm rate, if none was given.
        chosen = HistorySettings(signal.features, **given).of_a_signal(observations=signal.observed)
        detector = Detector.of(chosen if shared is None else shared.proposing(chosen))
        zone = detector.fleet.zone
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ResolutionWarning)
            detector.warn_about(signal)
        known_good = slice(0, 0) if reference is None else stretch_of(signal, reference, zone)
        if reference is not None:
            detector.learn_reference(signal.values[known_good])
        shown = replace(signal, times=_shown(signal.times, zone))
        pieces: list[Verdicts] = []
        judged_since = own_past_since = None
        for first in range(0, max(len(signal), 1), PIECE):
            piece, shown_piece = signal.piece(first, first + PIECE), shown.piece(first, first + PIECE)
            verdicts = detector.run(piece.values, piece.times).kept_verdicts
            warm = verdicts.warm[:, 0]
            if judged_since is None:
                judged_since = first_time(shown_piece, warm, first)
            if own_past_since is None:
                own_past_since = first_time(shown_piece, warm & ~verdicts.estimated[:, 0], first)
            if sink is not None:
                sink(signal.name, verdict_columns(shown_piece, verdicts, first))
            if keep or not pieces:  # a result is made of some verdicts, and drops them if they are not wanted
                pieces.append(verdicts)
            if progress is not None:
                progress(len(piece))
        result = replace(
            result_of(detector.fleet, 0, shown, Verdicts.joined(pieces), 0, Origin()),
            # Somebody has said that nothing was wrong in the reference.
            incident_list=[
                _in_zone(replace(incident, signal=signal.name), zone)
                for incident in detector.incidents
                if not known_good.start <= incident.first <= incident.last < known_good.stop
            ],
            judged_since=judged_since,
            own_past_since=own_past_since,
            warning="; ".join(str(one.message) for one in caught) or None,
        )
        return result if keep else result.without_verdicts()
    except (ValueError, TypeError, MemoryError) as error:
        return Result(signal.piece(0, 0), signal.observed, error=message_of(error))


def stretch_of(signal: Signal, text: str, zone: Zone | None = None) -> slice:
    """The rows named by a text: a number of first rows ("400"), or a time range ("START/END", local in `zone`)."""
    start, between, end = text.partition("/")
    if not between:
        if not start.isdecimal() or not 0 < int(start) <= len(signal):
            accepted = f"a number of rows from 1 to {len(signal)}, or START/END"
            raise ArgumentError("reference", f"must be {accepted}, got {text!r}")
        return slice(0, int(start))
    if signal.times is None:
        reason = f"must be a number of rows, because signal {signal.name!r} has no times, got {text!r}"
        raise ArgumentError("reference", reason)
    try:
        first, last = (parse_time(part.strip(), zone=zone) for part in (start, end))
    except ValueError as error:
        raise ArgumentError("reference", f"must be a number of rows, or START/END: {error}") from None
    rows = np.flatnonzero((signal.times >= first) & (signal.times < last))
    if not rows.size:
        raise ArgumentError("reference", f"must contain a row of signal {signal.name!r}, got {text!r}")
    return slice(int(rows[0]), int(rows[-1]) + 1)


def _in_zone(incident: Incident, zone: Zone | None) -> Incident:
    """An incident with times as clocks in the zone show them."""
    for name in ("start", "end", "peak", "began_earliest", "began_latest"):
        setattr(incident, name, _shown(getattr(incident, name), zone))
    return incident


def _shown(times: Any, zone: Zone | None) -> Any:
    """What clocks in a zone show at a time or times; numbers stay as they are."""
    dated = zone is not None and isinstance(times, (np.datetime64, np.ndarray)) and times.dtype.kind == "M"
    return zone.shown(np.asarray(times))[()] if zone is not None and dated else times


def detect_signals(
    signals: Iterable[Signal],
    settings: Mapping[str, Any] | Callable[[Signal], Mapping[str, Any]],
    *,
    keep: bool = False,
    reference: str | None = None,
    sink: Sink | None = None,
    progress: Progress | None = None,
    jobs: int = 1,
    shared: HistoryBudget | None = None,
) -> Iterator[Result]:
    """`detect_signal` for each of the signals, in their order, on `jobs` processes.

    `settings` are those of all signals, or a function that gives those of each. If a signal fails, its result says so;
    the others continue.
    """
    settings_of = settings if callable(settings) else lambda _: settings
    if jobs == 1:
        for signal in signals:
            yield detect_signal(
                signal, settings_of(signal), keep=keep, reference=reference, sink=sink, progress=progress, shared=shared
            )
        return

    def taken(future: Future[Result]) -> Result:
        result = future.result()
        if sink is not None and result.verdicts is not None:
            sink(result.signal, result.columns)
        if progress is not None:
            progress(result.observations)
        return result if keep else result.without_verdicts()

    # Not forked: forking a process with threads (such as a progress bar's) may deadlock.
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting: deque[Future[Result]] = deque()
        for signal in signals:
            chosen, kept = settings_of(signal), keep or sink is not None
            work = pool.submit(detect_signal, signal, chosen, keep=kept, reference=reference, shared=shared)
            waiting.append(work)
            if len(waiting) >= WAITING * jobs:
                yield taken(waiting.popleft())
        while waiting:
            yield taken(waiting.popleft())


def share_alarm_rate(results: Sequence[Result]) -> list[Result]:
    """The results of signals with the same times, with only the incidents that one alarm rate for all tolerates.

    Each signal proposes as many incidents as it may have alone. Of n signals, those n times as rare are kept. The
    threshold then follows what was kept, as that of a single signal does (`decide`).
    """
    proposed = sorted((one for result in results for one in result.incident_list), key=lambda one: one.first)
    rate = next((result.audit.promised for result in results if result.audit is not None), 0.0)
    step, tightened, told = constants().tightening, 0.0, set()
    before = min([result.warm_up for result in results] + [one.first for one in proposed[:1]])
    for one in proposed:
        tightened = min(tightened + step * rate * (one.first - before), 4.0 * step)
        before = one.first
        if len(results) < rate * math.exp(tightened) * one.return_period:
            told.add(id(one))
            tightened -= step
    return [_with_incidents(result, told, len(results)) for result in results]


def _with_incidents(result: Result, told: set[int], signals: int) -> Result:
    """A result with only the incidents that were told, of signals that share an alarm rate."""
    kept = [one for one in result.incident_list if id(one) in told]
    audit = None if result.audit is None else audit_of_share(result.audit, len(kept), signals)
    if result.verdicts is None:
        return replace(result, incident_list=kept, audit=audit)
    within = np.zeros_like(result.verdicts.alarm)
    for one in kept:
        within[one.first : one.last + 1] = True
    verdicts = replace(result.verdicts, alarm=result.verdicts.alarm & within)
    return replace(result, incident_list=kept, audit=audit, verdicts=verdicts)


def select_incidents(results: Sequence[Result], shared: HistoryBudget) -> list[Result]:
    """The results with only the proposed incidents that the budget allows."""
    proposed = [(result, incident) for result in results for incident in result.incident_list]
    watched = [result.audit.observations if result.audit else 0 for result in results]
    chosen = shared.select(
        np.array([incident.rarity for _, incident in proposed], dtype=np.float64),
        np.array([result.interval or np.nan for result, _ in proposed]),
        np.array(watched, dtype=np.float64),
        np.array([result.interval or np.nan for result in results]),
    )
    allowed = {id(incident) for (_, incident), one in zip(proposed, chosen, strict=True) if one}
    for result, incident in proposed:
        incident.return_period = min(incident.return_period, result.longest_period)
    return [
        replace(result, incident_list=[one for one in result.incident_list if id(one) in allowed]) for result in results
    ]
