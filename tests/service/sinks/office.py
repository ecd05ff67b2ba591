"""The real store, and incidents in it as the engine puts them there."""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.service.helpers import sqlite_store
from tocsin_monitor.config import EventSettings
from tocsin_monitor.config.sinks import WebhookSettings
from tocsin_monitor.engine.events import Events
from tocsin_monitor.engine.incidents import close_incident, put_incident
from tocsin_monitor.store import Ended, IncidentFacts, IncidentRow, OutboxRow, SignalRow, StoreWriter

#: What is not there of a silence.
NOTHING_SEEN = {"severity": float("nan"), "return_period": float("nan"), "view": None, "explanation": None}


def facts(signal: int, **given: Any) -> IncidentFacts:
    now = time.time_ns()
    made = IncidentFacts(
        signal=signal, kind="alarm", start=now, end=now, peak=now, alarms=1, duration=1, p=0.005, severity=2.3,
        return_period=150.0, seen=1_000, view="error", explanation="2 above the forecast",
        direction="above", deviation=3.5, contributions={"value": 2.3}, open=True, opened=now, closed=None, ended=None,
    )  # fmt: skip
    return replace(made, **given)


class Office:
    """Opens and closes incidents, and has a sink told. `write` is as the engine's, and can be broken."""

    def __init__(self, folder: Path, *sinks: str) -> None:
        self.store = sqlite_store(folder)
        self._sinks = [WebhookSettings(name=sink, url="http://127.0.0.1:1") for sink in sinks]
        self.make_events(enabled=False)
        self.broken = False
        self._thread = ThreadPoolExecutor(1)

    def make_events(self, **settings: Any) -> None:
        """Which incidents are one event from now on; at first, each is one by itself."""
        self._events = Events(EventSettings(**settings), self._sinks)

    def close(self) -> None:
        self._thread.shutdown()
        self.store.close()

    def write(self, change: Callable[[StoreWriter], Any]) -> Future[Any]:
        def call() -> Any:
            if self.broken:
                raise OSError("the disk is full")
            with self.store.transaction() as writer:
                return change(writer)

        return self._thread.submit(call)

    def signal(self, name: str) -> SignalRow:
        with self.store.transaction() as writer:
            return writer.signal(name) or writer.add_signal(name, ["value"], {}, unit="bar", created=1)

    def begin(self, signal: str, **given: Any) -> int:
        row = self.signal(signal)
        made = facts(row.id, **given)
        with self.store.transaction() as writer:
            return put_incident(writer, self._events, row, made, made.opened)

    def change(self, number: int, **given: Any) -> None:
        with self.store.transaction() as writer:
            writer.change_incident(number, **given)

    def end(self, number: int, ended: Ended = "returned", closed: int | None = None) -> None:
        row = self.incident(number)
        with self.store.transaction() as writer:
            signal = next(one for one in writer.signals() if one.id == row.signal)
            close_incident(writer, self._events, signal, row, ended, closed or time.time_ns())

    def incident(self, number: int) -> IncidentRow:
        with self.store.reading() as reader:
            found = reader.incident(number)
        assert found is not None
        return found

    def due(self, sink: str, ahead: float = 1e6) -> list[OutboxRow]:
        """What is not delivered, whenever it is to be tried."""
        with self.store.reading() as reader:
            return reader.outbox_due(sink, time.time_ns() + int(ahead * 1e9), 1000)

    def waiting(self) -> dict[str, int]:
        with self.store.reading() as reader:
            return reader.outbox_waiting()
