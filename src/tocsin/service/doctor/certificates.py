"""The server's certificate: whether it fits its key, and when it expires."""

import ssl
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from tocsin.service.config import ServerSettings
from tocsin.service.doctor.finding import Finding, failed, ok, warning
from tocsin.service.errors import MonitorError
from tocsin.service.http.certificate import Certificate

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
