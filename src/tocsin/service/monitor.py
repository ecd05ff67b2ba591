"""The monitor as a whole: assembles its parts, and starts and stops them in the right order."""

import asyncio
import logging
import os
import signal
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import uvicorn

from tocsin.service.config import ServerSettings, Settings
from tocsin.service.engine import Engine
from tocsin.service.errors import MonitorError, NotReadyError, OverloadedError, RefusedError
from tocsin.service.figures import Figures
from tocsin.service.http import HttpServer, create_app
from tocsin.service.http.monitor_access import ReadQueue
from tocsin.service.hub import Hub
from tocsin.service.logs import start_logging
from tocsin.service.metrics import Metrics
from tocsin.service.observations import Batch, Outcome
from tocsin.service.sinks import make_sinks
from tocsin.service.sources import make_sources
from tocsin.service.store import Store

log = logging.getLogger("tocsin.monitor")

Announce = Callable[["Monitor"], None]
# How long pending requests may take when the monitor stops.
PATIENCE = 5


class Monitor:
    """All parts of one monitor. `store` must be open and owned by this monitor."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self.settings, self.store = settings, store
        self.started = time.time_ns()
        self.hub, self.metrics = Hub(), Metrics()
        self.engine = Engine(settings, store, self.hub, self.metrics)
        try:
            self.sources = make_sources(settings, self._submit, self._cursor, self.metrics)
            self.sinks = make_sinks(settings, store, self.engine.write, self.metrics)
        except ValueError as error:
            raise RefusedError(str(error)) from error
        self.figures, self.read_queue = Figures(store), ReadQueue()
        self.app = create_app(self)
        #: The address it listens on, once it does.
        self.address = ""

    @property
    def resumed(self) -> int:
        """The number of signals it monitors."""
        return len(self.engine.overview())

    async def run(self, announce: Announce | None = None, stop: asyncio.Event | None = None) -> None:
        """Serve until a signal to the process or `stop` ends it; then shut down in order."""
        stop = stop or asyncio.Event()
        listening = _listen(self.settings.server)
        scheme = "https" if self.settings.server.tls_certificate else "http"
        self.address = f"{scheme}://{_written(listening)}"
        server = HttpServer(_http_config(self), self.settings.server, self.metrics)
        log.info("starting at %s; the first start after an installation may compile for up to a minute", self.address)
        self.engine.start()
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        working: list[asyncio.Task[None]] = []
        try:
            with _signals(stop):
                await self._until_ready(stop)
                if announce and not stop.is_set():
                    announce(self)
                working = [
                    *(asyncio.create_task(source.run()) for source in self.sources),
                    *(asyncio.create_task(sink.run()) for sink in self.sinks),
                ]
                ended = asyncio.create_task(stop.wait())
                await asyncio.wait([ended, serving], return_when=asyncio.FIRST_COMPLETED)
                ended.cancel()
        finally:
            log.info("stopping: finishing work in progress and storing detector states")
            for task in working:
                task.cancel()
            await asyncio.gather(*working, return_exceptions=True)
            self.hub.close()
            server.should_exit = True
            await serving
            await asyncio.to_thread(self.engine.stop)
            log.info("stopped")

    async def _until_ready(self, stop: asyncio.Event) -> None:
        while not self.engine.ready and not stop.is_set():
            await asyncio.sleep(0.05)

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


def run(settings: Settings, announce: Announce | None = None) -> None:
    """Open the store, and run a monitor on it until the process must stop."""
    start_logging(settings.log_level)
    with ExitStack() as stack:
        store = Store.open(settings.store_url, check=True)
        stack.callback(store.close)
        stack.enter_context(store.own())
        asyncio.run(Monitor(settings, store).run(announce))


def _http_config(monitor: Monitor) -> uvicorn.Config:
    server = monitor.settings.server
    config = uvicorn.Config(
        monitor.app,
        http="h11",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=PATIENCE,
        ssl_certfile=server.tls_certificate,
        ssl_keyfile=server.tls_key,
    )
    try:
        config.load()
    except (OSError, ssl.SSLError) as error:
        raise MonitorError(
            f"server.tls_certificate {server.tls_certificate} and server.tls_key {server.tls_key} cannot be used: "
            f"they must be a certificate and its key in PEM ({error})"
        ) from error
    return config


def _listen(server: ServerSettings) -> socket.socket:
    """A socket at the server's address."""
    try:
        found = socket.getaddrinfo(server.host, server.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, *_, address = found[0]
        return socket.create_server(address[:2], family=family, backlog=2048)
    except OSError as error:
        # The system's message, without the address that Python repeats.
        why = error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)
        raise MonitorError(
            f"cannot listen on {server.host} port {server.port} (server.host, server.port): {why}"
        ) from error


def _written(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@contextmanager
def _signals(stop: asyncio.Event) -> Iterator[None]:
    """Let signals to the process set `stop`."""
    loop = asyncio.get_running_loop()
    caught = []
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, stop.set)
            caught.append(number)
        except (NotImplementedError, RuntimeError, ValueError):
            pass  # not on Windows or outside the main thread: there only `stop` ends it
    try:
        yield
    finally:
        for number in caught:
            loop.remove_signal_handler(number)
