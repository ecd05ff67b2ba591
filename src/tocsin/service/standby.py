"""A monitor that waits until no other one leads."""

import asyncio
import logging
import socket
import time

from tocsin.service.config import Settings
from tocsin.service.engine.block import Allocation, load_kernels
from tocsin.service.errors import StoreError
from tocsin.service.figures import Figures
from tocsin.service.http import HttpServer, create_standby_app
from tocsin.service.http.server import address_of
from tocsin.service.hub import Hub
from tocsin.service.metrics import Metrics
from tocsin.service.store import Store

# How often to look whether another monitor leads, in seconds.
LOOK_EVERY = 0.5

log = logging.getLogger("tocsin.monitor")


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
        """Why it accepts no observations."""
        return f"standby: {self.leader}"

    async def run(self, listening: socket.socket, stop: asyncio.Event) -> None:
        """Serve until no other monitor leads, or `stop` is set."""
        server = HttpServer(create_standby_app(self), self.settings.server, self.metrics)
        log.info("standby at %s", address_of(listening, self.settings.server))
        self.metrics.leader.set(0)
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        # Compile and load the inner loops now, so that a takeover need not.
        await asyncio.gather(asyncio.to_thread(self._get_ready), self._wait(stop))
        server.should_exit = True
        await serving

    def _get_ready(self) -> None:
        engine = self.settings.engine
        places = Allocation(engine.max_signal_bytes, self.settings.most_detector_bytes)
        load_kernels(places.settings(("value",), self.settings.detector))

    async def _wait(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            if await asyncio.to_thread(self._is_free):
                return
            try:
                async with asyncio.timeout(LOOK_EVERY):
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
