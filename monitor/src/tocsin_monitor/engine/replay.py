"""Feeds stored observations to detectors again."""

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.detection import Incident
from tocsin_monitor.as_json import time_text
from tocsin_monitor.engine.block import DetectorInput, SignalBlock
from tocsin_monitor.engine.kept_forecasts import Floats, KeptForecasts
from tocsin_monitor.engine.limits import LimitWatch
from tocsin_monitor.engine.limits import cursor_of as limits_cursor
from tocsin_monitor.engine.peers import cursor_of
from tocsin_monitor.engine.signals import NOTHING, RECENT, MonitoredSignal
from tocsin_monitor.errors import RefusedError
from tocsin_monitor.observations import Status, VerdictColumns
from tocsin_monitor.store import ObservationColumns, ObservationRow, StoreReader

log = logging.getLogger("tocsin.engine")

# The statuses of observations that a detector takes, in the order of time.
TAKEN = (Status.SCORED, Status.MAINTENANCE, Status.QUARANTINED, Status.IMPORTED, Status.OUT_OF_RANGE)
# Of these, those that it takes as missing.
TAKEN_AS_MISSING = (Status.MAINTENANCE, Status.OUT_OF_RANGE)
# Stored observations of a signal per step. A step cannot be interrupted.
PIECE = 256
# A new detector learns from this many of the newest observations, or from more if it remembers more, up to the second
# number: with more, a start could take hours.
REBUILT_FROM = 5000
MOST_REBUILT_FROM = 100_000

Check = Callable[[], None]
# Changed fields of incidents, by their number.
Marks = Mapping[int, Mapping[str, Any]]
# The times and values of observations, by time.
Observed = tuple[Sequence[int], Sequence[tuple[float, ...]]]


@dataclass(frozen=True, slots=True)
class IncidentLabels:
    """People's labels of a signal's incidents, as far as a detector that learns anew needs them."""

    #: From when to when, both included, observations count as missing.
    missing: Sequence[tuple[int, int]] = ()
    #: The times of the observations after which an incident was accepted as normal.
    accepted: Sequence[int] = ()
    #: The times of the observations after which an incident was labelled a fault, each with its number of alarms.
    faults: Sequence[tuple[int, int]] = ()

    def is_missing(self, time: int) -> bool:
        """Whether an observation at this time counts as missing."""
        return any(first <= time <= last for first, last in self.missing)

    def next_act(self, time: int | None) -> int | None:
        """The time of the next observation after which a label changed the detector."""
        acts = (*self.accepted, *(given for given, _ in self.faults))
        return min((one for one in acts if time is None or one > time), default=None)

    def act(self, signal: MonitoredSignal, time: int) -> None:
        """Change the detector as labels did after the observation at this time."""
        fleet = signal.block.fleet
        if time in self.accepted:
            fleet.accept(signal.place)
        for given, alarms in self.faults:
            if given == time:
                fleet.label_fault(signal.place, alarms)
        signal.last_time = time


@dataclass(frozen=True, slots=True)
class Rebuilding:
    """What is known about a signal while it is rebuilt: stored forecasts, and its newest observations so far."""

    kept_forecasts: KeptForecasts
    newest: deque[ObservationRow] = field(default_factory=lambda: deque(maxlen=RECENT))


NO_LABELS = IncidentLabels()
NOTHING_FORETOLD: Floats = np.empty((0, 0, 0))
NOT_REBUILT: Mapping[MonitoredSignal, Rebuilding] = {}


def latest(*times: int | None) -> int | None:
    """The latest of the times that are not None."""
    return max((time for time in times if time is not None), default=None)


def value_of(row: ObservationRow) -> tuple[float, ...]:
    """The values that a detector takes from a stored observation: missing ones in maintenance and out of range."""
    return (NOTHING,) * len(row.judged.value) if row.status in TAKEN_AS_MISSING else row.judged.value


def replay(
    reader: StoreReader,
    block: SignalBlock,
    signals: Sequence[MonitoredSignal],
    renewed: Mapping[MonitoredSignal, int | None],
    check: Check,
) -> int:
    """Feed the observations stored after their states to the detectors of a block; returns how many.

    Renewed detectors have no state and take the newest observations. `check` is called now and then, and may raise to
    stop.
    """
    labels = {signal: _begin_renewed(reader, signal) for signal in signals if signal in renewed}
    # Renewed detectors cannot use forecasts made after another state.
    stored = reader.kept_forecasts([signal.row.id for signal in signals if signal not in renewed])
    shape = len(block.fleet.features), block.fleet.forecast_width
    rebuilt = {signal: Rebuilding(KeptForecasts(*shape, stored.get(signal.row.id))) for signal in signals}
    replayed = _take_stored(reader, block, signals, labels, rebuilt, check)
    for signal in labels:
        block.fleet.forget_incidents(signal.place)
        signal.last_time = latest(signal.last_time, renewed[signal])
    for signal in signals:
        remember_newest(reader, signal, rebuilt[signal].newest)
        remember_limits(reader, signal)
    block.take_closed()  # these incidents were stored together with the observations
    return replayed


def _take_stored(
    reader: StoreReader, block: SignalBlock, signals: Sequence[MonitoredSignal],
    labels: Mapping[MonitoredSignal, IncidentLabels],
    rebuilt: Mapping[MonitoredSignal, Rebuilding] = NOT_REBUILT, check: Check | None = None,
) -> int:  # fmt: skip
    """Feed the observations stored after each signal's last time to the detectors of a block, in pieces.

    A piece ends where a label changed the detector.
    """
    taken = 0
    left = list(signals)
    while left:
        if check is not None:
            check()
        ends = {signal: labels.get(signal, NO_LABELS).next_act(signal.last_time) for signal in left}
        pieces = {
            signal: reader.observations(
                signal.row.id, after=signal.last_time, until=ends[signal], statuses=TAKEN, limit=PIECE
            )
            for signal in left
        }
        _learn(block, pieces, labels, rebuilt)
        for signal in rebuilt:
            rebuilt[signal].newest.extend(pieces.get(signal, ()))
        for signal, end in ends.items():
            if end is not None and is_reached(end, [row.time for row in pieces[signal]], PIECE):
                labels[signal].act(signal, end)
        left = [signal for signal in left if len(pieces[signal]) == PIECE or ends[signal] is not None]
        taken += sum(map(len, pieces.values()))
    return taken


@dataclass(frozen=True, slots=True)
class TakenPiece:
    """Stored observations that a new detector took: its verdicts, and the incidents that ended."""

    observations: ObservationColumns
    #: None if there are no observations.
    verdicts: VerdictColumns | None
    closed: Sequence[Incident]
    #: Whether there may be more observations.
    more: bool

    def __len__(self) -> int:
        return len(self.observations.times)


def take_piece(reader: StoreReader, new: MonitoredSignal, labels: IncidentLabels, most: int) -> TakenPiece:
    """Let a new detector take the next `most` stored observations, up to where a label changed it."""
    return take_pieces(reader, {new: labels}, most)[new]


def take_pieces(
    reader: StoreReader, labels: Mapping[MonitoredSignal, IncidentLabels], most: int
) -> dict[MonitoredSignal, TakenPiece]:
    """The same for several signals of one block, which is faster than one after the other."""
    ends = {new: some.next_act(new.last_time) for new, some in labels.items()}
    found = {
        new: reader.observation_columns(new.row.id, after=new.last_time, until=end, statuses=TAKEN, limit=most)
        for new, end in ends.items()
    }
    given = {new.place: _columns_input(new, some, labels[new]) for new, some in found.items() if len(some.times)}
    block = next(iter(labels)).block
    verdicts = block.run_columns(given)
    for new, some in found.items():
        if len(some.times):
            new.last_time = int(some.times[-1])
        if (end := ends[new]) is not None and is_reached(end, some.times, most):
            labels[new].act(new, end)
    closed: dict[int, list[Incident]] = {}
    for place, incident in block.take_closed():
        closed.setdefault(place, []).append(incident)
    return {
        new: TakenPiece(
            some, verdicts.get(new.place), closed.get(new.place, ()), len(some.times) == most or ends[new] is not None
        )
        for new, some in found.items()
    }


def is_reached(end: int, times: Sequence[int] | NDArray[np.int64], most: int) -> bool:
    """Whether the observations with these times, at most `most`, are all that there are until `end`."""
    return len(times) < most or bool(times[-1] == end)


def _columns_input(signal: MonitoredSignal, observations: ObservationColumns, labels: IncidentLabels) -> DetectorInput:
    """The same as `stored_input`, from columns."""
    times, values = observations.times, observations.values.copy()
    values[np.isin(observations.statuses, TAKEN_AS_MISSING)] = NOTHING
    for first, last in labels.missing:
        values[(first <= times) & (times <= last)] = NOTHING
    return signal.detector_input(times, values)


def stored_input(signal: MonitoredSignal, rows: Sequence[ObservationRow], labels: IncidentLabels) -> DetectorInput:
    """The detector input from stored observations, some of which count as missing."""
    missing = (NOTHING,) * len(signal.row.features)
    values = [missing if labels.is_missing(row.time) else value_of(row) for row in rows]
    return signal.detector_input([row.time for row in rows], values)


def _learn(
    block: SignalBlock, pieces: Mapping[MonitoredSignal, Sequence[ObservationRow]],
    labels: Mapping[MonitoredSignal, IncidentLabels], rebuilt: Mapping[MonitoredSignal, Rebuilding],
) -> None:  # fmt: skip
    """Feed stored observations to detectors. Some count as missing, and stored forecasts are not made again."""
    known, rest = {}, {}
    for signal, rows in pieces.items():
        if rows:
            given = stored_input(signal, rows, labels.get(signal, NO_LABELS))
            kept_forecasts = rebuilt[signal].kept_forecasts.take(given.times) if signal in rebuilt else NOTHING_FORETOLD
            known[signal.place], rest[signal.place] = given.split(kept_forecasts)
    block.run(known)
    taken = block.run(rest)
    for signal, rows in pieces.items():
        if rows:
            if signal in rebuilt and not rebuilt[signal].kept_forecasts.broken:
                signal.note_forecasts(rest[signal.place].times, taken[signal.place].kept_forecasts)
            else:
                signal.unsaved_forecasts.break_off()  # the earlier forecasts are missing
            signal.last_time = rows[-1].time
            signal.unsaved += len(rows)


def remember_newest(reader: StoreReader, signal: MonitoredSignal, newest: Sequence[ObservationRow] = ()) -> None:
    """Set a signal's newest observations, some of which are given, and whether it sends live."""
    until = newest[0].time - 1 if newest else None
    more = RECENT - len(newest)
    before = reader.observations(signal.row.id, until=until, statuses=TAKEN, limit=more, newest=True) if more else []
    rows = (*before, *newest)
    last, signal.last_time = signal.last_time, None
    for row in rows:
        signal.note(row.time, row.judged)
    remember_peer(reader, signal, rows)
    signal.live = not rows or rows[-1].status is not Status.IMPORTED
    signal.last_time = last  # a state from another monitor may be ahead of the stored observations


def remember_peer(reader: StoreReader, signal: MonitoredSignal, newest: Sequence[ObservationRow] = ()) -> None:
    """Set what is known for comparing a signal with others, if it is."""
    peer = signal.peer
    if peer is None or not signal.step:
        return
    for row in newest:
        if row.status is Status.SCORED:
            peer.recent.append((row.time // signal.step, row.judged.value[: len(peer.missing)]))
    learned = reader.cursor(cursor_of(signal.row.id))
    if learned is not None:
        peer.restore(learned)


def remember_limits(reader: StoreReader, signal: MonitoredSignal) -> None:
    """Set what is known of a signal's limits, if it has any: what is stored, and the observations since."""
    rules = signal.row.rules
    if rules.limit_high is None and rules.limit_low is None:
        return
    stored = reader.cursor(limits_cursor(signal.row.id))
    if stored is None:
        return
    signal.watch = watch = LimitWatch.restored(stored)
    while rows := reader.observations(signal.row.id, after=watch.time, statuses=(Status.SCORED,), limit=PIECE):
        watch.take_all((row.time, row.judged.value) for row in rows)


def learn_anew(
    reader: StoreReader,
    signal: MonitoredSignal,
    marks: Marks | None = None,
    observed: Observed | None = None,
) -> None:
    """Let a new detector learn its signal's reference, if there is one, and the newest stored observations.

    Observations of incidents excluded from calibration count as missing; `marks` are changed fields of incidents, by
    number. What labels changed is changed again at the same observation. `observed` is the content of the reference;
    None to read it from the store.
    """
    _take_stored(reader, signal.block, [signal], {signal: _begin_anew(reader, signal, marks, observed)})
    signal.block.take_closed()


def learn_what_can_be(reader: StoreReader, signal: MonitoredSignal) -> None:
    """Like `learn_anew`, for a signal that was quarantined; it drops a reference that cannot be learned."""
    _take_stored(reader, signal.block, [signal], {signal: _begin_renewed(reader, signal)})
    signal.block.take_closed()
    remember_newest(reader, signal)
    remember_limits(reader, signal)


def learn_reference(
    reader: StoreReader,
    signal: MonitoredSignal,
    marks: Marks | None = None,
    observed: Observed | None = None,
) -> None:
    """Let a new detector learn only its signal's reference, if there is one; see `learn_anew`.

    RefusedError if the reference has too few observations.
    """
    reference = signal.reference
    if reference is None:
        return
    times, values = reader.reference_values(signal.row.id) if observed is None else observed
    labels = incident_labels(reader, signal, reference.start, marks)
    missing = (NOTHING,) * len(signal.row.features)
    values = [missing if labels.is_missing(time) else value for time, value in zip(times, values, strict=True)]
    there = sum(any(number == number for number in value) for value in values)
    needed = signal.block.fleet.least_reference
    if there < needed:
        raise RefusedError(
            f"a reference of {signal.name!r} must have at least {needed} observations with a value, got {there} "
            f"from start {time_text(reference.start)} to end {time_text(reference.end)}"
        )
    signal.block.fleet.learn_reference(signal.detector_input(times, values).values, row=signal.place)
    signal.last_time = times[-1]


def _begin_renewed(reader: StoreReader, signal: MonitoredSignal) -> IncidentLabels:
    """Like `_begin_anew`, but drop a reference that cannot be learned, because no caller could handle the error."""
    try:
        return _begin_anew(reader, signal)
    except RefusedError as error:
        log.warning("the reference of %r is removed, because this release cannot learn it: %s", signal.name, error)
        signal.reference = None
        return _begin_anew(reader, signal)


def _begin_anew(
    reader: StoreReader,
    signal: MonitoredSignal,
    marks: Marks | None = None,
    observed: Observed | None = None,
) -> IncidentLabels:
    """Learn the reference, and set the time from which to replay the newest observations; returns their labels."""
    learn_reference(reader, signal, marks, observed)
    before = reader.time_before_newest(signal.row.id, rebuilt_from(signal), TAKEN)
    signal.last_time = latest(signal.last_time, before)
    return incident_labels(reader, signal, signal.last_time, marks)


def rebuilt_from(signal: MonitoredSignal) -> int:
    """How many of the newest observations a detector takes that is built anew."""
    fleet = signal.block.fleet
    sizes = fleet.settings.sizes
    remembered = fleet.least_reference + sizes.window + max(sizes.final, sizes.block * sizes.blocks)
    return max(REBUILT_FROM, min(remembered, MOST_REBUILT_FROM))


def incident_labels(
    reader: StoreReader, signal: MonitoredSignal, since: int | None, marks: Marks | None = None
) -> IncidentLabels:
    """People's labels since a time: excluded incidents, those ended as false alarms, and faults."""
    found = reader.incidents(signal_id=signal.row.id, kind="alarm", since=since, limit=MOST_REBUILT_FROM)
    incidents = [replace(one, **(marks or {}).get(one.id, {})) for one in found]
    included = [one for one in incidents if not one.excluded]
    return IncidentLabels(
        missing=[(one.start, one.end) for one in incidents if one.excluded],
        accepted=[one.end for one in included if one.ended == "labelled"],
        faults=[(one.given_back, one.alarms) for one in included if one.given_back is not None],
    )
