"""The checks of `tocsin doctor`: the machine, the store, and whether sources and sinks can be reached."""

import os
import shutil
import socket
import sqlite3
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import Connection, make_url

from tocsin.forecasting import available_forecasters
from tocsin_monitor.as_json import time_text
from tocsin_monitor.config import ServerSettings, Settings
from tocsin_monitor.config.sinks import MailSettings
from tocsin_monitor.engine.signal_templates import in_force
from tocsin_monitor.errors import MonitorError, StoreError
from tocsin_monitor.http.connections import OWN
from tocsin_monitor.http.server import Certificate
from tocsin_monitor.secrecy import shown_path
from tocsin_monitor.sinks.base import DeliveryError
from tocsin_monitor.sinks.mail import PORTS as MAIL_PORTS
from tocsin_monitor.sinks.mail import signed_in
from tocsin_monitor.store import StoreReader, TemplateRow, TokenRow
from tocsin_monitor.store.connections import connect, disposing, for_reading, sqlite_file, store_errors
from tocsin_monitor.store.locks import find_owner
from tocsin_monitor.store.migrations import newest_version, version_of


class State(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found, and what to do about it."""

    check: str
    state: State
    message: str
    advice: str = ""


def ok(check: str, message: str) -> Finding:
    """All is well."""
    return Finding(check, State.OK, message)


def warning(check: str, message: str, advice: str) -> Finding:
    """It works, but not for ever, or not as well as it could."""
    return Finding(check, State.WARNING, message, advice)


def failed(check: str, message: str, advice: str) -> Finding:
    """It does not work."""
    return Finding(check, State.FAILED, message, advice)


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
        return warning(
            check, f"there is no {shown_path(path)}", "it is read once it is there; check the path and its rights"
        )
    if not os.access(path, os.R_OK | (os.X_OK if path.is_dir() else 0)):
        return failed(check, f"{path} cannot be read", "let the monitor's user read it")
    return ok(check, f"{path} can be read")


# Bytes that are left on the disk.
FEW, TOO_FEW = 2**30, 100 * 2**20
_CLOCK_PATIENCE = 10.0


def check_extras(settings: Settings) -> Iterator[Finding]:
    """Whether the libraries are there that the settings need."""
    missing = []
    for section, group in (("sources", settings.sources), ("sinks", settings.sinks)):
        for place, one in group.each():
            try:
                one.load()
            except (ImportError, ValueError) as error:  # a ValueError names the extra
                missing.append(f"{section}.{place}: {error}")
    missing += missing_forecasters(settings)
    if missing:
        yield failed(
            "libraries", "; ".join(missing), "install what is missing: see the extras in docs/monitor.md and `pip`"
        )
    else:
        yield ok("libraries", "everything that the settings need is installed")


def missing_forecasters(settings: Settings) -> list[str]:
    """What the forecasters of the settings and their templates need that is not installed."""
    given = [settings.detector, *(template.settings for template in settings.templates)]
    wanted = {one["forecaster"] for one in given if isinstance(one.get("forecaster"), str)}
    return [
        f"the forecaster {name!r} needs {', '.join(one.missing)} ({one.extra})"
        for name, one in available_forecasters().items()
        if name in wanted and one.missing
    ]


def check_files(settings: Settings) -> Finding:
    """Whether as many files may be open as connections need."""
    if sys.platform == "win32":
        return ok("open files", "Windows has no such limit")
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = settings.server.max_connections + OWN
    if most != resource.RLIM_INFINITY and most < wanted:
        return warning(
            "open files",
            f"the system allows {most} open files, and server.max_connections needs {wanted}",
            "raise LimitNOFILE of the service, or ulimit -n, or lower server.max_connections",
        )
    return ok("open files", "enough are allowed" if most == resource.RLIM_INFINITY else f"{most} are allowed")


def check_disk(settings: Settings) -> Iterator[Finding]:
    """Whether there is room for the data. The disk of a database server cannot be seen from here."""
    file = _file_of(settings)
    if file is None:
        return
    folder = file.absolute().parent
    there = next(one for one in (folder, *folder.parents) if one.exists())
    left = shutil.disk_usage(there).free
    said = f"{left / 2**30:,.1f} GiB are free at {folder}"
    if left < TOO_FEW:
        yield failed("disk space", said, "make room: the monitor accepts nothing once the disk is full")
    elif left < FEW:
        yield warning("disk space", said, "make room, or lower storage.keep_observations")
    else:
        yield ok("disk space", said)


def check_clock() -> Iterator[Finding]:
    """Whether the clock is kept right, where systemd can tell."""
    program = shutil.which("timedatectl")
    if program is None:
        return
    asked = [program, "show", "--property=NTPSynchronized", "--value"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, timeout=_CLOCK_PATIENCE, check=True)  # noqa: S603 ours
    except (OSError, subprocess.SubprocessError):
        return  # as in a container, where nobody keeps the time
    if done.stdout.strip() == "yes":
        yield ok("clock", "it is synchronised")
    else:
        yield warning(
            "clock",
            "it is not synchronised with a time server",
            "turn on NTP (timedatectl set-ntp true): observations ahead of the clock are refused",
        )


CERTIFICATE_SOON = 14 * 86400
_RENEW = "renew it: the monitor uses new files without a restart"
_VERSION, _UTC_TIME = 0xA0, 0x17


def check_certificate(server: ServerSettings) -> Iterator[Finding]:
    """Whether the certificate can be used, and for how long."""
    if server.tls_certificate is None:
        return
    try:
        Certificate.of(server)
        since, until = validity_of(server.tls_certificate)
    except MonitorError as error:
        yield failed("certificate", str(error), "check both files, and that the monitor may read them")
        return
    left, until_valid = until - time.time(), since - time.time()
    said = f"{server.tls_certificate} expires in {left / 86400:,.0f} days"
    if until_valid > 0:
        yield failed(
            "certificate",
            f"{server.tls_certificate} is not valid yet, but in {until_valid / 86400:,.1f} days",
            "check the clock of this machine, or use a certificate that is valid now",
        )
    elif left < 0:
        yield failed("certificate", f"{server.tls_certificate} expired {-left / 86400:,.0f} days ago", _RENEW)
    elif left < CERTIFICATE_SOON:
        yield warning("certificate", said, _RENEW)
    else:
        yield ok("certificate", said)


def validity_of(file: Path) -> tuple[float, float]:
    """From when until when the first certificate in a file is valid, in seconds since 1970."""
    try:
        text = file.read_text(encoding="ascii", errors="replace")
        end = text.index(ssl.PEM_FOOTER) + len(ssl.PEM_FOOTER)
        certificate = ssl.PEM_cert_to_DER_cert(text[text.index(ssl.PEM_HEADER) : end])
        # Its first part has a version (or none), a number, an algorithm, who issued it, and from when until when it is
        # valid.
        signed = _parts(_parts(certificate)[0][1])[0][1]
        fields = [part for part in _parts(signed) if part[0] != _VERSION]
        since, until = (_seconds(kind, moment.decode()) for kind, moment in _parts(fields[3][1]))
        return since, until
    except (OSError, ValueError, IndexError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise MonitorError(f"{shown_path(file)} cannot be read as a certificate in PEM: {why}") from error


def _seconds(kind: int, text: str) -> float:
    form = "%y%m%d%H%M%SZ" if kind == _UTC_TIME else "%Y%m%d%H%M%SZ"
    return datetime.strptime(text, form).replace(tzinfo=UTC).timestamp()


def _parts(encoded: bytes) -> list[tuple[int, bytes]]:
    """The kinds and contents of what follows each other in DER."""
    found, at = [], 0
    while at < len(encoded):
        kind, length, at = encoded[at], encoded[at + 1], at + 2
        if length & 0x80:
            more = length & 0x7F
            length, at = int.from_bytes(encoded[at : at + more], "big"), at + more
        found.append((kind, encoded[at : at + length]))
        at += length
    return found


# The oldest PostgreSQL that its makers still maintain, by its first number.
OLDEST_POSTGRESQL = 13
# In seconds.
AHEAD = 5.0
TOKENS_SOON = 30 * 86400
_NEW_TOKEN = "tocsin token create NAME --role ROLE"  # noqa: S105 no token, but how to make one


def check_store(settings: Settings) -> Iterator[Finding]:
    """All that can be said of the store, without changing anything of it."""
    file = _file_of(settings)
    if file is not None and not file.exists():
        yield warning(
            "store",
            f"there is none in {file.parent} yet",
            "the first start makes it; if there should be one, check --data, storage.folder and storage.url",
        )
        return
    try:
        with (
            disposing(connect(settings.store_url, make=False)) as engine,
            store_errors(engine),
            for_reading(engine).begin() as connection,
        ):
            found = list(_look_into(connection, settings))
    except StoreError as error:
        found = [failed("store", str(error), "check storage.url, the server, its network and its rights")]
    yield from found


def _file_of(settings: Settings) -> Path | None:
    """The file of a store in SQLite; None for a store in another database."""
    return sqlite_file(make_url(settings.store_url)) if settings.store_url.startswith("sqlite:") else None


def _look_into(connection: Connection, settings: Settings) -> Iterator[Finding]:
    version = version_of(connection)
    if connection.dialect.name == "sqlite":
        encoding = connection.exec_driver_sql("PRAGMA encoding").scalar_one()
        yield ok("store", f"SQLite {sqlite3.sqlite_version}, {encoding}")
        yield _tables(version)
    else:
        yield _server(connection)
        yield _tables(version)
        yield _clock(connection)
    if version != newest_version():
        return
    reader = StoreReader(connection)
    yield _newest(reader, settings)
    yield _tokens(reader.tokens(), private=settings.server.private)
    damaged = [row.name for row in reader.signals() if row.damage is not None]
    if damaged:
        yield failed(
            "signals",
            f"their rows in the store are damaged, and they are quarantined: {', '.join(damaged)}",
            "restore a backup, configure them again, or remove them",
        )
    if templates := reader.templates():
        yield _templates(templates, settings)
    stuck = reader.stuck_messages()
    for _, sink in settings.sinks.each():
        if sink.name in stuck:
            yield _stuck(sink.name, *stuck[sink.name])


def _server(connection: Connection) -> Finding:
    version = connection.exec_driver_sql("SHOW server_version").scalar_one()
    encoding = connection.exec_driver_sql("SHOW server_encoding").scalar_one()
    owner = find_owner(connection)
    said = f"PostgreSQL {version}, {encoding}" + (f", in use by {owner.name}" if owner else "")
    if encoding != "UTF8":
        return failed("store", said, "create one with CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0")
    if int(version.partition(".")[0]) < OLDEST_POSTGRESQL:
        return warning("store", said, f"update it: versions before {OLDEST_POSTGRESQL} are no longer maintained")
    return ok("store", said)


def _tables(version: int) -> Finding:
    said = f"version {version}, and this program works with version {newest_version()}"
    if version > newest_version():
        return failed("tables", said, "use the newer tocsin that wrote them, or restore a backup from before")
    if version == 0:
        return warning("tables", "there are none yet", "the first start makes them")
    if version < newest_version():
        return warning("tables", said, "back up (`tocsin backup` of the version in use): the next start changes them")
    return ok("tables", f"version {version}")


def _clock(connection: Connection) -> Finding:
    asked = time.time()
    theirs = connection.exec_driver_sql("SELECT extract(epoch FROM clock_timestamp())").scalar_one()
    ahead = float(theirs) - (asked + time.time()) / 2
    said = f"the clock of the database is {abs(ahead):.1f} s {'ahead' if ahead > 0 else 'behind'}"
    if abs(ahead) > AHEAD:
        return warning("clock of the database", said, "synchronise both machines with a time server")
    return ok("clock of the database", said)


def _newest(reader: StoreReader, settings: Settings) -> Finding:
    newest = reader.newest_observation()
    if newest is None:
        return ok("newest observation", "there are no observations yet")
    ahead = (newest - time.time_ns()) / 1e9
    if ahead > settings.engine.future_tolerance:
        return warning(
            "newest observation",
            f"it is {ahead:,.0f} s ahead of this machine's clock",
            "if the clock is behind, set it right; else see POST /api/v1/signals/NAME/-/clock in docs/api.md",
        )
    return ok("newest observation", f"{max(0.0, -ahead):,.0f} s ago")


def _tokens(tokens: Sequence[TokenRow], *, private: bool) -> Finding:
    now = time.time_ns()
    valid = [one for one in tokens if one.expires is None or one.expires > now]
    expired = [one.name for one in tokens if one not in valid]
    soon = [one.name for one in valid if one.expires is not None and one.expires < now + TOKENS_SOON * 10**9]
    if not valid and (tokens or not private):
        return failed("tokens", "there is no valid one, so nobody can sign in", f"create one: {_NEW_TOKEN}")
    if not valid:
        return ok("tokens", "none, and none is needed: a browser on this machine may do everything")
    if soon:
        return warning(
            "tokens",
            f"these expire within {TOKENS_SOON // 86400} days: {', '.join(soon)}",
            f"create new ones: {_NEW_TOKEN}",
        )
    if expired:
        return warning(
            "tokens", f"these have expired: {', '.join(expired)}",
            f"create new ones ({_NEW_TOKEN}), or revoke those that nobody uses (tocsin token revoke NAME)",
        )  # fmt: skip
    return ok("tokens", f"{len(valid)} valid")


def _templates(templates: Sequence[TemplateRow], settings: Settings) -> Finding:
    used, known = in_force(settings, templates)
    problems = [f"{one.template.match!r} is not used: {one.problem}" for one in known if one.problem is not None]
    problems += missing_forecasters(used)
    if problems:
        return failed("stored templates", "; ".join(problems), "change them on the page, or install what is missing")
    return ok("stored templates", f"{len(templates)} in force")


def _stuck(sink: str, count: int, since: int, error: str) -> Finding:
    many = "1 message has" if count == 1 else f"{count:,} messages have"
    return failed(
        f"messages to {sink}",
        f"{many} not been accepted since {time_text(since)}: {error}",
        "correct what the error says; the monitor sends them again until the sink accepts them",
    )


def examine(settings: Settings) -> Iterator[Finding]:
    """What each check finds. Nothing is changed, and nothing is sent but what it takes to connect."""
    yield from check_extras(settings)
    yield check_files(settings)
    yield from check_disk(settings)
    yield from check_clock()
    yield from check_store(settings)
    yield from check_certificate(settings.server)
    yield from check_connectivity(settings)
