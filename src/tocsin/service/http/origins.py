"""Protects against other websites: security headers, and checks of Host and Origin."""

import ipaddress
from urllib.parse import urlsplit

from tocsin.service.config import ServerSettings

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
RAW_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


class OriginCheck:
    """Checks that requests use a name of this server.

    Another website can make its own name resolve to this machine (DNS rebinding) and then read everything; only the
    Host header reveals it. Beyond loopback, any IP address is allowed, because it was not resolved from a name.
    """

    def __init__(self, server: ServerSettings) -> None:
        external = urlsplit(server.external_url or "")
        self._hosts = {*_LOOPBACK, server.host.lower(), *(host.lower() for host in server.allowed_hosts)}
        if external.hostname:
            self._hosts.add(external.hostname)
        self._external = f"{external.scheme}://{external.netloc}".lower() if external.netloc else None
        self._addresses = not server.loopback

    def host_allowed(self, host: str | None) -> bool:
        """Whether a Host header names this server."""
        name = _name_in(host)
        return name is not None and (name in self._hosts or (self._addresses and _is_address(name)))

    def origin_allowed(self, origin: str, host: str | None, scheme: str) -> bool:
        """Whether a request that changes something comes from this server's own page.

        If TLS ends at a proxy, the page's scheme may differ from the one seen here; if TLS ends here, it must be https.
        """
        origin = origin.lower()
        if self._external is not None and origin == self._external:
            return True
        there, _, place = origin.partition("://")
        return host is not None and place == host.lower() and there in (("https",) if scheme == "https" else _SCHEMES)


_SCHEMES = ("http", "https")


def _name_in(host: str | None) -> str | None:
    """The name in a Host header, without the port."""
    try:
        parts = urlsplit(f"//{host or ''}")
        parts.port  # noqa: B018 raises if the port is invalid
        plain = parts.netloc == host and parts.username is None
        return parts.hostname.rstrip(".") if plain and parts.hostname else None
    except ValueError:
        return None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
