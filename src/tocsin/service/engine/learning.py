"""The thread that judges imported history, while the engine goes on with what comes live."""

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tocsin.service.engine.core import Core
from tocsin.service.engine.histories import Progress, Span
from tocsin.service.engine.rebuilding import go_on
from tocsin.service.engine.replaying import remember_newest
from tocsin.service.engine.walking import Found, Walk
from tocsin.service.errors import NotReadyError, StoreError
from tocsin.service.store import StoreWriter

if TYPE_CHECKING:
    from concurrent.futures import Future

log = logging.getLogger("tocsin.engine")

# How often to look for something to do, and how long to wait when the store is away, in seconds.
LOOK_EVERY = 0.2
PAUSE = 1.0

Ask = Callable[[Callable[[], Any]], "Future[Any]"]


class _StoppedError(Exception):
    """There is no need to go on."""


class Learner:
    """Takes signals whose history has come, one after the other, and lets them go on with what was learned of it.

    A detector that is built beside the one that judges takes its place when it has caught up.
    """

    def __init__(self, core: Core, ask: Ask) -> None:
        self._core, self._ask = core, ask
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tocsin-history", daemon=True)

    def start(self) -> None:
        """Begin to look for something to do."""
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """What is not finished is begun anew at the next start."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(seconds)

    def _run(self) -> None:
        while not self._stopping.wait(LOOK_EVERY):
            due = self._core.histories.due()
            if due is None:
                continue
            name, span = due
            try:
                self._learn(name, span)
            except _StoppedError:
                return
            except (NotReadyError, StoreError) as error:
                log.warning("the history of %r is learned later: %s", name, error)
                self._stopping.wait(PAUSE)
            except Exception as error:
                log.exception("the history of %r cannot be learned", name)
                self._give_up(name, error)

    def _learn(self, name: str, span: Span) -> None:
        core = self._core
        signal = core.signals.get(name)
        if signal is None:
            return  # it was removed just now
        walk = Walk(core, signal, span)
        self._do(lambda: self._begin(walk))
        done = incidents = 0
        more = True
        while more:
            with core.store.reading() as reader:
                found = walk.step(reader)
            if found.judged or found.incidents:
                self._do(partial(self._store, [found]))
            done, incidents, more = done + found.taken, incidents + len(found.incidents), found.more
            core.histories.tell(Progress(name, "learning", done, max(done, walk.total), incidents))
            if core.histories.span(walk.row.id) != span:
                return  # more has come, and it begins anew
        last = self._do(lambda: self._finish(name, walk))
        if last is not None:
            core.histories.tell(Progress(name, "done", done, done, incidents + last))
            core.hub.publish("signal", {"name": name, "change": "imported"})
            log.info("the history of %r is learned: %d observations, %d incidents", name, done, incidents + last)

    def _do(self, call: Callable[[], Any]) -> Any:
        """Have the engine do something, between what else it does."""
        if self._stopping.is_set():
            raise _StoppedError
        return self._ask(call).result()

    def _begin(self, walk: Walk) -> None:
        """What was found in this past before is found anew."""
        with self._core.store.transaction() as writer:
            writer.remove_imported_incidents(walk.row.id, walk.span.first, walk.span.last)

    def _store(self, pieces: Sequence[Found]) -> None:
        with self._core.store.transaction() as writer:
            _put(writer, pieces)

    def _finish(self, name: str, walk: Walk) -> int | None:
        """Let the signal go on with the detector that has learned; returns how many more incidents there are.

        None where it has to be built anew.
        """
        core, number = self._core, walk.row.id
        signal = core.signals.get(name)
        if signal is None or not walk.is_of(signal) or core.histories.span(number) != walk.span:
            return None
        with core.store.reading() as reader:
            pieces = [walk.step(reader)]  # what has come live meanwhile
            while pieces[-1].more:
                pieces.append(walk.step(reader))
        pieces.append(Found(0, (), walk.last_incident(), more=False))

        def change(writer: StoreWriter) -> None:
            _put(writer, pieces)
            core.histories.end(writer, number)

        go_on(core, signal, walk.new, "relearned", change)
        core.histories.forget(number)
        with core.store.reading() as reader, core.lock:
            remember_newest(reader, signal)
        core.count()
        return sum(len(piece.incidents) for piece in pieces)

    def _give_up(self, name: str, error: Exception) -> None:
        """It goes on as it is, and is tried again at the next start."""
        self._core.histories.fail(name, str(error))


def _put(writer: StoreWriter, pieces: Sequence[Found]) -> None:
    for piece in pieces:
        writer.judge_observations(piece.judged)
        for one in piece.incidents:
            writer.put_incident(one)
