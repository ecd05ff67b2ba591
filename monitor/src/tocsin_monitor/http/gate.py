"""The checks that every request passes first."""

import ipaddress
import math
from urllib.parse import unquote_to_bytes, urlsplit

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tocsin_monitor.access_log import AccessEntry, recording
from tocsin_monitor.config import ServerSettings
from tocsin_monitor.errors import MonitorError
from tocsin_monitor.http import azure
from tocsin_monitor.http.auth import Caller, Keys, is_relayed, unauthorised
from tocsin_monitor.http.bodies import media_type
from tocsin_monitor.http.errors import HttpError, refuse, reply_to, reply_to_validation
from tocsin_monitor.http.limits import Bodies, Buckets, LimitedBody, too_large
from tocsin_monitor.http.monitor_access import MonitorAccess
from tocsin_monitor.http.push import dialects, in_dialect

# Probes are cheap and must always work, so they are not limited.
_PROBES = ("/healthz", "/readyz")
# What needs no token.
_OPEN = ("/", "/favicon.ico")
_OPEN_BELOW = "/static/"
# The cost of a failed authentication, in requests. Guessing a token is hopeless, but should not be cheap either.
_FAILURE_COST = 20.0
# Only observations, states and lists of signals have large bodies, and history files, which are written to a file as
# they arrive.
_LARGE = ("/observations", "/-/state", "/detect", "/bulk/incidents", "/bulk/signals", "/bulk/maintenance", "/trials")
_API = "/api/v1"
_UPLOAD = f"{_API}/imports"
_SMALL = 64 * 1024
_SENDING = (f"{_API}/observations", f"{azure.PREFIX}/")
_LONGEST_TARGET = 300
_METHODS = frozenset(("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"))


class Gate:
    """Checks Host and Origin, authenticates the caller, limits requests and bodies, and adds headers to replies."""

    def __init__(self, app: ASGIApp, monitor: MonitorAccess, keys: Keys) -> None:
        server = monitor.settings.server
        self._app, self._keys, self._metrics = app, keys, monitor.metrics
        self._origins = OriginCheck(server)
        self._buckets = Buckets(server.requests_per_second, server.burst)
        self._limit, self._bodies = server.max_body_bytes, Bodies(server.max_bodies_bytes)
        self._upload_limit = server.max_upload_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 500

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                there = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(one for one in RAW_HEADERS if one[0] not in there)]
            await send(message)

        try:
            try:
                scope["caller"] = await self._admit(scope)
            except (HttpError, MonitorError) as error:
                await in_dialect(scope, reply_to(error))(scope, receive, sending)
            else:
                entry = _access_entry(scope)
                recorded = entry if media_type(Headers(scope=scope)) == "application/json" else None
                bodies = None if scope["path"] == _UPLOAD else self._bodies
                body = LimitedBody(receive, self._limit_of(scope["path"]), bodies, recorded)
                scope["limited_body"] = body
                try:
                    with recording(entry):
                        await self._app(scope, body, sending)
                finally:
                    body.close()
        finally:
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._metrics.http_requests.labels(method, str(status)).inc()

    async def _admit(self, scope: Scope) -> Caller | None:
        """The caller; None if the path needs no token. Raises the error if the request is rejected."""
        headers, address = Headers(scope=scope), (scope.get("client") or ("unknown",))[0]
        self._check_origin(headers, scope)
        if _is_garbled(scope):
            raise HttpError(404, "there is nothing at this address: it is not valid UTF-8")
        if scope["path"] in _PROBES:
            return None
        if scope["path"] in _OPEN or scope["path"].startswith(_OPEN_BELOW):
            self._take(address)
            return None
        authorization = _authorization(headers, scope["path"])
        caller = await self._keys.caller(authorization, relayed=is_relayed(scope))
        if caller is None:
            self._reject("unauthorised")
            # Wrong tokens have their own bucket, because all clients behind a proxy share an address.
            self._take(address) if authorization is None else self._take(f"wrong:{address}", _FAILURE_COST)
            raise unauthorised(authorization)
        self._take(address if caller.token is None else caller.token)
        if caller.token is None and scope["path"] in dialects() and _is_simple(headers):
            self._reject("origin")
            raise HttpError(
                415, "without a token, any page could send this: create one (`tocsin token create`), or send the "
                "header 'Content-Type: application/octet-stream'", "Content-Type",
            )  # fmt: skip
        length = headers.get("content-length", "")
        limit = self._limit_of(scope["path"])
        if length.isdigit() and int(length[:20]) > limit:
            self._reject("too_large")
            raise too_large(limit)
        return caller

    def _limit_of(self, path: str) -> int:
        if path == _UPLOAD:
            return self._upload_limit
        return self._limit if path.endswith(_LARGE) or path in dialects() else min(self._limit, _SMALL)

    def _check_origin(self, headers: Headers, scope: Scope) -> None:
        hosts = headers.getlist("host")
        host = hosts[0] if len(hosts) == 1 else None
        if not self._origins.host_allowed(host):
            self._reject("host")
            raise HttpError(403, f"{host!r:.100} is not a name of this server: add it to server.allowed_hosts", "Host")
        if scope["method"] in SAFE_METHODS:
            return
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        own = site in _OWN_SITES if origin is None else self._origins.origin_allowed(origin, host, scope["scheme"])
        if not own:
            self._reject("origin")
            raise HttpError(403, "a page of another origin may not change anything here", "Origin")

    def _take(self, client: str, cost: float = 1.0) -> None:
        wait = self._buckets.take(client, cost)
        if wait > 0:
            self._reject("rate")
            seconds = max(1, math.ceil(wait))
            message = f"too many requests: try again in {seconds} s (see server.requests_per_second)"
            raise HttpError(429, message, headers={"Retry-After": str(seconds)})

    def _reject(self, reason: str) -> None:
        self._metrics.rejected.labels(reason).inc()


def _access_entry(scope: Scope) -> AccessEntry | None:
    """The entry of the access log for a request that changes something. Sending observations is not recorded."""
    sends = scope["path"] in dialects() or scope["path"].startswith(_SENDING)
    if scope["method"] in SAFE_METHODS or scope["caller"] is None or sends:
        return None
    return AccessEntry(scope["caller"].name, scope["method"], scope["path"].removeprefix(_API)[:_LONGEST_TARGET])


def _authorization(headers: Headers, path: str) -> str | None:
    """The header with the token; clients of Azure have another one for it."""
    key = headers.get(azure.KEY_HEADER) if path.startswith(f"{azure.PREFIX}/") else None
    return headers.get("authorization") if key is None else f"Bearer {key}"


def _is_simple(headers: Headers) -> bool:
    """Whether a page of any origin could have a browser send this without asking first."""
    return media_type(headers) in _SIMPLE_TYPES and "authorization" not in headers and "content-encoding" not in headers


def _is_garbled(scope: Scope) -> bool:
    """Whether an address is not valid UTF-8. The server replaces what it cannot decode."""
    if "\ufffd" not in scope["path"]:
        return False
    try:
        unquote_to_bytes(scope.get("raw_path") or b"").decode()
    except UnicodeDecodeError:
        return True
    return False


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
# What browsers say of a request that a page of this server, or nobody's page, makes. Others say nothing.
_OWN_SITES = (None, "same-origin", "none")
_SIMPLE_TYPES = ("", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data")


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


def handle_errors(app: FastAPI) -> None:
    """Make the application reply to all errors in this way."""

    async def known(request: Request, error: Exception) -> Response:
        return in_dialect(request.scope, reply_to(error))

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)  # noqa: S101 for the type checker
        return in_dialect(request.scope, reply_to_validation(error))

    async def unexpected(request: Request, error: Exception) -> Response:
        # This reply does not pass the gate, so it needs its own headers. The server logs the error.
        return in_dialect(request.scope, refuse(500, "internal error; see the monitor's log", headers=HEADERS))

    app.add_exception_handler(HTTPException, known)
    app.add_exception_handler(MonitorError, known)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(Exception, unexpected)
