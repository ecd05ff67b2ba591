"""Sources and sinks: whether they can be reached. No alarm is sent to them."""

import os
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tocsin_monitor.config import Settings
from tocsin_monitor.config.sinks import MailSettings
from tocsin_monitor.doctor.finding import Finding, failed, ok, warning
from tocsin_monitor.errors import MonitorError
from tocsin_monitor.sinks.base import DeliveryError
from tocsin_monitor.sinks.mail import PORTS as MAIL_PORTS
from tocsin_monitor.sinks.mail import signed_in

_PATIENCE = 5.0
_PORTS = {"http": 80, "https": 443, "mqtt": 1883, "mqtts": 8883, "opc.tcp": 4840}
_WITH_TLS = ("https", "mqtts")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where something listens."""

    host: str
    port: int
    tls: bool = False
    trusted: Path | None = None

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def check_connectivity(settings: Settings) -> Iterator[Finding]:
    """Each source and sink of the settings."""
    for section, group in (("sources", settings.sources), ("sinks", settings.sinks)):
        for place, one in group.each():
            yield _check(f"{section}.{place} {one.name}", one)


def _check(check: str, settings: Any) -> Finding:
    path = getattr(settings, "path", None)
    if isinstance(path, Path):
        return _check_path(check, path)
    try:
        endpoint = endpoint_of(settings)
        if endpoint is None:
            return ok(check, "its settings name nothing that it connects to")
        if isinstance(settings, MailSettings):
            return _check_mail(check, endpoint, settings)
        _connect(endpoint)
    except (OSError, MonitorError) as error:
        return failed(check, str(error), "check its address, its certificate, and the network from here to there")
    return ok(check, f"{endpoint} can be reached{' with TLS' if endpoint.tls else ''}")


def _check_mail(check: str, endpoint: Endpoint, settings: MailSettings) -> Finding:
    """Connect as for a mail, and sign in, since a server may refuse only then."""
    try:
        with signed_in(settings.model_copy(update={"timeout": min(settings.timeout, _PATIENCE)})):
            pass
    except DeliveryError as error:
        said = f"{endpoint} cannot be used: {error}"
        return failed(check, said, "check its address, security, certificate, username and password")
    secured = "without TLS" if settings.security == "none" else f"with {settings.security.upper()}"
    return ok(check, f"{endpoint} can be used {secured}{'' if settings.username is None else ', signed in'}")


def endpoint_of(settings: Any) -> Endpoint | None:
    """Where a source or a sink connects to, by its `url`, or its `host` and `port`; None if it has neither."""
    host, port = getattr(settings, "host", None), getattr(settings, "port", None)
    trusted = getattr(settings, "ca_file", None)
    security = getattr(settings, "security", None)
    if isinstance(host, str) and security in MAIL_PORTS:
        return Endpoint(host, port or MAIL_PORTS[security], security == "tls", trusted)
    if isinstance(host, str) and isinstance(port, int):
        return Endpoint(host, port, bool(getattr(settings, "tls", False)) or trusted is not None, trusted)
    url = getattr(settings, "url", None)
    if url is None:
        return None
    parts = urlsplit(url.get_secret_value() if hasattr(url, "get_secret_value") else str(url))
    try:
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        port = None
    if not parts.hostname or port is None:
        raise MonitorError(f"its url has no host, or no port that is known for {parts.scheme}://")
    return Endpoint(parts.hostname, port, parts.scheme in _WITH_TLS, trusted)


def _connect(endpoint: Endpoint) -> None:
    """Connect, and agree on TLS where it is spoken; OSError says why not."""
    try:
        with socket.create_connection((endpoint.host, endpoint.port), _PATIENCE) as plain:
            if endpoint.tls:
                context = ssl.create_default_context(cafile=endpoint.trusted)
                context.wrap_socket(plain, server_hostname=endpoint.host).close()
    except OSError as error:
        raise MonitorError(f"{endpoint} cannot be reached: {error}") from error


def _check_path(check: str, path: Path) -> Finding:
    if not path.exists():
        return warning(check, f"there is no {path}", "it is read once it is there; check the path and its rights")
    if not os.access(path, os.R_OK | (os.X_OK if path.is_dir() else 0)):
        return failed(check, f"{path} cannot be read", "let the monitor's user read it")
    return ok(check, f"{path} can be read")
