"""How far the signals of a template with `peers` are from each other.

Each observation carries the signal's distance from its peers in the interval before, since they have sent theirs by
now. So no signal waits for another, and a member that is late or missing is left out. The store keeps distances with
their observations, and what is learned from them, in one transaction: a restart changes nothing.
"""

import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tocsin.detection import PEERS_LEARNED, against_peers
from tocsin_monitor.observations import Status

if TYPE_CHECKING:
    from tocsin_monitor.engine.signals import MonitoredSignal
    from tocsin_monitor.engine.stages import Ordered, Received

# A member may be this many intervals ahead of the others.
AHEAD = 60

Values = tuple[float, ...]


class Peer:
    """What is known of a signal that is compared with others."""

    def __init__(self, features: int) -> None:
        self.missing: Values = (float("nan"),) * features
        #: Its newest values, with their intervals.
        self.recent: deque[tuple[int, Values]] = deque(maxlen=AHEAD)
        #: Its first distances, and the interval of the last one.
        self._first: list[Values] = []
        self._until = 0
        self._level = self.missing
        #: Whether it has learned something that is not stored.
        self.unsaved = False

    def values(self, interval: int) -> Values:
        """Its last values in an interval."""
        return next((values for at, values in reversed(self.recent) if at == interval), self.missing)

    def level(self, interval: int) -> Values:
        """How far it usually is from the others, if that was known before an interval.

        So all members are compared with the same levels in an interval, in whatever order they send.
        """
        return self._level if self._until < interval else self.missing

    def learn(self, distances: Values, interval: int) -> None:
        """Keep one of the first distances."""
        if len(self._first) < PEERS_LEARNED and np.isfinite(distances).all():
            self._first.append(distances)
            self._until, self.unsaved = interval, True
            self._find_level()

    def _find_level(self) -> None:
        if len(self._first) == PEERS_LEARNED:
            self._level = tuple(np.median(self._first, axis=0).tolist())

    def saved(self) -> str:
        """What it has learned, as text to store."""
        self.unsaved = False
        return json.dumps([self._until, self._first])

    def restore(self, text: str) -> None:
        """Continue with what was stored."""
        self._until, first = json.loads(text)
        self._first = [tuple(one) for one in first]
        self._find_level()


def cursor_of(signal_id: int) -> str:
    """The key under which the store keeps what a signal has learned about its peers."""
    return f"peers/{signal_id}"


def distances(
    signals: Iterable["MonitoredSignal"], fresh: Mapping["MonitoredSignal", Sequence["Ordered"]]
) -> dict["Received", Values]:
    """The distances from their peers that come with these observations, of those that have peers.

    Signals with the same template, features and interval are peers. Observations are taken in the order of time, so the
    result does not depend on how they are split into turns, as long as all of them come in that order.
    """
    given = [
        (one.received, signal, signal.peer)
        for signal, some in fresh.items()
        if signal.peer is not None
        for one in some
        if one.status is Status.SCORED
    ]
    if not given:
        return {}
    members: dict[object, list[tuple[MonitoredSignal, Peer]]] = {_group(signal): [] for _, signal, _ in given}
    for one in signals:
        if one.peer is not None and _group(one) in members:
            members[_group(one)].append((one, one.peer))
    found: dict[Received, Values] = {}
    newest: dict[object, tuple[int, dict[MonitoredSignal, Values]]] = {}
    for received, signal, peer in sorted(given, key=lambda one: one[0].time):
        if not signal.step:
            found[received] = peer.missing
            continue
        group, interval = _group(signal), received.time // signal.step
        if group not in newest or newest[group][0] != interval:
            newest[group] = interval, _compared(members[group], interval)
        found[received] = newest[group][1][signal]
        peer.learn(found[received], interval)
        peer.recent.append((interval, received.values))
    return found


def _group(signal: "MonitoredSignal") -> object:
    return signal.row.template, signal.row.features, signal.step


def _compared(members: Sequence[tuple["MonitoredSignal", Peer]], interval: int) -> dict["MonitoredSignal", Values]:
    """How far each was from the others in the interval before."""
    values = [peer.values(interval - 1) for _, peer in members]
    levels = [peer.level(interval) for _, peer in members]
    (apart,) = against_peers([values], levels).tolist()
    return {signal: tuple(one) for (signal, _), one in zip(members, apart, strict=True)}
