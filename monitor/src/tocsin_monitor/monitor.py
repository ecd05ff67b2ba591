"""The monitor as a whole: one that leads, with all its parts, and one on standby that waits for its turn."""

import asyncio
import gc
import logging
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import cast

from tocsin.data import clear_leftovers
from tocsin_monitor.config import ConfigError, Settings
from tocsin_monitor.engine import Engine
from tocsin_monitor.engine.loops import load_loops
from tocsin_monitor.errors import MonitorError, NotReadyError, OverloadedError, RefusedError, StoreError
from tocsin_monitor.http import HttpServer, create_app, create_standby_app
from tocsin_monitor.http.imports import LEFTOVER
from tocsin_monitor.http.monitor_access import READERS, Figures, MonitorAccess
from tocsin_monitor.http.server import address_of, listen
from tocsin_monitor.hub import Hub
from tocsin_monitor.logs import start_logging
from tocsin_monitor.metrics import Metrics
from tocsin_monitor.observations import Batch, Outcome
from tocsin_monitor.reloading import Reloaded, reloaded
from tocsin_monitor.sinks import make_sinks
from tocsin_monitor.sources import make_sources
from tocsin_monitor.store import Store

log = logging.getLogger("tocsin.monitor")

#: Says where a monitor listens, and what it has resumed once it is ready.
Announce = Callable[["Monitor", bool], None]
#: Reads the settings anew; ConfigError if they are wrong.
ReadAgain = Callable[[], Settings]
# How often one that leads looks whether it still does, in seconds.
LOOK_EVERY = 0.25
# How often one on standby looks whether another one leads, in seconds.
LOOK_FOR_LEADER_EVERY = 0.5
# New objects after which Python looks for cycles among them, instead of after 700: a turn makes thousands for its
# observations, which have none.
COLLECT_AFTER = 20_000


class Monitor:
    """All parts of one monitor. `store` must be open and owned by this monitor."""

    def __init__(self, settings: Settings, store: Store, read_again: ReadAgain | None = None) -> None:
        self.settings, self.store, self._read_again = settings, store, read_again
        self.started = time.time_ns()
        self.hub, self.metrics = Hub(), Metrics()
        self.engine = Engine(settings, store, self.hub, self.metrics)
        try:
            self.sources = make_sources(settings, self._submit, self._cursor, self.metrics)
            self.sinks = make_sinks(settings, store, self.engine.write, self.metrics)
        except ValueError as error:
            raise RefusedError(str(error)) from error
        self.figures, self.read_turns = Figures(store), asyncio.Semaphore(READERS)
        self.app = create_app(self)
        #: The address it listens on, once it does.
        self.address = ""

    async def run(
        self, listening: socket.socket, stop: asyncio.Event, announce: Announce | None = None,
        reload: asyncio.Event | None = None,
    ) -> None:  # fmt: skip
        """Serve until `stop` is set, or the store is lost while others are on standby; then shut down in order."""
        self.address = address_of(listening, self.settings.server)
        server = HttpServer(self.app, self.settings.server, self.metrics)
        log.info("starting at %s", self.address)
        self.metrics.leader.set(1)
        clear_leftovers(Path(tempfile.gettempdir()), LEFTOVER, "-")
        collected_after = gc.get_threshold()
        gc.set_threshold(COLLECT_AFTER)
        self.engine.start()
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        if announce:
            announce(self, False)
        ending = [serving, asyncio.create_task(stop.wait()), asyncio.create_task(self._until_lost())]
        working: list[asyncio.Task[None]] = []
        try:
            ready = asyncio.create_task(self._until_ready())
            await asyncio.wait([ready, *ending], return_when=asyncio.FIRST_COMPLETED)
            if ready.done():
                # What is there now stays. To look through all of it in every full collection would hold up everything
                # for more than a tenth of a second.
                gc.collect()
                gc.freeze()
                if announce:  # in a thread, because a store that hangs must not hold up everything
                    working.append(asyncio.create_task(asyncio.to_thread(announce, self, True)))
                working += [
                    asyncio.create_task(self._reload_at(reload or asyncio.Event())),
                    *(asyncio.create_task(source.run()) for source in self.sources),
                    *(asyncio.create_task(sink.run()) for sink in self.sinks),
                ]
                await asyncio.wait(ending, return_when=asyncio.FIRST_COMPLETED)
            working.append(ready)
        finally:
            gc.unfreeze()
            gc.set_threshold(*collected_after)
            log.info("stopping: finishing work in progress and storing detector states")
            for task in (*working, *ending[1:]):
                task.cancel()
            await asyncio.gather(*working, *ending[1:], return_exceptions=True)
            self.hub.close()
            if self.store.lost:
                # Nothing that waits can be stored here: senders are told at once, and go to the one that leads.
                await asyncio.to_thread(self.engine.stop)
            server.should_exit = True
            await serving
            await asyncio.to_thread(self.engine.stop)
            log.info("stopped")

    async def reload(self) -> Reloaded:
        """Read the settings again: all of them are checked before any changes. RefusedError if they are wrong."""
        if self._read_again is None:
            raise RefusedError("this monitor has no settings to read again")
        try:
            new = await asyncio.to_thread(self._read_again)
        except ConfigError as error:
            raise RefusedError("the settings stay as they are: " + "; ".join(error.problems)) from None
        in_force, what = reloaded(self.settings, new)
        await asyncio.wrap_future(self.engine.templates.use_settings(in_force))
        self.settings = in_force
        logging.getLogger().setLevel(in_force.log_level.upper())
        waits = f"; not before a restart: {', '.join(what.needs_restart)}" if what.needs_restart else ""
        log.info("settings read again, changed: %s%s", ", ".join(what.changed) or "none", waits)
        return what

    async def _reload_at(self, asked: asyncio.Event) -> None:
        while await asked.wait():
            asked.clear()
            try:
                await self.reload()
            except MonitorError as error:
                log.error("%s", error)

    async def _until_ready(self) -> None:
        while not self.engine.ready:
            await asyncio.sleep(0.05)

    async def _until_lost(self) -> None:
        """Wait until another monitor may lead. Without any on standby, the engine waits for the store by itself."""
        while not (self.settings.storage.standby and self.store.lost):
            await asyncio.sleep(LOOK_EVERY)
        log.warning("the lock of the store is lost: back to standby")
        self.store.cut()

    async def _submit(self, batch: Batch) -> list[Outcome]:
        """Submit a batch and wait until it is accepted: this is the back-pressure on sources."""
        while True:
            try:
                return await asyncio.shield(asyncio.wrap_future(self.engine.submit(batch)))
            except OverloadedError as error:
                await asyncio.sleep(error.retry_after)
            except NotReadyError:
                await asyncio.sleep(1.0)

    def _cursor(self, source: str) -> str | None:
        with self.store.reading() as reader:
            return reader.cursor(source)


class Standby:
    """Replies that it is on standby until no other monitor uses the store."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self.settings, self.store = settings, store
        self.started = time.time_ns()
        self.metrics, self.hub, self.figures = Metrics(), Hub(), Figures(store)
        self.sources = self.sinks = ()
        #: Who leads, as far as is known.
        self.leader = "looking for the monitor that leads"

    @property
    def engine(self) -> "Standby":
        """In place of the engine: it is never ready, and says why."""
        return self

    ready = stalled = False

    @property
    def progress(self) -> str:
        return f"standby: {self.leader}"

    async def run(self, listening: socket.socket, stop: asyncio.Event) -> None:
        """Serve until no other monitor leads, or `stop` is set."""
        server = HttpServer(create_standby_app(cast("MonitorAccess", self)), self.settings.server, self.metrics)
        log.info("standby at %s", address_of(listening, self.settings.server))
        self.metrics.leader.set(0)
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        # Compile and load the inner loops now, so that a takeover need not.
        loading = asyncio.to_thread(load_loops, self.settings.detector, self._report)
        await asyncio.gather(loading, self._wait(stop))
        server.should_exit = True
        await serving

    def _report(self, doing: str) -> None:
        """Nobody waits for a standby's loops."""

    async def _wait(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            if await asyncio.to_thread(self._is_free):
                return
            try:
                async with asyncio.timeout(LOOK_FOR_LEADER_EVERY):
                    await stop.wait()
            except TimeoutError:
                continue

    def _is_free(self) -> bool:
        try:
            owner = self.store.owner()
        except StoreError as error:
            self._tell("the store cannot be reached", str(error))
            return False
        if owner is None:
            return True
        self._tell(f"{owner.name} leads")
        return False

    def _tell(self, leader: str, details: str = "") -> None:
        if leader != self.leader:
            log.info("standby: %s%s", leader, f" ({details})" if details else "")
        self.leader = leader


def run(settings: Settings, announce: Announce | None = None, read_again: ReadAgain | None = None) -> None:
    """Open the store, and run a monitor on it until the process must stop.

    `read_again` reads the settings when somebody asks for that, with SIGHUP or over HTTP.
    """
    start_logging(settings)
    if settings.storage.standby:
        with closing(Store.reach(settings.store_url)) as store:
            asyncio.run(_lead_in_turn(settings, store, announce, read_again))
        return
    with closing(Store.open(settings.store_url, check=True)) as store, store.own():
        asyncio.run(_lead(settings, store, announce, read_again))


async def _lead(settings: Settings, store: Store, announce: Announce | None, read_again: ReadAgain | None) -> None:
    stop, reload = asyncio.Event(), asyncio.Event()
    with _signals(stop, reload):
        await Monitor(settings, store, read_again).run(listen(settings.server), stop, announce, reload)


async def _lead_in_turn(
    settings: Settings, store: Store, announce: Announce | None, read_again: ReadAgain | None
) -> None:
    """Wait until no other monitor leads, lead until the store is lost, and so on."""
    stop, reload = asyncio.Event(), asyncio.Event()
    with _signals(stop, reload), closing(listen(settings.server)) as listening:
        while not stop.is_set():
            # A server closes the socket that it is given.
            await Standby(settings, store).run(listening.dup(), stop)
            if stop.is_set():
                break
            with ExitStack() as stack:
                try:
                    stack.enter_context(store.own())
                except StoreError as error:  # another monitor was faster, or the database has gone meanwhile
                    log.info("cannot lead yet: %s", error)
                    continue
                await asyncio.to_thread(store.bring_up_to_date)
                await Monitor(settings, store, read_again).run(listening.dup(), stop, announce, reload)


@contextmanager
def _signals(stop: asyncio.Event, reload: asyncio.Event) -> Iterator[None]:
    """Let signals to the process set `stop`, and SIGHUP, where there is one, `reload`."""
    loop = asyncio.get_running_loop()
    caught = []
    asked = {signal.SIGINT: stop, signal.SIGTERM: stop}
    if hasattr(signal, "SIGHUP"):
        asked[signal.SIGHUP] = reload
    for number, event in asked.items():
        try:
            loop.add_signal_handler(number, event.set)
            caught.append(number)
        except (NotImplementedError, RuntimeError, ValueError):
            pass  # not on Windows or outside the main thread: there only `stop` ends it
    try:
        yield
    finally:
        for number in caught:
            loop.remove_signal_handler(number)
