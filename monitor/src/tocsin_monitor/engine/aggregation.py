"""Aggregates the observations of signals with `every`.

Each part is stored and acknowledged when it arrives. The aggregate has the start of its interval as its time, and is
judged when a part of a later interval arrives. Parts in memory can be read from the store at any time, so a crash loses
nothing.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter

import numpy as np

from tocsin.data import aggregated
from tocsin_monitor.engine.signals import AnySignal, MonitoredSignal, QuarantinedSignal
from tocsin_monitor.engine.stages import EARLIEST, Received
from tocsin_monitor.observations import Outcome, Status
from tocsin_monitor.store import PartRow, Store, StoreWriter

# How long parts are kept after their aggregate was judged, to recognise duplicates.
KEPT = 86400 * 10**9


@dataclass(frozen=True)
class Aggregated:
    """Received observations, with complete aggregates in place of their parts."""

    received: list[Received] = field(default_factory=list)
    #: Parts to store.
    parts: list[PartRow] = field(default_factory=list)
    #: The outcomes of the parts.
    outcomes: dict[Received, Outcome] = field(default_factory=dict)
    #: The monitored signals of the parts.
    signals: list[MonitoredSignal] = field(default_factory=list)

    def put(self, writer: StoreWriter) -> None:
        """Store the parts, and remove those that are too old to be sent again."""
        writer.add_parts(self.parts)
        for whole in self.received:
            if whole.signal.row.every is not None:
                writer.remove_parts(whole.signal.row.id, whole.time - KEPT)


def aggregate(received: Sequence[Received], store: Store) -> Aggregated:
    """Replace parts in the received observations with the aggregates that are complete now."""
    whole: list[Received] = []
    parts: defaultdict[AnySignal, list[Received]] = defaultdict(list)
    for one in received:
        if one.whole or one.signal.row.every is None:
            whole.append(one)
        else:
            parts[one.signal].append(one)
    each = [_aggregate_one(signal, sorted(some, key=attrgetter("time")), store) for signal, some in parts.items()]
    return _joined(Aggregated(whole), *each)


def _joined(*pieces: Aggregated) -> Aggregated:
    return Aggregated(
        [one for piece in pieces for one in piece.received],
        [row for piece in pieces for row in piece.parts],
        {part: outcome for piece in pieces for part, outcome in piece.outcomes.items()},
        [signal for piece in pieces for signal in piece.signals],
    )


def _aggregate_one(signal: AnySignal, parts: Sequence[Received], store: Store) -> Aggregated:
    if isinstance(signal, QuarantinedSignal):
        return _late(parts, Status.QUARANTINED, store)
    known = _open_parts(signal, store)
    late: list[Received] = []
    rows: list[PartRow] = []
    outcomes: dict[Received, Outcome] = {}
    for part in parts:
        if signal.last_time is not None and _begin(signal, part.time) <= signal.last_time:
            late.append(part)
        elif part.time in known:
            outcomes[part] = Outcome(signal.name, part.time, Status.DUPLICATE)
        else:
            known[part.time] = part.values
            outcomes[part] = Outcome(signal.name, part.time, Status.PART)
            rows.append(PartRow(signal.row.id, part.time, part.values))
    wholes = _wholes(signal, known, EARLIEST, history=parts[-1].history)
    return _joined(Aggregated(wholes, rows, outcomes, [signal]), _late(late, Status.LATE, store))


def complete_aggregates(signal: MonitoredSignal, until: int, store: Store) -> list[Received]:
    """The aggregates of a signal that begin before this time."""
    return [] if signal.row.every is None else _wholes(signal, _open_parts(signal, store), until, history=False)


def _open_parts(signal: MonitoredSignal, store: Store) -> dict[int, tuple[float, ...]]:
    """The stored parts of incomplete aggregates, by time."""
    last = None if signal.last_time is None else signal.last_time + _length(signal) - 1
    if signal.parts is None:
        with store.reading() as reader:
            signal.parts = {row.time: row.values for row in reader.parts(signal.row.id, last)}
    elif last is not None:
        for time in [time for time in signal.parts if time <= last]:
            del signal.parts[time]
    return signal.parts


def _late(parts: Sequence[Received], status: Status, store: Store) -> Aggregated:
    """Parts that come too late for their aggregate: stored, unless they are duplicates."""
    rows: list[PartRow] = []
    outcomes: dict[Received, Outcome] = {}
    if parts:
        with store.reading() as reader:
            there = reader.parts_at([(part.signal.row.id, part.time) for part in parts])
        for part in parts:
            place = part.signal.row.id, part.time
            outcomes[part] = Outcome(part.signal.name, part.time, Status.DUPLICATE if place in there else status)
            if place not in there:
                there.add(place)
                rows.append(PartRow(*place, part.values))
    return Aggregated([], rows, outcomes)


def _wholes(
    signal: MonitoredSignal, known: dict[int, tuple[float, ...]], until: int, *, history: bool
) -> list[Received]:
    """The aggregates that are complete, because there is a later part, or because they begin before `until`."""
    by_begin: defaultdict[int, list[int]] = defaultdict(list)
    for time in sorted(known):
        by_begin[_begin(signal, time)].append(time)
    newest = max((until, *by_begin))
    return [
        Received(signal, begin, _together(signal, [known[time] for time in times]), history=history, whole=True)
        for begin, times in by_begin.items()
        if begin < newest
    ]


def _together(signal: MonitoredSignal, values: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    return tuple(aggregated(np.array(values, dtype=np.float64), signal.row.aggregate).tolist())


def _length(signal: MonitoredSignal) -> int:
    return round((signal.row.every or 0.0) * 1e9)


def _begin(signal: MonitoredSignal, time: int) -> int:
    """The start of the interval that contains this time."""
    return time // _length(signal) * _length(signal)
