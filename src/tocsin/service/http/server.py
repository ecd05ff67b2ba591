"""The HTTP server, which accepts connections itself to limit their number."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from tocsin.service.config import ServerSettings
from tocsin.service.http.connections import HEADER_SECONDS, ClientConnection, ConnectionSlot, ConnectionSlots
from tocsin.service.metrics import Metrics
from tocsin.service.open_files import room_for

# Seconds until the next attempt when the system allows no more connections.
_RETRY = 0.1

log = logging.getLogger("tocsin.http")


class HttpServer(uvicorn.Server):
    """uvicorn with limits on connections. It does not handle signals, because the monitor must stop other parts too."""

    def __init__(self, config: uvicorn.Config, settings: ServerSettings, metrics: Metrics) -> None:
        super().__init__(config)
        self._places = ConnectionSlots(room_for(settings.max_connections), settings.max_connections_per_address)
        self._rejected = metrics.rejected
        self._welcomes: set[asyncio.Task[None]] = set()
        self._accepting: list[asyncio.Task[None]] = []

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.lifespan.startup()
        self.servers = []
        self._accepting = [asyncio.create_task(self._accept(one)) for one in sockets or ()]
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        tasks = [*self._accepting, *self._welcomes]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await super().shutdown(sockets)

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        listening.setblocking(False)
        while True:
            try:
                accepted, address = await loop.sock_accept(listening)
            except OSError as error:
                # Most likely there are too many open files: close an idle connection.
                log.warning("cannot accept a connection: %s", error.strerror)
                self._rejected.labels("connections").inc()
                await asyncio.sleep(0 if self._places.free() else _RETRY)
                continue
            place = self._places.enter(str(address[0]))
            if place is None:
                self._rejected.labels("connections").inc()
                accepted.close()
            else:
                welcome = asyncio.create_task(self._welcome(accepted, place))
                place.drop = welcome.cancel
                self._welcomes.add(welcome)
                welcome.add_done_callback(self._welcomes.discard)
            await asyncio.sleep(0)  # let other tasks run, however many connections there are

    async def _welcome(self, accepted: socket.socket, place: ConnectionSlot) -> None:
        """Start the protocol, after the TLS handshake if there is one."""
        protocol = ClientConnection(
            place,
            self._rejected.labels("malformed").inc,
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )
        patience = HEADER_SECONDS if self.config.ssl else None
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: protocol, accepted, ssl=self.config.ssl, ssl_handshake_timeout=patience
            )
        except (OSError, ssl.SSLError, asyncio.CancelledError):
            place.leave()
            accepted.close()
