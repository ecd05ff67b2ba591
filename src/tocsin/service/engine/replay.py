"""What is stored of signals, taken by their detectors once more."""

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tocsin.service.as_json import time_text
from tocsin.service.engine.block import SignalBlock, Stretch
from tocsin.service.engine.kept_forecasts import Floats, KeptForecasts
from tocsin.service.engine.signals import NOTHING, RECENT, MonitoredSignal
from tocsin.service.errors import RefusedError
from tocsin.service.observations import Status
from tocsin.service.store import ObservationRow, StoreReader

log = logging.getLogger("tocsin.engine")

# The observations that a detector takes, in the order of their times.
TAKEN = (Status.SCORED, Status.MAINTENANCE, Status.ASIDE, Status.IMPORTED)
# So many stored observations of a signal are read at once: while they are taken, nobody can tell it to stop.
PIECE = 256
# A detector that is built anew learns from so many of the newest observations, or from more if it remembers more, but
# not from so many that a start would take hours.
REBUILT_FROM = 5000
MOST_REBUILT_FROM = 100_000

Check = Callable[[], None]
# Times and values of observations, by time.
Observed = tuple[Sequence[int], Sequence[tuple[float, ...]]]


@dataclass(frozen=True, slots=True)
class Said:
    """What people said of a signal's incidents, which a detector that learns anew has to know."""

    #: From when to when, both included, what was observed counts as missing.
    missing: Sequence[tuple[int, int]] = ()
    #: The observations after which what an incident brought was taken for normal, by time.
    accepted: Sequence[int] = ()

    def is_missing(self, time: int) -> bool:
        """Whether what was observed at this time counts as missing."""
        return any(first <= time <= last for first, last in self.missing)

    def next_accepted(self, time: int | None) -> int | None:
        """The first observation after this time after which something was taken for normal."""
        return next((one for one in self.accepted if time is None or one > time), None)


@dataclass(frozen=True, slots=True)
class Rebuilding:
    """What is at hand of a signal while it is rebuilt: forecasts, and the newest of the observations taken again."""

    foretold: KeptForecasts
    newest: deque[ObservationRow] = field(default_factory=lambda: deque(maxlen=RECENT))


NOTHING_SAID = Said()
NOTHING_FORETOLD: Floats = np.empty((0, 0, 0))
NOT_REBUILT: Mapping[MonitoredSignal, Rebuilding] = {}


def latest(*times: int | None) -> int | None:
    """The latest of those times that there are."""
    return max((time for time in times if time is not None), default=None)


def value_of(row: ObservationRow) -> tuple[float, ...]:
    """What a detector takes of a stored observation: nothing of what came in a maintenance window."""
    return (NOTHING,) * len(row.judged.value) if row.status is Status.MAINTENANCE else row.judged.value


def replay(
    reader: StoreReader,
    block: SignalBlock,
    signals: Sequence[MonitoredSignal],
    renewed: Mapping[MonitoredSignal, int | None],
    check: Check,
) -> int:
    """Let the detectors of a block take what was stored after their states; returns how many observations.

    Those that are renewed have no state, and take the newest observations. `check` is called now and then, and may
    raise to end it.
    """
    said = {signal: _begin_renewed(reader, signal) for signal in signals if signal in renewed}
    # Forecasts of another state are of no use.
    stored = reader.foretold([signal.row.id for signal in signals if signal not in renewed])
    shape = len(block.fleet.features), block.fleet.foretold_width
    rebuilt = {signal: Rebuilding(KeptForecasts(*shape, stored.get(signal.row.id))) for signal in signals}
    replayed = _take_stored(reader, block, signals, said, rebuilt, check)
    for signal in said:
        block.forget_incidents(signal.place)
        signal.last_time = latest(signal.last_time, renewed[signal])
    for signal in signals:
        remember_newest(reader, signal, rebuilt[signal].newest)
    block.take_closed()  # they were stored together with the observations
    return replayed


def _take_stored(
    reader: StoreReader, block: SignalBlock, signals: Sequence[MonitoredSignal], said: Mapping[MonitoredSignal, Said],
    rebuilt: Mapping[MonitoredSignal, Rebuilding] = NOT_REBUILT, check: Check | None = None,
) -> int:  # fmt: skip
    """Let the detectors of a block take what is stored after the last times of their signals, piece by piece.

    A piece ends where something was taken for normal.
    """
    taken = 0
    left = list(signals)
    while left:
        if check is not None:
            check()
        ends = {signal: said.get(signal, NOTHING_SAID).next_accepted(signal.last_time) for signal in left}
        pieces = {
            signal: reader.observations(
                signal.row.id, after=signal.last_time, until=ends[signal], statuses=TAKEN, limit=PIECE
            )
            for signal in left
        }
        _learn(block, pieces, said, rebuilt)
        for signal in rebuilt:
            rebuilt[signal].newest.extend(pieces.get(signal, ()))
        for signal, end in ends.items():
            if end is not None and len(pieces[signal]) < PIECE:
                block.fleet.accept(signal.place)
                signal.last_time = end
        left = [signal for signal in left if len(pieces[signal]) == PIECE or ends[signal] is not None]
        taken += sum(map(len, pieces.values()))
    return taken


def stretch_of(signal: MonitoredSignal, rows: Sequence[ObservationRow], said: Said) -> Stretch:
    """What a detector takes of stored observations: some of them as missing."""
    missing = (NOTHING,) * len(signal.row.features)
    values = [missing if said.is_missing(row.time) else value_of(row) for row in rows]
    return signal.stretch([row.time for row in rows], values)


def _learn(
    block: SignalBlock, pieces: Mapping[MonitoredSignal, Sequence[ObservationRow]],
    said: Mapping[MonitoredSignal, Said], rebuilt: Mapping[MonitoredSignal, Rebuilding],
) -> None:  # fmt: skip
    """Let detectors take stored observations, some of them as missing. What is known of forecasts is not made again."""
    known, rest = {}, {}
    for signal, rows in pieces.items():
        if rows:
            stretch = stretch_of(signal, rows, said.get(signal, NOTHING_SAID))
            foretold = rebuilt[signal].foretold.take(stretch.times) if signal in rebuilt else NOTHING_FORETOLD
            known[signal.place], rest[signal.place] = stretch.split(foretold)
    block.run(known)
    taken = block.run(rest)
    for signal, rows in pieces.items():
        if rows:
            if signal in rebuilt and not rebuilt[signal].foretold.broken:
                signal.note_forecasts(rest[signal.place].times, taken[signal.place].foretold)
            else:
                signal.unsaved_forecasts.break_off()  # there are none for what came before
            signal.last_time = rows[-1].time
            signal.unsaved += len(rows)


def remember_newest(reader: StoreReader, signal: MonitoredSignal, newest: Sequence[ObservationRow] = ()) -> None:
    """Let a signal know its newest observations, of which some are at hand, and whether it was only imported so far."""
    until = newest[0].time - 1 if newest else None
    more = RECENT - len(newest)
    before = reader.observations(signal.row.id, until=until, statuses=TAKEN, limit=more, newest=True) if more else []
    rows = (*before, *newest)
    last, signal.last_time = signal.last_time, None
    for row in rows:
        signal.note(row.time, row.judged)
    signal.live = not rows or rows[-1].status is not Status.IMPORTED
    signal.last_time = last  # a state that was brought from elsewhere may be ahead of what is stored


def learn_anew(
    reader: StoreReader,
    signal: MonitoredSignal,
    marks: Mapping[int, bool] | None = None,
    observed: Observed | None = None,
) -> None:
    """Let a fresh detector learn the reference of its signal, if it has one, and take the newest stored observations.

    Those of incidents that are taken out of calibration count as missing; `marks` says so of some incidents, by their
    numbers, whatever is stored of them. What was taken for normal is so again from the same observation on. `observed`
    is what is in the reference, None for what is stored of it.
    """
    _take_stored(reader, signal.block, [signal], {signal: _begin_anew(reader, signal, marks, observed)})
    signal.block.take_closed()


def learn_what_can_be(reader: StoreReader, signal: MonitoredSignal) -> None:
    """The same as `learn_anew` of a signal that was set aside, without its reference if that cannot be learned."""
    _take_stored(reader, signal.block, [signal], {signal: _begin_renewed(reader, signal)})
    signal.block.take_closed()
    remember_newest(reader, signal)


def learn_reference(
    reader: StoreReader,
    signal: MonitoredSignal,
    marks: Mapping[int, bool] | None = None,
    observed: Observed | None = None,
) -> None:
    """Let a fresh detector learn the reference of its signal, if it has one, and nothing else; see `learn_anew`.

    RefusedError if there is too little in it to learn from.
    """
    reference = signal.reference
    if reference is None:
        return
    times, values = reader.reference_values(signal.row.id) if observed is None else observed
    said = what_was_said(reader, signal, reference.start, marks)
    missing = (NOTHING,) * len(signal.row.features)
    values = [missing if said.is_missing(time) else value for time, value in zip(times, values, strict=True)]
    there = sum(any(number == number for number in value) for value in values)
    needed = signal.block.fleet.least_reference
    if there < needed:
        raise RefusedError(
            f"a reference of {signal.name!r} must have at least {needed} observations with a value, got {there} "
            f"from start {time_text(reference.start)} to end {time_text(reference.end)}"
        )
    signal.block.learn_reference(signal.place, signal.stretch(times, values).values)
    signal.last_time = times[-1]


def _begin_renewed(reader: StoreReader, signal: MonitoredSignal) -> Said:
    """The same as `_begin_anew` where nobody is there to be told: a reference that cannot be learned is given up."""
    try:
        return _begin_anew(reader, signal)
    except RefusedError as error:
        log.warning("the reference of %r is removed, since this release cannot learn it: %s", signal.name, error)
        signal.reference = None
        return _begin_anew(reader, signal)


def _begin_anew(
    reader: StoreReader,
    signal: MonitoredSignal,
    marks: Mapping[int, bool] | None = None,
    observed: Observed | None = None,
) -> Said:
    """Learn the reference, and go back to before the newest observations after it; returns what people said of them."""
    learn_reference(reader, signal, marks, observed)
    before = reader.time_before_newest(signal.row.id, rebuilt_from(signal), TAKEN)
    signal.last_time = latest(signal.last_time, before)
    return what_was_said(reader, signal, signal.last_time, marks)


def rebuilt_from(signal: MonitoredSignal) -> int:
    """How many of the newest observations a detector takes that is built anew."""
    sizes = signal.block.fleet.settings.sizes
    remembered = sizes.view_warm_up + sizes.window + max(sizes.final, sizes.block * sizes.blocks)
    return max(REBUILT_FROM, min(remembered, MOST_REBUILT_FROM))


def what_was_said(
    reader: StoreReader, signal: MonitoredSignal, since: int | None, marks: Mapping[int, bool] | None = None
) -> Said:
    """What people said of the incidents since then: those out of calibration, and false alarms while they went on."""
    incidents = reader.incidents(signal_id=signal.row.id, kind="alarm", since=since, limit=MOST_REBUILT_FROM)
    excluded = {one.id for one in incidents if (marks or {}).get(one.id, one.excluded)}
    missing = [(one.start, one.end) for one in incidents if one.id in excluded]
    accepted = [one.end for one in incidents if one.ended == "labelled" and one.id not in excluded]
    return Said(missing, sorted(accepted))
