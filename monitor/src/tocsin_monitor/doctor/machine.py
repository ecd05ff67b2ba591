"""The machine: its clock, its disk, its limits, what is installed on it, and the certificate of the server."""

import shutil
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from tocsin.forecasting import available_forecasters
from tocsin_monitor.config import ServerSettings, Settings
from tocsin_monitor.doctor.finding import Finding, failed, ok, warning
from tocsin_monitor.errors import MonitorError
from tocsin_monitor.http.connections import OWN
from tocsin_monitor.http.server import Certificate
from tocsin_monitor.store.facts import file_of

# Bytes that are left on the disk.
FEW, TOO_FEW = 2**30, 100 * 2**20
_PATIENCE = 10.0


def check_extras(settings: Settings) -> Iterator[Finding]:
    """Whether the libraries are there that the settings need."""
    missing = []
    for section, group in (("sources", settings.sources), ("sinks", settings.sinks)):
        for place, one in group.each():
            try:
                one.load()
            except ImportError as error:
                missing.append(f"{section}.{place} needs {error.name or error}")
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
        f"the forecaster {name!r} needs {', '.join(one.missing)} (tocsin[{one.extra}])"
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
    file = file_of(settings.store_url)
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
        done = subprocess.run(asked, capture_output=True, text=True, timeout=_PATIENCE, check=True)  # noqa: S603 ours
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


SOON = 14 * 86400
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
    elif left < SOON:
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
        raise MonitorError(f"{file} cannot be read as a certificate in PEM: {error}") from error


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
