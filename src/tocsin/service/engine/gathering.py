"""Signals that are judged every so often: what comes in between is put together.

A part is stored as it comes, and acknowledged then. The whole, at the time at which it begins, is judged when something
comes that is later. What is known of parts is made of what is stored at any moment, so nothing is lost by a crash.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

import numpy as np

from tocsin.data.resampling import aggregated
from tocsin.service.engine.aside import Aside
from tocsin.service.engine.core import Core
from tocsin.service.engine.rules import Arrival
from tocsin.service.engine.watched import Watched
from tocsin.service.observations import Outcome, Status
from tocsin.service.store import PartRow, StoreWriter

# So long parts are kept after their whole was judged: one that is sent again is known by its time.
KEPT = 86400 * 10**9


@dataclass
class Gathered:
    """What arrived, with wholes in place of their parts."""

    arrivals: list[Arrival] = field(default_factory=list)
    #: Parts to be stored.
    parts: list[PartRow] = field(default_factory=list)
    #: The signals that they are of.
    signals: list[Watched] = field(default_factory=list)

    def put(self, writer: StoreWriter) -> None:
        """Store the parts; those that are too old to come again go."""
        writer.add_parts(self.parts)
        for whole in self.arrivals:
            if whole.signal.row.every is not None:
                writer.remove_parts(whole.signal.row.id, whole.time - KEPT)


def gather(core: Core, arrivals: Sequence[Arrival]) -> Gathered:
    """Take the parts out of what arrived, and put in what is whole by now."""
    found = Gathered()
    by_signal: defaultdict[Watched | Aside, list[Arrival]] = defaultdict(list)
    for arrival in arrivals:
        if arrival.whole or arrival.signal.row.every is None:
            found.arrivals.append(arrival)
        else:
            by_signal[arrival.signal].append(arrival)
    for signal, parts in by_signal.items():
        _gather_one(core, signal, sorted(parts, key=attrgetter("time")), found)
    return found


def _gather_one(core: Core, signal: Watched | Aside, parts: Sequence[Arrival], found: Gathered) -> None:
    if isinstance(signal, Aside):
        _keep_late(core, parts, Status.ASIDE, found)
        return
    known = _open_parts(core, signal)
    late = []
    for part in parts:
        if signal.last_time is not None and _begin(signal, part.time) <= signal.last_time:
            late.append(part)
        elif part.time in known:
            part.outcome = Outcome(signal.name, part.time, Status.DUPLICATE)
        else:
            known[part.time] = part.values
            part.outcome = Outcome(signal.name, part.time, Status.PART)
            found.parts.append(PartRow(signal.row.id, part.time, part.values))
    _keep_late(core, late, Status.LATE, found)
    found.signals.append(signal)
    found.arrivals += _wholes(signal, known, history=parts[-1].history)


def _open_parts(core: Core, signal: Watched) -> dict[int, tuple[float, ...]]:
    """The parts that are stored and not judged yet, by time."""
    last = None if signal.last_time is None else signal.last_time + _length(signal) - 1
    if signal.parts is None:
        with core.store.reading() as reader:
            signal.parts = {row.time: row.values for row in reader.parts(signal.row.id, last)}
    elif last is not None:
        for time in [time for time in signal.parts if time <= last]:
            del signal.parts[time]
    return signal.parts


def _keep_late(core: Core, parts: Iterable[Arrival], status: Status, found: Gathered) -> None:
    """Keep what no whole can have any more, unless it is there."""
    parts = list(parts)
    if not parts:
        return
    with core.store.reading() as reader:
        there = reader.parts_at([(part.signal.row.id, part.time) for part in parts])
    for part in parts:
        place = part.signal.row.id, part.time
        part.outcome = Outcome(part.signal.name, part.time, Status.DUPLICATE if place in there else status)
        if place not in there:
            there.add(place)
            found.parts.append(PartRow(*place, part.values))


def _wholes(signal: Watched, known: dict[int, tuple[float, ...]], *, history: bool) -> list[Arrival]:
    """What is whole, since there is something later."""
    by_begin: defaultdict[int, list[int]] = defaultdict(list)
    for time in sorted(known):
        by_begin[_begin(signal, time)].append(time)
    newest = max(by_begin, default=0)
    return [
        Arrival(signal, begin, _together(signal, [known[time] for time in times]), history=history, whole=True)
        for begin, times in by_begin.items()
        if begin < newest
    ]


def _together(signal: Watched, values: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    return tuple(aggregated(np.array(values, dtype=np.float64), signal.row.aggregate).tolist())


def _length(signal: Watched) -> int:
    return round((signal.row.every or 0.0) * 1e9)


def _begin(signal: Watched, time: int) -> int:
    """When that begins which something of this time is a part of."""
    return time // _length(signal) * _length(signal)
