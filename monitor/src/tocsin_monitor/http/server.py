"""The HTTP server, which accepts connections itself to limit their number, and renews its certificate."""

import asyncio
import logging
import os
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import uvicorn
from starlette.types import ASGIApp

from tocsin_monitor.config import ServerSettings
from tocsin_monitor.errors import MonitorError
from tocsin_monitor.http.connections import (
    HEADER_SECONDS,
    IDLE_SECONDS,
    ClientConnection,
    ConnectionSlot,
    ConnectionSlots,
    room_for,
)
from tocsin_monitor.metrics import Metrics
from tocsin_monitor.secrecy import shown_path

# Seconds until the next attempt when the system allows no more connections.
_RETRY = 0.1
# How long pending requests may take when the server stops.
PATIENCE = 5
# How often to look whether the files have changed, in seconds.
CHECK_EVERY = 5.0

log = logging.getLogger("tocsin.http")


class Certificate:
    """A certificate and its key; `context` always has the newest that could be used."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._certificate, self._key = certificate, key
        self._seen = self._stamp()
        try:
            self.context = self._load()
        except (OSError, ssl.SSLError) as error:
            raise MonitorError(
                f"server.tls_certificate {shown_path(certificate)} and server.tls_key {shown_path(key)} cannot be "
                f"used: they must be a certificate and its key in PEM ({error.strerror or error})"
            ) from error

    @classmethod
    def of(cls, server: ServerSettings) -> Self | None:
        if server.tls_certificate is None or server.tls_key is None:
            return None
        return cls(server.tls_certificate, server.tls_key)

    def renew(self) -> None:
        """Use the files if they have changed. If they cannot be used, the ones before stay until they change again."""
        stamp = self._stamp()
        if stamp == self._seen:
            return
        self._seen = stamp
        try:
            # A context of its own: what fails halfway must not spoil the one in use.
            self.context = self._load()
        except (OSError, ssl.SSLError) as error:
            log.error(
                "the new certificate %s and key %s cannot be used, and the ones before stay in use: %s",
                self._certificate, self._key, error,
            )  # fmt: skip
        else:
            log.info("the new certificate %s is in use", self._certificate)

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._certificate, self._key, password=_no_password)
        return context

    def _stamp(self) -> tuple[object, ...]:
        """What differs once a file has other content; links are followed."""
        found = []
        for file in (self._certificate, self._key):
            try:
                status = file.stat()
                found.append((status.st_mtime_ns, status.st_size, status.st_ino))
            except OSError:
                found.append((0, 0, 0))
        return tuple(found)


def _no_password() -> str:
    """Nobody sits at a terminal who could be asked."""
    raise ssl.SSLError("the key is encrypted, and must not be")


class HttpServer(uvicorn.Server):
    """uvicorn with limits on connections. It does not handle signals, because the monitor must stop other parts too."""

    def __init__(self, app: ASGIApp, settings: ServerSettings, metrics: Metrics) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http="h11",
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=IDLE_SECONDS,
                timeout_graceful_shutdown=PATIENCE,
            )
        )
        self.config.load()
        self._certificate = Certificate.of(settings)
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
        if self._certificate is not None:
            self._accepting.append(asyncio.create_task(self._renew(self._certificate)))
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        tasks = [*self._accepting, *self._welcomes]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await super().shutdown(sockets)

    @staticmethod
    async def _renew(certificate: Certificate) -> None:
        while True:
            await asyncio.sleep(CHECK_EVERY)
            await asyncio.to_thread(certificate.renew)

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
        tls = self._certificate.context if self._certificate else None
        patience = HEADER_SECONDS if tls else None
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: protocol, accepted, ssl=tls, ssl_handshake_timeout=patience
            )
        except (OSError, ssl.SSLError, asyncio.CancelledError):
            place.leave()
            accepted.close()


def listen(server: ServerSettings) -> socket.socket:
    """A socket at the server's address."""
    try:
        found = socket.getaddrinfo(server.host, server.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, *_, address = found[0]
        listening = socket.create_server(address[:2], family=family, backlog=2048)
    except OSError as error:
        # The system's message, without the address that Python repeats.
        why = error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)
        raise MonitorError(
            f"cannot listen on {server.host} port {server.port} (server.host, server.port): {why}"
        ) from error
    # Accepted sockets inherit this. asyncio sets it only on sockets that name TCP as their protocol, and these do not.
    # Without it, the end of a reply waits up to 40 ms for the client to acknowledge its beginning.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def address_of(listening: socket.socket, server: ServerSettings) -> str:
    """Where a server with this socket is reached."""
    host, port = listening.getsockname()[:2]
    scheme = "https" if server.tls_certificate else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
