"""The server's certificate, which may be renewed on disk while it serves."""

import logging
import ssl
from pathlib import Path
from typing import Self

from tocsin.service.config import ServerSettings
from tocsin.service.errors import MonitorError

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
                f"server.tls_certificate {certificate} and server.tls_key {key} cannot be used: "
                f"they must be a certificate and its key in PEM ({error})"
            ) from error

    @classmethod
    def of(cls, server: ServerSettings) -> Self | None:
        """The one in the settings, if there is one."""
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
